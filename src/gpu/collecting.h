// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides when to try again to collect launches into a graph (launch_graph.h) after the driver has refused it, since it
// may only have been short of memory for a while.

#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::gpu {

/// After a refusal, pauses for some batches. The pause doubles with each further refusal, until a graph is launched.
class Collecting {
 public:
  static constexpr std::uint32_t kFirstPause = 64;
  static constexpr std::uint32_t kLongestPause = 1 << 16;

  /// Whether to collect the launches of the next batch. Call it once for each batch.
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
  std::uint32_t left_ = 0;  // batches left of the pause
  std::uint32_t next_pause_ = kFirstPause;
};

}  // namespace penstock::gpu
