// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// First match in aggregated bit vectors, in two steps, so that a stage can locate the vectors of many packets (and
// prefetch them) before it reads the first one.

#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#include "classify/bitvector_layout.h"
#include "classify/key.h"

namespace penstock::classify {

/// The records of a key's vectors, one for each dimension in use.
struct VectorSet {
  std::uint32_t records[kMaxDimensions];
  std::uint32_t count;
};

PENSTOCK_HOST_DEVICE constexpr std::uint32_t lowest_bit(std::uint64_t word) noexcept {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__ffsll(static_cast<long long>(word)) - 1);
#else
  return static_cast<std::uint32_t>(std::countr_zero(word));
#endif
}

/// The slot in the next step; `bits` are the address bits of that step.
PENSTOCK_HOST_DEVICE constexpr std::uint32_t next_slot(std::uint32_t node, std::uint32_t bits) noexcept {
  return (node >> 1) + (bits & (0U - (node & 1)));
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t record_of(const Ipv4View& table,
                                                                  std::uint32_t address) noexcept {
  const std::uint32_t middle = table.middle[next_slot(table.top[address >> 16], address >> 8 & 0xff)];
  return table.records[next_slot(middle, address & 0xff)];
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t record_of(const Ipv6View& table,
                                                                  const Ipv6Address& address) noexcept {
  const auto bucket = static_cast<std::uint32_t>(address.high >> 48);
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

/// The number of a combination of input port, output port and "is a later fragment". With `port_count` ports, all ports
/// above them, and no port, count as one more.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t place_of(std::uint32_t in_port, std::uint32_t out_port,
                                                                    bool later_fragment,
                                                                    std::uint32_t port_count) noexcept {
  const std::uint32_t in = in_port < port_count ? in_port : port_count;
  const std::uint32_t out = out_port < port_count ? out_port : port_count;
  return (in * (port_count + 1) + out) * 2 + (later_fragment ? 1 : 0);
}

PENSTOCK_HOST_DEVICE inline void add_record(std::uint32_t record, VectorSet& set) noexcept {
#ifdef __CUDA_ARCH__
  // An array with a run-time index would be in local memory; this keeps it in registers.
  for (std::uint32_t d = 2; d < kMaxDimensions; ++d) set.records[d] = d == set.count ? record : set.records[d];
#else
  set.records[set.count] = record;
#endif
  ++set.count;
}

/// Adds a small dimension's vector to the set, or its summand to the number of the combined vector.
PENSTOCK_HOST_DEVICE inline void locate_small(const SmallView& dimension, std::uint32_t value, std::uint32_t& combined,
                                              VectorSet& set) noexcept {
  if (dimension.use == SmallView::Use::none) return;
  const std::uint32_t found = record_of(dimension.pages, value);
  if (dimension.use == SmallView::Use::combined) {
    combined += found;
  } else {
    add_record(found, set);
  }
}

/// Fills `set` in place: a set that is returned and copied would be read back before its parts are stored.
PENSTOCK_HOST_DEVICE inline void locate(const BitVectorView& table, const Key& key, VectorSet& set) noexcept {
  if (key.family == NetworkLayer::ipv4) {
    set.records[0] = record_of(table.source4, static_cast<std::uint32_t>(key.source.low));
    set.records[1] = record_of(table.destination4, static_cast<std::uint32_t>(key.destination.low));
  } else {
    set.records[0] = record_of(table.source6, key.source);
    set.records[1] = record_of(table.destination6, key.destination);
  }
  set.count = 2;
  std::uint32_t combined = 0;
  locate_small(table.kind, key.kind, combined, set);
  locate_small(table.destination_port, key.destination_port, combined, set);
  locate_small(table.source_port, key.source_port, combined, set);
  if (table.place.use != SmallView::Use::none) {
    const std::uint32_t place = place_of(key.in_port, key.out_port, key.later_fragment, table.port_count);
    locate_small(table.place, place, combined, set);
  }
  locate_small(table.connection, key.connection, combined, set);
  if (table.combined != nullptr) add_record(table.combined[combined], set);
}

/// The number of the record's block `i`. Each word holds two, the first in the low half.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t block_of(const BitVectorView& table, std::uint32_t record,
                                                                    std::uint32_t i) noexcept {
  return static_cast<std::uint32_t>(table.words[record + table.summary_words + i / 2] >> (i % 2 * 32));
}

/// The first entry from `from` on that matches in all `Count` dimensions, or kNoEntry.
template <std::uint32_t Count>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t first_match(const BitVectorView& table,
                                                                    const std::uint32_t (&records)[kMaxDimensions],
                                                                    std::uint32_t from) noexcept {
  for (std::uint32_t s = from >> 12; s < table.summary_words; ++s) {
    std::uint64_t candidates = ~std::uint64_t{0};
    for (std::uint32_t d = 0; d < Count; ++d) candidates &= table.words[records[d] + s];
    if (s == from >> 12) candidates &= ~std::uint64_t{0} << (from >> 6 & 63);
    for (; candidates != 0; candidates &= candidates - 1) {
      const std::uint32_t word = s * 64 + lowest_bit(candidates);
      std::uint64_t bits = ~std::uint64_t{0};
      for (std::uint32_t d = 0; d < Count; ++d) {
        bits &= table.blocks[block_of(table, records[d], word / kWordsPerBlock)].words[word % kWordsPerBlock];
      }
      if (word == from >> 6) bits &= ~std::uint64_t{0} << (from & 63);
      if (bits != 0) return word * 64 + lowest_bit(bits);
    }
  }
  return kNoEntry;
}

template <std::uint32_t Count>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry_of(const BitVectorView& table,
                                                                          const VectorSet& set,
                                                                          std::uint32_t from) noexcept {
  for (;;) {
    const std::uint32_t i = first_match<Count>(table, set.records, from);
    if (i == kNoEntry || table.entries[i].action != Action::skip) return i;
    from = table.entries[i].skip_to;
  }
}

/// The entry from `from` on that decides the key that `set` was located for, or kNoEntry: then the policy decides.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry(const BitVectorView& table, const VectorSet& set,
                                                                       std::uint32_t from = 0) noexcept {
  // The compiler unrolls loops with a known count; the count is the same for all packets.
  switch (set.count) {
    case 2: return deciding_entry_of<2>(table, set, from);
    case 3: return deciding_entry_of<3>(table, set, from);
    case 4: return deciding_entry_of<4>(table, set, from);
    case 5: return deciding_entry_of<5>(table, set, from);
    case 6: return deciding_entry_of<6>(table, set, from);
    default: return deciding_entry_of<7>(table, set, from);
  }
}

/// Both steps, for a single key.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry(const BitVectorView& table, const Key& key,
                                                                       std::uint32_t from = 0) noexcept {
  VectorSet set{};
  locate(table, key, set);
  return deciding_entry(table, set, from);
}

}  // namespace penstock::classify
