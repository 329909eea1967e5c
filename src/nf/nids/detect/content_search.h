// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One content searched for in a buffer. Two of its bytes, the least usual ones, are compared at 32 places at once;
// where both are right the rest is compared (Muła, "SIMD-friendly algorithms for substring searching").

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::nids {

/// ASCII letters in lower case, all else as it is.
[[nodiscard]] constexpr std::uint8_t to_lower(std::uint8_t byte) noexcept {
  return byte >= 'A' && byte <= 'Z' ? static_cast<std::uint8_t>(byte | 0x20) : byte;
}

/// Immutable; thread-safe.
class ContentSearch {
 public:
  /// `content` is not empty.
  ContentSearch(std::span<const std::uint8_t> content, bool nocase);

  [[nodiscard]] std::size_t length() const noexcept { return content_.size(); }
  /// Where the content begins first in `text`; -1: nowhere. Adds to `compared` the bytes that were compared where it
  /// might have been: the same on all processors.
  [[nodiscard]] std::int64_t find(std::span<const std::uint8_t> text, std::uint64_t& compared) const noexcept;
  [[nodiscard]] std::int64_t find(std::span<const std::uint8_t> text) const noexcept {
    std::uint64_t compared = 0;
    return find(text, compared);
  }

 private:
  /// A byte of the content that is looked for first. Where case does not matter and it is a letter, `fold` is the bit
  /// that tells the cases apart.
  struct Probe {
    std::uint32_t at = 0;
    std::uint8_t byte = 0;
    std::uint8_t fold = 0;
  };

  [[nodiscard]] bool is_at(const std::uint8_t* text) const noexcept;
  [[nodiscard]] std::int64_t find_plain(const std::uint8_t* text, std::size_t places,
                                        std::uint64_t& compared) const noexcept;
  [[nodiscard]] std::int64_t find_avx2(const std::uint8_t* text, std::size_t places,
                                       std::uint64_t& compared) const noexcept;

  std::vector<std::uint8_t> content_;  // lower case where case does not matter
  bool nocase_;
  Probe first_, second_;
};

}  // namespace penstock::nids
