// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a chain: opens its ports, starts its workers, waits for them, and adds up their counters.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>

#include "base/error.h"
#include "report/run_report.h"
#include "run/chain.h"

namespace penstock::run {

/// The state of a run, for the progress line.
struct Progress {
  std::chrono::nanoseconds elapsed{};
  std::uint64_t packets_in = 0;
  std::uint64_t bytes_in = 0;
  std::optional<double> part;  // fraction of the input that was read, if the sources know it
};

/// A run in progress, for `RunOptions::on_tick`.
class Running {
 public:
  virtual ~Running() = default;
  /// Like the report at the end; packets in flight count as received and as nothing else yet.
  [[nodiscard]] virtual report::RunReport report() const = 0;
  /// See EventLog::reopen.
  [[nodiscard]] virtual Errors reopen_logs() = 0;
};

struct RunOptions {
  std::uint64_t trace_packets = 0;
  std::FILE* trace_out = nullptr;
  std::function<void(const Progress&)> on_progress;  // called a few times per second; may be empty
  std::function<void(Running&)> on_tick;             // called many times per second while packets flow; may be empty
};

/// Everything that would keep the chain from running, as far as its ports and functions can tell in advance
/// (`Port::check`, `NetworkFunction::check`). Reports all errors at once; changes nothing and does not wait.
[[nodiscard]] Errors check_system(const Chain& chain);

struct RunResult {
  report::RunReport report;
  Errors errors;  // errors during the run, such as a truncated capture or a full disk
};

/// Runs until the sources end, the configured duration has passed or `stop` is set. Fails if the chain cannot run as
/// configured; outputs are then unchanged. The report accounts for every packet that was read: in = forwarded + dropped
/// + consumed. If the run is stopped, or its time is up, while a port is still waiting to be opened, the report is
/// empty and the errors say why.
[[nodiscard]] Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop);

}  // namespace penstock::run
