// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/hashed_filter_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "nf/nids/match/rarity.h"
#include "nf/nids/match/text_core.h"

namespace penstock::nids {

namespace {

constexpr std::size_t kQuad = 4;
constexpr std::size_t kPair = 2;
constexpr int kLongerKey = 2;  // the value of a key that is longer than its window, in units of commonness
constexpr std::size_t kMostBytes = std::numeric_limits<std::uint16_t>::max();

using Lists = std::map<std::uint32_t, std::vector<FilterEntry>>;  // by window

class Builder {
 public:
  explicit Builder(std::span<const Literal> literals) : literals_(literals) {
    tables_.folds = std::any_of(literals.begin(), literals.end(), [](const Literal& l) { return l.nocase; });
    tables_.literals = static_cast<std::uint32_t>(literals.size());
  }

  HashedFilterTables build(const HashedFilterOptions& options) {
    count_windows();
    for (std::uint32_t i = 0; i < literals_.size(); ++i) add(i);
    const auto log2 = options.quad_words_log2 != 0
                          ? options.quad_words_log2
                          : std::clamp(static_cast<unsigned>(std::bit_width(quads_.size())) + 4, 10U, 14U);
    tables_.quad_bits.assign(std::size_t{1} << log2, 0);
    for (const auto& [window, list] : quads_) {
      const std::uint32_t hash = quad_hash(window);
      tables_.quad_bits[hash >> (32 - log2)] |= 0x8000'0000U >> quad_bit(hash) % 32;
    }
    tables_.pair_bits.assign(std::size_t{1} << kPairWordsLog2, 0);
    for (const auto& [window, list] : pairs_) {
      tables_.pair_bits[pair_hash(window) >> (32 - kPairWordsLog2)] |= 0x8000'0000U >> pair_bit(window) % 32;
    }
    tables_.pairs = !pairs_.empty();
    const auto key_log2 = std::clamp(static_cast<unsigned>(std::bit_width(keys_.size())) + 2, 10U, 14U);
    tables_.key_bits.assign(std::size_t{1} << key_log2, 0);
    for (const std::uint32_t hash : keys_) {
      tables_.key_bits[hash >> (32 - key_log2)] |= 0x8000'0000U >> quad_bit(hash) % 32;
    }
    tables_.quad_slots = slots_of(quads_, quad_hash);
    tables_.pair_slots = slots_of(pairs_, pair_hash);
    return std::move(tables_);
  }

 private:
  [[nodiscard]] std::uint32_t window_of(const Literal& literal, std::size_t at, std::size_t bytes) const {
    std::uint32_t window = 0;
    for (std::size_t i = 0; i < bytes; ++i) window |= std::uint32_t{literal.bytes[at + i]} << 8 * i;
    return tables_.folds ? folded(window) : window;
  }

  [[nodiscard]] static std::size_t window_bytes(const Literal& literal) {
    return literal.bytes.size() >= kQuad ? kQuad : kPair;
  }

  void count_windows() {
    for (const Literal& literal : literals_) {
      const std::size_t bytes = window_bytes(literal);
      for (std::size_t at = 0; at + bytes <= literal.bytes.size(); ++at) ++sharing_[window_of(literal, at, bytes)];
    }
  }

  /// The window that is rarest in traffic and shared with the fewest literals, preferably with more bytes of the
  /// literal after it.
  [[nodiscard]] std::size_t best_window(const Literal& literal) const {
    const std::size_t bytes = window_bytes(literal);
    std::size_t best = 0;
    int least = std::numeric_limits<int>::max();
    for (std::size_t at = 0; at + bytes <= literal.bytes.size(); ++at) {
      const auto sharing = static_cast<unsigned>(sharing_.at(window_of(literal, at, bytes)));
      const int longer_key = key_bytes(literal.bytes.size() - at) > bytes ? kLongerKey : 0;
      const int cost = commonness(std::span(literal.bytes).subspan(at, bytes)) +
                       static_cast<int>(std::bit_width(sharing)) - longer_key;
      if (cost < least) {
        least = cost;
        best = at;
      }
    }
    return best;
  }

