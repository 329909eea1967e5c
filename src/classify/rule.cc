// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rule.h"

#include <algorithm>

#include "packet/ip.h"

namespace penstock::classify {

std::string_view name(Target target) {
  switch (target) {
    case Target::accept: return "accept";
    case Target::drop: return "drop";
    case Target::reject: return "reject";
  }
  return "";
}

std::string_view name(Match match) { return match == Match::first ? "first" : "last"; }

Condition ipv4_condition(Subject subject, Ipv4Address low, Ipv4Address high, bool negated) {
  return {subject, negated, 0, 0, low.bits, high.bits};
}

Condition ipv6_condition(Ruleset& rules, Subject subject, Ipv6Address low, Ipv6Address high, bool negated) {
  rules.ranges6.push_back({low, high});
  return {subject, negated, 0, static_cast<std::uint32_t>(rules.ranges6.size() - 1), 0, 0};
}

Condition port_condition(Ruleset& rules, Subject subject, const std::vector<PortRange>& ranges, bool negated) {
  const auto first = static_cast<std::uint32_t>(rules.port_ranges.size());
  rules.port_ranges.insert(rules.port_ranges.end(), ranges.begin(), ranges.end());
  return {subject, negated, static_cast<std::uint16_t>(ranges.size()), first, 0, 0};
}

Condition protocol_condition(std::uint8_t protocol, std::uint8_t mask, bool negated) {
  return {Subject::protocol, negated, 0, 0, protocol, mask};
}

Condition tcp_flags_condition(std::uint8_t value, std::uint8_t mask, bool negated) {
  // The TCP detail's high byte is always 0. Testing it as well reduces the number of values that match.
  return {Subject::detail, negated, 0, ip_protocol::kTcp, value, 0xff00U | mask};
}

Condition icmp_condition(std::uint8_t protocol, std::uint16_t value, std::uint16_t mask, bool negated) {
  return {Subject::detail, negated, 0, protocol, value, mask};
}

Condition interface_condition(Subject subject, std::uint64_t ports, bool negated) {
  return {subject, negated, 0, 0, static_cast<std::uint32_t>(ports), static_cast<std::uint32_t>(ports >> 32)};
}

Condition connection_condition(std::uint64_t connections) {
  return interface_condition(Subject::connection, connections, false);
}

bool Ruleset::rejects() const noexcept {
  return ipv4_policy == Target::reject || ipv6_policy == Target::reject ||
         std::ranges::any_of(rules, [](const Rule& rule) { return rule.target == Target::reject; });
}

namespace {

bool is_on_connection(const Condition& condition) { return condition.subject == Subject::connection; }

struct TestsConnection {
  bool operator()(const Test& test) const { return is_of_connection(test.operand.value); }
  bool operator()(const AnyOf& any) const {
    return std::ranges::any_of(
        any.alternatives, [](const Alternative& one) { return std::ranges::any_of(one.conditions, is_on_connection); });
  }
  bool operator()(const UseCount&) const { return true; }
  bool operator()(const GiveHelper&) const { return true; }
  bool operator()(const Update& update) const { return std::holds_alternative<ConnectionCount>(update.of_element); }
  bool operator()(const SetMark& mark) const {
    return mark.of_connection || mark.source == SetMark::Source::connection;
  }
  bool operator()(const auto&) const { return false; }
};

struct TestsLinkHeader {
  static bool any(const std::vector<Operand>& operands) {
    return std::ranges::any_of(operands, [](const Operand& operand) { return is_of_link(operand.value); });
  }
  bool operator()(const Test& test) const { return is_of_link(test.operand.value); }
  bool operator()(const LookUp& look_up) const { return any(look_up.key); }
  bool operator()(const Update& update) const { return any(update.key); }
  bool operator()(const auto&) const { return false; }
};

struct CountsConnections {
  bool operator()(const UseCount&) const { return true; }
  bool operator()(const Update& update) const { return std::holds_alternative<ConnectionCount>(update.of_element); }
  bool operator()(const auto&) const { return false; }
};

template <typename Wanted>
struct Is {
  bool operator()(const Wanted&) const { return true; }
  bool operator()(const auto&) const { return false; }
};

/// Whether `holds` for a step that an entry stops for.
template <typename Holds>
bool any_step(const Ruleset& rules, const Holds& holds) {
  return std::ranges::any_of(rules.entries, [&](const Entry& entry) {
    return entry.action == Action::step && std::ranges::any_of(rules.rules[entry.rule].steps, [&](const Step& step) {
             return std::visit(holds, step);
           });
  });
}

}  // namespace

bool tests_connections(const Step& step) noexcept { return std::visit(TestsConnection(), step); }

bool Ruleset::tests_connections() const noexcept {
  return std::ranges::any_of(conditions, is_on_connection) || steps_test_connections();
}

bool Ruleset::steps_test_connections() const noexcept { return any_step(*this, TestsConnection()); }

bool Ruleset::has_steps() const noexcept {
  return std::ranges::any_of(entries, [](const Entry& entry) { return entry.action == Action::step; });
}

bool Ruleset::tests_link_headers() const noexcept { return any_step(*this, TestsLinkHeader()); }

bool Ruleset::tracks_between() const noexcept { return any_step(*this, Is<TrackConnection>()); }

bool Ruleset::translates_between() const noexcept { return any_step(*this, Is<TranslateAddresses>()); }

bool Ruleset::counts_connections() const noexcept { return any_step(*this, CountsConnections()); }

bool Ruleset::asks_for_routes() const noexcept {
  return any_step(*this, Is<ReversePath>()) || any_step(*this, Is<RouteOut>());
}

void add_entry(Ruleset& rules, const std::vector<Condition>& conditions, Entry entry) {
  entry.first_condition = static_cast<std::uint32_t>(rules.conditions.size());
  entry.condition_count = static_cast<std::uint16_t>(conditions.size());
  rules.conditions.insert(rules.conditions.end(), conditions.begin(), conditions.end());
  rules.entries.push_back(entry);
}

void let_last_decide(Ruleset& rules) {
  std::ranges::reverse(rules.entries);
  rules.decides = Match::last;
}

}  // namespace penstock::classify
