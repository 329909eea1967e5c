// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules of a firewall, as readers produce them and engines use them: the rules that the user wrote, and the entries
// that they compile into, in the order of evaluation. An entry is a conjunction of conditions. A rule has several
// entries if one conjunction cannot express it (a multiport match on either port, a chain that is called twice). Plain
// arrays, so that the linear engine can read them directly, on host and device.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "classify/condition.h"
#include "classify/step.h"
#include "conntrack/nat_range.h"
#include "packet/layout.h"

namespace penstock::classify {

/// What happens to a packet that a rule matches, or that no rule matches.
enum class Target : std::uint8_t { accept, drop, reject };

[[nodiscard]] std::string_view name(Target target);

/// Which of several rules that match a packet decides.
enum class Match : std::uint8_t { first, last };

[[nodiscard]] std::string_view name(Match match);

/// What the source of a rejected packet is sent.
struct Answer {
  bool tcp_reset = false;      // for TCP; otherwise an ICMP error, destination unreachable:
  std::uint8_t ipv4_code = 3;  // RFC 792; port unreachable
  std::uint8_t ipv6_code = 4;  // RFC 4443 §3.1; port unreachable
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// What becomes of a new connection, for rules that translate addresses.
struct Translation {
  enum class Way : std::uint8_t {
    source,
    destination,
    masquerade,  // the source, to the address of the interface by which the packet leaves
    redirect,    // the destination, to that of the one by which it came
  };
  Way way = Way::source;
  conntrack::NatRange range{};
};

/// A rule as users see it. Its index counts from 0, in the order of the file.
struct Rule {
  std::uint32_t line = 0;  // 0: the text says where the rule is
  Target target = Target::accept;
  bool left_out = false;                     // the reader does not support a construct in it; it has no entries
  std::string text;                          // as the user wrote it
  Answer answer{};                           // for `reject`
  std::optional<Translation> translation{};  // for `accept`
  std::vector<Step> steps{};                 // in their order, after the conditions; the rule matches if all hold
  bool continues = false;                    // it only has steps, and the rules after it decide
};

struct PortRange {
  std::uint16_t low = 0;
  std::uint16_t high = 0xffff;
};

struct Ipv6Range {
  Ipv6Address low;
  Ipv6Address high;
};

/// What an entry does: a target, or `skip`, or `step`.
enum class Action : std::uint8_t {
  accept = static_cast<std::uint8_t>(Target::accept),
  drop = static_cast<std::uint8_t>(Target::drop),
  reject = static_cast<std::uint8_t>(Target::reject),
  skip,
  step,  // the engine stops here: the host does the steps of the rule
};

[[nodiscard]] constexpr Action action_of(Target target) noexcept { return static_cast<Action>(target); }

inline constexpr std::uint32_t kNoEntry = 0xffffffff;

struct Entry {
  std::uint32_t first_condition = 0;
  std::uint16_t condition_count = 0;
  NetworkLayer family = NetworkLayer::none;  // ipv4 or ipv6: only packets of this family match; none: both
  Action action = Action::accept;
  std::uint32_t rule = 0;  // index in Ruleset::rules
  // For `skip`: evaluation continues at this entry, always a later one. For `step`: ditto, if a step does not hold;
  // otherwise at the next one.
  std::uint32_t skip_to = 0;
};
static_assert(sizeof(Entry) == 16);

/// Owns everything; immutable after reading.
struct Ruleset {
  std::string file;
  std::vector<Rule> rules;
  std::vector<Entry> entries;
  std::vector<Condition> conditions;
  std::vector<PortRange> port_ranges;
  std::vector<Ipv6Range> ranges6;
  Match decides = Match::first;         // the entries are in the order of evaluation: for `last`, the last rule's first
  Target ipv4_policy = Target::accept;  // for packets that no rule decides
  Target ipv6_policy = Target::accept;
  bool gives_helpers = false;                            // rules of the file give connections helpers, at whatever hook
  StepObjects objects{};                                 // that the rules' steps refer to
  std::set<std::string, std::less<>> interface_names{};  // in all rules of the file, used or not, including patterns
  // Where the file has rules, used or not, that can drop or change forwarded packets: bits by firewall::Hook.
  std::uint8_t filters_at = 0, translates_at = 0;

  [[nodiscard]] Target policy(NetworkLayer family) const noexcept {
    return family == NetworkLayer::ipv4 ? ipv4_policy : ipv6_policy;
  }
  /// Whether any rule, or a policy, rejects.
  [[nodiscard]] bool rejects() const noexcept;
  /// Whether any entry, or a step of it, tests or marks connections.
  [[nodiscard]] bool tests_connections() const noexcept;
  /// Whether a step does.
  [[nodiscard]] bool steps_test_connections() const noexcept;
  [[nodiscard]] bool has_steps() const noexcept;
  /// Whether a step tests the link header with which packets arrived.
  [[nodiscard]] bool tests_link_headers() const noexcept;
  /// Whether a step looks connections up, or translates addresses.
  [[nodiscard]] bool tracks_between() const noexcept;
  [[nodiscard]] bool translates_between() const noexcept;
  /// Whether a step counts connections.
  [[nodiscard]] bool counts_connections() const noexcept;
  /// Whether a step asks for routes.
  [[nodiscard]] bool asks_for_routes() const noexcept;
  /// `entry`: the result of an engine, which may be kNoEntry.
  [[nodiscard]] Target target(std::uint32_t entry, NetworkLayer family) const noexcept {
    return entry == kNoEntry ? policy(family) : rules[entries[entry].rule].target;
  }
};

/// Whether the step tests or marks connections.
[[nodiscard]] bool tests_connections(const Step& step) noexcept;

// Make conditions, for readers. Ranges are inclusive; `ports` are bits as in Subject::in_port.
[[nodiscard]] Condition ipv4_condition(Subject subject, Ipv4Address low, Ipv4Address high, bool negated);
[[nodiscard]] Condition ipv6_condition(Ruleset& rules, Subject subject, Ipv6Address low, Ipv6Address high,
                                       bool negated);
[[nodiscard]] Condition port_condition(Ruleset& rules, Subject subject, const std::vector<PortRange>& ranges,
                                       bool negated);
[[nodiscard]] Condition protocol_condition(std::uint8_t protocol, std::uint8_t mask, bool negated);
/// On the TCP flags byte.
[[nodiscard]] Condition tcp_flags_condition(std::uint8_t value, std::uint8_t mask, bool negated);
/// On the 16 bits of type and code, of ICMP or ICMPv6.
[[nodiscard]] Condition icmp_condition(std::uint8_t protocol, std::uint16_t value, std::uint16_t mask, bool negated);
[[nodiscard]] Condition interface_condition(Subject subject, std::uint64_t ports, bool negated);
/// `connections`: bits as in Subject::connection.
[[nodiscard]] Condition connection_condition(std::uint64_t connections);
void add_entry(Ruleset& rules, const std::vector<Condition>& conditions, Entry entry);

/// Lets the last match decide instead of the first, once all entries are added: they are evaluated from the last to the
/// first, so engines need not know about it. The rules keep their indices. No entry may skip others.
void let_last_decide(Ruleset& rules);

}  // namespace penstock::classify
