// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/nids_stage.h"

#include <algorithm>

namespace penstock::nids {

NidsStage::NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings,
                     const stack::TrackerOptions& tracker_options, WorkerCounts& counts)
    : counts_(counts),
      drops_(settings.inspector.drops),
      writer_(settings.eve_log, settings.fast_log, settings.eve, detection.rules().rules, counts.alerts_by_rule),
      inspector_(detection, hosts, writer_, settings.inspector),
      tracker_(tracker_options) {}

NidsStage::~NidsStage() {
  inspector_.begin_frame();
  tracker_.finish(inspector_);
  publish();
}

void NidsStage::begin_batch() noexcept {
  publish();
  writer_.flush_if_due(report::EventLog::Clock::now());
}

void NidsStage::process(std::span<PacketView> packets) noexcept {
  for (PacketView& packet : packets) {
    numbers_.frame_bytes += packet.length();
    numbers_.last_ns = std::max(numbers_.last_ns, packet.packet->timestamp_ns);
    inspector_.begin_frame();
    tracker_.track(packet, frame_numbers_.of(*packet.packet), inspector_);
    if (drops_ && inspector_.frame_dropped()) packet.packet->verdict = Verdict::drop(Reason::rule);
  }
}

void NidsStage::publish() noexcept {
  numbers_.tracker = tracker_.counters();
  numbers_.inspector = inspector_.counters();
  counts_.numbers.publish(numbers_);
}

}  // namespace penstock::nids
