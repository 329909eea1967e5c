// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule options about what lasts beyond a packet: bits and numbers of flows and hosts, thresholds, tags. Names are
// numbered over the whole rule set (RuleSet::names).

#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "nf/nids/rules/action.h"

namespace penstock::nids {

/// Whose bits and counts. `both`: the pair of addresses, whichever of them is the source; so is `ip_pair` (of xbits).
enum class TrackBy : std::uint8_t { source, destination, both, ip_pair, rule, flow };

/// `flowbits:isset,a|b`; any of them is enough. Never without a flow.
struct FlowbitsMatch {
  std::vector<std::uint32_t> bits;
  bool negated = false;  // isnotset: any of them is not set
};
struct FlowbitsChange {
  enum class How : std::uint8_t { set, unset, toggle };
  How how = How::set;
  std::uint32_t bit = 0;
};

/// A name that is not set compares false with everything; as `other`, it is 0.
struct FlowintMatch {
  enum class Operator : std::uint8_t { less, less_equal, equal, not_equal, greater_equal, greater, is_set, is_not_set };
  Operator operation = Operator::equal;
  std::uint32_t name = 0;
  std::uint32_t value = 0;
  std::optional<std::uint32_t> other;  // another name's value instead
};
/// Modulo 2^32. What is not set is 0 to `add`, and stays unset with `subtract`.
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

/// `threshold`, `detection_filter`, and what threshold.config says of a rule. A rule has one (Suricata's precedence): a
/// line of threshold.config for its sid takes the place of the rule's own, and of the line before; but rate_filter, and
/// lines for all rules (sid 0), only go to rules that have none yet.
struct Threshold {
  enum class Type : std::uint8_t { limit, threshold, both, backoff, detection_filter, rate_filter };
  Type type = Type::limit;
  TrackBy track = TrackBy::source;
  std::uint32_t count = 1;  // at least 1
  std::uint32_t seconds = 0;
  std::uint32_t multiplier = 0;  // of backoff, which is tracked by flow alone; at least 1
  // Of rate_filter: what is done instead of the rule's action, and for how long once the count was exceeded. None: what
  // Suricata reads and leaves without effect (`log`, `sdrop`).
  std::optional<Action> new_action{};
  std::uint32_t timeout_s = 0;
};

/// `tag`: packets behind the alert are logged too.
struct Tag {
  enum class Of : std::uint8_t { session, host };
  enum class Unit : std::uint8_t { packets, seconds, bytes };
  Of of = Of::session;
  std::uint32_t count = 256;  // the packet that alerted is counted. Of packets at most 256, which is the default
  Unit unit = Unit::packets;
  bool by_source = false;  // of a host: the packet's source, not its destination
};

}  // namespace penstock::nids
