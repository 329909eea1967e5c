// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// When to collect launches into a graph (launch_graph.h) although the driver has refused that before: it may have been
// short of memory for a while.

#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::gpu {

/// After a refusal it pauses for some batches, after the next one for twice as many, and so on; a graph that is
/// launched ends that.
class Collecting {
 public:
  static constexpr std::uint32_t kFirstPause = 64;
  static constexpr std::uint32_t kLongestPause = 1 << 16;

  /// Whether the next batch's launches are to be collected. Asked once for each.
  [[nodiscard]] bool try_next() noexcept {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  void refused() noexcept {
    left_ = next_pause_;
    next_pause_ = std::min(next_pause_ * 2, kLongestPause);
  }
  void launched() noexcept { next_pause_ = kFirstPause; }

 private:
  std::uint32_t left_ = 0;  // of the pause, in batches
  std::uint32_t next_pause_ = kFirstPause;
};

}  // namespace penstock::gpu
