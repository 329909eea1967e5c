// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Longest prefix match in a multibit trie: one load for the root, and one for each level below it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/host_device.h"
#include "nf/router/multibit_layout.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

/// The index of the address's entry in a node of the level.
template <typename View>
PENSTOCK_HOST_DEVICE constexpr std::size_t entry_index(std::uint32_t node, const typename View::Address& address,
                                                       std::size_t level) noexcept {
  return (std::size_t{node} << View::kUnitBits) + bits_at(address, View::depth(level), View::stride(level));
}

/// The entry of the longest prefix that contains `address`: its value and its length. kNoRouteEntry if there is none.
template <typename Address, unsigned... kStrides>
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t lookup_entry(MultibitView<Address, kStrides...> table,
                                                                        const Address& address) noexcept {
  using View = MultibitView<Address, kStrides...>;
  std::uint32_t entry = table.root[bits_at(address, 0, View::kRootBits)];
  const auto descend = [&](std::size_t level) {
    if (!is_child(entry)) return false;
    entry = table.nodes[entry_index<View>(child_node(entry), address, level)];
    return true;
  };
  [&]<std::size_t... kLevel>(std::index_sequence<kLevel...>) { (void)(descend(kLevel) && ...); }
  (std::make_index_sequence<View::kLevels>());
  return entry;
}

/// The value of the longest prefix that contains `address`, or kNoRoute. A table of another process may have a child
/// below its last level, whose number is no value.
template <typename Address, unsigned... kStrides>
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t lookup(MultibitView<Address, kStrides...> table,
                                                                  const Address& address) noexcept {
  const std::uint32_t entry = lookup_entry(table, address);
  return is_child(entry) ? kNoRoute : entry_value(entry);
}

}  // namespace penstock::router
