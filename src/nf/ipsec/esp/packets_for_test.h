// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames with room around them and nothing beyond, for tests of code that moves frame bounds; and SAs without keys.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "nf/ipsec/esp/decapsulate_core.h"
#include "nf/ipsec/esp/encapsulate_core.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::ipsec {

using penstock::testing::Bytes;

/// A frame in memory of exactly its size and room, so that the address sanitizer detects any access beyond.
class RoomyFrame {
 public:
  explicit RoomyFrame(const Bytes& frame, FrameRoom room = {72, 64}, LinkType link = LinkType::ethernet,
                      std::uint32_t wire_length = 0)
      : memory_(std::make_unique<std::uint8_t[]>(room.head + frame.size() + room.tail)), room_(room) {
    std::copy(frame.begin(), frame.end(), memory_.get() + room.head);
    descriptor_.offset = room.head;
    descriptor_.length = static_cast<std::uint32_t>(frame.size());
    descriptor_.wire_length = std::max(wire_length, descriptor_.length);
    descriptor_.link_type = link;
    view = {memory_.get() + room.head, &descriptor_};
    parse(view);
  }
  [[nodiscard]] Bytes bytes() const { return {view.frame, view.frame + view.length()}; }
  [[nodiscard]] const FrameRoom& room() const { return room_; }
  [[nodiscard]] std::uint8_t* base() { return memory_.get(); }

  PacketView view{};

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  PacketDescriptor descriptor_;
  FrameRoom room_;
};

inline constexpr std::uint32_t kTestSpi = 0x12345678;

/// A tunnel from 192.0.2.1 to 198.51.100.2, with the lengths of AES-CBC and HMAC-SHA1-96.
inline SaView ipv4_tunnel() {
  SaView sa;
  sa.source = {0, 0xc0000201};
  sa.destination = {0, 0xc6336402};
  sa.spi = kTestSpi;
  sa.iv_bytes = 16;
  sa.block_bytes = 16;
  sa.icv_bytes = 12;
  return sa;
}

/// The same tunnel from 2001:db8::1 to 2001:db8::2.
inline SaView ipv6_tunnel() {
  SaView sa = ipv4_tunnel();
  sa.outer = NetworkLayer::ipv6;
  sa.source = {0x20010db8'00000000, 1};
  sa.destination = {0x20010db8'00000000, 2};
  return sa;
}

/// Transport mode, with the lengths of AES-GCM.
inline SaView transport(NetworkLayer family) {
  SaView sa = family == NetworkLayer::ipv4 ? ipv4_tunnel() : ipv6_tunnel();
  sa.tunnel = false;
  sa.iv_bytes = 8;
  sa.block_bytes = 4;
  sa.icv_bytes = 16;
  return sa;
}

inline SaView in_udp(SaView sa) {
  sa.udp = true;
  sa.udp_source_port = sa.udp_destination_port = NatTraversalPorts::kWellKnown;
  return sa;
}

/// Encapsulates without a cipher: IV and ICV keep whatever bytes were there.
inline Reason encapsulate(RoomyFrame& frame, const SaView& sa, std::uint64_t sequence = 1) {
  const Encapsulation plan = plan_encapsulation(frame.view, sa, frame.room());
  if (plan.reason != Reason::none) return plan.reason;
  const CryptoJob job = encapsulate(frame.view, sa, 0, plan, sequence);
  if (needs_udp_checksum(sa)) write_udp_checksum(frame.view, job);
  parse(frame.view);
  return Reason::none;
}

/// Decapsulates, likewise without a cipher.
inline Reason decapsulate(RoomyFrame& frame, const SaView& sa) {
  const EspPacket packet = find_esp(frame.view, {});
  if (packet.kind == EspPacket::Kind::refused) return packet.reason;
  if (packet.kind == EspPacket::Kind::fragment) return Reason::fragment;
  if (packet.kind == EspPacket::Kind::none) return Reason::wrong_spi;
  const Opening opening = plan_decapsulation(frame.view, packet, sa, 0, packet.sequence);
  if (opening.reason != Reason::none) return opening.reason;
  const Reason reason = decapsulate(frame.view, sa, packet, opening.job);
  if (reason == Reason::none) parse(frame.view);
  return reason;
}

}  // namespace penstock::ipsec
