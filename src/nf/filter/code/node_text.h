// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes nodes of a decision graph as C++ statements: one constant for each word of the packet, value, test and node,
// each written once, before its first use. Nodes become `bool`s without branches, so that threads with different
// packets stay together. The statements refer to a PacketWindow `packet`.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nf/filter/code/decision_graph.h"

namespace penstock::filter {

class NodeText {
 public:
  explicit NodeText(const DecisionGraph& graph) noexcept : graph_(graph) {}

  /// Appends what defines the node, and returns its name, or "true" or "false".
  std::string define(NodeId root, std::string& text);

  /// The parts, in the order in which they must be defined. What is defined already is left out.
  void define_value(ValueId value, std::string& text);
  void define_test(TestId test, std::string& text);
  void define_node(NodeId node, std::string& text);
  /// A node whose test compares with a number that `constant`, an expression, gives.
  void define_node(NodeId node, const std::string& constant, std::string& text);

  [[nodiscard]] static std::string name_of_node(NodeId node);
  [[nodiscard]] static std::string name_of_test(TestId test);

 private:
  [[nodiscard]] std::string operand(ValueId value) const;
  [[nodiscard]] std::string bytes(const Value& load, std::string& text);
  std::string word(ValueId base, std::uint32_t offset, std::string& text);
  [[nodiscard]] std::string comparison(const Test& test, const std::string& b) const;
  void choose(NodeId node, const std::string& test, std::string& text);

  const DecisionGraph& graph_;
  std::set<std::pair<ValueId, std::uint32_t>> words_;
  std::set<ValueId> values_;
  std::set<TestId> tests_;
  std::set<NodeId> nodes_;
};

/// "0x1fu"
[[nodiscard]] std::string literal(std::uint32_t number);

}  // namespace penstock::filter
