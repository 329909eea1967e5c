// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "experiments/bars.h"

namespace penstock::experiments {
namespace {

using ring::Span;
using ring::Work;

const std::vector<ring::SegmentShape> kSegments(2);

/// `periods` times, 100 us apart: two streams want the copy engine, 10 us apart, and each occupies it for 40 us.
void add_pairs(ring::Timeline& timeline, std::int64_t periods) {
  timeline.name_segments({"firewall, nids", "router"});
  ring::SpanLog& one = timeline.add_stream({0, 0, 0}, kSegments, nullptr);
  ring::SpanLog& other = timeline.add_stream({0, 1, 0}, kSegments, nullptr);
  for (std::int64_t i = 0; i < periods; ++i) {
    const std::int64_t at = i * 100'000;
    one.add({.work = Work::to_device, .crossed = {3000, 0}, .ready_ns = at, .end_ns = at + 40'000});
    one.add({.work = Work::kernels, .crossed = {7, 9}, .ready_ns = at + 40'000, .end_ns = at + 70'000});
    other.add(
        {.work = Work::to_device, .segment = 1, .crossed = {1000, 0}, .ready_ns = at + 10'000, .end_ns = at + 80'000});
    other.add({.work = Work::to_host, .segment = 1, .crossed = {0, 5}, .ready_ns = at + 80'000, .end_ns = at + 90'000});
  }
}

TEST(Transfers, AreThoseToTheDeviceInTheMiddleOfTheRun) {
  ring::Timeline timeline(10'000);
  add_pairs(timeline, 1000);
  const Point results = transfers_of(timeline);
  EXPECT_NEAR(*results.number("transfers_per_ms"), 20, 0.1);
  EXPECT_DOUBLE_EQ(*results.number("transfer_bytes"), 2000);
  EXPECT_DOUBLE_EQ(*results.number("transfer_us"), (40.0 + 70.0) / 2);
  EXPECT_DOUBLE_EQ(*results.number("waited_us"), 15) << "the second of a pair waits for 30";
  EXPECT_DOUBLE_EQ(*results.number("waiting"), 50);
  EXPECT_DOUBLE_EQ(*results.number("transfer_us_firewall"), 40);
  EXPECT_DOUBLE_EQ(*results.number("transfer_us_router"), 70);
  EXPECT_DOUBLE_EQ(*results.number("transfer_bytes_firewall"), 3000);
  EXPECT_DOUBLE_EQ(*results.number("transfer_bytes_router"), 1000);
  EXPECT_DOUBLE_EQ(*results.number("waited_us_firewall"), 0);
  EXPECT_DOUBLE_EQ(*results.number("waited_us_router"), 30);
  EXPECT_NEAR(*results.number("transfer_percent"), 100 * (40.0 + 70 + 10) / (40 + 70 + 10 + 30), 0.1);
  const auto rows = parse_bars(results.text("transfers"));
  ASSERT_TRUE(rows) << results.text("transfers");
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].name, "firewall, nids");
  EXPECT_EQ((*rows)[0].bars.size(), 20U) << "two milliseconds";
  for (const Bar& bar : (*rows)[1].bars) {
    EXPECT_EQ(bar.waits, 30);
    EXPECT_EQ(bar.length, 70);
    EXPECT_GE(bar.begin, 0);
    EXPECT_LT(bar.begin, 2000);
  }
}

TEST(Transfers, AreEmptyIfNothingWasTransferred) {
  ring::Timeline timeline(10);
  EXPECT_TRUE(transfers_of(timeline).empty());
  timeline.name_segments({"router"});
  ring::SpanLog& log = timeline.add_stream({}, kSegments, nullptr);
  for (std::int64_t i = 0; i < 10; ++i) log.add({.work = Work::kernels, .ready_ns = i, .end_ns = i + 1});
  EXPECT_TRUE(transfers_of(timeline).empty()) << "by kernels";
}

TEST(Transfers, AreDrawnUpToTheRecordsLimit) {
  ring::Timeline timeline(100'000);
  timeline.name_segments({"router"});
  ring::SpanLog& log = timeline.add_stream({}, kSegments, nullptr);
  for (std::int64_t i = 0; i < 100'000; ++i) {
    log.add({.work = Work::to_device, .crossed = {1, 0}, .ready_ns = i * 1000, .end_ns = i * 1000 + 900});
  }
  const Point results = transfers_of(timeline);
  EXPECT_NEAR(*results.number("transfers_per_ms"), 1000, 1) << "all of them count";
  EXPECT_DOUBLE_EQ(*results.number("waiting"), 0);
  const auto rows = parse_bars(results.text("transfers"));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().bars.size(), 400U);
}

}  // namespace
}  // namespace penstock::experiments
