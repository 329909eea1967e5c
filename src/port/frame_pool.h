// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of the slots in its memory a source can lend. Slots are lent in chunks of neighbours, and come back in the
// order in which they were lent. The chunk that came back last is lent first: it is most likely in the caches.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace penstock::port {

class FramePool {
 public:
  /// `chunks` of `slots` each: at least 1.
  FramePool(std::uint32_t chunks, std::uint32_t slots) : chunk_slots_(slots), free_(chunks), lent_(chunks) {
    std::iota(free_.rbegin(), free_.rend(), 0U);
    chunk_ = free_.back();
    free_.pop_back();
  }

  [[nodiscard]] std::uint32_t slots() const noexcept { return static_cast<std::uint32_t>(lent_.size()) * chunk_slots_; }
  /// Whether there is a slot to lend.
  [[nodiscard]] bool available() const noexcept { return used_ < chunk_slots_ || !free_.empty(); }
  /// The slot to be lent next. Requires one.
  [[nodiscard]] std::uint32_t next() noexcept {
    if (used_ == chunk_slots_) begin_chunk();
    return chunk_ * chunk_slots_ + used_;
  }
  /// Lends the slot that `next` returned.
  void lend() noexcept { ++used_; }
  /// The oldest `slots` lent slots are back.
  void take_back(std::size_t slots) noexcept {
    back_ += slots;
    for (; back_ >= chunk_slots_ && lent_count_ > 0; back_ -= chunk_slots_) {
      free_.push_back(lent_[first_lent_]);
      first_lent_ = first_lent_ + 1 == lent_.size() ? 0 : first_lent_ + 1;
      --lent_count_;
    }
    assert(back_ <= chunk_slots_);
  }

 private:
  void begin_chunk() noexcept {
    lent_[(first_lent_ + lent_count_) % lent_.size()] = chunk_;
    ++lent_count_;
    chunk_ = free_.back();
    free_.pop_back();
    used_ = 0;
    take_back(0);  // all of the former chunk may be back already
  }

  const std::uint32_t chunk_slots_;
  std::vector<std::uint32_t> free_;  // chunks; a stack
  std::uint32_t chunk_ = 0;          // from which slots are lent now
  std::uint32_t used_ = 0;           // its slots that are lent
  std::vector<std::uint32_t> lent_;  // wholly lent chunks before it: a ring buffer
  std::size_t first_lent_ = 0;
  std::size_t lent_count_ = 0;
  std::size_t back_ = 0;  // slots that are back, but whose chunk is not
};

}  // namespace penstock::port
