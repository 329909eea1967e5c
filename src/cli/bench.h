// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock bench`: runs an experiment of the paper, or renders a saved record: JSON, tables, plots.

#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set. `command_line` is the program's command line,
/// including its name, for the record.
void add_bench(CLI::App& app, std::vector<std::string> command_line, int& exit_code);

}  // namespace penstock::cli
