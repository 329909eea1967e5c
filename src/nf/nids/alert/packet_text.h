// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses, protocols and the like as Suricata's logs name them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ip_address.h"
#include "packet/link_type.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// "192.0.2.1"; of version 6 all eight groups of four digits, as Suricata writes them.
void append_address(std::string& out, const Ipv6Address& address, std::uint8_t ip_version);

/// "TCP", "IPv6-ICMP": IANA's keyword of the IP protocol; empty where it has none.
[[nodiscard]] std::string_view protocol_name(std::uint8_t protocol) noexcept;
/// Whether its packets have ports in logs: of TCP, UDP and SCTP.
[[nodiscard]] bool has_logged_ports(std::uint8_t protocol) noexcept;

/// A link layer as libpcap numbers and names it.
struct LinkName {
  std::uint16_t dlt;
  std::string_view name;
};
[[nodiscard]] LinkName link_name(LinkType type) noexcept;

/// Where a packet came from: "wire/pcap", "gre tunnel", "defrag", "stream (flow timeout)".
[[nodiscard]] std::string_view packet_source(const stack::TrackedPacket& tracked) noexcept;

/// The frame's own packet, in which a tunnel carried others.
struct OuterPacket {
  std::uint8_t ip_version = 0;  // 0: it is none of IP
  std::uint8_t protocol = 0;
  stack::Endpoint source, destination;
};
[[nodiscard]] OuterPacket outer_packet(const stack::DecodedPacket& packet) noexcept;

}  // namespace penstock::nids
