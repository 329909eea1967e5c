// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/clause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "packet/ip.h"

namespace penstock::firewall::nftables {

namespace {

using classify::Interval;
using classify::IntervalSet;
using classify::number;
using classify::Subject;
using Conditions = std::vector<classify::Condition>;

constexpr Interval kBytes{number(0), number(0xff)};

bool contains(const IntervalSet& set, std::uint64_t value) {
  return std::ranges::any_of(set, [&](const Interval& i) { return i.low <= number(value) && number(value) <= i.high; });
}

bool is_all(const IntervalSet& set, const Interval& domain) { return set.size() == 1 && set.front() == domain; }

/// The bytes b with (b ^ value) & mask == 0.
struct Cube {
  std::uint8_t value;
  std::uint8_t mask;
};

/// Cubes whose union is the set: the set itself if it is one, or the largest aligned blocks of its intervals.
std::vector<Cube> cubes_of(const IntervalSet& set) {
  unsigned all = 0xff, any = 0, count = 0;
  for (const Interval& interval : set) {
    for (unsigned byte = static_cast<unsigned>(interval.low.low); byte <= interval.high.low; ++byte) {
      all &= byte;
      any |= byte;
      ++count;
    }
  }
  if (count == 0) return {};
  const unsigned differ = all ^ any;
  if (count == 1U << static_cast<unsigned>(__builtin_popcount(differ))) {
    return {{static_cast<std::uint8_t>(all), static_cast<std::uint8_t>(~differ)}};
  }
  std::vector<Cube> cubes;
  for (const Interval& interval : set) {
    const auto last = static_cast<unsigned>(interval.high.low);
    for (auto first = static_cast<unsigned>(interval.low.low); first <= last;) {
      unsigned size = 1;
      while (first % (2 * size) == 0 && first + 2 * size - 1 <= last) size *= 2;
      cubes.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(~(size - 1))});
      first += size;
    }
  }
  return cubes;
}

/// Appends a condition to `common`, or the choice between several to `choices`. `condition` makes the condition that a
/// byte is, or is not, in a cube.
template <typename MakeCondition>
void add_bytes(const IntervalSet& set, const MakeCondition& condition, Conditions& common,
               std::vector<Conditions>& choices) {
  const std::vector<Cube> inside = cubes_of(set), outside = cubes_of(classify::complement(set, kBytes));
  if (inside.size() == 1) {
    common.push_back(condition(inside.front(), false));
  } else if (outside.size() < inside.size()) {
    for (const Cube& cube : outside) common.push_back(condition(cube, true));
  } else {
    Conditions& choice = choices.emplace_back();
    for (const Cube& cube : inside) choice.push_back(condition(cube, false));
  }
}

classify::Condition interfaces_condition(Subject subject, const IntervalSet& set) {
  std::uint64_t ports = 0;
  for (const Interval& interval : set) {
    for (std::uint64_t port = interval.low.low; port <= interval.high.low; ++port) ports |= std::uint64_t{1} << port;
  }
  // The classifier distinguishes the ports up to the highest that is named.
  const bool negated = (ports >> classify::kOtherPort & 1) != 0;
  return classify::interface_condition(subject, negated ? ~ports : ports, negated);
}

classify::Condition connections_condition(const IntervalSet& set) {
  return classify::connection_condition(classify::connections_where(
      [&](const classify::Connection& connection) { return contains(set, classify::number_of(connection)); }));
}

/// In IPv6, these are extension headers. In Linux, a later fragment that begins with one has no `meta l4proto`.
IntervalSet without_extension_headers(const IntervalSet& protocols) {
  constexpr std::array kHeaders{ip_protocol::kHopByHop, ip_protocol::kRouting, ip_protocol::kFragment, ip_protocol::kAh,
                                ip_protocol::kDestinationOptions};
  return bytes_where(
      [&](unsigned byte) { return contains(protocols, byte) && std::ranges::find(kHeaders, byte) == kHeaders.end(); });
}

