// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/filter_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/error_list.h"
#include "base/units.h"

namespace penstock::firewall {

namespace {

using Jump = ChainRule::Jump;

/// For a message: which packets continue because a rule is left out.
std::string_view what_continues(Jump jump) {
  switch (jump) {
    case Jump::accept: return "that it accepts continue to the next rules";
    case Jump::drop:
    case Jump::reject: return "that it drops continue to the next rules";
    case Jump::translate: return "of connections that it translates continue to the next rules";
    case Jump::none:
    case Jump::give_back:
    case Jump::call:
    case Jump::go: break;
  }
  return "that it matches continue to the next rules";
}

/// Walks through the chains like a packet that meets all conditions, and writes an entry for each rule on the way. It
/// keeps its own stack, since chains can be nested arbitrarily deeply.
class ChainWriter {
 public:
  ChainWriter(const FilterChains& chains, std::size_t most_rules, const PlaceInRule& place_in,
              Read<classify::Ruleset>& read)
      : chains_(chains), most_rules_(most_rules), place_in_(place_in), rules_(read.value), read_(read) {}

  Errors write(std::span<const BaseChain> starts) {
    has_steps_ = std::ranges::any_of(rules_.rules, [](const classify::Rule& rule) { return !rule.steps.empty(); });
    for (const BaseChain& start : starts) {
      start_ = &start;
      family_ = start.family;
      const FilterChain& chain = chains_.find(start.chain)->second;
      enter(chain, nullptr, 0);
      while (!calls_.empty() && !stopped_) step();
      if (stopped_) break;
      const std::optional<classify::Target> policy = start.policy ? start.policy : chain.policy;
      if (policy && policy != classify::Target::accept) drop_the_rest();
      for (const std::uint32_t skip : accepted_) rules_.entries[skip].skip_to = next_entry();
      accepted_.clear();
    }
    return std::move(errors_).take({rules_.file, 0, 0});
  }

 private:
  /// An entry that skips to a rule of its chain.
  struct Pending {
    std::uint32_t entry;
    std::size_t rule;
  };
  /// A chain that is being expanded.
  struct Call {
    const FilterChain* chain;
    const ChainRule* caller;        // null: the chain where packets start
    std::size_t conditions_before;  // size of conditions_ before the caller's were added
    NetworkLayer family;            // of the packets that come here
    std::size_t rule = 0;           // the next rule, and the next alternative of it
    std::size_t alternative = 0;
    std::vector<std::uint32_t> skips{};  // entries that skip to the end of this chain
    std::vector<Pending> pending{};      // entries that skip to a later rule of this chain
  };

  void enter(const FilterChain& chain, const ChainRule* caller, std::size_t conditions_before) {
    open_.insert(&chain);
    calls_.push_back({&chain, caller, conditions_before, family_});
  }

  void step() {
    Call& call = calls_.back();
    if (call.rule == call.chain->rules.size()) return leave();
    const ChainRule& rule = call.chain->rules[call.rule];
    if ((call.alternative == 0 && is_passed_over(rule)) || call.alternative == rule.alternatives.size()) {
      call.alternative = 0;
      ++call.rule;
      std::erase_if(call.pending, [&](const Pending& one) {
        if (one.rule == call.rule) rules_.entries[one.entry].skip_to = next_entry();
        return one.rule == call.rule;
      });
      return;
    }
    if (++steps_ > most_rules_) return stop_at(rule, "too many rules after expanding the chains called here");
    const std::size_t before = conditions_.size();
    const Alternative& alternative = rule.alternatives[call.alternative++];
    const auto family = common_family(call.family, alternative.family);
    if (!family) return;
    family_ = *family;
    push_conditions(alternative.conditions);
    if (conditions_.size() > kMostConditions || rules_.conditions.size() > kMostConditionsPerRule * most_rules_) {
      return stop_at_conditions(rule);
    }
    write_rule(rule, before);
  }

