// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program, and the one place where exceptions end.

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/chain_arguments.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  // A reader that goes away (`| head`) is an error of the output like others, and ends no run without its report.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that has grown as far as the user's limit allows: like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return penstock::cli::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("penstock: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: %s\n", error.what());
  }
  return penstock::cli::kFailed;
}
