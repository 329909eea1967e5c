// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules keep beyond a packet: bits and numbers of flows, bits of hosts and pairs, threshold counts, tags. Flows
// are a worker's own, and so is their memory; hosts are seen by several workers, and HostMemory is shared by them.
// All times are packets'. Bounded in memory; what is over a bound is evicted, the longest unused first, and counted.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "nf/nids/rules/rule.h"
#include "nf/nids/rules/rule_set.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// What hosts and pairs of hosts have: of all workers. Thread-safe. Memory is taken from the system as it is needed.
class HostMemory {
 public:
  static constexpr std::size_t kDefaultBytes = std::size_t{32} << 20;

  explicit HostMemory(std::size_t most_bytes = kDefaultBytes);
  ~HostMemory();

  struct Counters {
    std::uint64_t records = 0;  // there now
    std::uint64_t evicted = 0;
  };
  [[nodiscard]] Counters counters() const noexcept;

  struct Parts;
  [[nodiscard]] Parts& parts() const noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// A worker's view of both. Addresses alone tell hosts apart, as in Suricata: VLANs do not.
class StateStore {
 public:
  static constexpr std::size_t kDefaultFlowBytes = std::size_t{32} << 20;

  /// Borrows both. `flow_bytes`: at most, for what flows have.
  StateStore(const RuleSet& rules, HostMemory& hosts, std::size_t flow_bytes = kDefaultFlowBytes);
  ~StateStore();

  /// Which slot of flows is this function's (Flow::slots). Before the first packet.
  void use_slot(unsigned slot) noexcept;

  [[nodiscard]] bool holds(const StateMatch& match, const stack::TrackedPacket& packet) noexcept;
  /// Of every match of a rule, also of one that alerts not: thresholds and suppressions do not keep bits from being
  /// set.
  void change(const StateChange& change, const stack::TrackedPacket& packet) noexcept;

  /// What a threshold, detection_filter or rate_filter says of one more match of the rule, which it counts. Matches
  /// that are suppressed are not to be counted: they act, and do not alert.
  struct Decision {
    bool alerts = true;                  // an alert is to be written
    bool acts = true;                    // the rule's action is taken, and its tags are set
    std::optional<Action> new_action{};  // of rate_filter, instead of the rule's: `pass` ends the packet's alerts
  };
  [[nodiscard]] Decision count(const Rule& rule, std::uint32_t rule_index, const stack::TrackedPacket& packet) noexcept;
  /// By threshold.config. `rule_index`: in RuleSet::rules.
  [[nodiscard]] bool suppressed(std::uint32_t rule_index, const stack::TrackedPacket& packet) const noexcept;

  /// A match of a rule with tags that acts.
  void tag(const Rule& rule, std::uint32_t rule_index, const stack::TrackedPacket& packet) noexcept;
  /// To be asked once of each packet that has bytes, behind its own alerts: whether a tag has it logged. The packet
  /// that set a tag is counted, and not logged for it.
  [[nodiscard]] bool tagged(const stack::TrackedPacket& packet) noexcept;

  void flow_ended(stack::Flow& flow) noexcept;

  /// A drop rule has matched: the rest of the flow is dropped (IPS), or passed without being looked at (pass). The
  /// first that is set stays.
  enum class FlowFate : std::uint8_t { inspected, passed, dropped };
  [[nodiscard]] FlowFate fate(const stack::Flow& flow) const noexcept;
  void set_fate(stack::Flow& flow, FlowFate fate) noexcept;

  struct Counters {
    std::uint64_t flows = 0;          // that have something now
    std::uint64_t flows_evicted = 0;  // what they had is lost
  };
  [[nodiscard]] Counters counters() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
