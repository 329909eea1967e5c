// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/decoder.h"

#include <array>
#include <new>
#include <vector>

#include "stack/ip_reassembly.h"
#include "stack/packet_decoding.h"

namespace penstock::stack {

struct Decoder::Parts {
  Parts(const TrackerOptions& options, TrackerCounters& told)
      : counters(told),
        reassembly(options, told),
        most_tunnels(options.most_tunnels),
        verify_checksums(options.verify_checksums) {}

  /// The packet that comes next in the frame, of which at least the time and the place are known.
  DecodedPacket& begin(const DecodedPacket& before) noexcept {
    DecodedPacket& packet = packets[count];
    packet = {};
    packet.timestamp_ns = before.timestamp_ns;
    packet.number = before.number;
    packet.frame = before.frame;
    packet.link_type = before.link_type;
    return packet;
  }

  void decode_frame(PacketView frame, std::uint64_t number) noexcept;
  void add(PacketDecoding& decoded) noexcept;
  bool decode_tunnelled(PacketDecoding& outer, PacketDecoding& inner) noexcept;
  bool decode_reassembled(PacketDecoding& outer, PacketDecoding& inner) noexcept;

  /// Empty where the system has no memory for one.
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
  unsigned most_tunnels;
  bool verify_checksums;

  // Each packet of a frame enters a layer.
  std::array<DecodedPacket, PacketDecoding::kMostLayers + 1> packets;
  std::size_t count = 0;

  // Datagrams of this frame that were put together: one in another, each has a room of its own.
  using Room = std::array<std::uint8_t, IpReassembly::kMostBytes>;
  std::vector<std::unique_ptr<Room>> rooms;
  std::size_t rooms_used = 0;

  struct Completed {
    std::size_t fragment;  // in `packets`
    std::uint32_t id;
  };
  std::array<Completed, PacketDecoding::kMostLayers> completed{};  // of the frame: each enters a layer
  std::size_t completed_count = 0;
};

bool Decoder::Parts::decode_tunnelled(PacketDecoding& outer, PacketDecoding& inner) noexcept {
  if (outer.packet.tunnel_depth == most_tunnels || outer.layers + 1 >= PacketDecoding::kMostLayers) {
    outer.wrong(decode_event("too_many_layers"));
    return false;
  }
  inner.layers = outer.layers + 1;
  inner.packet.wrong_ip_checksum = outer.packet.wrong_ip_checksum;
  inner.packet.tunnel_depth = static_cast<std::uint8_t>(outer.packet.tunnel_depth + 1);
  if (!decode_carried(inner, outer.carried)) return false;
  outer.packet.carries_packet = true;
  ++counters.tunnelled;
  return true;
}

bool Decoder::Parts::decode_reassembled(PacketDecoding& outer, PacketDecoding& inner) noexcept {
  if (verify_checksums && outer.packet.wrong_ip_checksum) return false;
  const Bytes datagram = reassembly.add(outer.fragment, outer.packet, next_room());
  if (datagram.empty()) return false;
  ++rooms_used;
  completed[completed_count++] = {count - 1, outer.fragment.id};
  inner.layers = outer.layers;
  inner.packet.tunnel_depth = outer.packet.tunnel_depth;
  inner.packet.vlan_ids = outer.packet.vlan_ids;
  inner.packet.vlan_count = outer.packet.vlan_count;
  inner.packet.reassembled = true;
  return outer.packet.ip_version == 4 ? decode_ipv4(inner, datagram) : decode_ipv6(inner, datagram);
}

void Decoder::Parts::decode_frame(PacketView frame, std::uint64_t number) noexcept {
  count = rooms_used = completed_count = 0;
  DecodedPacket known;
  known.timestamp_ns = frame.packet->timestamp_ns;
  known.number = number;
  known.frame = {frame.frame, frame.packet->length};
  known.link_type = frame.packet->link_type;

  PacketDecoding decoding(begin(known));
  decode_link(decoding, known.link_type, known.frame);
  ++counters.packets;
  if (decoding.packet.ip_version == 0) ++counters.not_ip;
  add(decoding);
}

/// Keeps the packet, and decodes what it carries: one packet at most, as a fragment is no tunnel and a tunnel no
/// fragment.
void Decoder::Parts::add(PacketDecoding& decoded) noexcept {
  ++count;
  if (verify_checksums && decoded.packet.wrong_ip_checksum) ++counters.ipv4_invalid_checksums;
  if (!decoded.is_fragment && decoded.carried.layer == Carried::Layer::none) return;
  PacketDecoding inner(begin(packets[0]));
  if (decoded.is_fragment ? decode_reassembled(decoded, inner) : decode_tunnelled(decoded, inner)) add(inner);
}

Decoder::Decoder(const TrackerOptions& options, TrackerCounters& counters)
    : parts_(std::make_unique<Parts>(options, counters)) {}
Decoder::~Decoder() = default;

void Decoder::decode_to(PacketView frame, std::uint64_t number, Sink sink) noexcept {
  parts_->decode_frame(frame, number);
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
