// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds the aggregated bit vectors of a rule set. The tables own their memory and are immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "nf/firewall/bitvector_layout.h"

namespace penstock::firewall {

/// What the vectors of a rule set may take at most.
inline constexpr std::size_t kBitVectorMemoryLimit = std::size_t{1} << 30;

template <typename Address>
struct IntervalTable {
  std::vector<std::uint32_t> first;
  std::vector<Address> starts;
  std::vector<std::uint32_t> records;
  [[nodiscard]] IntervalView<Address> view() const noexcept { return {first.data(), starts.data(), records.data()}; }
};

struct PageTable {
  std::vector<std::uint32_t> pages;
  std::vector<std::uint32_t> records;
  [[nodiscard]] PageView view() const noexcept { return {pages.data(), records.data()}; }
};

struct BitVectorTables {
  IntervalTable<std::uint32_t> source4, destination4;
  IntervalTable<Ipv6Address> source6, destination6;
  PageTable kind, source_port, destination_port, place;
  bool uses_kind = false, uses_source_port = false, uses_destination_port = false, uses_place = false;
  std::uint32_t port_count = 0;
  std::uint32_t summary_words = 0;
  std::vector<std::uint64_t> words;
  std::vector<VectorBlock> blocks;

  /// `entries`: the rule set's, which must live as long.
  [[nodiscard]] BitVectorView view(const Entry* entries) const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
};

/// Fails where the vectors would need more than `limit` bytes.
[[nodiscard]] Result<BitVectorTables> build_bitvectors(const Ruleset& rules,
                                                       std::size_t limit = kBitVectorMemoryLimit);

}  // namespace penstock::firewall
