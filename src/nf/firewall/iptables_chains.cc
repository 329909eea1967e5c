// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/error_list.h"
#include "base/units.h"

namespace penstock::firewall {

namespace {

using Jump = IptablesRule::Jump;

/// For a message: which packets continue because a rule is left out.
std::string_view what_continues(Jump jump) {
  switch (jump) {
    case Jump::accept: return "that it accepts continue to the next rules";
    case Jump::drop:
    case Jump::reject: return "that it drops continue to the next rules";
    case Jump::none:
    case Jump::give_back:
    case Jump::call:
    case Jump::go: break;
  }
  return "that it matches continue to the next rules";
}

/// Targets of iptables-extensions(8) and xtables-addons(8), other than ACCEPT, DROP, REJECT and RETURN. They are not
/// supported, but they are targets, not chains that are missing or misspelt.
constexpr auto kOtherTargets = std::to_array<std::string_view>({
    "ACCOUNT",     "ASYMMETRIC", "AUDIT",       "CHAOS",      "CHECKSUM", "CLASSIFY",  "CLUSTERIP",   "CONNMARK",
    "CONNSECMARK", "CT",         "DELUDE",      "DHCPMAC",    "DNAT",     "DNETMAP",   "DNPT",        "DSCP",
    "ECHO",        "ECN",        "FLOWOFFLOAD", "HL",         "HMARK",    "IDLETIMER", "IPMARK",      "LED",
    "LOG",         "LOGMARK",    "MARK",        "MASQUERADE", "MIRROR",   "NETMAP",    "NFLOG",       "NFQUEUE",
    "NOTRACK",     "PROTO",      "QUEUE",       "RATEEST",    "REDIRECT", "SAME",      "SECMARK",     "SET",
    "SNAT",        "SNPT",       "SYNPROXY",    "SYSRQ",      "TARPIT",   "TCPMSS",    "TCPOPTSTRIP", "TEE",
    "TOS",         "TPROXY",     "TRACE",       "TTL",        "ULOG",
});

/// Those of them that let the packet continue unchanged.
constexpr auto kObservers = std::to_array<std::string_view>(
    {"ACCOUNT", "AUDIT", "IDLETIMER", "LED", "LOG", "LOGMARK", "NFLOG", "RATEEST", "TRACE", "ULOG"});

bool only_observes(const IptablesRule& rule) {
  if (rule.jump == Jump::none) return true;
  return rule.jump == Jump::call && std::ranges::find(kObservers, rule.target) != kObservers.end();
}

bool is_target(std::string_view name) { return std::ranges::find(kOtherTargets, name) != kOtherTargets.end(); }

/// Walks through the chains like a packet that meets all conditions, and writes an entry for each rule on the way. It
/// keeps its own stack, since chains can be nested arbitrarily deeply.
class ChainWriter {
 public:
  ChainWriter(const IptablesTable& table, std::size_t most_rules, Read<classify::Ruleset>& read)
      : table_(table), most_rules_(most_rules), rules_(read.value), read_(read) {}

  Errors write(const std::string& chain) {
    enter(table_.chains.find(chain)->second, nullptr, 0);
    while (!calls_.empty() && !stopped_) step();
    return std::move(errors_).take({rules_.file, 0, 0});
  }

 private:
  /// A chain that is being expanded.
  struct Call {
    const IptablesChain* chain;
    const IptablesRule* caller;     // null: the chain where packets start
    std::size_t conditions_before;  // size of conditions_ before the caller's were added
    std::size_t rule = 0;           // the next rule, and the next alternative of it
    std::size_t alternative = 0;
    std::vector<std::uint32_t> skips{};  // entries that skip to the end of this chain
  };

  void enter(const IptablesChain& chain, const IptablesRule* caller, std::size_t conditions_before) {
    open_.insert(&chain);
    calls_.push_back({&chain, caller, conditions_before});
  }

  void step() {
    Call& call = calls_.back();
    if (call.rule == call.chain->rules.size()) return leave();
    const IptablesRule& rule = call.chain->rules[call.rule];
    if (call.alternative == rule.alternatives.size() || (call.alternative == 0 && is_passed_over(rule))) {
      call.alternative = 0;
      ++call.rule;
      return;
    }
    if (++steps_ > most_rules_) return stop_at(rule, "too many rules after expanding the chains called here");
    const std::size_t before = conditions_.size();
    push_conditions(rule.alternatives[call.alternative++]);
    if (conditions_.size() > kMostConditions || rules_.conditions.size() > kMostConditionsPerRule * most_rules_) {
      return stop_at_conditions(rule);
    }
    write_rule(rule, before);
  }

