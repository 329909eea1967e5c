// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/kernel/batch_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "packet/field_range.h"

namespace penstock::kernel {

namespace {

// The ABI's numbers are the program's, so that layouts are copied as they are.
static_assert(PENSTOCK_NETWORK_HEADER == PacketLayout::kNetworkHeader && PENSTOCK_PORTS == PacketLayout::kPorts &&
              PENSTOCK_TRANSPORT_HEADER == PacketLayout::kTransportHeader &&
              PENSTOCK_FRAGMENT == PacketLayout::kFragment && PENSTOCK_LATER_FRAGMENT == PacketLayout::kLaterFragment &&
              PENSTOCK_MALFORMED == PacketLayout::kMalformed && PENSTOCK_TRUNCATED == PacketLayout::kTruncated &&
              PENSTOCK_OPTIONS == PacketLayout::kOptions &&
              PENSTOCK_MALFORMED_TRANSPORT == PacketLayout::kMalformedTransport);
static_assert(PENSTOCK_IPV4 == static_cast<unsigned>(NetworkLayer::ipv4) &&
              PENSTOCK_IPV6 == static_cast<unsigned>(NetworkLayer::ipv6) &&
              PENSTOCK_ARP == static_cast<unsigned>(NetworkLayer::arp) &&
              PENSTOCK_OTHER_NETWORK == static_cast<unsigned>(NetworkLayer::other) &&
              PENSTOCK_NO_NETWORK == static_cast<unsigned>(NetworkLayer::none));
static_assert(PENSTOCK_ETHERNET == static_cast<unsigned>(LinkType::ethernet) && PENSTOCK_NO_PORT == kNoPort);
/// Those that a layout may have, and a kernel knows.
constexpr std::uint16_t kFlags = 2 * PENSTOCK_PORTS - 1;

std::uint32_t available_of(const PacketDescriptor& packet, const Access& access) noexcept {
  const std::uint32_t headers = std::max({packet.layout.network_offset, packet.layout.payload_offset});
  const std::uint32_t seen = access.sees_payload ? packet.length : std::min(headers, packet.length);
  return std::min<std::uint32_t>(seen, kMostFrameBytes);
}

/// What a frame takes of the room.
std::size_t aligned(std::uint32_t available) noexcept {
  return (available + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

penstock_packet packed(const PacketDescriptor& packet, std::size_t offset, std::uint32_t available) noexcept {
  const PacketLayout& layout = packet.layout;
  penstock_packet to{};
  to.timestamp_ns = packet.timestamp_ns;
  to.offset = static_cast<std::uint32_t>(offset);
  to.available = available;
  to.length = packet.length;
  to.wire_length = packet.wire_length;
  to.flow_hash = packet.flow_hash;
  to.mark = packet.mark;
  to.end = layout.end;
  to.network_offset = layout.network_offset;
  to.transport_offset = layout.transport_offset;
  to.payload_offset = layout.payload_offset;
  to.vlan_tci = layout.vlan_tci;
  to.flags = layout.flags & kFlags;
  to.in_port = packet.in_port;
  to.out_port = packet.verdict.value;
  to.network = static_cast<std::uint8_t>(layout.network);
  to.transport = layout.transport;
  to.vlan_count = layout.vlan_count;
  to.link_type = static_cast<std::uint8_t>(packet.link_type);
  return to;
}

}  // namespace

Packed pack(std::span<const PacketView> packets, const Access& access, const Launcher::Room& room) noexcept {
  Packed result;
  for (const PacketView& view : packets.first(std::min(packets.size(), room.packets.size()))) {
    const std::uint32_t available = available_of(*view.packet, access);
    if (available > room.frames.size() - result.frames_bytes) break;
    if (available > 0) std::memcpy(room.frames.data() + result.frames_bytes, view.frame, available);
    room.packets[result.packets++] = packed(*view.packet, result.frames_bytes, available);
    result.frames_bytes += aligned(available);
  }
  return result;
}

std::string check_verdicts(std::span<const penstock_verdict> verdicts, const Access& access) {
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const penstock_verdict& verdict = verdicts[i];
    switch (verdict.decision) {
      case PENSTOCK_PASS: break;
      case PENSTOCK_DROP:
        if (verdict.reason >= access.reasons)
          return fmt::format("the kernel drops packet {} of {} for reason {}, and `drops` has {}", i, verdicts.size(),
                             verdict.reason, access.reasons);
        break;
      case PENSTOCK_UNDECIDED:
        return fmt::format("the kernel has not decided about packet {} of {}", i, verdicts.size());
      default:
        return fmt::format(
            "the kernel has a wrong decision about packet {} of {}: found {}, expected {} (pass) or {} (drop)", i,
            verdicts.size(), verdict.decision, PENSTOCK_PASS, PENSTOCK_DROP);
    }
  }
  return {};
}

void take_results(std::span<const PacketView> packets, const Access& access, std::span<const penstock_verdict> verdicts,
                  const Launcher::Room& room) noexcept {
  std::size_t next = 0;  // where the next frame is
  for (std::size_t i = 0; i < packets.size(); ++i) {
    PacketDescriptor& packet = *packets[i].packet;
    const penstock_verdict& verdict = verdicts[i];
    const std::uint32_t available = available_of(packet, access);
    const std::size_t offset = std::exchange(next, next + aligned(available));
    if (verdict.decision == PENSTOCK_DROP) {
      packet.verdict = Verdict::drop(verdict.reason);
      continue;
    }
    if (access.writes_mark) packet.mark = verdict.mark;
    for (const Field field : access.writes) {
      const FieldRange range = field_range(field, packet.layout, packet.link_type, packet.length);
      if (range.length == 0 || range.offset >= available) continue;
      const std::uint32_t length = std::min(range.length, available - range.offset);
      std::memcpy(packets[i].frame + range.offset, room.frames.data() + offset + range.offset, length);
    }
  }
}

}  // namespace penstock::kernel
