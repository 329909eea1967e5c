// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU stage of `nids`: what the chain's stack makes of each frame goes through the worker's inspector, alerts go
// into the logs.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "function/burst.h"
#include "function/network_function.h"
#include "nf/nids/alert/alert_writer.h"
#include "nf/nids/alert/frame_set.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/detect/rule_profile.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/nids_settings.h"
#include "report/counter.h"
#include "report/published.h"
#include "stack/traffic_view.h"

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
    std::uint64_t flow_states = 0;     // of these, scanned with the state of their flow
  };
  report::Published<Numbers> numbers;
  std::vector<report::Counter> alerts_by_rule;
  std::vector<RuleProfile> profile;      // by rule; empty: not recorded
  std::optional<FrameSet> alert_frames;  // none: not recorded. To be read once the stage has ended
};

class NidsStage final : public function::CpuStage, private stack::FrameSink {
 public:
  /// Borrows all.
  NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings, WorkerCounts& counts);
  ~NidsStage() override;

  void attach(stack::Attachment& attachment) noexcept override;
  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override { inspect(packets, {}); }
  void observe(PacketView packet) noexcept override;
  /// Also for the worker's finish stage: packets whose literals a GPU has found. `found`: of each of them, or empty.
  /// `states`: the FlowState that each was sent with; empty: none.
  void inspect(std::span<const PacketView> packets, std::span<const std::byte* const> found,
               std::span<const std::byte* const> states = {}) noexcept;
  /// Ahead of `inspect`: counts packets in which no rule can find anything, and chooses the others (as
  /// function::FinishStage::choose).
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> found,
                     std::span<std::uint8_t> chosen) noexcept;

 private:
  void begin_frame(PacketView frame, std::size_t index) noexcept override;
  void begin_end() noexcept override { inspector_.begin_frame(); }
  void packet(stack::TrackedPacket& packet) noexcept override { inspector_.packet(packet); }
  void flow_ended(stack::Flow& flow) noexcept override { inspector_.flow_ended(flow); }

  /// Whether no rule finds anything in the packet, and nothing of it is to be kept.
  [[nodiscard]] bool clear(const PacketLiterals& found) const noexcept {
    return literals_tell_all_ && found.complete() && found.count == 0 && (found.flags & PacketLiterals::kPayload) != 0;
  }
  /// One that is clear.
  void pass_over(PacketView packet) noexcept {
    ++numbers_.clear;
    numbers_.frame_bytes += packet.length();
    attachment_->pass_over(*packet.packet);
  }
  void publish() noexcept;

  WorkerCounts& counts_;
  const bool literals_tell_all_;  // of a packet by itself, and packets come by themselves
  WorkerCounts::Numbers numbers_;
  AlertWriter writer_;
  Inspector inspector_;
  stack::Attachment* attachment_ = nullptr;
  std::span<const std::byte* const> found_;                         // by a GPU, in the packets that are inspected
  std::array<const std::byte*, function::kBurst> found_for_later_;  // where another function has them tracked
  std::span<const std::byte* const> states_;                        // as found_
  std::array<const std::byte*, function::kBurst> states_for_later_;
};

/// Takes what a GPU found to the worker's CPU stage: its packets and those that are left to the CPU are of the same
/// flows.
class NidsFinishStage final : public function::FinishStage {
 public:
  explicit NidsFinishStage(NidsStage& twin) noexcept : twin_(twin) {}
  void take_states(std::span<const std::byte* const> states) noexcept override { states_ = states; }
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                     std::span<std::uint8_t> chosen) noexcept override;

 private:
  NidsStage& twin_;
  std::span<const std::byte* const> states_;  // of the packets that `finish` sees next
};

}  // namespace penstock::nids
