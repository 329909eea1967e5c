// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists of copied frames. All memory is reserved at construction, but only touched when it is needed. Frames are stored
// in blocks, which are free again when their list is cleared:
//
//   list ─▶ frame ─▶ frame ─▶ …      in order of arrival
//             │
//           block ─▶ block ─▶ …      a record, followed by the bytes of the frame

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "port/capture_reader.h"

namespace penstock::port {

class FrameShelf {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  /// Longer frames are not stored. Enough for the largest IP packet with its encapsulation.
  static constexpr std::size_t kLongestFrame = 0xffff + 512;

  struct List {
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t frames = 0, blocks = 0;
  };

  explicit FrameShelf(std::size_t bytes)
      : most_blocks_(static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes / sizeof(Block), 1, kNone - 1))),
        blocks_(std::make_unique_for_overwrite<Block[]>(most_blocks_)),
        frame_(std::make_unique_for_overwrite<std::uint8_t[]>(kLongestFrame)) {}

  [[nodiscard]] static constexpr std::uint32_t blocks_for(std::size_t frame_bytes) noexcept {
    return static_cast<std::uint32_t>((sizeof(Record) + frame_bytes + kBlockBytes - 1) / kBlockBytes);
  }
  [[nodiscard]] std::uint32_t blocks() const noexcept { return most_blocks_; }
  [[nodiscard]] std::uint32_t blocks_left() const noexcept { return most_blocks_ - used_; }

  /// The caller checks that there are enough blocks, and that the frame is not over kLongestFrame.
  void put(List& list, const CapturedFrame& frame) noexcept {
    const Record record{frame.timestamp_ns, frame.number,   kNone, static_cast<std::uint32_t>(frame.bytes.size()),
                        frame.wire_length,  frame.link_type};
    const std::uint32_t first = allocate();
    std::memcpy(blocks_[first].bytes.data(), &record, sizeof record);
    std::size_t at = sizeof record;
    std::uint32_t block = first;
    for (std::span<const std::uint8_t> rest = frame.bytes; !rest.empty(); at = 0) {
      if (at == 0) block = blocks_[block].next = allocate();
      const std::size_t count = std::min(rest.size(), kBlockBytes - at);
      std::memcpy(blocks_[block].bytes.data() + at, rest.data(), count);
      rest = rest.subspan(count);
    }
    blocks_[block].next = kNone;
    if (list.last == kNone) {
      list.first = first;
    } else {
      set_next(list.last, first);
    }
    list.last = first;
    ++list.frames;
    list.blocks += blocks_for(frame.bytes.size());
  }

  /// Calls `use(frame)` for each frame in order. Stops and returns false if `use` returns false. The frame's bytes are
  /// valid until `use` returns.
  template <typename Use>
  bool for_each(const List& list, Use&& use) noexcept {
    for (std::uint32_t at = list.first; at != kNone;) {
      const Record record = record_of(at);
      if (!use(copy_of(at, record))) return false;
      at = record.next;
    }
    return true;
  }

  /// Moves all frames of `from` to the end of `to`.
  void append(List& to, List& from) noexcept {
    if (from.first == kNone) return;
    if (to.last == kNone) {
      to.first = from.first;
    } else {
      set_next(to.last, from.first);
    }
    to.last = from.last;
    to.frames += from.frames;
    to.blocks += from.blocks;
    from = {};
  }

  void clear(List& list) noexcept {
    for (std::uint32_t at = list.first; at != kNone;) {
      const std::uint32_t next = record_of(at).next;
      for (std::uint32_t block = at; block != kNone;) {
        const std::uint32_t following = blocks_[block].next;
        release(block);
        block = following;
      }
      at = next;
    }
    list = {};
  }

 private:
  static constexpr std::size_t kBlockBytes = 252;
  struct Block {
    std::uint32_t next;
    std::array<std::uint8_t, kBlockBytes> bytes;
  };
  struct Record {
    std::uint64_t timestamp_ns, number;
    std::uint32_t next;  // the first block of the next frame
    std::uint32_t length, wire_length;
    LinkType link_type;
  };

  std::uint32_t allocate() noexcept {
    ++used_;
    if (free_ == kNone) return touched_++;
    const std::uint32_t block = free_;
    free_ = blocks_[block].next;
    return block;
  }
  void release(std::uint32_t block) noexcept {
    --used_;
    blocks_[block].next = free_;
    free_ = block;
  }
  [[nodiscard]] Record record_of(std::uint32_t frame) const noexcept {
    Record record;
    std::memcpy(&record, blocks_[frame].bytes.data(), sizeof record);
    return record;
  }
  void set_next(std::uint32_t frame, std::uint32_t next) noexcept {
    std::memcpy(blocks_[frame].bytes.data() + offsetof(Record, next), &next, sizeof next);
  }
  /// The frame, copied to one contiguous buffer.
  CapturedFrame copy_of(std::uint32_t frame, const Record& record) noexcept {
    std::size_t at = sizeof record, copied = 0;
    for (std::uint32_t block = frame; copied < record.length; block = blocks_[block].next, at = 0) {
      const std::size_t count = std::min<std::size_t>(record.length - copied, kBlockBytes - at);
      std::memcpy(frame_.get() + copied, blocks_[block].bytes.data() + at, count);
      copied += count;
    }
    return {{frame_.get(), record.length}, record.timestamp_ns, record.wire_length, record.link_type, record.number};
  }

  std::uint32_t most_blocks_;
  std::unique_ptr<Block[]> blocks_;
  std::unique_ptr<std::uint8_t[]> frame_;
  std::uint32_t used_ = 0, touched_ = 0, free_ = kNone;
};

}  // namespace penstock::port
