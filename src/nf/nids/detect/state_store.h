// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules keep beyond a packet: bits and numbers of flows, bits of hosts and pairs, threshold counts, tags. Flows
// are a worker's own, and so is FlowMemory; hosts are seen by several workers, and HostMemory is shared by them.
// Bounded in memory; what is over a bound is evicted, the oldest first, and counted.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nf/nids/rules/rule.h"
#include "nf/nids/rules/rule_set.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// Hangs on stack::Flow::function_state; made when a flow first needs one.
struct FlowMemory;

/// By packet time alone. Thread-safe.
class HostMemory {
 public:
  explicit HostMemory(std::size_t most_bytes);
  ~HostMemory();
  struct Parts;
  [[nodiscard]] Parts& parts() const noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// A worker's view of both.
class StateStore {
 public:
  StateStore(const RuleSet& rules, HostMemory& hosts);
  ~StateStore();

  [[nodiscard]] bool holds(const StateMatch& match, const stack::TrackedPacket& packet) noexcept;
  void change(const StateChange& change, const stack::TrackedPacket& packet) noexcept;

  /// What a threshold, detection_filter or rate filter says of one more match of the rule, which it counts.
  struct Decision {
    bool alerts = true;  // an alert is to be written
    bool acts = true;    // the rule's action is taken and its bits are set (detection_filter: not before its count)
    std::optional<Action> new_action{};  // rate_filter
  };
  [[nodiscard]] Decision count(const Rule& rule, std::uint32_t rule_index, const stack::TrackedPacket& packet) noexcept;
  /// By threshold.config.
  [[nodiscard]] bool suppressed(const Rule& rule, const stack::TrackedPacket& packet) const noexcept;

  /// An alert of a rule with tags. The packets behind it …
  void tag(const Rule& rule, const stack::TrackedPacket& packet) noexcept;
  /// … are asked after, each once: whether one is to be logged.
  [[nodiscard]] bool tagged(const stack::TrackedPacket& packet) noexcept;

  void flow_ended(stack::Flow& flow) noexcept;

  /// A drop rule has matched: the rest of the flow is dropped (IPS), or passed without being looked at (pass).
  enum class FlowFate : std::uint8_t { inspected, passed, dropped };
  [[nodiscard]] FlowFate fate(const stack::Flow& flow) const noexcept;
  void set_fate(stack::Flow& flow, FlowFate fate) noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
