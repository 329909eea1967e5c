// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/arrivals.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace penstock::function {

Arrivals::Arrivals(std::size_t most_packets)
    : kept_(std::make_unique_for_overwrite<Kept[]>(most_packets)),
      frame_(std::make_unique_for_overwrite<std::uint8_t[]>(kMostFrame)) {}

void Arrivals::add(std::span<const PacketView> packets, Part part) noexcept {
  for (const PacketView packet : packets) {
    Kept& kept = kept_[count_++];
    kept.packet = packet.packet;
    kept.descriptor = *packet.packet;
    kept.part = part;
    std::memcpy(kept.bytes.data(), packet.frame, std::min<std::size_t>(kKept, packet.length()));
  }
}

const Arrivals::Kept* Arrivals::find(PacketView packet) const noexcept {
  const auto known = std::span(kept_.get(), count_);
  const auto kept = std::ranges::lower_bound(known, packet.packet, std::less<>(), &Kept::packet);
  return kept == known.end() || kept->packet != packet.packet ? nullptr : &*kept;
}

const EthernetHeader* Arrivals::link_header(PacketView packet) const noexcept {
  const Kept* const kept = find(packet);
  if (kept == nullptr || kept->descriptor.link_type != LinkType::ethernet ||
      kept->descriptor.length < sizeof(EthernetHeader))
    return nullptr;
  return reinterpret_cast<const EthernetHeader*>(kept->bytes.data());
}

std::optional<PacketView> Arrivals::of(PacketView packet) noexcept {
  const Kept* const kept = find(packet);
  if (kept == nullptr || kept->part != Part::all) return std::nullopt;
  const PacketDescriptor& before = kept->descriptor;
  const bool is_the_same = before.length == packet.length() && before.layout.network == packet.layout().network &&
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
