// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a tenant tells a proxy that hangs, or is stopped, from one that is busy.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace penstock::proxy {

/// Watches a number that changes as long as the other process goes on. Only the time for which this thread looks is
/// counted: if the whole machine is stopped for a while, or this thread, the other process is not to blame.
class Standstill {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{5};

  /// The other process is to go on from now on.
  void begin(Clock::time_point now) noexcept {
    stood_ = {};
    looked_at_ = now;
  }
  /// Whether the number has not changed for kLongest.
  [[nodiscard]] bool look(std::uint32_t number, Clock::time_point now) noexcept {
    constexpr Clock::duration kLongestLook = std::chrono::milliseconds{100};
    stood_ = number == number_ ? stood_ + std::min(now - looked_at_, kLongestLook) : Clock::duration{};
    number_ = number;
    looked_at_ = now;
    return stood_ >= kLongest;
  }

 private:
  std::uint32_t number_ = 0;
  Clock::duration stood_{};
  Clock::time_point looked_at_;
};

}  // namespace penstock::proxy
