// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Look-ups in the IPv6 poptrie on the CPU. What costs is waiting for memory, so with AVX-512 many addresses descend
// together, level by level.

#include <immintrin.h>

#include <cstddef>

#include "nf/router/poptrie_build.h"
#include "nf/router/poptrie_core.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

// The core counts bits; without the instruction that is a call.
[[gnu::target("popcnt"), gnu::flatten]] std::uint32_t lookup_popcnt(PoptrieView table, const Ipv6Address& address) noexcept {
  return lookup(table, address);
}

}  // namespace

std::uint32_t PoptrieTable::lookup(const Ipv6Address& address) const noexcept {
  static const bool has_popcnt = __builtin_cpu_supports("popcnt") != 0;
  return has_popcnt ? lookup_popcnt(view(), address) : router::lookup(view(), address);
}

void PoptrieTable::lookup_bulk(std::span<const Ipv6Address> addresses, std::span<std::uint32_t> values) const noexcept {
  for (std::size_t i = 0; i < addresses.size(); ++i) values[i] = lookup(addresses[i]);
}

}  // namespace penstock::router
