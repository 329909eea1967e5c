// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/segment_size.h"

#include "base/byte_order.h"
#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::firewall {

namespace {

bool is_tcp(PacketView packet) noexcept {
  return packet.layout().has(PacketLayout::kTransportHeader) && packet.layout().transport == ip_protocol::kTcp;
}

/// The offset of the option's value in the TCP header; 0 if there is none.
std::uint32_t find_value(PacketView packet) noexcept {
  // As Linux, which goes on after the end of options, and takes a length of 0 for 1.
  constexpr std::uint8_t kNothing = 1, kSegmentSize = 2;
  const std::uint8_t* const header = packet.frame + packet.layout().transport_offset;
  const std::uint32_t end = packet.layout().payload_offset - packet.layout().transport_offset;
  for (std::uint32_t at = sizeof(TcpHeader); at + 1 < end;) {
    if (header[at] == kSegmentSize && header[at + 1] == 4 && at + 4 <= end) return at + 2;
    at += header[at] <= kNothing || header[at + 1] == 0 ? 1 : header[at + 1];
  }
  return 0;
}

}  // namespace

std::optional<std::uint16_t> segment_size_of(PacketView packet) noexcept {
  const std::uint32_t at = is_tcp(packet) ? find_value(packet) : 0;
  if (at == 0) return std::nullopt;
  return packet.at<Be16>(packet.layout().transport_offset + at).value();
}

bool lower_segment_size(PacketView packet, std::uint16_t most) noexcept {
  if (!is_tcp(packet)) return false;
  const std::uint32_t at = find_value(packet);
  if (at == 0) return true;
  auto& value = packet.at<Be16>(packet.layout().transport_offset + at);
  const std::uint16_t before = value.value();
  if (before <= most) return true;
  value.set(most);
  TcpHeader& tcp = packet.tcp();
  // At an odd offset, the value's bytes are in different words of the sum.
  const auto word = [&](std::uint16_t number) {
    return at % 2 == 0 ? number : static_cast<std::uint16_t>(number << 8 | number >> 8);
  };
  tcp.checksum.set(checksum_update(tcp.checksum.value(), word(before), word(most)));
  return true;
}

}  // namespace penstock::firewall
