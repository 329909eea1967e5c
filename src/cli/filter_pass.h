// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One pass over a capture that evaluates several programs, and writes the packets that match each of them.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "cli/filter_engines.h"
#include "cli/filter_output.h"
#include "port/raw_capture_reader.h"

namespace penstock::cli {

class FilterPass {
 public:
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

  /// `reader` and `engine` must outlive the pass.
  FilterPass(port::RawCaptureReader& reader, FilterEngine& engine, std::size_t programs)
      : reader_(&reader), engine_(&engine), filters_(programs) {}

  /// Writes the packets that match the program.
  void write(std::size_t program, FilterOutput output) { filters_[program].output = std::move(output); }
  /// Ends each program's part after this number of matches.
  void stop_after(std::uint64_t most) noexcept { most_ = most; }
  /// Takes the return value of program 0 for each packet; false ends the pass.
  void take_returns(std::function<bool(std::span<const std::uint32_t>)> take) { take_returns_ = std::move(take); }
  /// Called between batches.
  void on_progress(std::function<void(std::uint64_t packets)> report) { report_ = std::move(report); }

  /// Runs to the end of the capture, or until `stop` is set. Returns what went wrong. Call it once.
  [[nodiscard]] Errors run(const std::atomic<bool>& stop);

  /// Packets up to the one at which the pass ended.
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  [[nodiscard]] std::uint64_t matches(std::size_t program) const noexcept { return filters_[program].matches; }

 private:
  struct Filter {
    std::optional<FilterOutput> output;
    std::uint64_t matches = 0;
  };

  bool take(std::span<const port::RawRecord> records);
  bool run_for_returns();
  /// Returns how many of the records the filter has needed.
  std::size_t select(Filter& filter, std::span<const std::uint64_t> bits,
                     std::span<const port::RawRecord> records) noexcept;

  port::RawCaptureReader* reader_;
  FilterEngine* engine_;
  std::vector<Filter> filters_;
  std::uint64_t most_ = kAll;
  std::function<bool(std::span<const std::uint32_t>)> take_returns_;
  std::function<void(std::uint64_t)> report_;
  std::uint64_t packets_ = 0;
  std::vector<filter::PacketBytes> batch_;
  std::vector<std::uint32_t> returns_;
  MatchBits bits_;
};

}  // namespace penstock::cli
