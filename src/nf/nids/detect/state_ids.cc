// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/state_ids.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace penstock::nids {

namespace {

using Names = std::vector<std::string> RuleSet::*;
using Numbers = std::vector<std::uint32_t> StateIds::*;

class Assignment {
 public:
  Assignment(const RuleSet& rules, std::span<const StateIds::Known> known) : rules_(rules), known_(known) {}

  StateIds ids;
  bool no_numbers_left = false;

  void number_names(Names names, Numbers numbers, std::uint32_t& unused) {
    std::unordered_map<std::string_view, std::uint32_t> former;
    for (const StateIds::Known& set : known_) {
      const std::vector<std::string>& all = set.rules->*names;
      for (std::size_t i = 0; i < all.size(); ++i) former.emplace(all[i], (set.ids->*numbers)[i]);
    }
    for (const std::string& name : rules_.*names) {
      const auto found = former.find(name);
      (ids.*numbers).push_back(found != former.end() ? found->second : next(unused));
    }
  }

  /// `has(rule)`: whether the rule needs a number; `continues(rule, former)`: whether it keeps that of this one.
  template <typename Has, typename Continues>
  void number_rules(Numbers numbers, std::uint32_t& unused, Has has, Continues continues) {
    std::vector<std::unordered_map<std::uint64_t, std::size_t>> places(known_.size());
    for (std::size_t k = 0; k < known_.size(); ++k) {
      const std::vector<Rule>& all = known_[k].rules->rules;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (has(all[i])) places[k].emplace(rule_key(all[i]), i);
      }
    }
    for (const Rule& rule : rules_.rules) {
      std::optional<std::uint32_t> number;
      for (std::size_t k = 0; has(rule) && !number && k < known_.size(); ++k) {
        const auto found = places[k].find(rule_key(rule));
        if (found == places[k].end() || !continues(rule, known_[k].rules->rules[found->second])) continue;
        number = (known_[k].ids->*numbers)[found->second];
      }
      if (!number) number = has(rule) ? next(unused) : 0;
      (ids.*numbers).push_back(*number);
    }
  }

 private:
  std::uint32_t next(std::uint32_t& unused) noexcept {
    no_numbers_left = no_numbers_left || unused >= StateIds::kEnd;
    return no_numbers_left ? 0 : unused++;
  }

  const RuleSet& rules_;
  const std::span<const StateIds::Known> known_;
};

}  // namespace

Result<StateIds> StateIds::assign(const RuleSet& rules, std::span<const Known> known, Unused& unused) {
  Assignment made(rules, known);
  Unused after = unused;
  made.number_names(&RuleSet::flowbits, &StateIds::flowbits, after.flowbits);
  made.number_names(&RuleSet::flowints, &StateIds::flowints, after.flowints);
  made.number_names(&RuleSet::xbits, &StateIds::xbits, after.xbits);
  made.number_rules(
      &StateIds::thresholds, after.thresholds, [](const Rule& rule) { return rule.threshold.has_value(); },
      [](const Rule& rule, const Rule& former) { return rule.threshold == former.threshold; });
  made.number_rules(
      &StateIds::tags, after.tags, [](const Rule& rule) { return !rule.tags.empty(); },
      [](const Rule&, const Rule&) { return true; });
  if (made.no_numbers_left) {
    return failure(Error{{},
                         "too many different flowbits, flowints, xbits, thresholds or tags since the run began",
                         "more than 1,073,741,824 of one kind",
                         "a new run"});
  }
  unused = after;
  return std::move(made.ids);
}

}  // namespace penstock::nids
