// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/threshold_count.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock::nids {
namespace {

using Type = Threshold::Type;

constexpr std::uint64_t kSecond = 1'000'000;

Threshold threshold_of(Type type, std::uint32_t count, std::uint32_t seconds) {
  return {.type = type, .track = TrackBy::source, .count = count, .seconds = seconds};
}

std::vector<Counted> counted(const Threshold& threshold, const std::vector<std::uint64_t>& times_us) {
  std::vector<Counted> said;
  ThresholdCount count;
  for (const std::uint64_t now : times_us) {
    said.push_back(said.empty() ? count_first(threshold, count, now) : count_next(threshold, count, now));
  }
  return said;
}

/// The documentation, applied to the whole list: matches are divided into intervals of that many seconds, each from its
/// first match on. The result for a match follows from its position in its interval.
std::vector<Counted> documented(const Threshold& threshold, const std::vector<std::uint64_t>& times_us) {
  std::vector<Counted> said;
  std::uint64_t begin = 0;
  std::uint32_t place = 0;  // in the interval, from 1
  std::uint32_t intervals = 0;
  for (const std::uint64_t now : times_us) {
    if (place == 0 || now > begin + threshold.seconds * kSecond) {
      begin = now;
      place = 0;
      ++intervals;
    }
    ++place;
    switch (threshold.type) {
      case Type::limit:  // "at most COUNT alerts"
        said.push_back(place <= threshold.count ? Counted::alert : Counted::silent);
        break;
      case Type::threshold:  // "on every COUNT-th"; for a COUNT of 1, a match that begins a later interval does not
                             // alert
        said.push_back(place % threshold.count == 0 && (threshold.count > 1 || place > 1 || intervals == 1)
                           ? Counted::alert
                           : Counted::nothing);
        break;
      case Type::both:  // "once, when there were COUNT"
        said.push_back(place == threshold.count  ? Counted::alert
                       : place > threshold.count ? Counted::silent
                                                 : Counted::nothing);
        break;
      case Type::detection_filter:  // "on every match after the first COUNT"
        said.push_back(place > threshold.count ? Counted::alert : Counted::nothing);
        break;
      default: ADD_FAILURE(); break;
    }
  }
  return said;
}

TEST(ThresholdCount, BehavesAsDocumentedAtRandomTimes) {
  auto random = [engine = std::mt19937(1)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 3000; ++round) {
    const auto type = std::vector{Type::limit, Type::threshold, Type::both, Type::detection_filter}[random() % 4];
    const Threshold threshold = threshold_of(type, 1 + random() % 6, random() % 10);
    std::vector<std::uint64_t> times;
    std::uint64_t now = 1'700'000'000 * kSecond + random() % kSecond;
    for (int i = 0; i < 60; ++i) {
      times.push_back(now);
      // Often exactly on a boundary, often in the same microsecond.
      now += random() % 3 == 0 ? (random() % 12) * kSecond + random() % 2 : random() % 4;
    }
    ASSERT_EQ(counted(threshold, times), documented(threshold, times))
        << "type " << static_cast<int>(type) << " count " << threshold.count << " seconds " << threshold.seconds;
  }
}

TEST(ThresholdCount, AnIntervalIncludesItsLastMicrosecond) {
  const Threshold limit = threshold_of(Type::limit, 1, 10);
  EXPECT_EQ(counted(limit, {5 * kSecond, 15 * kSecond, 15 * kSecond + 1}),
            (std::vector{Counted::alert, Counted::silent, Counted::alert}));
}

TEST(ThresholdCount, ATimeBeforeTheIntervalCountsAsWithinIt) {
  const Threshold limit = threshold_of(Type::limit, 2, 10);
  EXPECT_EQ(counted(limit, {500 * kSecond, 1 * kSecond, 2 * kSecond, 511 * kSecond, 3 * kSecond}),
            (std::vector{Counted::alert, Counted::alert, Counted::silent, Counted::alert, Counted::alert}));
}

TEST(ThresholdCount, BackoffAlertsOnPowers) {
  for (const auto& [first, multiplier] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 2}, {1, 10}, {3, 2}, {5, 5}, {7, 1}}) {
    Threshold backoff = threshold_of(Type::backoff, first, 0);
    backoff.multiplier = multiplier;
    std::vector<std::uint64_t> alerts, expected;
    ThresholdCount count;
    for (std::uint32_t match = 1; match <= 20'000; ++match) {
      const Counted said = match == 1 ? count_first(backoff, count, 0) : count_next(backoff, count, 0);
      if (said == Counted::alert) alerts.push_back(match);
      // Before the first alert, the very first match counts as none; all others have their action applied.
      if (said != Counted::alert) {
        EXPECT_EQ(said, match == 1 ? Counted::nothing : Counted::silent);
      }
    }
    std::uint64_t next = first;
    do {
      expected.push_back(next);
      next *= multiplier;
    } while (next <= 20'000 && multiplier > 1);
    EXPECT_EQ(alerts, expected) << first << " times " << multiplier;
  }
}

TEST(ThresholdCount, BackoffStopsWhenItsCountOverflows) {
  Threshold backoff = threshold_of(Type::backoff, 1, 0);
  backoff.multiplier = 0xffffffff;
  ThresholdCount count;
  EXPECT_EQ(count_first(backoff, count, 0), Counted::alert);
  count.matches = 0xfffffffe;
  EXPECT_EQ(count_next(backoff, count, 0), Counted::alert);  // the 2^32-1st
  EXPECT_EQ(count_next(backoff, count, 0), Counted::silent);
  EXPECT_EQ(count.matches, 0xffffffff);
}

TEST(ThresholdCount, RateFilterActsFromTheMatchOverItsCountUntilItsTimeout) {
  Threshold rate = threshold_of(Type::rate_filter, 2, 10);
  rate.new_action = Action::drop;
  rate.timeout_s = 5;
  const auto at = [](std::uint64_t s) { return s * kSecond; };
  EXPECT_EQ(counted(rate, {at(100), at(101),             // two are below the count
                           at(102),                      // the third acts,
                           at(103), at(107),             // as do all for five seconds
                           at(108),                      // but not the first one after them
                           at(109), at(110),             // the interval continues: over the count again
                           at(116),                      // over,
                           at(117), at(118), at(119)}),  // and a new interval
            (std::vector{Counted::alert, Counted::alert, Counted::new_action, Counted::new_action, Counted::new_action,
                         Counted::alert, Counted::new_action, Counted::new_action, Counted::alert, Counted::alert,
                         Counted::alert, Counted::new_action}));
}

TEST(ThresholdCount, RateFilterCountsItsTimeoutInWholeSeconds) {
  Threshold rate = threshold_of(Type::rate_filter, 1, 60);
  rate.new_action = Action::pass;
  rate.timeout_s = 1;
  EXPECT_EQ(counted(rate, {0, 100 * kSecond - 60 * kSecond, 41 * kSecond + 999'999, 42 * kSecond}),
            (std::vector{Counted::alert, Counted::new_action, Counted::new_action, Counted::alert}));
}

TEST(ThresholdCount, RateFilterWithoutAnActionOnlyCounts) {
  const Threshold rate = threshold_of(Type::rate_filter, 1, 60);
  EXPECT_EQ(counted(rate, {1, 2, 3, 4}), std::vector(4, Counted::alert));
}

}  // namespace
}  // namespace penstock::nids
