// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/answer.h"

#include <algorithm>
#include <cstring>

#include "base/host_address.h"
#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "conntrack/tcp_segment.h"
#include "conntrack/transport.h"
#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::function {

namespace {

constexpr std::uint8_t kHops = 64;
constexpr std::uint32_t kLeastIpv6Mtu = 1280;

template <typename Header>
constexpr std::uint32_t kBytesOf = static_cast<std::uint32_t>(sizeof(Header));

/// Copies the frame's link header with the addresses swapped.
void write_link_header(std::uint8_t* to, PacketView packet) noexcept {
  std::memcpy(to, packet.frame, packet.layout().network_offset);
  if (packet.packet->link_type != LinkType::ethernet) return;
  std::memcpy(to, packet.ethernet().source.bytes, sizeof(MacAddress));
  std::memcpy(to + sizeof(MacAddress), packet.ethernet().destination.bytes, sizeof(MacAddress));
}

void write_ipv4(std::uint8_t* to, PacketView packet, std::uint32_t source, std::uint8_t tos, std::uint8_t protocol,
                std::uint32_t payload) noexcept {
  auto& ip = *reinterpret_cast<Ipv4Header*>(to);
  ip = {};
  ip.version_ihl = 0x45;
  ip.tos = tos;
  ip.total_length.set(static_cast<std::uint16_t>(sizeof ip + payload));
  ip.fragment.set(Ipv4Header::kDontFragment);
  ip.ttl = kHops;
  ip.protocol = protocol;
  ip.source.set(source);
  ip.destination.set(packet.ipv4().source.value());
  ip.checksum.set(checksum(to, sizeof ip));
}

void write_ipv6(std::uint8_t* to, PacketView packet, const Ipv6Address& source, std::uint8_t protocol,
                std::uint32_t payload) noexcept {
  auto& ip = *reinterpret_cast<Ipv6Header*>(to);
  ip = {};
  ip.version_class_label.set(std::uint32_t{6} << 28);
  ip.payload_length.set(static_cast<std::uint16_t>(payload));
  ip.next_header = protocol;
  ip.hop_limit = kHops;
  ip.source[0].set(source.high);
  ip.source[1].set(source.low);
  std::memcpy(ip.destination, packet.ipv6().source, sizeof ip.destination);
}

/// Types of ICMP that are no errors (the kernel's icmp_pointers): echo, timestamp, information and address mask, each
/// with its reply.
bool is_information(std::uint8_t icmp_type) noexcept {
  return icmp_type == 0 || icmp_type == 8 || (icmp_type >= 13 && icmp_type <= 18);
}

}  // namespace

bool may_be_answered(PacketView packet) noexcept {
  constexpr std::uint8_t kFirstIcmpv6Information = 128;
  const PacketLayout& layout = packet.layout();
  if (layout.has(PacketLayout::kLaterFragment)) return false;
  if (packet.packet->link_type != LinkType::ethernet && packet.packet->link_type != LinkType::raw_ip) return false;
  if (packet.packet->link_type == LinkType::ethernet) {
    constexpr MacAddress kNone{};
    const EthernetHeader& link = packet.ethernet();
    const bool of_groups = ((link.destination.bytes[0] | link.source.bytes[0]) & 1) != 0;
    if (of_groups || std::memcmp(link.source.bytes, kNone.bytes, sizeof kNone.bytes) == 0) return false;
  }
  const bool icmp = layout.transport == ip_protocol::kIcmp || layout.transport == ip_protocol::kIcmpv6;
  // What is too short to be read may be an error.
  if (icmp && !layout.has(PacketLayout::kTransportHeader)) return false;
  if (layout.network == NetworkLayer::ipv4) {
    if (!is_of_a_host(Ipv4Address{packet.ipv4().source.value()}) ||
        !is_of_a_host(Ipv4Address{packet.ipv4().destination.value()})) {
      return false;
    }
    return !icmp || is_information(packet.icmp().type);
  }
  if (!is_of_a_host(packet.ipv6().source_address()) || !is_of_a_host(packet.ipv6().destination_address())) return false;
  return !icmp || packet.icmp().type >= kFirstIcmpv6Information;
}

void answer_with_error(PacketView packet, const IcmpError& error, std::optional<Ipv6Address> from, PacketView cause,
                       Emitter& emitter) noexcept {
  constexpr std::uint32_t kMostIpv4 = 576;         // RFC 1812 §4.3.2.3
  constexpr std::uint8_t kInternetControl = 0xc0;  // RFC 1812 §4.3.2.5
  const bool ipv4 = packet.layout().network == NetworkLayer::ipv4;
  const std::uint32_t link = packet.layout().network_offset;
  const std::uint32_t header = ipv4 ? kBytesOf<Ipv4Header> : kBytesOf<Ipv6Header>;
  const std::uint32_t headers = header + kBytesOf<IcmpHeader>;
  const std::uint32_t quote = std::min(packet.layout().ip_bytes(), (ipv4 ? kMostIpv4 : kLeastIpv6Mtu) - headers);
  std::uint8_t* const frame = emitter.emit_unwritten(link + headers + quote, cause, packet.packet->in_port);
  if (frame == nullptr) return;
  write_link_header(frame, packet);
  const std::uint32_t bytes = kBytesOf<IcmpHeader> + quote;
  if (ipv4) {
    const std::uint32_t source = from ? static_cast<std::uint32_t>(from->low) : packet.ipv4().destination.value();
    write_ipv4(frame + link, packet, source, kInternetControl, ip_protocol::kIcmp, bytes);
  } else {
    write_ipv6(frame + link, packet, from.value_or(packet.ipv6().destination_address()), ip_protocol::kIcmpv6, bytes);
  }
  auto& icmp = *reinterpret_cast<IcmpHeader*>(frame + link + header);
  icmp = {error.type, error.code, {}, {}};
  icmp.rest.set(error.rest);
  std::memcpy(frame + link + headers, packet.frame + link, quote);
  const std::uint32_t pseudo =
      ipv4 ? 0 : pseudo_header_sum(frame + link, NetworkLayer::ipv6, ip_protocol::kIcmpv6, bytes);
  icmp.checksum.set(checksum_finish(checksum_add(frame + link + header, bytes, pseudo)));
}

