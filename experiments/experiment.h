// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What an experiment is: a name, the paper's figures that it draws, and a trial, which says what points there are and
// measures one after the other. All else is the session's (session.h): options, the machine, its limits, progress, the
// end by Ctrl-C, the record. An experiment is one folder or file here and a line in catalog.cc.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/figure.h"
#include "experiments/point.h"
#include "gpu/devices.h"

namespace penstock::experiments {

/// What a trial is given.
struct Setting {
  bool quick = false;  // fewer points
  unsigned repeats = 1;
  std::chrono::nanoseconds duration{};  // of one repeat of one point
  unsigned workers = 1;           // the most threads that a point may use: all usable cores, or what the user says
  std::vector<gpu::Device> gpus;  // those to be used; none: points on a GPU are planned, and left out
  std::string rules;              // the user's file, or - (read_input); empty: synthetic ones (workload.h)
  std::string routes;             // likewise
  const std::atomic<bool>* stop = nullptr;  // ends a measurement early; its point is then discarded
};

/// One run of an experiment. Owns what its points share: tables, packets, memory on the device. Of one thread.
class Trial {
 public:
  virtual ~Trial() = default;

  /// The parameters of every point, in the order in which they are measured, those on a GPU included. A point on a GPU
  /// has `processor` "gpu". Called once.
  [[nodiscard]] virtual std::vector<Point> plan() = 0;

  /// Measures one of them and adds the results (spread.h). `limits` are those of limits.h. An error, or a result that
  /// is wrong, ends the run; may throw gpu::CudaError, which does so too. What it returns once the run is to stop is
  /// discarded.
  [[nodiscard]] virtual Result<void> measure(Point& point, const Point& limits) = 0;
};

struct Experiment {
  std::string_view name;     // as users type it
  std::string_view summary;  // one line
  std::string_view source;   // "Alonistioti, …, §III, figures 3 to 6"
  unsigned repeats;          // where the user says nothing; likewise the next two
  std::chrono::milliseconds duration;
  std::chrono::milliseconds quick_duration;
  std::size_t most_gpus;  // that a run can use
  bool takes_rules;       // --rules has an effect
  bool takes_routes;      // --routes has
  const std::vector<Figure>& (*figures)();
  /// Mistakes in the user's files are errors; nothing has been measured then.
  Result<std::unique_ptr<Trial>> (*start)(const Setting&);
};

}  // namespace penstock::experiments
