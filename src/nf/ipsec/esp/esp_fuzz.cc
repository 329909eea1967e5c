// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes, used three ways: inbound, as a frame that may be ESP; inbound, as the text inside a correctly sealed
// packet; and outbound, as a frame that must survive a round trip. Frames are in memory of exactly their size plus
// headroom and tailroom, so that any access out of bounds is detected.
//
// Input: two bytes that choose the SA, the link type, the number of bytes that the capture cut off; then the frame or
// the text.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "nf/ipsec/esp/packets_for_test.h"

using namespace penstock;
using namespace penstock::ipsec;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

SaView sa_of(std::uint8_t what, std::uint8_t flags, NetworkLayer inner) {
  constexpr std::uint8_t kCiphers[][2] = {{0, 4}, {16, 16}, {8, 4}, {8, 16}};
  constexpr std::uint8_t kIcvs[] = {0, 12, 16, 64};
  SaView sa = (what & 2) != 0 ? ipv6_tunnel() : ipv4_tunnel();
  sa.tunnel = (what & 1) == 0;
  if (!sa.tunnel) sa.outer = inner;
  if ((what & 4) != 0) sa = in_udp(sa);
  sa.iv_bytes = kCiphers[what >> 3 & 3][0];
  sa.block_bytes = kCiphers[what >> 3 & 3][1];
  sa.icv_bytes = kIcvs[what >> 5 & 3];
  sa.no_ecn = (flags & 1) != 0;
  sa.decap_dscp = (flags & 2) != 0;
  sa.dont_encap_dscp = (flags & 4) != 0;
  sa.no_pmtu_discovery = (flags & 8) != 0;
  sa.tfc_bytes = (flags >> 4) * 100U;
  return sa;
}

/// The frame is within its memory and matches its declared length.
void check_bounds(RoomyFrame& frame, std::uint32_t memory_bytes) {
  const auto begin = static_cast<std::size_t>(frame.view.frame - frame.base());
  require(begin == frame.view.packet->offset && begin + frame.view.length() <= memory_bytes);
  require(frame.view.layout().end <= frame.view.length());
}

void come_in(RoomyFrame frame, const SaView& sa) {
  const Bytes before = frame.bytes();
  const std::uint32_t memory_bytes = frame.view.packet->offset + frame.view.length();
  if (decapsulate(frame, sa) != Reason::none) {
    require(frame.view.length() == before.size());
    return;
  }
  check_bounds(frame, memory_bytes);
  require(frame.view.length() < before.size());
}

void go_out_and_come_back(RoomyFrame frame, SaView sa) {
  // Both ends must agree on these.
  if (sa.decap_dscp) sa.dont_encap_dscp = false;
  const Bytes before = frame.bytes();
  const std::uint32_t memory_bytes = frame.room().head + static_cast<std::uint32_t>(before.size()) + frame.room().tail;
  const PacketLayout layout = frame.view.layout();
  const bool no_checksum = layout.has(PacketLayout::kNetworkHeader) && layout.network == NetworkLayer::ipv4 &&
                           frame.view.ipv4().checksum.value() == 0xffff;
  if (encapsulate(frame, sa, 0x8000'0000) != Reason::none) {
    require(frame.bytes() == before);
    return;
  }
  check_bounds(frame, memory_bytes);
  require(frame.view.layout().end == frame.view.length());
  require(decapsulate(frame, sa) == Reason::none);
  check_bounds(frame, memory_bytes);
  require(frame.view.length() == layout.end);
  // In transport mode, UDP encapsulation recomputes the inner checksum, and IPv4's is updated incrementally: 0xffff,
  // which no header contains, becomes 0, the other representation of zero.
  if (sa.tunnel || (!sa.udp && !no_checksum))
    require(std::equal(before.begin(), before.begin() + layout.end, frame.bytes().begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 4;
  if (size < kHead) return 0;
  const Bytes bytes(data + kHead, data + size);
  const auto link = static_cast<LinkType>(data[2] % 8);
  const auto wire_length = static_cast<std::uint32_t>(bytes.size()) + data[3] % 8;

  const RoomyFrame looked_at(bytes, {0, 0}, link, wire_length);
  const SaView sa = sa_of(data[0], data[1], looked_at.view.layout().network);
  come_in(RoomyFrame(bytes, {0, 0}, link, wire_length), sa);
  go_out_and_come_back(RoomyFrame(bytes, growth_of(sa), link, wire_length), sa);

  // As the text of a correctly sealed packet.
  penstock::testing::PacketBuilder outer = penstock::testing::packet().eth();
  SaView carrier = sa_of(data[0], data[1], (data[0] & 2) != 0 ? NetworkLayer::ipv6 : NetworkLayer::ipv4);
  if (carrier.outer == NetworkLayer::ipv4) {
    outer.ipv4("192.0.2.1", "198.51.100.2");
  } else {
    outer.ipv6("2001:db8::1", "2001:db8::2");
  }
  if (carrier.udp) {
    outer.udp(4500, 4500);
  } else {
    outer.protocol(ip_protocol::kEsp);
  }
  Bytes esp{0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1};
  esp.resize(esp.size() + carrier.iv_bytes);
  esp.insert(esp.end(), bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(bytes.size() % carrier.block_bytes));
  esp.resize(esp.size() + carrier.icv_bytes);
  come_in(RoomyFrame(outer.raw(esp).bytes(), {0, 0}), carrier);
  return 0;
}
