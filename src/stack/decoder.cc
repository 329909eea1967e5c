// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "packet/transport.h"
#include "stack/ip_reassembly.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

namespace {

/// IP protocols that carry packets which are not decoded: AH (in IPv4), MOBILE, EtherIP, ENCAP, IPComp, L2TP, MPLS in
/// IP, Ethernet.
constexpr auto kNotDecoded = std::to_array<std::uint8_t>({51, 55, 97, 98, 108, 115, 137, 143});

/// Whether the packet was decoded completely, or up to an inner packet, which is judged by itself.
bool is_understood(const PacketDecoding& decoding) noexcept {
  const DecodedPacket& packet = decoding.packet;
  if (!packet.transport.empty()) return true;
  if (packet.ip_version == 0) return decoding.is_not_ip;
  if (decoding.is_fragment || decoding.carried.layer != Carried::Layer::none) return true;
  const bool v6 = packet.ip_version == 6;
  switch (packet.protocol) {
    case ip_protocol::kTcp:
    case ip_protocol::kUdp:
    case ip_protocol::kSctp:
    case ip_protocol::kEsp: return false;
    case ip_protocol::kIcmp: return v6;  // hosts ignore ICMP of the other IP version
    case ip_protocol::kIcmpv6: return !v6;
    case ip_protocol::kIpv4:
    case ip_protocol::kIpv6: return false;
    case ip_protocol::kGre: return decoding.is_not_ip;
    case ip_protocol::kHopByHop:
    case ip_protocol::kRouting:
    case ip_protocol::kFragment:
    case ip_protocol::kDestinationOptions:
    case ip_protocol::kMobility:
    case ip_protocol::kHip:
    case ip_protocol::kShim6: return !v6;  // the header chain is not followed further
    default: return std::ranges::find(kNotDecoded, packet.protocol) == kNotDecoded.end();
  }
}

/// Whether the options are two NOPs and the timestamps, as in nearly all TCP headers with options.
bool has_timestamps_alone(Bytes tcp_header) noexcept {
  constexpr auto kBegin = std::to_array<std::uint8_t>({1, 1, 8, 10});
  return tcp_header.size() == sizeof(TcpHeader) + 12 &&
         std::memcmp(tcp_header.data() + sizeof(TcpHeader), kBegin.data(), kBegin.size()) == 0;
}

PacketLayout layout_of(PacketView frame) noexcept {
  const PacketDescriptor& packet = *frame.packet;
  return parse(frame.frame, packet.length, packet.wire_length, packet.link_type);
}

}  // namespace

struct Decoder::Parts {
  Parts(const TrackerOptions& options, TrackerCounters& told)
      : counters(told),
        reassembly(options, told),
        ports(options.tunnel_ports),
        most_tunnels(options.most_tunnels),
        verify_checksums(options.verify_checksums),
        refuse_undecodable(options.refuse_undecodable),
        shortcuts(options.shortcuts),
        frames_are_parsed(options.frames_are_parsed) {}

  /// Starts the next packet of the frame, with what it inherits from the one before.
  DecodedPacket& begin(const DecodedPacket& before) noexcept {
    DecodedPacket& packet = packets[count];
    packet = blank;
    packet.timestamp_ns = before.timestamp_ns;
    packet.number = before.number;
    packet.frame = before.frame;
    packet.link_type = before.link_type;
    return packet;
  }

  bool begin_plain(PacketView frame, std::uint64_t number) noexcept;
  const DecodedPacket& begin_frame(PacketView frame, std::uint64_t number) noexcept;
  void add(PacketDecoding& decoded) noexcept;
  bool decode_tunnelled(PacketDecoding& outer, PacketDecoding& inner) noexcept;
  void add_reassembled(PacketDecoding& outer) noexcept;
  void judge_frame() noexcept;

  /// A buffer for a reassembled datagram; empty if it could not be allocated.
  std::span<std::uint8_t> next_room() noexcept {
    if (rooms_used == rooms.size()) {
      try {
        rooms.push_back(std::make_unique<Room>());
      } catch (const std::bad_alloc&) {
        return {};
      }
    }
    return *rooms[rooms_used];
  }

  TrackerCounters& counters;
  IpReassembly reassembly;
  TunnelPorts ports;
  unsigned most_tunnels;
  bool verify_checksums;
  bool refuse_undecodable;
  bool shortcuts;
  bool frames_are_parsed;

