// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/streams/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/measured_chain.h"
#include "experiments/session.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};

TEST(StreamsExperiment, MeasuresTheTwinsOfEachAlgorithm) {
  Options options;
  options.quick = true;
  options.repeats = 1;
  options.duration = milliseconds{30};
  options.workers = 1;
  options.only = {{"mode", {"cpu"}}};
  auto session = Session::open(streams_experiment(), options, kNeverStop);
  ASSERT_TRUE(session) << to_string(session.error());
  const Errors errors = session->run([](const Progress&) {});
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  ASSERT_EQ(session->record().points.size(), 10U) << "three algorithms, and intrusion detection by two, two sizes";
  for (const Point& point : session->record().points) {
    EXPECT_GT(point.number("gbps"), 0.001) << describe(point);
    EXPECT_EQ(point.number("dropped"), 0) << describe(point);
    EXPECT_EQ(point.text("checked"), "true") << describe(point);
  }
}

TEST(StreamsExperiment, ComparesOneBatchAtATimeWithSeveralOnAGpu) {
  const Setting setting{.quick = false, .workers = 16, .gpus = {}, .rules = {}, .routes = {}, .stop = &kNeverStop};
  const auto trial = streams_experiment().start(setting);
  ASSERT_TRUE(trial);
  std::map<std::string, std::size_t> one;
  std::map<std::string, std::size_t> several;
  for (const Point& point : (*trial)->plan()) {
    const std::string algorithm = point.text("algorithm");
    if (point.text("sweep") != "size") continue;
    if (point.text("mode") == "default_stream") {
      ++one[algorithm];
      EXPECT_EQ(point.number("workers"), 1);
      EXPECT_EQ(point.number("streams"), 1);
    } else if (point.text("mode") == "streams") {
      ++several[algorithm];
      EXPECT_EQ(point.number("workers"), 1) << "the same number of host threads";
      EXPECT_GT(*point.number("streams"), 1);
    } else if (point.text("mode") == "workers") {
      EXPECT_GT(*point.number("workers"), 1);
    }
  }
  EXPECT_EQ(one,
            (std::map<std::string, std::size_t>{{"cbc_sha1", 7U}, {"rules_147", 7U}, {"rules_147_aho_corasick", 7U}}))
      << "the paper's sizes";
  EXPECT_EQ(several, one);
}

/// An ESP function with one key.
std::string ipsec(const Workplace& place, const std::string& name, const std::string& key, bool inbound) {
  const std::string state = place.put(name,
                                      "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi 0x00000100 reqid 1 mode tunnel\n"
                                      "\treplay-window 32 \n\taead rfc4106(gcm(aes)) 0x" +
                                          key + " 128\n");
  const std::string policy = place.put("policy.txt",
                                       "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
                                       "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n");
  return inbound ? "[ipsec: {state: " + yaml_text(state) + ", direction: in, state_dir: none}]"
                 : "[ipsec: {state: " + yaml_text(state) + ", policy: " + yaml_text(policy) + ", state_dir: none}]";
}

TEST(ChainRunner, ComparesUndoneOutputWithTheInput) {
  constexpr const char* kKey = "202122232425262728292a2b2c2d2e2f30313233";
  constexpr const char* kOther = "202122232425262728292a2b2c2d2e2f30313234";
  ChainRunner runner(kNeverStop);
  const Workplace place;
  MeasuredChain chain;
  chain.functions = ipsec(place, "out.txt", kKey, false);
  chain.undone_by = ipsec(place, "in.txt", kKey, true);
  const auto right = runner.check(chain);
  EXPECT_TRUE(right) << to_string(right.error());

  chain.size = "128";
  chain.undone_by = ipsec(place, "other.txt", kOther, true);
  const auto wrong = runner.check(chain);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(to_string(wrong.error()), HasSubstr("differs from the input"));
}

}  // namespace
}  // namespace penstock::experiments
