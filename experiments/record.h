// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The result of a run of an experiment, as it is kept: where and by what it was measured, the limits of that machine
// measured in the same run, and the points. JSON, of which this is the contract:
//
//   {"penstock": {"version", "commit"}, "experiment", "command", "date", "complete",
//    "machine": {"cpu", "cores", "memory_bytes", "gpus": [{"index", "name"}], "driver"},
//    "limits": {…}, "left_out": ["…"], "errors": ["…"], "points": [{…}, …]}
//
// Limits and points are flat: names, and numbers, texts, true or false.

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
    unsigned cores = 0;  // that the process may run on
    std::uint64_t memory_bytes = 0;
    std::vector<Gpu> gpus;  // that the run used
    std::string driver;     // of the GPUs; empty where there is none
    friend bool operator==(const Machine&, const Machine&) = default;
  };

  std::string version, commit;  // of the program that measured
  std::string experiment;
  std::string command;    // the command line as it was typed
  std::string date;       // when it began, "2026-11-21T13:40:00Z"
  bool complete = false;  // all points that were asked for are there
  Machine machine;
  Point limits;                       // see limits.h
  std::vector<std::string> left_out;  // what this machine cannot measure, and why
  std::vector<std::string> errors;    // what ended the run early
  std::vector<Point> points;

  friend bool operator==(const Record&, const Record&) = default;
};

[[nodiscard]] std::string to_json(const Record& record);

/// Most bytes of a record: JSON takes up to 80 times its length while it is read.
inline constexpr std::size_t kMostRecordBytes = std::size_t{16} << 20;

/// `text` is the content of `file`, which names it in errors. Names that are not of the contract are passed over; all
/// mistakes are told.
[[nodiscard]] Result<Record> parse_record(std::string_view text, const std::string& file);

}  // namespace penstock::experiments
