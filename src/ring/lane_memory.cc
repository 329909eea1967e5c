// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/lane_memory.h"

#include <algorithm>

#include "ring/lent_runs.h"

namespace penstock::ring {

namespace {

constexpr std::size_t kPartAlignment = 4096;  // parts of different segments share no page

constexpr std::size_t aligned8(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }
constexpr std::size_t aligned_part(std::size_t bytes) noexcept {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

void ResultPlaces::lay_out(const SegmentShape& shape, std::size_t packets) {
  findings.clear();  // keeps the capacity
  lengths.clear();
  bytes = aligned8(packets * kVerdictBytes);
  for (const SegmentShape::Stage& stage : shape.stages) {
    findings.push_back(bytes);
    bytes += aligned8(packets * stage.findings_bytes);
    lengths.push_back(bytes);
    if (stage.changes_shape) bytes += aligned8(packets * kLengthBytes);
  }
}

std::size_t state_place(const SegmentShape& segment, std::size_t stage, std::size_t packets) noexcept {
  std::size_t place = 0;
  for (std::size_t s = 0; s < stage; ++s) place += aligned8(packets * segment.stages[s].state_bytes);
  return place;
}

LaneSizes::LaneSizes(const LaneShape& shape) {
  const std::size_t packets = shape.batch_packets;
  frames = std::max(shape.sent_bytes, shape.batch_bytes);
  // Lent frames need not be aligned, and may come with gaps.
  sent = LentRuns::with_gaps(frames + packets * kFrameAlignment);
  room = packets * (aligned_frame(shape.room.head) + aligned_frame(shape.room.tail));
  std::size_t most_changes = 0;
  ResultPlaces places;
  for (const SegmentShape& segment : shape.segments) {
    most_changes = std::max(most_changes, aligned8(packets * kVerdictBytes) + packets * segment.up.bytes);
    places.lay_out(segment, packets);
    results = std::max(results, places.bytes);
    states = std::max(states, state_place(segment, segment.stages.size(), packets));
    headers_up |= segment.sends_packets && !segment.frames_up;
    const std::size_t of_segment =
        aligned_frame(packets * segment.down.bytes) + (segment.frames_down ? frames + room : 0);
    packed_most = std::max(packed_most, of_segment);
    packed_places.push_back(packed);
    packed += aligned_part(of_segment);
  }
  if (shape.segments.size() > 1 || shape.segments.front().verdicts_up) changes = most_changes;
  constexpr std::size_t kOfPacket = sizeof(PacketDescriptor) + kIndexBytes + 4 * sizeof(std::uint32_t) + 128;
  constexpr std::size_t kSlack = std::size_t{256} << 10;
  std::size_t most_stages = 0;
  for (const SegmentShape& segment : shape.segments) most_stages = std::max(most_stages, segment.stages.size());
  constexpr std::size_t kOfPacketOnHost = kIndexBytes + sizeof(std::uint32_t) + kHeaderBytes;
  constexpr std::size_t kOfPicture = sizeof(PacketDescriptor) + kPictureBytes;
  on_host = packets * kOfPacketOnHost + changes + (most_stages + 1) * kMostPictured * kOfPicture;
  on_device = 2 * sent + room + packets * kOfPacket + results + packed_most + changes + states + kSlack;
}

}  // namespace penstock::ring
