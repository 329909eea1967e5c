// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's commands, and what it says when it is called wrongly.

#pragma once

#include "function/network_function.h"

namespace penstock::cli {

/// Does what the command line asks for and returns the exit code. `argv` is as `main` gets it; chain files can name the
/// functions of the catalog and the `further` ones. Exceptions pass: see cli/program_main.h.
[[nodiscard]] int run_program(int argc, const char* const* argv, function::NfKinds further = {});

}  // namespace penstock::cli
