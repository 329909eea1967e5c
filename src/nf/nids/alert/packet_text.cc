// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/alert/packet_text.h"

#include <array>

#include "packet/parse_core.h"
#include "report/json_text.h"

namespace penstock::nids {

namespace {

/// Indexed by protocol number, up to 143 (IANA's registry "Assigned Internet Protocol Numbers").
constexpr auto kProtocols = std::to_array<std::string_view>({
    "HOPOPT",
    "ICMP",
    "IGMP",
    "GGP",
    "IPv4",
    "ST",
    "TCP",
    "CBT",
    "EGP",
    "IGP",
    "BBN-RCC-MON",
    "NVP-II",
    "PUP",
    "ARGUS",
    "EMCON",
    "XNET",
    "CHAOS",
    "UDP",
    "MUX",
    "DCN-MEAS",
    "HMP",
    "PRM",
    "XNS-IDP",
    "TRUNK-1",
    "TRUNK-2",
    "LEAF-1",
    "LEAF-2",
    "RDP",
    "IRTP",
    "ISO-TP4",
    "NETBLT",
    "MFE-NSP",
    "MERIT-INP",
    "DCCP",
    "3PC",
    "IDPR",
    "XTP",
    "DDP",
    "IDPR-CMTP",
    "TP++",
    "IL",
    "IPv6",
    "SDRP",
    "IPv6-Route",
    "IPv6-Frag",
    "IDRP",
    "RSVP",
    "GRE",
    "DSR",
    "BNA",
    "ESP",
    "AH",
    "I-NLSP",
    "SWIPE",
    "NARP",
    "MOBILE",
    "TLSP",
    "SKIP",
    "IPv6-ICMP",
    "IPv6-NoNxt",
    "IPv6-Opts",
    "",
    "CFTP",
    "",
    "SAT-EXPAK",
    "KRYPTOLAN",
    "RVD",
    "IPPC",
    "",
    "SAT-MON",
    "VISA",
    "IPCV",
    "CPNX",
    "CPHB",
    "WSN",
    "PVP",
    "BR-SAT-MON",
    "SUN-ND",
    "WB-MON",
    "WB-EXPAK",
    "ISO-IP",
    "VMTP",
    "SECURE-VMTP",
    "VINES",
    "TTP",
    "NSFNET-IGP",
    "DGP",
    "TCF",
    "EIGRP",
    "OSPFIGP",
    "Sprite-RPC",
    "LARP",
    "MTP",
    "AX.25",
    "IPIP",
    "MICP",
    "SCC-SP",
    "ETHERIP",
    "ENCAP",
    "",
    "GMTP",
    "IFMP",
    "PNNI",
    "PIM",
    "ARIS",
    "SCPS",
    "QNX",
    "A/N",
    "IPComp",
    "SNP",
    "Compaq-Peer",
    "IPX-in-IP",
    "VRRP",
    "PGM",
    "",
    "L2TP",
    "DDX",
    "IATP",
    "STP",
    "SRP",
    "UTI",
    "SMP",
    "SM",
    "PTP",
    "ISIS over IPv4",
    "FIRE",
    "CRTP",
    "CRUDP",
    "SSCOPMCE",
    "IPLT",
    "SPS",
    "PIPE",
    "SCTP",
    "FC",
    "RSVP-E2E-IGNORE",
    "Mobility Header",
    "UDPLite",
    "MPLS-in-IP",
    "manet",
    "HIP",
    "Shim6",
    "WESP",
    "ROHC",
    "Ethernet",
});
static_assert(kProtocols.size() == 144);

constexpr std::uint16_t kVxlanPort = 4789;

/// The layout of a frame's outer packet, or of a packet inside it.
PacketLayout layout_of(stack::Bytes bytes, LinkType link) noexcept {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  return parse(bytes.data(), length, length, link);
}

template <typename Header>
const Header& header_at(stack::Bytes bytes, std::size_t offset) noexcept {
  static_assert(alignof(Header) == 1);
  return *reinterpret_cast<const Header*>(bytes.data() + offset);
}

/// The tunnel that carries the innermost packet, by the headers before it.
std::string_view tunnel_source(const stack::DecodedPacket& packet) noexcept {
  stack::Bytes bytes = packet.frame;
  LinkType link = packet.link_type;
  for (unsigned depth = 1;; ++depth) {
    const PacketLayout layout = layout_of(bytes, link);
    if (!layout.has(PacketLayout::kNetworkHeader) || !layout.is_ip()) return "ipv4 tunnel";
    std::string_view name = layout.network == NetworkLayer::ipv6 ? "ipv6 tunnel" : "ipv4 tunnel";
    if (layout.transport == ip_protocol::kGre) name = "gre tunnel";
    if (layout.transport == ip_protocol::kUdp) {
      const bool vxlan = layout.has(PacketLayout::kPorts) &&
                         header_at<UdpHeader>(bytes, layout.transport_offset).destination_port.value() == kVxlanPort;
      name = vxlan ? "vxlan encapsulation" : "teredo tunnel";
    }
    if (depth == packet.tunnel_depth || layout.tunnel == Tunnel::none || layout.inner_offset >= layout.end) return name;
    bytes = bytes.subspan(layout.inner_offset, layout.end - layout.inner_offset);
    link = layout.tunnel == Tunnel::vxlan ? LinkType::ethernet : LinkType::raw_ip;
  }
}

}  // namespace

void append_address(std::string& out, const Ipv6Address& address, std::uint8_t ip_version) {
  if (ip_version != 6) {
    for (const int shift : {24, 16, 8, 0}) {
      report::append_number(out, address.low >> shift & 0xff);
      if (shift != 0) out.push_back('.');
    }
    return;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::array<char, 39> text{};
  std::size_t at = 0;
  for (const std::uint64_t half : {address.high, address.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      text[at++] = kHex[half >> shift & 15];
      if (shift % 16 == 0 && at < text.size()) text[at++] = ':';
    }
  }
  out.append(text.data(), text.size());
}

std::string_view protocol_name(std::uint8_t protocol) noexcept {
  return protocol < kProtocols.size() ? kProtocols[protocol] : std::string_view{};
}

bool has_logged_ports(std::uint8_t protocol) noexcept {
  return protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp;
}

LinkName link_name(LinkType type) noexcept {
  switch (type) {
    case LinkType::ethernet: return {1, "EN10MB"};
    case LinkType::raw_ip: return {12, "RAW"};
    case LinkType::null_host: return {0, "NULL"};
    case LinkType::loop: return {108, "LOOP"};
    case LinkType::linux_sll: return {113, "LINUX_SLL"};
    case LinkType::linux_sll2: return {276, "LINUX_SLL2"};
    case LinkType::ppp: return {9, "PPP"};
    case LinkType::cisco_hdlc: return {104, "C_HDLC"};
  }
  return {1, "EN10MB"};
}

std::string_view packet_source(const stack::TrackedPacket& tracked) noexcept {
  if (tracked.stream_end) return "stream (flow timeout)";
  if (tracked.packet.reassembled) return "defrag";
  return tracked.packet.tunnel_depth == 0 ? "wire/pcap" : tunnel_source(tracked.packet);
}

OuterPacket outer_packet(const stack::DecodedPacket& packet) noexcept {
  const PacketLayout layout = layout_of(packet.frame, packet.link_type);
  OuterPacket outer;
  if (!layout.has(PacketLayout::kNetworkHeader) || !layout.is_ip()) return outer;
  outer.protocol = layout.transport;
  if (layout.network == NetworkLayer::ipv4) {
    const auto& header = header_at<Ipv4Header>(packet.frame, layout.network_offset);
    outer.ip_version = 4;
    outer.source.address.low = header.source.value();
    outer.destination.address.low = header.destination.value();
  } else {
    const auto& header = header_at<Ipv6Header>(packet.frame, layout.network_offset);
    outer.ip_version = 6;
    outer.source.address = header.source_address();
    outer.destination.address = header.destination_address();
  }
  if (layout.has(PacketLayout::kPorts) && has_logged_ports(outer.protocol)) {
    const auto& ports = header_at<UdpHeader>(packet.frame, layout.transport_offset);
    outer.source.port = ports.source_port.value();
    outer.destination.port = ports.destination_port.value();
  }
  return outer;
}

}  // namespace penstock::nids
