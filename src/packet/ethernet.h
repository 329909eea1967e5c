// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Link-layer headers in their wire format: Ethernet, 802.1Q tags, ARP, and the pseudo headers of captures.

#pragma once

#include <cstdint>

#include "base/byte_order.h"

namespace penstock {

struct MacAddress {
  std::uint8_t bytes[6];
  friend constexpr bool operator==(const MacAddress&, const MacAddress&) = default;
};

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  Be16 type;
};
static_assert(sizeof(EthernetHeader) == 14);

/// IEEE 802.1Q; follows the type field of the Ethernet header or of the outer tag.
struct VlanTag {
  Be16 tci;  // priority, drop eligible, 12-bit VLAN identifier
  Be16 type;
};
static_assert(sizeof(VlanTag) == 4);

/// RFC 826, for IPv4 over Ethernet.
struct ArpHeader {
  Be16 hardware_type, protocol_type;
  std::uint8_t hardware_length, protocol_length;
  Be16 operation;
  MacAddress sender_mac;
  Be32 sender_ip;
  MacAddress target_mac;
  Be32 target_ip;
};
static_assert(sizeof(ArpHeader) == 28);

/// LINKTYPE_LINUX_SLL
struct LinuxSllHeader {
  Be16 packet_type, hardware_type, address_length;
  std::uint8_t address[8];
  Be16 protocol;
};
static_assert(sizeof(LinuxSllHeader) == 16);

/// LINKTYPE_LINUX_SLL2
struct LinuxSll2Header {
  Be16 protocol, reserved;
  Be32 interface_index;
  Be16 hardware_type;
  std::uint8_t packet_type, address_length;
  std::uint8_t address[8];
};
static_assert(sizeof(LinuxSll2Header) == 20);

namespace ether_type {
inline constexpr std::uint16_t kIpv4 = 0x0800, kArp = 0x0806, kVlan = 0x8100, kIpv6 = 0x86dd, kQinQ = 0x88a8,
                               kQinQLegacy = 0x9100, kMpls = 0x8847, kMplsMulticast = 0x8848, kPppoeDiscovery = 0x8863,
                               kPppoeSession = 0x8864, kIeee8021ah = 0x88e7, kDce = 0x8903, kVntag = 0x8926,
                               kEtag = 0x893f, kNsh = 0x894f;
/// IEEE 802.3: a smaller value is not an EtherType but the length of the payload, which begins with an LLC header.
inline constexpr std::uint16_t kLeast = 0x0600;
}  // namespace ether_type

/// IEEE 802.2 LLC with a SNAP header, RFC 1042.
struct SnapHeader {
  std::uint8_t dsap, ssap, control;
  std::uint8_t organization[3];
  Be16 type;  // defined by the organization

  /// Whether `type` is an EtherType: RFC 1042, and IEEE 802.1H for bridged frames.
  [[nodiscard]] constexpr bool names_ether_type() const noexcept {
    return dsap == 0xaa && ssap == 0xaa && control == 3 && organization[0] == 0 && organization[1] == 0 &&
           (organization[2] == 0 || organization[2] == 0xf8);
  }
};
static_assert(sizeof(SnapHeader) == 8);

}  // namespace penstock
