// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/arrivals.h"

#include <algorithm>
#include <cstring>

namespace penstock::function {

Arrivals::Arrivals()
    : kept_(std::make_unique_for_overwrite<std::array<Kept, kBurst>>()),
      frame_(std::make_unique_for_overwrite<std::uint8_t[]>(kMostFrame)) {}

void Arrivals::begin(std::span<const PacketView> burst) noexcept {
  count_ = burst.size();
  for (std::size_t i = 0; i < burst.size(); ++i) {
    Kept& kept = (*kept_)[i];
    kept.packet = burst[i].packet;
    kept.frame = burst[i].frame;
    kept.descriptor = *burst[i].packet;
    std::memcpy(kept.bytes.data(), burst[i].frame, std::min<std::size_t>(kKept, burst[i].length()));
  }
}

std::optional<PacketView> Arrivals::of(PacketView packet) noexcept {
  const auto known = std::span(*kept_).first(count_);
  const auto kept = std::ranges::find(known, packet.packet, &Kept::packet);
  if (kept == known.end()) return std::nullopt;
  const PacketDescriptor& before = kept->descriptor;
  const bool is_the_same = kept->frame == packet.frame && before.length == packet.length() &&
                           before.layout.network == packet.layout().network &&
                           before.layout.network_offset == packet.layout().network_offset &&
                           before.layout.transport == packet.layout().transport &&
                           before.layout.transport_offset == packet.layout().transport_offset;
  if (!is_the_same || before.length > kMostFrame) return std::nullopt;
  const std::size_t known_bytes = std::min<std::size_t>(kKept, before.length);
  std::memcpy(frame_.get(), kept->bytes.data(), known_bytes);
  std::memcpy(frame_.get() + known_bytes, packet.frame + known_bytes, before.length - known_bytes);
  descriptor_ = before;
  return PacketView{frame_.get(), &descriptor_};
}

}  // namespace penstock::function
