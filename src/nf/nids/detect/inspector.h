// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Inspects packets and streams: finds candidate rules by their literals, then tests all options of each. Each worker
// has its own.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "nf/nids/alert/alert.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/detect/inspection_budget.h"
#include "nf/nids/detect/rule_profile.h"
#include "nf/nids/detect/state_store.h"
#include "nf/nids/drop_reason.h"
#include "nf/nids/match/flow_state.h"
#include "stack/tracker.h"

namespace penstock::nids {

struct InspectorOptions {
  // IPS mode: drop and reject rules drop the packet and the rest of its flow, and packets that the stack refuses are
  // dropped.
  bool drops = false;
  InspectionBudget budget{};              // per frame, with all packets in it; and for the end of a stream
  std::span<RuleProfile> profile{};       // by rule index; empty: nothing is recorded. Borrowed
  std::shared_ptr<const StateIds> ids{};  // numbers for state that outlives the rule set; null: the rule set's own
};

struct InspectorCounters {
  std::uint64_t packets = 0, payload_bytes = 0, stream_bytes = 0;
  std::uint64_t candidates = 0, evaluations = 0, alerts = 0, alerts_suppressed = 0, alerts_over_limit = 0;
  std::array<std::uint64_t, kDropReasons.size()> dropped{};  // frames, by DropReason
  std::uint64_t pcre_limits = 0;                             // runs of regular expressions that were given up
  std::uint64_t step_limits = 0;                             // evaluations given up after too many steps
  std::uint64_t frames_over_budget = 0;    // frames on which InspectionBudget ended evaluations or expressions
  std::uint64_t evaluations_given_up = 0;  // evaluations that the budget prevented
  std::uint64_t contested_chunks = 0;      // parts of streams that arrived with different contents
  std::uint64_t contested_given_up = 0;    // of these, not inspected completely
  std::uint64_t seams_known = 0;           // seams between segments that need no scan: the GPU searched them with the
                                           // flow's state
};

/// The literals that a GPU has found in a frame's payload.
struct FoundLiterals {
  bool known = false;                       // false: the payload was not searched, the inspector has to scan it
  std::span<const std::uint32_t> literals;  // indices in Detection::literals(), distinct
  bool with_states = false;                 // frames come with the states of their flows
  FlowState state{};                        // the state; empty if this frame has none, or was not searched with it
};

class Inspector final : public stack::PacketSink {
 public:
  /// Borrows all arguments.
  Inspector(const Detection& detection, HostMemory& hosts, AlertSink& alerts, const InspectorOptions& options);
  ~Inspector() override;

  /// Sets the slot of flows that this function owns (Flow::slots). Call it before the first frame, and again after
  /// another inspector has got frames of the same flows.
  void use_slot(unsigned slot) noexcept;
  /// In a reload: continues the predecessor's flow state and counters. The predecessor may still get frames, in the
  /// same thread. Their rule sets must have the same HostMemory and numbers of the same run (InspectorOptions::ids).
  void take_over(Inspector& predecessor) noexcept;
  /// Call it before the packets of a frame. `found` must stay valid until the next call.
  void begin_frame(FoundLiterals found = {}) noexcept;
  void packet(stack::TrackedPacket& packet) noexcept override;
  void flow_ended(stack::Flow& flow) noexcept override;
  void prefetch(const stack::Flow& flow) const noexcept override;
  /// Why to drop the frame, by the first of its packets that is dropped; empty: do not drop it.
  [[nodiscard]] std::optional<DropReason> frame_dropped() const noexcept;

  [[nodiscard]] InspectorCounters counters() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
