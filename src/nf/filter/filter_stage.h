// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin: runs all programs on groups of packets, counts, and decides. Also the finish stage, which counts what
// the GPU stage found.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "function/network_function.h"
#include "nf/filter/bpf/matcher.h"
#include "nf/filter/filter_list.h"
#include "nf/filter/tally.h"

namespace penstock::filter {

/// By link type; null where a filter has no program.
using MatcherTable = std::array<std::unique_ptr<const Matcher>, kLinkTypes>;

class FilterStage final : public function::CpuStage {
 public:
  /// Borrows the list and the matchers.
  FilterStage(const FilterList& list, const MatcherTable& matchers, std::span<const std::shared_ptr<Tally>> tallies)
      : list_(list), matchers_(matchers), counters_(tallies), bits_(kGroup * list.words()) {}

  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  /// How many packets are run through one program after the other.
  static constexpr std::size_t kGroup = 32;

  void process_group(std::span<PacketView> packets, const Matcher& matcher) noexcept;

  const FilterList& list_;
  const MatcherTable& matchers_;
  StageCounters counters_;
  std::vector<std::uint32_t> bits_;  // of a group: list_.words() for each packet
};

class FilterFinishStage final : public function::FinishStage {
 public:
  /// As for FilterStage.
  FilterFinishStage(const FilterList& list, const MatcherTable& matchers,
                    std::span<const std::shared_ptr<Tally>> tallies)
      : list_(list), matchers_(matchers), counters_(tallies) {}

  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  const FilterList& list_;
  const MatcherTable& matchers_;
  StageCounters counters_;
};

}  // namespace penstock::filter
