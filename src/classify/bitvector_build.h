// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds the aggregated bit vectors of a rule set. The tables own their memory and are immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "classify/bitvector_layout.h"

namespace penstock::classify {

/// The memory limit for the vectors of a rule set.
inline constexpr std::size_t kBitVectorMemoryLimit = std::size_t{1} << 30;

struct Ipv4Table {
  std::vector<std::uint32_t> top, middle, records;
  [[nodiscard]] Ipv4View view() const noexcept { return {top.data(), middle.data(), records.data()}; }
};

struct Ipv6Table {
  std::vector<std::uint32_t> first;
  std::vector<Ipv6Address> starts;
  std::vector<std::uint32_t> records;
  [[nodiscard]] Ipv6View view() const noexcept { return {first.data(), starts.data(), records.data()}; }
};

struct SmallTable {
  std::vector<std::uint32_t> pages, records;
  SmallView::Use use = SmallView::Use::none;
  [[nodiscard]] SmallView view() const noexcept { return {{pages.data(), records.data()}, use}; }
};

struct BitVectorTables {
  Ipv4Table source4, destination4;
  Ipv6Table source6, destination6;
  SmallTable kind, destination_port, source_port, place, connection;
  std::vector<std::uint32_t> combined;
  std::uint32_t port_count = 0;
  std::uint32_t summary_words = 0;
  std::vector<std::uint64_t> words;
  std::vector<VectorBlock> blocks;

  /// `entries`: the rule set's; it must outlive the view.
  [[nodiscard]] BitVectorView view(const Entry* entries) const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

/// Fails if the vectors would need more than `limit` bytes.
[[nodiscard]] Result<BitVectorTables> build_bitvectors(const Ruleset& rules, std::size_t limit = kBitVectorMemoryLimit);

}  // namespace penstock::classify
