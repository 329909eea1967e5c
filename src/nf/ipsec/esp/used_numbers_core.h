// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which sequence numbers of an SA a device has used, so that it uses each at most once, whatever it is asked for, by
// however many threads. Old numbers are forgotten, and then count as used. Each SA has a ring of words:
//
//     number   │ tag: all other bits │ block in the ring │ bit: 4 │ word of the block: 5 │
//     word     │ tag: 48                                 │ which of 16 numbers are used  │
//
// Numbers in a row are in different words, so that threads in a row do not wait for each other.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/host_device.h"

namespace penstock::ipsec {

/// Borrows the words, on the host or on a device. They are zeros at first.
struct UsedNumbersView {
  static constexpr unsigned kBlockBits = 5;
  static constexpr unsigned kNumberBits = 4;
  static constexpr unsigned kFlags = 1 << kNumberBits;

  unsigned long long* words = nullptr;
  std::uint32_t log_words = 0;  // of each SA

  /// Whether the number had not been used, and is known, which it is unless one much higher has been used. From now on
  /// it is used.
  //
  // No number is taken twice. Each number of an SA has one word, and in that a tag and a flag that no other number has:
  // together they are its bits. It is taken only by an exchange that sets its flag under its tag, from a word with a
  // lower tag or without the flag. The exchanges of one word are in one order, in which the tag never becomes lower,
  // and flags of a tag are never cleared. So every later look at the word finds the flag, or a higher tag, and refuses
  // the number. Tags do not wrap: a number whose tag is too large for its bits is refused.
  [[nodiscard]] PENSTOCK_HOST_DEVICE bool take(std::uint32_t sa, std::uint64_t number) const noexcept {
    const std::uint64_t tag = number >> (kNumberBits + log_words);
    if (tag >> (64 - kFlags) != 0) return false;
    const std::uint64_t of_block = number & ((1U << kBlockBits) - 1);
    const std::uint64_t block =
        number >> (kBlockBits + kNumberBits) & ((std::uint64_t{1} << (log_words - kBlockBits)) - 1);
    unsigned long long& word = words[(std::uint64_t{sa} << log_words) + (block << kBlockBits) + of_block];
    const unsigned long long flag = 1ULL << (number >> kBlockBits & (kFlags - 1));
    unsigned long long before = load(word);
    for (;;) {
      const std::uint64_t tag_before = before >> kFlags;
      if (tag_before > tag || (tag_before == tag && (before & flag) != 0)) return false;
      const unsigned long long after = tag_before == tag ? before | flag : tag << kFlags | flag;
      if (exchange(word, before, after)) return true;
    }
  }

 private:
#ifdef __CUDA_ARCH__
  __device__ static unsigned long long load(const unsigned long long& word) noexcept {
    return *static_cast<const volatile unsigned long long*>(&word);
  }
  /// If it fails, `before` is what the word is.
  __device__ static bool exchange(unsigned long long& word, unsigned long long& before,
                                  unsigned long long after) noexcept {
    const unsigned long long found = atomicCAS(&word, before, after);
    return found == before || (before = found, false);
  }
#else
  static unsigned long long load(const unsigned long long& word) noexcept {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  }
  /// If it fails, `before` is what the word is.
  static bool exchange(unsigned long long& word, unsigned long long& before, unsigned long long after) noexcept {
    return __atomic_compare_exchange_n(&word, &before, after, /*weak=*/false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
#endif
};

/// The ring of each SA: 64 MiB for all of them, but at least 4,096 numbers for each, and at most 1,048,576, which are
/// more than can be on their way to a device.
[[nodiscard]] constexpr std::uint32_t log_of_used_words(std::size_t sas) noexcept {
  constexpr std::size_t kWords = (std::size_t{64} << 20) / sizeof(unsigned long long);
  constexpr std::uint32_t kLeast = 8, kMost = 16;
  const std::size_t of_each = kWords / std::max<std::size_t>(sas, 1);
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(of_each | 1)) - 1, kLeast, kMost);
}
[[nodiscard]] constexpr std::size_t used_words(std::size_t sas) noexcept { return sas << log_of_used_words(sas); }

}  // namespace penstock::ipsec
