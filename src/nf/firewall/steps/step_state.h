// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the steps of rules (classify/step.h) remember from packet to packet. All workers share it, so that a limit means
// the same for any number of them; each object has its own lock. Only packets that reach such a step pay for it.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "classify/rule.h"
#include "function/shared_objects.h"
#include "nf/firewall/steps/element_table.h"
#include "nf/firewall/steps/recent_list.h"

namespace penstock::firewall {

struct RateState {
  std::mutex mutex;
  TokenBucket bucket;
  bool begun = false;
};
struct QuotaState {
  std::atomic<std::uint64_t> used{0};
};
struct CountState {
  std::mutex mutex;
  ConnectionList connections;
};
struct TurnState {
  std::atomic<std::uint32_t> next{0};
};
/// A set. What the rules list comes, and what they do not list any more goes, with the first packet that asks for it.
struct SetState {
  explicit SetState(std::uint32_t size) : elements(size) {}
  ElementTable elements;
  std::mutex mutex;  // of the members below
  std::atomic<bool> filled{false};
  std::vector<classify::ChangingSet::Element> to_add, to_remove;
};

/// By index, as StepObjects. Objects with the same name in the same file are one, also in several functions of a chain.
struct StepState {
  std::vector<std::shared_ptr<RateState>> rates;
  std::vector<std::shared_ptr<QuotaState>> quotas;
  std::vector<std::shared_ptr<CountState>> counts;
  std::vector<std::shared_ptr<TurnState>> turns;
  std::vector<std::shared_ptr<RecentList>> recents;
  std::vector<std::shared_ptr<SetState>> sets;

  /// `shared`: of the chain; null: the function stands alone. Throws std::bad_alloc.
  [[nodiscard]] static StepState of(const classify::Ruleset& rules, function::SharedObjects* shared);
  /// A run begins: everything is as at first.
  void begin(const classify::StepObjects& objects);
  /// A reload: takes over the objects of `before` that have the same name and definition. Of the elements of such a
  /// set, those come that the rules did not list before, and those go that they do not list any more. What they say is
  /// used of such a quota does not count.
  void take_over(const classify::StepObjects& objects, const StepState& before,
                 const classify::StepObjects& objects_before);
};

}  // namespace penstock::firewall
