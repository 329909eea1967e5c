// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error_list.h"

namespace penstock::firewall {

namespace {

using Jump = ChainRule::Jump;

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
constexpr auto kObservers =
    std::to_array<std::string_view>({"ACCOUNT", "AUDIT", "CHECKSUM", "CLASSIFY", "IDLETIMER", "LED", "LOG", "LOGMARK",
                                     "NFLOG", "RATEEST", "TRACE", "ULOG"});

bool only_observes(const ChainRule& rule) {
  if (rule.continues) return false;
  if (rule.jump == Jump::none) return true;
  return rule.jump == Jump::call && std::ranges::find(kObservers, rule.target) != kObservers.end();
}

bool leaves_untracked(const ChainRule& rule) {
  return std::ranges::any_of(
      rule.steps, [](const classify::Step& step) { return std::holds_alternative<classify::LeaveUntracked>(step); });
}

bool is_target(std::string_view name) { return std::ranges::find(kOtherTargets, name) != kOtherTargets.end(); }

}  // namespace

Errors check_jumps(const IptablesTable& table, const std::string& file) {
  Errors errors;
  for (const auto& [name, chain] : table.chains) {
    for (const ChainRule& rule : chain.rules) {
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
  for (const ChainRule& rule : table.chains.find(chain)->second.rules) {
    if (!rule.steps.empty() && rule.unsupported.empty()) {
      errors.add({{file, rule.line, 0},
                  "a rule with a limit, a mark or the like in a chain whose last match decides",
                  "",
                  "`decides: first`"});
    }
    const bool calls = (rule.jump == Jump::call || rule.jump == Jump::go) && table.chains.contains(rule.target);
    if (!calls && rule.jump != Jump::give_back) continue;
    errors.add({{file, rule.line, rule.target_column},
                "jump in a chain whose last match decides",
                in_quotes(calls ? rule.target : "RETURN"),
                "a chain without jumps, or `decides: first`"});
  }
  return std::move(errors).take({file, 0, 0});
}

void mark_rules_about_connections(IptablesTable& table) {
  for (auto& [name, chain] : table.chains) {
    for (ChainRule& rule : chain.rules) {
      if (rule.unsupported.empty() && rule.tests_connections())
        rule.unsupported = fmt::format("connections are not known in table {}", table.name);
    }
  }
}

void mark_rules_before_translation(IptablesTable& table) {
  for (auto& [name, chain] : table.chains) {
    for (ChainRule& rule : chain.rules) {
      if (rule.unsupported.empty())
        rule.unsupported = fmt::format(
            "rules of table {} before the translation of addresses at OUTPUT are not supported", table.name);
    }
  }
}

void mark_rules_too_late(IptablesTable& table) {
  for (auto& [name, chain] : table.chains) {
    for (ChainRule& rule : chain.rules) {
      if (rule.unsupported.empty() && leaves_untracked(rule))
        rule.unsupported = table.name == "raw"
                               ? "--notrack is not supported at OUTPUT"
                               : fmt::format("--notrack is not supported in table {}, only in raw", table.name);
    }
  }
}

bool needs_early_rules(const IptablesTable& table, const std::string& chain) {
  std::set<std::string_view> seen;
  std::vector<std::string_view> open{chain};
  while (!open.empty()) {
    const auto next = table.chains.find(open.back());
    open.pop_back();
    if (next == table.chains.end() || !seen.insert(next->first).second) continue;
    if (next->second.policy.value_or(classify::Target::accept) != classify::Target::accept) return true;
    for (const ChainRule& rule : next->second.rules) {
      if (rule.jump == Jump::drop || rule.jump == Jump::reject || leaves_untracked(rule)) return true;
      if (rule.jump == Jump::call || rule.jump == Jump::go) open.push_back(rule.target);
    }
  }
  return false;
}

void mark_unsupported_targets(IptablesTable& table) {
  for (auto& [name, chain] : table.chains) {
    for (ChainRule& rule : chain.rules) {
      rule.only_observes = only_observes(rule);
      if (!rule.unsupported.empty()) continue;
      if (rule.jump == Jump::none && rule.continues) continue;
      if (rule.jump == Jump::none) {
        rule.unsupported = "a rule without a target is not supported";
      } else if (rule.jump == Jump::call && !table.chains.contains(rule.target)) {
        rule.unsupported = fmt::format("target {} is not supported", rule.target);
        rule.column = rule.target_column;
      }
    }
  }
}

}  // namespace penstock::firewall
