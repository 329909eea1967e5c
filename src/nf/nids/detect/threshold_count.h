// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts matches of a rule for a threshold, detection_filter or rate_filter, per host, pair, flow or rule. As in
// Suricata's user guide, "Thresholding Keywords" and "Global-Thresholds", and where that is silent, as Suricata
// behaves: an interval begins with a match and includes its last microsecond, and a time before its start counts as
// within it.

#pragma once

#include <cstdint>

#include "nf/nids/rules/rule_state.h"

namespace penstock::nids {

struct ThresholdCount {
  std::uint64_t start_us = 0;   // start of the interval; for backoff: the count at which it alerts next
  std::uint64_t acting_us = 0;  // since when a rate_filter's new action applies; 0: it does not
  std::uint32_t matches = 0;
};

enum class Counted : std::uint8_t {
  nothing,     // as if the rule had not matched
  silent,      // the action is applied, without an alert
  alert,       // action and alert
  new_action,  // action and alert, with the rate_filter's action
};

/// The first match to be counted, and later ones.
[[nodiscard]] Counted count_first(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us) noexcept;
[[nodiscard]] Counted count_next(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us) noexcept;

}  // namespace penstock::nids
