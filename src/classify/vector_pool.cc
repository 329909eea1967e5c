// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/vector_pool.h"

#include <algorithm>
#include <cstring>

#include "packet/flow_hash.h"

namespace penstock::classify {

namespace {

std::uint64_t hash_of(std::uint32_t position, std::uint32_t block) {
  return mix64((static_cast<std::uint64_t>(position) << 32 | block) + 0x9e3779b97f4a7c15ULL);
}

}  // namespace

VectorPool::VectorPool(std::uint32_t entry_count) {
  const std::uint32_t blocks = std::max(1U, (entry_count + kEntriesPerBlock - 1) / kEntriesPerBlock);
  bits_.resize(blocks);
  summary_.resize((blocks * kWordsPerBlock + 63) / 64);
  numbers_.resize((blocks + 1) / 2);
  is_dirty_.resize(blocks);
  clear();
}

void VectorPool::clear() {
  std::fill(bits_.begin(), bits_.end(), VectorBlock{});
  std::fill(summary_.begin(), summary_.end(), 0);
  std::fill(numbers_.begin(), numbers_.end(), 0);
  std::fill(is_dirty_.begin(), is_dirty_.end(), std::uint8_t{0});
  dirty_.clear();
  hash_ = 0;
  const std::uint32_t empty = block(VectorBlock{});
  for (std::uint32_t i = 0; i < bits_.size(); ++i) {
    numbers_[i / 2] |= static_cast<std::uint64_t>(empty) << (i % 2 * 32);
    hash_ += hash_of(i, empty);
  }
}

void VectorPool::set(std::uint32_t entry, bool on) {
  const std::uint32_t block = entry / kEntriesPerBlock;
  const std::uint32_t word = entry / 64;
  std::uint64_t& bits = bits_[block].words[word % kWordsPerBlock];
  const std::uint64_t bit = std::uint64_t{1} << (entry % 64);
  bits = on ? bits | bit : bits & ~bit;
  const std::uint64_t word_bit = std::uint64_t{1} << (word % 64);
  summary_[word / 64] = bits != 0 ? summary_[word / 64] | word_bit : summary_[word / 64] & ~word_bit;
  if (is_dirty_[block] == 0) {
    is_dirty_[block] = 1;
    dirty_.push_back(block);
  }
}

std::uint32_t VectorPool::block(const VectorBlock& bits) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : bits.words) hash = mix64(hash + word + 0x9e3779b97f4a7c15ULL);
  const auto [begin, end] = block_by_hash_.equal_range(hash);
  for (auto i = begin; i != end; ++i) {
    if (std::memcmp(&blocks_[i->second], &bits, sizeof bits) == 0) return i->second;
  }
  const auto number = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back(bits);
  block_by_hash_.emplace(hash, number);
  return number;
}

std::uint32_t VectorPool::record() {
  for (const std::uint32_t i : dirty_) {
    is_dirty_[i] = 0;
    std::uint64_t& pair = numbers_[i / 2];
    const unsigned shift = i % 2 * 32;
    const auto before = static_cast<std::uint32_t>(pair >> shift);
    const std::uint32_t now = block(bits_[i]);
    pair ^= static_cast<std::uint64_t>(before ^ now) << shift;
    hash_ += hash_of(i, now) - hash_of(i, before);
  }
  dirty_.clear();
  return record_of_numbers();
}

const VectorBlock& VectorPool::block_of(std::uint32_t record, std::uint32_t i) const noexcept {
  return blocks_[static_cast<std::uint32_t>(words_[record + summary_words() + i / 2] >> (i % 2 * 32))];
}

std::uint32_t VectorPool::combined(std::span<const std::uint32_t> records) {
  clear();
  hash_ = 0;
  std::fill(numbers_.begin(), numbers_.end(), 0);
  for (std::uint32_t i = 0; i < bits_.size(); ++i) {
    VectorBlock bits = block_of(records[0], i);
    for (const std::uint32_t record : records.subspan(1)) {
      for (std::uint32_t w = 0; w < kWordsPerBlock; ++w) bits.words[w] &= block_of(record, i).words[w];
    }
    for (std::uint32_t w = 0; w < kWordsPerBlock; ++w) {
      const std::uint32_t word = i * kWordsPerBlock + w;
      summary_[word / 64] |= static_cast<std::uint64_t>(bits.words[w] != 0) << (word % 64);
    }
    const std::uint32_t number = block(bits);
    numbers_[i / 2] |= static_cast<std::uint64_t>(number) << (i % 2 * 32);
    hash_ += hash_of(i, number);
  }
  return record_of_numbers();
}

std::uint32_t VectorPool::record_of_numbers() {
  const auto [begin, end] = record_by_hash_.equal_range(hash_);
  for (auto i = begin; i != end; ++i) {
    if (std::equal(numbers_.begin(), numbers_.end(), words_.begin() + i->second + summary_words())) return i->second;
  }
  const auto record = static_cast<std::uint32_t>(words_.size());
  words_.insert(words_.end(), summary_.begin(), summary_.end());
  words_.insert(words_.end(), numbers_.begin(), numbers_.end());
  record_by_hash_.emplace(hash_, record);
  return record;
}

}  // namespace penstock::classify
