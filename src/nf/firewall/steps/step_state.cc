// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/step_state.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::firewall {

namespace {

/// `same`: whether the object goes on.
template <typename Object, typename State, typename Same>
void take_over_same(const std::vector<Object>& now, std::vector<std::shared_ptr<State>>& states,
                    const std::vector<Object>& before, const std::vector<std::shared_ptr<State>>& states_before,
                    const Same& same) {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < before.size(); ++i) by_name.emplace(before[i].name, i);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto found = by_name.find(now[i].name);
    if (found != by_name.end() && same(now[i], before[found->second])) states[i] = states_before[found->second];
  }
}

/// Adds those of `some` to `to` that are not among `others`, by their keys.
void add_difference(const std::vector<classify::ChangingSet::Element>& some,
                    const std::vector<classify::ChangingSet::Element>& others,
                    std::vector<classify::ChangingSet::Element>& to) {
  std::set<std::vector<classify::Number>> keys;
  for (const classify::ChangingSet::Element& one : others) keys.insert(one.key);
  std::ranges::copy_if(some, std::back_inserter(to), [&](const auto& one) { return !keys.contains(one.key); });
}

}  // namespace

StepState StepState::of(const classify::Ruleset& rules, function::SharedObjects* shared) {
  StepState state;
  const auto add = [&](auto& to, const std::string& name, const auto& make) {
    using State = typename std::remove_cvref_t<decltype(to)>::value_type::element_type;
    to.push_back(shared == nullptr ? make() : shared->get<State>(rules.file + " " + name, make));
  };
  const classify::StepObjects& objects = rules.objects;
  for (const auto& one : objects.rates) add(state.rates, one.name, [] { return std::make_shared<RateState>(); });
  for (const auto& one : objects.quotas) add(state.quotas, one.name, [] { return std::make_shared<QuotaState>(); });
  for (const auto& one : objects.counts) add(state.counts, one.name, [] { return std::make_shared<CountState>(); });
  for (const auto& one : objects.turns) add(state.turns, one.name, [] { return std::make_shared<TurnState>(); });
  for (const auto& one : objects.recents) add(state.recents, one.name, [] { return std::make_shared<RecentList>(); });
  for (const auto& one : objects.sets) add(state.sets, one.name, [&] { return std::make_shared<SetState>(one.size); });
  state.begin(objects);
  return state;
}

void StepState::begin(const classify::StepObjects& objects) {
  for (const auto& one : rates) one->begun = false;
  for (std::size_t i = 0; i < quotas.size(); ++i) quotas[i]->used = objects.quotas[i].quota.used;
  for (const auto& one : counts) one->connections.clear();
  for (const auto& one : turns) one->next = 0;
  for (const auto& one : recents) one->clear();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::lock_guard lock(sets[i]->mutex);
    sets[i]->elements.clear();
    sets[i]->to_add = objects.sets[i].elements;
    sets[i]->to_remove.clear();
    sets[i]->filled = false;
  }
}

void StepState::take_over(const classify::StepObjects& objects, const StepState& before,
                          const classify::StepObjects& objects_before) {
  const auto equal = [](const auto& a, const auto& b) { return a == b; };
  take_over_same(objects.rates, rates, objects_before.rates, before.rates, equal);
  take_over_same(objects.quotas, quotas, objects_before.quotas, before.quotas,
                 [](const classify::QuotaObject& a, const classify::QuotaObject& b) {
                   return a.quota.bytes == b.quota.bytes && a.quota.over == b.quota.over;
                 });
  take_over_same(objects.counts, counts, objects_before.counts, before.counts, equal);
  take_over_same(objects.turns, turns, objects_before.turns, before.turns, equal);
  take_over_same(objects.recents, recents, objects_before.recents, before.recents, equal);
  const std::vector<std::shared_ptr<SetState>> own = sets;
  take_over_same(objects.sets, sets, objects_before.sets, before.sets,
                 [](const classify::ChangingSet& a, const classify::ChangingSet& b) {
                   return a.values == b.values && a.size == b.size && a.timeout_ns == b.timeout_ns;
                 });
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i] == own[i]) continue;
    const auto listed = std::ranges::find(objects_before.sets, objects.sets[i].name, &classify::ChangingSet::name);
    const std::lock_guard lock(sets[i]->mutex);
    add_difference(objects.sets[i].elements, listed->elements, sets[i]->to_add);
    add_difference(listed->elements, objects.sets[i].elements, sets[i]->to_remove);
    sets[i]->filled = false;
  }
}

}  // namespace penstock::firewall
