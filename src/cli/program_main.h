// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All that a `main` of Penstock's does, for ours and for those of programs that bring network functions of their own:
//
//   int main(int argc, char** argv) { return penstock::cli::program_main(argc, argv, {&mine::mine_kind()}); }

#pragma once

#include <vector>

#include "function/network_function.h"

namespace penstock::cli {

/// Does what the command line asks for and returns the exit code; the one place where exceptions end. Every command
/// knows the `further` functions beside the built-in ones; one whose name is taken is refused, and nothing is done.
[[nodiscard]] int program_main(int argc, const char* const* argv,
                               const std::vector<const function::NfKind*>& further = {}) noexcept;

}  // namespace penstock::cli
