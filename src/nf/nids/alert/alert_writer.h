// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes one worker's alerts to the logs, and counts them by rule.

#pragma once

#include <optional>
#include <span>

#include "nf/nids/alert/alert.h"
#include "nf/nids/alert/eve_alert.h"
#include "nf/nids/alert/frame_set.h"
#include "report/counter.h"
#include "report/event_log.h"
#include "report/time_text.h"

namespace penstock::nids {

class AlertWriter final : public AlertSink {
 public:
  /// `eve`, `fast_log` and `frames` may be null. `frames` collects the frames that raised alerts. `counts` has one
  /// counter for each of `rules`; every alert's rule is one of `rules`. Borrows all arguments.
  AlertWriter(report::EventLog* eve, report::EventLog* fast_log, const EveOptions& options, std::span<const Rule> rules,
              std::span<report::Counter> counts, FrameSet* frames = nullptr);

  void alert(const Alert& alert) noexcept override;
  /// Writes the EVE record of a flow that has ended.
  void flow(const stack::Flow& flow) noexcept;
  /// From now on, collects frames in this set instead; null: nowhere.
  void collect_frames(FrameSet* frames) noexcept { frames_ = frames; }
  /// Flushes the logs if their interval has passed. Call it regularly.
  void flush_if_due(report::EventLog::Clock::time_point now) noexcept;

 private:
  std::optional<report::EventLog::Writer> eve_;
  std::optional<report::EventLog::Writer> fast_log_;
  EveOptions options_;
  std::span<const Rule> rules_;
  std::span<report::Counter> counts_;
  FrameSet* frames_;
  report::TimeText times_;
};

}  // namespace penstock::nids
