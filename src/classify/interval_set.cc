// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/interval_set.h"

#include <algorithm>
#include <bit>

#include "classify/bitvector_core.h"
#include "classify/key.h"

namespace penstock::classify {

bool operator==(const Interval&, const Interval&) = default;

namespace {

constexpr Interval kIpv4Domain{number(0), number(0xffffffff)};
constexpr Interval kIpv6Domain{{0, 0}, {~std::uint64_t{0}, ~std::uint64_t{0}}};
constexpr Interval kPorts{number(0), number(0xffff)};
constexpr Interval kPortDomain{number(0), number(kNoTransportPort)};
constexpr Interval kKindDomain{number(0), number(kKindCount - 1)};
constexpr Interval kConnectionDomain{number(0), number(kConnectionNumbers - 1)};

Interval between(std::uint64_t low, std::uint64_t high) { return {number(low), number(high)}; }

IntervalSet address_values(const Ruleset& rules, const Condition& condition) {
  const bool ipv6 = condition.subject == Subject::source6 || condition.subject == Subject::destination6;
  if (ipv6) {
    const Ipv6Range& range = rules.ranges6[condition.index];
    const IntervalSet set{{range.low, range.high}};
    return condition.negated ? complement(set, kIpv6Domain) : set;
  }
  const IntervalSet set{between(condition.low, condition.high)};
  return condition.negated ? complement(set, kIpv4Domain) : set;
}

IntervalSet port_values(const Ruleset& rules, const Condition& condition) {
  std::vector<Interval> ranges;
  for (std::uint32_t i = 0; i < condition.count; ++i) {
    const PortRange range = rules.port_ranges[condition.index + i];
    ranges.push_back(between(range.low, range.high));
  }
  IntervalSet set = united(std::move(ranges));
  return condition.negated ? complement(set, kPorts) : set;
}

IntervalSet protocol_values(const Condition& condition) {
  std::vector<Interval> intervals;
  for (std::uint32_t p = 0; p < 256; ++p) {
    if ((((p ^ condition.low) & condition.high) == 0) == condition.negated) continue;
    intervals.push_back(between(p << kKindDetailBits, p << kKindDetailBits | 0xffff));
    intervals.push_back(between(kKindNoDetail + p, kKindNoDetail + p));
    intervals.push_back(between(kKindAnyDetail + p, kKindAnyDetail + p));
  }
  return united(std::move(intervals));
}

IntervalSet detail_values(const Condition& condition) {
  const std::uint32_t first = condition.index << kKindDetailBits;
  std::vector<Interval> intervals;
  for (std::uint32_t high = 0; high < 0x10000; high += 0x100) {
    if (((high ^ condition.low) & condition.high & 0xff00) != 0) continue;
    if ((condition.high & 0xff) == 0) {
      intervals.push_back(between(first + high, first + high + 0xff));
      continue;
    }
    for (std::uint32_t low = 0; low < 0x100; ++low) {
      if (((low ^ condition.low) & condition.high & 0xff) == 0) {
        intervals.push_back(between(first + high + low, first + high + low));
      }
    }
  }
  IntervalSet set = united(std::move(intervals));
  if (condition.negated) set = complement(set, between(first, first + 0xffff));
  set.push_back(between(kKindAnyDetail + condition.index, kKindAnyDetail + condition.index));
  return set;
}

IntervalSet transport_values(bool negated) {
  const IntervalSet missing{between(kKindNoDetail, kKindNoDetail + 255)};
  return negated ? missing : complement(missing, kKindDomain);
}

bool in_port_set(const Condition& condition, std::uint32_t port, std::uint32_t port_count) {
  const std::uint64_t set = static_cast<std::uint64_t>(condition.high) << 32 | condition.low;
  return (set >> (port < port_count ? port : kOtherPort) & 1) != 0;
}

IntervalSet place_values(const Condition& condition, std::uint32_t port_count) {
  std::vector<Interval> intervals;
  for (std::uint32_t in = 0; in <= port_count; ++in) {
    for (std::uint32_t out = 0; out <= port_count; ++out) {
      for (const bool later : {false, true}) {
        bool inside = later;
        if (condition.subject == Subject::in_port) inside = in_port_set(condition, in, port_count);
        if (condition.subject == Subject::out_port) inside = in_port_set(condition, out, port_count);
        const std::uint32_t place = place_of(in, out, later, port_count);
        if (inside != condition.negated) intervals.push_back(between(place, place));
      }
    }
  }
  return united(std::move(intervals));
}

IntervalSet connection_values(const Condition& condition) {
  const std::uint64_t set = static_cast<std::uint64_t>(condition.high) << 32 | condition.low;
  std::vector<Interval> intervals;
  for (std::uint32_t c = 0; c < kConnectionNumbers; ++c) {
    if (((set >> c & 1) != 0) != condition.negated) intervals.push_back(between(c, c));
  }
  return united(std::move(intervals));
}

Dimension dimension_of(Subject subject) {
  switch (subject) {
    case Subject::source4: return Dimension::source4;
    case Subject::destination4: return Dimension::destination4;
    case Subject::source6: return Dimension::source6;
    case Subject::destination6: return Dimension::destination6;
    case Subject::source_port: return Dimension::source_port;
    case Subject::destination_port: return Dimension::destination_port;
    case Subject::protocol:
    case Subject::detail:
    case Subject::transport: return Dimension::kind;
    case Subject::connection: return Dimension::connection;
    case Subject::later_fragment:
    case Subject::in_port:
    case Subject::out_port: break;
  }
  return Dimension::place;
}

IntervalSet values_of(const Ruleset& rules, const Condition& condition, std::uint32_t port_count) {
  switch (condition.subject) {
    case Subject::source4:
    case Subject::destination4:
    case Subject::source6:
    case Subject::destination6: return address_values(rules, condition);
    case Subject::source_port:
    case Subject::destination_port: return port_values(rules, condition);
    case Subject::protocol: return protocol_values(condition);
    case Subject::detail: return detail_values(condition);
    case Subject::transport: return transport_values(condition.negated);
    case Subject::connection: return connection_values(condition);
    case Subject::later_fragment:
    case Subject::in_port:
    case Subject::out_port: break;
  }
  return place_values(condition, port_count);
}

}  // namespace

IntervalSet united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
  IntervalSet set;
  for (const Interval& next : intervals) {
    if (set.empty() || (set.back().high < next.low && successor(set.back().high) != next.low)) {
      set.push_back(next);
    } else {
      set.back().high = std::max(set.back().high, next.high);
    }
  }
  return set;
}

