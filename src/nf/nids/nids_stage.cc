// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/nids_stage.h"

#include <algorithm>

#include "nf/nids/match/packet_literals.h"

namespace penstock::nids {

NidsStage::NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings,
                     const stack::TrackerOptions& tracker_options, WorkerCounts& counts)
    : counts_(counts),
      literals_tell_all_(!tracker_options.keep_flows && detection.literals_select_all()),
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
  for (const PacketView& packet : packets) inspect(packet, {});
}

void NidsStage::process(std::span<const PacketView> packets, std::span<const std::byte* const> found) noexcept {
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const auto& literals = *reinterpret_cast<const PacketLiterals*>(found[i]);
    ++numbers_.scanned_on_gpu;
    if (literals_tell_all_ && literals.complete() && literals.count == 0 &&
        (literals.flags & PacketLiterals::kPayload) != 0) {
      ++numbers_.clear;
      numbers_.frame_bytes += packets[i].length();
      static_cast<void>(frame_numbers_.of(*packets[i].packet));
      continue;
    }
    inspect(packets[i], {literals.complete(), literals.list()});
  }
}

void NidsStage::inspect(PacketView packet, FoundLiterals found) noexcept {
  numbers_.frame_bytes += packet.length();
  numbers_.last_ns = std::max(numbers_.last_ns, packet.packet->timestamp_ns);
  inspector_.begin_frame(found);
  tracker_.track(packet, frame_numbers_.of(*packet.packet), inspector_);
  if (const std::optional<DropReason> reason = inspector_.frame_dropped()) {
    packet.packet->verdict = Verdict::drop(*reason);
    tracker_.refuse_frame();
  }
}

void NidsFinishStage::finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept {
  twin_.process(packets, findings);
}

void NidsStage::publish() noexcept {
  numbers_.tracker = tracker_.counters();
  numbers_.inspector = inspector_.counters();
  counts_.numbers.publish(numbers_);
}

}  // namespace penstock::nids
