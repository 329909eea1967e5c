// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks at packets and streams by the rules: candidates by their literals, then all options of each. One worker's own.

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
  // IPS: drop and reject rules drop the packet and the rest of its flow, and what the stack refuses is dropped
  bool drops = false;
  InspectionBudget budget{};         // of a frame, with all packets in it; and of the end of a stream
  std::span<RuleProfile> profile{};  // by the rules' places in their set; none: nothing is counted. Borrowed
};

struct InspectorCounters {
  std::uint64_t packets = 0, payload_bytes = 0, stream_bytes = 0;
  std::uint64_t candidates = 0, evaluations = 0, alerts = 0, alerts_suppressed = 0, alerts_over_limit = 0;
  std::array<std::uint64_t, kDropReasons.size()> dropped{};  // frames, by DropReason
  std::uint64_t pcre_limits = 0;                             // runs of regular expressions that were given up
  std::uint64_t step_limits = 0;                             // evaluations that were, after too many steps
  std::uint64_t frames_over_budget = 0;    // of which evaluations or expressions were, by InspectionBudget
  std::uint64_t evaluations_given_up = 0;  // by it, before they began
  std::uint64_t contested_chunks = 0;      // stretches of streams that came with several contents
  std::uint64_t contested_given_up = 0;    // of these, not looked at in full
  std::uint64_t seams_known = 0;           // between segments, not scanned: the flow's state was searched elsewhere
};

/// The literals that were found in a frame's payload elsewhere (a GPU).
struct FoundLiterals {
  bool known = false;                       // false: nothing was looked for, it is to be scanned here
  std::span<const std::uint32_t> literals;  // Detection::literals(); each once
  bool with_states = false;                 // frames come with the state of their flow
  FlowState state{};                        // it; empty: this one came without, or it was not searched
};

class Inspector final : public stack::PacketSink {
 public:
  /// Borrows all.
  Inspector(const Detection& detection, HostMemory& hosts, AlertSink& alerts, const InspectorOptions& options);
  ~Inspector() override;

  /// Which slot of flows is this function's (Flow::slots). Before the first frame.
  void use_slot(unsigned slot) noexcept;
  /// Before the packets of one frame come. `found` holds until the next.
  void begin_frame(FoundLiterals found = {}) noexcept;
  void packet(stack::TrackedPacket& packet) noexcept override;
  void flow_ended(stack::Flow& flow) noexcept override;
  /// Why the frame is to be dropped, by the first of its packets that is; nothing: it is not.
  [[nodiscard]] std::optional<DropReason> frame_dropped() const noexcept;

  [[nodiscard]] InspectorCounters counters() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
