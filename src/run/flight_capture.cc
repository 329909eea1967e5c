// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/flight_capture.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ring/lane.h"

namespace penstock::run {

namespace {

constexpr std::size_t kMostFetched = 32;  // of a batch: the worker waits some ten microseconds for each

/// The frame on the device, over what the host has of it: only headers may have crossed. Empty: the device has failed.
std::vector<std::uint8_t> fetch(ring::Lane& lane, std::size_t packet, PacketView on_host,
                                PacketDescriptor& descriptor) {
  std::vector<std::uint8_t> bytes(on_host.frame, on_host.frame + on_host.length());
  PacketDescriptor seen;
  bytes.resize(std::max<std::size_t>(bytes.size(), std::size_t{64} << 10));
  if (lane.fetch(packet, seen, bytes) == 0) return {};
  descriptor.length = seen.length;
  descriptor.wire_length = seen.wire_length;
  bytes.resize(seen.length);
  return bytes;
}

}  // namespace

void capture_dropped(const Flight& flight, std::span<const function::NfTraits> traits, std::size_t function,
                     bool were_listed, Capture::Session& session) {
  const std::vector<ring::SegmentShape::Stage>& stages = flight.shape().stages;
  const auto here = std::ranges::find(stages, function, &ring::SegmentShape::Stage::function);
  if (here == stages.end()) return;
  const bool changed = std::any_of(stages.begin(), here, [&](const ring::SegmentShape::Stage& stage) {
    const Access* const access = traits[stage.function].access_on(flight.current().processor);
    return access != nullptr && changes_bytes(*access);
  });
  ring::Lane& lane = *flight.lane->lane;
  const std::span<const Verdict> of_device = lane.results().verdicts;
  std::size_t fetched = 0;
  for (std::size_t i = 0; i < flight.batch->size(); ++i) {
    PacketDescriptor descriptor = flight.batch->packets()[i];
    const Verdict verdict = descriptor.verdict;
    if (verdict.kind != VerdictKind::drop || verdict.nf != function || of_device[i].kind == VerdictKind::punt) continue;
    std::uint8_t* const frame = were_listed ? flight.frames[i] : flight.batch->view(i).frame;
    if (!changed) {
      offer_dropped(session, {frame, &descriptor});
    } else if (fetched++ < kMostFetched) {
      std::vector<std::uint8_t> bytes = fetch(lane, i, {frame, &descriptor}, descriptor);
      if (!bytes.empty()) offer_dropped(session, {bytes.data(), &descriptor});
    } else {
      session.miss({frame, &descriptor});
    }
  }
}

}  // namespace penstock::run