  void add(std::uint32_t index) {
    const Literal& literal = literals_[index];
    const std::size_t at = best_window(literal);
    FilterEntry entry;
    for (std::size_t i = 0; i < std::min<std::size_t>(literal.bytes.size(), 8); ++i) {
      entry.bytes |= std::uint64_t{literal.bytes[i]} << 8 * i;
    }
    if (literal.nocase) entry.bytes = folded(entry.bytes);
    entry.literal = index;
    entry.length = static_cast<std::uint16_t>(literal.bytes.size());
    entry.at = static_cast<std::uint16_t>(at);
    entry.nocase = literal.nocase ? 1 : 0;
    if (literal.bytes.size() > 8) {
      entry.rest = static_cast<std::uint32_t>(tables_.rests.size());
      for (const std::uint8_t byte : std::span(literal.bytes).subspan(8)) {
        tables_.rests.push_back(literal.nocase ? folded(byte) : byte);
      }
    }
    tables_.before = std::max<std::uint32_t>(tables_.before, entry.at);
    tables_.after = std::max<std::uint32_t>(tables_.after, entry.length - entry.at);
    const std::uint32_t key = key_bytes(literal.bytes.size() - at);
    if (literal.bytes.size() >= kQuad) {
      quads_[window_of(literal, at, kQuad)].push_back(entry);
      keys_.push_back(key_hash(window_of(literal, at, kQuad), window_of(literal, at + kQuad, key - kQuad), key));
    } else if (literal.bytes.size() >= kPair) {
      pairs_[window_of(literal, at, kPair)].push_back(entry);
      keys_.push_back(key_hash(window_of(literal, at, key), 0, key));
    } else {
      // With any next byte.
      const std::uint32_t first = window_of(literal, 0, 1);
      for (std::uint32_t second = 0; second < 256; ++second) {
        if (tables_.folds && folded(second) != second) continue;
        pairs_[first | second << 8].push_back(entry);
        keys_.push_back(key_hash(first | second << 8, 0, key));
      }
    }
  }

  [[nodiscard]] std::vector<FilterSlot> slots_of(const Lists& lists, std::uint32_t (*hash)(std::uint32_t) noexcept) {
    std::vector<FilterSlot> slots(std::bit_ceil(std::max<std::size_t>(2 * lists.size(), 2)));
    const auto shift = static_cast<unsigned>(32 - std::countr_zero(slots.size()));
    for (const auto& [window, list] : lists) {
      std::size_t at = hash(window) >> shift;
      while (slots[at].first != FilterSlot::kEmpty) at = (at + 1) % slots.size();
      slots[at] = {window, static_cast<std::uint32_t>(tables_.entries.size())};
      tables_.entries.insert(tables_.entries.end(), list.begin(), list.end());
      tables_.entries.back().last = 1;
    }
    return slots;
  }

  std::span<const Literal> literals_;
  std::unordered_map<std::uint32_t, std::uint32_t> sharing_;  // number of literals by window
  Lists quads_, pairs_;
  std::vector<std::uint32_t> keys_;  // hashes
  HashedFilterTables tables_;
};

FilterSlotsView view_of(std::span<const FilterSlot> slots) {
  return {slots.data(), static_cast<std::uint32_t>(slots.size() - 1),
          static_cast<std::uint32_t>(32 - std::countr_zero(slots.size()))};
}

}  // namespace

HashedFilterView FilterSpans::view() const noexcept {
  const auto shift_of = [](std::size_t words) { return static_cast<std::uint32_t>(32 - std::countr_zero(words)); };
  return {{quad_bits.data(), pair_bits.data(), key_bits.data(), shift_of(quad_bits.size()), shift_of(key_bits.size())},
          folds,
          pairs,
          before,
          after,
          view_of(quad_slots),
          view_of(pair_slots),
          entries.data(),
          rests.data()};
}

std::size_t FilterSpans::bytes() const noexcept {
  return quad_bits.size_bytes() + pair_bits.size_bytes() + key_bits.size_bytes() + quad_slots.size_bytes() +
         pair_slots.size_bytes() + entries.size_bytes() + rests.size_bytes();
}

Result<HashedFilterTables> build_hashed_filter(std::span<const Literal> literals, const HashedFilterOptions& options) {
  for (std::size_t i = 0; i < literals.size(); ++i) {
    if (literals[i].bytes.size() > kMostBytes) {
      return failure(Error{{},
                           fmt::format("literal {} is too long", i),
                           fmt::format("{} bytes", literals[i].bytes.size()),
                           fmt::format("at most {}", kMostBytes)});
    }
  }
  return Builder(literals).build(options);
}

}  // namespace penstock::nids
