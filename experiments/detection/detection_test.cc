// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/detection/detection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>
#include <string>

#include "experiments/conversations.h"
#include "experiments/session.h"
#include "experiments/workload.h"
#include "nf/nids/rules/rule_reader.h"
#include "port/capture_reader.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;

const std::atomic<bool> kNeverStop{false};

Options quick_options() {
  Options options;
  options.quick = true;
  options.repeats = 1;
  options.duration = milliseconds{20};
  options.workers = 1;
  options.only = {{"processor", {"cpu"}}};
  return options;
}

TEST(DetectionExperiment, MeasuresTheCpuTwinAndALibrary) {
  auto session = Session::open(detection_experiment(), quick_options(), kNeverStop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run([](const Progress&) {});
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  std::set<std::string> modes;
  for (const Point& point : session->record().points) {
    modes.insert(point.text("mode"));
    EXPECT_GT(point.number("gbps"), 0.001) << describe(point);
  }
  EXPECT_EQ(modes, (std::set<std::string>{"cpu", "hyperscan"}));
}

TEST(DetectionExperiment, TakesTheUsersRules) {
  const Workplace place;
  Options options = quick_options();
  options.rules = place.put("own.rules", detection_rules_text(12, true));
  auto session = Session::open(detection_experiment(), options, kNeverStop);
  ASSERT_TRUE(session) << to_string(session.error());
  EXPECT_TRUE(session->run([](const Progress&) {}).empty());
  ASSERT_FALSE(session->record().points.empty());
  for (const Point& point : session->record().points) EXPECT_EQ(point.number("rules"), 12);
}

TEST(DetectionExperiment, RefusesAFileWithoutRules) {
  const Workplace place;
  Options options = quick_options();
  options.rules = place.put("own.rules", "# none\n");
  const auto session = Session::open(detection_experiment(), options, kNeverStop);
  ASSERT_FALSE(session);
  EXPECT_NE(to_string(session.error()).find("no usable rules"), std::string::npos);
}

TEST(DetectionWorkload, AllRulesLoadAndInspectOnlyPacketsIfRequested) {
  const auto rules = nids::read_rules_text(detection_rules_text(2000, true));
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->rules.size(), 2000U);
  for (const nids::Rule& rule : rules->rules) EXPECT_NE(rule.protocol, nids::RuleProtocol::tcp);
}

TEST(Conversations, EachHasAHandshakeItsResponsesAndAnEnd) {
  const Workplace place;
  const std::string path =
      place.put("c.pcap", conversations_capture({.connections = 30, .responses = 5, .at_once = 7}));
  port::ReadControl control;
  auto captures = port::CaptureSequence::open({path}, control);
  ASSERT_TRUE(captures);
  port::CapturedFrame frame;
  std::size_t packets = 0;
  std::size_t syn = 0;
  std::size_t fin = 0;
  std::size_t large = 0;
  while (captures->next(frame)) {
    ++packets;
    const std::uint8_t flags = frame.bytes[47];
    syn += (flags & 2) != 0 ? 1 : 0;
    fin += (flags & 1) != 0 ? 1 : 0;
    large += frame.bytes.size() == 1514 ? 1 : 0;
  }
  EXPECT_EQ(syn, 60U);
  EXPECT_EQ(fin, 60U);
  EXPECT_EQ(large, 150U);
  EXPECT_EQ(packets, 30U * (4 + 5 + 3 + 3)) << "an acknowledgement for every second response";
}

/*  connection 1 … 9 ─ two minutes ─ connection 10 │ played again: connection 1 … 9 ─ …  */
TEST(Conversations, AreReplayedOnlyAfterTheyAreForgotten) {
  const Workplace place;
  const std::string path = place.put("c.pcap", conversations_capture({.connections = 10, .responses = 3}));
  port::ReadControl control;
  auto captures = port::CaptureSequence::open({path}, control);
  ASSERT_TRUE(captures);
  port::CapturedFrame frame;
  std::vector<std::uint64_t> times;
  while (captures->next(frame)) times.push_back(frame.timestamp_ns);
  ASSERT_EQ(times.size(), 10U * (4 + 3 + 2 + 3));
  const std::size_t last = times.size() - times.size() / 10;
  EXPECT_GT(times[last] - times[last - 1], 100'000'000'000U);
  EXPECT_LT(times[last - 1] - times[0], 1'000'000'000U);
}

TEST(Conversations, HaveNoFrameLargerThanTheResponses) {
  const Workplace place;
  const std::string path = place.put("c.pcap", conversations_capture({.connections = 2, .frame_bytes = 60}));
  port::ReadControl control;
  auto captures = port::CaptureSequence::open({path}, control);
  ASSERT_TRUE(captures);
  port::CapturedFrame frame;
  while (captures->next(frame)) EXPECT_EQ(frame.bytes.size(), 60U);
}

}  // namespace
}  // namespace penstock::experiments
