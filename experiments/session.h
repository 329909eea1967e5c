// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One run of an experiment, from the user's options to the record.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/experiment.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// The user's options. If one is not given, the experiment's default applies.
struct Options {
  bool quick = false;
  std::optional<unsigned> repeats;  // of all points
  std::optional<std::chrono::nanoseconds> duration;
  std::optional<unsigned> workers;
  std::vector<int> gpus;  // empty: the first usable one
  std::string rules, routes;
  std::vector<Condition> only;
  std::string resume;   // a record whose points are kept instead of measured again; empty: none
  std::string command;  // for the record
};

struct Progress {
  std::size_t number = 0;  // from 1; 0 while the limits are measured
  std::size_t count = 0;
  std::string what;  // "engine=dir24 batch=65536 …"
};

class Session {
 public:
  /// Reads the files, plans the points and inspects the machine, without measuring. `stop` ends the run, whose record
  /// then lacks the points that were not measured; it must outlive the session. Reports all mistakes in options and
  /// files.
  [[nodiscard]] static Result<Session> open(const Experiment& experiment, const Options& options,
                                            const std::atomic<bool>& stop);

  /// Those to measure.
  [[nodiscard]] std::size_t points() const noexcept { return plan_.size(); }

  /// Those that have been measured.
  [[nodiscard]] std::size_t measured() const noexcept { return measured_; }

  /// Those that this machine turned out to be unable to measure; the record says why.
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }

  /// Measures limits and points into the record. The record always contains everything measured so far, also if this
  /// throws (gpu::CudaError). Returned errors ended the run early. Call once.
  [[nodiscard]] Errors run(const std::function<void(const Progress&)>& on_progress);

  [[nodiscard]] Record& record() noexcept { return record_; }

 private:
  Session() = default;
  [[nodiscard]] Errors choose_gpus(const Experiment& experiment, const Options& options);
  void mark_headlines(const Experiment& experiment);
  [[nodiscard]] Errors choose_points(const Options& options);
  [[nodiscard]] Errors resume(const std::string& path);
  void sort_points();

  std::unique_ptr<Setting> setting_;  // the trial may hold a pointer to it
  std::unique_ptr<Trial> trial_;
  std::vector<Point> plan_;
  std::vector<Point> all_;  // all points that the trial has planned, in order; only if another record is resumed
  std::size_t measured_ = 0;
  std::size_t left_out_ = 0;
  unsigned repeats_ = 1;           // of points that are no headline
  unsigned headline_repeats_ = 1;  // of those that are
  std::string no_gpu_;             // why there is none
  Record record_;
};

}  // namespace penstock::experiments