  void write_rule(const ChainRule& rule, std::size_t conditions_before) {
    if (!rules_.rules[rule.index].steps.empty()) {
      calls_.back().pending.push_back({next_entry(), calls_.back().rule + 1});
      add(rule, classify::Action::step);
    }
    switch (rule.jump) {
      case Jump::none: skip_other_alternatives(rule); break;
      case Jump::accept: add_accept(rule); break;
      case Jump::drop: add(rule, classify::Action::drop); break;
      case Jump::reject: add(rule, classify::Action::reject); break;
      // Also if other base chains follow.
      case Jump::translate: add(rule, classify::Action::accept); break;
      case Jump::give_back: add_skip(rule); break;
      case Jump::call:
      case Jump::go: {
        const FilterChain& chain = chains_.find(rule.target)->second;
        if (open_.contains(&chain)) {
          stopped_ = true;
          errors_.add(place_in_(rule, {{}, "a chain calls itself", in_quotes(rule.target), "no loops"}));
          return;
        }
        return enter(chain, &rule, conditions_before);
      }
    }
    conditions_.resize(conditions_before);
  }

  void leave() {
    Call call = std::move(calls_.back());
    calls_.pop_back();
    family_ = call.family;
    open_.erase(call.chain);
    if (call.caller != nullptr && call.caller->jump == Jump::go) {
      // When the chain ends, so does the chain that jumped to it with --goto.
      std::vector<std::uint32_t>& outer = calls_.back().skips;
      outer.insert(outer.end(), call.skips.begin(), call.skips.end());
      add_skip(*call.caller);
    } else {
      // At the end of a base chain, this skips to its policy, or to the next base chain.
      for (const std::uint32_t skip : call.skips) rules_.entries[skip].skip_to = next_entry();
      if (call.caller != nullptr) skip_other_alternatives(*call.caller);
    }
    conditions_.resize(call.conditions_before);
  }

  /// The steps of a rule, or of a chain that it calls, are done once, although several alternatives may match, and of
  /// the parts of a rule, a packet meets one.
  void skip_other_alternatives(const ChainRule& rule) {
    if (rule.more_parts == 0 && (!has_steps_ || rule.alternatives.size() < 2)) return;
    calls_.back().pending.push_back({next_entry(), calls_.back().rule + 1 + rule.more_parts});
    add(rule, classify::Action::skip);
  }

  /// Skips conditions that are already there.
  void push_conditions(const std::vector<classify::Condition>& conditions) {
    for (const classify::Condition& condition : conditions) {
      if (std::ranges::find(conditions_, condition) == conditions_.end()) conditions_.push_back(condition);
    }
  }

  [[nodiscard]] std::uint32_t next_entry() const { return static_cast<std::uint32_t>(rules_.entries.size()); }

  void add(std::uint32_t rule, NetworkLayer family, classify::Action action) {
    classify::Entry entry;
    entry.family = family;
    entry.action = action;
    entry.rule = rule;
    classify::add_entry(rules_, conditions_, entry);
  }
  void add(const ChainRule& rule, classify::Action action) { add(rule.index, family_, action); }

  void add_skip(const ChainRule& rule) {
    calls_.back().skips.push_back(next_entry());
    add(rule, classify::Action::skip);
  }

  void add_accept(const ChainRule& rule) {
    for_families([&](NetworkLayer family, bool continues) {
      if (continues) accepted_.push_back(next_entry());
      add(rule.index, family, continues ? classify::Action::skip : classify::Action::accept);
    });
  }

  /// At the end of a base chain that drops. The policy of the last chain is the rule set's, and needs no entry.
  void drop_the_rest() {
    for_families([&](NetworkLayer family, bool continues) {
      if (continues) add(start_->policy_rule, family, classify::Action::drop);
    });
  }

  /// Calls `handle` for the packets that come here: once, or for each family if base chains follow for only one.
  template <typename Handle>
  void for_families(const Handle& handle) {
    const bool ipv4 = family_ != NetworkLayer::ipv6, ipv6 = family_ != NetworkLayer::ipv4;
    if (ipv4 && ipv6 && start_->ipv4_continues != start_->ipv6_continues) {
      handle(NetworkLayer::ipv4, start_->ipv4_continues);
      handle(NetworkLayer::ipv6, start_->ipv6_continues);
    } else {
      handle(family_, ipv4 ? start_->ipv4_continues : start_->ipv6_continues);
    }
  }