  void write_rule(const IptablesRule& rule, std::size_t conditions_before) {
    switch (rule.jump) {
      case Jump::none: break;
      case Jump::accept: add(rule, classify::Action::accept); break;
      case Jump::drop: add(rule, classify::Action::drop); break;
      case Jump::reject: add(rule, classify::Action::reject); break;
      case Jump::give_back: add_skip(rule); break;
      case Jump::call:
      case Jump::go: {
        const IptablesChain& chain = table_.chains.find(rule.target)->second;
        if (open_.contains(&chain)) {
          stopped_ = true;
          errors_.add({{rules_.file, rule.line, 0}, "a chain calls itself", in_quotes(rule.target), "no loops"});
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
    open_.erase(call.chain);
    if (call.caller != nullptr && call.caller->jump == Jump::go) {
      // When the chain ends, so does the chain that jumped to it with --goto.
      std::vector<std::uint32_t>& outer = calls_.back().skips;
      outer.insert(outer.end(), call.skips.begin(), call.skips.end());
      add_skip(*call.caller);
    } else {
      // At the end of the base chain, this skips to the policy: no entry of this family follows.
      for (const std::uint32_t skip : call.skips) {
        rules_.entries[skip].skip_to = static_cast<std::uint32_t>(rules_.entries.size());
      }
    }
    conditions_.resize(call.conditions_before);
  }

  /// Skips conditions that are already there.
  void push_conditions(const std::vector<classify::Condition>& conditions) {
    for (const classify::Condition& condition : conditions) {
      if (std::ranges::find(conditions_, condition) == conditions_.end()) conditions_.push_back(condition);
    }
  }

  void add(const IptablesRule& rule, classify::Action action) {
    classify::Entry entry;
    entry.family = table_.family;
    entry.action = action;
    entry.rule = rule.index;
    classify::add_entry(rules_, conditions_, entry);
  }

  void add_skip(const IptablesRule& rule) {
    calls_.back().skips.push_back(static_cast<std::uint32_t>(rules_.entries.size()));
    add(rule, classify::Action::skip);
  }

  void stop_at(const IptablesRule& rule, std::string message) {
    stopped_ = true;
    const std::string most = format_count(most_rules_);
    errors_.add({{rules_.file, rule.line, 0},
                 std::move(message),
                 fmt::format("more than {}", most),
                 fmt::format("at most {} (most_rules raises it)", most)});
  }

  void stop_at_conditions(const IptablesRule& rule) {
    if (conditions_.size() <= kMostConditions) return stop_at(rule, "the rules have too many conditions in total");
    stopped_ = true;
    const std::string most = format_count(kMostConditions);
    errors_.add({{rules_.file, rule.line, 0},
                 "too many conditions along a chain of calls",
                 fmt::format("more than {}", most),
                 fmt::format("at most {}", most)});
  }

  /// Whether no entry is written for the rule. Reports the reason once.
  bool is_passed_over(const IptablesRule& rule) {
    if (!leaves_out(rule) && rule.unknown_interfaces.empty()) return false;
    if (++steps_ > most_rules_) stop_at(rule, "too many rules after expanding the chains called here");
    if (!rules_.rules[rule.index].left_out && complained_.insert(rule.index).second) {
      for (const Error& error : rule.unknown_interfaces) errors_.add(error);
    }
    return true;
  }

  bool leaves_out(const IptablesRule& rule) {
    std::string reason = rule.unsupported;
    std::string word = rule.unsupported_word;
    std::uint32_t column = rule.unsupported_column;
    if (reason.empty() && rule.jump == Jump::none) {
      reason = "a rule without a target is not supported";
    } else if (reason.empty() && rule.jump == Jump::call && !table_.chains.contains(rule.target)) {
      reason = fmt::format("target {} is not supported", rule.target);
      column = rule.target_column;
    }
    if (reason.empty()) return false;
    if (!rules_.rules[rule.index].left_out) {
      rules_.rules[rule.index].left_out = true;
      const bool observes = only_observes(rule);
      (observes ? read_.harmless : read_.unsupported)
          .push_back({{rules_.file, rule.line, column},
                      fmt::format("{}: without this rule, packets {}", reason,
                                  observes ? "have the same verdict" : what_continues(rule.jump)),
                      "",
                      ""});
    }
    return true;
  }

  const IptablesTable& table_;
  const std::size_t most_rules_;
  classify::Ruleset& rules_;
  Read<classify::Ruleset>& read_;
  ErrorList errors_;
  std::set<std::uint32_t> complained_;  // rules whose errors have been reported; a chain may be expanded many times
  bool stopped_ = false;
  std::size_t steps_ = 0;
  std::vector<Call> calls_;
  std::set<const IptablesChain*> open_;          // the chains in calls_
  std::vector<classify::Condition> conditions_;  // of all callers, and of the current rule
};

}  // namespace

Errors check_jumps(const IptablesTable& table, const std::string& file) {
  Errors errors;
  for (const auto& [name, chain] : table.chains) {
    for (const IptablesRule& rule : chain.rules) {
      if (rule.jump != Jump::call && rule.jump != Jump::go) continue;
      const auto to = table.chains.find(rule.target);
      const Place place{file, rule.line, rule.target_column};
      if (to != table.chains.end()) {
        if (to->second.policy) {
          errors.push_back({place, "jump to a built-in chain", in_quotes(rule.target), "a user-defined chain"});
        }
      } else if (rule.jump == Jump::go) {
        errors.push_back({place, "goto to a chain that the table does not declare", in_quotes(rule.target),
                          "a line :CHAIN - before it"});
      } else if (!is_target(rule.target)) {
        errors.push_back({place, "unknown target: neither a target of iptables nor a chain of the table",
                          in_quotes(rule.target), "a target, or a line :CHAIN - before it"});
      }
    }
  }
  std::ranges::sort(errors, {}, [](const Error& error) { return error.place.line; });
  return errors;
}

Errors check_flat(const IptablesTable& table, const std::string& chain, const std::string& file) {
  ErrorList errors;
  for (const IptablesRule& rule : table.chains.find(chain)->second.rules) {
    const bool calls = (rule.jump == Jump::call || rule.jump == Jump::go) && table.chains.contains(rule.target);
    if (!calls && rule.jump != Jump::give_back) continue;
    errors.add({{file, rule.line, rule.target_column},
                "jump in a chain whose last match decides",
                in_quotes(calls ? rule.target : "RETURN"),
                "a chain without jumps, or `decides: first`"});
  }
  return std::move(errors).take({file, 0, 0});
}

Errors write_out(const IptablesTable& table, const std::string& chain, std::size_t most_rules,
                 Read<classify::Ruleset>& read) {
  return ChainWriter(table, most_rules, read).write(chain);
}

}  // namespace penstock::firewall
