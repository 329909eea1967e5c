// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In order: values, tests, nodes, and the trace, which runs a program with values in place of numbers.

#include "nf/filter/code/decision_graph.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <map>
#include <utility>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {
namespace {

constexpr std::uint32_t kAll = 0xffffffff;

std::size_t mix(std::size_t hash, std::size_t more) noexcept {
  return (hash ^ more) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
}

/// All bits up to the highest bit of `value`.
std::uint32_t filled(std::uint32_t value) noexcept {
  for (const unsigned shift : {1U, 2U, 4U, 8U, 16U}) value |= value >> shift;
  return value;
}

std::uint32_t saturated(std::uint64_t value) noexcept {
  return value > kAll ? kAll : static_cast<std::uint32_t>(value);
}

}  // namespace

std::uint32_t calculate(Value::Kind kind, std::uint32_t a, std::uint32_t b) noexcept {
  switch (kind) {
    case Value::Kind::add: return a + b;
    case Value::Kind::subtract: return a - b;
    case Value::Kind::multiply: return a * b;
    case Value::Kind::divide: return b == 0 ? 0 : a / b;
    case Value::Kind::modulo: return b == 0 ? 0 : a % b;
    case Value::Kind::bit_or: return a | b;
    case Value::Kind::bit_and: return a & b;
    case Value::Kind::bit_xor: return a ^ b;
    case Value::Kind::shift_left: return b > 31 ? 0 : a << b;
    case Value::Kind::shift_right: return b > 31 ? 0 : a >> b;
    case Value::Kind::constant:
    case Value::Kind::wire_length:
    case Value::Kind::load: break;
  }
  assert(false);
  return 0;
}

std::size_t DecisionGraph::Hash::operator()(const Value& value) const noexcept {
  const auto kind = static_cast<std::size_t>(value.kind) << 8 | value.width;
  return mix(mix(mix(kind, value.a), value.b), value.k);
}
std::size_t DecisionGraph::Hash::operator()(const Test& test) const noexcept {
  return mix(mix(mix(static_cast<std::size_t>(test.kind), test.a), test.b), test.k);
}
std::size_t DecisionGraph::Hash::operator()(const Node& node) const noexcept {
  return mix(mix(node.test, node.yes), node.no);
}

DecisionGraph::DecisionGraph() : nodes_(2) {}

std::optional<std::uint32_t> DecisionGraph::modulo_4(ValueId id) const noexcept {
  const std::uint8_t known = bounds_[id].modulo_4;
  return known == kUnknown ? std::nullopt : std::optional<std::uint32_t>(known);
}

std::vector<NodeId> DecisionGraph::reachable(const std::vector<NodeId>& roots) const {
  std::vector<NodeId> found;
  std::vector<NodeId> open = roots;
  std::vector<bool> seen(nodes_.size());
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id <= kMatch || seen[id]) continue;
    seen[id] = true;
    found.push_back(id);
    open.push_back(nodes_[id].yes);
    open.push_back(nodes_[id].no);
  }
  std::ranges::sort(found);
  return found;
}

// Values

ValueId DecisionGraph::constant(std::uint32_t k) {
  Value value;
  value.k = k;
  return intern(value);
}

ValueId DecisionGraph::intern(const Value& value) {
  const auto [entry, is_new] = value_ids_.try_emplace(value, static_cast<ValueId>(values_.size()));
  if (is_new) {
    values_.push_back(value);
    bounds_.push_back(bounds_of(value));
  }
  return entry->second;
}

ValueId DecisionGraph::load(std::uint8_t width, ValueId base, std::uint32_t k) {
  if (base != kNoValue && is_constant(base)) {
    // Where the sum wraps, a test has found that the bytes are not there.
    k += values_[base].k;
    base = kNoValue;
  }
  Value value;
  value.kind = Value::Kind::load;
  value.width = width;
  value.a = base;
  value.k = k;
  return intern(value);
}

