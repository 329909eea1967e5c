// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/replace_payload.h"

#include <cstring>

#include "packet/checksum.h"

namespace penstock::conntrack {

bool replace_payload(PacketView packet, std::uint32_t offset, std::uint32_t length, Bytes with) noexcept {
  constexpr std::uint32_t kMost = 0xffff;
  PacketLayout& layout = packet.packet->layout;
  const auto new_length = static_cast<std::uint32_t>(with.size());
  const std::uint32_t at = layout.payload_offset + offset, after = at + length, end = layout.end;
  const std::uint32_t new_end = end - length + new_length;
  const bool v4 = layout.network == NetworkLayer::ipv4;
  const std::uint32_t ip_length = new_end - layout.network_offset - (v4 ? 0 : std::uint32_t{sizeof(Ipv6Header)});
  if (ip_length > kMost) return false;

  // What follows moves, to odd places perhaps. The header's length is a multiple of four.
  const std::uint32_t payload = end - layout.payload_offset, new_payload = new_end - layout.payload_offset;
  std::uint8_t* const first = packet.frame + layout.payload_offset;
  const std::uint16_t removed = checksum_finish(checksum_add(first, payload));
  std::memmove(packet.frame + at + new_length, packet.frame + after, end - after);
  if (new_length != 0) std::memcpy(packet.frame + at, with.data(), new_length);
  const std::uint16_t added = static_cast<std::uint16_t>(~checksum_finish(checksum_add(first, new_payload)));
  TcpHeader& tcp = packet.tcp();
  // The pseudo-header has the length too.
  const std::uint32_t old_segment = end - layout.transport_offset, new_segment = new_end - layout.transport_offset;
  tcp.checksum.set(checksum_finish(static_cast<std::uint16_t>(~tcp.checksum.value()) + std::uint32_t{removed} + added +
                                   static_cast<std::uint16_t>(~old_segment) + (new_segment & kMost)));
  if (v4) {
    Ipv4Header& ip = packet.ipv4();
    ip.checksum.set(
        checksum_update(ip.checksum.value(), ip.total_length.value(), static_cast<std::uint16_t>(ip_length)));
    ip.total_length.set(static_cast<std::uint16_t>(ip_length));
  } else {
    packet.ipv6().payload_length.set(static_cast<std::uint16_t>(ip_length));
  }
  PacketDescriptor& descriptor = *packet.packet;
  descriptor.wire_length = descriptor.length = layout.end = new_end;
  return true;
}

}  // namespace penstock::conntrack
