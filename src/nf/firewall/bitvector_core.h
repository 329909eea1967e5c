// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// First match in aggregated bit vectors, in two halves, so that a stage can locate the vectors of many packets (and
// prefetch them) before it reads the first.

#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#include "nf/firewall/bitvector_layout.h"
#include "nf/firewall/key.h"

namespace penstock::firewall {

/// The records of a key's vectors, one for each dimension that is in use.
struct VectorSet {
  std::uint32_t records[kMaxDimensions];
  std::uint32_t count;
};

PENSTOCK_HOST_DEVICE constexpr bool not_after(std::uint32_t a, std::uint32_t b) noexcept { return a <= b; }
PENSTOCK_HOST_DEVICE constexpr bool not_after(const Ipv6Address& a, const Ipv6Address& b) noexcept {
  return (a.high < b.high) | ((a.high == b.high) & (a.low <= b.low));
}

PENSTOCK_HOST_DEVICE constexpr std::uint32_t lowest_bit(std::uint64_t word) noexcept {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__ffsll(static_cast<long long>(word)) - 1);
#else
  return static_cast<std::uint32_t>(std::countr_zero(word));
#endif
}

template <typename Address>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t record_of(const IntervalView<Address>& table,
                                                                  const Address& address,
                                                                  std::uint32_t bucket) noexcept {
  std::uint32_t base = table.first[bucket];
  std::uint32_t n = table.first[bucket + 1] - base;
  while (n > 0) {
    const std::uint32_t half = (n + 1) / 2;
    base += not_after(table.starts[base + half], address) ? half : 0;
    n -= half;
  }
  return table.records[base];
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t record_of(const PageView& table,
                                                                  std::uint32_t number) noexcept {
  return table.records[table.pages[number >> 8] * 256 + (number & 255)];
}

/// The number that stands for where a packet came in and goes out, and whether it is a later fragment, with
/// `port_count` ports; all ports behind them, and none, are one more.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t place_of(std::uint32_t in_port, std::uint32_t out_port,
                                                                    bool later_fragment,
                                                                    std::uint32_t port_count) noexcept {
  const std::uint32_t in = in_port < port_count ? in_port : port_count;
  const std::uint32_t out = out_port < port_count ? out_port : port_count;
  return (in * (port_count + 1) + out) * 2 + (later_fragment ? 1 : 0);
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline VectorSet locate(const BitVectorView& table, const Key& key) noexcept {
  VectorSet set;
  if (key.family == NetworkLayer::ipv4) {
    const auto source = static_cast<std::uint32_t>(key.source.low);
    const auto destination = static_cast<std::uint32_t>(key.destination.low);
    set.records[0] = record_of(table.source4, source, source >> 16);
    set.records[1] = record_of(table.destination4, destination, destination >> 16);
  } else {
    set.records[0] = record_of(table.source6, key.source, static_cast<std::uint32_t>(key.source.high >> 48));
    set.records[1] =
        record_of(table.destination6, key.destination, static_cast<std::uint32_t>(key.destination.high >> 48));
  }
  std::uint32_t n = 2;
  if (table.uses_destination_port) set.records[n++] = record_of(table.destination_port, key.destination_port);
  if (table.uses_kind) set.records[n++] = record_of(table.kind, key.kind);
  if (table.uses_source_port) set.records[n++] = record_of(table.source_port, key.source_port);
  if (table.uses_place) {
    set.records[n++] =
        record_of(table.place, place_of(key.in_port, key.out_port, key.later_fragment, table.port_count));
  }
  set.count = n;
  return set;
}

/// The number of the record's block `i`: two stand in a word, the first in the low half.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t block_of(const BitVectorView& table, std::uint32_t record,
                                                                    std::uint32_t i) noexcept {
  return static_cast<std::uint32_t>(table.words[record + table.summary_words + i / 2] >> (i % 2 * 32));
}

/// The first entry at or behind `from` that matches in all dimensions, or kNoEntry.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t first_match(const BitVectorView& table, const VectorSet& set,
                                                                    std::uint32_t from) noexcept {
  for (std::uint32_t s = from >> 12; s < table.summary_words; ++s) {
    std::uint64_t candidates = ~std::uint64_t{0};
    for (std::uint32_t d = 0; d < set.count; ++d) candidates &= table.words[set.records[d] + s];
    if (s == from >> 12) candidates &= ~std::uint64_t{0} << (from >> 6 & 63);
    for (; candidates != 0; candidates &= candidates - 1) {
      const std::uint32_t word = s * 64 + lowest_bit(candidates);
      std::uint64_t bits = ~std::uint64_t{0};
      for (std::uint32_t d = 0; d < set.count; ++d) {
        bits &= table.blocks[block_of(table, set.records[d], word / kWordsPerBlock)].words[word % kWordsPerBlock];
      }
      if (word == from >> 6) bits &= ~std::uint64_t{0} << (from & 63);
      if (bits != 0) return word * 64 + lowest_bit(bits);
    }
  }
  return kNoEntry;
}

/// The entry that decides about the key that `set` was located for, or kNoEntry: the policy does.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry(const BitVectorView& table,
                                                                       const VectorSet& set) noexcept {
  std::uint32_t from = 0;
  for (;;) {
    const std::uint32_t i = first_match(table, set, from);
    if (i == kNoEntry || table.entries[i].action != Action::skip) return i;
    from = table.entries[i].skip_to;
  }
}

}  // namespace penstock::firewall
