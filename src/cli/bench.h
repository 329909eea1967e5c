// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock bench`: runs a paper's experiment, or renders a kept one: JSON, tables, plots.

#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace penstock::cli {

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`. `command_line`: the program's, with its
/// name, for the record.
void add_bench(CLI::App& app, std::vector<std::string> command_line, int& exit_code);

}  // namespace penstock::cli
