// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The set of a capture's frames that raised alerts: one bit for each frame number up to the highest one in the set.
// Each worker has its own while it runs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace penstock::nids {

class FrameSet {
 public:
  /// Frame numbers start at 1. 0 means that no frame caused the alert (for example at the end of a stream); it is only
  /// counted.
  void add(std::uint64_t number, std::uint64_t timestamp_ns) noexcept {
    if (number == 0 || !reserve(number)) {
      ++without_frame_;
      return;
    }
    words_[number / 64] |= bit(number);
    has_nanoseconds_ = has_nanoseconds_ || timestamp_ns % 1000 != 0;
  }
  void add(const FrameSet& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    without_frame_ += other.without_frame_;
    has_nanoseconds_ = has_nanoseconds_ || other.has_nanoseconds_;
  }

  [[nodiscard]] bool contains(std::uint64_t number) const noexcept {
    return number / 64 < words_.size() && (words_[number / 64] & bit(number)) != 0;
  }
  [[nodiscard]] std::uint64_t without_frame() const noexcept { return without_frame_; }
  /// Whether a frame's time has a fraction of a microsecond.
  [[nodiscard]] bool has_nanoseconds() const noexcept { return has_nanoseconds_; }

 private:
  static constexpr std::uint64_t bit(std::uint64_t number) noexcept { return std::uint64_t{1} << (number % 64); }
  [[nodiscard]] bool reserve(std::uint64_t number) noexcept {
    if (number / 64 < words_.size()) return true;
    try {
      words_.resize(number / 64 + 1);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  std::vector<std::uint64_t> words_;
  std::uint64_t without_frame_ = 0;
  bool has_nanoseconds_ = false;
};

}  // namespace penstock::nids
