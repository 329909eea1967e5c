// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A histogram of times from nanoseconds to minutes with a relative error below 1/64. It uses the layout of HDR
// histograms: each power of two has 64 equal buckets. Recording takes an index computation and an addition. Only one
// thread writes.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "report/counter.h"

namespace penstock::report {

class LatencyHistogram {
 public:
  void record(std::chrono::nanoseconds time, std::uint64_t count = 1) noexcept {
    const std::uint64_t ns = time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
    buckets_[bucket_of(ns)].add(count);
  }

  void merge(const LatencyHistogram& other) noexcept {
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i].add(other.buckets_[i].get());
  }

  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const Counter& bucket : buckets_) sum += bucket.get();
    return sum;
  }

  /// The number of times above `limit`. Times less than 1/64 below it may count, too.
  [[nodiscard]] std::uint64_t count_above(std::chrono::nanoseconds limit) const noexcept {
    const auto limit_ns = static_cast<std::uint64_t>(limit.count());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) sum += highest_of(i) > limit_ns ? buckets_[i].get() : 0;
    return sum;
  }

  /// The smallest recorded time (rounded up by less than 1/64) that is not exceeded by the given fraction of all times;
  /// 0 if the histogram is empty.
  [[nodiscard]] std::chrono::nanoseconds quantile(double fraction) const noexcept {
    const std::uint64_t total = count();
    if (total == 0) return {};
    const auto rank =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total))));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i].get();
      if (seen >= rank) return std::chrono::nanoseconds{static_cast<std::int64_t>(highest_of(i))};
    }
    return {};
  }

  /// In nanoseconds, to within 1/128. Never decreases.
  [[nodiscard]] double sum_ns() const noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const double lowest = i == 0 ? 0 : static_cast<double>(highest_of(i - 1) + 1);
      sum += static_cast<double>(buckets_[i].get()) * (lowest + static_cast<double>(highest_of(i))) / 2;
    }
    return sum;
  }

  /// To within 1/128; 0 if the histogram is empty.
  [[nodiscard]] std::chrono::nanoseconds mean() const noexcept {
    const auto total = static_cast<double>(count());
    return std::chrono::nanoseconds{total > 0 ? static_cast<std::int64_t>(sum_ns() / total) : 0};
  }

 private:
  static constexpr unsigned kBits = 6;
  static constexpr std::uint64_t kPerOctave = 1U << kBits;
  static constexpr unsigned kOctaves = 40 - kBits;  // up to 2^40 ns (18 minutes); longer times are clamped

  static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns < kPerOctave) return ns;
    const auto octave = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBits;
    const std::uint64_t within = (ns >> octave) - kPerOctave;
    return std::min<std::size_t>((octave + 1) * kPerOctave + within, (kOctaves + 1) * kPerOctave - 1);
  }
  static constexpr std::uint64_t highest_of(std::size_t bucket) noexcept {
    if (bucket < kPerOctave) return bucket;
    const std::uint64_t octave = bucket / kPerOctave - 1;
    return ((bucket % kPerOctave + kPerOctave + 1) << octave) - 1;
  }

  std::array<Counter, (kOctaves + 1) * kPerOctave> buckets_{};
};

}  // namespace penstock::report
