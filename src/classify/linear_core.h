// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// First match by testing one entry after the other, condition by condition as the user wrote them. It is the engine for
// small rule sets, and the reference in tests of the others. Reads a Ruleset's own arrays, or a copy on the device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "classify/key.h"
#include "classify/rule.h"

namespace penstock::classify {

struct LinearView {
  const Entry* entries;
  const Condition* conditions;
  const PortRange* port_ranges;
  const Ipv6Range* ranges6;
  std::uint32_t entry_count;
};

/// Whether a condition on a port holds.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool port_holds(const LinearView& rules, const Condition& condition,
                                                          std::uint32_t port) noexcept {
  if (port == kNoTransportPort) return false;
  bool inside = false;
  for (std::uint32_t i = 0; i < condition.count; ++i) {
    const PortRange range = rules.port_ranges[condition.index + i];
    inside |= range.low <= port && port <= range.high;
  }
  return inside != condition.negated;
}

/// Whether a condition that is a set of 64 bits holds for one of them.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool bit_holds(const Condition& condition, std::uint32_t bit) noexcept {
  const std::uint64_t set = static_cast<std::uint64_t>(condition.high) << 32 | condition.low;
  return ((set >> (bit & 63) & 1) != 0) != condition.negated;  // a state from another process may have any number
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool interface_holds(const Condition& condition, PortIndex port) noexcept {
  return bit_holds(condition, port < kOtherPort ? port : kOtherPort);
}

/// Whether a condition on addresses of a family holds; the entry's family has been checked.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool address_holds(const LinearView& rules, const Condition& condition,
                                                             const Ipv6Address& address, bool ipv6) noexcept {
  if (ipv6) {
    const Ipv6Range& range = rules.ranges6[condition.index];
    return (not_after(range.low, address) && not_after(address, range.high)) != condition.negated;
  }
  return (condition.low <= address.low && address.low <= condition.high) != condition.negated;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool holds(const LinearView& rules, const Condition& condition,
                                                     const Key& key) noexcept {
  switch (condition.subject) {
    case Subject::source4: return address_holds(rules, condition, key.source, false);
    case Subject::destination4: return address_holds(rules, condition, key.destination, false);
    case Subject::source6: return address_holds(rules, condition, key.source, true);
    case Subject::destination6: return address_holds(rules, condition, key.destination, true);
    case Subject::source_port: return port_holds(rules, condition, key.source_port);
    case Subject::destination_port: return port_holds(rules, condition, key.destination_port);
    case Subject::protocol: return (((key.protocol() ^ condition.low) & condition.high) == 0) != condition.negated;
    case Subject::detail:
      if (key.protocol() != condition.index) return false;
      if (key.is_any_detail()) return true;
      return key.has_detail() && (((key.detail() ^ condition.low) & condition.high) == 0) != condition.negated;
    case Subject::transport: return (key.has_detail() || key.is_any_detail()) != condition.negated;
    case Subject::later_fragment: return key.later_fragment != condition.negated;
    case Subject::in_port: return interface_holds(condition, key.in_port);
    case Subject::out_port: return interface_holds(condition, key.out_port);
    case Subject::connection: return bit_holds(condition, key.connection);
  }
  return false;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool matches(const LinearView& rules, const Entry& entry,
                                                       const Key& key) noexcept {
  if (entry.family != NetworkLayer::none && entry.family != key.family) return false;
  for (std::uint32_t i = 0; i < entry.condition_count; ++i) {
    if (!holds(rules, rules.conditions[entry.first_condition + i], key)) return false;
  }
  return true;
}

/// The entry from `from` on that decides `key`, or kNoEntry: then the policy decides.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry(const LinearView& rules, const Key& key,
                                                                       std::uint32_t from = 0) noexcept {
  for (std::uint32_t i = from; i < rules.entry_count;) {
    const Entry& entry = rules.entries[i];
    if (!matches(rules, entry, key)) {
      ++i;
    } else if (entry.action == Action::skip) {
      i = entry.skip_to;
    } else {
      return i;
    }
  }
  return kNoEntry;
}

}  // namespace penstock::classify
