// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/timeline.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::ring {
namespace {

Span span_at(std::int64_t ready_ns) { return {.ready_ns = ready_ns, .end_ns = ready_ns + 5}; }

std::vector<std::int64_t> ready_times(const std::vector<Span>& spans) {
  std::vector<std::int64_t> times;
  for (const Span& span : spans) times.push_back(span.ready_ns);
  return times;
}

/// Packets go up, and only results come down: at most three spans.
const std::vector<SegmentShape> kSegments(1);

TEST(SpanLog, KeepsTheLastSpansInTheirOrder) {
  SpanLog log(7, 3, {}, nullptr);
  EXPECT_TRUE(log.spans().empty());
  for (const std::int64_t time : {1, 2, 3}) log.add(span_at(time));
  EXPECT_EQ(ready_times(log.spans()), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_FALSE(log.has_lost_some());
  for (const std::int64_t time : {4, 5}) log.add(span_at(time));
  EXPECT_EQ(ready_times(log.spans()), (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_TRUE(log.has_lost_some());
  EXPECT_EQ(log.added(), 5U);
  EXPECT_EQ(log.spans().front().stream, 7U);
  log.clear();
  EXPECT_TRUE(log.spans().empty());
}

TEST(Timeline, HasTheSpansOfAllStreamsByTheirTimes) {
  Timeline timeline(10);
  SpanLog& one = timeline.add_stream({0, 0, 0}, kSegments, nullptr);
  SpanLog& other = timeline.add_stream({1, 2, 1}, kSegments, nullptr);
  one.add(span_at(10));
  other.add(span_at(5));
  one.add(span_at(20));
  const std::vector<Span> spans = timeline.spans();
  EXPECT_EQ(ready_times(spans), (std::vector<std::int64_t>{5, 10, 20}));
  EXPECT_EQ(spans[0].stream, 1U);
  EXPECT_EQ(timeline.streams()[1].worker, 2U);
  EXPECT_EQ(timeline.left_out(spans), 0U);
}

TEST(Timeline, BeginsWhereAllStreamsHaveSpans) {
  Timeline timeline(2);  // room for six spans
  SpanLog& busy = timeline.add_stream({}, kSegments, nullptr);
  SpanLog& idle = timeline.add_stream({}, kSegments, nullptr);
  for (const std::int64_t time : {-10, 0, 10, 20, 30, 40, 50, 60, 70, 80}) busy.add(span_at(time));
  for (const std::int64_t time : {15, 35}) idle.add(span_at(time));
  const std::vector<Span> spans = timeline.spans();
  EXPECT_EQ(ready_times(spans), (std::vector<std::int64_t>{30, 35, 40, 50, 60, 70, 80}))
      << "of the time before 30, the busy stream's spans are not there any more";
  EXPECT_EQ(timeline.left_out(spans), 5U);
}

TEST(Timeline, DiscardsTheWarmUp) {
  Timeline timeline(2);
  SpanLog& log = timeline.add_stream({}, kSegments, nullptr);
  log.add(span_at(1));
  timeline.begin();
  EXPECT_TRUE(timeline.spans().empty());
  log.add(span_at(2));
  EXPECT_EQ(ready_times(timeline.spans()), std::vector<std::int64_t>{2});
}

TEST(Timeline, HasRoomForAllSpansOfItsBatches) {
  SegmentShape first;  // up, kernels, results, down
  first.frames_down = true;
  SegmentShape second;  // up, kernels, up, kernels, results, down
  second.verdicts_up = true;
  second.frames_down = true;
  SegmentShape third;  // kernels, results
  third.sends_packets = false;
  EXPECT_EQ(most_spans(first), 4U);
  EXPECT_EQ(most_spans(second), 6U);
  EXPECT_GE(most_spans(third), 2U);
  SegmentShape all = second;  // up and kernels for packets, verdicts and states; results, down
  all.sends_packets = all.verdicts_up = true;
  all.stages.push_back({.function = 0, .state_bytes = 8});
  EXPECT_EQ(most_spans(all), 8U);
  const std::vector<SegmentShape> segments{first, second};
  Timeline timeline(3);
  SpanLog& log = timeline.add_stream({}, segments, nullptr);
  for (std::int64_t i = 0; i < 30; ++i) log.add(span_at(i));
  EXPECT_FALSE(log.has_lost_some());
  log.add(span_at(30));
  EXPECT_TRUE(log.has_lost_some()) << "its memory is bounded";
}

}  // namespace
}  // namespace penstock::ring
