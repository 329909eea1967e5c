// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hashed filter. Of each literal a window is looked for at every position of a text: four bytes of it (a quad), two
// (a pair) where it has no four. A bit that a hash of the quad selects says whether any literal may be near, another so
// for the pair. Where one is set, a second bit is asked for, by a hash of the window and what follows it: the key. All
// bits are small enough for the fastest memory, and how many literals there are changes nothing but their density.
// Only where both are set are the literals of the window looked up in a hash table, and compared.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/host_device.h"

namespace penstock::nids {

/// A window and where the literals are that have it: at `first` and behind, to the one that is marked the last.
struct FilterSlot {
  std::uint32_t window = 0;
  std::uint32_t first = kEmpty;
  static constexpr std::uint32_t kEmpty = 0xffff'ffff;
};

struct FilterEntry {
  std::uint64_t bytes = 0;  // the first eight of the literal; in lower case where case is nothing to it
  std::uint32_t literal = 0;
  std::uint32_t rest = 0;  // where those behind are in `rests`
  std::uint16_t length = 0;
  std::uint16_t at = 0;  // of the window in the literal
  std::uint8_t nocase = 0;
  std::uint8_t last = 0;
};
static_assert(sizeof(FilterEntry) == 24);

/// Open addressing: from the window's hash on to the first empty slot.
struct FilterSlotsView {
  const FilterSlot* slots = nullptr;
  std::uint32_t mask = 0;   // of an index
  std::uint32_t shift = 0;  // of a hash, to an index
};

inline constexpr std::uint32_t kPairWordsLog2 = 11;

/// All that is read at every position.
struct FilterBitsView {
  const std::uint32_t* quads = nullptr;
  const std::uint32_t* pairs = nullptr;
  const std::uint32_t* keys = nullptr;
  std::uint32_t quad_shift = 0;  // of a hash, to the index of a word
  std::uint32_t key_shift = 0;

  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t quad_words() const noexcept { return 1U << (32 - quad_shift); }
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t key_words() const noexcept { return 1U << (32 - key_shift); }
};

/// Borrows; passed by value to kernels.
struct HashedFilterView {
  FilterBitsView bits;
  bool folds = false;        // windows and keys are of the text in lower case
  bool pairs = false;        // whether there are any
  std::uint32_t before = 0;  // the most bytes of a literal before its window
  std::uint32_t after = 0;   // and from its window on
  FilterSlotsView quad_slots, pair_slots;
  const FilterEntry* entries = nullptr;
  const std::uint8_t* rests = nullptr;
};

/// How many bytes a key has, which begins with the window, where a literal has `left` bytes from its window on.
[[nodiscard]] constexpr std::uint32_t key_bytes(std::size_t left) noexcept {
  return left >= 6 ? 6 : left >= 4 ? 4 : left == 3 ? 3 : 2;
}

/// Fibonacci hashing. The lower half of a quad's hash is as good as its lower bytes, so bits are taken from above.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t quad_hash(std::uint32_t window) noexcept {
  return window * 0x9e37'79b1U;
}
/// Its upper half is a permutation of the pair, the lower two bytes; the bytes above do not matter.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t pair_hash(std::uint32_t window) noexcept {
  return window * 0x9e37'0000U;
}

/// `low`: up to the first four of the key's bytes, `high`: those behind; zeros above. Of keys of different sizes no two
/// are alike.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t key_hash(std::uint32_t low, std::uint32_t high,
                                                                    std::uint32_t bytes) noexcept {
  return low * 0x85eb'ca6bU + (high | bytes << 16) * 0xc2b2'ae35U;
}

/// Which bit of a word: how far it is from the top; the caller takes it modulo 32. A key's is as a quad's.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t quad_bit(std::uint32_t hash) noexcept { return hash >> 12; }
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t pair_bit(std::uint32_t window) noexcept { return window; }

/// Owns it on the host.
struct HashedFilterTables {
  std::vector<std::uint32_t> quad_bits, pair_bits, key_bits;
  std::vector<FilterSlot> quad_slots, pair_slots;  // a power of two of each
  std::vector<FilterEntry> entries;
  std::vector<std::uint8_t> rests;
  bool folds = false;
  bool pairs = false;
  std::uint32_t before = 0, after = 0;
  std::uint32_t literals = 0;

  [[nodiscard]] HashedFilterView view() const noexcept;
  [[nodiscard]] std::size_t bit_bytes() const noexcept {
    return (quad_bits.size() + (pairs ? pair_bits.size() : 0) + key_bits.size()) * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::size_t bytes() const noexcept;
};

}  // namespace penstock::nids
