// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// GHASH's multiplication in GF(2^128) (SP 800-38D §6.3), in constant time and without tables. Elements are four
// big-endian words; read as a 128-bit number, the coefficient of x^0 is the most significant bit. Carry-less products
// use integer multiplications with holes: each operand is split into four parts that keep every fourth bit, at most
// eight of 32. The sums in a product of two parts are at most 8, so they stay within their four bits, and the lowest of
// these is the carry-less sum.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/block_core.h"

namespace penstock::ipsec {

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t carryless_product(std::uint32_t a,
                                                                             std::uint32_t b) noexcept {
  constexpr std::uint32_t kHoles = 0x11111111;
  const std::uint64_t a0 = a & kHoles;
  const std::uint64_t a1 = a & kHoles << 1;
  const std::uint64_t a2 = a & kHoles << 2;
  const std::uint64_t a3 = a & kHoles << 3;
  const std::uint64_t b0 = b & kHoles;
  const std::uint64_t b1 = b & kHoles << 1;
  const std::uint64_t b2 = b & kHoles << 2;
  const std::uint64_t b3 = b & kHoles << 3;
  // The four-bit sums of a product grow from 1 to 8 in the middle and shrink again. If one of two products is shifted
  // by four bits, their sums at one position are at most 8 and 7. Such products can be added before the carries are
  // masked.
  constexpr std::uint64_t kWideHoles = 0x1111111111111111;
  return (((a0 * b0 + a1 * b3) ^ a2 * b2 ^ a3 * b1) & kWideHoles) |
         (((a0 * b1 + a2 * b3) ^ (a1 * b0 + a3 * b2)) & kWideHoles << 1) |
         (((a0 * b2 + a3 * b3) ^ a1 * b1 ^ a2 * b0) & kWideHoles << 2) |
         ((a0 * b3 ^ a1 * b2 ^ a2 * b1 ^ a3 * b0) & kWideHoles << 3);
}

/// a · b · x. With `ghash_key(factor)` as b, this is a · factor. The extra x results from the bit order: the product of
/// two 128-bit numbers has 255 bits, not 256.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Block ghash_times(const Block& a, const Block& b) noexcept {
  // 64 by 64 bits with three products (Karatsuba), and 128 by 128 with three of these. `h` is the upper half.
  struct Wide {
    std::uint64_t h, l;
  };
  const auto times64 = [](std::uint32_t ah, std::uint32_t al, std::uint32_t bh, std::uint32_t bl) -> Wide {
    const std::uint64_t high = carryless_product(ah, bh);
    const std::uint64_t low = carryless_product(al, bl);
    const std::uint64_t middle = carryless_product(ah ^ al, bh ^ bl) ^ high ^ low;
    return {high ^ middle >> 32, low ^ middle << 32};
  };
  const Wide high = times64(a.w[0], a.w[1], b.w[0], b.w[1]);
  const Wide low = times64(a.w[2], a.w[3], b.w[2], b.w[3]);
  Wide middle = times64(a.w[0] ^ a.w[2], a.w[1] ^ a.w[3], b.w[0] ^ b.w[2], b.w[1] ^ b.w[3]);
  middle.h ^= high.h ^ low.h;
  middle.l ^= high.l ^ low.l;
  const std::uint64_t upper = high.l ^ middle.h;
  std::uint64_t lower = low.h ^ middle.l;

  // Reduces the lower 128 bits (`lower`, low.l) with x^128 = x^7 + x^2 + x + 1. The last seven bits overflow when they
  // are folded, so they are folded first.
  lower ^= low.l << 63 ^ low.l << 62 ^ low.l << 57;
  const auto fold = [](std::uint64_t above, std::uint64_t word) {
    return word ^ (word >> 1 | above << 63) ^ (word >> 2 | above << 62) ^ (word >> 7 | above << 57);
  };
  const std::uint64_t result_high = high.h ^ fold(0, lower);
  const std::uint64_t result_low = upper ^ fold(lower, low.l);
  return {{static_cast<std::uint32_t>(result_high >> 32), static_cast<std::uint32_t>(result_high),
           static_cast<std::uint32_t>(result_low >> 32), static_cast<std::uint32_t>(result_low)}};
}

/// The factor divided by x, the form that `ghash_times` takes.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Block ghash_key(const Block& factor) noexcept {
  const std::uint32_t over = 0U - (factor.w[0] >> 31);  // all ones if x^0 is set, whose quotient is x^127 + x^6 + x + 1
  return {{(factor.w[0] << 1 | factor.w[1] >> 31) ^ (over & 0xc2000000), factor.w[1] << 1 | factor.w[2] >> 31,
           factor.w[2] << 1 | factor.w[3] >> 31, factor.w[3] << 1 ^ (over & 1)}};
}

}  // namespace penstock::ipsec
