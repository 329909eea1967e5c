// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of recipes: the views of an engine's tables that a GPU would have of its copies, on the host.

#pragma once

#include <span>

#include "classify/bitvector_core.h"
#include "classify/table_spans.h"
#include "function/testing/recipe_lies.h"

namespace penstock::classify {

[[nodiscard]] inline LinearView host_view(const LinearSpans& tables, std::span<const Entry> entries) {
  return {entries.data(), tables.conditions.data(), tables.port_ranges.data(), tables.ranges6.data(),
          static_cast<std::uint32_t>(entries.size())};
}

/// Borrows the tables, but owns a copy of the blocks: the host aligns tables of recipes less than a device does.
class HostVectors {
 public:
  HostVectors(const BitVectorSpans& tables, std::span<const Entry> entries)
      : blocks_(std::span(reinterpret_cast<const VectorBlock*>(tables.block_words.data()),
                          tables.block_words.size() / kWordsPerBlock)),
        view_{view4(tables.source4),
              view4(tables.destination4),
              view6(tables.source6),
              view6(tables.destination6),
              small(tables.kind),
              small(tables.destination_port),
              small(tables.source_port),
              small(tables.place),
              small(tables.connection),
              tables.combined.empty() ? nullptr : tables.combined.data(),
              tables.port_count,
              tables.summary_words,
              tables.words.data(),
              blocks_.data(),
              entries.data()} {}
  [[nodiscard]] const BitVectorView& view() const { return view_; }

 private:
  static SmallView small(const SmallSpans& table) { return {{table.pages.data(), table.records.data()}, table.use}; }
  static Ipv4View view4(const Ipv4Spans& table) {
    return {table.top.data(), table.middle.data(), table.records.data()};
  }
  static Ipv6View view6(const Ipv6Spans& table) {
    return {table.first.data(), table.starts.data(), table.records.data()};
  }

  penstock::testing::ExactArray<VectorBlock> blocks_;
  BitVectorView view_;
};

}  // namespace penstock::classify
