// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as frames that come one after the other. Each lies in memory of just its size, so that a byte too far is
// seen; each packet's parts must lie in each other. Without shortcuts, the same packets come out.
//
// Input: link type, overlap policy; then for each frame its length (two bytes, big-endian), the milliseconds since the
// last one, and its bytes.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stack/decoder.h"

using namespace penstock;
using namespace penstock::stack;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void require_within(Bytes inner, Bytes outer) {
  require(inner.empty() ||
          (inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size()));
}

unsigned sum_of(Bytes bytes) {
  unsigned sum = 0;
  for (const std::uint8_t byte : bytes) sum += byte;
  return sum;
}

void check(const DecodedPacket& packet) {
  require(packet.vlan_count <= packet.vlan_ids.size());
  require(packet.ip_version == 0 || packet.ip_version == 4 || packet.ip_version == 6);
  if (packet.ip_version == 0) {
    require(packet.ip.empty() && packet.ip_payload.empty() && packet.transport.empty() && packet.payload.empty());
    return;
  }
  require(packet.ip.size() >= (packet.ip_version == 4 ? 20U : 40U));
  require(packet.ip.data() + packet.ip.size() == packet.ip_payload.data());
  require_within(packet.transport, packet.ip_payload);
  require_within(packet.payload, packet.ip_payload);
  if (!packet.reassembled && packet.tunnel_depth == 0) require_within(packet.ip, packet.frame);
  if (packet.transport.empty()) require(packet.payload.empty() && packet.source.port == 0);
  if (packet.fragment) require(packet.transport.empty() && !packet.has_flow);
  if (packet.is_tcp()) require(packet.transport.size() >= 20);
  // Read all bytes, so that the sanitizer finds invalid ranges.
  volatile unsigned sum = sum_of(packet.ip) + sum_of(packet.ip_payload) + sum_of(packet.transport);
  sum = sum + sum_of(packet.payload);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  TrackerOptions options;
  const auto link = static_cast<LinkType>(data[0] % 8);
  options.fragment_policy = static_cast<OverlapPolicy>(data[1] % 7);
  options.fragment_memory = 1 << 16;
  TrackerCounters counters;
  Decoder decoder(options, counters);
  TrackerCounters counters_of_it;
  options.shortcuts = false;
  Decoder the_long_way(options, counters_of_it);
  PacketDescriptor descriptor;
  descriptor.link_type = link;
  std::uint64_t frames = 0;
  for (std::size_t at = 2; at + 3 <= size;) {
    const std::size_t length = std::min(std::size_t{data[at]} << 8 | data[at + 1], size - at - 3);
    descriptor.timestamp_ns += data[at + 2] * std::uint64_t{1'000'000};
    at += 3;
    std::vector<std::uint8_t> frame;
    frame.reserve(std::max<std::size_t>(length, 1));
    frame.assign(data + at, data + at + length);
    at += length;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(length);
    std::vector<DecodedPacket> packets;
    decoder.decode({frame.data(), &descriptor}, ++frames, [&](DecodedPacket& p) noexcept { packets.push_back(p); });
    require(!packets.empty() && packets[0].tunnel_depth == 0 && !packets[0].reassembled);
    for (const DecodedPacket& packet : packets) check(packet);
    std::size_t at_packet = 0;
    the_long_way.decode({frame.data(), &descriptor}, frames, [&](DecodedPacket& p) noexcept {
      require(at_packet < packets.size());
      const DecodedPacket& one = packets[at_packet++];
      require(p.payload.size() == one.payload.size() && p.transport.size() == one.transport.size());
      require(p.source == one.source && p.destination == one.destination && p.events == one.events);
      require(p.has_flow == one.has_flow && p.undecodable == one.undecodable && p.vlan_ids == one.vlan_ids);
    });
    require(at_packet == packets.size());
  }
  require(counters.packets == frames);
  decoder.expire(~std::uint64_t{0});
  return 0;
}
