// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// First match by recursive flow classification, in three steps, so that a stage can do each of them for many packets
// and fetch the next step's tables meanwhile.

#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "classify/bitvector_core.h"
#include "classify/key.h"
#include "classify/rfc_layout.h"

namespace penstock::classify {

PENSTOCK_HOST_DEVICE constexpr std::uint32_t ones(std::uint32_t word) noexcept {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popc(word));
#else
  return static_cast<std::uint32_t>(std::popcount(word));
#endif
}

/// Element `i` of a table.
template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t element(const Memory& memory, const RfcTable& table,
                                                                std::uint32_t i) noexcept {
  if (table.blocks != kRfcPlain) {
    const auto block = memory.template load<std::uint64_t>(table.blocks + i / kRfcElementsPerBlock * 8);
    const auto bitmap = static_cast<std::uint32_t>(block);
    // The element is that of the last bit set up to its own. The first bit of a table is always set.
    const std::uint32_t up_to = 0xffffffffU >> (kRfcElementsPerBlock - 1 - i % kRfcElementsPerBlock);
    i = static_cast<std::uint32_t>(block >> 32) + ones(bitmap & up_to) - 1;
  }
  if (table.wide) return memory.template load<std::uint32_t>(table.values + i * 4);
  return memory.template load<std::uint16_t>(table.values + i * 2);
}

template <typename Memory, std::uint32_t Most>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t class_of(const Memory& memory, const RfcNumber<Most>& chunks,
                                                                 const Ipv6Address& number) noexcept {
  std::uint32_t found = 0;
  for (std::uint32_t c = 0; c < chunks.count; ++c) {
    const RfcChunk& chunk = chunks.chunks[c];
    const std::uint64_t word = chunk.at < 64 ? number.low : number.high;
    const auto value = static_cast<std::uint32_t>(word >> (chunk.at & 63)) & 0xffff;
    const std::uint32_t own = element(memory, chunk.classes, value >> chunk.classes.shift);
    found = c == 0 ? own : element(memory, chunk.combination, found * chunk.combination.columns + own);
  }
  return found;
}

/// The same for numbers of a single chunk, which may have more than 16 bits.
template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t class_of(const Memory& memory, const RfcNumber<1>& chunk,
                                                                 std::uint32_t value) noexcept {
  if (chunk.count == 0) return 0;
  const RfcTable& table = chunk.chunks[0].classes;
  return element(memory, table, value >> table.shift);
}

/// The class of all dimensions but the addresses.
template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t rest_class(const Memory& memory, const RfcFamily& tables,
                                                                   const Key& key, std::uint32_t port_count) noexcept {
  const std::uint32_t kind = class_of(memory, tables.kind, Ipv6Address{0, key.kind});
  const std::uint32_t source_port = class_of(memory, tables.source_port, key.source_port);
  const std::uint32_t destination_port = class_of(memory, tables.destination_port, key.destination_port);
  const std::uint32_t place =
      class_of(memory, tables.place, place_of(key.in_port, key.out_port, key.later_fragment, port_count));
  const std::uint32_t connection = class_of(memory, tables.connection, key.connection);
  const auto pick = [&](std::uint32_t which) {  // an array with a run-time index would not be in registers
    return which == 0   ? kind
           : which == 1 ? source_port
           : which == 2 ? destination_port
           : which == 3 ? place
                        : connection;
  };
  std::uint32_t found = tables.rest_count == 0 ? 0 : pick(tables.rest_order[0]);
  for (std::uint32_t i = 1; i < tables.rest_count; ++i) {
    const RfcTable& table = tables.rest[i - 1];
    found = element(memory, table, found * table.columns + pick(tables.rest_order[i]));
  }
  return found;
}

/// The elements to read in the last phases. `first`: in the first of them, or, if there is none, the row in the last.
struct RfcPlace {
  std::uint32_t first;
  std::uint32_t column;
};

template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline RfcPlace locate(const Memory& memory, const RfcFamily& tables, const Key& key,
                                                          std::uint32_t port_count) noexcept {
  const std::uint32_t source = class_of(memory, tables.source, key.source);
  const std::uint32_t destination = class_of(memory, tables.destination, key.destination);
  const std::uint32_t rest = rest_class(memory, tables, key, port_count);
  const auto pick = [&](std::uint32_t which) { return which == 0 ? source : which == 1 ? destination : rest; };
  std::uint32_t first = pick(tables.order[0]);
  if (tables.has_first) first = first * tables.first.columns + pick(tables.order[1]);
  return {first, pick(tables.order[2])};
}

/// The element of the last phase.
template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t last_element(const Memory& memory, const RfcFamily& tables,
                                                                     const RfcPlace& place) noexcept {
  const std::uint32_t row = tables.has_first ? element(memory, tables.first, place.first) : place.first;
  return row * tables.last.columns + place.column;
}

/// The entry, or kNoEntry.
template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t entry_at(const Memory& memory, const RfcFamily& tables,
                                                                 std::uint32_t last) noexcept {
  return element(memory, tables.last, last) - 1;
}

/// All steps, for the key of a packet of this family.
template <typename Memory>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry(const Memory& memory, const RfcFamily& tables,
                                                                       const Key& key,
                                                                       std::uint32_t port_count) noexcept {
  return entry_at(memory, tables, last_element(memory, tables, locate(memory, tables, key, port_count)));
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr const RfcFamily& family_of(const RfcView& table, const Key& key) noexcept {
  return key.family == NetworkLayer::ipv4 ? table.ipv4 : table.ipv6;
}

/// The entry that decides `key`, or kNoEntry: then the policy decides.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_entry(const RfcView& table, const Key& key) noexcept {
  return deciding_entry(table.memory, family_of(table, key), key, table.port_count);
}

}  // namespace penstock::classify
