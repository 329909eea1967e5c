// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/segment_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace penstock::ring {
namespace {

using namespace std::chrono_literals;

/// A device whose time a test sets.
struct FakeStream {
  double now_ms = 0;
};
class FakeEvent {
 public:
  enum class Timing { kOff, kOn };
  explicit FakeEvent(Timing timing) { EXPECT_EQ(timing, Timing::kOn) << "else it has no time"; }
  [[nodiscard]] bool record(const FakeStream& stream) const noexcept {
    time_ms_ = stream.now_ms;
    return accepts;
  }
  [[nodiscard]] std::optional<double> try_milliseconds_since(const FakeEvent& start) const noexcept {
    if (!accepts) return std::nullopt;
    return time_ms_ - start.time_ms_;
  }
  static inline bool accepts = true;

 private:
  mutable double time_ms_ = 0;
};

TEST(SegmentTimes, AddUpWhatIsOfOneKind) {
  FakeStream stream;
  SegmentTimes<FakeEvent, FakeStream> times;
  for (const double begin_ms : {1e3, 5e9}) {  // also after a long time
    const auto at = [&](double ms) -> const FakeStream& { return stream.now_ms = begin_ms + ms, stream; };
    times.begin_segment();
    EXPECT_TRUE(times.begin(Work::to_device, at(0)));
    EXPECT_TRUE(times.begin(Work::to_device, at(1))) << "a second copy after the first";
    EXPECT_TRUE(times.begin(Work::kernels, at(2)));
    EXPECT_TRUE(times.begin(Work::to_device, at(5)));
    EXPECT_TRUE(times.begin(Work::kernels, at(6)));
    EXPECT_TRUE(times.end(at(10)));
    EXPECT_TRUE(times.begin(Work::to_host, at(100))) << "the host polls late";
    EXPECT_TRUE(times.end(at(108)));
    const auto sum = times.add_up();
    ASSERT_TRUE(sum);
    EXPECT_EQ(sum->to_device, 3ms);
    EXPECT_EQ(sum->kernels, 7ms);
    EXPECT_EQ(sum->to_host, 8ms);
  }
}

TEST(SegmentTimes, HaveRoomForAllThatASegmentCanDo) {
  FakeStream stream;
  SegmentTimes<FakeEvent, FakeStream> times;
  times.begin_segment();
  for (int sent = 0; sent < 3; ++sent) {  // packets, verdicts, states
    EXPECT_TRUE(times.begin(Work::to_device, stream));
    EXPECT_TRUE(times.begin(Work::kernels, stream));
  }
  EXPECT_TRUE(times.end(stream));
  EXPECT_TRUE(times.begin(Work::to_host, stream));
  EXPECT_TRUE(times.end(stream));
  EXPECT_TRUE(times.add_up());
}

TEST(SegmentTimes, AreNoneIfTheDriverRefuses) {
  FakeStream stream;
  SegmentTimes<FakeEvent, FakeStream> times;
  times.begin_segment();
  EXPECT_TRUE(times.begin(Work::kernels, stream));
  EXPECT_TRUE(times.end(stream));
  FakeEvent::accepts = false;
  EXPECT_FALSE(times.add_up());
  EXPECT_FALSE(times.begin(Work::kernels, stream));
  FakeEvent::accepts = true;
}

}  // namespace
}  // namespace penstock::ring
