// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The later phases of RFC: combines the classes of two nodes, and finds the entry of each final class.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "classify/rfc_budget.h"
#include "classify/rfc_dimension.h"
#include "classify/rule.h"

namespace penstock::classify {

/// Those entries of an address family that can match, by position: the order of evaluation.
struct RfcEntries {
  std::vector<std::uint32_t> index;    // in Ruleset::entries
  std::vector<std::uint32_t> skip_to;  // the position where evaluation continues; 0: the entry decides
  bool has_skips = false;

  [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(index.size()); }
};
[[nodiscard]] RfcEntries entries_of(const Ruleset& rules, std::vector<std::uint32_t> indices);

/// Removes from lists of entries those that never decide, given what is still to be tested: an entry that matches only
/// where an earlier one does.
class RfcPruner {
 public:
  /// `rest`: the node that is combined last.
  RfcPruner(const RfcEntries& entries, const RfcNode& rest, RfcBudget& budget);

  void prune(std::vector<std::uint32_t>& positions);

 private:
  [[nodiscard]] bool covers(std::uint32_t group, std::uint32_t other) const noexcept;

  const RfcEntries& entries_;
  const RfcNode& rest_;
  std::vector<bool> matches_all_;          // by group of the rest
  std::size_t words_ = 0;                  // per group; 0: too many groups
  std::vector<std::uint64_t> covered_by_;  // by group: bits of the groups that match wherever it does
  std::vector<std::uint32_t> deciding_;
};

/// Takes a row of a table; false: stop.
using RowSink = std::function<bool(std::span<const std::uint32_t>)>;
/// The same, with the classes so far.
using CombinedRowSink = std::function<bool(const ListPool&, std::span<const std::uint32_t>)>;

/// Items: pairs of a group of `x` and a group of `y`. The classes of the result are ascending lists of items. Gives the
/// table to `sink`: a row for each class of x, a column for each class of y. If there is a pruner, items are entries.
[[nodiscard]] ListPool combine(const RfcNode& x, const RfcNode& y, std::span<const std::uint32_t> x_of,
                               std::span<const std::uint32_t> y_of, RfcPruner* pruner, RfcBudget& budget,
                               const CombinedRowSink& sink);

/// The node of the combinations of `x` and `y`, whose groups are pairs of theirs.
[[nodiscard]] RfcNode combined(const RfcNode& x, const RfcNode& y, RfcBudget& budget, const RowSink& sink);

/// For each class of a node, the entries that match.
[[nodiscard]] ListPool entry_lists(const RfcNode& node, RfcBudget& budget);

/// Gives the last table to `sink`: a row for each list of positions, a column for each class of `rest`. An element is
/// the index of the entry that decides plus 1, or 0.
void decide(const RfcEntries& entries, const ListPool& lists, const RfcNode& rest, RfcBudget& budget,
            const RowSink& sink);

}  // namespace penstock::classify
