// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012): a MAC of 64 bits for short
// messages. Pure.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"

namespace penstock {

struct SipKey {
  std::uint64_t low = 0, high = 0;
};

namespace siphash_detail {

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t rotated(std::uint64_t value, unsigned bits) noexcept {
  return value << bits | value >> (64 - bits);
}

struct State {
  std::uint64_t v0, v1, v2, v3;

  PENSTOCK_HOST_DEVICE constexpr void round() noexcept {
    v0 += v1;
    v2 += v3;
    v1 = rotated(v1, 13) ^ v0;
    v3 = rotated(v3, 16) ^ v2;
    v0 = rotated(v0, 32) + v3;
    v2 += v1;
    v1 = rotated(v1, 17) ^ v2;
    v3 = rotated(v3, 21) ^ v0;
    v2 = rotated(v2, 32);
  }
  PENSTOCK_HOST_DEVICE constexpr void add(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace siphash_detail

/// Of whole words, each of them in little-endian order.
template <std::size_t words>
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t siphash(SipKey key,
                                                                   const std::uint64_t (&message)[words]) noexcept {
  siphash_detail::State state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d, key.low ^ 0x6c7967656e657261,
                              key.high ^ 0x7465646279746573};
  for (const std::uint64_t word : message) state.add(word);
  state.add(std::uint64_t{words * 8 & 0xff} << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace penstock
