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
/// If no level is good, another is tried again after so many windows.
constexpr unsigned kTryAgainIfNoneIsGood = 20;

}  // namespace

/// A window without a limit says nothing of a level.
void Leeway::adapt(const Seen& seen, double most) noexcept {
  if (std::exchange(pauses_, false)) return;
  Level& tried = levels_[level_];
  tried.starves = level_ > 0 && seen.starves;
  if (!seen.late && !tried.starves) return;  // nothing is known yet
  for (Level& level : levels_) level.age += level.is_known() ? 1 : 0;
  const bool failed_before = tried.is_known() && tried.is_due();
  if (seen.late) tried.late = tried.is_due() ? *seen.late : (tried.late + *seen.late) / 2;
  tried.age = 0;
  if (is_good(level_)) {
    tried.wait = std::max(kSoon, tried.wait - 1);
  } else if (failed_before) {
    tried.wait = std::min(2 * tried.wait, kSeldom);
  }
  const std::size_t before = std::exchange(level_, next());
  stayed_ = level_ == before ? stayed_ + 1 : 0;
  tries_ = !is_good(level_);
  bytes_ = most * std::exp2(-0.5 * static_cast<double>(level_));
}

bool Leeway::is_good(std::size_t level) const noexcept {
  return levels_[level].is_known() && levels_[level].late <= kFewLate && !levels_[level].starves;
}

/// The level of the next window.
std::size_t Leeway::next() const noexcept {
  if (is_good(level_)) return level_ > 0 && levels_[level_ - 1].is_due() ? level_ - 1 : level_;
  std::size_t best = 0;     // with clearly the fewest late batches
  std::size_t deepest = 0;  // that does not starve others
  std::size_t oldest = 0;   // tried the longest ago
  for (std::size_t l = 0; l < kLevels; ++l) {
    const Level& level = levels_[l];
    if (is_good(l)) return l;
    if (!level.is_known()) continue;
    if (!level.starves) deepest = l;
    if (!level.starves && level.late < kClearlyLess * levels_[best].late - kFewLate) best = l;
    if (level.age > levels_[oldest].age) oldest = l;
  }
  // Fewer bytes may be better: two levels on, or, where that starves others, one.
  for (const std::size_t less : {deepest + 2, deepest + 1, best + 1}) {
    if (less < kLevels && !levels_[less].is_known()) return less;
  }
  return best == level_ && stayed_ >= kTryAgainIfNoneIsGood ? oldest : best;
}

}  // namespace penstock::proxy
