// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "classify/linear_core.h"
#include "packet/transport.h"

namespace penstock::classify {

namespace {

LinearView view_of_conditions(const Ruleset& rules) {
  return {rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(), rules.ranges6.data(),
          static_cast<std::uint32_t>(rules.entries.size())};
}

template <typename Address>
std::string range_text(const Address& low, const Address& high) {
  return low == high ? to_string(low) : to_string(low) + "-" + to_string(high);
}

std::string ports_text(const Ruleset& rules, const Condition& condition) {
  std::string text;
  for (std::uint32_t i = 0; i < condition.count; ++i) {
    const PortRange range = rules.port_ranges[condition.index + i];
    text += fmt::format("{}{}", text.empty() ? "" : ",", range.low);
    if (range.low != range.high) text += fmt::format(":{}", range.high);
  }
  return text;
}

std::string address_why(const Ruleset& rules, const Condition& condition, const Ipv6Address& address, bool ipv6,
                        std::string_view which) {
  const std::string is = ipv6 ? to_string(address) : to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)});
  const std::string range = ipv6 ? range_text(rules.ranges6[condition.index].low, rules.ranges6[condition.index].high)
                                 : range_text(Ipv4Address{condition.low}, Ipv4Address{condition.high});
  return fmt::format("the {} address {} is {}in {}", which, is, condition.negated ? "" : "not ", range);
}

std::string port_why(const Ruleset& rules, const Condition& condition, std::uint32_t port, std::string_view which) {
  if (port == kNoTransportPort) return fmt::format("the packet has no {} port", which);
  return fmt::format("the {} port {} is {}in {}", which, port, condition.negated ? "" : "not ",
                     ports_text(rules, condition));
}

/// "SYN,ACK"
std::string tcp_flags_text(std::uint32_t flags) {
  constexpr const char* kNames[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};
  std::vector<const char*> set;
  for (unsigned bit = 0; bit < std::size(kNames); ++bit) {
    if ((flags >> bit & 1) != 0) set.push_back(kNames[bit]);
  }
  return set.empty() ? "none" : fmt::format("{}", fmt::join(set, ","));
}

std::string detail_why(const Condition& condition, const Key& key) {
  if (key.protocol() != condition.index)
    return fmt::format("the protocol is {}, not {}", key.protocol(), condition.index);
  if (!key.has_detail()) return "the packet has no complete transport header";
  if (key.protocol() == ip_protocol::kTcp) {
    return fmt::format("the TCP flags are {}; of {}, those that are set have to be {}{}", tcp_flags_text(key.detail()),
                       tcp_flags_text(condition.high), condition.negated ? "other than " : "",
                       tcp_flags_text(condition.low));
  }
  return fmt::format("the ICMP type is {} and the code {}", key.detail() >> 8, key.detail() & 0xff);
}

/// Why the condition does not hold.
std::string why_not(const Ruleset& rules, const Condition& condition, const Key& key) {
  switch (condition.subject) {
    case Subject::source4: return address_why(rules, condition, key.source, false, "source");
    case Subject::destination4: return address_why(rules, condition, key.destination, false, "destination");
    case Subject::source6: return address_why(rules, condition, key.source, true, "source");
    case Subject::destination6: return address_why(rules, condition, key.destination, true, "destination");
    case Subject::source_port: return port_why(rules, condition, key.source_port, "source");
    case Subject::destination_port: return port_why(rules, condition, key.destination_port, "destination");
    case Subject::protocol: return fmt::format("the protocol is {}", key.protocol());
    case Subject::detail: return detail_why(condition, key);
    case Subject::transport:
      return condition.negated ? "the packet has a transport header" : "the packet has no transport header";
    case Subject::later_fragment: return condition.negated ? "it is a later fragment" : "it is not a later fragment";
    case Subject::in_port: return "it arrived on another port";
    case Subject::out_port:
      return key.out_port == kNoPort ? "no output port is chosen yet" : "it leaves by another port";
    case Subject::connection: return fmt::format("the connection is {}", to_string(connection_of(key.connection)));
  }
  return {};
}

/// What keeps an entry from matching.
struct Failing {
  unsigned conditions = 0;           // how many fail; the address family counts as one
  const Condition* first = nullptr;  // null: the family
};

