// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>

#include "base/log.h"
#include "cli/chain_arguments.h"
#include "cli/program.h"

namespace penstock::cli {

namespace {

/// If a standard stream is closed (`>&-`), the next file that is opened gets its number, such as a capture, and
/// messages would be written to that file.
void hold_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // Opened in a mode in which reading or writing fails, as with a closed stream; but warnings may be lost.
    const int mode = fd == STDIN_FILENO ? O_WRONLY : fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    static_cast<void>(::open("/dev/null", mode));
  }
}

}  // namespace

int program_main(int argc, const char* const* argv, const std::vector<const function::NfKind*>& further) noexcept {
  hold_standard_streams();
  // Treat a file that reaches the user's size limit like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run_program(argc, argv, further);
  } catch (const std::bad_alloc&) {
    log_error("penstock: out of memory");
  } catch (const std::exception& error) {
    log_error("penstock: {}", error.what());
  }
  return kFailed;
}

}  // namespace penstock::cli
