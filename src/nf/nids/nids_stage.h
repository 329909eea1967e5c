// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU stage of `nids`: each frame through the worker's tracker, what comes of it through its inspector, alerts into
// the logs. When the stage ends, so do all flows, and what was left of their streams is inspected.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "function/network_function.h"
#include "nf/nids/alert/alert_writer.h"
#include "nf/nids/alert/frame_set.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/detect/rule_profile.h"
#include "nf/nids/frame_numbers.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/nids_settings.h"
#include "report/counter.h"
#include "report/published.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// What one worker counts, for others to read at any time. The function owns it.
struct WorkerCounts {
  explicit WorkerCounts(std::size_t rules) : alerts_by_rule(rules) {}

  struct Numbers {
    stack::TrackerCounters tracker;
    InspectorCounters inspector;
    std::uint64_t frame_bytes = 0;
    std::uint64_t last_ns = 0;         // the latest packet's time
    std::uint64_t scanned_on_gpu = 0;  // frames whose literals a GPU told
    std::uint64_t clear = 0;           // of these, not looked at: nothing in them selects a rule
  };
  report::Published<Numbers> numbers;
  std::vector<report::Counter> alerts_by_rule;
  std::vector<RuleProfile> profile;      // by rule; empty: not recorded
  std::optional<FrameSet> alert_frames;  // none: not recorded. To be read once the stage has ended
};

class NidsStage final : public function::CpuStage {
 public:
  /// Borrows all but the options: the settings', with what is the worker's own.
  NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings,
            const stack::TrackerOptions& tracker_options, WorkerCounts& counts);
  ~NidsStage() override;

  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override;
  void observe(PacketView packet) noexcept override;
  /// For the worker's finish stage: packets whose literals a GPU has told.
  void process(std::span<const PacketView> packets, std::span<const std::byte* const> found) noexcept;
  /// The same, ahead of them: counts those in which no rule can find anything, and chooses the others (as
  /// function::FinishStage::choose).
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> found,
                     std::span<std::uint8_t> chosen) noexcept;

 private:
  /// Whether no rule finds anything in the packet, and nothing of it is to be kept.
  [[nodiscard]] bool clear(const PacketLiterals& found) const noexcept {
    return literals_tell_all_ && found.complete() && found.count == 0 && (found.flags & PacketLiterals::kPayload) != 0;
  }
  /// One that is clear.
  void pass(PacketView packet) noexcept {
    ++numbers_.clear;
    numbers_.frame_bytes += packet.length();
    if (packet.packet->number != 0) static_cast<void>(frame_numbers_.of(*packet.packet));
  }
  void inspect(PacketView packet, FoundLiterals found) noexcept;
  void publish() noexcept;

  WorkerCounts& counts_;
  const bool literals_tell_all_;  // of a packet by itself, and packets come by themselves
  WorkerCounts::Numbers numbers_;
  FrameNumbers frame_numbers_;
  AlertWriter writer_;
  Inspector inspector_;
  stack::Tracker tracker_;
};

/// Takes what a GPU found to the worker's tracker and inspector: its packets and those that come to the CPU stage are
/// of the same flows.
class NidsFinishStage final : public function::FinishStage {
 public:
  explicit NidsFinishStage(NidsStage& twin) noexcept : twin_(twin) {}
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                     std::span<std::uint8_t> chosen) noexcept override;

 private:
  NidsStage& twin_;
};

}  // namespace penstock::nids
