// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/field_text.h"

#include <fmt/format.h>

#include "base/ip_address.h"
#include "base/nanoseconds.h"
#include "packet/field_range.h"

namespace penstock {

namespace {

std::string hex_bytes(const std::uint8_t* bytes, std::uint32_t length) {
  constexpr std::uint32_t kMost = 16;
  std::string text;
  for (std::uint32_t i = 0; i < length && i < kMost; ++i) text += fmt::format("{:02x}", bytes[i]);
  if (length > kMost) text += fmt::format("… ({} bytes)", length);
  return text;
}

std::string mac_text(const std::uint8_t* b) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

std::string tcp_flags_text(std::uint8_t flags) {
  std::string text;
  constexpr std::string_view kLetters = "FSRP.UEW";  // as tcpdump prints them
  for (unsigned bit = 0; bit < 8; ++bit) {
    if ((flags >> bit & 1) != 0) text += kLetters[bit];
  }
  return text.empty() ? "none" : text;
}

std::uint64_t number_at(const std::uint8_t* bytes, std::uint32_t length) {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < length; ++i) value = value << 8 | bytes[i];
  return value;
}

Ipv6Address ipv6_at(const std::uint8_t* bytes) { return {number_at(bytes, 8), number_at(bytes + 8, 8)}; }

std::string protocol_name(std::uint8_t protocol) {
  switch (protocol) {
    case ip_protocol::kIcmp: return "ICMP";
    case ip_protocol::kTcp: return "TCP";
    case ip_protocol::kUdp: return "UDP";
    case ip_protocol::kGre: return "GRE";
    case ip_protocol::kEsp: return "ESP";
    case ip_protocol::kIcmpv6: return "ICMPv6";
    case ip_protocol::kSctp: return "SCTP";
    default: return fmt::format("protocol {}", protocol);
  }
}

}  // namespace

std::string format_field(Field field, PacketView packet) {
  const PacketDescriptor& descriptor = *packet.packet;
  switch (field) {
    case Field::frame_shape: return fmt::format("{} bytes", descriptor.length);
    case Field::wire_length: return std::to_string(descriptor.wire_length);
    case Field::timestamp:
      return fmt::format("{}.{:09}", descriptor.timestamp_ns / kNsPerSecond, descriptor.timestamp_ns % kNsPerSecond);
    case Field::in_port: return fmt::format("port {}", descriptor.in_port);
    case Field::mark: return fmt::format("{:#x}", descriptor.mark);
    case Field::flow_hash: return fmt::format("{:#010x}", descriptor.flow_hash);
    case Field::verdict:
      return descriptor.verdict.alive() && descriptor.verdict.value == kNoPort
                 ? "no port"
                 : fmt::format("port {}", descriptor.verdict.value);
    default: break;
  }
  const FieldRange range = field_range(field, packet.layout(), descriptor.link_type, descriptor.length);
  if (range.length == 0) return {};
  const std::uint8_t* bytes = packet.frame + range.offset;
  switch (field) {
    case Field::eth_dst:
    case Field::eth_src: return mac_text(bytes);
    case Field::ipv4_src:
    case Field::ipv4_dst: return to_string(Ipv4Address{static_cast<std::uint32_t>(number_at(bytes, 4))});
    case Field::ipv6_src:
    case Field::ipv6_dst: return to_string(ipv6_at(bytes));
    case Field::tcp_flags: return tcp_flags_text(bytes[1]);
    case Field::ipv4_ttl:
    case Field::ipv4_protocol:
    case Field::ipv4_length:
    case Field::ipv6_hop_limit:
    case Field::ipv6_next_header:
    case Field::ipv6_length:
    case Field::l4_src_port:
    case Field::l4_dst_port:
    case Field::udp_length:
    case Field::tcp_window: return std::to_string(number_at(bytes, range.length));
    default: break;
  }
  return range.length <= 4 ? fmt::format("0x{:0{}x}", number_at(bytes, range.length), range.length * 2)
                           : hex_bytes(bytes, range.length);
}

std::string format_packet(PacketView packet) {
  const PacketLayout& layout = packet.layout();
  constexpr unsigned kMalformed = PacketLayout::kMalformed | PacketLayout::kMalformedTransport;
  const char* broken = (layout.flags & kMalformed) != 0       ? " malformed"
                       : layout.has(PacketLayout::kTruncated) ? " truncated"
                                                              : "";
  if (layout.network == NetworkLayer::arp) return fmt::format("ARP{}", broken);
  if (!layout.is_ip()) {
    const std::string type = format_field(Field::eth_type, packet);
    return (type.empty() ? "not IP" : "EtherType " + type) + broken;
  }
  const bool v4 = layout.network == NetworkLayer::ipv4;
  if (!layout.has(PacketLayout::kNetworkHeader)) return fmt::format("{}{}", v4 ? "IPv4" : "IPv6", broken);
  std::string source = format_field(v4 ? Field::ipv4_src : Field::ipv6_src, packet);
  std::string destination = format_field(v4 ? Field::ipv4_dst : Field::ipv6_dst, packet);
  if (packet.has_ports()) {
    const auto with_port = [&](const std::string& address, const Be16& port) {
      return v4 ? fmt::format("{}:{}", address, port.value()) : fmt::format("[{}]:{}", address, port.value());
    };
    source = with_port(source, packet.udp().source_port);
    destination = with_port(destination, packet.udp().destination_port);
  }
  return fmt::format("{} {} > {} {}{}{}", v4 ? "IPv4" : "IPv6", source, destination, protocol_name(layout.transport),
                     layout.has(PacketLayout::kFragment) ? " fragment" : "", broken);
}

}  // namespace penstock
