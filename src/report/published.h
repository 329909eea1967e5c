// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts that one thread updates privately and publishes to other threads from time to time.

#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace penstock::report {

/// `Counts` consists of 64-bit numbers. A reader may see old and new numbers while they are being published, but no
/// torn ones.
template <typename Counts>
class Published {
  static_assert(std::is_trivially_copyable_v<Counts> && sizeof(Counts) % sizeof(std::uint64_t) == 0);
  using Words = std::array<std::uint64_t, sizeof(Counts) / sizeof(std::uint64_t)>;

 public:
  void publish(const Counts& counts) noexcept {
    const auto words = std::bit_cast<Words>(counts);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
  }
  [[nodiscard]] Counts get() const noexcept {
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    return std::bit_cast<Counts>(words);
  }

 private:
  std::array<std::atomic<std::uint64_t>, sizeof(Counts) / sizeof(std::uint64_t)> words_{};
};

}  // namespace penstock::report
