// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An experiment has a name, the paper's figures that it draws, and a trial, which lists the points and measures each.
// The session (session.h) does everything else: options, the machine, its limits, progress, Ctrl-C, the record. An
// experiment is one folder or file here and a line in catalog.cc.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/differences.h"
#include "experiments/figure.h"
#include "experiments/point.h"
#include "experiments/record.h"
#include "gpu/devices.h"

namespace penstock::experiments {

/// Input of a trial.
struct Setting {
  bool quick = false;                   // fewer points
  unsigned repeats = 1;                 // of the point that is being measured
  std::chrono::nanoseconds duration{};  // of one repeat of one point
  unsigned workers = 1;                 // the most threads that a point may use: the user's choice, or all usable cores
  std::vector<gpu::Device> gpus;        // GPUs to use; empty: points on a GPU are planned, but left out
  std::string rules;                    // the user's file, or - (read_input); empty: synthetic rules (workload.h)
  std::string routes;                   // likewise
  const std::atomic<bool>* stop = nullptr;  // ends a measurement early; the point is then discarded

  [[nodiscard]] std::vector<int> gpu_indices() const {
    std::vector<int> indices;
    for (const gpu::Device& gpu : gpus) indices.push_back(gpu.index);
    return indices;
  }
};

/// What measuring the point has returned. The message of each error then begins with the point.
[[nodiscard]] inline Result<void> with_point(Result<void> measured, const Point& point) {
  if (measured) return {};
  for (Error& error : measured.error()) error.message = describe(point) + ": " + error.message;
  return measured;
}

/// One run of an experiment. Owns what its points share: tables, packets, device memory. Used by one thread.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Returns the parameters of every point, in the order of measurement, including those on a GPU, which have
  /// `processor` "gpu". Called once.
  [[nodiscard]] virtual std::vector<Point> plan() = 0;

  /// Called before `measure`, with the same point: does what has to be done first, such as starting programs. Returns
  /// why this machine cannot measure the point, which is then left out, and the record says why; "": it can.
  [[nodiscard]] virtual std::string make_ready(const Point& /*point*/) { return {}; }

  /// Measures a point and adds the results (repeats.h). `limits`: see limits.h. An error, a wrong result or
  /// gpu::CudaError ends the run. After `stop`, the result is discarded.
  [[nodiscard]] virtual Result<void> measure(Point& point, const Point& limits) = 0;

  /// A point that the record to resume has already, for points that are compared with it. Called before `measure`, in
  /// the order of the plan.
  virtual void remember(const Point& point) { static_cast<void>(point); }
};

/// A file that a user can run, made from a record.
struct ChainFile {
  std::string name;
  std::string text;
};

/// Repeats of headline points by default, except in quick runs.
inline constexpr unsigned kHeadlineRepeats = 5;

struct Experiment {
  std::string_view name;     // as users type it
  std::string_view summary;  // one line
  std::string_view source;   // "Alonistioti, …, §III, figures 3 to 6"
  unsigned repeats;          // default; likewise the next two. Headline points: kHeadlineRepeats if that is more
  std::chrono::milliseconds duration;
  std::chrono::milliseconds quick_duration;
  std::size_t most_gpus;  // that a run can use
  bool takes_rules;       // --rules has an effect
  bool takes_routes;      // --routes has an effect
  const std::vector<Figure>& (*figures)();
  const Differences& (*differences)();  // from the paper
  /// The points on which the claims in docs/results rest: those that satisfy one of the lists.
  const std::vector<Conditions>& (*headlines)();
  /// Fails on mistakes in the user's files; nothing has been measured then.
  Result<std::unique_ptr<Trial>> (*start)(const Setting&);
  /// Tables that no figure makes, such as those that compare points; null: none.
  std::string (*further_tables)(const Record&, Style) = nullptr;
  /// The configurations that the record recommends, with the files that they name; null: none.
  std::vector<ChainFile> (*chain_files)(const Record&) = nullptr;
};

}  // namespace penstock::experiments
