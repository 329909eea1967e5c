// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: the tables of a recipe as a device has them, in host memory.

#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "nf/router/table_spans.h"

namespace penstock::router {

/// What expand_on_device does.
inline std::vector<std::uint32_t> expanded(const RunSpans& runs) {
  if (runs.are_entries()) return {runs.values.begin(), runs.values.end()};
  std::vector<std::uint32_t> entries;
  entries.reserve(runs.size());
  for (std::size_t i = 0; i < runs.ends.size(); ++i) entries.resize(runs.ends[i], runs.values[i]);
  return entries;
}

/// Owns the entries of the tries, and borrows all other tables.
class ExpandedTables {
 public:
  explicit ExpandedTables(const TableRuns& runs)
      : arrays_(std::visit([](const auto& trie) { return arrays_of(trie); }, runs.v4)),
        arrays6_(arrays_of(runs.v6)),
        spans_{std::visit([&](const auto& trie) { return Trie4Spans(spans_of(trie, arrays_)); }, runs.v4),
               spans_of(runs.v6, arrays6_), runs.hops, runs.neighbours, runs.ports} {}
  ExpandedTables(const ExpandedTables&) = delete;
  ExpandedTables& operator=(const ExpandedTables&) = delete;

  [[nodiscard]] const TableSpans& spans() const noexcept { return spans_; }

 private:
  struct Arrays {
    std::vector<std::uint32_t> root, nodes;
  };
  template <typename View>
  static Arrays arrays_of(const TrieRuns<View>& trie) {
    return {expanded(trie.root), expanded(trie.nodes)};
  }
  template <typename View>
  static TrieSpans<View> spans_of(const TrieRuns<View>& /*trie*/, const Arrays& arrays) {
    TrieSpans<View> spans;
    spans.root = arrays.root;
    spans.nodes = arrays.nodes;
    return spans;
  }

  const Arrays arrays_, arrays6_;
  const TableSpans spans_;
};

}  // namespace penstock::router
