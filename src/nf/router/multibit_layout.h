// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// IPv4 multibit tries of fixed strides, as host and device both see them: a root of 2^kRootBits entries and nodes of
// 2^kStrideBits. Leaf-pushed: an entry is either a child or the longest match of its whole range, so a lookup ends at
// the first entry that is no child and never looks back. DIR-24-8 is the trie with strides 24 and 8, Alonistioti's are
// those with strides 1 and 4.
//
//     root   [ route | child 1 | route | … ]              2^kRootBits entries, see route_entry.h
//     nodes  [ node 0 | node 1 | … ]                      2^kStrideBits entries each

#pragma once

#include <cstdint>

namespace penstock::router {

/// Borrows the table's arrays, the host's or a copy of them on the device.
template <unsigned kRootBits, unsigned kStrideBits>
struct MultibitView {
  static_assert(kRootBits >= 1 && kRootBits < 32 && (32 - kRootBits) % kStrideBits == 0);
  static constexpr std::uint32_t kRootEntries = std::uint32_t{1} << kRootBits;
  static constexpr std::uint32_t kNodeEntries = std::uint32_t{1} << kStrideBits;
  static constexpr unsigned kLevels = (32 - kRootBits) / kStrideBits;  // below the root

  const std::uint32_t* root = nullptr;   // kRootEntries
  const std::uint32_t* nodes = nullptr;  // node_count * kNodeEntries
  std::uint32_t node_count = 0;
};

using Dir24View = MultibitView<24, 8>;
using Trie1View = MultibitView<1, 1>;
using Trie4View = MultibitView<4, 4>;

}  // namespace penstock::router
