// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a chain: opens its ports, starts its workers, waits for their end, and adds up what they counted.

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

/// Where the run stands, for the progress line.
struct Progress {
  std::chrono::nanoseconds elapsed{};
  std::uint64_t packets_in = 0;
  std::uint64_t bytes_in = 0;
  std::optional<double> part;  // of the input, where the sources know
};

/// A run that goes on, for `RunOptions::on_tick`.
class Running {
 public:
  virtual ~Running() = default;
  /// As the report at the end; packets on their way are counted in, and in nothing else yet.
  [[nodiscard]] virtual report::RunReport report() const = 0;
  /// See EventLog::reopen.
  [[nodiscard]] virtual Errors reopen_logs() = 0;
};

struct RunOptions {
  std::uint64_t trace_packets = 0;
  std::FILE* trace_out = nullptr;
  std::function<void(const Progress&)> on_progress;  // a few times a second; may be empty
  std::function<void(Running&)> on_tick;             // many times a second, once packets flow; may be empty
};

/// What keeps the chain from running, as far as its ports and functions can tell beforehand: nothing is opened for
/// good, changed or waited for (`Port::check`, `NetworkFunction::check`). All mistakes at once.
[[nodiscard]] Errors check_system(const Chain& chain);

struct RunResult {
  report::RunReport report;
  Errors errors;  // what went wrong while running: a capture that broke off, a full disk
};

/// Runs until the sources end, the settings' duration is over or `stop` is set. An error: the chain cannot run as it is
/// configured, and outputs are as they were. The report accounts for every packet that was read: in = forwarded +
/// dropped + consumed. A run that is stopped, or has had its time, while a port waits to be opened has no packets, and
/// an error that says so.
[[nodiscard]] Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop);

}  // namespace penstock::run
