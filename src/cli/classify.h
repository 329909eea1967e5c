// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock classify`: shows the firewall's verdicts on tuples, and the rules that they come from.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_classify(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
