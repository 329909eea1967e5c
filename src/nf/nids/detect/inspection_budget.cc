// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/inspection_budget.h"

#include <ctime>

namespace penstock::nids {

namespace {

std::uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

const ThreadClock& system_clock() noexcept {
  static constexpr ThreadClock kClock{[]() noexcept { return now_ns(CLOCK_MONOTONIC); },
                                      []() noexcept { return now_ns(CLOCK_THREAD_CPUTIME_ID); }};
  return kClock;
}

bool TimeAllowance::look(const ThreadClock& clock, std::uint64_t elapsed_ns) noexcept {
  if (next_look_ns_ == 0) {
    next_look_ns_ = elapsed_ns + allowed_ns_ / 16 + 1;
    is_over_ = allowed_ns_ == 0;
    return is_over_;
  }
  const std::uint64_t used_ns = clock.used_ns();
  if (!is_counted_) from_ns_ = used_ns;
  is_counted_ = true;
  const std::uint64_t spent_ns = used_ns - from_ns_;
  is_over_ = spent_ns >= allowed_ns_;
  next_look_ns_ = elapsed_ns + (is_over_ ? 0 : allowed_ns_ - spent_ns);
  return is_over_;
}

}  // namespace penstock::nids
