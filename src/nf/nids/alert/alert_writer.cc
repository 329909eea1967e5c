// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/alert/alert_writer.h"

#include "nf/nids/alert/eve_flow.h"
#include "nf/nids/alert/fast_log.h"

namespace penstock::nids {

AlertWriter::AlertWriter(report::EventLog* eve, report::EventLog* fast_log, const EveOptions& options,
                         std::span<const Rule> rules, std::span<report::Counter> counts, FrameSet* frames)
    : options_(options), rules_(rules), counts_(counts), frames_(frames) {
  if (eve != nullptr) eve_.emplace(*eve);
  if (fast_log != nullptr) fast_log_.emplace(*fast_log);
}

void AlertWriter::alert(const Alert& alert) noexcept {
  if (alert.rule != nullptr) counts_[static_cast<std::size_t>(alert.rule - rules_.data())].add(1);
  if (frames_ != nullptr && alert.rule != nullptr) {
    frames_->add(alert.packet->packet.number, alert.packet->packet.timestamp_ns);
  }
  if (eve_) eve_->line([&](std::string& out) { append_eve(out, alert, options_, times_); });
  if (fast_log_ && alert.rule != nullptr) {
    fast_log_->line([&](std::string& out) { append_fast(out, alert, times_); });
  }
}

void AlertWriter::flow(const stack::Flow& flow) noexcept {
  if (eve_) eve_->line([&](std::string& out) { append_eve_flow(out, flow, times_); });
}

void AlertWriter::flush_if_due(report::EventLog::Clock::time_point now) noexcept {
  if (eve_) eve_->flush_if_due(now);
  if (fast_log_) fast_log_->flush_if_due(now);
}

}  // namespace penstock::nids
