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
/// A set. The elements that the rules give it come with the first packet that asks for them.
struct SetState {
  explicit SetState(std::uint32_t size) : elements(size) {}
  ElementTable elements;
  std::mutex mutex;  // of filling
  std::atomic<bool> filled{false};
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
  void begin(const classify::StepObjects& objects) noexcept;
  /// A reload: takes over the objects of `before` that have the same name and definition. The elements that the new
  /// rules give to such a set do not count, and neither does what they say is used of such a quota.
  void take_over(const classify::StepObjects& objects, const StepState& before,
                 const classify::StepObjects& objects_before);
};

}  // namespace penstock::firewall
