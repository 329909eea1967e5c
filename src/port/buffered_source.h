// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A byte source with look-ahead, so that a reader can inspect a whole block before it consumes it. Owns the source and
// a buffer of fixed size.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "port/byte_source.h"

namespace penstock::port {

class BufferedSource {
 public:
  static constexpr std::size_t kMostPeeked = 512 << 10;

  explicit BufferedSource(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), buffer_(std::make_unique_for_overwrite<std::uint8_t[]>(kMostPeeked)) {}

  /// The next `count` bytes (at most kMostPeeked), or fewer if the source ends or a read fails. Valid until the next
  /// call of a member function.
  [[nodiscard]] std::span<const std::uint8_t> peek(std::size_t count) noexcept {
    if (end_ - begin_ < count) fill(count);
    return {buffer_.get() + begin_, std::min(count, end_ - begin_)};
  }
  /// Consumes bytes that `peek` has returned.
  void consume(std::size_t count) noexcept { begin_ += count; }
  /// Consumes any number of bytes. False if the source ends before.
  [[nodiscard]] bool skip(std::uint64_t count) noexcept {
    while (count > 0) {
      const std::size_t step = peek(std::min<std::uint64_t>(count, kChunk)).size();
      if (step == 0) return false;
      consume(step);
      count -= step;
    }
    return true;
  }
  /// Like ByteSource::read.
  [[nodiscard]] std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept {
    if (begin_ == end_) return source_->read(into);
    const std::size_t length = std::min(end_ - begin_, into.size());
    std::memcpy(into.data(), buffer_.get() + begin_, length);
    begin_ += length;
    return static_cast<std::ptrdiff_t>(length);
  }

  [[nodiscard]] const ByteSource& source() const noexcept { return *source_; }

 private:
  static constexpr std::size_t kChunk = 64 << 10;  // small enough to stay in the L2 cache along with a batch

  void fill(std::size_t count) noexcept {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const std::size_t room = std::max(count, kChunk);
    while (end_ < count) {
      const std::ptrdiff_t got = source_->read({buffer_.get() + end_, room - end_});
      if (got <= 0) return;
      end_ += static_cast<std::size_t>(got);
    }
  }

  std::unique_ptr<ByteSource> source_;
  std::unique_ptr<std::uint8_t[]> buffer_;  // kMostPeeked bytes; unused pages are never allocated
  std::size_t begin_ = 0;                   // the bytes not yet consumed: [begin_, end_)
  std::size_t end_ = 0;
};

}  // namespace penstock::port