ValueId DecisionGraph::compute(Value::Kind kind, ValueId a, ValueId b) {
  if (is_constant(a) && is_constant(b)) return constant(calculate(kind, values_[a].k, values_[b].k));
  if (is_constant(b)) {
    const std::uint32_t k = values_[b].k;
    const bool keeps_zero = kind == Value::Kind::add || kind == Value::Kind::subtract || kind == Value::Kind::bit_or ||
                            kind == Value::Kind::bit_xor || kind == Value::Kind::shift_left ||
                            kind == Value::Kind::shift_right;
    if (k == 0 && keeps_zero) return a;
    if (k == 1 && (kind == Value::Kind::multiply || kind == Value::Kind::divide)) return a;
    if (k == 0 && (kind == Value::Kind::multiply || kind == Value::Kind::bit_and)) return b;
    // All the bits that the value can have.
    if (kind == Value::Kind::bit_and && (filled(most(a)) & ~k) == 0) return a;
  }
  Value value;
  value.kind = kind;
  value.a = a;
  value.b = b;
  return intern(value);
}

DecisionGraph::Bounds DecisionGraph::bounds_of(const Value& value) const noexcept {
  Bounds bounds;
  if (value.kind == Value::Kind::constant) return {value.k, static_cast<std::uint8_t>(value.k % 4)};
  if (value.kind == Value::Kind::wire_length) return bounds;
  if (value.kind == Value::Kind::load) {
    if (value.width < 4) bounds.most = (1U << (8 * value.width)) - 1;
    return bounds;
  }
  const Bounds& a = bounds_[value.a];
  const Bounds& b = bounds_[value.b];
  const bool both = a.modulo_4 != kUnknown && b.modulo_4 != kUnknown;
  // The low bits of these results depend on the operands' low bits alone.
  const bool from_low_bits = value.kind == Value::Kind::add || value.kind == Value::Kind::subtract ||
                             value.kind == Value::Kind::multiply || value.kind == Value::Kind::bit_or ||
                             value.kind == Value::Kind::bit_and || value.kind == Value::Kind::bit_xor;
  if (both && from_low_bits) {
    bounds.modulo_4 = static_cast<std::uint8_t>(calculate(value.kind, a.modulo_4, b.modulo_4) % 4);
  }
  const Value& by = values_[value.b];
  const bool by_constant = by.kind == Value::Kind::constant;
  switch (value.kind) {
    case Value::Kind::add: bounds.most = saturated(std::uint64_t{a.most} + b.most); break;
    case Value::Kind::multiply:
      bounds.most = saturated(std::uint64_t{a.most} * b.most);
      if (by_constant && by.k % 4 == 0) bounds.modulo_4 = 0;
      break;
    case Value::Kind::divide: bounds.most = by_constant && by.k != 0 ? a.most / by.k : a.most; break;
    case Value::Kind::modulo: bounds.most = b.most == 0 ? 0 : std::min(a.most, b.most - 1); break;
    case Value::Kind::bit_or:
    case Value::Kind::bit_xor: bounds.most = filled(a.most | b.most); break;
    case Value::Kind::bit_and:
      bounds.most = std::min(a.most, b.most);
      if (by_constant && by.k % 4 == 0) bounds.modulo_4 = 0;
      break;
    case Value::Kind::shift_left:
      if (by_constant) {
        bounds.most = by.k > 31 ? 0 : saturated(std::uint64_t{a.most} << by.k);
        if (by.k >= 2) bounds.modulo_4 = 0;
      }
      break;
    case Value::Kind::shift_right: bounds.most = by_constant && by.k <= 31 ? a.most >> by.k : a.most; break;
    default: break;  // a difference can be anything
  }
  return bounds;
}

// Tests

TestId DecisionGraph::intern(const Test& test) {
  const auto [entry, is_new] = test_ids_.try_emplace(test, static_cast<TestId>(tests_.size()));
  if (is_new) tests_.push_back(test);
  return entry->second;
}

