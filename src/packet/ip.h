// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// IPv4 (RFC 791) and IPv6 (RFC 8200) headers in their wire format.

#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "base/host_device.h"
#include "base/ip_address.h"

namespace penstock {

/// IP protocol numbers (IANA), which are also IPv6's next-header values.
namespace ip_protocol {
inline constexpr std::uint8_t kHopByHop = 0, kIcmp = 1, kIgmp = 2, kIpv4 = 4, kTcp = 6, kUdp = 17, kIpv6 = 41,
                              kRouting = 43, kFragment = 44, kGre = 47, kEsp = 50, kAh = 51, kIcmpv6 = 58, kNone = 59,
                              kDestinationOptions = 60, kSctp = 132, kMobility = 135, kUdpLite = 136, kHip = 139,
                              kShim6 = 140;
}

/// Whether the protocol's header begins with the source and the destination port, two bytes each.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool begins_with_ports(std::uint8_t protocol) noexcept {
  return protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp ||
         protocol == ip_protocol::kUdpLite;
}

/*   0                   1                   2                   3
 *  +-------+-------+---------------+-------------------------------+
 *  |Version|  IHL  |      TOS      |          Total length         |
 *  +-------+-------+---------------+-----+-------------------------+
 *  |        Identification         |Flags|     Fragment offset     |
 *  +---------------+---------------+-----+-------------------------+
 *  |      TTL      |   Protocol    |        Header checksum        |
 *  +---------------+---------------+-------------------------------+
 *  |                         Source address                        |
 *  |                      Destination address                      |
 *  +---------------------------------------------------------------+  */
struct Ipv4Header {
  std::uint8_t version_ihl;
  std::uint8_t tos;
  Be16 total_length;  // header and payload, in bytes
  Be16 id;
  Be16 fragment;  // 3 flags, 13-bit offset in units of 8 bytes
  std::uint8_t ttl;
  std::uint8_t protocol;
  Be16 checksum;
  Be32 source;
  Be32 destination;

  static constexpr std::uint16_t kDontFragment = 0x4000, kMoreFragments = 0x2000, kOffsetMask = 0x1fff;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr unsigned version() const noexcept { return version_ihl >> 4; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr unsigned header_length() const noexcept {
    return (version_ihl & 15U) * 4;
  }
};
static_assert(sizeof(Ipv4Header) == 20);

struct Ipv6Header {
  Be32 version_class_label;  // 4, 8 and 20 bits
  Be16 payload_length;       // bytes after this header; 0 with a jumbo payload option
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  Be64 source[2];
  Be64 destination[2];

  [[nodiscard]] PENSTOCK_HOST_DEVICE Ipv6Address source_address() const noexcept {
    return {source[0].value(), source[1].value()};
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE Ipv6Address destination_address() const noexcept {
    return {destination[0].value(), destination[1].value()};
  }
};
static_assert(sizeof(Ipv6Header) == 40);

/// The first two bytes of hop-by-hop, routing and destination options. The header has (length + 1) * 8 bytes.
struct Ipv6Extension {
  std::uint8_t next_header;
  std::uint8_t length;
};

struct Ipv6FragmentHeader {
  std::uint8_t next_header;
  std::uint8_t reserved;
  Be16 fragment;  // 13-bit offset in units of 8 bytes, 2 reserved, 1 "more fragments"
  Be32 id;

  static constexpr std::uint16_t kMoreFragments = 1, kOffsetMask = 0xfff8;
};
static_assert(sizeof(Ipv6FragmentHeader) == 8);

}  // namespace penstock
