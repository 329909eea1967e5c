// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock ctl`: the operator's command for a run that listens (`penstock run --control`).

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_ctl(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
