// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/threshold_count.h"

#include <algorithm>
#include <limits>

namespace penstock::nids {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;  // in microseconds

void add(std::uint32_t& matches) noexcept {
  if (matches != std::numeric_limits<std::uint32_t>::max()) ++matches;
}

std::uint64_t multiplied(std::uint64_t next, std::uint32_t multiplier) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return std::min(next * multiplier, kMost);
}

Counted count_rate(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us, bool in_interval) noexcept {
  const Counted taken = threshold.new_action ? Counted::new_action : Counted::alert;
  if (count.acting_us != 0) {
    // Whole seconds. If time goes backwards, the difference exceeds any timeout, and the new action ends.
    if (now_us / kSecond - count.acting_us / kSecond <= threshold.timeout_s) return taken;
    count.acting_us = 0;
    return Counted::alert;
  }
  if (!in_interval) {
    count.start_us = now_us;
    count.matches = 1;
    return Counted::alert;
  }
  add(count.matches);
  if (count.matches <= threshold.count) return Counted::alert;
  count.acting_us = now_us;
  return taken;
}

}  // namespace

Counted count_first(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us) noexcept {
  count = {.start_us = now_us, .acting_us = 0, .matches = 1};
  switch (threshold.type) {
    case Threshold::Type::limit:
    case Threshold::Type::rate_filter: return Counted::alert;
    case Threshold::Type::threshold:
    case Threshold::Type::both: return threshold.count == 1 ? Counted::alert : Counted::nothing;
    case Threshold::Type::detection_filter: return Counted::nothing;
    case Threshold::Type::backoff:
      count.start_us = threshold.count;
      if (threshold.count != 1) return Counted::nothing;
      count.start_us = multiplied(count.start_us, threshold.multiplier);
      return Counted::alert;
  }
  return Counted::nothing;
}

Counted count_next(const Threshold& threshold, ThresholdCount& count, std::uint64_t now_us) noexcept {
  const bool in_interval = now_us <= count.start_us + threshold.seconds * kSecond;
  const auto begin_interval = [&]() noexcept {
    count.start_us = now_us;
    count.matches = 1;
  };
  switch (threshold.type) {
    case Threshold::Type::limit:
      if (in_interval) {
        add(count.matches);
        return count.matches <= threshold.count ? Counted::alert : Counted::silent;
      }
      begin_interval();
      return Counted::alert;
    case Threshold::Type::threshold:
      if (!in_interval) {
        begin_interval();
        return Counted::nothing;
      }
      add(count.matches);
      if (count.matches < threshold.count) return Counted::nothing;
      count.matches = 0;
      return Counted::alert;
    case Threshold::Type::both:
      if (!in_interval) {
        begin_interval();
        return threshold.count == 1 ? Counted::alert : Counted::nothing;
      }
      add(count.matches);
      if (count.matches == threshold.count) return Counted::alert;
      return count.matches > threshold.count ? Counted::silent : Counted::nothing;
    case Threshold::Type::detection_filter:
      if (!in_interval) {
        begin_interval();
        return Counted::nothing;
      }
      add(count.matches);
      return count.matches > threshold.count ? Counted::alert : Counted::nothing;
    case Threshold::Type::rate_filter: return count_rate(threshold, count, now_us, in_interval);
    case Threshold::Type::backoff:
      if (count.matches == std::numeric_limits<std::uint32_t>::max()) return Counted::silent;
      ++count.matches;
      if (count.matches != count.start_us) return Counted::silent;
      count.start_us = multiplied(count.start_us, threshold.multiplier);
      return Counted::alert;
  }
  return Counted::nothing;
}

}  // namespace penstock::nids
