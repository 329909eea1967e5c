// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// BPF programs as decision graphs, from which CUDA code is generated. A value is what a register can hold: a constant,
// bytes of the packet, or arithmetic on values. A test compares values. A node asks a test and goes on to another node;
// the nodes 0 and 1 end the program with "no match" and "match". Values and tests have no side effects, and may be
// evaluated where the program would not have. Values, tests and nodes that are equal exist once, whichever program they
// come from, and have greater ids than those that they refer to.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

using ValueId = std::uint32_t;
using TestId = std::uint32_t;
using NodeId = std::uint32_t;

inline constexpr ValueId kNoValue = 0xffffffff;
inline constexpr NodeId kNoMatch = 0;
inline constexpr NodeId kMatch = 1;

struct Value {
  enum class Kind : std::uint8_t {
    constant,     // k
    wire_length,  // of the packet
    load,         // `width` bytes of the packet at k, or at a + k; 0 for bytes that are not there
    add,          // the others: a op b, modulo 2^32
    subtract,
    multiply,
    divide,  // 0 if b is 0, which a test has excluded
    modulo,
    bit_or,
    bit_and,
    bit_xor,
    shift_left,  // 0 if b > 31
    shift_right,
  };
  Kind kind = Kind::constant;
  std::uint8_t width = 0;
  ValueId a = kNoValue;
  ValueId b = kNoValue;
  std::uint32_t k = 0;
  friend bool operator==(const Value&, const Value&) = default;
};

struct Test {
  enum class Kind : std::uint8_t {
    equal,  // a op b
    greater,
    greater_equal,
    any_bit,    // (a & b) != 0
    present,    // the packet's bytes before k, or before a + k, are all there
    in_packet,  // … exist, although they may not be there
  };
  Kind kind = Kind::equal;
  ValueId a = kNoValue;
  ValueId b = kNoValue;
  std::uint32_t k = 0;
  friend bool operator==(const Test&, const Test&) = default;
};

struct Node {
  TestId test = 0;
  NodeId yes = kNoMatch;
  NodeId no = kNoMatch;
  friend bool operator==(const Node&, const Node&) = default;
};

class DecisionGraph {
 public:
  DecisionGraph();

  /// The node where the program starts. A place of the program that is reached with different values in its registers
  /// becomes several nodes; empty if this makes the graph too large, which no program of libpcap's compiler does.
  [[nodiscard]] std::optional<NodeId> add(const Program& program);

  /// The graph of whether the program that starts at `root` loads bytes of the packet that are not there, where at most
  /// `available` bytes of each packet are there. kNoMatch if it never does.
  [[nodiscard]] NodeId undecided(NodeId root, std::uint32_t available);

  [[nodiscard]] const Value& value(ValueId id) const noexcept { return values_[id]; }
  [[nodiscard]] const Test& test(TestId id) const noexcept { return tests_[id]; }
  [[nodiscard]] const Node& node(NodeId id) const noexcept { return nodes_[id]; }
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }
  [[nodiscard]] bool is_constant(ValueId id) const noexcept { return values_[id].kind == Value::Kind::constant; }
  /// The value modulo 4, if it is the same for all packets.
  [[nodiscard]] std::optional<std::uint32_t> modulo_4(ValueId id) const noexcept;
  /// The greatest that the value can be.
  [[nodiscard]] std::uint32_t most(ValueId id) const noexcept { return bounds_[id].most; }

  /// The nodes that can be reached from these, without kNoMatch and kMatch, in ascending order: those that a node
  /// refers to come before it.
  [[nodiscard]] std::vector<NodeId> reachable(const std::vector<NodeId>& roots) const;

 private:
  struct Bounds {
    std::uint32_t most = 0xffffffff;
    std::uint8_t modulo_4 = kUnknown;
  };
  static constexpr std::uint8_t kUnknown = 4;
  struct Hash {
    std::size_t operator()(const Value& value) const noexcept;
    std::size_t operator()(const Test& test) const noexcept;
    std::size_t operator()(const Node& node) const noexcept;
  };
  class Trace;

  ValueId constant(std::uint32_t k);
  ValueId intern(const Value& value);
  ValueId load(std::uint8_t width, ValueId base, std::uint32_t k);
  ValueId compute(Value::Kind kind, ValueId a, ValueId b);
  [[nodiscard]] Bounds bounds_of(const Value& value) const noexcept;
  TestId intern(const Test& test);
  /// The answer, if it is the same for all packets.
  [[nodiscard]] std::optional<bool> known(const Test& test) const noexcept;
  NodeId make(const Test& test, NodeId yes, NodeId no);
  NodeId make(TestId test, NodeId yes, NodeId no);
  /// Removes tests for bytes that an earlier test has found to be present.
  NodeId without_repeated_checks(NodeId root);

  std::vector<Value> values_;
  std::vector<Bounds> bounds_;
  std::vector<Test> tests_;
  std::vector<Node> nodes_;
  std::unordered_map<Value, ValueId, Hash> value_ids_;
  std::unordered_map<Test, TestId, Hash> test_ids_;
  std::unordered_map<Node, NodeId, Hash> node_ids_;
};

/// The result of an operation on constants.
[[nodiscard]] std::uint32_t calculate(Value::Kind kind, std::uint32_t a, std::uint32_t b) noexcept;

}  // namespace penstock::filter
