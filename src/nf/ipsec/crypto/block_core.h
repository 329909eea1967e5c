// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores sixteen bytes at any address. On a device, loads read only the aligned words that overlap the
// requested bytes; the host uses memcpy.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/host_device.h"

namespace penstock::ipsec {

/// Sixteen bytes in memory order: byte i is byte i % 4 of word i / 4, counted from the least significant.
struct alignas(16) Block {
  std::uint32_t w[4];

  friend PENSTOCK_HOST_DEVICE constexpr Block operator^(const Block& a, const Block& b) noexcept {
    return {{a.w[0] ^ b.w[0], a.w[1] ^ b.w[1], a.w[2] ^ b.w[2], a.w[3] ^ b.w[3]}};
  }
};
inline constexpr std::uint32_t kBlockBytes = 16;

/// Calls f with 0, …, n - 1 as compile-time constants: for loops that must be fully unrolled.
template <int n, typename F>
PENSTOCK_HOST_DEVICE constexpr void unrolled(F&& f) noexcept {
  [&]<int... i>(std::integer_sequence<int, i...>) { (f(std::integral_constant<int, i>{}), ...); }
  (std::make_integer_sequence<int, n>{});
}

/// Picks four of eight bytes: nibble i of the selector chooses byte i of the result; 0 to 3 are the bytes of `low`.
PENSTOCK_HOST_DEVICE inline std::uint32_t select_bytes(std::uint32_t low, std::uint32_t high,
                                                       std::uint32_t selector) noexcept {
#ifdef __CUDA_ARCH__
  return __byte_perm(low, high, selector);
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  std::uint32_t selected = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned which = selector >> (4 * i) & 7;
    selected |= static_cast<std::uint32_t>(both >> (8 * which) & 0xff) << (8 * i);
  }
  return selected;
#endif
}

PENSTOCK_HOST_DEVICE inline std::uint32_t swap_bytes(std::uint32_t word) noexcept {
  return select_bytes(word, 0, 0x0123);
}

PENSTOCK_HOST_DEVICE inline Block swap_bytes(const Block& block) noexcept {
  return {{swap_bytes(block.w[0]), swap_bytes(block.w[1]), swap_bytes(block.w[2]), swap_bytes(block.w[3])}};
}

PENSTOCK_HOST_DEVICE constexpr std::uint32_t rotate_left(std::uint32_t word, int bits) noexcept {
  return word << bits | word >> (32 - bits);
}

/// The first `bytes` of the block, at most 16, followed by zeros.
PENSTOCK_HOST_DEVICE inline Block first_bytes(const Block& block, std::uint32_t bytes) noexcept {
  Block first;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t before = 4 * i;
    const std::uint32_t kept = bytes <= before ? 0 : bytes - before;
    first.w[i] = kept >= 4 ? block.w[i] : block.w[i] & ((std::uint32_t{1} << (8 * kept)) - 1);
  }
  return first;
}

/// Loads from a 16-byte aligned address. Nobody may write to the memory meanwhile.
PENSTOCK_HOST_DEVICE inline Block load_constant(const Block& from) noexcept {
#ifdef __CUDA_ARCH__
  const uint4 words = __ldg(reinterpret_cast<const uint4*>(&from));
  return {{words.x, words.y, words.z, words.w}};
#else
  return from;
#endif
}

/// Loads from a 16-byte aligned address in one access.
PENSTOCK_HOST_DEVICE inline Block load_aligned(const std::uint8_t* from) noexcept {
#ifdef __CUDA_ARCH__
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  return {{words.x, words.y, words.z, words.w}};
#else
  Block block;
  std::memcpy(block.w, from, kBlockBytes);
  return block;
#endif
}

/// Loads `bytes`, at most 16, from any address, followed by zeros.
PENSTOCK_HOST_DEVICE inline Block load_block(const std::uint8_t* from, std::uint32_t bytes = kBlockBytes) noexcept {
#ifdef __CUDA_ARCH__
  const auto skipped = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) & 3);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from - skipped);
  std::uint32_t aligned[5];
  for (std::uint32_t i = 0; i < 5; ++i) aligned[i] = 4 * i < skipped + bytes ? words[i] : 0;
  const std::uint32_t selector = 0x3210 + 0x1111 * skipped;
  Block block;
  for (unsigned i = 0; i < 4; ++i) block.w[i] = __byte_perm(aligned[i], aligned[i + 1], selector);
  return bytes >= kBlockBytes ? block : first_bytes(block, bytes);
#else
  Block block{};
  if (bytes != 0) std::memcpy(block.w, from, bytes);
  return block;
#endif
}

/// Stores the first `bytes` of the block, at most 16, to any address.
PENSTOCK_HOST_DEVICE inline void store_block(std::uint8_t* to, const Block& block,
                                             std::uint32_t bytes = kBlockBytes) noexcept {
#ifdef __CUDA_ARCH__
  const auto alignment = reinterpret_cast<std::uintptr_t>(to) & 3;
  if (bytes >= kBlockBytes && alignment == 0) {
    auto* words = reinterpret_cast<std::uint32_t*>(to);
    for (unsigned i = 0; i < 4; ++i) words[i] = block.w[i];
  } else if (bytes >= kBlockBytes && alignment == 2) {
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(block.w[0]);
    auto* words = reinterpret_cast<std::uint32_t*>(to + 2);
    for (unsigned i = 0; i < 3; ++i) words[i] = __byte_perm(block.w[i], block.w[i + 1], 0x5432);
    *reinterpret_cast<std::uint16_t*>(to + 14) = static_cast<std::uint16_t>(block.w[3] >> 16);
  } else {
#pragma unroll
    for (unsigned i = 0; i < kBlockBytes; ++i) {
      if (i < bytes) to[i] = static_cast<std::uint8_t>(block.w[i / 4] >> (8 * (i % 4)));
    }
  }
#else
  if (bytes != 0) std::memcpy(to, block.w, bytes);
#endif
}

}  // namespace penstock::ipsec
