// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules are matched against: the fields of a packet that conditions test, in a form that is fast to compare. Made
// from a packet, or from a tuple that a user typed.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "classify/connection.h"
#include "packet/packet.h"

namespace penstock::classify {

/// Kinds: protocol and detail in one number, used as an index of tables. Two groups follow the kinds with a detail:
/// those whose detail is missing (a later fragment, a truncated header: no condition on the detail holds), and those
/// that stand for any detail (a tuple without TCP flags: all conditions on the detail hold).
inline constexpr std::uint32_t kKindDetailBits = 16;
inline constexpr std::uint32_t kKindNoDetail = 256U << kKindDetailBits;
inline constexpr std::uint32_t kKindAnyDetail = kKindNoDetail + 256;
inline constexpr std::uint32_t kKindCount = kKindAnyDetail + 256;

/// a <= b, branch-free.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool not_after(const Ipv6Address& a, const Ipv6Address& b) noexcept {
  return (a.high < b.high) | ((a.high == b.high) & (a.low <= b.low));
}

/// The port value of packets without ports.
inline constexpr std::uint32_t kNoTransportPort = 0x10000;

struct Key {
  Ipv6Address source;  // IPv4: in the low 32 bits
  Ipv6Address destination;
  std::uint32_t source_port = kNoTransportPort;
  std::uint32_t destination_port = kNoTransportPort;
  /// protocol << 16 | detail: the TCP flags byte, or ICMP's type << 8 | code, or 0; or protocol + kKindNoDetail, or
  /// protocol + kKindAnyDetail.
  std::uint32_t kind = kKindNoDetail;
  PortIndex in_port = kNoPort;
  PortIndex out_port = kNoPort;
  NetworkLayer family = NetworkLayer::none;  // ipv4 or ipv6
  bool later_fragment = false;
  /// As `number_of` makes it. A packet that begins a connection, where connections are not tracked.
  std::uint8_t connection = number_of(Connection{});

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool has_detail() const noexcept { return kind < kKindNoDetail; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_any_detail() const noexcept { return kind >= kKindAnyDetail; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t protocol() const noexcept {
    return has_detail() ? kind >> kKindDetailBits : kind & 0xff;
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t detail() const noexcept { return kind & 0xffff; }
};

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t kind_of(PacketView view) noexcept {
  const PacketLayout& layout = view.layout();
  const std::uint32_t protocol = layout.transport;
  if (!layout.has(PacketLayout::kTransportHeader)) return kKindNoDetail + protocol;
  std::uint32_t detail = 0;
  if (protocol == ip_protocol::kTcp) {
    detail = view.tcp().flags;
  } else if (protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmpv6) {
    detail = static_cast<std::uint32_t>(view.icmp().type) << 8 | view.icmp().code;
  }
  return protocol << kKindDetailBits | detail;
}

/// Only for packets whose layout has an IPv4 or IPv6 header (kNetworkHeader). `connection`: as Key::connection. Fills
/// all of `key` in place: a key that is returned and copied would be read back before its parts are stored.
PENSTOCK_HOST_DEVICE inline void make_key(PacketView view, Key& key,
                                          std::uint8_t connection = number_of(Connection{})) noexcept {
  const PacketLayout& layout = view.layout();
  key.family = layout.network;
  if (layout.network == NetworkLayer::ipv4) {
    key.source = {0, view.ipv4().source.value()};
    key.destination = {0, view.ipv4().destination.value()};
  } else {
    key.source = view.ipv6().source_address();
    key.destination = view.ipv6().destination_address();
  }
  const bool has_ports = view.has_ports();
  key.source_port = has_ports ? view.udp().source_port.value() : kNoTransportPort;
  key.destination_port = has_ports ? view.udp().destination_port.value() : kNoTransportPort;
  key.kind = kind_of(view);
  key.in_port = view.packet->in_port;
  key.out_port = view.packet->verdict.value;
  key.later_fragment = layout.has(PacketLayout::kLaterFragment);
  key.connection = connection;
}

}  // namespace penstock::classify
