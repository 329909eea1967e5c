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
    const auto first = static_cast<std::uint32_t>(offset / kFrameAlignment * kFrameAlignment);
    const auto end = static_cast<std::uint32_t>(aligned_frame(std::size_t{offset} + length));
    if (run_.packets > 0 && extend(source, first, end)) return;
    close();
    run_ = {source, first, first, end, end - first, end - first, 0, 1, true};
  }
  /// Returns the runs if copying them is better than reading the frames from where they are; otherwise none.
  [[nodiscard]] std::span<const LentRun> end() noexcept {
    close();
    return too_many_ ? std::span<const LentRun>{} : std::span<const LentRun>(runs_);
  }

 private:
  /// The run so far.
  struct Open {
    std::uint8_t source = 0;
    std::uint32_t first = 0;  // of the run
    std::uint32_t last = 0;   // start of the last frame
    std::uint32_t end = 0;
    std::uint32_t width = 0;  // of the first frame
    std::uint64_t bytes = 0;  // in frames
    std::uint32_t stride = 0;
    std::uint32_t packets = 0;
    bool in_rows = false;  // frames are equally wide and equally far apart

    [[nodiscard]] bool is_dense() const noexcept { return end - first <= with_gaps(bytes); }
    [[nodiscard]] bool has_good_rows() const noexcept { return in_rows && width >= kLeastWidth; }
  };

  bool extend(std::uint8_t source, std::uint32_t first, std::uint32_t end) noexcept {
    if (source != run_.source || first < run_.end) return false;
    Open longer = run_;
    const std::uint32_t stride = first - run_.last;
    longer.in_rows = run_.in_rows && end - first == run_.width && (run_.packets == 1 || stride == run_.stride);
    longer.stride = stride;
    longer.last = first;
    longer.end = end;
    longer.bytes += end - first;
    ++longer.packets;
    if (!longer.is_dense() && !longer.has_good_rows()) return false;
    run_ = longer;
    return true;
  }

  void close() noexcept {
    if (run_.packets == 0) return;
    LentRun run{run_.source, run_.first, 1, run_.end - run_.first, 0, run_.packets};
    if (!run_.is_dense()) run = {run_.source, run_.first, run_.packets, run_.width, run_.stride, run_.packets};
    run_ = {};
    too_many_ |= runs_.size() == runs_.capacity();
    if (!too_many_) runs_.push_back(run);
  }

  std::vector<LentRun> runs_;
  bool too_many_ = false;
  Open run_;
};

}  // namespace penstock::ring
