// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// EVE's `stats` record: the counters of all workers, by Suricata's names.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "nf/nids/drop_reason.h"
#include "report/time_text.h"
#include "stack/tracker_options.h"

namespace penstock::nids {

struct EveStats {
  std::uint64_t timestamp_ns = 0;  // of the last packet
  std::uint64_t uptime_s = 0;
  std::uint64_t bytes = 0;  // of frames
  stack::TrackerCounters tracker;
  std::uint64_t rules_loaded = 0, rules_failed = 0;
  std::uint64_t alerts = 0, alerts_over_limit = 0, alerts_suppressed = 0;
  /// Frames by DropReason; empty if `nids` cannot drop any.
  std::optional<std::array<std::uint64_t, kDropReasons.size()>> dropped;
  std::uint64_t pcre_limits = 0, step_limits = 0, frames_over_budget = 0, evaluations_given_up = 0;
};

/// Appends the record without its newline.
void append_eve_stats(std::string& out, const EveStats& stats, report::TimeText& times);

}  // namespace penstock::nids
