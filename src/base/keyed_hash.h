// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For hash tables whose keys strangers choose, in packets: who does not know the seed does not know which keys collide,
// and cannot make a table a list (Crosby & Wallach, "Denial of Service via Algorithmic Complexity Attacks", 2003).

#pragma once

#include <cstdint>
#include <random>

namespace penstock {

/// The middle of a product spreads each bit of both over all of the result (as wyhash does). One of the two is to hold
/// the seed, or what was mixed with it.
[[nodiscard]] inline std::uint64_t mix_product(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xd6e8feb86659fd93U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Of the system. May throw: for constructors.
[[nodiscard]] inline std::uint64_t random_seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace penstock
