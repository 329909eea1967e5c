// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Longest prefix match in the IPv6 poptrie: one load for the root, one word for each level, one leaf.

#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "nf/router/poptrie_layout.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

PENSTOCK_HOST_DEVICE constexpr std::uint32_t count_ones(std::uint64_t bits) noexcept {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popcll(bits));
#else
  return static_cast<std::uint32_t>(std::popcount(bits));
#endif
}

/// The byte of `address` that begins at bit `depth`, a multiple of 8, counted from the highest.
PENSTOCK_HOST_DEVICE constexpr unsigned address_byte(const Ipv6Address& address, unsigned depth) noexcept {
  const std::uint64_t half = depth < 64 ? address.high : address.low;
  return static_cast<unsigned>(half >> (56 - depth % 64)) & 0xff;
}

PENSTOCK_HOST_DEVICE constexpr bool has_child(const PoptrieWord& word, unsigned slot) noexcept {
  return (word.children >> slot & 1) != 0;
}
PENSTOCK_HOST_DEVICE constexpr std::uint32_t child_of(const PoptrieWord& word, unsigned slot) noexcept {
  return word.first_child + count_ones(word.children & ((std::uint64_t{1} << slot) - 1));
}
PENSTOCK_HOST_DEVICE constexpr std::uint32_t leaf_of(const PoptrieWord& word, unsigned slot) noexcept {
  return word.first_leaf + count_ones(word.runs & ((std::uint64_t{2} << slot) - 1)) - 1;
}

/// The value of the longest prefix that contains `address`, or kNoRoute.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t lookup(PoptrieView table,
                                                                  const Ipv6Address& address) noexcept {
  const std::uint32_t entry = table.root[address.high >> 48];
  if (!is_child(entry)) return entry_value(entry);
  std::uint32_t node = child_node(entry);
  for (unsigned depth = PoptrieView::kRootBits;; depth += PoptrieView::kStrideBits) {
    const unsigned byte = address_byte(address, depth);
    const PoptrieWord& word = table.nodes[node].words[byte >> 6];
    const unsigned slot = byte & 63;
    if (!has_child(word, slot)) return entry_value(table.leaves[leaf_of(word, slot)]);
    node = child_of(word, slot);  // never at depth 120: no prefix is longer than 128
  }
}

}  // namespace penstock::router
