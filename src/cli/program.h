// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands of the program, and its messages for wrong usage.

#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "function/network_function.h"

namespace penstock::cli {

/// Names the program and adds all commands. `functions` must outlive `app`. When a command has run, `exit_code` is set.
/// `arguments`: the command line.
void define_command_line(CLI::App& app, function::NfKinds functions, const std::vector<std::string>& arguments,
                         int& exit_code);

/// Runs the command line and returns the exit code. `argv` is as for `main`. Chain files can name the functions of the
/// catalog and the `further` ones. Exceptions are passed on: see cli/program_main.h.
[[nodiscard]] int run_program(int argc, const char* const* argv, function::NfKinds further = {});

}  // namespace penstock::cli
