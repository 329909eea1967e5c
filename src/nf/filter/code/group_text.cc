// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/group_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

namespace penstock::filter {
namespace {

/// The most nodes of all loops together. Beyond that, one loop asks all tests.
constexpr std::size_t kMostLoopNodes = 256;
/// Loops over the programs of a word are unrolled if they then have at most so many nodes.
constexpr std::size_t kMostUnrolledNodes = 1024;

std::string table(const std::string& name, const std::vector<std::uint32_t>& numbers) {
  std::string text = fmt::format("alignas(16) PENSTOCK_TABLE u32 {}[{}] = {{", name, numbers.size());
  for (const std::uint32_t number : numbers) text += literal(number) + ",";
  return text + "};\n";
}

std::string loop(const char* variable, std::size_t first, std::size_t end) {
  return fmt::format("for (u32 {0} = {1}; {0} < {2}; ++{0}) ", variable, first, end);
}

}  // namespace

GroupText::GroupText(const DecisionGraph& graph, const ProgramGroup& group, std::size_t number, std::size_t programs)
    : graph_(graph), group_(group), number_(number) {
  arrange(programs);
  find_entries();
}

void GroupText::arrange(std::size_t programs) {
  const std::vector<std::uint32_t>& members = group_.members;
  std::vector<std::size_t> single_members;
  for (std::size_t i = 0; i < members.size();) {
    const std::uint32_t word = members[i] / 32;
    std::size_t end = i;
    while (end < members.size() && members[end] / 32 == word) ++end;
    const std::size_t in_word = std::min<std::size_t>(32, programs - std::size_t{32} * word);
    if (end - i == in_word) {
      words_.push_back(word);
      for (std::size_t bit = 0; bit < 32; ++bit) row_member_.push_back(i + std::min(bit, in_word - 1));
      if (in_word < 32) last_mask_ = (1U << in_word) - 1;
    } else {
      for (std::size_t k = i; k < end; ++k) single_members.push_back(k);
    }
    i = end;
  }
  for (const std::size_t member : single_members) {
    row_member_.push_back(member);
    singles_.push_back(members[member]);
  }
}

void GroupText::find_entries() {
  std::set<NodeId> common;
  std::set<NodeId> entries;
  std::vector<NodeId> open{group_.root};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id <= kMatch || common.contains(id)) continue;
    if (varies(id)) {
      entries.insert(id);
      continue;
    }
    common.insert(id);
    open.push_back(graph_.node(id).yes);
    open.push_back(graph_.node(id).no);
  }
  std::size_t nodes = 0;
  for (const NodeId entry : entries) nodes += graph_.reachable({entry}).size();
  if (entries.size() > 1 && nodes > kMostLoopNodes) {
    common.clear();
    entries = {group_.root};
  }
  common_.assign(common.begin(), common.end());
  entries_.assign(entries.begin(), entries.end());
}

std::string GroupText::word_number() const {
  const bool in_sequence = words_.back() - words_.front() + 1 == words_.size();
  return in_sequence ? fmt::format("{} + w", words_.front()) : fmt::format("words_of_{}[w]", number_);
}

std::string GroupText::set_single() const {
  return fmt::format("words[singles_of_{0}[s] / 32] |= 1u << singles_of_{0}[s] % 32;\n", number_);
}

std::string GroupText::constant_case(bool match, const Range& range) const {
  std::string text;
  if (range.first_word < range.end_word) {
    const std::string mask =
        match ? fmt::format("w == {} ? {} : 0xffffffffu", words_.size() - 1, literal(last_mask_)) : "0";
    text += fmt::format("{}words[{}] = {};\n", loop("w", range.first_word, range.end_word), word_number(), mask);
  }
  if (range.first_single < range.end_single && match) {
    text += "PENSTOCK_UNROLL_SOME\n" + loop("s", range.first_single, range.end_single) + set_single();
  }
  return text;
}

std::string GroupText::bit(NodeId entry, NodeText nodes, std::string& body) const {
  for (const NodeId id : graph_.reachable({entry})) {
    if (varies(id)) {
      nodes.define_node(id, fmt::format("constants_{}_{}[i]", number_, group_.columns_of.at(id)), body);
    } else {
      nodes.define_node(id, body);
    }
  }
  return NodeText::name_of_node(entry);
}

