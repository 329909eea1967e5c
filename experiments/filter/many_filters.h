// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Many BPF filters at once: each of a number of programs runs on each frame, and the result is a bit for each program
// and frame. On the CPU by the engines of nf/filter/bpf, on a GPU by those of nf/filter/code.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experiments/experiment.h"
#include "experiments/filter/core_rates_so_far.h"
#include "nf/filter/bpf/matcher.h"

namespace penstock::experiments {

class DeviceMatches;

inline constexpr std::size_t kFrameBytes = 64;
inline constexpr std::size_t kMostFilters = 1024;

/// The expression of filter `number`: ports, networks, hosts, protocols and flags in turn, all different.
[[nodiscard]] std::string filter_expression(std::size_t number);

/// `count` frames of kFrameBytes, with Ethernet, IPv4 and TCP or UDP. Most match some of the expressions, hardly any
/// matches many. The same in every run.
[[nodiscard]] std::vector<std::uint8_t> filter_frames(std::size_t count);

/// The words of 32 bits that hold a bit for each of so many filters.
[[nodiscard]] constexpr std::size_t words_of_filters(std::size_t filters) noexcept { return (filters + 31) / 32; }

/// Runs all programs on the frames: bit f % 32 of word f / 32 of a frame is set if filter f matches it.
void match_frames(const filter::Matcher& matcher, std::span<const filter::PacketBytes> frames,
                  std::uint32_t* words) noexcept;

class ManyFilters {
 public:
  /// Borrows both.
  ManyFilters(const Setting& setting, const CoreRatesSoFar& cores);
  ~ManyFilters();
  /// Sets `refused` if this build or machine lacks the engine. Fails if a result is wrong.
  [[nodiscard]] Result<void> measure(Point& point, const Point& limits);

 private:
  using Rates = Result<std::vector<double>>;

  [[nodiscard]] Result<void> prepare(std::size_t filters);
  [[nodiscard]] Rates on_cores(const filter::Matcher& matcher, unsigned cores) const;
  [[nodiscard]] Result<void> prepare_device(const std::string& engine);
  [[nodiscard]] Rates on_gpu(bool only_kernel);
  [[nodiscard]] Result<void> check(std::span<const std::uint32_t> words, std::size_t frame, const char* whose) const;

  const Setting& setting_;
  const CoreRatesSoFar& cores_;
  std::vector<std::uint8_t> bytes_;
  std::vector<filter::PacketBytes> frames_;
  std::vector<filter::Program> programs_;  // of the last point
  std::vector<std::uint32_t> expected_;    // words of every checked frame
  std::map<std::string, std::unique_ptr<filter::Matcher>> matchers_;
  std::unique_ptr<DeviceMatches> matches_;
  std::string matches_name_;
};

}  // namespace penstock::experiments
