// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/offload.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "packet/transport.h"

namespace penstock::port {

namespace {

/// The offset of the IP header; empty if the frame has none. Tags may be nested.
std::optional<std::size_t> network_offset(std::span<const std::uint8_t> frame, std::uint16_t& type) noexcept {
  std::size_t at = sizeof(EthernetHeader);
  if (frame.size() < at) return std::nullopt;
  type = reinterpret_cast<const EthernetHeader*>(frame.data())->type.value();
  while (type == ether_type::kVlan || type == ether_type::kQinQ) {
    if (frame.size() < at + sizeof(VlanTag)) return std::nullopt;
    type = reinterpret_cast<const VlanTag*>(frame.data() + at)->type.value();
    at += sizeof(VlanTag);
  }
  return at;
}

std::uint32_t folded(std::uint32_t sum) noexcept {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

}  // namespace

bool complete_checksum(std::span<std::uint8_t> frame, const VirtioHeader& header, std::size_t shift) noexcept {
  const std::size_t start = header.checksum_start + shift;
  const std::size_t field = start + header.checksum_offset;
  if (field + 2 > frame.size()) return false;
  // The field holds the sum of the pseudo header.
  std::uint16_t sum = 0;
  // Longer than checksum_add takes: in two parts, the first of even length.
  constexpr std::size_t kPart = 0x8000;
  std::uint32_t total = 0;
  for (std::size_t at = start; at < frame.size(); at += kPart)
    total =
        folded(checksum_add(frame.data() + at, static_cast<std::uint32_t>(std::min(kPart, frame.size() - at)), total));
  sum = checksum_finish(total);
  // UDP: 0 would mean that there is no checksum (RFC 768). For TCP, both forms of zero are the same.
  constexpr std::size_t kUdpChecksum = 6;
  if (sum == 0 && header.checksum_offset == kUdpChecksum) sum = 0xffff;
  reinterpret_cast<Be16*>(frame.data() + field)->set(sum);
  return true;
}

VirtioHeader find_offload(std::span<const std::uint8_t> frame, std::uint32_t mtu) noexcept {
  const auto length = static_cast<std::uint32_t>(frame.size());
  const PacketLayout layout = parse(frame.data(), length, length, LinkType::ethernet);
  const bool is_tcp = layout.transport == ip_protocol::kTcp;
  // A frame with a trailer came from a wire.
  if (!layout.has(PacketLayout::kTransportHeader) || layout.has(PacketLayout::kFragment) || layout.end != length ||
      (!is_tcp && layout.transport != ip_protocol::kUdp)) {
    return {};
  }
  const std::uint8_t* const ip = frame.data() + layout.network_offset;
  const std::uint8_t* const transport = frame.data() + layout.transport_offset;
  const bool is_ipv4 = layout.network == NetworkLayer::ipv4;
  const std::uint32_t seed = layout.transport + (length - layout.transport_offset);
  const std::uint32_t sum = is_ipv4 ? checksum_add(ip + offsetof(Ipv4Header, source), 8, seed)
                                    : checksum_add(ip + offsetof(Ipv6Header, source), 32, seed);
  const std::size_t field = is_tcp ? offsetof(TcpHeader, checksum) : offsetof(UdpHeader, checksum);
  if (reinterpret_cast<const Be16*>(transport + field)->value() != folded(sum)) return {};
  VirtioHeader header;
  header.flags = VirtioHeader::kNeedsChecksum;
  header.checksum_start = layout.transport_offset;
  header.checksum_offset = static_cast<std::uint16_t>(field);
  const std::uint32_t headers = layout.payload_offset - layout.network_offset;
  if (is_tcp && layout.ip_bytes() > mtu && mtu > headers) {
    header.gso_type = is_ipv4 ? VirtioHeader::kTcp4 : VirtioHeader::kTcp6;
    header.gso_size = static_cast<std::uint16_t>(std::min<std::uint32_t>(mtu - headers, 0xffff));
  }
  return header;
}

std::optional<Segmenter> Segmenter::of(std::span<const std::uint8_t> frame, const VirtioHeader& header,
                                       std::size_t shift) noexcept {
  Segmenter result;
  result.frame_ = frame;
  result.size_ = header.gso_size;
  const unsigned kind = header.gso_type & ~unsigned{VirtioHeader::kEcn};
  const bool is_tcp = kind == VirtioHeader::kTcp4 || kind == VirtioHeader::kTcp6;
  if ((!is_tcp && kind != VirtioHeader::kUdp) || !header.lacks_checksum() || result.size_ == 0) return std::nullopt;
  std::uint16_t type = 0;
  const auto network = network_offset(frame, type);
  if (!network) return std::nullopt;
  result.network_ = *network;
  result.tcp_ = is_tcp;
  result.ipv4_ = type == ether_type::kIpv4;
  if ((!result.ipv4_ && type != ether_type::kIpv6) || (kind == VirtioHeader::kTcp4 && !result.ipv4_) ||
      (kind == VirtioHeader::kTcp6 && result.ipv4_)) {
    return std::nullopt;
  }
  result.transport_ = header.checksum_start + shift;
  const std::size_t least = *network + (result.ipv4_ ? sizeof(Ipv4Header) : sizeof(Ipv6Header));
  const std::size_t base = is_tcp ? sizeof(TcpHeader) : sizeof(UdpHeader);
  if (result.transport_ < least || frame.size() < result.transport_ + base) return std::nullopt;
  std::size_t transport_header = base;
  if (is_tcp) {
    transport_header = reinterpret_cast<const TcpHeader*>(frame.data() + result.transport_)->header_length();
    if (transport_header < base) return std::nullopt;
  }
  if (result.ipv4_) {
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(frame.data() + *network);
    if (*network + ip.header_length() != result.transport_) return std::nullopt;
  }
  result.headers_ = result.transport_ + transport_header;
  if (frame.size() <= result.headers_) return std::nullopt;
  result.count_ = (frame.size() - result.headers_ + result.size_ - 1) / result.size_;
  return result;
}

void Segmenter::write(std::size_t segment, std::uint8_t* to) const noexcept {
  const std::size_t payload = payload_of(segment);
  const std::size_t before = segment * size_;
  const bool is_last = segment + 1 == count_;
  std::memcpy(to, frame_.data(), headers_);
  std::memcpy(to + headers_, frame_.data() + headers_ + before, payload);
  const auto length = static_cast<std::uint32_t>(headers_ - transport_ + payload);  // with the transport header
  // The checksum of the pseudo header (RFC 9293 §3.1, RFC 8200 §8.1).
  std::uint32_t sum = (tcp_ ? ip_protocol::kTcp : ip_protocol::kUdp) + length;
  if (ipv4_) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(to + network_);
    ip.total_length.set(static_cast<std::uint16_t>(transport_ - network_ + length));
    ip.id.set(static_cast<std::uint16_t>(ip.id.value() + segment));
    ip.checksum.set(0);
    ip.checksum.set(checksum(to + network_, static_cast<std::uint32_t>(transport_ - network_)));
    sum = checksum_add(reinterpret_cast<const std::uint8_t*>(&ip.source), 8, sum);
  } else {
    auto& ip = *reinterpret_cast<Ipv6Header*>(to + network_);
    ip.payload_length.set(static_cast<std::uint16_t>(transport_ - network_ - sizeof(Ipv6Header) + length));
    sum = checksum_add(reinterpret_cast<const std::uint8_t*>(&ip.source), 32, sum);
  }
  if (tcp_) {
    auto& tcp = *reinterpret_cast<TcpHeader*>(to + transport_);
    tcp.sequence.set(tcp.sequence.value() + static_cast<std::uint32_t>(before));
    // The peer may act on these once: PSH and FIN with the last byte, CWR with the first (RFC 3168 §6.1.2).
    if (!is_last) tcp.flags = static_cast<std::uint8_t>(tcp.flags & ~(TcpHeader::kFin | TcpHeader::kPsh));
    if (segment > 0) tcp.flags = static_cast<std::uint8_t>(tcp.flags & ~TcpHeader::kCwr);
    tcp.checksum.set(0);
    tcp.checksum.set(checksum_finish(checksum_add(to + transport_, length, sum)));
  } else {
    auto& udp = *reinterpret_cast<UdpHeader*>(to + transport_);
    udp.length.set(static_cast<std::uint16_t>(length));
    udp.checksum.set(0);
    const std::uint16_t check = checksum_finish(checksum_add(to + transport_, length, sum));
    udp.checksum.set(check != 0 ? check : 0xffff);  // 0 would mean "no checksum" (RFC 768)
  }
}

}  // namespace penstock::port
