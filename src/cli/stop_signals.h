// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Signal handling: stopping a long command on request of the user, timeout(1) or a closed terminal, and requests to a
// run that continues.

#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::cli {

/// What SIGHUP does.
enum class HangUp : std::uint8_t {
  stops,    // stops the command, as for a closed terminal
  reopens,  // reopens the logs: see RunSignals
  ignored,  // does nothing: a service without logs of its own, to which logrotate(8) may send it all the same
};

/// From here on, the first SIGINT, SIGTERM or stopping SIGHUP sets the returned flag, and a second one ends the program
/// immediately. SIGPIPE (`| head`) no longer ends the program.
[[nodiscard]] const std::atomic<bool>& stop_on_signals(HangUp hang_up = HangUp::stops);

/// Does what the first signal does, for a request by other means. A signal afterwards counts as the second one.
void stop_as_by_signal() noexcept;

/// From here on, a single signal ends the program, because the remaining work may block on a reader for ever.
void nothing_left_to_stop() noexcept;

/// While this exists, a single SIGINT or SIGTERM ends the program at once: for long work that can neither be stopped
/// nor leaves anything half done.
class SignalsEndProgram {
 public:
  SignalsEndProgram() noexcept;
  ~SignalsEndProgram();
  SignalsEndProgram(const SignalsEndProgram&) = delete;
  SignalsEndProgram& operator=(const SignalsEndProgram&) = delete;

 private:
  void (*interrupt_)(int);
  void (*terminate_)(int);
};

/// Requests to a run, made by signals.
struct RunSignals {
  std::atomic<bool> reopen_logs{false};  // SIGHUP
  std::atomic<bool> report{false};       // SIGUSR1
  std::atomic<bool> reload{false};       // SIGUSR2
};

/// From here on, these signals set the returned flags, and do not end the program.
[[nodiscard]] RunSignals& take_run_signals();

}  // namespace penstock::cli
