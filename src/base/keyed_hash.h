// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For hash tables whose keys come from packets. Without knowing the seed, an attacker cannot choose keys that collide
// and turn the table into a list (Crosby & Wallach, "Denial of Service via Algorithmic Complexity Attacks", 2003).

#pragma once

#include <cstdint>
#include <random>

namespace penstock {

/// Mixes two words, as wyhash does: the middle bits of a product depend on all bits of both factors. One of the two
/// must contain the seed, or a value that the seed was mixed into.
[[nodiscard]] inline std::uint64_t mix_product(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xd6e8feb86659fd93U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// A seed from the system's random source. May throw, so call it in constructors only.
[[nodiscard]] inline std::uint64_t random_seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace penstock
