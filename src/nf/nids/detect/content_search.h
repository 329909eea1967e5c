// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Searches a buffer for one content. The two rarest bytes of the content are compared at 32 positions at once; where
// both match, the rest is compared (Muła, "SIMD-friendly algorithms for substring searching").

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::nids {

/// Converts ASCII letters to lower case; other bytes stay as they are.
[[nodiscard]] constexpr std::uint8_t to_lower(std::uint8_t byte) noexcept {
  return byte >= 'A' && byte <= 'Z' ? static_cast<std::uint8_t>(byte | 0x20) : byte;
}

/// Immutable; thread-safe.
class ContentSearch {
 public:
  /// `content` must not be empty.
  ContentSearch(std::span<const std::uint8_t> content, bool nocase);

  [[nodiscard]] std::size_t length() const noexcept { return content_.size(); }
  /// The first position of the content in `text`, or -1. Adds to `compared` the number of bytes compared at possible
  /// positions; the number is the same on all processors.
  [[nodiscard]] std::int64_t find(std::span<const std::uint8_t> text, std::uint64_t& compared) const noexcept;
  [[nodiscard]] std::int64_t find(std::span<const std::uint8_t> text) const noexcept {
    std::uint64_t compared = 0;
    return find(text, compared);
  }

 private:
  /// A byte of the content that is searched first. If the search ignores case and the byte is a letter, `fold` is the
  /// bit that differs between its cases.
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

  std::vector<std::uint8_t> content_;  // in lower case if the search ignores case
  bool nocase_;
  Probe first_, second_;
};

}  // namespace penstock::nids
