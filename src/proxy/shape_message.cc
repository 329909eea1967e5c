// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/shape_message.h"

#include <fmt/format.h>

#include <utility>

#include "packet/field.h"
#include "proxy/problem.h"
#include "ring/lane_memory.h"

namespace penstock::proxy {

namespace {

constexpr std::size_t kMostBatchBytes = std::size_t{1} << 30;
constexpr std::size_t kMostBatchPackets = std::size_t{1} << 17;  // their thread checks them in one go
constexpr std::uint32_t kMostRoom = 4096;
constexpr std::size_t kMostAddressed = (std::size_t{4} << 30) - (1 << 20);  // positions on a device have 32 bits
constexpr std::uint32_t kMostPerPacket = 4096;                              // findings or states

std::uint64_t fields_of(const ring::RecordLayout& record) {
  FieldSet fields;
  for (std::uint32_t i = 0; i < record.count; ++i) fields |= FieldSet{record.places[i].field};
  return fields.bits();
}

Result<ring::RecordLayout> record_of(std::uint64_t bits) {
  if ((bits & ~FieldSet::all().bits()) != 0)
    return failure(problem("a lane: unknown fields of a record", fmt::format("{:#x}", bits), ""));
  FieldSet fields;
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if ((bits >> f & 1) != 0) fields |= FieldSet{static_cast<Field>(f)};
  }
  const auto record = ring::record_layout(fields);
  if (!record || fields_of(*record) != bits)
    return failure(
        problem("a lane: fields that no record can carry", fmt::format("{:#x}", bits), "fields of fixed length"));
  return *record;
}

bool is_flag(std::uint8_t value) { return value <= 1; }

}  // namespace

Result<MakeLane> to_message(const ring::LaneShape& shape) {
  MakeLane message;
  message.batch_bytes = shape.batch_bytes;
  message.batch_packets = shape.batch_packets;
  message.sent_bytes = shape.sent_bytes;
  message.head = shape.room.head;
  message.tail = shape.room.tail;
  message.crossing = static_cast<std::uint32_t>(shape.crossing);
  message.hash_flows = shape.hash_flows ? 1 : 0;
  message.collects_from = static_cast<std::uint32_t>(shape.collects_from);
  message.segments = static_cast<std::uint32_t>(shape.segments.size());
  if (shape.segments.size() > kMostSegments)
    return failure(problem("a lane: too many segments", std::to_string(shape.segments.size()),
                           fmt::format("at most {}", kMostSegments)));
  std::size_t stages = 0;
  for (std::size_t s = 0; s < shape.segments.size(); ++s) {
    const ring::SegmentShape& from = shape.segments[s];
    SegmentMessage& to = message.segment[s];
    to.sends_packets = from.sends_packets ? 1 : 0;
    to.parses = from.parses ? 1 : 0;
    to.frames_up = from.frames_up ? 1 : 0;
    to.verdicts_up = from.verdicts_up ? 1 : 0;
    to.frames_down = from.frames_down ? 1 : 0;
    to.up_fields = fields_of(from.up);
    to.down_fields = fields_of(from.down);
    to.stages = static_cast<std::uint32_t>(from.stages.size());
    stages += from.stages.size();
    if (from.stages.size() > kMostStages || stages > kMostLaneStages)
      return failure(problem("a lane: too many stages", std::to_string(stages),
                             fmt::format("at most {} in a segment, {} in all", kMostStages, kMostLaneStages)));
    for (std::size_t i = 0; i < from.stages.size(); ++i) {
      const ring::SegmentShape::Stage& stage = from.stages[i];
      to.stage[i] = {stage.function, static_cast<std::uint8_t>(stage.changes_shape ? 1 : 0), 0, stage.findings_bytes,
                     stage.state_bytes};
    }
  }
  return message;
}

