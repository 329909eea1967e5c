// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bursts: parts of a batch that are worked on at once on the CPU, because they stay in the first-level cache.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "packet/batch.h"
#include "packet/packet.h"

namespace penstock::function {

/// Packets of a burst, at most.
inline constexpr std::size_t kBurst = 128;

/// Bytes of their frames.
[[nodiscard]] inline std::uint64_t frame_bytes(std::span<const PacketView> packets) noexcept {
  std::uint64_t bytes = 0;
  for (const PacketView& packet : packets) bytes += packet.length();
  return bytes;
}

/// Calls `use` for each burst of the batch with the views, by `view_of` the packet's number, of those of its packets
/// that are forwarded; not where there are none.
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
