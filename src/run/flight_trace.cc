// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/flight_trace.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ring/lane.h"
#include "run/flight.h"

namespace penstock::run {

namespace {

/// A packet on the device: what the host has of it, with what the picture shows. Only headers may have crossed.
class DevicePacket {
 public:
  explicit DevicePacket(PacketView on_host)
      : bytes_(on_host.frame, on_host.frame + on_host.length()), descriptor_(*on_host.packet) {}

  void show(const ring::Picture& picture) {
    const PacketDescriptor& seen = *picture.packet;
    descriptor_.length = seen.length;
    descriptor_.wire_length = seen.wire_length;
    descriptor_.flow_hash = seen.flow_hash;
    descriptor_.mark = seen.mark;
    descriptor_.verdict = seen.verdict;
    descriptor_.layout = seen.layout;
    bytes_.resize(seen.length);
    const std::size_t shown = std::min<std::size_t>(picture.bytes.size(), seen.length);
    if (shown > 0) std::memcpy(bytes_.data(), picture.bytes.data(), shown);
  }
  [[nodiscard]] PacketView view() { return {bytes_.data(), &descriptor_}; }

 private:
  std::vector<std::uint8_t> bytes_;
  PacketDescriptor descriptor_;
};

}  // namespace

void FlightTrace::begin(const Chain& chain, const std::shared_ptr<Trace::Session>& trace, Batch& batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PacketView packet = batch.view(i);
    if (packets_.size() == ring::kMostPictured) {
      trace->miss(packet);
    } else if (auto way = TracedWay::begin(chain, trace, packet)) {
      packets_.push_back(static_cast<std::uint32_t>(i));
      ways_.push_back(std::move(*way));
    }
  }
  of_device_.assign(packets_.size(), Verdict::punt());
}

TracedWay* FlightTrace::way_of(std::size_t packet) noexcept {
  const auto found = std::ranges::lower_bound(packets_, packet);
  return found == packets_.end() || *found != packet ? nullptr
                                                     : &ways_[static_cast<std::size_t>(found - packets_.begin())];
}

void FlightTrace::add_segment(const Flight& flight, const Chain& chain, std::span<const function::NfTraits> traits) {
  const ring::Lane& lane = *flight.lane->lane;
  const std::vector<ring::SegmentShape::Stage>& stages = flight.shape().stages;
  for (std::size_t n = 0; n < packets_.size(); ++n) {
    of_device_[n] = Verdict::punt();
    if (!lane.picture(0, n).packet->verdict.alive()) continue;  // it ended before, or takes another way
    DevicePacket before(flight.view(packets_[n]));
    before.show(lane.picture(0, n));
    for (std::size_t s = 0; s < stages.size() && before.view().packet->verdict.alive(); ++s) {
      const std::size_t f = stages[s].function;
      DevicePacket after = before;
      after.show(lane.picture(s + 1, n));
      ways_[n].add_device_step(traits[f], *flight.epoch->twins[f], chain.functions[f].name, flight.current().processor,
                               before.view(), after.view());
      before = std::move(after);
    }
    of_device_[n] = before.view().packet->verdict;
  }
}

void FlightTrace::add_settlement(const Flight& flight, const Chain& chain, std::span<const function::NfTraits> traits) {
  for (std::size_t n = 0; n < packets_.size(); ++n) {
    const Verdict decided = flight.batch->packets()[packets_[n]].verdict;
    if (of_device_[n].kind == VerdictKind::punt || decided.alive() || decided == of_device_[n]) continue;
    ways_[n].change_decision(traits[decided.nf], chain.functions[decided.nf].name, decided);
  }
}

void FlightTrace::before_sending(const Flight& flight) {
  reach_the_end_.clear();
  for (const std::uint32_t packet : packets_) reach_the_end_.push_back(flight.batch->packets()[packet].verdict.alive());
}

void FlightTrace::end(const Flight& flight) {
  for (std::size_t n = 0; n < packets_.size(); ++n) ways_[n].end(flight.view(packets_[n]), reach_the_end_[n]);
  clear();
}

}  // namespace penstock::run
