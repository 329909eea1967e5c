// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of a group of programs that differ only in constants, one for each part of the bitmap. A function first
// asks the tests that are the same for all members, which lead to "none matches", "all match" or one of a few nodes
// whose test is not the same. Then it loops over the members from there, for each word of the bitmap. All threads of a
// warp read the same constants.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nf/filter/code/decision_graph.h"
#include "nf/filter/code/node_text.h"
#include "nf/filter/code/program_groups.h"

namespace penstock::filter {

class GroupText {
 public:
  /// `number` is part of all names. `programs` is the number of all programs.
  GroupText(const DecisionGraph& graph, const ProgramGroup& group, std::size_t number, std::size_t programs);

  /// Words of the bitmap whose programs are all members. The functions write them, and set bits in other words, which
  /// must have been written.
  [[nodiscard]] const std::vector<std::uint32_t>& whole_words() const noexcept { return words_; }

  /// The tables. They are in global memory, where caches for data hold them. Of constant memory, a multiprocessor
  /// caches only a few KiB, and a thousand filters need more.
  [[nodiscard]] std::string tables() const;

  /// The function for the words from `first` to `end`, which are part number `part`; empty if no member is there.
  [[nodiscard]] std::string function(std::uint32_t part, std::uint32_t first, std::uint32_t end) const;
  /// The statement that calls it.
  [[nodiscard]] std::string call(std::uint32_t part) const;

 private:
  /// Indices into words_ and singles_.
  struct Range {
    std::size_t first_word;
    std::size_t end_word;
    std::size_t first_single;
    std::size_t end_single;
  };

  void arrange(std::size_t programs);
  void find_entries();
  [[nodiscard]] std::string constant_case(bool match, const Range& range) const;
  [[nodiscard]] std::string loop_case(NodeId entry, NodeText nodes, const Range& range) const;
  [[nodiscard]] std::string bit(NodeId entry, NodeText nodes, std::string& body) const;
  [[nodiscard]] std::string word_number() const;
  [[nodiscard]] std::string set_single() const;
  [[nodiscard]] bool varies(NodeId node) const { return group_.columns_of.contains(node); }

  const DecisionGraph& graph_;
  const ProgramGroup& group_;
  std::size_t number_;
  std::vector<std::uint32_t> words_;     // whole words; rows 32 * i … 32 * i + 31 of the tables are word i's programs
  std::vector<std::uint32_t> singles_;   // positions of other members; their rows follow
  std::vector<std::size_t> row_member_;  // by row: index in members; the last one for rows that are not used
  std::uint32_t last_mask_ = 0xffffffff;  // bits of the last whole word
  std::vector<NodeId> common_;            // nodes that are asked once
  std::vector<NodeId> entries_;           // nodes where loops begin
};

}  // namespace penstock::filter
