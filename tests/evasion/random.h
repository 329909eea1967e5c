// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same on every machine for the same seed. Seeding is cheap.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::evasion {

/// SplitMix64 (Steele, Lea & Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
  /// Numbers for item `index` of a sequence, independent of the other items.
  Random(std::uint64_t seed, std::uint64_t index) noexcept : state_(seed) { state_ = next() ^ (index * kStep); }

  std::uint64_t next() noexcept {
    std::uint64_t mixed = state_ += kStep;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }
  std::uint32_t word() noexcept { return static_cast<std::uint32_t>(next() >> 32); }
  /// 0 … bound - 1; 0 if the bound is 0.
  std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : next() % bound; }
  /// Both bounds are included.
  std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    return least >= most ? least
                         : least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  bool percent(unsigned chance) noexcept { return below(100) < chance; }
  template <typename T>
  const T& pick(std::span<const T> from) noexcept {
    return from[below(from.size())];
  }
  template <typename T, std::size_t N>
  T pick(const T (&from)[N]) noexcept {
    return from[below(N)];
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  std::uint64_t state_;
};

}  // namespace penstock::evasion
