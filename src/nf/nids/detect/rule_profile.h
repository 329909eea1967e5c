// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What evaluating a rule has cost, counted by one worker. Work, not time (inspection_budget.h): the same packets give
// the same figures on every run.

#pragma once

#include <cstdint>

#include "report/counter.h"

namespace penstock::nids {

struct RuleProfile {
  report::Counter evaluations;  // the rule's literal was found and its header holds
  report::Counter matches;      // evaluations in which all options hold, whether or not an alert follows
  report::Counter work;
};

/// The same as plain numbers: a sum over workers.
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