const IntervalSet& protocols_with_ports() {
  static const IntervalSet kProtocols = bytes_where([](unsigned byte) {
    return byte == ip_protocol::kTcp || byte == ip_protocol::kUdp || byte == ip_protocol::kUdpLite ||
           byte == ip_protocol::kSctp;
  });
  return kProtocols;
}

}  // namespace

bool Clause::narrow(Field field, const IntervalSet& values) {
  const auto known = std::ranges::find(conditions_, field, &Condition::first);
  if (known == conditions_.end()) {
    conditions_.emplace_back(field, values);
    return !values.empty();
  }
  known->second = classify::intersection(known->second, values);
  return !known->second.empty();
}

bool Clause::narrow(const Key& key, const IntervalSet& values) {
  of_any_protocol_ |= key.of_any_protocol;
  for (const auto& [field, implied] : key.implied) {
    if (!narrow(field, implied)) return false;
  }
  return narrow(key.field, values);
}

const IntervalSet* Clause::values(Field field) const {
  const auto known = std::ranges::find(conditions_, field, &Condition::first);
  return known == conditions_.end() ? nullptr : &known->second;
}

Checked<void> Clause::write(classify::Ruleset& rules, Budget& budget, std::vector<Alternative>& to) const {
  std::size_t ranges = 1;
  for (const auto& [field, set] : conditions_) ranges += set.size();
  if (!budget.take(ranges)) return budget.problem();

  Conditions common;
  std::vector<Conditions> choices;  // of each, one must hold
  const auto add_addresses = [&](Subject subject, const IntervalSet& set, const Interval& domain) {
    if (is_all(set, domain)) return;
    const auto condition = [&](const Interval& range, bool negated) {
      return domain.high.high == 0 ? classify::ipv4_condition(subject, {static_cast<std::uint32_t>(range.low.low)},
                                                              {static_cast<std::uint32_t>(range.high.low)}, negated)
                                   : classify::ipv6_condition(rules, subject, range.low, range.high, negated);
    };
    // `!=` with one or a few prefixes.
    constexpr std::size_t kMostNegated = 8;
    const IntervalSet outside = classify::complement(set, domain);
    if (set.size() == 1) {
      common.push_back(condition(set.front(), false));
    } else if (outside.size() < set.size() && outside.size() <= kMostNegated) {
      for (const Interval& range : outside) common.push_back(condition(range, true));
    } else {
      Conditions& choice = choices.emplace_back();
      for (const Interval& range : set) choice.push_back(condition(range, false));
    }
  };
  const auto add_ports = [&](Subject subject, const IntervalSet& set) {
    std::vector<classify::PortRange> ports;
    for (const Interval& range : set) {
      ports.push_back({static_cast<std::uint16_t>(range.low.low), static_cast<std::uint16_t>(range.high.low)});
    }
    common.push_back(classify::port_condition(rules, subject, ports, false));
  };
  const auto add_icmp = [&](std::uint8_t protocol, unsigned shift, const IntervalSet& set) {
    const auto condition = [&](const Cube& cube, bool negated) {
      return classify::icmp_condition(protocol, static_cast<std::uint16_t>(cube.value << shift),
                                      static_cast<std::uint16_t>(cube.mask << shift), negated);
    };
    add_bytes(set, condition, common, choices);
  };

  bool has_detail = false;  // a condition that also tests the protocol
  for (const auto& [field, set] : conditions_) {
    switch (field) {
      case Field::family:
      case Field::protocol: break;  // below
      case Field::source4: add_addresses(Subject::source4, set, domain_of(Type::ipv4_addr)); break;
      case Field::destination4: add_addresses(Subject::destination4, set, domain_of(Type::ipv4_addr)); break;
      case Field::source6: add_addresses(Subject::source6, set, domain_of(Type::ipv6_addr)); break;
      case Field::destination6: add_addresses(Subject::destination6, set, domain_of(Type::ipv6_addr)); break;
      case Field::source_port: add_ports(Subject::source_port, set); break;
      case Field::destination_port: add_ports(Subject::destination_port, set); break;
      case Field::tcp_flags:
        add_bytes(
            set,
            [](const Cube& cube, bool negated) {
              return classify::tcp_flags_condition(cube.value, cube.mask, negated);
            },
            common, choices);
        break;
      case Field::icmp_type: add_icmp(ip_protocol::kIcmp, 8, set); break;
      case Field::icmp_code: add_icmp(ip_protocol::kIcmp, 0, set); break;
      case Field::icmpv6_type: add_icmp(ip_protocol::kIcmpv6, 8, set); break;
      case Field::icmpv6_code: add_icmp(ip_protocol::kIcmpv6, 0, set); break;
      case Field::in_port:
        if (!is_all(set, domain_of(Type::ifname))) common.push_back(interfaces_condition(Subject::in_port, set));
        break;
      case Field::out_port:
        if (!is_all(set, domain_of(Type::ifname))) common.push_back(interfaces_condition(Subject::out_port, set));
        break;
      case Field::connection: common.push_back(connections_condition(set)); break;
      case Field::later_fragment:
        if (set.size() == 1 && set.front().low == set.front().high) {
          common.push_back({Subject::later_fragment, set.front().low == number(0), 0, 0, 0, 0});
        }
        break;
    }
    has_detail |= field >= Field::tcp_flags && field <= Field::icmpv6_code;
  }

  const IntervalSet* const protocols = values(Field::protocol);
  if (of_any_protocol_ &&
      (protocols == nullptr || classify::intersection(*protocols, protocols_with_ports()) != *protocols)) {
    return unsupported("th for protocols without ports is not supported", "",
                       "a match before it, such as meta l4proto { tcp, udp }");
  }
  const auto write_family = [&](NetworkLayer family, const IntervalSet* of_protocol) -> Checked<void> {
    Conditions all = common;
    std::vector<Conditions> either = choices;
    if (of_protocol != nullptr && of_protocol->empty()) return {};
    if (of_protocol != nullptr && !is_all(*of_protocol, kBytes)) {
      add_bytes(
          *of_protocol,
          [](const Cube& cube, bool negated) { return classify::protocol_condition(cube.value, cube.mask, negated); },
          all, either);
    }
    if (all.size() + either.size() > kMostConditions) {
      return mistake("too many conditions in a rule", "", fmt::format("at most {}", kMostConditions));
    }
    // All combinations of the choices.
    std::vector<std::size_t> chosen(either.size());
    for (;;) {
      if (!budget.take(all.size() / kMostConditionsPerRule + 1 + either.size())) return budget.problem();
      Alternative& alternative = to.emplace_back();
      alternative.family = family;
      alternative.conditions = all;
      for (std::size_t i = 0; i < either.size(); ++i) alternative.conditions.push_back(either[i][chosen[i]]);
      std::size_t next = 0;
      while (next < either.size() && ++chosen[next] == either[next].size()) chosen[next++] = 0;
      if (next == either.size()) return {};
    }
  };

  const IntervalSet* const families = values(Field::family);
  const bool ipv4 = families == nullptr || contains(*families, kIpv4);
  const bool ipv6 = families == nullptr || contains(*families, kIpv6);
  // Where rules are about frames of all protocols, both families are not all packets.
  const bool both = families != nullptr && ipv4 && ipv6;
  if (both && (has_detail || protocols == nullptr)) {
    auto written = write_family(NetworkLayer::ipv4, nullptr);
    return written ? write_family(NetworkLayer::ipv6, nullptr) : written;
  }
  if (has_detail || protocols == nullptr) {
    return write_family(ipv4 == ipv6 ? NetworkLayer::none : ipv4 ? NetworkLayer::ipv4 : NetworkLayer::ipv6, nullptr);
  }
  const IntervalSet of_ipv6 = without_extension_headers(*protocols);
  if (ipv4 && ipv6 && !both && of_ipv6 == *protocols) return write_family(NetworkLayer::none, protocols);
  if (ipv4) {
    if (auto written = write_family(NetworkLayer::ipv4, protocols); !written) return written;
  }
  if (ipv6) return write_family(NetworkLayer::ipv6, &of_ipv6);
  return {};
}

}  // namespace penstock::firewall::nftables
