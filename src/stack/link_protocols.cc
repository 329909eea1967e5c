// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Link protocols that never carry an IP packet to a host. Their payload need not be decoded, and they may pass where
// undecodable frames are dropped. List only protocols that are known to carry no IP, not those that just seem harmless.

#include <algorithm>
#include <array>

#include "packet/ethernet.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

constexpr bool contains(auto& sorted, std::uint16_t value) noexcept {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

/// Sources: IANA's "IEEE 802 Numbers" and the IEEE list of EtherTypes.
constexpr auto kEtherTypes = std::to_array<std::uint16_t>({
    ether_type::kArp,
    0x0842,  // Wake-on-LAN
    0x22ea,  // stream reservation
    0x22f0,  // audio and video transport
    0x6001,  // DEC's MOP (dump and load, console), DECnet, LAT
    0x6002,
    0x6003,
    0x6004,
    0x8035,  // RARP
    0x809b,  // AppleTalk, its address resolution
    0x80f3,
    0x8137,  // IPX
    0x8138,
    0x8808,  // MAC control: pause
    0x8809,  // slow protocols: LACP, OAM
    0x8819,  // CobraNet
    ether_type::kPppoeDiscovery,
    0x887b,  // HomePlug
    0x888e,  // EAPOL (802.1X)
    0x8892,  // PROFINET
    0x88a2,  // ATA over Ethernet
    0x88a4,  // EtherCAT
    0x88ab,  // POWERLINK
    0x88b8,  // IEC 61850: GOOSE, management, sampled values
    0x88b9,
    0x88ba,
    0x88c7,  // 802.11i pre-authentication
    0x88ca,  // TIPC
    0x88cc,  // LLDP
    0x88cd,  // SERCOS
    0x88e1,  // HomePlug AV
    0x88e3,  // media redundancy
    0x88f5,  // MVRP, MMRP
    0x88f6,
    0x88f7,  // PTP
    0x88f8,  // NC-SI
    0x88fb,  // PRP supervision
    0x8902,  // connectivity fault management
    0x8906,  // Fibre Channel, its initialisation
    0x8914,
    0x8915,  // RoCE
    0x8929,  // MSRP
    0x893a,  // IEEE 1905
    0x8940,  // edge control
    0x9000,  // loopback
});
static_assert(std::ranges::is_sorted(kEtherTypes));

/// Service access points of IEEE 802.2.
constexpr auto kLlcPoints = std::to_array<std::uint16_t>({
    0x00,              // the link itself: XID, TEST
    0x04, 0x08, 0x0c,  // SNA
    0x42,              // spanning tree
    0xe0,              // IPX
    0xf0,              // NetBIOS
    0xf4,              // LAN management
    0xfe,              // ISO: IS-IS, ES-IS
    0xff,              // IPX without an LLC header
});

/// Cisco's: PAgP, PVST+, UDLD, CDP, VTP, DTP.
constexpr auto kCiscoProtocols = std::to_array<std::uint16_t>({0x0104, 0x010b, 0x0111, 0x2000, 0x2003, 0x2004});

}  // namespace

bool carries_no_ip(std::uint16_t type) noexcept { return contains(kEtherTypes, type); }

bool llc_carries_no_ip(Bytes bytes) noexcept {
  if (bytes.empty()) return false;
  if (bytes.size() < sizeof(SnapHeader) || bytes[0] != 0xaa) return contains(kLlcPoints, bytes[0]);
  const auto& snap = header_of<SnapHeader>(bytes);
  if (snap.names_ether_type()) return carries_no_ip(snap.type.value());
  constexpr std::array<std::uint8_t, 3> kCisco{0, 0, 0x0c};
  return std::ranges::equal(snap.organization, kCisco) && contains(kCiscoProtocols, snap.type.value());
}

}  // namespace penstock::stack
