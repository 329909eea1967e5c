// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/packet_log.h"

#include <fmt/format.h>

#include <iterator>

#include "base/ip_address.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::firewall {

namespace {

/// As the kernel's %pI6: all digits.
void append_ipv6(const Ipv6Address& address, std::string& to) {
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t word = i < 4 ? address.high : address.low;
    fmt::format_to(std::back_inserter(to), "{}{:04x}", i == 0 ? "" : ":", word >> (48 - i % 4 * 16) & 0xffff);
  }
}

/// Names come from the chain file, prefixes from rules: neither may begin a new line.
void append_printable(std::string_view text, std::string& to) {
  for (const char c : text) to.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
}

void append_port(PortIndex port, std::string_view key, const std::vector<std::string>& names, std::string& to) {
  to += key;
  if (port < names.size()) append_printable(names[port], to);
  to.push_back(' ');
}

void append_link(PacketView packet, std::string& to) {
  if (packet.packet->link_type != LinkType::ethernet) return;
  to += "MAC=";
  for (unsigned i = 0; i < sizeof(EthernetHeader); ++i)
    fmt::format_to(std::back_inserter(to), "{}{:02x}", i == 0 ? "" : ":", packet.frame[i]);
  to.push_back(' ');
}

void append_ipv4(const Ipv4Header& ip, std::string& to) {
  const std::uint16_t fragment = ip.fragment.value();
  fmt::format_to(std::back_inserter(to), "SRC={} DST={} LEN={} TOS=0x{:02X} PREC=0x{:02X} TTL={} ID={} ",
                 to_string(Ipv4Address{ip.source.value()}), to_string(Ipv4Address{ip.destination.value()}),
                 ip.total_length.value(), ip.tos & 0x1e, ip.tos & 0xe0, ip.ttl, ip.id.value());
  if ((fragment & 0x8000) != 0) to += "CE ";
  if ((fragment & Ipv4Header::kDontFragment) != 0) to += "DF ";
  if ((fragment & Ipv4Header::kMoreFragments) != 0) to += "MF ";
  if ((fragment & Ipv4Header::kOffsetMask) != 0)
    fmt::format_to(std::back_inserter(to), "FRAG:{} ", fragment & Ipv4Header::kOffsetMask);
}

void append_ipv6_header(const Ipv6Header& ip, std::string& to) {
  const std::uint32_t first = ip.version_class_label.value();
  to += "SRC=";
  append_ipv6(ip.source_address(), to);
  to += " DST=";
  append_ipv6(ip.destination_address(), to);
  fmt::format_to(std::back_inserter(to), " LEN={} TC={} HOPLIMIT={} FLOWLBL={} ",
                 ip.payload_length.value() + sizeof(Ipv6Header), first >> 20 & 0xff, ip.hop_limit, first & 0xfffff);
}

void append_tcp(const TcpHeader& tcp, std::string& to) {
  fmt::format_to(std::back_inserter(to), "SPT={} DPT={} WINDOW={} RES=0x{:02x} ", tcp.source_port.value(),
                 tcp.destination_port.value(), tcp.window.value(), (tcp.data_offset & 0x0f) << 2);
  constexpr std::pair<std::uint8_t, std::string_view> kFlags[] = {
      {TcpHeader::kCwr, "CWR "}, {TcpHeader::kEce, "ECE "}, {TcpHeader::kUrg, "URG "}, {TcpHeader::kAck, "ACK "},
      {TcpHeader::kPsh, "PSH "}, {TcpHeader::kRst, "RST "}, {TcpHeader::kSyn, "SYN "}, {TcpHeader::kFin, "FIN "}};
  for (const auto& [flag, name] : kFlags) {
    if ((tcp.flags & flag) != 0) to += name;
  }
  fmt::format_to(std::back_inserter(to), "URGP={} ", tcp.urgent.value());
}

void append_icmp(const IcmpHeader& icmp, bool ipv6, std::string& to) {
  fmt::format_to(std::back_inserter(to), "TYPE={} CODE={} ", icmp.type, icmp.code);
  const bool is_echo = ipv6 ? icmp.type == 128 || icmp.type == 129 : icmp.type == 8 || icmp.type == 0;
  if (is_echo)
    fmt::format_to(std::back_inserter(to), "ID={} SEQ={} ", icmp.rest.value() >> 16, icmp.rest.value() & 0xffff);
}

void append_transport(PacketView packet, std::string& to) {
  const PacketLayout& layout = packet.layout();
  const bool whole = layout.has(PacketLayout::kTransportHeader);
  switch (layout.transport) {
    case ip_protocol::kTcp:
      to += "PROTO=TCP ";
      if (whole) append_tcp(packet.tcp(), to);
      return;
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite:
      to += layout.transport == ip_protocol::kUdp ? "PROTO=UDP " : "PROTO=UDPLITE ";
      if (whole)
        fmt::format_to(std::back_inserter(to), "SPT={} DPT={} LEN={} ", packet.udp().source_port.value(),
                       packet.udp().destination_port.value(), packet.udp().length.value());
      return;
    case ip_protocol::kIcmp:
    case ip_protocol::kIcmpv6: {
      const bool ipv6 = layout.transport == ip_protocol::kIcmpv6;
      to += ipv6 ? "PROTO=ICMPv6 " : "PROTO=ICMP ";
      if (whole) append_icmp(packet.icmp(), ipv6, to);
      return;
    }
    default: fmt::format_to(std::back_inserter(to), "PROTO={} ", layout.transport);
  }
}

}  // namespace

void append_packet(PacketView packet, std::string_view prefix, const std::vector<std::string>& port_names,
                   std::string& to) {
  append_printable(prefix, to);
  append_port(packet.packet->in_port, "IN=", port_names, to);
  append_port(packet.packet->verdict.value, "OUT=", port_names, to);
  append_link(packet, to);
  // Of a bridged frame that is no IP, only the link header.
  if (packet.layout().is_ip() && packet.layout().has(PacketLayout::kNetworkHeader)) {
    if (packet.layout().network == NetworkLayer::ipv4) {
      append_ipv4(packet.ipv4(), to);
    } else {
      append_ipv6_header(packet.ipv6(), to);
    }
    append_transport(packet, to);
  }
  if (packet.packet->mark != 0) fmt::format_to(std::back_inserter(to), "MARK=0x{:x} ", packet.packet->mark);
}

void PacketLog::add(PacketView packet, std::string_view prefix) noexcept {
  writer_.line([&](std::string& to) {
    times_.append_iso(to, packet.packet->timestamp_ns);
    to += " penstock: ";
    append_packet(packet, prefix, names_, to);
  });
}

}  // namespace penstock::firewall
