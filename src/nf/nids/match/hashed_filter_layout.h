// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hashed filter. Of each literal a window is looked for at every position of a text: four bytes of it (a quad), two
// (a pair) where it has no four. A bit that a hash of the quad selects says whether any literal may be near, another so
// for the pair: these bits are small enough for the fastest memory, and how many literals there are changes nothing
// but their density. Only where one is set are the literals of the window looked up in a hash table, and compared.

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

/// Borrows; passed by value to kernels.
struct HashedFilterView {
  const std::uint32_t* quad_bits = nullptr;
  const std::uint32_t* pair_bits = nullptr;
  std::uint32_t quad_shift = 0;  // of a hash, to the index of a word
  bool folds = false;            // windows are of the text in lower case
  bool pairs = false;            // whether there are any
  FilterSlotsView quad_slots, pair_slots;
  const FilterEntry* entries = nullptr;
  const std::uint8_t* rests = nullptr;
};

inline constexpr std::uint32_t kPairWordsLog2 = 11;

/// Fibonacci hashing. The lower half of a quad's hash is as good as its lower bytes, so bits are taken from above.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t quad_hash(std::uint32_t window) noexcept {
  return window * 0x9e37'79b1U;
}
/// Its upper half is a permutation of the pair, the lower two bytes; the bytes above do not matter.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t pair_hash(std::uint32_t window) noexcept {
  return window * 0x9e37'0000U;
}

/// Which bit of a word: how far it is from the top; the caller takes it modulo 32.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t quad_bit(std::uint32_t hash) noexcept { return hash >> 12; }
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t pair_bit(std::uint32_t window) noexcept { return window; }

/// Owns it on the host.
struct HashedFilterTables {
  std::vector<std::uint32_t> quad_bits, pair_bits;
  std::vector<FilterSlot> quad_slots, pair_slots;  // a power of two of each
  std::vector<FilterEntry> entries;
  std::vector<std::uint8_t> rests;
  bool folds = false;
  bool pairs = false;
  std::uint32_t literals = 0;

  [[nodiscard]] HashedFilterView view() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;
};

}  // namespace penstock::nids
