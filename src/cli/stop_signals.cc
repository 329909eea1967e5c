// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/stop_signals.h"

#include <chrono>
#include <csignal>

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> stop_asked{false};
std::atomic<Clock::rep> stop_asked_at{0};  // ticks
std::atomic<bool> run_is_over{false};
RunSignals run_signals;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<Clock::rep>::is_always_lock_free);

/// Stops the run. If it has been stopped already, or there is nothing left to stop, ends the program immediately.
void ask_to_stop(int signal) {
  // timeout(1) sends its signal twice: to the process, and to its process group.
  constexpr auto kSameSignal = std::chrono::milliseconds{300};
  const Clock::duration now = Clock::now().time_since_epoch();
  if (stop_asked.exchange(true)) {
    if (now - Clock::duration(stop_asked_at.load()) < kSameSignal) return;
  } else {
    stop_asked_at.store(now.count());
    if (!run_is_over.load()) return;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void note(int signal) {
  if (signal == SIGHUP) run_signals.reopen_logs.store(true);
  if (signal == SIGUSR1) run_signals.report.store(true);
  if (signal == SIGUSR2) run_signals.reload.store(true);
}

/// Keeps SIGHUP ignored if nohup(1) has set it so.
void take_hang_up(void (*handler)(int)) {
  if (std::signal(SIGHUP, handler) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

}  // namespace

const std::atomic<bool>& stop_on_signals(HangUp hang_up) {
  // SIGPIPE (`| head`) ends other commands silently, but a run must still write its report.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  if (hang_up == HangUp::stops) take_hang_up(ask_to_stop);
  if (hang_up == HangUp::ignored) std::signal(SIGHUP, SIG_IGN);
  return stop_asked;
}

RunSignals& take_run_signals() {
  take_hang_up(note);
  std::signal(SIGUSR1, note);
  std::signal(SIGUSR2, note);
  return run_signals;
}

void stop_as_by_signal() noexcept {
  if (!stop_asked.exchange(true)) stop_asked_at.store(Clock::now().time_since_epoch().count());
}

void nothing_left_to_stop() noexcept { run_is_over.store(true); }

SignalsEndProgram::SignalsEndProgram() noexcept
    : interrupt_(std::signal(SIGINT, SIG_DFL)), terminate_(std::signal(SIGTERM, SIG_DFL)) {}

SignalsEndProgram::~SignalsEndProgram() {
  std::signal(SIGINT, interrupt_);
  std::signal(SIGTERM, terminate_);
}

}  // namespace penstock::cli
