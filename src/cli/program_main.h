// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The `main` function of Penstock, also for programs that add their own network functions:
//
//   int main(int argc, char** argv) { return penstock::cli::program_main(argc, argv, {&mine::mine_kind()}); }

#pragma once

#include <vector>

#include "function/network_function.h"

namespace penstock::cli {

/// Runs the command line and returns the exit code; catches all exceptions. All commands know the `further` functions
/// in addition to the built-in ones. If a function's name is already taken, an error is reported, and nothing is run.
[[nodiscard]] int program_main(int argc, const char* const* argv,
                               const std::vector<const function::NfKind*>& further = {}) noexcept;

}  // namespace penstock::cli
