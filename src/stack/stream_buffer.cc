// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Layout of a run in its piece of memory:
//
//     Block | a bit for each byte: a segment begins here | free | bytes of the run | free
//                                                         0      start              start + length       capacity
//
// The bits mark where the segments of the run begin, which the overlap policies need to know.
//
// A red-black tree holds the runs in stream order.

#include "stack/stream_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <new>

namespace penstock::stack {

struct alignas(kCacheLineBytes) StreamBuffer::Block : Hook {
  std::uint64_t offset;        // of the first byte
  std::uint64_t first_begin;   // begin of its segment, which may lie before the run if the segment was cut
  std::uint32_t start = 0;     // index of the first byte
  std::uint32_t length = 0;    // bytes
  std::uint32_t capacity = 0;  // a multiple of 64
  std::uint8_t order = 0;      // of the piece
  bool owns_last = false;      // during insert: the run's last byte belongs to the segment

  [[nodiscard]] std::uint64_t end() const noexcept { return offset + length; }
  [[nodiscard]] std::uint64_t* starts() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  [[nodiscard]] const std::uint64_t* starts() const noexcept {
    return reinterpret_cast<const std::uint64_t*>(this + 1);
  }
  [[nodiscard]] std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(starts() + capacity / 64); }
  [[nodiscard]] const std::uint8_t* bytes() const noexcept {
    return reinterpret_cast<const std::uint8_t*>(starts() + capacity / 64);
  }
  [[nodiscard]] std::uint8_t* at(std::uint64_t where) noexcept { return bytes() + index(where); }
  [[nodiscard]] const std::uint8_t* at(std::uint64_t where) const noexcept { return bytes() + index(where); }
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
  /// The last segment begin at or before `i`, but not before `start`.
  [[nodiscard]] std::uint32_t last_start(std::uint32_t i) const noexcept {
    std::uint32_t word = i / 64;
    std::uint64_t bits = starts()[word] & (~std::uint64_t{0} >> (63 - i % 64));
    while (bits == 0 && word > start / 64) bits = starts()[--word];
    if (bits == 0) return start;
    return std::max(start, word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(bits)));
  }
  /// The first segment begin after `i`, or the run's end.
  [[nodiscard]] std::uint32_t next_start(std::uint32_t i) const noexcept {
    const std::uint32_t limit = start + length;
    std::uint32_t word = (i + 1) / 64;
    if (i + 1 >= limit) return limit;
    std::uint64_t bits = starts()[word] & (~std::uint64_t{0} << ((i + 1) % 64));
    while (bits == 0 && (word + 1) * 64 < limit) bits = starts()[++word];
    if (bits == 0) return limit;
    return std::min(limit, word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
  [[nodiscard]] std::uint64_t begin_of_segment_at(std::uint64_t where) const noexcept {
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
  static_assert(sizeof(Block) == kHeader);
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

// ---- Runs

StreamBuffer::StreamBuffer() noexcept = default;
StreamBuffer::~StreamBuffer() = default;

inline std::uint64_t StreamBuffer::EndOf::operator()(const Block& block) const noexcept { return block.end(); }

void StreamBuffer::add_before(const Place& next, Block& block) noexcept {
  if (next == runs_.end()) last_ = &block;
  runs_.insert_before(next, block);
}

StreamBuffer::Place StreamBuffer::remove(MemoryPool& pool, const Place& place) noexcept {
  Block& block = *place;
  const Place next = runs_.erase(place);
  if (last_ == &block) last_ = runs_.empty() ? nullptr : &*runs_.rbegin();
  free_block(pool, &block);
  return next;
}

/// Replaces the run at `place` with `block` and frees it.
StreamBuffer::Place StreamBuffer::replace(MemoryPool& pool, const Place& place, Block& block) noexcept {
  Block& former = *place;
  runs_.replace_node(place, block);
  if (last_ == &former) last_ = &block;
  free_block(pool, &former);
  return Runs::s_iterator_to(block);
}

void StreamBuffer::prefetch_end_of_last_run() const noexcept {
  if (last_ == nullptr) return;
  const std::uint32_t end = last_->start + last_->length;
  prefetch(&last_->starts()[last_->start / 64]);
  prefetch(&last_->starts()[end / 64]);
  prefetch(last_->bytes() + end, 2 * kCacheLineBytes);
}

// ---- Bytes

void StreamBuffer::append(Block& block, const std::uint8_t* bytes, std::size_t count) noexcept {
  const std::uint32_t at = block.start + block.length;
  block.clear(at, at + static_cast<std::uint32_t>(count));
  block.set(at);
  std::memcpy(block.bytes() + at, bytes, count);
  block.length += static_cast<std::uint32_t>(count);
}

// Makes room for `left` bytes before the run and `right` after it. Each move leaves a share of the piece free on the
// side where the run grows, so each byte is moved only a few times however the run grows.
bool StreamBuffer::make_room(MemoryPool& pool, Place& place, std::size_t left, std::size_t right) noexcept {
  Block* const block = &*place;
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
  // Keep the bit position within a word, because bits are copied word by word.
  start += (64 + block->start % 64 - start % 64) % 64;
  larger->start = static_cast<std::uint32_t>(start);
  larger->length = block->length;
  larger->first_begin = block->first_begin;
  const std::uint32_t first = block->start / 64;
  const std::uint32_t last = (block->start + block->length + 63) / 64;
  std::memcpy(larger->starts() + larger->start / 64, block->starts() + first, (last - first) * sizeof(std::uint64_t));
  std::memcpy(larger->bytes() + larger->start, block->bytes() + block->start, block->length);
  place = replace(pool, place, *larger);
  return true;
}

// Applies the policy where the segment overlaps the run, and updates the segment begins there.
bool StreamBuffer::resolve(Block& block, std::uint64_t offset, Bytes segment, OverlapPolicy policy,
                           std::uint64_t final) noexcept {
  const std::uint64_t segment_end = offset + segment.size();
  std::uint64_t at = std::max(offset, block.offset);
  const std::uint64_t stop = std::min(segment_end, block.end());
  bool different = false;
  // Whether the byte before `at` belongs to the new segment. (Runs never touch, so nothing precedes the run.)
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

// Copies a run's bytes and segment begins, except the first, to index `at` of `to`, which must have no bits set there.
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
  const std::uint64_t from = std::max(offset, begin_);  // earlier bytes were dropped

  // Nearly always the segment follows the last run.
  if (last_ != nullptr && offset == last_->end() && last_->capacity - last_->start - last_->length >= segment.size()) {
    append(*last_, segment.data(), segment.size());
    right_edge_ = std::max(right_edge_, end);
    return {};
  }

  // The first run that the segment overlaps or touches, otherwise the next run after it.
  const Place first = runs_.lower_bound(from);
  if (first == runs_.end() || first->offset > end) {
    Block* const alone = make_block(pool, from, end - from);
    if (alone == nullptr) return {.kept = false};
    append(*alone, segment.data() + (from - offset), end - from);
    alone->first_begin = offset;
    add_before(first, *alone);
    right_edge_ = std::max(right_edge_, end);
    return {};
  }

  // Merge all runs into the longest one. A byte that moves ends up in a run at least twice as long.
  Place place = first;
  Place behind = std::next(first);
  std::uint64_t last_end = first->end();
  for (; behind != runs_.end() && behind->offset <= end; ++behind) {
    last_end = behind->end();
    if (behind->length > place->length) place = behind;
  }
  const std::uint64_t union_begin = std::min(from, first->offset);
  const std::uint64_t union_end = std::max(end, last_end);
  const std::uint64_t former_begin = place->offset, former_end = place->end();
  const bool is_first = place == first;
  if (!make_room(pool, place, former_begin - union_begin, union_end - former_end)) return {.kept = false};
  Block* const block = &*place;
  right_edge_ = std::max(right_edge_, end);

  bool different = false;
  const Place leftmost = is_first ? place : first;
  for (Place one = leftmost; one != behind; ++one) {
    different |= resolve(*one, offset, segment, policy, final);
  }
  if (std::next(leftmost) == behind && union_begin == former_begin) {  // it only extends the run at its end
    if (union_end > former_end) {
      const std::uint32_t index = block->start + block->length;
      append(*block, segment.data() + (former_end - offset), union_end - former_end);
      if (block->owns_last) block->clear(index);
    }
    return {.kept = true, .different = different};
  }

  // Copy the other runs to it, and the segment's bytes into the gaps. It keeps its position in the tree until then.
  const std::uint64_t first_begin = union_begin < leftmost->offset ? offset : leftmost->first_begin;
  const auto left = static_cast<std::uint32_t>(former_begin - union_begin);
  const std::uint32_t start = block->start - left;
  const auto length = static_cast<std::uint32_t>(union_end - union_begin);
  const auto index = [&](std::uint64_t where) { return start + static_cast<std::uint32_t>(where - union_begin); };
  block->clear(start, block->start);
  block->clear(index(former_end), start + length);
  bool owns_last = false;
  Place one = leftmost;
  for (std::uint64_t at = union_begin; at < union_end;) {
    const std::uint64_t begin = one == behind ? union_end : one->offset;
    if (at < begin) {
      std::memcpy(block->bytes() + index(at), segment.data() + (at - offset), begin - at);
      if (!owns_last) block->set(index(at));
      at = begin;
    }
    if (one == behind) break;
    if (one != place) copy(*block, index(begin), *one);
    if (begin != union_begin && one->first_begin < begin) {
      block->clear(index(begin));
    } else {
      block->set(index(begin));
    }
    owns_last = one->owns_last;
    at = one->end();
    one = one == place ? std::next(one) : remove(pool, one);
  }
  block->start = start;
  block->length = length;
  block->offset = union_begin;
  block->first_begin = first_begin;
  return {.kept = true, .different = different};
}

StreamBuffer::Run StreamBuffer::run_from(std::uint64_t from) const noexcept {
  const auto block = runs_.lower_bound(from + 1);
  if (block == runs_.end()) return {};
  const std::uint64_t at = std::max(from, block->offset);
  return {at, {block->at(at), block->end() - at}};
}

StreamBuffer::Run StreamBuffer::whole_run_at(std::uint64_t at) const noexcept {
  const auto block = runs_.lower_bound(at + 1);
  if (block == runs_.end() || block->offset > at) return {};
  return {block->offset, {block->at(block->offset), block->length}};
}

StreamBuffer::Run StreamBuffer::segment_at(std::uint64_t at) const noexcept {
  const auto block = runs_.lower_bound(at + 1);
  const std::uint32_t first = block->last_start(block->index(at));
  const std::uint32_t end = block->next_start(block->index(at));
  return {block->offset + (first - block->start), {block->bytes() + first, end - first}};
}

StreamBuffer::Range StreamBuffer::missing(Range range) const noexcept {
  if (const Run run = whole_run_at(range.begin); !run.bytes.empty()) range.begin = std::min(run.end(), range.end);
  if (range.begin == range.end) return range;
  if (const Run run = whole_run_at(range.end - 1); !run.bytes.empty()) range.end = std::max(run.offset, range.begin);
  return range;
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
  while (!runs_.empty() && runs_.begin()->end() <= offset) remove(pool, runs_.begin());
  if (runs_.empty() || runs_.begin()->offset >= offset) return;
  const Place block = runs_.begin();
  const std::uint64_t first_begin = block->begin_of_segment_at(offset);
  const auto by = static_cast<std::uint32_t>(offset - block->offset);
  block->start += by;
  block->length -= by;
  block->offset = offset;
  block->first_begin = first_begin;
  block->set(block->start);
  if (block->capacity >= kWorthShrinking && block->length < block->capacity / 8) {
    // Little is left of a large piece: move the run to a smaller one if available.
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
    replace(pool, block, *smaller);
  }
}

void StreamBuffer::clear(MemoryPool& pool) noexcept {
  runs_.clear_and_dispose([&](Block* block) { free_block(pool, block); });
  last_ = nullptr;
}

}  // namespace penstock::stack
