// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of evaluating a rule, counted by one worker. It is counted in units of work, not time (inspection_budget.h),
// so the same packets give the same figures on every run.

#pragma once

#include <cstdint>

#include "report/counter.h"

namespace penstock::nids {

struct RuleProfile {
  report::Counter evaluations;  // the rule's literal was found and its header matches
  report::Counter matches;      // evaluations in which all options match, whether or not an alert follows
  report::Counter work;
};

/// The sum over workers, as plain numbers.
struct RuleProfileSum {
  std::uint64_t evaluations = 0, matches = 0, work = 0;

  RuleProfileSum& operator+=(const RuleProfile& one) noexcept {
    evaluations += one.evaluations.get();
    matches += one.matches.get();
    work += one.work.get();
    return *this;
  }
};

}  // namespace penstock::nids