std::optional<bool> DecisionGraph::known(const Test& test) const noexcept {
  if (test.kind == Test::Kind::present || test.kind == Test::Kind::in_packet) return std::nullopt;
  const std::uint32_t most_of_a = most(test.a);
  const bool same = test.a == test.b;
  const bool b_known = is_constant(test.b);
  const std::uint32_t b = values_[test.b].k;
  if (is_constant(test.a) && b_known) {
    const std::uint32_t a = values_[test.a].k;
    switch (test.kind) {
      case Test::Kind::equal: return a == b;
      case Test::Kind::greater: return a > b;
      case Test::Kind::greater_equal: return a >= b;
      default: return (a & b) != 0;
    }
  }
  switch (test.kind) {
    case Test::Kind::equal:
      if (same) return true;
      if (b_known && b > most_of_a) return false;
      break;
    case Test::Kind::greater:
      if (same || most_of_a == 0 || (b_known && b >= most_of_a)) return false;
      break;
    case Test::Kind::greater_equal:
      if (same || (b_known && b == 0)) return true;
      if (b_known && b > most_of_a) return false;
      break;
    default:
      if (b_known && (b & filled(most_of_a)) == 0) return false;
      break;
  }
  return std::nullopt;
}

// Nodes

NodeId DecisionGraph::make(const Test& test, NodeId yes, NodeId no) {
  if (yes == no) return yes;
  if (const auto answer = known(test)) return *answer ? yes : no;
  return make(intern(test), yes, no);
}

