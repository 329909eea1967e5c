// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a text in words, for host and device. The first byte of the text is the lowest one.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace penstock::nids {

static_assert(std::endian::native == std::endian::little);

/// Converts ASCII letters to lower case, in each byte of the word.
template <typename Word>
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Word folded(Word word) noexcept {
  constexpr Word kOnes = static_cast<Word>(~Word{0}) / 0xff;  // 0x01 in each byte
  const Word low = word & static_cast<Word>(kOnes * 0x7f);
  const Word from_a = static_cast<Word>(low + kOnes * (0x80 - 'A'));       // the top bit of bytes >= 'A'
  const Word above_z = static_cast<Word>(low + kOnes * (0x80 - 'Z' - 1));  // the top bit of bytes > 'Z'
  const Word upper = static_cast<Word>(from_a & ~above_z & ~word & kOnes * 0x80);
  return static_cast<Word>(word | upper >> 2);
}

/// Whether the byte is an ASCII letter.
[[nodiscard]] constexpr bool is_letter(std::uint8_t byte) noexcept {
  const std::uint8_t low = byte | 0x20;
  return low >= 'a' && low <= 'z';
}

/// `word` must not be 0.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t leading_zeros(std::uint32_t word) noexcept {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__clz(static_cast<int>(word)));
#else
  return static_cast<std::uint32_t>(std::countl_zero(word));
#endif
}

/// The low word of (high, low) >> bits; `bits` < 32.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high,
                                                                     std::uint32_t bits) noexcept {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, bits);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> bits);
#endif
}

/// Loads up to eight bytes from `at` on; bytes from `end` on are zeros. `at` < `end`.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint64_t load_up_to_8(const std::uint8_t* at,
                                                                     const std::uint8_t* end) noexcept {
  const auto left = static_cast<std::uint64_t>(end - at);
#ifdef __CUDA_ARCH__
  // Loads only whole words that contain at least one byte of the text.
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto* const word = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const auto bits = static_cast<std::uint32_t>(address & 3) * 8;
  const auto has = [&](int i) { return reinterpret_cast<const std::uint8_t*>(word + i) < end; };
  const std::uint32_t first = __ldg(word);
  const std::uint32_t second = has(1) ? __ldg(word + 1) : 0;
  const std::uint32_t third = bits != 0 && has(2) ? __ldg(word + 2) : 0;
  const std::uint64_t both = std::uint64_t{funnel_right(second, third, bits)} << 32 | funnel_right(first, second, bits);
  return left >= 8 ? both : both & ((std::uint64_t{1} << 8 * left) - 1);
#else
  std::uint64_t both = 0;
  std::memcpy(&both, at, left < 8 ? left : 8);
  return both;
#endif
}

/// Ones in the low `count` bytes; `count` > 0.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t low_bytes(std::uint32_t count) noexcept {
  return count >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * count) - 1;
}

}  // namespace penstock::nids
