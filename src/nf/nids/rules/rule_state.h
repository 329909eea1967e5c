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

namespace penstock::nids {

/// Whose bits and counts.
enum class TrackBy : std::uint8_t { source, destination, both, ip_pair, rule, flow };

/// `flowbits:isset,a|b`; any of them is enough.
struct FlowbitsMatch {
  std::vector<std::uint32_t> bits;
  bool negated = false;  // isnotset
};
struct FlowbitsChange {
  enum class How : std::uint8_t { set, unset, toggle };
  How how = How::set;
  std::uint32_t bit = 0;
};

struct FlowintMatch {
  enum class Operator : std::uint8_t { less, less_equal, equal, not_equal, greater_equal, greater, is_set, is_not_set };
  Operator operation = Operator::equal;
  std::uint32_t name = 0;
  std::uint32_t value = 0;
  std::optional<std::uint32_t> other;  // another name's value instead
};
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

/// `threshold`, `detection_filter`, and what threshold.config says of a rule.
struct Threshold {
  enum class Type : std::uint8_t { limit, threshold, both, backoff, detection_filter, rate_filter };
  Type type = Type::limit;
  TrackBy track = TrackBy::source;
  std::uint32_t count = 1;
  std::uint32_t seconds = 0;
  std::uint32_t multiplier = 0;  // of backoff
};

/// `tag`: packets behind the alert are logged too.
struct Tag {
  enum class Of : std::uint8_t { session, host };
  enum class Unit : std::uint8_t { packets, seconds, bytes };
  Of of = Of::session;
  std::uint32_t count = 0;  // 0: to the session's end
  Unit unit = Unit::packets;
  bool by_source = true;  // of a host
};

}  // namespace penstock::nids
