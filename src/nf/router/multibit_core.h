// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Longest prefix match in an IPv4 multibit trie: one load for the root and one for each level below it.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "nf/router/multibit_layout.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

/// The value of the longest prefix that contains `address`, or kNoRoute.
template <unsigned kRootBits, unsigned kStrideBits>
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t lookup(MultibitView<kRootBits, kStrideBits> table,
                                                                  Ipv4Address address) noexcept {
  constexpr std::uint32_t kSlotMask = MultibitView<kRootBits, kStrideBits>::kNodeEntries - 1;
  std::uint32_t entry = table.root[address.bits >> (32 - kRootBits)];
  unsigned shift = 32 - kRootBits;
  while (is_child(entry)) {  // a trie has no child below its last level
    shift -= kStrideBits;
    entry = table.nodes[child_node(entry) << kStrideBits | (address.bits >> shift & kSlotMask)];
  }
  return entry_value(entry);
}

}  // namespace penstock::router