  void stop_at(const ChainRule& rule, std::string message) {
    stopped_ = true;
    const std::string most = format_count(most_rules_);
    errors_.add(place_in_(rule, {{},
                                 std::move(message),
                                 fmt::format("more than {}", most),
                                 fmt::format("at most {} (most_rules raises it)", most)}));
  }

  void stop_at_conditions(const ChainRule& rule) {
    if (conditions_.size() <= kMostConditions) return stop_at(rule, "the rules have too many conditions in total");
    stopped_ = true;
    const std::string most = format_count(kMostConditions);
    errors_.add(place_in_(rule, {{},
                                 "too many conditions along a chain of calls",
                                 fmt::format("more than {}", most),
                                 fmt::format("at most {}", most)}));
  }

  /// Whether no entry is written for the rule. Reports the reason once.
  bool is_passed_over(const ChainRule& rule) {
    if (!leaves_out(rule) && rule.unknown_interfaces.empty()) return false;
    if (++steps_ > most_rules_) stop_at(rule, "too many rules after expanding the chains called here");
    if (!rules_.rules[rule.index].left_out && complained_.insert(rule.index).second) {
      for (const Error& error : rule.unknown_interfaces) errors_.add(error);
    }
    return true;
  }

  bool leaves_out(const ChainRule& rule) {
    if (rule.unsupported.empty()) return false;
    if (!rules_.rules[rule.index].left_out) {
      rules_.rules[rule.index].left_out = true;
      (rule.only_observes ? read_.harmless : read_.unsupported)
          .push_back(
              place_in_(rule, {{"", 0, rule.column},
                               fmt::format("{}: without this rule, packets {}", rule.unsupported,
                                           rule.only_observes ? "have the same verdict" : what_continues(rule.jump)),
                               "",
                               ""}));
    }
    return true;
  }

  const FilterChains& chains_;
  const std::size_t most_rules_;
  const PlaceInRule& place_in_;
  classify::Ruleset& rules_;
  Read<classify::Ruleset>& read_;
  ErrorList errors_;
  std::set<std::uint32_t> complained_;  // rules whose errors have been reported; a chain may be expanded many times
  bool stopped_ = false;
  bool has_steps_ = false;  // any rule
  std::size_t steps_ = 0;
  std::vector<Call> calls_;
  std::set<const FilterChain*> open_;            // the chains in calls_
  std::vector<classify::Condition> conditions_;  // of all callers, and of the current rule
  NetworkLayer family_ = NetworkLayer::none;     // of the packets that meet them
  const BaseChain* start_ = nullptr;
  std::vector<std::uint32_t> accepted_;  // entries that skip to the next base chain
};

}  // namespace

bool ChainRule::tests_connections() const noexcept {
  const auto in_conditions = [](const Alternative& one) {
    return std::ranges::any_of(one.conditions, [](const classify::Condition& condition) {
      return condition.subject == classify::Subject::connection;
    });
  };
  return std::ranges::any_of(alternatives, in_conditions) || std::ranges::any_of(steps, [](const classify::Step& step) {
           return classify::tests_connections(step) && !std::holds_alternative<classify::GiveHelper>(step);
         });
}

std::optional<NetworkLayer> common_family(NetworkLayer a, NetworkLayer b) noexcept {
  if (a == b || b == NetworkLayer::none) return a;
  if (a == NetworkLayer::none) return b;
  return std::nullopt;
}

Errors write_out(const FilterChains& chains, std::span<const BaseChain> starts, std::size_t most_rules,
                 const PlaceInRule& place_in, Read<classify::Ruleset>& read) {
  return ChainWriter(chains, most_rules, place_in, read).write(starts);
}

}  // namespace penstock::firewall