void answer_with_reset(PacketView packet, PacketView cause, Emitter& emitter) noexcept {
  const PacketLayout& layout = packet.layout();
  if (!layout.has(PacketLayout::kTransportHeader) || layout.transport != ip_protocol::kTcp) return;
  conntrack::Transport transport;
  if (!conntrack::read_transport(packet, transport)) return;
  const TcpHeader& segment = packet.tcp();
  if ((segment.flags & TcpHeader::kRst) != 0) return;
  const bool ipv4 = layout.network == NetworkLayer::ipv4;
  const std::uint32_t link = layout.network_offset;
  const std::uint32_t header = ipv4 ? kBytesOf<Ipv4Header> : kBytesOf<Ipv6Header>;
  std::uint8_t* const frame =
      emitter.emit_unwritten(link + header + kBytesOf<TcpHeader>, cause, packet.packet->in_port);
  if (frame == nullptr) return;
  write_link_header(frame, packet);
  if (ipv4) {
    write_ipv4(frame + link, packet, packet.ipv4().destination.value(), 0, ip_protocol::kTcp, kBytesOf<TcpHeader>);
  } else {
    write_ipv6(frame + link, packet, packet.ipv6().destination_address(), ip_protocol::kTcp, kBytesOf<TcpHeader>);
  }
  auto& reset = *reinterpret_cast<TcpHeader*>(frame + link + header);
  reset = {};
  reset.source_port = segment.destination_port;
  reset.destination_port = segment.source_port;
  reset.data_offset = kBytesOf<TcpHeader> / 4 << 4;
  reset.flags = TcpHeader::kRst;
  if ((segment.flags & TcpHeader::kAck) != 0) {
    reset.sequence = segment.acknowledgment;
  } else {
    reset.flags |= TcpHeader::kAck;
    reset.acknowledgment.set(conntrack::read_segment(segment, transport.length).end);
  }
  const std::uint32_t pseudo = pseudo_header_sum(frame + link, layout.network, ip_protocol::kTcp, kBytesOf<TcpHeader>);
  reset.checksum.set(checksum_finish(checksum_add(frame + link + header, kBytesOf<TcpHeader>, pseudo)));
}

bool AnswerLimit::take(std::int64_t second) noexcept {
  constexpr std::int64_t kMostBack = kMostBackNs / kNsPerSecond;
  if (second > second_ || second < second_ - kMostBack) {
    second_ = second;
    left_ = kMostPerSecond;
  }
  return left_ != 0 && left_-- != 0;
}

ReceiverLimit::ReceiverLimit() : seed_(random_seed()), receivers_(kSets) {}

bool ReceiverLimit::take(PacketView packet) noexcept {
  const std::uint64_t now_ns = packet.packet->timestamp_ns;
  std::uint64_t& paid_until_ns = receiver_of(packet, now_ns).paid_until_ns;
  const std::uint64_t ahead_ns = paid_until_ns > now_ns ? paid_until_ns - now_ns : 0;
  if (ahead_ns > kBurst * kNsPerSecond) {  // the clock has been set
    paid_until_ns = now_ns;
  } else if (ahead_ns > (kBurst - 1) * kNsPerSecond) {
    return false;
  }
  if (!all_.take(static_cast<std::int64_t>(now_ns / kNsPerSecond))) return false;
  paid_until_ns = std::max(paid_until_ns, now_ns) + kNsPerSecond;
  return true;
}

ReceiverLimit::Receiver& ReceiverLimit::receiver_of(PacketView packet, std::uint64_t now_ns) noexcept {
  const std::uint64_t address = packet.layout().network == NetworkLayer::ipv4 ? packet.ipv4().source.value()
                                                                              : packet.ipv6().source_address().high;
  const std::uint64_t hash = mix_product(address ^ seed_, seed_);
  Set& set = receivers_[hash % kSets];
  const auto known = std::ranges::find(set, address, &Receiver::address);
  if (known != set.end()) return *known;
  const auto free = std::ranges::find_if(set, [&](const Receiver& one) { return one.paid_until_ns <= now_ns; });
  if (free == set.end()) return set[(hash >> 32) % set.size()];
  *free = {address, 0};
  return *free;
}

}  // namespace penstock::function
