// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The first phases of RFC for one dimension of keys: which numbers no rule distinguishes, and the tables that map a
// number to its class chunk by chunk. The classes are minimal at each phase, since they are made from the intervals of
// the dimension and not from the chunks' parts of rules.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "classify/interval_set.h"
#include "classify/list_pool.h"
#include "classify/rfc_budget.h"
#include "classify/rfc_layout.h"

namespace penstock::classify {

/// A dimension, or the combination of several. Entries with the same condition on it form a group. A class of values
/// (or of combinations of values) is the ascending list of the groups whose conditions hold.
struct RfcNode {
  std::vector<std::uint32_t> group_of;  // by entry
  std::uint32_t groups = 0;
  ListPool classes;

  /// Whether it distinguishes any packets.
  [[nodiscard]] bool matters() const noexcept { return classes.size() > 1; }
};

/// An interval's first number, and the class of all its numbers.
struct RfcStep {
  Number start;
  std::uint32_t cls = 0;
};

struct RfcDimension {
  RfcNode node;
  std::vector<RfcStep> steps;
};

/// `entries`: indices in rules.entries. Stops early if the budget is exceeded.
[[nodiscard]] RfcDimension make_dimension(const Ruleset& rules, std::span<const std::uint32_t> entries,
                                          Dimension dimension, std::uint32_t port_count, RfcBudget& budget);

/// Appends the tables for numbers of `chunk_count` chunks to `memory`, and describes them in `chunks`; returns how many
/// chunks matter. A single chunk may have more than 16 bits. `highest`: the highest number.
[[nodiscard]] std::uint32_t write_chunks(std::span<const RfcStep> steps, std::uint32_t chunk_count, Number highest,
                                         std::span<RfcChunk> chunks, std::vector<std::uint64_t>& memory,
                                         RfcBudget& budget);

}  // namespace penstock::classify
