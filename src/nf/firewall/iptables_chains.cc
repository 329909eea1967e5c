// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "nf/firewall/iptables_reader.h"

namespace penstock::firewall {

namespace {

using Jump = IptablesRule::Jump;
using Conditions = std::vector<Condition>;

std::string_view verb(Jump jump) {
  switch (jump) {
    case Jump::accept: return "accept";
    case Jump::drop:
    case Jump::reject: return "drop";
    case Jump::none:
    case Jump::give_back:
    case Jump::call:
    case Jump::go: break;
  }
  return "";
}

/// Of iptables-extensions(8) and of xtables-addons(8), those that end in another place than ACCEPT, DROP, REJECT and
/// RETURN: they are targets, which we leave out, and no chains that someone forgot or misspelt.
constexpr auto kOtherTargets = std::to_array<std::string_view>({
    "ACCOUNT",     "ASYMMETRIC", "AUDIT",       "CHAOS",      "CHECKSUM", "CLASSIFY",  "CLUSTERIP",   "CONNMARK",
    "CONNSECMARK", "CT",         "DELUDE",      "DHCPMAC",    "DNAT",     "DNETMAP",   "DNPT",        "DSCP",
    "ECHO",        "ECN",        "FLOWOFFLOAD", "HL",         "HMARK",    "IDLETIMER", "IPMARK",      "LED",
    "LOG",         "LOGMARK",    "MARK",        "MASQUERADE", "MIRROR",   "NETMAP",    "NFLOG",       "NFQUEUE",
    "NOTRACK",     "PROTO",      "QUEUE",       "RATEEST",    "REDIRECT", "SAME",      "SECMARK",     "SET",
    "SNAT",        "SNPT",       "SYNPROXY",    "SYSRQ",      "TARPIT",   "TCPMSS",    "TCPOPTSTRIP", "TEE",
    "TOS",         "TPROXY",     "TRACE",       "TTL",        "ULOG",
});

bool is_target(std::string_view name) { return std::ranges::find(kOtherTargets, name) != kOtherTargets.end(); }

class ChainWriter {
 public:
  ChainWriter(const IptablesTable& table, Ruleset& rules, Errors& unsupported)
      : table_(table), rules_(rules), unsupported_(unsupported) {}

  Errors write(const std::string& chain) {
    // A skip out of the base chain is to the policy: no entry of this family stands behind it.
    std::vector<std::uint32_t> skips;
    write_chain(chain, {}, skips);
    resolve(skips);
    return std::move(errors_);
  }

 private:
  /// `skips`: the entries that skip to the end of this chain, for the caller to resolve.
  void write_chain(const std::string& name, const Conditions& under, std::vector<std::uint32_t>& skips) {
    calls_.push_back(name);
    for (const IptablesRule& rule : table_.chains.at(name).rules) {
      if (stopped_) break;
      if (leaves_out(rule)) continue;
      if (!rule.unknown_interfaces.empty()) {
        if (complained_.insert(rule.index).second) append(errors_, rule.unknown_interfaces);
        continue;
      }
      for (const Conditions& alternative : rule.alternatives) {
        Conditions all = under;
        all.insert(all.end(), alternative.begin(), alternative.end());
        write_rule(rule, all, skips);
      }
    }
    calls_.pop_back();
  }

  void write_rule(const IptablesRule& rule, const Conditions& conditions, std::vector<std::uint32_t>& skips) {
    switch (rule.jump) {
      case Jump::none: return;
      case Jump::accept: return add(rule, conditions, Action::accept);
      case Jump::drop: return add(rule, conditions, Action::drop);
      case Jump::reject: return add(rule, conditions, Action::reject);
      case Jump::give_back: return add_skip(rule, conditions, skips);
      case Jump::call: {
        if (loops(rule)) return;
        std::vector<std::uint32_t> inner;
        write_chain(rule.target, conditions, inner);
        return resolve(inner);
      }
      case Jump::go:
        // Where the chain ends, so does the one that went to it.
        if (loops(rule)) return;
        write_chain(rule.target, conditions, skips);
        return add_skip(rule, conditions, skips);
    }
  }