std::string GroupText::loop_case(NodeId entry, NodeText nodes, const Range& range) const {
  // What does not depend on the program comes before the loop.
  std::string text;
  std::unordered_set<NodeId> varying;
  const std::vector<NodeId> reachable = graph_.reachable({entry});
  for (const NodeId id : reachable) {
    const Node& node = graph_.node(id);
    if (varies(id)) {
      nodes.define_value(graph_.test(node.test).a, text);
      varying.insert(id);
    } else {
      nodes.define_test(node.test, text);
      if (varying.contains(node.yes) || varying.contains(node.no)) {
        varying.insert(id);
      } else {
        nodes.define_node(id, text);
      }
    }
  }
  std::string body;
  const std::string name = bit(entry, nodes, body);
  if (range.first_word < range.end_word) {
    text += loop("w", range.first_word, range.end_word) + "{\nu32 bits = 0;\n";
    if (32 * reachable.size() <= kMostUnrolledNodes) text += "PENSTOCK_UNROLL\n";
    // From the highest bit down, as in the functions of words.
    text += fmt::format(
        "for (u32 j = 32; j > 0; --j) {{\nconst u32 i = 32 * w + j - 1;\n{}bits = bits << 1 | u32({});\n}}\n", body,
        name);
    if (last_mask_ != 0xffffffff) {
      text += fmt::format("if (w == {}) bits &= {};\n", words_.size() - 1, literal(last_mask_));
    }
    text += fmt::format("words[{}] = bits;\n}}\n", word_number());
  }
  if (range.first_single < range.end_single) {
    text += "PENSTOCK_UNROLL_SOME\n" + loop("s", range.first_single, range.end_single);
    text += fmt::format("{{\nconst u32 i = {} + s;\n{}", 32 * words_.size(), body);
    text += fmt::format("if ({}) {}}}\n", name, set_single());
  }
  return text;
}

std::string GroupText::tables() const {
  std::string text;
  if (!words_.empty() && words_.back() - words_.front() + 1 != words_.size()) {
    text += table(fmt::format("words_of_{}", number_), words_);
  }
  if (!singles_.empty()) text += table(fmt::format("singles_of_{}", number_), singles_);
  for (std::size_t column = 0; column < group_.columns.size(); ++column) {
    std::vector<std::uint32_t> rows;
    for (const std::size_t member : row_member_) rows.push_back(group_.columns[column][member]);
    text += table(fmt::format("constants_{}_{}", number_, column), rows);
  }
  return text;
}

std::string GroupText::function(std::uint32_t part, std::uint32_t first, std::uint32_t end) const {
  const auto index = [](const std::vector<std::uint32_t>& sorted, std::uint32_t value) {
    return static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
  };
  const Range range{index(words_, first), index(words_, end), index(singles_, 32 * first), index(singles_, 32 * end)};
  if (range.first_word == range.end_word && range.first_single == range.end_single) return {};
  // The range is not an argument: ptxas 13.0 passes what is the same for all threads in a uniform register, which is
  // one for a whole warp, and reuses it where some of the threads have branched off. The others then find another
  // number.
  std::string text = fmt::format("PENSTOCK_FUNCTION void group_{}_{}(const PacketWindow packet, u32* const words) {{\n",
                                 number_, part);
  // The number of the case at each common node: 0 and 1 for none and all, then the entries'.
  NodeText nodes(graph_);
  const auto case_of = [&](NodeId id) {
    if (id <= kMatch) return fmt::format("{}u", id);
    const auto entry = std::ranges::find(entries_, id);
    return entry != entries_.end() ? fmt::format("{}u", entry - entries_.begin() + 2) : fmt::format("e{}", id);
  };
  for (const NodeId id : common_) {
    const Node& node = graph_.node(id);
    nodes.define_test(node.test, text);
    text += fmt::format("const u32 e{} = {} ? {} : {};\n", id, NodeText::name_of_test(node.test), case_of(node.yes),
                        case_of(node.no));
  }
  text += fmt::format("const u32 entry = {};\n", case_of(group_.root));
  text += fmt::format("if (entry == 0u) {{\n{}}} else if (entry == 1u) {{\n{}}}", constant_case(false, range),
                      constant_case(true, range));
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    text += fmt::format(" else if (entry == {}u) {{\n{}}}", i + 2, loop_case(entries_[i], nodes, range));
  }
  return text + "\n}\n";
}

std::string GroupText::call(std::uint32_t part) const {
  return fmt::format("group_{}_{}(packet, words);\n", number_, part);
}

}  // namespace penstock::filter
