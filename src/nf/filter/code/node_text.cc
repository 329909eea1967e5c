// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/node_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::filter {

std::string literal(std::uint32_t number) { return fmt::format("{:#x}u", number); }

std::string NodeText::name_of_node(NodeId node) {
  return node == kMatch ? "true" : node == kNoMatch ? "false" : fmt::format("n{}", node);
}

std::string NodeText::name_of_test(TestId test) { return fmt::format("t{}", test); }

std::string NodeText::define(NodeId root, std::string& text) {
  for (const NodeId node : graph_.reachable({root})) {
    if (nodes_.contains(node)) continue;
    define_test(graph_.node(node).test, text);
    define_node(node, text);
  }
  return name_of_node(root);
}

std::string NodeText::operand(ValueId id) const {
  const Value& value = graph_.value(id);
  if (value.kind == Value::Kind::constant) return literal(value.k);
  if (value.kind == Value::Kind::wire_length) return "packet.wire_length";
  return fmt::format("v{}", id);
}

std::string NodeText::word(ValueId base, std::uint32_t offset, std::string& text) {
  const std::string name = base == kNoValue ? fmt::format("w{}", offset) : fmt::format("w{}_{}", base, offset);
  if (!words_.insert({base, offset}).second) return name;
  const std::string at = base == kNoValue ? literal(offset) : fmt::format("{} + {}", operand(base), literal(offset));
  text += fmt::format("const u32 {} = word_at(packet, {});\n", name, at);
  return name;
}

std::string NodeText::bytes(const Value& load, std::string& text) {
  const std::uint32_t width = load.width;
  const auto base = load.a == kNoValue ? std::optional<std::uint32_t>(0) : graph_.modulo_4(load.a);
  if (!base) return fmt::format("number_at(packet, {} + {}, {}u)", operand(load.a), literal(load.k), width);
  // The words in which the bytes are, and the position of the first byte.
  const std::uint32_t first = (*base + load.k) % 4;
  const std::string low = word(load.a, load.k - first, text);
  if (width == 1) return fmt::format("{} >> {} & 0xffu", low, 8 * first);
  std::uint32_t selector = 0;
  for (std::uint32_t i = 0; i < width; ++i) selector |= (first + width - 1 - i) << (4 * i);
  if (first + width > 4) {
    const std::string high = word(load.a, load.k - first + 4, text);
    const std::string selected = fmt::format("select_bytes({}, {}, {})", low, high, literal(selector));
    return width == 4 ? selected : selected + " & 0xffffu";
  }
  if (width == 2) selector |= 0x4400;  // bytes of 0
  return fmt::format("select_bytes({}, 0u, {})", low, literal(selector));
}

void NodeText::define_value(ValueId root, std::string& text) {
  std::vector<ValueId> open{root};
  std::set<ValueId> missing;  // in ascending order: operands first
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == kNoValue || values_.contains(id) || missing.contains(id)) continue;
    const Value& value = graph_.value(id);
    if (value.kind == Value::Kind::constant || value.kind == Value::Kind::wire_length) continue;
    missing.insert(id);
    open.push_back(value.a);
    open.push_back(value.b);
  }
  for (const ValueId id : missing) {
    const Value& value = graph_.value(id);
    std::string expression;
    if (value.kind == Value::Kind::load) {
      expression = bytes(value, text);
    } else {
      const std::string a = operand(value.a);
      const std::string b = operand(value.b);
      const bool by_constant = graph_.is_constant(value.b);
      const auto shifts = [&](const char* name, const char* op) {
        if (!by_constant) return fmt::format("{}({}, {})", name, a, b);
        return graph_.value(value.b).k > 31 ? std::string("0u") : fmt::format("{} {} {}", a, op, b);
      };
      const auto divides = [&](const char* name, const char* op) {
        return by_constant ? fmt::format("{} {} {}", a, op, b) : fmt::format("{}({}, {})", name, a, b);
      };
      switch (value.kind) {
        case Value::Kind::add: expression = a + " + " + b; break;
        case Value::Kind::subtract: expression = a + " - " + b; break;
        case Value::Kind::multiply: expression = a + " * " + b; break;
        case Value::Kind::divide: expression = divides("divide", "/"); break;
        case Value::Kind::modulo: expression = divides("modulo", "%"); break;
        case Value::Kind::bit_or: expression = a + " | " + b; break;
        case Value::Kind::bit_and: expression = a + " & " + b; break;
        case Value::Kind::bit_xor: expression = a + " ^ " + b; break;
        case Value::Kind::shift_left: expression = shifts("shift_left", "<<"); break;
        default: expression = shifts("shift_right", ">>"); break;
      }
    }
    text += fmt::format("const u32 v{} = {};\n", id, expression);
    values_.insert(id);
  }
}

std::string NodeText::comparison(const Test& test, const std::string& b) const {
  const std::string a = test.a == kNoValue ? std::string() : operand(test.a);
  switch (test.kind) {
    case Test::Kind::equal: return a + " == " + b;
    case Test::Kind::greater: return a + " > " + b;
    case Test::Kind::greater_equal: return a + " >= " + b;
    case Test::Kind::any_bit: return fmt::format("({} & {}) != 0u", a, b);
    case Test::Kind::present:
    case Test::Kind::in_packet: break;
  }
  const char* const bytes = test.kind == Test::Kind::present ? "packet.available" : "packet.length";
  if (test.a == kNoValue) return fmt::format("{} >= {}", bytes, literal(test.k));
  return fmt::format("has({}, {}, {})", bytes, a, literal(test.k));
}

void NodeText::define_test(TestId id, std::string& text) {
  if (!tests_.insert(id).second) return;
  const Test& test = graph_.test(id);
  if (test.a != kNoValue) define_value(test.a, text);
  if (test.b != kNoValue) define_value(test.b, text);
  text += fmt::format("const bool {} = {};\n", name_of_test(id),
                      comparison(test, test.b == kNoValue ? std::string() : operand(test.b)));
}

void NodeText::define_node(NodeId node, std::string& text) {
  if (nodes_.insert(node).second) choose(node, name_of_test(graph_.node(node).test), text);
}

void NodeText::define_node(NodeId node, const std::string& constant, std::string& text) {
  if (!nodes_.insert(node).second) return;
  const std::string name = fmt::format("c{}", node);
  text += fmt::format("const bool {} = {};\n", name, comparison(graph_.test(graph_.node(node).test), constant));
  choose(node, name, text);
}

void NodeText::choose(NodeId id, const std::string& test, std::string& text) {
  const Node& node = graph_.node(id);
  const std::string yes = name_of_node(node.yes);
  const std::string no = name_of_node(node.no);
  std::string result;
  if (node.yes == kMatch) {
    result = node.no == kNoMatch ? test : fmt::format("{} | {}", test, no);
  } else if (node.yes == kNoMatch) {
    result = node.no == kMatch ? "!" + test : fmt::format("!{} & {}", test, no);
  } else if (node.no == kMatch) {
    result = fmt::format("!{} | {}", test, yes);
  } else if (node.no == kNoMatch) {
    result = fmt::format("{} & {}", test, yes);
  } else {
    result = fmt::format("{} ? {} : {}", test, yes, no);
  }
  text += fmt::format("const bool {} = {};\n", name_of_node(id), result);
}

}  // namespace penstock::filter