IntervalSet intersection(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet set;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const Number low = std::max(i->low, j->low);
    const Number high = std::min(i->high, j->high);
    if (low <= high) set.push_back({low, high});
    (i->high < j->high ? i : j)++;
  }
  return set;
}

IntervalSet complement(const IntervalSet& set, const Interval& domain) {
  IntervalSet rest;
  Number next = domain.low;
  for (const Interval& interval : set) {
    if (next < interval.low) rest.push_back({next, predecessor(interval.low)});
    if (interval.high == domain.high) return rest;
    next = successor(interval.high);
  }
  rest.push_back({next, domain.high});
  return rest;
}

std::uint32_t count_ports(const Ruleset& rules) {
  std::uint64_t named = 0;
  for (const Condition& condition : rules.conditions) {
    if (condition.subject != Subject::in_port && condition.subject != Subject::out_port) continue;
    named |= static_cast<std::uint64_t>(condition.high) << 32 | condition.low;
  }
  return static_cast<std::uint32_t>(std::bit_width(named));
}

Interval domain_of(Dimension dimension, std::uint32_t port_count) {
  switch (dimension) {
    case Dimension::source4:
    case Dimension::destination4: return kIpv4Domain;
    case Dimension::source6:
    case Dimension::destination6: return kIpv6Domain;
    case Dimension::source_port:
    case Dimension::destination_port: return kPortDomain;
    case Dimension::kind: return kKindDomain;
    case Dimension::connection: return kConnectionDomain;
    case Dimension::place: break;
  }
  return between(0, place_of(port_count, port_count, true, port_count));
}

IntervalSet values_of(const Ruleset& rules, const Entry& entry, Dimension dimension, std::uint32_t port_count) {
  const bool ipv4_only = dimension == Dimension::source4 || dimension == Dimension::destination4;
  const bool ipv6_only = dimension == Dimension::source6 || dimension == Dimension::destination6;
  if ((ipv4_only && entry.family == NetworkLayer::ipv6) || (ipv6_only && entry.family == NetworkLayer::ipv4)) {
    return {};
  }
  IntervalSet values{domain_of(dimension, port_count)};
  for (std::uint32_t i = 0; i < entry.condition_count; ++i) {
    const Condition& condition = rules.conditions[entry.first_condition + i];
    if (dimension_of(condition.subject) == dimension) {
      values = intersection(values, values_of(rules, condition, port_count));
    }
  }
  return values;
}

}  // namespace penstock::classify
