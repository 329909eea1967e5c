// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/nids_stage.h"

#include <algorithm>

namespace penstock::nids {

namespace {

const PacketLiterals& literals_of(const std::byte* found) noexcept {
  return *reinterpret_cast<const PacketLiterals*>(found);
}

InspectorOptions with_profile(InspectorOptions options, WorkerCounts& counts) noexcept {
  options.profile = counts.profile;
  return options;
}

}  // namespace

NidsStage::NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings,
                     const stack::TrackerOptions& tracker_options, WorkerCounts& counts)
    : counts_(counts),
      literals_tell_all_(!tracker_options.keep_flows && !tracker_options.refuse_undecodable &&
                         detection.literals_select_all()),
      writer_(settings.eve_log, settings.fast_log, settings.eve, detection.rules().rules, counts.alerts_by_rule,
              counts.alert_frames ? &*counts.alert_frames : nullptr),
      inspector_(detection, hosts, writer_, with_profile(settings.inspector, counts)),
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
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i % stack::Tracker::kMostPrefetched == 0) tracker_.prefetch(packets.subspan(i));
    inspect(packets[i], {});
  }
}

void NidsStage::observe(PacketView packet) noexcept {
  inspector_.begin_frame();
  tracker_.observe(packet, frame_numbers_.of(*packet.packet), inspector_);
  if (inspector_.frame_dropped()) tracker_.refuse_frame();  // what of its datagram comes here is dropped
}

void NidsStage::process(std::span<const PacketView> packets, std::span<const std::byte* const> found) noexcept {
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i % stack::Tracker::kMostPrefetched == 0) tracker_.prefetch(packets.subspan(i));
    const PacketLiterals& literals = literals_of(found[i]);
    ++numbers_.scanned_on_gpu;
    if (clear(literals)) {
      pass(packets[i]);
    } else {
      inspect(packets[i], {literals.complete(), literals.list()});
    }
  }
}

std::size_t NidsStage::choose(std::span<const PacketView> packets, std::span<const std::byte* const> found,
                              std::span<std::uint8_t> chosen) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (clear(literals_of(found[i]))) {
      pass(packets[i]);
    } else {
      chosen[count++] = static_cast<std::uint8_t>(i);
    }
  }
  numbers_.scanned_on_gpu += packets.size() - count;
  return count;
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

std::size_t NidsFinishStage::choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                                    std::span<std::uint8_t> chosen) noexcept {
  return twin_.choose(packets, findings, chosen);
}

void NidsStage::publish() noexcept {
  numbers_.tracker = tracker_.counters();
  numbers_.inspector = inspector_.counters();
  counts_.numbers.publish(numbers_);
}

}  // namespace penstock::nids
