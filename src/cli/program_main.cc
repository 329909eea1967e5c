// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/chain_arguments.h"
#include "cli/program.h"

namespace penstock::cli {

namespace {

/// A standard stream that is closed (`>&-`) leaves its number to the next file that is opened, a capture say, and what
/// is printed would go there.
void hold_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // So opened that reading and writing fail as they do from and to what is closed; but warnings may be lost.
    const int mode = fd == STDIN_FILENO ? O_WRONLY : fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    static_cast<void>(::open("/dev/null", mode));
  }
}

}  // namespace

int program_main(int argc, const char* const* argv, const std::vector<const function::NfKind*>& further) noexcept {
  hold_standard_streams();
  // A file that has grown as far as the user's limit allows is like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run_program(argc, argv, further);
  } catch (const std::bad_alloc&) {
    std::fputs("penstock: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: %s\n", error.what());
  }
  return kFailed;
}

}  // namespace penstock::cli
