// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule options about state that outlives a packet: bits and numbers of flows and hosts, thresholds, tags. Names are
// numbered over the whole rule set (RuleSet::flowbits, flowints, xbits).

#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "nf/nids/rules/action.h"

namespace penstock::nids {

/// What bits and counts belong to. `both` and `ip_pair` (the latter for xbits): the pair of addresses, in either
/// direction.
enum class TrackBy : std::uint8_t { source, destination, both, ip_pair, rule, flow };

/// `flowbits:isset,a|b`: one of the bits is enough. Without a flow it never holds.
struct FlowbitsMatch {
  std::vector<std::uint32_t> bits;
  bool negated = false;  // isnotset: one of them is not set
};
struct FlowbitsChange {
  enum class How : std::uint8_t { set, unset, toggle };
  How how = How::set;
  std::uint32_t bit = 0;
};

/// An unset name compares false with everything; as `other` it counts as 0.
struct FlowintMatch {
  enum class Operator : std::uint8_t { less, less_equal, equal, not_equal, greater_equal, greater, is_set, is_not_set };
  Operator operation = Operator::equal;
  std::uint32_t name = 0;
  std::uint32_t value = 0;
  std::optional<std::uint32_t> other;  // compare with this name's value instead
};
/// Arithmetic is modulo 2^32. For `add`, an unset name counts as 0; with `subtract` it stays unset.
struct FlowintChange {
  enum class How : std::uint8_t { set, add, subtract };
  How how = How::set;
  std::uint32_t name = 0;
  std::uint32_t value = 0;
  std::optional<std::uint32_t> other;
};

struct XbitsMatch {
  std::uint32_t bit = 0;
  TrackBy track = TrackBy::ip_pair;
  bool negated = false;
};
struct XbitsChange {
  enum class How : std::uint8_t { set, unset, toggle };
  How how = How::set;
  std::uint32_t bit = 0;
  TrackBy track = TrackBy::ip_pair;
  std::uint32_t expire_s = 30;
};

using StateMatch = std::variant<FlowbitsMatch, FlowintMatch, XbitsMatch>;
using StateChange = std::variant<FlowbitsChange, FlowintChange, XbitsChange>;

/// `threshold`, `detection_filter`, and lines of threshold.config. A rule has at most one (Suricata's precedence): a
/// line of threshold.config for its sid replaces the rule's own threshold, and any earlier line's; but rate_filter, and
/// lines for all rules (sid 0), only apply to rules that have none yet.
struct Threshold {
  enum class Type : std::uint8_t { limit, threshold, both, backoff, detection_filter, rate_filter };
  Type type = Type::limit;
  TrackBy track = TrackBy::source;
  std::uint32_t count = 1;  // at least 1
  std::uint32_t seconds = 0;
  std::uint32_t multiplier = 0;  // for backoff, which is only tracked by flow; at least 1
  // For rate_filter: the action that replaces the rule's, and for how long after the count was exceeded. Empty: an
  // action that Suricata accepts but ignores (`log`, `sdrop`).
  std::optional<Action> new_action{};
  std::uint32_t timeout_s = 0;

  friend bool operator==(const Threshold&, const Threshold&) = default;
};

/// `tag`: packets after the alert are logged too.
struct Tag {
  enum class Of : std::uint8_t { session, host };
  enum class Unit : std::uint8_t { packets, seconds, bytes };
  Of of = Of::session;
  std::uint32_t count = 256;  // includes the packet that alerted; at most 256 packets, which is also the default
  Unit unit = Unit::packets;
  bool by_source = false;  // for a host: the packet's source instead of its destination
};

}  // namespace penstock::nids
