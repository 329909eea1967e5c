// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU stage of `nids`: passes the packets that the chain's stack makes of each frame to the worker's inspector, and
// writes alerts to the logs.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "function/burst.h"
#include "function/confirming_stage.h"
#include "function/network_function.h"
#include "nf/nids/alert/alert_writer.h"
#include "nf/nids/alert/frame_set.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/detect/rule_profile.h"
#include "nf/nids/detect/state_ids.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/nids_settings.h"
#include "report/counter.h"
#include "report/published.h"
#include "stack/traffic_view.h"

namespace penstock::nids {

/// One worker's counts over a run, and thus over all its rule sets. Other threads may read `numbers` at any time.
struct WorkerCounts {
  struct Numbers {
    stack::TrackerCounters tracker;
    InspectorCounters inspector;
    std::uint64_t frame_bytes = 0;
    std::uint64_t last_ns = 0;         // time of the latest packet
    std::uint64_t scanned_on_gpu = 0;  // frames that a GPU searched for literals
    std::uint64_t clear = 0;           // of these, not inspected: nothing in them selects a rule
    std::uint64_t flow_states = 0;     // of these, scanned from the state of their flow
  };
  Numbers counting;  // only for the worker, which publishes them
  report::Published<Numbers> numbers;
  std::optional<FrameSet> alert_frames;  // empty if not recorded; read it only after the stage has ended
};

/// One stage's counts for each rule of its set. Other threads may read them at any time.
struct RuleCounts {
  explicit RuleCounts(std::size_t rules) : alerts(rules) {}

  std::vector<report::Counter> alerts;
  std::vector<RuleProfile> profile;  // empty if not recorded
};

/// Which findings leave nothing to inspect: no rule can match such a packet, and no bytes of it need to be kept.
[[nodiscard]] function::ClearFindings clear_findings(const Detection& detection, const NidsSettings& settings) noexcept;

class NidsStage final : public function::CpuStage, private stack::FrameSink {
 public:
  /// Borrows all arguments that it does not share. `at_boundary`: called at batch boundaries, with what is counted so
  /// far published; may be empty.
  using AtBoundary = std::function<void(report::EventLog::Clock::time_point)>;
  NidsStage(const Detection& detection, HostMemory& hosts, const NidsSettings& settings,
            std::shared_ptr<const StateIds> ids, std::shared_ptr<WorkerCounts> counts,
            std::shared_ptr<RuleCounts> rule_counts, AtBoundary at_boundary = {});
  ~NidsStage() override;

  void attach(stack::Attachment& attachment) noexcept override;
  /// Continues with the flow state and the counts of the predecessor, a NidsStage of the same run.
  void take_over(function::CpuStage& predecessor) noexcept override;
  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override { inspect(packets, {}); }
  void observe(PacketView packet) noexcept override;
  /// Inspects packets; the worker's finish stage calls it too, with the literals that a GPU found. `found`: one entry
  /// for each packet, or empty. `states`: the FlowState that each packet was sent with, or empty.
  void inspect(std::span<const PacketView> packets, std::span<const std::byte* const> found,
               std::span<const std::byte* const> states = {}) noexcept;
  /// Call it before `inspect`. Counts the packets in which no rule can match, and chooses the others (as
  /// function::FinishStage::choose).
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> found,
                     std::span<std::uint8_t> chosen) noexcept;
  /// Counts packets with clear findings that another process has not handed over.
  void pass_over(const function::PassedOver& packets) noexcept;

 private:
  void begin_frame(PacketView frame, std::size_t index) noexcept override;
  void begin_end() noexcept override { inspector_.begin_frame(); }
  void packet(stack::TrackedPacket& packet) noexcept override { inspector_.packet(packet); }
  void flow_ended(stack::Flow& flow) noexcept override {
    inspector_.flow_ended(flow);
    if (writes_flows_) writer_.flow(flow);
  }
  void prefetch(const stack::Flow& flow) const noexcept override { inspector_.prefetch(flow); }

  /// Counts a packet whose finding is clear, without inspecting it.
  void pass_over(PacketView packet) noexcept {
    ++counts_->counting.clear;
    counts_->counting.frame_bytes += packet.length();
    attachment_->pass_over(*packet.packet);
  }
  void publish() noexcept;

  std::shared_ptr<WorkerCounts> counts_;
  const std::shared_ptr<RuleCounts> rule_counts_;
  const std::uint32_t seam_bytes_;
  bool is_succeeded_ = false;  // another stage has taken over: it publishes, even while this one still gets packets
  const function::ClearFindings clear_;
  const bool writes_flows_;
  const AtBoundary at_boundary_;
  AlertWriter writer_;
  Inspector inspector_;
  stack::Attachment* attachment_ = nullptr;
  std::span<const std::byte* const> found_;                         // of the packets under inspection, found by a GPU
  std::array<const std::byte*, function::kBurst> found_for_later_;  // copy of found_, for packets that another function
                                                                    // makes the stack track later
  std::span<const std::byte* const> states_;                        // of the packets under inspection, like found_
  std::array<const std::byte*, function::kBurst> states_for_later_;
};

/// Passes the literals that a GPU found to the worker's CPU stage, because packets that a GPU has processed and packets
/// left to the CPU belong to the same flows.
class NidsFinishStage final : public function::FinishStage, public function::ConfirmingStage {
 public:
  /// `literals`: how many a device searches for.
  NidsFinishStage(NidsStage& twin, std::size_t literals) noexcept : twin_(twin), literals_(literals) {}
  void take_states(std::span<const std::byte* const> states) noexcept override { states_ = states; }
  bool can_be_state(const std::byte* state) const noexcept override;
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;
  std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                     std::span<std::uint8_t> chosen) noexcept override;
  bool can_be(const std::byte* finding) const noexcept override;
  void pass_over(const function::PassedOver& packets) noexcept override { twin_.pass_over(packets); }

 private:
  NidsStage& twin_;
  const std::size_t literals_;
  std::span<const std::byte* const> states_;  // of the next packets that `finish` gets
};

}  // namespace penstock::nids
