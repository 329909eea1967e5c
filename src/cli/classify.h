// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock classify`: the firewall's verdict on tuples, and the rule that it comes from.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`.
void add_classify(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
