// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stored result of an experiment: the machine and program, the limits of the machine measured in the same run, and
// the points. JSON of this form:
//
//   {"penstock": {"version", "commit"}, "experiment", "command", "date", "complete",
//    "machine": {"cpu", "cores", "memory_bytes", "gpus": [{"index", "name"}], "driver"},
//    "limits": {…}, "left_out": ["…"], "errors": ["…"], "remarks": [{"figure", "text"}], "points": [{…}, …]}
//
// Limits and points are flat: names with numbers, texts or Booleans. A value that was measured several times is the
// median (for quotients of measured values, that of the means), and X_repeats is the list of all measurements of X.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/point.h"

namespace penstock::experiments {

struct Record {
  struct Gpu {
    int index = 0;
    std::string name;
    friend bool operator==(const Gpu&, const Gpu&) = default;
  };
  struct Machine {
    std::string cpu;
    unsigned cores = 0;  // that the process may use
    std::uint64_t memory_bytes = 0;
    std::vector<Gpu> gpus;  // that the run used
    std::string driver;     // of the GPUs; empty if there are none
    friend bool operator==(const Machine&, const Machine&) = default;
  };

  struct Remark {
    std::string figure;  // its id
    std::string text;    // what a reader of this figure must know of this measurement
    friend bool operator==(const Remark&, const Remark&) = default;
  };

  std::string version, commit;  // of the program that measured
  std::string experiment;
  std::string command;    // the command line as it was typed
  std::string date;       // start time, "2026-11-21T13:40:00Z"
  bool complete = false;  // contains all points that were requested
  Machine machine;
  Point limits;                       // see limits.h
  std::vector<std::string> left_out;  // what this machine cannot measure, and why
  std::vector<std::string> errors;    // what ended the run early
  std::vector<Remark> remarks;        // written by hand into a kept record; printed with their figures
  std::vector<Point> points;

  friend bool operator==(const Record&, const Record&) = default;
};

/// Whether the program had changes that no commit has, so that nobody can build it again.
[[nodiscard]] bool had_uncommitted_changes(const Record& record) noexcept;

[[nodiscard]] std::string to_json(const Record& record);

/// Size limit of a record: parsing JSON takes up to 80 times its length in memory.
inline constexpr std::size_t kMostRecordBytes = std::size_t{16} << 20;

/// `text` is the content of `file`, which errors name. Unknown names are ignored. Reports all mistakes.
[[nodiscard]] Result<Record> parse_record(std::string_view text, const std::string& file);

}  // namespace penstock::experiments
