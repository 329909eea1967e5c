// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Formats addresses, protocols and similar values as Suricata's logs do.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ip_address.h"
#include "packet/link_type.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// "192.0.2.1"; an IPv6 address as eight groups of four digits, as Suricata writes it.
void append_address(std::string& out, const Ipv6Address& address, std::uint8_t ip_version);

/// "TCP", "IPv6-ICMP": IANA's keyword for the IP protocol; empty if it has none.
[[nodiscard]] std::string_view protocol_name(std::uint8_t protocol) noexcept;
/// Whether logs show ports for this protocol: TCP, UDP and SCTP.
[[nodiscard]] bool has_logged_ports(std::uint8_t protocol) noexcept;

/// A link type by libpcap's number and name.
struct LinkName {
  std::uint16_t dlt;
  std::string_view name;
};
[[nodiscard]] LinkName link_name(LinkType type) noexcept;

/// Where a packet came from: "wire/pcap", "gre tunnel", "defrag", "stream (flow timeout)".
[[nodiscard]] std::string_view packet_source(const stack::TrackedPacket& tracked) noexcept;

/// The outermost packet of a frame, which carries the others in tunnels.
struct OuterPacket {
  std::uint8_t ip_version = 0;  // 0: not IP
  std::uint8_t protocol = 0;
  stack::Endpoint source, destination;
};
[[nodiscard]] OuterPacket outer_packet(const stack::DecodedPacket& packet) noexcept;

}  // namespace penstock::nids
