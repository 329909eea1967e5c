// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Stores bit vectors for the builder; equal blocks and equal vectors are stored once. The builder changes one vector
// bit by bit while it sweeps over a dimension; only blocks that changed are hashed and looked up again.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "classify/bitvector_layout.h"

namespace penstock::classify {

class VectorPool {
 public:
  explicit VectorPool(std::uint32_t entry_count);

  /// Clears all bits of the vector under construction.
  void clear();
  void set(std::uint32_t entry, bool on);
  /// The record of the vector in its current state.
  [[nodiscard]] std::uint32_t record();
  /// The record of the intersection of all `records`. The vector under construction is lost.
  [[nodiscard]] std::uint32_t combined(std::span<const std::uint32_t> records);

  [[nodiscard]] std::uint32_t summary_words() const noexcept { return static_cast<std::uint32_t>(summary_.size()); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return words_.size() * sizeof(std::uint64_t) + blocks_.size() * sizeof(VectorBlock);
  }

  [[nodiscard]] std::vector<std::uint64_t> take_words() noexcept { return std::move(words_); }
  [[nodiscard]] std::vector<VectorBlock> take_blocks() noexcept { return std::move(blocks_); }

 private:
  [[nodiscard]] std::uint32_t block(const VectorBlock& bits);
  [[nodiscard]] const VectorBlock& block_of(std::uint32_t record, std::uint32_t i) const noexcept;
  [[nodiscard]] std::uint32_t record_of_numbers();

  std::vector<std::uint64_t> words_;
  std::vector<VectorBlock> blocks_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> block_by_hash_, record_by_hash_;

  // The vector under construction.
  std::vector<VectorBlock> bits_;
  std::vector<std::uint64_t> summary_;
  std::vector<std::uint64_t> numbers_;  // numbers of its blocks, two in a word
  std::vector<std::uint32_t> dirty_;
  std::vector<std::uint8_t> is_dirty_;
  std::uint64_t hash_ = 0;  // the sum of its blocks' hashes
};

}  // namespace penstock::classify
