// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Signals: the end that a user, timeout(1) or a terminal that goes away asks a long command for, and what a run does
// while it goes on.

#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::cli {

/// What SIGHUP asks for.
enum class HangUp : std::uint8_t {
  stops,    // the end, as a terminal that goes away does
  reopens,  // that logs are reopened: see RunSignals
};

/// From here on SIGINT, SIGTERM and a SIGHUP that stops set what is returned, once; a second one ends the program at
/// once. A reader that goes away (`| head`) ends nothing.
[[nodiscard]] const std::atomic<bool>& stop_on_signals(HangUp hang_up = HangUp::stops);

/// What is left to do may wait for a reader for ever, and must be stopped by one signal too.
void nothing_left_to_stop() noexcept;

/// What signals have asked a run for.
struct RunSignals {
  std::atomic<bool> reopen_logs{false};  // SIGHUP
  std::atomic<bool> report{false};       // SIGUSR1
  std::atomic<bool> reload{false};       // SIGUSR2
};

/// From here on these signals set what is returned, and end nothing.
[[nodiscard]] RunSignals& take_run_signals();

}  // namespace penstock::cli
