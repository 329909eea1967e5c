// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Holds a stage to its declared access: what it does not read may be anything, and what it does not write stays. A
// field that it writes into some packets only must be among those it reads, or its old value would show. The layout is
// there for those that read all the fields that it comes from.

#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "function/network_function.h"
#include "packet/field_range.h"
#include "packet/field_text.h"
#include "property/random_packets.h"

namespace penstock::property {

inline void scramble(Packet& packet, FieldSet fields, RandomPackets& random) {
  PacketDescriptor& p = packet.descriptor;
  for (unsigned f = 0; f < kByteFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (!fields.has(field)) continue;
    const FieldRange range = field_range(field, p.layout, p.link_type, p.length);
    for (std::uint32_t i = 0; i < range.length; ++i) {
      packet.bytes[range.offset + i] = static_cast<std::uint8_t>(random.word());
    }
  }
  if (fields.has(Field::wire_length)) p.wire_length = p.length + random.word() % 1000;
  if (fields.has(Field::timestamp)) p.timestamp_ns = random.word();
  if (fields.has(Field::in_port)) p.in_port = static_cast<PortIndex>(random.below(3));
  if (fields.has(Field::mark)) p.mark = random.word();
  if (fields.has(Field::flow_hash)) p.flow_hash = random.word();
  if (fields.has(Field::verdict)) {
    p.verdict = Verdict::forward(random.one_in(2) ? kNoPort : static_cast<PortIndex>(random.below(3)));
  }
}

/// Takes from the packet what parsing found by fields that are not read: then the frame is bytes of no known kind.
inline void withhold_layout(Packet& packet, FieldSet reads) {
  PacketLayout& layout = packet.descriptor.layout;
  if (!(kParsedFields - reads).empty()) {
    layout = {};
    layout.end = packet.descriptor.length;
  } else if (!(kTunnelFields - reads).empty()) {
    layout.tunnel = Tunnel::none;
    layout.inner_offset = 0;
  }
}

/// Whether the two packets, of one layout, have the same value in `field`.
inline bool same(Field field, const Packet& a, const Packet& b) {
  const PacketDescriptor& p = a.descriptor;
  const PacketDescriptor& q = b.descriptor;
  switch (field) {
    case Field::frame_shape: return p.length == q.length && p.offset == q.offset;
    case Field::wire_length: return p.wire_length == q.wire_length;
    case Field::timestamp: return p.timestamp_ns == q.timestamp_ns;
    case Field::in_port: return p.in_port == q.in_port;
    case Field::verdict: return p.verdict == q.verdict;
    case Field::mark: return p.mark == q.mark;
    case Field::flow_hash: return p.flow_hash == q.flow_hash;
    default: break;
  }
  const FieldRange range = field_range(field, p.layout, p.link_type, p.length);
  return std::equal(a.bytes.begin() + range.offset, a.bytes.begin() + range.offset + range.length,
                    b.bytes.begin() + range.offset);
}

inline std::string described(Packet& packet) {
  std::string hex;
  for (const std::uint8_t byte : packet.bytes) hex += fmt::format("{:02x}", byte);
  return fmt::format("{} (link type {}, in port {}, {} of {} bytes: {})", format_packet(packet.view()),
                     static_cast<int>(packet.descriptor.link_type), packet.descriptor.in_port, packet.descriptor.length,
                     packet.descriptor.wire_length, hex);
}

/// What the stage does with `packets` against its access, or nothing. The packets come out processed.
inline std::optional<std::string> violation(function::CpuStage& stage, Access access, std::vector<Packet>& packets,
                                            RandomPackets& random) {
  if (access.writes.has(Field::frame_shape)) return "this check knows no functions that change lengths";
  const std::vector<Packet> before = packets;
  std::vector<Packet> others = packets;
  for (Packet& packet : others) {
    scramble(packet, FieldSet::all() - access.reads, random);
    withhold_layout(packet, access.reads);
  }
  std::vector<Packet> others_before = others;
  for (std::vector<Packet>* batch : {&packets, &others}) {
    std::vector<PacketView> views;
    for (Packet& packet : *batch) views.push_back(packet.view());
    stage.begin_batch();
    stage.process(views);
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (views[i].frame != (*batch)[i].bytes.data() || views[i].packet != &(*batch)[i].descriptor)
        return "moved a frame";
    }
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Packet original = before[i];
    if (!(packets[i].descriptor.layout == original.descriptor.layout) ||
        !(others[i].descriptor.layout == others_before[i].descriptor.layout)) {
      return "changed the layout of " + described(original);
    }
    // The fields lie where they did, whatever the stage was told of it.
    others[i].descriptor.layout = others_before[i].descriptor.layout = original.descriptor.layout;
    for (unsigned f = 0; f < kFieldCount; ++f) {
      const auto field = static_cast<Field>(f);
      if (access.writes.has(field)) {
        if (!same(field, packets[i], others[i])) {
          return fmt::format("{} comes out as {} or as {}, by fields that it does not read: {}\nand {}", name(field),
                             format_field(field, packets[i].view()), format_field(field, others[i].view()),
                             described(original), described(others[i]));
        }
      } else if (!same(field, packets[i], before[i]) || !same(field, others[i], others_before[i])) {
        return fmt::format("{} changes, and is not among what it writes: {}", name(field), described(original));
      }
    }
  }
  return std::nullopt;
}

}  // namespace penstock::property
