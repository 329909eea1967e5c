// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hashed filter's two steps, for host and device: which positions of 16 bytes are candidates, and which literals
// are at a candidate.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "nf/nids/match/hashed_filter_layout.h"
#include "nf/nids/match/text_core.h"

namespace penstock::nids {

inline constexpr std::uint32_t kBlockBytes = 16;
inline constexpr std::uint32_t kBlockWords = kBlockBytes / 4;

/// `mask` with one bit more at its low end: that of `word` which is `bit` modulo 32 from the top.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t append_bit(std::uint32_t mask, std::uint32_t word,
                                                                   std::uint32_t bit) noexcept {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(__funnelshift_l(0, word, bit), mask, 1);
#else
  return mask << 1 | (word << bit % 32) >> 31;
#endif
}

/// The window at position i of a block; `words` are the block's and the one behind it.
template <std::uint32_t i>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t window_at(
    const std::uint32_t (&words)[kBlockWords + 1]) noexcept {
  if constexpr (i % 4 == 0) {
    return words[i / 4];
  } else {
    return funnel_right(words[i / 4], words[i / 4 + 1], i % 4 * 8);
  }
}

namespace detail {

template <bool kPairs, std::uint32_t i = 0>
PENSTOCK_HOST_DEVICE inline void test_windows(const std::uint32_t* quad_bits, std::uint32_t quad_shift,
                                              const std::uint32_t* pair_bits,
                                              const std::uint32_t (&words)[kBlockWords + 1], std::uint32_t& quads,
                                              std::uint32_t& pairs) noexcept {
  if constexpr (i < kBlockBytes) {
    const std::uint32_t window = window_at<i>(words);
    const std::uint32_t hash = quad_hash(window);
    quads = append_bit(quads, quad_bits[hash >> quad_shift], quad_bit(hash));
    if constexpr (kPairs) {
      pairs = append_bit(pairs, pair_bits[pair_hash(window) >> (32 - kPairWordsLog2)], pair_bit(window));
    }
    test_windows<kPairs, i + 1>(quad_bits, quad_shift, pair_bits, words, quads, pairs);
  }
}

}  // namespace detail

/// Candidates among the positions of a block: bit 31 - i for a quad at position i, bit 15 - i for a pair. The words are
/// folded where the view says so.
template <bool kPairs>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t block_candidates(
    const std::uint32_t* quad_bits, std::uint32_t quad_shift, const std::uint32_t* pair_bits,
    const std::uint32_t (&words)[kBlockWords + 1]) noexcept {
  std::uint32_t quads = 0;
  std::uint32_t pairs = 0;
  detail::test_windows<kPairs>(quad_bits, quad_shift, pair_bits, words, quads, pairs);
  return quads << kBlockBytes | pairs;
}

/// Those of the positions from `from` to before `to` (at most kBlockBytes).
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

/// Calls `found(literal)` for each literal that lies in [begin, end) with its window at `at`: its quad, or its pair.
template <typename Found>
PENSTOCK_HOST_DEVICE inline void look_up_candidate(const HashedFilterView& view, bool quad, const std::uint8_t* begin,
                                                   const std::uint8_t* at, const std::uint8_t* end,
                                                   Found&& found) noexcept {
  auto window = static_cast<std::uint32_t>(load_up_to_8(at, end));
  if (view.folds) window = folded(window);
  if (!quad) window &= 0xffff;
  const FilterSlotsView table = quad ? view.quad_slots : view.pair_slots;
  std::uint32_t index = (quad ? quad_hash(window) : pair_hash(window)) >> table.shift;
  while (true) {
    const FilterSlot slot = table.slots[index];
    if (slot.first == FilterSlot::kEmpty) return;
    if (slot.window == window) {
      for (std::uint32_t i = slot.first;; ++i) {
        const FilterEntry entry = view.entries[i];
        if (is_there(view, entry, begin, at, end)) found(entry.literal);
        if (entry.last != 0) return;
      }
    }
    index = (index + 1) & table.mask;
  }
}

/// Calls `found(literal)` for each occurrence of each literal in [begin, end). For the host.
template <bool kPairs, typename Found>
inline void scan_filtered(const HashedFilterView& view, const std::uint8_t* begin, const std::uint8_t* end,
                          Found&& found) noexcept {
  for (const std::uint8_t* block = begin; block < end; block += std::min<std::ptrdiff_t>(kBlockBytes, end - block)) {
    std::uint32_t words[kBlockWords + 1] = {};
    std::memcpy(words, block, std::min<std::size_t>(sizeof(words), static_cast<std::size_t>(end - block)));
    if (view.folds) {
      for (std::uint32_t& word : words) word = folded(word);
    }
    const auto positions = static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(kBlockBytes, end - block));
    std::uint32_t candidates = block_candidates<kPairs>(view.quad_bits, view.quad_shift, view.pair_bits, words) &
                               candidates_within(0, positions);
    while (candidates != 0) {
      const auto i = static_cast<std::uint32_t>(std::countl_zero(candidates));
      candidates &= ~(0x8000'0000U >> i);
      look_up_candidate(view, i < kBlockBytes, begin, block + i % kBlockBytes, end, found);
    }
  }
}

}  // namespace penstock::nids
