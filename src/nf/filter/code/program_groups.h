// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds programs whose decision graphs differ only in the constants of comparisons, such as "tcp port N" for many N.
// Code for such a group is generated once, as a loop over tables of constants.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "nf/filter/code/decision_graph.h"

namespace penstock::filter {

/// The first member's graph stands for those of all members.
struct ProgramGroup {
  NodeId root = kNoMatch;
  std::vector<std::uint32_t> members;  // positions in the list of programs, in ascending order
  /// The nodes of `root` whose constants differ between members, and the column that has them.
  std::map<NodeId, std::size_t> columns_of;
  std::vector<std::vector<std::uint32_t>> columns;  // each with one constant per member
};

/// Each program is in one group, which may have only this one. `roots` are the programs' starts; `programs` their
/// positions.
[[nodiscard]] std::vector<ProgramGroup> group_programs(const DecisionGraph& graph, std::span<const NodeId> roots,
                                                       std::span<const std::uint32_t> programs);

}  // namespace penstock::filter
