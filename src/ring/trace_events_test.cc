// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/trace_events.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace penstock::ring {
namespace {

using Json = nlohmann::json;

const std::vector<SegmentShape> kSegments(2);

std::vector<Json> events_of(const Json& trace, const char* phase) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

TEST(TraceEvents, ShowTheWorkOfWorkersAndTheirStreams) {
  Timeline timeline(10);
  timeline.name_segments({"nids", "odd \"name\"\n\\"});
  SpanLog& first = timeline.add_stream({0, 3, 0}, kSegments, nullptr);
  SpanLog& second = timeline.add_stream({0, 3, 1}, kSegments, nullptr);
  first.add({.work = Work::to_device,
             .segment = 1,
             .packets = 20,
             .batch = 4,
             .crossed = {3000, 0},
             .enqueued_ns = 1'000'500,
             .ready_ns = 1'002'000,
             .end_ns = 1'010'250});
  first.add({.work = Work::kernels,
             .packets = 20,
             .crossed = {16, 80},
             .enqueued_ns = 1'001'000,
             .ready_ns = 1'010'250,
             .end_ns = 1'012'000});
  second.add({.work = Work::to_device,
              .crossed = {9, 0},
              .enqueued_ns = 1'003'000,
              .ready_ns = 1'008'250,
              .end_ns = 1'020'000});
  const Json trace = Json::parse(trace_events_json(timeline));
  const std::vector<Json> events = events_of(trace, "X");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0], Json::parse(R"({"name": "to device: odd \"name\"\n\\", "cat": "to device", "ph": "X", "ts": 1.5,
      "dur": 8.25, "pid": 3, "tid": 0, "args": {"batch": 4, "packets": 20, "bytes_to_device": 3000, "bytes_to_host": 0,
      "enqueued_us": 0.0, "waited_us": 0.0}})"))
      << "times are from when the first was enqueued";
  EXPECT_EQ(events[1]["tid"], 1);
  EXPECT_EQ(events[1]["name"], "to device: nids");
  EXPECT_EQ(events[1]["args"]["waited_us"], 2.0);
  EXPECT_EQ(events[2]["cat"], "kernels");
  EXPECT_EQ(events[2]["args"]["bytes_to_host"], 80);
  EXPECT_FALSE(events[2]["args"].contains("waited_us"));
  const std::vector<Json> names = events_of(trace, "M");
  ASSERT_EQ(names.size(), 3U) << "a process and its two threads";
  EXPECT_EQ(names[0]["args"]["name"], "worker 3 on GPU 0");
  EXPECT_EQ(names[2]["args"]["name"], "stream 1");
  EXPECT_EQ(trace["otherData"]["spans"], 3);
  EXPECT_EQ(trace["otherData"]["spans_before"], 0);
}

TEST(TraceEvents, AreAValidFileEvenIfEmpty) {
  Timeline timeline(10);
  EXPECT_TRUE(Json::parse(trace_events_json(timeline)).at("traceEvents").empty());
  static_cast<void>(timeline.add_stream({0, 0, 0}, kSegments, nullptr));
  EXPECT_EQ(Json::parse(trace_events_json(timeline)).at("traceEvents").size(), 2U);
}

TEST(TraceEvents, AreNoLongerThanWhatTheTimelineKeeps) {
  Timeline timeline(4);
  timeline.name_segments({"a", "b"});
  SpanLog& log = timeline.add_stream({}, kSegments, nullptr);
  for (std::int64_t i = 0; i < 100'000; ++i) log.add({.enqueued_ns = i, .ready_ns = i, .end_ns = i + 1});
  const std::string text = trace_events_json(timeline);
  EXPECT_LT(text.size(), 10'000U);
  EXPECT_EQ(Json::parse(text)["otherData"]["spans_before"], 100'000 - 4 * 2 * 3);
}

}  // namespace
}  // namespace penstock::ring
