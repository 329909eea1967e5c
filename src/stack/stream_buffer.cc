// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A run lies in one piece of memory:
//
//     Block | a bit for each byte: a segment begins here | free | bytes of the run | free
//                                                         0      start              start + length       capacity
//
// The bits tell where the segments began whose bytes these are; policies ask for that.

#include "stack/stream_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace penstock::stack {

struct StreamBuffer::Block {
  Block* next = nullptr;
  Block* previous = nullptr;
  std::uint64_t offset;        // of the first byte
  std::uint64_t first_begin;   // where its segment began: before it, if that was cut, or goes on from the run before
  std::uint32_t start = 0;     // index of the first byte
  std::uint32_t length = 0;    // bytes
  std::uint32_t capacity = 0;  // a multiple of 64
  std::uint8_t order = 0;      // of the piece

  [[nodiscard]] std::uint64_t end() const noexcept { return offset + length; }
  [[nodiscard]] std::uint64_t* starts() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  [[nodiscard]] std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(starts() + capacity / 64); }
  [[nodiscard]] std::uint8_t* at(std::uint64_t where) noexcept { return bytes() + index(where); }
  [[nodiscard]] std::uint32_t index(std::uint64_t where) const noexcept {
    return start + static_cast<std::uint32_t>(where - offset);
  }

  void set(std::uint32_t i) noexcept { starts()[i / 64] |= std::uint64_t{1} << (i % 64); }
  void clear(std::uint32_t i) noexcept { starts()[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  void clear(std::uint32_t from, std::uint32_t to) noexcept {
    while (from < to) {
      const std::uint32_t stop = std::min(to, (from / 64 + 1) * 64);
      const std::uint64_t upper = stop % 64 == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << (stop % 64)) - 1;
      const std::uint64_t lower = (std::uint64_t{1} << (from % 64)) - 1;
      starts()[from / 64] &= ~(upper & ~lower);
      from = stop;
    }
  }
  /// The last begin at or before `i`, at the least `start`.
  [[nodiscard]] std::uint32_t last_start(std::uint32_t i) noexcept {
    std::uint32_t word = i / 64;
    std::uint64_t bits = starts()[word] & (~std::uint64_t{0} >> (63 - i % 64));
    while (bits == 0 && word > start / 64) bits = starts()[--word];
    if (bits == 0) return start;
    return std::max(start, word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(bits)));
  }
  /// The first begin behind `i`, at the most the run's end.
  [[nodiscard]] std::uint32_t next_start(std::uint32_t i) noexcept {
    const std::uint32_t limit = start + length;
    std::uint32_t word = (i + 1) / 64;
    if (i + 1 >= limit) return limit;
    std::uint64_t bits = starts()[word] & (~std::uint64_t{0} << ((i + 1) % 64));
    while (bits == 0 && (word + 1) * 64 < limit) bits = starts()[++word];
    if (bits == 0) return limit;
    return std::min(limit, word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
  [[nodiscard]] std::uint64_t begin_of_segment_at(std::uint64_t where) noexcept {
    const std::uint32_t i = last_start(index(where));
    return i == start ? first_begin : offset + (i - start);
  }
};

namespace {

constexpr std::size_t kHeader = 56;
constexpr unsigned kFirstOrder = 9;
constexpr std::uint32_t kWorthShrinking = 16384;

constexpr std::size_t capacity_of(unsigned order) noexcept {
  return ((std::size_t{1} << order) - kHeader) * 8 / 9 / 64 * 64;
}

unsigned order_for(std::size_t capacity) noexcept {
  unsigned order = kFirstOrder;
  while (order <= MemoryPool::kLargestOrder && capacity_of(order) < capacity) ++order;
  return order;
}

}  // namespace

StreamBuffer::Block* StreamBuffer::make_block(MemoryPool& pool, std::uint64_t offset, std::size_t room) noexcept {
  static_assert(sizeof(Block) <= kHeader);
  const unsigned order = order_for(room);
  std::byte* const piece = pool.take(order);
  if (piece == nullptr) return nullptr;
  auto* const block = new (piece) Block{};
  block->offset = offset;
  block->first_begin = offset;
  block->capacity = static_cast<std::uint32_t>(capacity_of(order));
  block->order = static_cast<std::uint8_t>(order);
  return block;
}

void StreamBuffer::free_block(MemoryPool& pool, Block* block) noexcept {
  pool.give(reinterpret_cast<std::byte*>(block), block->order);
}

void StreamBuffer::link_before(Block* block, Block* next) noexcept {
  Block* const previous = next != nullptr ? next->previous : tail_;
  block->next = next;
  block->previous = previous;
  (previous != nullptr ? previous->next : head_) = block;
  (next != nullptr ? next->previous : tail_) = block;
  ++runs_;
}

void StreamBuffer::unlink(MemoryPool& pool, Block* block) noexcept {
  (block->previous != nullptr ? block->previous->next : head_) = block->next;
  (block->next != nullptr ? block->next->previous : tail_) = block->previous;
  --runs_;
  free_block(pool, block);
}

void StreamBuffer::append(Block& block, const std::uint8_t* bytes, std::size_t count) noexcept {
  const std::uint32_t at = block.start + block.length;
  block.clear(at, at + static_cast<std::uint32_t>(count));
  block.set(at);
  std::memcpy(block.bytes() + at, bytes, count);
  block.length += static_cast<std::uint32_t>(count);
}

// Room for `left` bytes before the run and `right` behind it. Each time that bytes are moved, a share of the piece
// becomes free on the side where the run grows, so that however it grows each byte is moved a few times only.
bool StreamBuffer::make_room(MemoryPool& pool, Block*& block, std::size_t left, std::size_t right) noexcept {
  if (block->start >= left && block->capacity - block->start - block->length >= right) return true;
  const std::size_t need = left + block->length + right;
  if (left == 0 && need <= std::size_t{block->capacity} / 4 * 3) {
    const std::uint32_t by = block->start / 64 * 64;
    const std::uint32_t first = block->start / 64;
    const std::uint32_t last = (block->start + block->length + 63) / 64;
    std::memmove(block->starts(), block->starts() + first, (last - first) * sizeof(std::uint64_t));
    std::memmove(block->bytes() + block->start - by, block->bytes() + block->start, block->length);
    block->start -= by;
    if (block->capacity - block->start - block->length >= right) return true;
  }
  Block* const larger = make_block(pool, block->offset, need + need / 4 + 128);
  if (larger == nullptr) return false;
  const std::size_t spare = larger->capacity - need;
  std::size_t start = left == 0 ? 0 : left + spare / 2;
  // The same place within a word of the bits: they are copied word by word.
  start += (64 + block->start % 64 - start % 64) % 64;
  larger->start = static_cast<std::uint32_t>(start);
  larger->length = block->length;
  larger->first_begin = block->first_begin;
  const std::uint32_t first = block->start / 64;
  const std::uint32_t last = (block->start + block->length + 63) / 64;
  std::memcpy(larger->starts() + larger->start / 64, block->starts() + first, (last - first) * sizeof(std::uint64_t));
  std::memcpy(larger->bytes() + larger->start, block->bytes() + block->start, block->length);
  larger->next = block->next;
  larger->previous = block->previous;
  (larger->previous != nullptr ? larger->previous->next : head_) = larger;
  (larger->next != nullptr ? larger->next->previous : tail_) = larger;
  free_block(pool, block);
  block = larger;
  return true;
}

// Settles whose bytes stay where the segment overlaps with the run; both keep their bounds elsewhere.
StreamBuffer::Resolved StreamBuffer::resolve(Block& block, std::uint64_t offset, Bytes segment,
                                             OverlapPolicy policy) noexcept {
  const std::uint64_t segment_end = offset + segment.size();
  std::uint64_t at = std::max(offset, block.offset);
  const std::uint64_t stop = std::min(segment_end, block.end());
  bool different = false;
  // Whether the byte before `at` is the segment's. (Runs never touch: before them, there was nothing.)
  bool won_before = offset < block.offset;
  while (at < stop) {
    const std::uint64_t old_begin = block.begin_of_segment_at(at);
    const std::uint64_t old_end = block.offset + (block.next_start(block.index(at)) - block.start);
    const std::uint64_t until = std::min(stop, old_end);
    const std::uint8_t* const bytes = segment.data() + (at - offset);
    const bool differs = std::memcmp(block.at(at), bytes, until - at) != 0;
    different |= differs;
    const bool wins = new_bytes_win(policy, offset, segment_end, old_begin, old_end);
    if (wins) {
      if (differs) std::memcpy(block.at(at), bytes, until - at);
      if (at == block.offset) block.first_begin = won_before ? offset : at;
      if (at != block.offset) {
        if (won_before) {
          block.clear(block.index(at));
        } else {
          block.set(block.index(at));
        }
      }
      if (until < old_end) block.set(block.index(until));
    } else if (at != block.offset && won_before) {
      block.set(block.index(at));
    }
    won_before = wins;
    at = until;
  }
  return {different, won_before && stop == block.end()};
}

StreamBuffer::Block* StreamBuffer::first_ending_at(std::uint64_t from) const noexcept {
  if (tail_ == nullptr || tail_->end() < from) return nullptr;
  Block* block = head_;
  if (from < head_->offset || from - head_->offset <= tail_->end() - from) {
    while (block->end() < from) block = block->next;
    return block;
  }
  block = tail_;
  while (block->previous != nullptr && block->previous->end() >= from) block = block->previous;
  return block;
}

StreamBuffer::Inserted StreamBuffer::insert(MemoryPool& pool, std::uint64_t offset, Bytes segment,
                                            OverlapPolicy policy) noexcept {
  const std::uint64_t end = offset + segment.size();
  if (end <= begin_ || segment.empty()) return {};
  const std::uint64_t from = std::max(offset, begin_);  // bytes before that are gone for good

  // The first run that the segment overlaps or touches, else the one behind it.
  Block* block = first_ending_at(from);
  if (block == nullptr || block->offset > end) {
    if (runs_ >= kMostRuns) return {.kept = false};
    Block* const alone = make_block(pool, from, end - from);
    if (alone == nullptr) return {.kept = false};
    append(*alone, segment.data() + (from - offset), end - from);
    alone->first_begin = offset;
    link_before(alone, block);
    right_edge_ = std::max(right_edge_, end);
    return {};
  }

  std::uint64_t union_end = std::max(end, block->end());
  for (Block* next = block->next; next != nullptr && next->offset <= end; next = next->next) {
    union_end = std::max(union_end, next->end());
  }
  const std::size_t left = block->offset > from ? block->offset - from : 0;
  if (!make_room(pool, block, left, union_end - block->end())) return {.kept = false};
  right_edge_ = std::max(right_edge_, end);

  Resolved resolved = resolve(*block, offset, segment, policy);
  bool different = resolved.different;
  if (left > 0) {
    if (block->first_begin < block->offset) block->clear(block->start);
    block->start -= static_cast<std::uint32_t>(left);
    block->length += static_cast<std::uint32_t>(left);
    block->offset = from;
    block->first_begin = offset;
    block->clear(block->start, block->start + static_cast<std::uint32_t>(left));
    block->set(block->start);
    std::memcpy(block->bytes() + block->start, segment.data() + (from - offset), left);
  }
  while (block->end() < union_end) {
    Block* const next = block->next;
    const bool merges = next != nullptr && next->offset <= end;
    const std::uint64_t fill_end = merges ? next->offset : end;
    if (block->end() < fill_end) {
      const std::uint64_t at = block->end();
      const std::uint32_t index = block->start + block->length;
      append(*block, segment.data() + (at - offset), fill_end - at);
      if (resolved.owns_last) block->clear(index);
    }
    if (!merges) continue;
    resolved = resolve(*next, offset, segment, policy);
    different |= resolved.different;
    const std::uint32_t shift_to = block->start + block->length;
    append(*block, next->bytes() + next->start, next->length);
    if (next->first_begin < next->offset) block->clear(shift_to);
    for (std::uint32_t i = next->next_start(next->start); i < next->start + next->length; i = next->next_start(i)) {
      block->set(shift_to + (i - next->start));
    }
    unlink(pool, next);
  }
  return {.kept = true, .different = different};
}

StreamBuffer::Run StreamBuffer::run_from(std::uint64_t from) const noexcept {
  for (Block* block = head_; block != nullptr; block = block->next) {
    if (block->end() <= from) continue;
    const std::uint64_t at = std::max(from, block->offset);
    return {at, {block->at(at), block->end() - at}};
  }
  return {};
}

StreamBuffer::Run StreamBuffer::whole_run_at(std::uint64_t at) const noexcept {
  Block* const block = first_ending_at(at + 1);
  if (block == nullptr || block->offset > at) return {};
  return {block->offset, {block->at(block->offset), block->length}};
}

void StreamBuffer::drop_before(MemoryPool& pool, std::uint64_t offset) noexcept {
  if (offset <= begin_) return;
  begin_ = offset;
  right_edge_ = std::max(right_edge_, offset);
  while (head_ != nullptr && head_->end() <= offset) unlink(pool, head_);
  if (head_ == nullptr || head_->offset >= offset) return;
  Block* block = head_;
  const std::uint64_t first_begin = block->begin_of_segment_at(offset);
  const auto by = static_cast<std::uint32_t>(offset - block->offset);
  block->start += by;
  block->length -= by;
  block->offset = offset;
  block->first_begin = first_begin;
  block->set(block->start);
  if (block->capacity >= kWorthShrinking && block->length < block->capacity / 8) {
    // Little is left of much: it moves, where there is a smaller piece.
    const std::uint32_t capacity = block->capacity;
    Block* const smaller = make_block(pool, block->offset, block->length + 64);
    if (smaller == nullptr || smaller->capacity >= capacity) {
      if (smaller != nullptr) free_block(pool, smaller);
      return;
    }
    append(*smaller, block->bytes() + block->start, block->length);
    for (std::uint32_t i = block->next_start(block->start); i < block->start + block->length;
         i = block->next_start(i)) {
      smaller->set(i - block->start);
    }
    smaller->first_begin = first_begin;
    link_before(smaller, block);
    unlink(pool, block);
  }
}

void StreamBuffer::clear(MemoryPool& pool) noexcept {
  while (head_ != nullptr) unlink(pool, head_);
}

}  // namespace penstock::stack
