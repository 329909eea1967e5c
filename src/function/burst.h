// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A burst is a part of a batch that is processed at once on the CPU, because it fits in the L1 cache.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "packet/batch.h"
#include "packet/packet.h"

namespace penstock::function {

/// The most packets of a burst.
inline constexpr std::size_t kBurst = 128;

/// The total length of the packets' frames.
[[nodiscard]] inline std::uint64_t frame_bytes(std::span<const PacketView> packets) noexcept {
  std::uint64_t bytes = 0;
  for (const PacketView& packet : packets) bytes += packet.length();
  return bytes;
}

/// Calls `use` for each burst of the batch, with the views of its packets that are still forwarded. Skips bursts
/// without such packets. `view_of` returns the view of the packet at an index of the batch.
template <typename ViewOf, typename Use>
void for_each_burst(Batch& batch, ViewOf view_of, Use use) noexcept {
  std::array<PacketView, kBurst> views;
  const std::span<PacketDescriptor> packets = batch.packets();
  for (std::size_t first = 0; first < packets.size(); first += kBurst) {
    const std::size_t last = std::min(first + kBurst, packets.size());
    std::size_t count = 0;
    for (std::size_t i = first; i < last; ++i) {
      if (packets[i].verdict.alive()) views[count++] = view_of(i);
    }
    if (count > 0) use(std::span(views).first(count));
  }
}

}  // namespace penstock::function
