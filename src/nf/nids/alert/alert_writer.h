// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker's alerts on their way into the logs, counted by rule.

#pragma once

#include <optional>
#include <span>

#include "nf/nids/alert/alert.h"
#include "nf/nids/alert/eve_alert.h"
#include "nf/nids/alert/frame_set.h"
#include "nf/nids/alert/time_text.h"
#include "report/counter.h"
#include "report/event_log.h"

namespace penstock::nids {

class AlertWriter final : public AlertSink {
 public:
  /// `eve`, `fast_log` and `frames` may be null; the frames that alerts are raised at go into the last. `counts` has a
  /// counter for each of `rules`, of which alerts are. Borrows all.
  AlertWriter(report::EventLog* eve, report::EventLog* fast_log, const EveOptions& options, std::span<const Rule> rules,
              std::span<report::Counter> counts, FrameSet* frames = nullptr);

  void alert(const Alert& alert) noexcept override;
  /// Now and then.
  void flush_if_due(report::EventLog::Clock::time_point now) noexcept;

 private:
  std::optional<report::EventLog::Writer> eve_;
  std::optional<report::EventLog::Writer> fast_log_;
  EveOptions options_;
  std::span<const Rule> rules_;
  std::span<report::Counter> counts_;
  FrameSet* frames_;
  TimeText times_;
};

}  // namespace penstock::nids
