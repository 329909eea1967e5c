// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Multibit tries with fixed strides, shared by host and device: a root of 2^kRoot entries and, on each level below it,
// nodes of 2^stride entries (route_entry.h). They are leaf-pushed: an entry is either a child or the longest match of
// its whole range, so a lookup ends at the first entry that is not a child. DIR-24-8 is the trie with strides 24 and 8;
// Alonistioti's tries have strides 1 and 4.
//
//     root   [ route | child 0 | route | … ]
//     nodes  [ node 0           | node 16   | … ]     a node's number is its first entry's index >> kUnitBits

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"

namespace penstock::router {

/// The `count` (at most 32) bits of the address after its first `depth` bits. They must lie within one half of an IPv6
/// address.
PENSTOCK_HOST_DEVICE constexpr std::uint32_t bits_at(Ipv4Address address, unsigned depth, unsigned count) noexcept {
  return static_cast<std::uint32_t>(address.bits >> (32 - depth - count) & ((std::uint64_t{1} << count) - 1));
}
PENSTOCK_HOST_DEVICE constexpr std::uint32_t bits_at(const Ipv6Address& address, unsigned depth,
                                                     unsigned count) noexcept {
  const std::uint64_t half = depth < 64 ? address.high : address.low;
  return static_cast<std::uint32_t>(half >> (64 - depth % 64 - count) & ((std::uint64_t{1} << count) - 1));
}

/// Borrows the table's arrays, on the host or as a copy on the device.
template <typename AddressT, unsigned kRoot, unsigned... kNodes>
struct MultibitView {
  using Address = AddressT;
  static constexpr unsigned kAddressBits = sizeof(Address) * 8;
  static_assert((kRoot + ... + kNodes) == kAddressBits);
  static constexpr unsigned kRootBits = kRoot;
  static constexpr std::size_t kRootEntries = std::size_t{1} << kRoot;
  static constexpr std::size_t kLevels = sizeof...(kNodes);  // below the root
  static constexpr unsigned kUnitBits = std::min({kNodes...});

  PENSTOCK_HOST_DEVICE static constexpr unsigned stride(std::size_t level) noexcept {
    constexpr unsigned kStrides[] = {kNodes...};
    return kStrides[level];
  }
  /// How many address bits are resolved above the level.
  PENSTOCK_HOST_DEVICE static constexpr unsigned depth(std::size_t level) noexcept {
    constexpr auto kDepths = [] {
      std::array<unsigned, kLevels + 1> depths{kRoot};
      for (std::size_t i = 0; i < kLevels; ++i) depths[i + 1] = depths[i] + stride(i);
      return depths;
    }();
    return kDepths[level];
  }

  const std::uint32_t* root = nullptr;   // kRootEntries entries
  const std::uint32_t* nodes = nullptr;  // node_entries entries
  std::uint32_t node_entries = 0;
};

using Dir24View = MultibitView<Ipv4Address, 24, 8>;
using Trie4View = MultibitView<Ipv4Address, 4, 4, 4, 4, 4, 4, 4, 4>;
using Trie1View = MultibitView<Ipv4Address, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  //
                               1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>;

/// Strides of whole bytes down to /32, the size that registries allocate, then of 4 bits: real tables are dense above
/// that and sparse below. So a full table takes 12 MB, a 4-bit node is one cache line, and a /48 takes seven loads.
using Trie6View = MultibitView<Ipv6Address, 16, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4,  //
                               4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4>;

}  // namespace penstock::router
