// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/leeway.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::proxy {

namespace {

/// So many late batches do no harm.
constexpr double kFewLate = 0.005;
/// Fewer by this factor, and by those few, is no chance.
constexpr double kClearlyLess = 0.8;
/// A level is tried again after so many windows.
constexpr unsigned kTryAgain = 20;

double bytes_of(std::size_t level, double most) noexcept { return most * std::exp2(-0.5 * static_cast<double>(level)); }

}  // namespace

void Leeway::adapt(const Seen& seen, double least, double most) noexcept {
  if (std::exchange(pauses_, false)) return;
  Level& tried = levels_[level_];
  tried.starves = level_ > 0 && seen.kept < seen.promised;
  if (!seen.late && !tried.starves) return;  // nothing is known yet
  for (Level& level : levels_) level.age += level.is_known() ? 1 : 0;
  if (seen.late) tried.late = tried.age <= kTryAgain ? (tried.late + *seen.late) / 2 : *seen.late;
  tried.age = 0;
  std::size_t last = 0;
  while (last + 1 < kLevels && bytes_of(last + 1, most) >= least) ++last;
  const std::size_t before = std::exchange(level_, next(last));
  stayed_ = level_ == before ? stayed_ + 1 : 0;
  tries_ = levels_[level_].age > kTryAgain;
  bytes_ = std::max(least, bytes_of(level_, most));
}

bool Leeway::is_good(std::size_t level) const noexcept {
  return levels_[level].is_known() && levels_[level].late <= kFewLate && !levels_[level].starves;
}

/// The level of the next window, of those up to `last`.
std::size_t Leeway::next(std::size_t last) const noexcept {
  const std::size_t now = std::min(level_, last);
  if (is_good(now)) return now > 0 && levels_[now - 1].age > kTryAgain ? now - 1 : now;
  std::size_t best = 0, deepest = 0, oldest = 0;
  for (std::size_t l = 0; l <= last; ++l) {
    const Level& level = levels_[l];
    if (is_good(l)) return l;
    if (!level.is_known()) continue;
    if (!level.starves) deepest = l;
    if (!level.starves && level.late < kClearlyLess * levels_[best].late - kFewLate) best = l;
    if (level.age > levels_[oldest].age) oldest = l;
  }
  // Fewer bytes may be better: two levels on, or, where that starves others, one.
  for (const std::size_t less : {deepest + 2, deepest + 1, best + 1}) {
    if (less <= last && !levels_[less].is_known()) return less;
  }
  return best == now && stayed_ >= kTryAgain ? oldest : best;
}

}  // namespace penstock::proxy