  /// The initial value of packets. Copying it is faster than zeroing, for which GCC uses `rep stos`.
  DecodedPacket blank;
  // Each packet of a frame enters a layer. Contradicting fragments yield some more.
  static constexpr std::size_t kMostPackets = IpReassembly::kMostDatagrams + 4 * PacketDecoding::kMostLayers;
  std::array<DecodedPacket, kMostPackets> packets;
  std::size_t count = 0;
  std::optional<PacketDecoding> outermost;  // of the frame, unless the fast path decoded it
  bool is_plain = false;

  // Buffers for the datagrams that this frame completes. They can be nested, so each has its own; kMostPackets at most.
  using Room = std::array<std::uint8_t, IpReassembly::kMostBytes>;
  std::vector<std::unique_ptr<Room>> rooms;
  std::size_t rooms_used = 0;

  struct Completed {
    std::size_t fragment;  // in `packets`
    std::uint32_t id;
  };
  std::array<Completed, kMostPackets> completed{};  // of the frame
  std::size_t completed_count = 0;
};

bool Decoder::Parts::decode_tunnelled(PacketDecoding& outer, PacketDecoding& inner) noexcept {
  if (outer.packet.tunnel_depth == most_tunnels || outer.layers + 1 >= PacketDecoding::kMostLayers) {
    outer.packet.undecodable = true;
    outer.wrong(decode_event("too_many_layers"));
    return false;
  }
  inner.layers = outer.layers + 1;
  inner.packet.wrong_ip_checksum = outer.packet.wrong_ip_checksum;
  inner.packet.tunnel_depth = static_cast<std::uint8_t>(outer.packet.tunnel_depth + 1);
  if (!decode_carried(inner, outer.carried)) {
    if (!outer.carried.guessed) outer.packet.undecodable = true;
    return false;
  }
  // A false guess must not hide the outer payload from inspection.
  outer.packet.carries_packet = !outer.carried.guessed && is_understood(inner);
  ++counters.tunnelled;
  return true;
}

/// Adds the datagrams that the fragment completes: more than one if fragments contradict each other.
void Decoder::Parts::add_reassembled(PacketDecoding& outer) noexcept {
  if (verify_checksums && outer.packet.wrong_ip_checksum) return;
  reassembly.add(outer.fragment, outer.packet);
  std::array<Bytes, IpReassembly::kMostDatagrams> datagrams;
  std::size_t made = 0;
  while (made < datagrams.size()) {
    if (rooms_used == kMostPackets || count + made == kMostPackets) {
      ++counters.contested_fragments_given_up;
      break;
    }
    datagrams[made] = reassembly.next(outer.packet, next_room());
    if (datagrams[made].empty()) break;
    ++rooms_used;
    ++made;
  }
  if (made > 0) completed[completed_count++] = {count - 1, outer.fragment.id};
  for (std::size_t i = 0; i < made; ++i) {
    if (count == kMostPackets) {  // the payloads of the previous ones used up all entries
      ++counters.contested_fragments_given_up;
      return;
    }
    PacketDecoding inner(begin(packets[0]), ports);
    inner.layers = outer.layers;
    inner.packet.tunnel_depth = outer.packet.tunnel_depth;
    inner.packet.vlan_ids = outer.packet.vlan_ids;
    inner.packet.vlan_count = outer.packet.vlan_count;
    inner.packet.reassembled = true;
    const bool is_one =
        outer.packet.ip_version == 4 ? decode_ipv4(inner, datagrams[i]) : decode_ipv6(inner, datagrams[i]);
    if (is_one) {
      add(inner);
    } else {
      outer.packet.undecodable = true;
    }
  }
}

