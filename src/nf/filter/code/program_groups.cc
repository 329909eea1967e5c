// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/program_groups.h"

#include <algorithm>
#include <unordered_map>

namespace penstock::filter {
namespace {

/// A graph, as a list of numbers without the constants to which values are compared. Nodes are numbered in the order of
/// a walk from the root, so that the numbers do not depend on other programs.
struct Skeleton {
  std::vector<std::uint32_t> key;
  std::vector<NodeId> nodes;             // with a constant
  std::vector<std::uint32_t> constants;  // theirs
};

bool compares_with_constant(const DecisionGraph& graph, const Test& test) {
  return test.kind != Test::Kind::present && test.kind != Test::Kind::in_packet && graph.is_constant(test.b);
}

Skeleton skeleton_of(const DecisionGraph& graph, NodeId root) {
  std::vector<NodeId> order;
  std::unordered_map<NodeId, std::uint32_t> numbers{{kNoMatch, 0}, {kMatch, 1}};
  std::vector<NodeId> open{root};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!numbers.try_emplace(id, static_cast<std::uint32_t>(numbers.size())).second) continue;
    order.push_back(id);
    open.push_back(graph.node(id).no);
    open.push_back(graph.node(id).yes);
  }
  Skeleton skeleton;
  skeleton.key.push_back(numbers.at(root));
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const Test& test = graph.test(node.test);
    const bool has_constant = compares_with_constant(graph, test);
    skeleton.key.insert(skeleton.key.end(),
                        {static_cast<std::uint32_t>(test.kind), test.a, has_constant ? kNoValue : test.b,
                         has_constant ? 1U : 0U, test.k, numbers.at(node.yes), numbers.at(node.no)});
    if (!has_constant) continue;
    skeleton.nodes.push_back(id);
    skeleton.constants.push_back(graph.value(test.b).k);
  }
  return skeleton;
}

}  // namespace

std::vector<ProgramGroup> group_programs(const DecisionGraph& graph, std::span<const NodeId> roots,
                                         std::span<const std::uint32_t> programs) {
  std::map<std::vector<std::uint32_t>, std::size_t> found;
  std::vector<ProgramGroup> groups;
  std::vector<Skeleton> firsts;                              // by group: the first member's
  std::vector<std::vector<std::vector<std::uint32_t>>> all;  // by group and member: constants
  for (std::size_t i = 0; i < roots.size(); ++i) {
    Skeleton skeleton = skeleton_of(graph, roots[i]);
    const auto [entry, is_new] = found.try_emplace(skeleton.key, groups.size());
    if (is_new) {
      groups.emplace_back().root = roots[i];
      firsts.push_back(skeleton);
      all.emplace_back();
    }
    groups[entry->second].members.push_back(programs[i]);
    all[entry->second].push_back(std::move(skeleton.constants));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t slot = 0; slot < firsts[g].nodes.size(); ++slot) {
      std::vector<std::uint32_t> column;
      for (const auto& constants : all[g]) column.push_back(constants[slot]);
      if (std::ranges::all_of(column, [&](std::uint32_t k) { return k == column[0]; })) continue;
      std::vector<std::vector<std::uint32_t>>& columns = groups[g].columns;
      const auto same = std::ranges::find(columns, column);
      groups[g].columns_of[firsts[g].nodes[slot]] = static_cast<std::size_t>(same - columns.begin());
      if (same == columns.end()) columns.push_back(std::move(column));
    }
  }
  return groups;
}

}  // namespace penstock::filter
