// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A run lies in one piece of memory:
//
//     Block | a bit for each byte: a segment begins here | free | bytes of the run | free
//                                                         0      start              start + length       capacity
//
// The bits tell where the segments began whose bytes these are; policies ask for that.
//
// Runs hang in a list in their order, and in a treap (Seidel & Aragon, "Randomized Search Trees", 1996): a search tree
// by place that is a heap by a number which is as good as random, the mixed address of the run's piece. It is as deep
// as a tree of random insertions, whatever the order in which segments come.

#include "stack/stream_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace penstock::stack {

struct StreamBuffer::Block {
  Block* next = nullptr;
  Block* previous = nullptr;
  Block* left = nullptr;  // in the tree
  Block* right = nullptr;
  std::uint64_t offset;        // of the first byte
  std::uint64_t first_begin;   // where its segment began: before it, if that was cut, or goes on from the run before
  std::uint32_t start = 0;     // index of the first byte
  std::uint32_t length = 0;    // bytes
  std::uint32_t capacity = 0;  // a multiple of 64
  std::uint8_t order = 0;      // of the piece
  bool owns_last = false;      // while a segment is put in: the run's last byte is the segment's

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

constexpr std::size_t kHeader = 64;
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

// ---- Runs in their order

namespace {

/// splitmix64's last steps (Steele, Lea & Flood 2014). Who sends segments does not know where pieces lie.
std::uint64_t priority_of(const void* block) noexcept {
  auto mixed = reinterpret_cast<std::uintptr_t>(block);
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

}  // namespace

StreamBuffer::Block** StreamBuffer::link_of(const Block* block) noexcept {
  Block** link = &root_;
  while (*link != block) link = block->offset < (*link)->offset ? &(*link)->left : &(*link)->right;
  return link;
}

void StreamBuffer::plant(Block* block) noexcept {
  if (root_ == nullptr) {  // nearly always: it is the only one
    block->left = block->right = nullptr;
    root_ = block;
    return;
  }
  const std::uint64_t priority = priority_of(block);
  Block** link = &root_;
  while (*link != nullptr && priority_of(*link) >= priority) {
    link = block->offset < (*link)->offset ? &(*link)->left : &(*link)->right;
  }
  // What was there is parted: what lies before the run, and what behind it.
  Block* rest = *link;
  Block** before = &block->left;
  Block** behind = &block->right;
  *link = block;
  while (rest != nullptr) {
    if (rest->offset < block->offset) {
      *before = rest;
      before = &rest->right;
      rest = rest->right;
    } else {
      *behind = rest;
      behind = &rest->left;
      rest = rest->left;
    }
  }
  *before = *behind = nullptr;
}

void StreamBuffer::uproot(Block* block) noexcept {
  Block** link = link_of(block);
  Block* before = block->left;
  Block* behind = block->right;
  while (before != nullptr && behind != nullptr) {
    if (priority_of(before) >= priority_of(behind)) {
      *link = before;
      link = &before->right;
      before = before->right;
    } else {
      *link = behind;
      link = &behind->left;
      behind = behind->left;
    }
  }
  *link = before != nullptr ? before : behind;
}

void StreamBuffer::link_before(Block* block, Block* next) noexcept {
  Block* const previous = next != nullptr ? next->previous : tail_;
  block->next = next;
  block->previous = previous;
  (previous != nullptr ? previous->next : head_) = block;
  (next != nullptr ? next->previous : tail_) = block;
  plant(block);
}

void StreamBuffer::unlink(MemoryPool& pool, Block* block) noexcept {
  uproot(block);
  (block->previous != nullptr ? block->previous->next : head_) = block->next;
  (block->next != nullptr ? block->next->previous : tail_) = block->previous;
  free_block(pool, block);
}

StreamBuffer::Block* StreamBuffer::first_ending_at(std::uint64_t from) const noexcept {
  if (tail_ == nullptr || tail_->end() < from) return nullptr;
  if (head_ == tail_) return tail_;  // nearly always: it is the only one
  Block* found = tail_;
  for (Block* block = root_; block != nullptr;) {
    if (block->end() < from) {
      block = block->right;
    } else {
      found = block;
      block = block->left;
    }
  }
  return found;
}

void StreamBuffer::prefetch_end_of_last_run() const noexcept {
  if (tail_ == nullptr) return;
  const std::uint32_t end = tail_->start + tail_->length;
  prefetch(&tail_->starts()[tail_->start / 64]);
  prefetch(&tail_->starts()[end / 64]);
  prefetch(tail_->bytes() + end, 2 * kCacheLineBytes);
}

// ---- Bytes

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
  uproot(block);
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
  plant(larger);
  free_block(pool, block);
  block = larger;
  return true;
}

// Settles whose bytes stay where the segment overlaps with the run; both keep their bounds elsewhere.
bool StreamBuffer::resolve(Block& block, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                           std::uint64_t final) noexcept {
  const std::uint64_t segment_end = offset + segment.size();
  std::uint64_t at = std::max(offset, block.offset);
  const std::uint64_t stop = std::min(segment_end, block.end());
  bool different = false;
  // Whether the byte before `at` is the segment's. (Runs never touch: before them, there was nothing.)
  bool won_before = offset < block.offset;
  while (at < stop) {
    const std::uint64_t old_begin = block.begin_of_segment_at(at);
    const std::uint64_t old_end = block.offset + (block.next_start(block.index(at)) - block.start);
    const bool is_final = at < final;
    const std::uint64_t until = std::min({stop, old_end, is_final ? final : stop});
    const std::uint8_t* const bytes = segment.data() + (at - offset);
    const bool differs = std::memcmp(block.at(at), bytes, until - at) != 0;
    different |= differs;
    const bool wins = !is_final && new_bytes_win(policy, offset, segment_end, old_begin, old_end);
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
  block.owns_last = won_before && stop == block.end();
  return different;
}

// The bytes of a run, and where its segments begin but for the first, to `at` in another, which has no bits there.
void StreamBuffer::copy(Block& to, std::uint32_t at, Block& from) noexcept {
  std::memcpy(to.bytes() + at, from.bytes() + from.start, from.length);
  for (std::uint32_t i = from.next_start(from.start); i < from.start + from.length; i = from.next_start(i)) {
    to.set(at + (i - from.start));
  }
}

StreamBuffer::Inserted StreamBuffer::insert(MemoryPool& pool, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                                            std::uint64_t final) noexcept {
  const std::uint64_t end = offset + segment.size();
  if (end <= begin_ || segment.empty()) return {};
  const std::uint64_t from = std::max(offset, begin_);  // bytes before that are gone for good

  // Nearly always it goes on where the last run ends.
  if (tail_ != nullptr && offset == tail_->end() && tail_->capacity - tail_->start - tail_->length >= segment.size()) {
    append(*tail_, segment.data(), segment.size());
    right_edge_ = std::max(right_edge_, end);
    return {};
  }

  // The first run that the segment overlaps or touches, else the one behind it.
  Block* const first = first_ending_at(from);
  if (first == nullptr || first->offset > end) {
    Block* const alone = make_block(pool, from, end - from);
    if (alone == nullptr) return {.kept = false};
    append(*alone, segment.data() + (from - offset), end - from);
    alone->first_begin = offset;
    link_before(alone, first);
    right_edge_ = std::max(right_edge_, end);
    return {};
  }

  // They become one, in the place of the longest: a byte that moves is in a run twice as long then.
  Block* block = first;
  Block* last = first;
  while (last->next != nullptr && last->next->offset <= end) {
    last = last->next;
    if (last->length > block->length) block = last;
  }
  const std::uint64_t union_begin = std::min(from, first->offset);
  const std::uint64_t union_end = std::max(end, last->end());
  const std::uint64_t former_begin = block->offset, former_end = block->end();
  const bool is_first = block == first;
  Block* const behind = last->next;
  if (!make_room(pool, block, former_begin - union_begin, union_end - former_end)) return {.kept = false};
  right_edge_ = std::max(right_edge_, end);

  bool different = false;
  Block* const leftmost = is_first ? block : first;
  for (Block* one = leftmost; one != behind; one = one->next) {
    different |= resolve(*one, offset, segment, policy, final);
  }
  if (leftmost->next == behind && union_begin == former_begin) {  // it goes on behind the run
    if (union_end > former_end) {
      const std::uint32_t index = block->start + block->length;
      append(*block, segment.data() + (former_end - offset), union_end - former_end);
      if (block->owns_last) block->clear(index);
    }
    return {.kept = true, .different = different};
  }

  // The other runs come to it, and between them the segment's bytes. It keeps its own place in the tree until then.
  const std::uint64_t first_begin = union_begin < leftmost->offset ? offset : leftmost->first_begin;
  const auto left = static_cast<std::uint32_t>(former_begin - union_begin);
  const std::uint32_t start = block->start - left;
  const auto length = static_cast<std::uint32_t>(union_end - union_begin);
  const auto index = [&](std::uint64_t where) { return start + static_cast<std::uint32_t>(where - union_begin); };
  block->clear(start, block->start);
  block->clear(index(former_end), start + length);
  bool owns_last = false;
  Block* one = leftmost;
  for (std::uint64_t at = union_begin; at < union_end;) {
    const std::uint64_t begin = one == behind ? union_end : one->offset;
    if (at < begin) {
      std::memcpy(block->bytes() + index(at), segment.data() + (at - offset), begin - at);
      if (!owns_last) block->set(index(at));
      at = begin;
    }
    if (one == behind) break;
    if (one != block) copy(*block, index(begin), *one);
    if (begin != union_begin && one->first_begin < begin) {
      block->clear(index(begin));
    } else {
      block->set(index(begin));
    }
    owns_last = one->owns_last;
    at = one->end();
    Block* const next = one->next;
    if (one != block) unlink(pool, one);
    one = next;
  }
  block->start = start;
  block->length = length;
  block->offset = union_begin;
  block->first_begin = first_begin;
  return {.kept = true, .different = different};
}

StreamBuffer::Run StreamBuffer::run_from(std::uint64_t from) const noexcept {
  Block* const block = first_ending_at(from + 1);
  if (block == nullptr) return {};
  const std::uint64_t at = std::max(from, block->offset);
  return {at, {block->at(at), block->end() - at}};
}

StreamBuffer::Run StreamBuffer::whole_run_at(std::uint64_t at) const noexcept {
  Block* const block = first_ending_at(at + 1);
  if (block == nullptr || block->offset > at) return {};
  return {block->offset, {block->at(block->offset), block->length}};
}

StreamBuffer::Run StreamBuffer::segment_at(std::uint64_t at) const noexcept {
  Block* const block = first_ending_at(at + 1);
  const std::uint32_t first = block->last_start(block->index(at));
  const std::uint32_t end = block->next_start(block->index(at));
  return {block->offset + (first - block->start), {block->bytes() + first, end - first}};
}

bool StreamBuffer::holds(std::uint64_t offset, Bytes bytes) const noexcept {
  const Run run = run_from(offset);
  return run.offset == offset && run.bytes.size() >= bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), run.bytes.begin());
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
  for (Block* block = head_; block != nullptr;) {
    Block* const next = block->next;
    free_block(pool, block);
    block = next;
  }
  head_ = tail_ = root_ = nullptr;
}

}  // namespace penstock::stack
