// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Chains of rules, and how they compile into entries. A call is replaced by the rules of the called chain, each with
// the caller's conditions added; a return skips the rest of them. So a chain called from several places multiplies the
// entries, and their number is bounded. Several base chains follow one another: accept in one of them skips to the
// next.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "classify/rule.h"

namespace penstock::firewall {

/// The most conditions of a rule, and of an entry, which has those of a rule and of all rules that call its chain.
inline constexpr std::size_t kMostConditions = 1024;
/// The most conditions of all entries together, per rule that is allowed.
inline constexpr std::size_t kMostConditionsPerRule = 8;
/// The most values of all sets and of all uses of them in rules together, per rule that is allowed. An element of a set
/// takes a few of them, and so does the rule that it becomes.
inline constexpr std::size_t kMostValuesPerRule = 16;

using classify::Alternative;

/// The family of packets that belong to both; empty if there are none.
[[nodiscard]] std::optional<NetworkLayer> common_family(NetworkLayer a, NetworkLayer b) noexcept;

struct ChainRule {
  enum class Jump : std::uint8_t { none, accept, drop, reject, translate, give_back, call, go };

  Jump jump = Jump::none;
  std::string target;  // for `call` and `go`: the chain
  std::uint32_t target_column = 0;
  classify::Answer answer{};                           // for `reject`
  std::optional<classify::Translation> translation{};  // for `translate`
  std::string unsupported;      // the unsupported construct because of which the rule is left out; empty: none
  std::uint32_t column = 0;     // where it is in the rule: in a line
  std::string path;             // or in a JSON value
  bool only_observes = false;   // no verdict depends on the rule
  Errors unknown_interfaces{};  // reported only if the rule is reachable (lo in FORWARD never is, for example)
  std::uint32_t line = 0;
  std::uint32_t index = 0;  // in Ruleset::rules
  /// The rule matches if all conditions of one of these hold, and then all of its steps.
  std::vector<Alternative> alternatives{};
  std::vector<classify::Step> steps{};
  // How many rules of the chain after this one are parts of the same rule, which a packet that this one has matched
  // does not meet.
  std::uint32_t more_parts = 0;
  bool continues = false;  // with `none`: it has steps, and the packet goes on

  /// Or marks them.
  [[nodiscard]] bool tests_connections() const noexcept;
};

struct FilterChain {
  std::optional<classify::Target> policy;  // only base chains have one
  std::vector<ChainRule> rules;
};

using FilterChains = std::map<std::string, FilterChain, std::less<>>;

/// Why rules that redirect are unsupported at output: in Linux, to its loopback.
inline constexpr std::string_view kRedirectsHost =
    "redirecting what the host sends, to the host itself, is not supported";

/// A chain where packets start.
struct BaseChain {
  std::string chain;
  NetworkLayer family = NetworkLayer::none;  // of the packets that it sees; none: both
  // Whether other base chains follow for packets of the family. If so, `accept` only ends this chain.
  bool ipv4_continues = false;
  bool ipv6_continues = false;
  std::optional<classify::Target> policy{};  // instead of the chain's
  std::uint32_t policy_rule = 0;             // the rule that stands for a policy that drops those packets
};

/// Adds the place of the rule to an error about it. The error already has a column.
using PlaceInRule = std::function<Error(const ChainRule&, Error)>;

/// Appends the entries of `chains`, starting at each of `starts` in turn, to the rules of `read`, and reports reachable
/// rules that are left out. Follows at most `most_rules` rules; a rule counts once for each call of its chain. All
/// chains that are called must exist.
[[nodiscard]] Errors write_out(const FilterChains& chains, std::span<const BaseChain> starts, std::size_t most_rules,
                               const PlaceInRule& place_in, Read<classify::Ruleset>& read);

}  // namespace penstock::firewall
