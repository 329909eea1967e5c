// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "fuzz/cost_limits.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace penstock::fuzz {

namespace {

constinit std::atomic<std::int64_t> in_use{0};
constinit std::atomic<std::int64_t> most_in_use{std::numeric_limits<std::int64_t>::max()};
constinit std::atomic<const char*> current{""};

/// Does not allocate: it is called when memory may be exhausted, and from a signal handler.
void write_text(const char* text) noexcept { static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text))); }

[[noreturn]] void stop(const char* why) noexcept {
  most_in_use.store(std::numeric_limits<std::int64_t>::max());
  write_text(current.load());
  write_text(why);
  std::abort();
}

void on_time_over(int) { stop(": the input takes more CPU time than its limit\n"); }

}  // namespace

void count_allocation(std::int64_t bytes) noexcept {
  if (in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_in_use.load(std::memory_order_relaxed)) return;
  stop(": the input takes more memory than its limit\n");
}

void begin_input(const char* input, const CostLimits& limits) noexcept {
  static const bool counting = [] {
    std::signal(SIGPROF, &on_time_over);
    start_counting();
    return true;
  }();
  static_cast<void>(counting);
  current.store(input);
  most_in_use.store(in_use.load() + static_cast<std::int64_t>(limits.bytes));
  itimerval timer{};
  timer.it_value.tv_sec = limits.seconds;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace penstock::fuzz