Failing failing(const LinearView& view, const Entry& entry, const Key& key) {
  Failing fails;
  if (entry.family != NetworkLayer::none && entry.family != key.family) return {entry.condition_count + 1U, nullptr};
  for (std::uint32_t i = 0; i < entry.condition_count; ++i) {
    const Condition& condition = view.conditions[entry.first_condition + i];
    if (holds(view, condition, key)) continue;
    if (fails.conditions++ == 0) fails.first = &condition;
  }
  return fails;
}

struct Candidate {
  std::uint32_t rule;
  Failing fails;
  bool step_failed = false;
  bool goes_on = false;                     // it matches, and the next rule is evaluated after it
  std::optional<std::uint32_t> skipped_by;  // the rule that skipped it
};

}  // namespace

std::string describe(const Ruleset& rules, std::uint32_t rule) {
  const Rule& one = rules.rules[rule];
  const std::string line = one.line == 0 ? "" : fmt::format(" (line {})", one.line);
  return fmt::format("rule {}{}: {}", rule, line, one.text);
}

bool add_passed_over(const Ruleset& rules, const Key& key, std::uint32_t entry,
                     const std::function<std::string(const Ruleset&, std::uint32_t)>& name_of,
                     function::Explanation& to, const std::vector<std::uint32_t>& failed) {
  const LinearView view = view_of_conditions(rules);
  const std::uint32_t last = std::min(entry, view.entry_count);
  const std::uint32_t decides = entry == kNoEntry ? kNoEntry : rules.entries[entry].rule;
  std::vector<Candidate> candidates;
  std::uint32_t evaluated_from = 0;  // entries before it are skipped
  std::uint32_t skipping_rule = 0;
  bool ends_chain = false;  // a rule that matches
  for (std::uint32_t i = 0; i < last; ++i) {
    const Entry& one = rules.entries[i];
    if (one.rule == decides) continue;  // another entry of the deciding rule
    Candidate candidate{one.rule, {}, false, false, std::nullopt};
    if (i < evaluated_from) {
      candidate.skipped_by = skipping_rule;
    } else {
      candidate.fails = failing(view, one, key);
      candidate.step_failed = candidate.fails.conditions == 0 && std::ranges::find(failed, i) != failed.end();
      candidate.goes_on = candidate.fails.conditions == 0 && one.action == Action::step && !candidate.step_failed;
      if (candidate.fails.conditions == 0 && !candidate.goes_on) {  // it skips others
        evaluated_from = one.skip_to;
        skipping_rule = one.rule;
        ends_chain = ends_chain || !candidate.step_failed;
      }
    }
    if (candidates.empty() || candidates.back().rule != one.rule) {
      candidates.push_back(candidate);
    } else if (candidates.back().goes_on) {  // its steps, which hold, come before what it does then
      if (candidate.fails.conditions == 0) candidates.back() = candidate;
    } else if (!candidate.skipped_by &&
               (candidates.back().skipped_by || candidate.fails.conditions < candidates.back().fails.conditions)) {
      candidates.back() = candidate;
    }
  }
  std::vector<const Candidate*> listed;
  listed.reserve(candidates.size());
  for (const Candidate& candidate : candidates) listed.push_back(&candidate);
  if (listed.size() > function::Explanation::kMostListed) {
    const auto closer = [&](const Candidate* a, const Candidate* b) {
      return std::pair(a->skipped_by.has_value(), a->fails.conditions) <
             std::pair(b->skipped_by.has_value(), b->fails.conditions);
    };
    std::ranges::stable_sort(listed, closer);
    to.not_listed += listed.size() - function::Explanation::kMostListed;
    listed.resize(function::Explanation::kMostListed);
    std::ranges::sort(listed);  // in the order of evaluation again
  }
  for (const Candidate* candidate : listed) {
    std::string why;
    if (candidate->skipped_by) {
      why = fmt::format("skipped by rule {}", *candidate->skipped_by);
    } else if (candidate->step_failed) {
      why = "its conditions match, but not its limit, set, mark or the like";
    } else if (candidate->goes_on) {
      why = "matches, and the rules after it decide";
    } else if (candidate->fails.conditions == 0) {
      why = "matches, and ends its chain; what comes after the chain decides";
    } else if (candidate->fails.first == nullptr) {
      why = fmt::format("for {} only", key.family == NetworkLayer::ipv4 ? "IPv6" : "IPv4");
    } else {
      why = why_not(rules, *candidate->fails.first, key);
    }
    to.passed_over.push_back({name_of(rules, candidate->rule), std::move(why)});
  }
  return ends_chain;
}

}  // namespace penstock::classify
