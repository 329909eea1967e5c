// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/offload.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "packet/transport.h"

namespace penstock::port {

namespace {

std::uint32_t folded(std::uint32_t sum) noexcept {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

/// CRC32c (RFC 9260 §6.8 and appendix A).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes) noexcept {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0x82f63b78U : 0);
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ byte) & 0xff];
  return ~crc;
}

}  // namespace

bool complete_checksum(std::span<std::uint8_t> frame, const VirtioHeader& header, std::size_t shift) noexcept {
  const std::size_t start = header.checksum_start + shift;
  const std::size_t field = start + header.checksum_offset;
  if (field + 2 > frame.size()) return false;
  if (header.checksum_offset == offsetof(SctpHeader, checksum)) {  // of no other protocol
    if (field + sizeof(Be32) > frame.size()) return false;
    auto& crc = *reinterpret_cast<Be32*>(frame.data() + field);
    crc.set(0);
    crc.set(__builtin_bswap32(crc32c(frame.subspan(start))));
    return true;
  }
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
  using Kind = SegmentHeaders::Kind;
  Segmenter result;
  result.frame_ = frame;
  result.size_ = header.gso_size;
  const unsigned kind = header.gso_type & ~unsigned{VirtioHeader::kEcn};
  result.tcp_ = kind == VirtioHeader::kTcp4 || kind == VirtioHeader::kTcp6;
  if ((!result.tcp_ && kind != VirtioHeader::kUdp) || !header.lacks_checksum() || result.size_ == 0)
    return std::nullopt;
  const std::size_t transport = header.checksum_start + shift;
  const std::size_t base = result.tcp_ ? sizeof(TcpHeader) : sizeof(UdpHeader);
  if (frame.size() < transport + base) return std::nullopt;
  const auto layers = find_segment_headers(frame, transport, result.tcp_ ? ip_protocol::kTcp : ip_protocol::kUdp);
  if (!layers) return std::nullopt;
  result.layers_ = *layers;
  const Kind last = layers->layers[layers->count - 1].kind;
  if ((kind == VirtioHeader::kTcp4 && last != Kind::ipv4) || (kind == VirtioHeader::kTcp6 && last != Kind::ipv6))
    return std::nullopt;
  std::size_t transport_header = base;
  if (result.tcp_) {
    transport_header = reinterpret_cast<const TcpHeader*>(frame.data() + transport)->header_length();
    if (transport_header < base) return std::nullopt;
  }
  result.payload_at_ = transport + transport_header;
  if (frame.size() <= result.payload_at_) return std::nullopt;
  const std::size_t removed = layers->jumbo_at != 0 ? SegmentHeaders::kJumboBytes : 0;
  result.transport_ = transport - removed;
  result.headers_ = result.payload_at_ - removed;
  const std::size_t payload = frame.size() - result.payload_at_;
  constexpr std::size_t kMostIpBytes = 65535;
  if (result.headers_ - layers->layers[0].at + std::min(payload, result.size_) > kMostIpBytes) return std::nullopt;
  result.count_ = (payload + result.size_ - 1) / result.size_;
  return result;
}

/// Of the addresses (RFC 9293 §3.1, RFC 8200 §8.1).
std::uint32_t Segmenter::pseudo_header_sum(std::size_t ip_layer, const std::uint8_t* frame) const noexcept {
  const SegmentHeaders::Layer& ip = layers_.layers[ip_layer];
  const bool is_ipv4 = ip.kind == SegmentHeaders::Kind::ipv4;
  const std::uint32_t bytes = is_ipv4 ? 4 : 16;
  const std::size_t source = is_ipv4 ? offsetof(Ipv4Header, source) : offsetof(Ipv6Header, source);
  return checksum_add(frame + ip.destination, bytes, checksum_add(frame + ip.at + source, bytes));
}

/// `length`: of the segment from this layer on. What comes after it is complete.
void Segmenter::write_layer(std::size_t layer, std::size_t segment, std::uint8_t* frame,
                            std::size_t length) const noexcept {
  using Kind = SegmentHeaders::Kind;
  std::uint8_t* const at = frame + layers_.layers[layer].at;
  const auto bytes = static_cast<std::uint32_t>(length);
  switch (layers_.layers[layer].kind) {
    case Kind::ipv4: {
      auto& ip = *reinterpret_cast<Ipv4Header*>(at);
      ip.total_length.set(static_cast<std::uint16_t>(length));
      ip.id.set(static_cast<std::uint16_t>(ip.id.value() + segment));
      ip.checksum.set(0);
      ip.checksum.set(checksum(at, ip.header_length()));
      break;
    }
    case Kind::ipv6: {
      auto& ip = *reinterpret_cast<Ipv6Header*>(at);
      ip.payload_length.set(static_cast<std::uint16_t>(length - sizeof ip));
      break;
    }
    case Kind::tunnel_udp: {
      auto& udp = *reinterpret_cast<UdpHeader*>(at);
      udp.length.set(static_cast<std::uint16_t>(length));
      if (udp.checksum.value() == 0) break;  // a tunnel may do without
      udp.checksum.set(0);
      const std::uint32_t sum = pseudo_header_sum(layer - 1, frame) + ip_protocol::kUdp + bytes;
      const std::uint16_t check = checksum_finish(checksum_add(at, bytes, sum));
      udp.checksum.set(check != 0 ? check : 0xffff);
      break;
    }
    case Kind::tunnel_gre: {
      auto& check = *reinterpret_cast<Be16*>(at + sizeof(GreHeader));
      check.set(0);
      check.set(checksum(at, bytes));
      break;
    }
  }
}

void Segmenter::write(std::size_t segment, std::uint8_t* to) const noexcept {
  const std::size_t payload = payload_of(segment);
  const std::size_t before = segment * size_;
  const bool is_last = segment + 1 == count_;
  if (layers_.jumbo_at == 0) {
    std::memcpy(to, frame_.data(), headers_);
  } else {
    constexpr std::size_t kRemoved = SegmentHeaders::kJumboBytes;
    const std::size_t until = layers_.jumbo_at;
    std::memcpy(to, frame_.data(), until);
    std::memcpy(to + until, frame_.data() + until + kRemoved, headers_ - until);
    reinterpret_cast<Ipv6Header*>(to + until - sizeof(Ipv6Header))->next_header = frame_[until];
  }
  std::memcpy(to + headers_, frame_.data() + payload_at_ + before, payload);
  const auto length = static_cast<std::uint32_t>(headers_ - transport_ + payload);  // with the transport header
  const std::uint32_t sum =
      pseudo_header_sum(layers_.count - 1, to) + (tcp_ ? ip_protocol::kTcp : ip_protocol::kUdp) + length;
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
  for (std::size_t layer = layers_.count; layer-- > 0;)
    write_layer(layer, segment, to, headers_ - layers_.layers[layer].at + payload);
}

}  // namespace penstock::port
