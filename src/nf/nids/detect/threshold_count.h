// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How matches of a rule are counted by a threshold, a detection_filter or a rate_filter; for one host, pair, flow or
// rule. Suricata's user guide, "Thresholding Keywords" and "Global-Thresholds"; where it says nothing, its behaviour:
// an interval begins with a match and holds its last microsecond, and time that goes back is still in it.

#pragma once

#include <cstdint>

#include "nf/nids/rules/rule_state.h"

namespace penstock::nids {

struct ThresholdCount {
  std::uint64_t start_us = 0;   // of the interval. Of backoff: the count at which it alerts next
  std::uint64_t acting_us = 0;  // since when a rate_filter has its new action taken; 0: it does not
  std::uint32_t matches = 0;
};

enum class Counted : std::uint8_t {
  nothing,     // the rule is as if it had not matched
  silent,      // its action is taken, but it does not alert
  alert,       // all of it
  new_action,  // all of it, with the rate_filter's action
};

/// The first match that is counted, and those behind it.
[[nodiscard]] Counted count_first(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us) noexcept;
[[nodiscard]] Counted count_next(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us) noexcept;

}  // namespace penstock::nids