Result<ring::LaneShape> to_shape(const MakeLane& message) {
  const auto beyond = [](std::string_view what, std::uint64_t found, std::string expected) {
    return failure(problem(fmt::format("a lane: wrong {}", what), std::to_string(found), std::move(expected)));
  };
  if (message.batch_bytes == 0 || message.batch_bytes > kMostBatchBytes || message.batch_bytes % kFrameAlignment != 0)
    return beyond("size of batches", message.batch_bytes, fmt::format("a multiple of 16 up to {}", kMostBatchBytes));
  if (message.batch_packets == 0 || message.batch_packets > kMostBatchPackets)
    return beyond("number of packets", message.batch_packets, fmt::format("1..{}", kMostBatchPackets));
  if (message.sent_bytes > 2 * kMostBatchBytes)
    return beyond("size of what is sent", message.sent_bytes, fmt::format("at most {}", 2 * kMostBatchBytes));
  if (message.head > kMostRoom || message.tail > kMostRoom)
    return beyond("room of frames", std::max(message.head, message.tail), fmt::format("at most {}", kMostRoom));
  if (message.crossing > static_cast<std::uint32_t>(ring::Crossing::by_size))
    return beyond("way to cross PCIe", message.crossing, "0..2");
  if (message.segments == 0 || message.segments > kMostSegments)
    return beyond("number of segments", message.segments, fmt::format("1..{}", kMostSegments));
  if (!is_flag(message.hash_flows)) return beyond("flag", message.hash_flows, "0 or 1");
  if (message.collects_from > ring::kCollectBytes)
    return beyond("size from which launches are collected", message.collects_from,
                  fmt::format("at most {}", ring::kCollectBytes));
  ring::LaneShape shape;
  shape.batch_bytes = message.batch_bytes;
  shape.batch_packets = message.batch_packets;
  shape.sent_bytes = message.sent_bytes;
  shape.room = {message.head, message.tail};
  shape.crossing = static_cast<ring::Crossing>(message.crossing);
  shape.hash_flows = message.hash_flows != 0;
  shape.collects_from = message.collects_from;
  std::size_t stages = 0;
  bool whole = false;  // frames are on the device, not only their headers
  for (std::uint32_t s = 0; s < message.segments; ++s) {
    const SegmentMessage& from = message.segment[s];
    ring::SegmentShape& to = shape.segments.emplace_back();
    for (const std::uint8_t flag :
         {from.sends_packets, from.parses, from.frames_up, from.verdicts_up, from.frames_down}) {
      if (!is_flag(flag)) return beyond("flag", flag, "0 or 1");
    }
    to.sends_packets = from.sends_packets != 0;
    to.parses = from.parses != 0;
    to.frames_up = from.frames_up != 0;
    to.verdicts_up = from.verdicts_up != 0;
    to.frames_down = from.frames_down != 0;
    if (s == 0 && !to.sends_packets) return beyond("first segment", 0, "one that sends packets");
    // Positions of headers that were found in another frame would lead out of this one.
    if (to.sends_packets && !to.parses) return beyond("segment without parsing", s, "one that parses what it sends");
    if (to.sends_packets) whole = to.frames_up;
    // The device would pack what is behind the headers: memory of others.
    if (to.frames_down && !whole) return beyond("frames that return", s, "whole frames that were sent");
    if (s > 0 && !to.verdicts_up) return beyond("later segment without verdicts", s, "one that sends verdicts");
    auto up = record_of(from.up_fields);
    auto down = record_of(from.down_fields);
    if (!up) return failure(std::move(up.error()));
    if (!down) return failure(std::move(down.error()));
    to.up = *up;
    to.down = *down;
    stages += from.stages;
    if (from.stages == 0 || from.stages > kMostStages || stages > kMostLaneStages)
      return beyond("number of stages", from.stages, fmt::format("1..{}, {} in all", kMostStages, kMostLaneStages));
    for (std::uint32_t i = 0; i < from.stages; ++i) {
      const StageShape& stage = from.stage[i];
      if (stage.findings_bytes > kMostPerPacket || stage.state_bytes > kMostPerPacket || stage.state_bytes % 8 != 0 ||
          !is_flag(stage.changes_shape))
        return beyond("findings or states of a stage", std::max(stage.findings_bytes, stage.state_bytes),
                      fmt::format("at most {}, states in multiples of 8", kMostPerPacket));
      if (stage.changes_shape != 0 && !whole) return beyond("stage that changes lengths", i, "whole frames for it");
      to.stages.push_back({stage.function, stage.findings_bytes, stage.changes_shape != 0, stage.state_bytes});
    }
  }
  const ring::LaneSizes sizes(shape);
  if (sizes.sent + sizes.room > kMostAddressed)
    return beyond("size of frames with their room", sizes.sent + sizes.room, fmt::format("at most {}", kMostAddressed));
  return shape;
}

}  // namespace penstock::proxy
