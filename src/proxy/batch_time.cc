// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/batch_time.h"

#include <initializer_list>

namespace penstock::proxy {

void BatchTimeFit::add(std::uint64_t bytes, double ns) noexcept {
  const auto x = static_cast<double>(bytes);
  ++count_;
  x_ += x;
  y_ += ns;
  xx_ += x * x;
  xy_ += x * ns;
}

void BatchTimeFit::refit() noexcept {
  constexpr double kLeastCount = 4;
  constexpr double kLeastSpread = 0.01;  // variance of sizes in relation to their square: below, they are all alike
  constexpr double kKept = 0.7;          // of the weight of a measurement, at each fit
  if (count_ >= kLeastCount && x_ > 0) {
    const double mean_x = x_ / count_;
    const double mean_y = y_ / count_;
    const double variance = xx_ / count_ - mean_x * mean_x;
    const double slope = (xy_ / count_ - mean_x * mean_y) / variance;
    // A negative term is a measurement error. If all batches have one size, all of their time counts as divisible.
    if (variance <= kLeastSpread * mean_x * mean_x || slope * mean_x >= mean_y) {
      time_ = {0, mean_y / mean_x};
    } else if (slope <= 0) {
      time_ = {mean_y, 0};
    } else {
      time_ = {mean_y - slope * mean_x, slope};
    }
  }
  for (double* const sum : {&count_, &x_, &y_, &xx_, &xy_}) *sum *= kKept;
}

}  // namespace penstock::proxy
