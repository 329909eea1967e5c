// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds how copy engines can bring the lent frames of a batch to a device: frames that follow each other in memory,
// with small or equal gaps, cross in one copy, together with the gaps or without them. Engines are as fast with such a
// copy as with packed frames, and faster than kernels that read host memory while results return (lane_gpu_bench,
// lent). But each copy has a fixed cost, so there must be few. Pure.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "packet/batch.h"

namespace penstock::ring {

/// Frames that cross in one copy: `rows` pieces of `width` bytes, `stride` bytes apart. On the device, they follow each
/// other without gaps. A single row may have several frames.
struct LentRun {
  std::uint8_t source = 0;
  std::uint32_t first = 0;  // offset of the first row in its source; a multiple of kFrameAlignment, like all sizes
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  std::uint32_t stride = 0;
  std::uint32_t packets = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return std::size_t{rows} * width; }
  /// Where a byte of the run's frame `packet` is in the copy.
  [[nodiscard]] std::uint32_t place(std::uint32_t packet, std::uint32_t offset) const noexcept {
    return rows == 1 ? offset - first : packet * width + (offset - first - packet * stride);
  }
};

class LentRuns {
 public:
  /// Fewer bytes for each copy take longer than kernels that read host memory.
  static constexpr std::size_t kLeastBytes = std::size_t{256} << 10;
  /// The narrowest rows that engines copy at their full speed.
  static constexpr std::uint32_t kLeastWidth = 512;

  /// For batches with at most `most_bytes` in frames.
  explicit LentRuns(std::size_t most_bytes) { runs_.reserve(std::max<std::size_t>(1, most_bytes / kLeastBytes)); }

  /// The most bytes that the copies of `bytes` in frames take: they may bring an eighth of gaps.
  [[nodiscard]] static constexpr std::size_t with_gaps(std::size_t bytes) noexcept { return bytes + bytes / 8; }

  void begin() noexcept {
    runs_.clear();
    too_many_ = false;
    run_ = {};
  }
  /// The next frame of the batch.
  void add(std::uint8_t source, std::uint32_t offset, std::uint32_t length) noexcept {
    // Nearly always, frames are of one length, at equal distances.
    if (run_.in_rows && source == run_.source && length == run_.length && offset > run_.offset &&
        offset - run_.offset == run_.stride) {
      run_.offset = offset;
      ++run_.packets;
      return;
    }
    if (run_.packets > 0 && extend(source, offset, length)) return;
    close();
    run_ = {source, offset, offset, length, 1, 0, spanned(offset, length), false};
  }
  /// Returns the runs if copying them is better than reading the frames from where they are; otherwise none.
  [[nodiscard]] std::span<const LentRun> end() noexcept {
    close();
    return too_many_ ? std::span<const LentRun>{} : std::span<const LentRun>(runs_);
  }

 private:
  /// The run so far: rows, or frames that are close to each other.
  struct Open {
    std::uint8_t source = 0;
    std::uint32_t first = 0;   // offset of the first frame
    std::uint32_t offset = 0;  // of the last one
    std::uint32_t length = 0;  // of the last one
    std::uint32_t packets = 0;
    std::uint32_t stride = 0;  // of the rows
    std::uint64_t bytes = 0;   // in frames, if they are not in rows
    bool in_rows = false;      // at least two frames of one length at equal distances
  };

  static constexpr std::uint32_t down(std::uint32_t offset) noexcept {
    return offset - offset % static_cast<std::uint32_t>(kFrameAlignment);
  }
  /// The bytes that are copied for a frame on its own.
  static constexpr std::uint32_t spanned(std::uint32_t offset, std::uint32_t length) noexcept {
    return static_cast<std::uint32_t>(aligned_frame(std::size_t{offset} + length) - down(offset));
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return run_.in_rows ? std::uint64_t{run_.packets} * spanned(run_.offset, run_.length) : run_.bytes;
  }

  bool extend(std::uint8_t source, std::uint32_t offset, std::uint32_t length) noexcept {
    if (source != run_.source || offset < std::uint64_t{run_.offset} + run_.length) return false;
    const std::uint32_t stride = offset - run_.offset;
    const std::uint64_t now = bytes() + spanned(offset, length);
    if (run_.packets == 1 && length == run_.length && can_be_rows(stride, offset, length)) {
      run_.in_rows = true;
      run_.stride = stride;
    } else if (std::uint64_t{offset} + length - down(run_.first) <= with_gaps(now)) {
      run_.in_rows = false;
      run_.bytes = now;
    } else {
      return false;
    }
    run_.offset = offset;
    run_.length = length;
    ++run_.packets;
    return true;
  }
  /// Rows keep the alignment of frames, and are wide enough.
  [[nodiscard]] static bool can_be_rows(std::uint32_t stride, std::uint32_t offset, std::uint32_t length) noexcept {
    const std::uint32_t width = spanned(offset, length);
    return stride % kFrameAlignment == 0 && width >= kLeastWidth && stride >= width;
  }

  void close() noexcept {
    if (run_.packets == 0) return;
    const std::uint32_t first = down(run_.first);
    const std::uint32_t width = spanned(run_.offset, run_.length);
    const bool has_gaps = run_.in_rows && run_.stride > width;
    const LentRun run = has_gaps ? LentRun{run_.source, first, run_.packets, width, run_.stride, run_.packets}
                                 : LentRun{run_.source, first, 1, down(run_.offset) + width - first, 0, run_.packets};
    run_ = {};
    too_many_ |= runs_.size() == runs_.capacity();
    if (!too_many_) runs_.push_back(run);
  }

  std::vector<LentRun> runs_;
  bool too_many_ = false;
  Open run_;
};

}  // namespace penstock::ring