NodeId DecisionGraph::make(TestId test, NodeId yes, NodeId no) {
  if (yes == no) return yes;
  const Node node{test, yes, no};
  const auto [entry, is_new] = node_ids_.try_emplace(node, static_cast<NodeId>(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return entry->second;
}

NodeId DecisionGraph::without_repeated_checks(NodeId root) {
  // A node may be reached with different numbers of bytes known to be present. First, from the root: the numbers for
  // each node. Then, from the ends: the new node for each.
  std::map<NodeId, std::vector<std::uint32_t>> reached;
  reached[root].push_back(0);
  const std::vector<NodeId> order = reachable({root});
  const std::size_t most_copies = 4 * order.size() + 64;
  std::size_t copies = 0;
  const auto reach = [&](NodeId id, std::uint32_t present) {
    if (id <= kMatch) return;
    std::vector<std::uint32_t>& numbers = reached[id];
    if (std::ranges::find(numbers, present) != numbers.end()) return;
    numbers.push_back(present);
    ++copies;
  };
  const auto is_repeated = [&](const Test& test, std::uint32_t present) {
    const std::uint64_t end = std::uint64_t{test.k} + (test.a == kNoValue ? 0 : most(test.a));
    return test.kind == Test::Kind::present && end <= present;
  };
  const auto after = [](const Test& test, std::uint32_t present) {
    return test.kind == Test::Kind::present ? std::max(present, test.k) : present;
  };
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node node = nodes_[*id];
    const Test test = tests_[node.test];
    const std::vector<std::uint32_t> numbers = reached[*id];
    for (const std::uint32_t present : numbers) {
      reach(node.yes, after(test, present));
      if (!is_repeated(test, present)) reach(node.no, present);
    }
    if (copies > most_copies) return root;
  }
  std::map<std::pair<NodeId, std::uint32_t>, NodeId> made;
  const auto find = [&](NodeId id, std::uint32_t present) { return id <= kMatch ? id : made.at({id, present}); };
  for (const NodeId id : order) {
    const Node node = nodes_[id];
    const Test test = tests_[node.test];
    for (const std::uint32_t present : reached[id]) {
      const NodeId yes = find(node.yes, after(test, present));
      made[{id, present}] = is_repeated(test, present) ? yes : make(node.test, yes, find(node.no, present));
    }
  }
  return find(root, 0);
}

NodeId DecisionGraph::undecided(NodeId root, std::uint32_t available) {
  std::unordered_map<NodeId, NodeId> made;
  const auto find = [&](NodeId id) { return id <= kMatch ? kNoMatch : made.at(id); };
  for (const NodeId id : reachable({root})) {
    const Node node = nodes_[id];
    const Test test = tests_[node.test];
    NodeId no = find(node.no);
    if (test.kind == Test::Kind::present) {
      const std::uint64_t end = std::uint64_t{test.k} + (test.a == kNoValue ? 0 : most(test.a));
      Test exists = test;
      exists.kind = Test::Kind::in_packet;
      no = end <= available ? kNoMatch : make(exists, kMatch, kNoMatch);
    }
    made[id] = make(node.test, find(node.yes), no);
  }
  return find(root);
}

// The trace

class DecisionGraph::Trace {
 public:
  Trace(DecisionGraph& graph, std::span<const Instruction> program)
      : graph_(graph), program_(program), live_(program.size() + 1), runs_at_(program.size()) {}

  std::optional<NodeId> root() {
    find_live();
    const std::uint32_t first = run_at(0, State(kRegisters, graph_.constant(0)));
    // Jumps only go forward, so all runs that begin at an instruction are known when it is their turn.
    for (std::uint32_t at = 0; at < program_.size(); ++at) {
      for (std::size_t i = 0; i < runs_at_[at].size(); ++i) {
        execute(runs_at_[at][i]);
        if (runs_.size() > 4 * program_.size() + 64) return std::nullopt;
      }
    }
    for (std::size_t at = program_.size(); at-- > 0;) {
      for (const std::uint32_t run : runs_at_[at]) finish(runs_[run]);
    }
    return graph_.without_repeated_checks(runs_[first].node);
  }

 private:
  // A, X and the scratch memory.
  static constexpr std::uint32_t kA = 0;
  static constexpr std::uint32_t kX = 1;
  static constexpr std::uint32_t kScratch = 2;
  static constexpr std::uint32_t kRegisters = kScratch + kScratchWords;
  using State = std::vector<ValueId>;

  /// From an instruction, reached with these values, to the next branch whose answer depends on the packet.
  struct Run {
    std::uint32_t at = 0;
    State state;
    std::vector<Test> checks;  // each ends the program if it fails
    bool branches = false;
    Test test;
    std::uint32_t yes = 0, no = 0;  // runs
    NodeId node = kNoMatch;         // where it ends, if it does not branch; then, where it starts
  };

  /// The registers that an instruction reads, as bits.
  static std::uint32_t reads(const Instruction& instruction) noexcept {
    constexpr std::uint32_t kReadsA = 1U << kA;
    constexpr std::uint32_t kReadsX = 1U << kX;
    switch (instruction.code) {
      case kLoadWordInd:
      case kLoadHalfInd:
      case kLoadByteInd:
      case kStoreX:
      case kCopyXToA: return kReadsX;
      case kLoadScratch:
      case kLoadXScratch: return 1U << (kScratch + instruction.k);
      case kStore:
      case kReturnA:
      case kCopyAToX:
      case kNegate: return kReadsA;
      case kJump: return 0;
      default: break;
    }
    const auto kind = instruction.code & kClassMask;
    if (kind != kClassJump && kind != 0x04) return 0;
    return (instruction.code & 0x08) != 0 ? kReadsA | kReadsX : kReadsA;
  }

  /// The register that an instruction writes; kRegisters if none.
  static std::uint32_t writes(const Instruction& instruction) noexcept {
    switch (instruction.code & kClassMask) {
      case 0x00:
      case 0x04: return kA;
      case 0x01: return kX;
      case 0x02:
      case 0x03: return kScratch + instruction.k;
      case 0x07: return instruction.code == kCopyAToX ? kX : kA;
      default: return kRegisters;
    }
  }

  void find_live() {
    for (std::size_t at = program_.size(); at-- > 0;) {
      const Instruction& instruction = program_[at];
      std::uint32_t after = 0;
      if (instruction.code == kJump) {
        after = live_[at + 1 + instruction.k];
      } else if ((instruction.code & kClassMask) == kClassJump) {
        after = live_[at + 1 + instruction.jump_true] | live_[at + 1 + instruction.jump_false];
      } else if ((instruction.code & kClassMask) != kClassReturn) {
        after = live_[at + 1];
      }
      const std::uint32_t written = writes(instruction);
      if (written != kRegisters) after &= ~(1U << written);
      live_[at] = after | reads(instruction);
    }
  }

  std::uint32_t run_at(std::uint32_t at, State state) {
    for (std::uint32_t i = 0; i < kRegisters; ++i) {
      if ((live_[at] >> i & 1U) == 0) state[i] = graph_.constant(0);
    }
    for (const std::uint32_t run : runs_at_[at]) {
      if (runs_[run].state == state) return run;
    }
    runs_at_[at].push_back(static_cast<std::uint32_t>(runs_.size()));
    Run& run = runs_.emplace_back();
    run.at = at;
    run.state = std::move(state);
    return runs_at_[at].back();
  }

  /// False if the bytes can never be there.
  bool check(Run& run, ValueId base, std::uint32_t k, std::uint32_t width) {
    std::uint64_t end = std::uint64_t{k} + width;
    if (base != kNoValue && graph_.is_constant(base)) {
      end += graph_.value(base).k;
      base = kNoValue;
    }
    if (end > kAll) return false;
    Test test;
    test.kind = Test::Kind::present;
    test.a = base;
    test.k = static_cast<std::uint32_t>(end);
    run.checks.push_back(test);
    return true;
  }

  void execute(std::uint32_t index) {
    Run run = std::move(runs_[index]);
    State state = run.state;
    std::uint32_t at = run.at;
    while (step(run, state, at)) continue;
    runs_[index] = std::move(run);
  }

  /// False after a return or a branch.
  bool step(Run& run, State& state, std::uint32_t& at) {
    const Instruction& instruction = program_[at];
    const std::uint32_t k = instruction.k;
    ++at;
    switch (instruction.code) {
      case kLoadWordAbs: return load(run, state, 4, kNoValue, k);
      case kLoadHalfAbs: return load(run, state, 2, kNoValue, k);
      case kLoadByteAbs: return load(run, state, 1, kNoValue, k);
      case kLoadWordInd: return load(run, state, 4, state[kX], k);
      case kLoadHalfInd: return load(run, state, 2, state[kX], k);
      case kLoadByteInd: return load(run, state, 1, state[kX], k);
      case kLoadXHeaderLength: {
        if (!check(run, kNoValue, k, 1)) return false;
        const ValueId low = graph_.compute(Value::Kind::bit_and, graph_.load(1, kNoValue, k), graph_.constant(0x0f));
        state[kX] = graph_.compute(Value::Kind::shift_left, low, graph_.constant(2));
        return true;
      }
      case kLoadImmediate: state[kA] = graph_.constant(k); return true;
      case kLoadScratch: state[kA] = state[kScratch + k]; return true;
      case kLoadLength: state[kA] = wire_length(); return true;
      case kLoadXImmediate: state[kX] = graph_.constant(k); return true;
      case kLoadXScratch: state[kX] = state[kScratch + k]; return true;
      case kLoadXLength: state[kX] = wire_length(); return true;
      case kStore: state[kScratch + k] = state[kA]; return true;
      case kStoreX: state[kScratch + k] = state[kX]; return true;
      case kCopyAToX: state[kX] = state[kA]; return true;
      case kCopyXToA: state[kA] = state[kX]; return true;
      case kNegate: state[kA] = graph_.compute(Value::Kind::subtract, graph_.constant(0), state[kA]); return true;
      case kReturnK: run.node = k != 0 ? kMatch : kNoMatch; return false;
      case kReturnA: {
        Test is_zero;
        is_zero.a = state[kA];
        is_zero.b = graph_.constant(0);
        run.node = graph_.make(is_zero, kNoMatch, kMatch);
        return false;
      }
      case kJump: at += k; return true;
      default: break;
    }
    const ValueId operand = (instruction.code & 0x08) != 0 ? state[kX] : graph_.constant(k);
    if ((instruction.code & kClassMask) == kClassJump) return branch(run, state, at, instruction, operand);
    return calculate(run, state, static_cast<std::uint16_t>(instruction.code & 0xf0), operand);
  }

  ValueId wire_length() {
    Value value;
    value.kind = Value::Kind::wire_length;
    return graph_.intern(value);
  }

  bool load(Run& run, State& state, std::uint8_t width, ValueId base, std::uint32_t k) {
    if (!check(run, base, k, width)) return false;
    state[kA] = graph_.load(width, base, k);
    return true;
  }

  bool calculate(Run& run, State& state, std::uint16_t operation, ValueId operand) {
    using Kind = Value::Kind;
    Kind kind{};
    switch (operation) {
      case 0x00: kind = Kind::add; break;
      case 0x10: kind = Kind::subtract; break;
      case 0x20: kind = Kind::multiply; break;
      case 0x30: kind = Kind::divide; break;
      case 0x40: kind = Kind::bit_or; break;
      case 0x50: kind = Kind::bit_and; break;
      case 0x60: kind = Kind::shift_left; break;
      case 0x70: kind = Kind::shift_right; break;
      case 0x90: kind = Kind::modulo; break;
      default: kind = Kind::bit_xor; break;
    }
    if (kind == Kind::divide || kind == Kind::modulo) {
      if (graph_.is_constant(operand)) {
        if (graph_.value(operand).k == 0) return false;
      } else {
        Test not_zero;
        not_zero.kind = Test::Kind::any_bit;
        not_zero.a = operand;
        not_zero.b = graph_.constant(kAll);
        run.checks.push_back(not_zero);
      }
    }
    state[kA] = graph_.compute(kind, state[kA], operand);
    return true;
  }

  bool branch(Run& run, const State& state, std::uint32_t& at, const Instruction& instruction, ValueId operand) {
    Test test;
    test.a = state[kA];
    test.b = operand;
    switch (instruction.code & 0xf0) {
      case 0x10: test.kind = Test::Kind::equal; break;
      case 0x20: test.kind = Test::Kind::greater; break;
      case 0x30: test.kind = Test::Kind::greater_equal; break;
      default: test.kind = Test::Kind::any_bit; break;
    }
    const std::uint32_t yes = at + instruction.jump_true;
    const std::uint32_t no = at + instruction.jump_false;
    const auto answer = yes == no ? std::optional<bool>(true) : graph_.known(test);
    if (answer) {
      at = *answer ? yes : no;
      return true;
    }
    run.branches = true;
    run.test = test;
    run.yes = run_at(yes, state);
    run.no = run_at(no, state);
    return false;
  }

  void finish(Run& run) {
    if (run.branches) run.node = graph_.make(run.test, runs_[run.yes].node, runs_[run.no].node);
    for (auto check = run.checks.rbegin(); check != run.checks.rend(); ++check) {
      run.node = graph_.make(*check, run.node, kNoMatch);
    }
  }

  DecisionGraph& graph_;
  std::span<const Instruction> program_;
  std::vector<std::uint32_t> live_;                  // by instruction: the registers whose values matter from here on
  std::vector<std::vector<std::uint32_t>> runs_at_;  // by their first instruction
  std::vector<Run> runs_;
};

std::optional<NodeId> DecisionGraph::add(const Program& program) { return Trace(*this, program.instructions()).root(); }

}  // namespace penstock::filter