  void add(const IptablesRule& rule, const Conditions& conditions, Action action) {
    if (rules_.entries.size() >= kMostEntries || rules_.conditions.size() >= 16 * kMostEntries) {
      if (!std::exchange(stopped_, true)) {
        errors_.push_back({{rules_.file, rule.line, 0},
                           "the chains that call each other are too many rules when they are written out",
                           fmt::format("more than {}", format_count(kMostEntries)),
                           fmt::format("at most {}", format_count(kMostEntries))});
      }
      return;
    }
    Entry entry;
    entry.family = table_.family;
    entry.action = action;
    entry.rule = rule.index;
    add_entry(rules_, conditions, entry);
  }

  void add_skip(const IptablesRule& rule, const Conditions& conditions, std::vector<std::uint32_t>& skips) {
    const std::size_t before = rules_.entries.size();
    add(rule, conditions, Action::skip);
    if (rules_.entries.size() > before) skips.push_back(static_cast<std::uint32_t>(before));
  }

  void resolve(const std::vector<std::uint32_t>& skips) {
    for (const std::uint32_t skip : skips) {
      rules_.entries[skip].skip_to = static_cast<std::uint32_t>(rules_.entries.size());
    }
  }

  bool loops(const IptablesRule& rule) {
    if (std::find(calls_.begin(), calls_.end(), rule.target) == calls_.end()) return false;
    stopped_ = true;
    errors_.push_back({{rules_.file, rule.line, 0}, "a chain calls itself", in_quotes(rule.target), "no loops"});
    return true;
  }

  bool leaves_out(const IptablesRule& rule) {
    std::string reason = rule.unsupported;
    std::string word = rule.unsupported_word;
    std::uint32_t column = rule.unsupported_column;
    if (reason.empty() && rule.jump == Jump::none) {
      reason = "a rule without a target only counts, which is not supported";
    } else if (reason.empty() && rule.jump == Jump::call && !table_.chains.contains(rule.target)) {
      reason = fmt::format("target {} is not supported", rule.target);
      column = rule.target_column;
    }
    if (reason.empty()) return false;
    if (!rules_.rules[rule.index].left_out) {
      rules_.rules[rule.index].left_out = true;
      std::string message = fmt::format("{}: rule {} is left out", reason, rule.index);
      if (!verb(rule.jump).empty()) {
        message += fmt::format(", and packets that it would {} go on to the rules behind it", verb(rule.jump));
      }
      unsupported_.push_back({{rules_.file, rule.line, column}, std::move(message), "", ""});
    }
    return true;
  }

  const IptablesTable& table_;
  Ruleset& rules_;
  Errors& unsupported_;
  Errors errors_;
  std::set<std::uint32_t> complained_;  // rules whose mistakes are told: a chain may be written out many times
  bool stopped_ = false;
  std::vector<std::string> calls_;
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
          errors.push_back({place, "a jump to a built-in chain", in_quotes(rule.target), "a chain of one's own"});
        }
      } else if (rule.jump == Jump::go) {
        errors.push_back(
            {place, "a goto to a chain that the table does not declare", in_quotes(rule.target), ":CHAIN - before it"});
      } else if (!is_target(rule.target)) {
        errors.push_back({place, "neither a target of iptables nor a chain that the table declares",
                          in_quotes(rule.target), "a target, or :CHAIN - before it"});
      }
    }
  }
  std::ranges::sort(errors, {}, [](const Error& error) { return error.place.line; });
  return errors;
}

Errors write_out(const IptablesTable& table, const std::string& chain, Ruleset& rules, Errors& unsupported) {
  return ChainWriter(table, rules, unsupported).write(chain);
}

}  // namespace penstock::firewall
