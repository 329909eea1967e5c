// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// State that rules keep from packet to packet: bits and numbers of flows, bits of hosts and pairs of hosts, threshold
// counts, tags. Flow state belongs to one worker. Hosts are seen by several workers, which share HostMemory. All times
// are packet times. Memory is bounded; when it is full, the least recently used state is evicted and counted.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "nf/nids/detect/state_ids.h"
#include "nf/nids/rules/rule.h"
#include "nf/nids/rules/rule_set.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// The state of hosts and pairs of hosts, shared by all workers. Thread-safe. Memory is taken from the system as
/// needed.
class HostMemory {
 public:
  static constexpr std::size_t kDefaultBytes = std::size_t{32} << 20;

  explicit HostMemory(std::size_t most_bytes = kDefaultBytes);
  ~HostMemory();

  struct Counters {
    std::uint64_t records = 0;  // current number
    std::uint64_t evicted = 0;
  };
  [[nodiscard]] Counters counters() const noexcept;

  struct Parts;
  [[nodiscard]] Parts& parts() const noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// A worker's access to flow and host state. Hosts are identified by address alone, as in Suricata; the VLAN does not
/// matter.
class StateStore {
 public:
  static constexpr std::size_t kDefaultFlowBytes = std::size_t{32} << 20;

  /// Borrows `rules` and `hosts`. `flow_bytes`: the most memory for flow state. `ids`: the numbers under which state is
  /// kept; null: the rule set's own, for rules that are never reloaded.
  StateStore(const RuleSet& rules, HostMemory& hosts, std::size_t flow_bytes = kDefaultFlowBytes,
             std::shared_ptr<const StateIds> ids = nullptr);
  ~StateStore();

  /// In a reload: from now on, uses the flow state of `other`, which also keeps using it, in the same thread. Both must
  /// have the same HostMemory, and numbers of the same run. Call it before the first packet. It is quick: the memory
  /// that becomes unused is freed with `other`.
  void share_flows(StateStore& other) noexcept;

  /// Sets the slot of flows that this function owns (Flow::slots). Call it before the first packet.
  void use_slot(unsigned slot) noexcept;

  [[nodiscard]] bool holds(const StateMatch& match, const stack::TrackedPacket& packet) noexcept;
  /// Call it for every match of a rule, even without an alert: thresholds and suppressions do not prevent a rule from
  /// setting bits.
  void change(const StateChange& change, const stack::TrackedPacket& packet) noexcept;

  /// Counts one more match of the rule, and returns what its threshold, detection_filter or rate_filter makes of it. Do
  /// not count suppressed matches: they act, but do not alert.
  struct Decision {
    bool alerts = true;                  // write an alert
    bool acts = true;                    // apply the rule's action, and set its tags
    std::optional<Action> new_action{};  // from rate_filter, instead of the rule's action; `pass` ends the packet's
                                         // alerts
  };
  [[nodiscard]] Decision count(const Rule& rule, std::uint32_t rule_index, const stack::TrackedPacket& packet) noexcept;
  /// Whether threshold.config suppresses the alert. `rule_index`: in RuleSet::rules.
  [[nodiscard]] bool suppressed(std::uint32_t rule_index, const stack::TrackedPacket& packet) const noexcept;

  /// Sets the rule's tags. Call it for a match whose action is applied.
  void tag(const Rule& rule, std::uint32_t rule_index, const stack::TrackedPacket& packet) noexcept;
  /// Whether a tag wants the packet logged. Call it once for each packet that has bytes, after its own alerts. The
  /// packet that set a tag is counted, but not logged because of it.
  [[nodiscard]] bool tagged(const stack::TrackedPacket& packet) noexcept;

  void flow_ended(stack::Flow& flow) noexcept;

  /// What happens to the rest of the flow: after a drop rule it is dropped (IPS mode), after a pass rule it passes
  /// without inspection. The first fate that is set stays.
  enum class FlowFate : std::uint8_t { inspected, passed, dropped };
  [[nodiscard]] FlowFate fate(const stack::Flow& flow) const noexcept;
  void set_fate(stack::Flow& flow, FlowFate fate) noexcept;

  struct Counters {
    std::uint64_t flows = 0;          // flows that have state now
    std::uint64_t flows_evicted = 0;  // flows whose state was evicted
  };
  [[nodiscard]] Counters counters() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
