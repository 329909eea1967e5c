// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A bounded lock-free queue of byte records between one producer thread and one consumer thread. Each record is
// contiguous in the ring, so that both sides can work in place:
//
//    [length|record][length|record] ...free... [length|record][length 0: skip to the start]
//                                  ^head_      ^tail_
//
// Positions count bytes and never wrap; their low bits are the index. Each side caches the other's last position that
// it saw, and reads the shared cache line only if the ring looks full or empty by the cached one.

#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace penstock::port {

class SpscByteRing {
 public:
  explicit SpscByteRing(std::size_t capacity)
      : capacity_(std::bit_ceil(capacity)), bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(capacity_)) {}

  /// The longest allowed record, in bytes.
  [[nodiscard]] std::size_t longest_record() const noexcept { return capacity_ / 2 - kHeader; }

  /// Producer: reserves room for a record of 1..longest_record() bytes, aligned to 8; null if there is no room.
  [[nodiscard]] std::uint8_t* begin_write(std::size_t length) noexcept {
    assert(length > 0 && length <= longest_record());
    const std::size_t need = kHeader + rounded(length);
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::size_t until_wrap = capacity_ - index(head);
    const std::size_t skip = need > until_wrap ? until_wrap : 0;
    if (capacity_ - (head - tail_seen_) < skip + need) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (capacity_ - (head - tail_seen_) < skip + need) return nullptr;
    }
    if (skip != 0) put_length(head, 0);
    put_length(head + skip, static_cast<std::uint32_t>(length));
    next_head_ = head + skip + need;
    return bytes_.get() + index(head + skip) + kHeader;
  }
  /// Producer: publishes the record that `begin_write` reserved.
  void end_write() noexcept { head_.store(next_head_, std::memory_order_release); }

  /// Consumer: the oldest record; empty if there is none.
  [[nodiscard]] std::span<const std::uint8_t> front() noexcept {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_seen_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail == head_seen_) return {};
    }
    std::uint32_t length = length_at(tail);
    if (length == 0) {
      tail += capacity_ - index(tail);
      length = length_at(tail);
    }
    next_tail_ = tail + kHeader + rounded(length);
    return {bytes_.get() + index(tail) + kHeader, length};
  }
  /// Consumer: releases the record that `front` returned.
  void pop() noexcept { tail_.store(next_tail_, std::memory_order_release); }

 private:
  static constexpr std::size_t kHeader = 8;  // the length, padded to keep records aligned

  static constexpr std::size_t rounded(std::size_t length) noexcept { return (length + 7) & ~std::size_t{7}; }
  [[nodiscard]] std::size_t index(std::uint64_t position) const noexcept { return position & (capacity_ - 1); }
  void put_length(std::uint64_t position, std::uint32_t length) noexcept {
    std::memcpy(bytes_.get() + index(position), &length, sizeof length);
  }
  [[nodiscard]] std::uint32_t length_at(std::uint64_t position) const noexcept {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes_.get() + index(position), sizeof length);
    return length;
  }

  const std::size_t capacity_;
  const std::unique_ptr<std::uint8_t[]> bytes_;

  alignas(64) std::atomic<std::uint64_t> head_{0};  // written by the producer, like the next two
  std::uint64_t next_head_ = 0;
  std::uint64_t tail_seen_ = 0;
  alignas(64) std::atomic<std::uint64_t> tail_{0};  // written by the consumer, like the next two
  std::uint64_t next_tail_ = 0;
  std::uint64_t head_seen_ = 0;
};

}  // namespace penstock::port
