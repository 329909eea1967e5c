// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hashed filter. Each literal has a window that is searched at every position of a text: four of its bytes (a
// quad), or two (a pair) if it is shorter than four. A hash of the quad selects a bit which says whether any literal
// may be there; another bit does the same for the pair. If one is set, a hash of the key (the window and the bytes
// after it) selects a second bit. All bits are small enough for the fastest memory; the number of literals only changes
// their density. Only if both bits are set, the literals with this window are looked up in a hash table, and compared.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/host_device.h"

namespace penstock::nids {

/// A window, and where its literals are in `entries`: from `first` up to the one with the mark `last`.
struct FilterSlot {
  std::uint32_t window = 0;
  std::uint32_t first = kEmpty;
  static constexpr std::uint32_t kEmpty = 0xffff'ffff;
};

struct FilterEntry {
  std::uint64_t bytes = 0;  // the first eight bytes of the literal; in lower case if it ignores case
  std::uint32_t literal = 0;
  std::uint32_t rest = 0;  // where the other bytes are in `rests`
  std::uint16_t length = 0;
  std::uint16_t at = 0;  // offset of the window in the literal
  std::uint8_t nocase = 0;
  std::uint8_t last = 0;
  std::uint8_t reserved[2] = {};  // no padding, since arrays of it may go to another process
};
static_assert(sizeof(FilterEntry) == 24);

/// Open addressing: probes from the window's hash to the first empty slot.
struct FilterSlotsView {
  const FilterSlot* slots = nullptr;
  std::uint32_t mask = 0;   // of a slot's index
  std::uint32_t shift = 0;  // shifts a hash to a slot's index
};

inline constexpr std::uint32_t kPairWordsLog2 = 11;

/// Everything that is read at every position.
struct FilterBitsView {
  const std::uint32_t* quads = nullptr;
  const std::uint32_t* pairs = nullptr;
  const std::uint32_t* keys = nullptr;
  std::uint32_t quad_shift = 0;  // shifts a hash to a word's index
  std::uint32_t key_shift = 0;

  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t quad_words() const noexcept { return 1U << (32 - quad_shift); }
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t key_words() const noexcept { return 1U << (32 - key_shift); }
};

/// Borrows; passed by value to kernels.
struct HashedFilterView {
  FilterBitsView bits;
  bool folds = false;        // windows and keys are those of the text in lower case
  bool pairs = false;        // whether there are any pairs
  std::uint32_t before = 0;  // the most bytes of a literal before its window
  std::uint32_t after = 0;   // the most bytes of a literal from its window on
  FilterSlotsView quad_slots, pair_slots;
  const FilterEntry* entries = nullptr;
  const std::uint8_t* rests = nullptr;
};

/// The size of a key, which begins with the window, for a literal with `left` bytes from its window on.
[[nodiscard]] constexpr std::uint32_t key_bytes(std::size_t left) noexcept {
  return left >= 6 ? 6 : left >= 4 ? 4 : left == 3 ? 3 : 2;
}

/// Fibonacci hashing. The lower bits of a product depend only on the lower bits of the window, so callers use the upper
/// ones.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t quad_hash(std::uint32_t window) noexcept {
  return window * 0x9e37'79b1U;
}
/// The upper half of the hash is a permutation of the pair (the lower two bytes); the upper bytes of `window` have no
/// effect.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t pair_hash(std::uint32_t window) noexcept {
  return window * 0x9e37'0000U;
}

/// `low`: up to the first four bytes of the key; `high`: the others; zeros above. The size is part of the hash, so keys
/// of different sizes differ.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t key_hash(std::uint32_t low, std::uint32_t high,
                                                                    std::uint32_t bytes) noexcept {
  return low * 0x85eb'ca6bU + (high | bytes << 16) * 0xc2b2'ae35U;
}

/// Which bit of a word, counted from the top; the caller takes it modulo 32. Bits of keys are chosen like those of
/// quads.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t quad_bit(std::uint32_t hash) noexcept { return hash >> 12; }
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t pair_bit(std::uint32_t window) noexcept { return window; }

/// The tables in host memory, of HashedFilterTables or of a recipe. Borrows them.
struct FilterSpans {
  std::span<const std::uint32_t> quad_bits, pair_bits, key_bits;  // a power of two in each
  std::span<const FilterSlot> quad_slots, pair_slots;             // ditto
  std::span<const FilterEntry> entries;
  std::span<const std::uint8_t> rests;
  bool folds = false;
  bool pairs = false;
  std::uint32_t before = 0, after = 0;

  [[nodiscard]] HashedFilterView view() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;
};

/// Owns the tables on the host.
struct HashedFilterTables {
  std::vector<std::uint32_t> quad_bits, pair_bits, key_bits;
  std::vector<FilterSlot> quad_slots, pair_slots;  // a power of two in each
  std::vector<FilterEntry> entries;
  std::vector<std::uint8_t> rests;
  bool folds = false;
  bool pairs = false;
  std::uint32_t before = 0, after = 0;
  std::uint32_t literals = 0;

  [[nodiscard]] FilterSpans spans() const noexcept {
    return {quad_bits, pair_bits, key_bits, quad_slots, pair_slots, entries, rests, folds, pairs, before, after};
  }
  [[nodiscard]] HashedFilterView view() const noexcept { return spans().view(); }
  [[nodiscard]] std::size_t bit_bytes() const noexcept {
    return (quad_bits.size() + (pairs ? pair_bits.size() : 0) + key_bits.size()) * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return spans().bytes(); }
};

}  // namespace penstock::nids
