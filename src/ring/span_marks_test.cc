// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/span_marks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace penstock::ring {
namespace {

/// A device whose time advances by 1 ms with each event.
struct FakeStream {
  double* now_ms;
};
class FakeEvent {
 public:
  enum class Timing { kOff, kOn };
  explicit FakeEvent(Timing timing) { EXPECT_EQ(timing, Timing::kOn) << "else it has no time"; }
  [[nodiscard]] bool record(const FakeStream& stream) const noexcept {
    time_ms_ = ++*stream.now_ms;
    return accepts;
  }
  [[nodiscard]] std::optional<double> try_milliseconds_since(const FakeEvent& start) const noexcept {
    if (!accepts) return std::nullopt;
    return static_cast<float>(time_ms_ - start.time_ms_);  // a float, as in CUDA
  }
  static inline bool accepts = true;

 private:
  mutable double time_ms_ = 0;
};

using Crossed = Lane::Crossed;

class SpanMarksTest : public ::testing::Test {
 protected:
  void SetUp() override { FakeEvent::accepts = true; }

  double now_ms_ = 0;
  FakeStream stream_{&now_ms_};
  SpanLog log_{3, 100, SpanLog::Clock::time_point{}, nullptr};
  FakeEvent base_{FakeEvent::Timing::kOn};
  SpanMarks<FakeEvent, FakeStream> marks_{log_, base_, SpanLog::Clock::time_point{} + std::chrono::seconds{1}};
};

TEST_F(SpanMarksTest, RecordTheWorkOfALaneInOrder) {
  marks_.begin_segment(0, 17);
  EXPECT_TRUE(marks_.begin(Work::to_device, {}, stream_));         // 1
  EXPECT_TRUE(marks_.begin(Work::to_device, {4000, 0}, stream_));  // a second copy after the first
  EXPECT_TRUE(marks_.begin(Work::kernels, {4100, 0}, stream_));    // 2
  EXPECT_TRUE(marks_.begin(Work::to_device, {4100, 0}, stream_));  // 3
  EXPECT_TRUE(marks_.begin(Work::kernels, {4164, 0}, stream_));    // 4
  EXPECT_TRUE(marks_.end({4170, 80}, stream_));                    // 5
  now_ms_ = 10;                                                    // the host polls late
  EXPECT_TRUE(marks_.begin(Work::to_host, {4170, 80}, stream_));   // 11
  EXPECT_TRUE(marks_.end({4170, 2080}, stream_));                  // 12
  EXPECT_TRUE(log_.spans().empty()) << "until all of it is done";
  ASSERT_TRUE(marks_.collect({4170, 2080}));
  const std::vector<Span> spans = log_.spans();
  ASSERT_EQ(spans.size(), 5U);
  const struct {
    Work work;
    std::uint64_t to_device, to_host;
    std::int64_t ready_ms, end_ms;
  } expected[] = {{Work::to_device, 4100, 0, 1, 2},
                  {Work::kernels, 0, 0, 2, 3},
                  {Work::to_device, 64, 0, 3, 4},
                  {Work::kernels, 6, 80, 4, 5},
                  {Work::to_host, 0, 2000, 11, 12}};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(spans[i].work, expected[i].work);
    EXPECT_EQ(spans[i].stream, 3U);
    EXPECT_EQ(spans[i].packets, 17U);
    EXPECT_EQ(spans[i].batch, 0U);
    EXPECT_EQ(spans[i].crossed.to_device, expected[i].to_device);
    EXPECT_EQ(spans[i].crossed.to_host, expected[i].to_host);
    EXPECT_EQ(spans[i].ready_ns, 1'000'000'000 + expected[i].ready_ms * 1'000'000) << "behind the base's time";
    EXPECT_EQ(spans[i].end_ns, 1'000'000'000 + expected[i].end_ms * 1'000'000);
    EXPECT_GT(spans[i].enqueued_ns, 0);
  }
}

TEST_F(SpanMarksTest, CountZeroCopyBytesForKernels) {
  marks_.begin_segment(0, 1);
  EXPECT_TRUE(marks_.begin(Work::kernels, {64, 0}, stream_)) << "which read the frames where they are";
  EXPECT_TRUE(marks_.end({80, 16}, stream_));
  ASSERT_TRUE(marks_.collect({80, 48})) << "what came back is known by then";
  ASSERT_EQ(log_.spans().size(), 1U);
  EXPECT_EQ(log_.spans()[0].crossed.to_device, 80U);
  EXPECT_EQ(log_.spans()[0].crossed.to_host, 48U);
}

TEST_F(SpanMarksTest, CountBatchesByTheirFirstSegments) {
  for (const std::size_t segment : {0, 1, 0, 1, 1}) {
    marks_.begin_segment(segment, 1);
    EXPECT_TRUE(marks_.begin(Work::kernels, {}, stream_));
    EXPECT_TRUE(marks_.end({}, stream_));
    ASSERT_TRUE(marks_.collect({}));
  }
  std::vector<std::uint64_t> batches;
  for (const Span& span : log_.spans()) batches.push_back(span.batch);
  EXPECT_EQ(batches, (std::vector<std::uint64_t>{0, 0, 1, 1, 1}));
}

TEST_F(SpanMarksTest, StayExactInALongRun) {
  constexpr int kSegments = 200'000;
  for (int i = 0; i < kSegments; ++i) {
    marks_.begin_segment(0, 1);
    now_ms_ += 0.9375;  // about six minutes in total, where a float of milliseconds has a resolution of 16 us
    ASSERT_TRUE(marks_.begin(Work::kernels, {}, stream_));
    ASSERT_TRUE(marks_.end({}, stream_));
    ASSERT_TRUE(marks_.collect({}));
  }
  EXPECT_NEAR(static_cast<double>(log_.spans().back().end_ns), 1e9 + now_ms_ * 1e6, 100);
}

TEST_F(SpanMarksTest, RecordNothingForAFailedSegment) {
  marks_.begin_segment(0, 1);
  EXPECT_TRUE(marks_.begin(Work::to_device, {}, stream_));
  marks_.begin_segment(0, 1);
  EXPECT_TRUE(marks_.collect({})) << "of which nothing was marked";
  EXPECT_TRUE(log_.spans().empty());
  EXPECT_TRUE(marks_.begin(Work::kernels, {}, stream_));
  EXPECT_TRUE(marks_.end({}, stream_));
  FakeEvent::accepts = false;
  EXPECT_FALSE(marks_.collect({}));
  EXPECT_TRUE(log_.spans().empty());
  marks_.begin_segment(0, 1);
  EXPECT_FALSE(marks_.begin(Work::kernels, {}, stream_));
}

}  // namespace
}  // namespace penstock::ring
