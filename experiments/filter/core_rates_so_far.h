// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rates of the host's cores that have been measured, or that the record to resume has, with which points on a GPU are
// compared.

#pragma once

#include <map>
#include <string>

#include "experiments/point.h"
#include "experiments/repeats.h"

namespace penstock::experiments {

class CoreRatesSoFar {
 public:
  /// Keeps the rate of a point on the host's cores; ignores other points, and those that were refused.
  void note(const Point& point) {
    const Repeats mpps = repeats_of(point, "mpps");
    if (point.text("processor") != "cpu" || mpps.empty()) return;
    const bool one_core = point.number("cores") == 1.0;
    if (one_core && point.text("engine") != "vector") one_core_[task_of(point)] = mpps;  // key by key, as the paper's
    Repeats& best = best_[task_of(point)];
    if (best.empty() || median_of(mpps) > median_of(best)) best = mpps;
  }

  /// For the same task as the point's; empty if there are none.
  [[nodiscard]] Repeats one_core(const Point& point) const { return find(one_core_, point); }
  [[nodiscard]] Repeats best(const Point& point) const { return find(best_, point); }

 private:
  using ByTask = std::map<std::string, Repeats>;

  /// What the engines do. Rates are comparable if it is the same.
  static std::string task_of(const Point& point) {
    std::string task;
    for (const char* key : {"algorithm", "match", "rules", "filters"}) task += point.text(key) + ' ';
    return task;
  }
  static Repeats find(const ByTask& rates, const Point& point) {
    const auto found = rates.find(task_of(point));
    return found == rates.end() ? Repeats{} : found->second;
  }

  ByTask one_core_, best_;
};

}  // namespace penstock::experiments
