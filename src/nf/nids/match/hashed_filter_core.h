// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of the hashed filter, for host and device: which of 16 byte positions are candidates, and which literals
// are at a candidate.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "nf/nids/match/hashed_filter_layout.h"
#include "nf/nids/match/text_core.h"

namespace penstock::nids {

inline constexpr std::uint32_t kBlockBytes = 16;
inline constexpr std::uint32_t kBlockWords = kBlockBytes / 4;

/// The words of a block and the next two, for windows and keys that begin in the block.
using BlockWords = std::uint32_t[kBlockWords + 2];

/// Shifts one more bit into the low end of `mask`: the bit of `word` at index `bit` modulo 32, counted from the top.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t append_bit(std::uint32_t mask, std::uint32_t word,
                                                                   std::uint32_t bit) noexcept {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(__funnelshift_l(0, word, bit), mask, 1);
#else
  return mask << 1 | (word << bit % 32) >> 31;
#endif
}

/// The window at position i of a block.
template <std::uint32_t i>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t window_at(const BlockWords& words) noexcept {
  if constexpr (i % 4 == 0) {
    return words[i / 4];
  } else {
    return funnel_right(words[i / 4], words[i / 4 + 1], i % 4 * 8);
  }
}

namespace detail {

template <bool kPairs, std::uint32_t i = 0>
PENSTOCK_HOST_DEVICE inline void test_windows(const FilterBitsView& bits, const BlockWords& words, std::uint32_t& quads,
                                              std::uint32_t& pairs) noexcept {
  if constexpr (i < kBlockBytes) {
    const std::uint32_t window = window_at<i>(words);
    const std::uint32_t hash = quad_hash(window);
    quads = append_bit(quads, bits.quads[hash >> bits.quad_shift], quad_bit(hash));
    if constexpr (kPairs) {
      pairs = append_bit(pairs, bits.pairs[pair_hash(window) >> (32 - kPairWordsLog2)], pair_bit(window));
    }
    test_windows<kPairs, i + 1>(bits, words, quads, pairs);
  }
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool has_key(const FilterBitsView& bits, std::uint32_t hash) noexcept {
  return (bits.keys[hash >> bits.key_shift] << quad_bit(hash) % 32) >> 31 != 0;
}

}  // namespace detail

/// Tests the windows of a block against the bits: bit 31 - i is for a quad at position i, bit 15 - i for a pair. The
/// caller folds the words if the view says so.
template <bool kPairs>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t block_windows(const FilterBitsView& bits,
                                                                      const BlockWords& words) noexcept {
  std::uint32_t quads = 0;
  std::uint32_t pairs = 0;
  detail::test_windows<kPairs>(bits, words, quads, pairs);
  return quads << kBlockBytes | pairs;
}

/// The candidates: those of `windows` that also have the key of a literal, and for which `known(quad, window)` is
/// false.
template <bool kPairs, typename Known>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t block_candidates(const FilterBitsView& bits,
                                                                         const BlockWords& words, std::uint32_t windows,
                                                                         Known&& known) noexcept {
  std::uint32_t candidates = 0;
  while (windows != 0) {
    const std::uint32_t bit = leading_zeros(windows);
    windows &= ~(0x8000'0000U >> bit);
    const bool quad = !kPairs || bit < kBlockBytes;
    // Selected with conditions: with a run-time index, the compiler would put the words into memory.
    const auto word = [&](unsigned i) {
      const std::uint32_t even = (bit & 8) != 0 ? words[i + 2] : words[i];
      const std::uint32_t odd = (bit & 8) != 0 ? words[i + 3] : words[i + 1];
      return (bit & 4) != 0 ? odd : even;
    };
    const std::uint32_t shift = bit % 4 * 8;
    const std::uint32_t low = funnel_right(word(0), word(1), shift);
    std::uint32_t short_key = key_hash(low, 0, 4);
    std::uint32_t long_key = key_hash(low, funnel_right(word(1), word(2), shift) & 0xffff, 6);
    if (!quad) {
      short_key = key_hash(low & 0xffff, 0, 2);
      long_key = key_hash(low & 0xff'ffff, 0, 3);
    }
    if (!detail::has_key(bits, short_key) && !detail::has_key(bits, long_key)) continue;
    if (!known(quad, quad ? low : low & 0xffff)) candidates |= 0x8000'0000U >> bit;
  }
  return candidates;
}

/// The mask of the positions from `from` to before `to` (at most kBlockBytes).
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t candidates_within(std::uint32_t from,
                                                                             std::uint32_t to) noexcept {
  const std::uint32_t half = (0xffffU >> from) & ~(0xffffU >> to);
  return half << kBlockBytes | half;
}

/// Whether the literal lies in [begin, end) with its window at `at`.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool is_there(const HashedFilterView& view, const FilterEntry& entry,
                                                        const std::uint8_t* begin, const std::uint8_t* at,
                                                        const std::uint8_t* end) noexcept {
  if (at - begin < entry.at) return false;
  const std::uint8_t* const start = at - entry.at;
  if (end - start < entry.length) return false;
  std::uint64_t text = load_up_to_8(start, end);
  if (entry.nocase != 0) text = folded(text);
  if (((text ^ entry.bytes) & low_bytes(entry.length)) != 0) return false;
  for (std::uint32_t i = 8; i < entry.length; ++i) {
    const std::uint8_t byte = entry.nocase != 0 ? folded(start[i]) : start[i];
    if (byte != view.rests[entry.rest + i - 8]) return false;
  }
  return true;
}

/// The window of a candidate as it is in the table: its quad, or its pair. Bytes past the end of the text are zeros.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t candidate_window(const HashedFilterView& view, bool quad,
                                                                         const std::uint8_t* at,
                                                                         const std::uint8_t* end) noexcept {
  auto window = static_cast<std::uint32_t>(load_up_to_8(at, end));
  if (view.folds) window = folded(window);
  return quad ? window : window & 0xffff;
}

/// Calls `found(literal)` for each literal with this window for which `is_there(entry)` is true. Returns true if that
/// holds for all literals with the window, or if there are none: the window then need not be looked up again in this
/// text.
template <typename IsThere, typename Found>
PENSTOCK_HOST_DEVICE inline bool look_up_window(const HashedFilterView& view, bool quad, std::uint32_t window,
                                                IsThere&& is_there, Found&& found) noexcept {
  const FilterSlotsView table = quad ? view.quad_slots : view.pair_slots;
  std::uint32_t index = (quad ? quad_hash(window) : pair_hash(window)) >> table.shift;
  while (true) {
    const FilterSlot slot = table.slots[index];
    if (slot.first == FilterSlot::kEmpty) return true;
    if (slot.window == window) {
      bool all = true;
      for (std::uint32_t i = slot.first;; ++i) {
        const FilterEntry entry = view.entries[i];
        if (is_there(entry)) {
          found(entry.literal);
        } else {
          all = false;
        }
        if (entry.last != 0) return all;
      }
    }
    index = (index + 1) & table.mask;
  }
}

/// The same for each literal in [begin, end) with this window at `at`.
template <typename Found>
PENSTOCK_HOST_DEVICE inline bool look_up_candidate(const HashedFilterView& view, bool quad, std::uint32_t window,
                                                   const std::uint8_t* begin, const std::uint8_t* at,
                                                   const std::uint8_t* end, Found&& found) noexcept {
  return look_up_window(
      view, quad, window, [&](const FilterEntry& entry) { return is_there(view, entry, begin, at, end); }, found);
}

/// Calls `found(literal)` for each occurrence of each literal in [begin, end). For the host.
template <bool kPairs, typename Found>
inline void scan_filtered(const HashedFilterView& view, const std::uint8_t* begin, const std::uint8_t* end,
                          Found&& found) noexcept {
  for (const std::uint8_t* block = begin; block < end; block += std::min<std::ptrdiff_t>(kBlockBytes, end - block)) {
    BlockWords words = {};
    std::memcpy(words, block, std::min<std::size_t>(sizeof(words), static_cast<std::size_t>(end - block)));
    if (view.folds) {
      for (std::uint32_t& word : words) word = folded(word);
    }
    const auto positions = static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(kBlockBytes, end - block));
    std::uint32_t candidates = block_candidates<kPairs>(
        view.bits, words, block_windows<kPairs>(view.bits, words) & candidates_within(0, positions),
        [](bool, std::uint32_t) { return false; });
    while (candidates != 0) {
      const std::uint32_t i = leading_zeros(candidates);
      candidates &= ~(0x8000'0000U >> i);
      const std::uint8_t* const at = block + i % kBlockBytes;
      const bool quad = i < kBlockBytes;
      look_up_candidate(view, quad, candidate_window(view, quad, at, end), begin, at, end, found);
    }
  }
}

}  // namespace penstock::nids