/// Fast path for most frames: TCP over IP over Ethernet, with nothing to report as a decode event. The result is the
/// same as that of the layers' decoders. False, with nothing changed, for any other frame.
bool Decoder::Parts::begin_plain(PacketView frame, std::uint64_t number) noexcept {
  constexpr std::uint16_t kFlags =
      PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader | PacketLayout::kPorts;  // and no others
  const PacketLayout layout = frames_are_parsed ? frame.layout() : layout_of(frame);
  if (layout.flags != kFlags || layout.transport != ip_protocol::kTcp || layout.vlan_count != 0 ||
      frame.packet->link_type != LinkType::ethernet) {
    return false;
  }
  const Bytes bytes{frame.frame, frame.length()};
  const Bytes ip_packet = bytes.first(layout.end).subspan(layout.network_offset);
  const std::uint32_t ip_header = layout.transport_offset - layout.network_offset;
  const Bytes segment = ip_packet.subspan(ip_header);
  const Bytes tcp_header = segment.first(layout.payload_offset - layout.transport_offset);
  const bool v4 = layout.network == NetworkLayer::ipv4;
  if (v4 && checksum(ip_packet.data(), ip_header) != 0) return false;
  if (tcp_header.size() != sizeof(TcpHeader) && !has_timestamps_alone(tcp_header)) return false;

  rooms_used = completed_count = 0;
  count = 1;
  ++counters.packets;
  DecodedPacket& packet = packets[0];
  packet = blank;
  packet.timestamp_ns = frame.packet->timestamp_ns;
  packet.number = number;
  packet.frame = bytes;
  packet.link_type = LinkType::ethernet;
  packet.ip_version = v4 ? 4 : 6;
  packet.protocol = ip_protocol::kTcp;
  const auto& ip = frame.at<Ipv4Header>(layout.network_offset);
  const auto& ip6 = frame.at<Ipv6Header>(layout.network_offset);
  const auto& tcp = frame.at<TcpHeader>(layout.transport_offset);
  packet.source = {v4 ? Ipv6Address{0, ip.source.value()} : ip6.source_address(), tcp.source_port.value()};
  packet.destination = {v4 ? Ipv6Address{0, ip.destination.value()} : ip6.destination_address(),
                        tcp.destination_port.value()};
  packet.ip = ip_packet.first(ip_header);
  packet.ip_payload = segment;
  packet.transport = tcp_header;
  packet.payload = segment.subspan(tcp_header.size());
  packet.has_flow = true;
  return true;
}

const DecodedPacket& Decoder::Parts::begin_frame(PacketView frame, std::uint64_t number) noexcept {
  is_plain = shortcuts && begin_plain(frame, number);
  if (is_plain) return packets[0];
  count = rooms_used = completed_count = 0;
  DecodedPacket known = blank;
  known.timestamp_ns = frame.packet->timestamp_ns;
  known.number = number;
  known.frame = {frame.frame, frame.packet->length};
  known.link_type = frame.packet->link_type;

  PacketDecoding& decoding = outermost.emplace(begin(known), ports);
  decode_link(decoding, known.link_type, known.frame);
  ++counters.packets;
  if (decoding.packet.ip_version == 0) ++counters.not_ip;
  return decoding.packet;
}

void Decoder::Parts::judge_frame() noexcept {
  bool understood = true;
  for (std::size_t i = 0; i < count; ++i) understood &= !packets[i].undecodable;
  if (understood) return;
  ++counters.undecodable;
  for (std::size_t i = 0; refuse_undecodable && i < count; ++i) {
    if (packets[i].refused == Refusal::none) packets[i].refused = Refusal::undecodable;
  }
}

/// Adds the packet, and decodes its payload.
void Decoder::Parts::add(PacketDecoding& decoded) noexcept {
  ++count;
  if (verify_checksums && decoded.packet.wrong_ip_checksum) ++counters.ipv4_invalid_checksums;
  if (!is_understood(decoded)) decoded.packet.undecodable = true;
  if (decoded.is_fragment) return add_reassembled(decoded);
  if (decoded.carried.layer == Carried::Layer::none || count == packets.size()) return;
  PacketDecoding inner(begin(packets[0]), ports);
  if (decode_tunnelled(decoded, inner)) add(inner);
}

Decoder::Decoder(const TrackerOptions& options, TrackerCounters& counters)
    : parts_(std::make_unique<Parts>(options, counters)) {}
Decoder::~Decoder() = default;

const DecodedPacket& Decoder::begin(PacketView frame, std::uint64_t number) noexcept {
  return parts_->begin_frame(frame, number);
}

DecodedPacket& Decoder::outermost() noexcept { return parts_->packets.front(); }

void Decoder::complete_to(Sink sink) noexcept {
  if (!parts_->is_plain) {
    parts_->add(*parts_->outermost);
    parts_->judge_frame();
  }
  for (std::size_t i = 0; i < parts_->count; ++i) sink.call(sink.callable, parts_->packets[i]);
}

void Decoder::refuse_completed() noexcept {
  for (std::size_t i = 0; i < parts_->completed_count; ++i) {
    const Parts::Completed& datagram = parts_->completed[i];
    parts_->reassembly.refuse(datagram.id, parts_->packets[datagram.fragment]);
  }
}

void Decoder::expire(std::uint64_t now_ns) noexcept { parts_->reassembly.expire(now_ns); }

}  // namespace penstock::stack
