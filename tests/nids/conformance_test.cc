// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Alerts that a reference engine really gave (the corpus' folder ids): cases of a public conformance suite, rules made
// from payloads, and real rules on a mix of real captures. Differences are listed here, with the reason. A difference
// that is not listed fails the test, and so does a listed one that no longer exists.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nids/scanner.h"

namespace penstock::nids::test {
namespace {

namespace fs = std::filesystem;

/// By the case's folder: why its alerts differ from the reference engine's.
const std::map<std::string, std::string>& known_differences() {
  static const std::map<std::string, std::string> known{};
  return known;
}

std::vector<std::string> cases() {
  std::vector<std::string> found;
  const std::string folder = corpus();
  if (folder.empty()) return found;
  for (const char* const kind : {"a", "b", "d"}) {
    for (const auto& entry : fs::directory_iterator(folder + "/ids/" + kind)) {
      found.push_back(std::string(kind) + "/" + entry.path().filename().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

nlohmann::json json_of(const std::string& path) { return nlohmann::json::parse(std::ifstream(path)); }

RuleSet rules_from(const std::string& path) {
  RuleFiles files;
  files.rules = {path};
  auto rules = read_rules(files);
  EXPECT_TRUE(rules) << path;
  return rules ? std::move(*rules) : RuleSet();
}

class Case : public testing::TestWithParam<std::string> {};

TEST_P(Case, AlertsAsTheReferenceEngineDoes) {
  const std::string folder = corpus() + "/ids/" + GetParam();
  AlertCounts expected;
  const nlohmann::json said = json_of(folder + "/expected.json");
  for (const auto& [sid, count] : said.at("expected").items()) {
    if (count.get<std::uint64_t>() != 0) expected[static_cast<std::uint32_t>(std::stoul(sid))] = count;
  }
  ScanOptions options;
  options.tracker.every_version = false;  // the reference engine inspects only the policy's version
  Scanner scanner(rules_from(folder + "/test.rules"), options);
  ASSERT_TRUE(scanner.capture(folder + "/in.pcap"));
  const auto known = known_differences().find(GetParam());
  if (known == known_differences().end()) {
    EXPECT_EQ(scanner.counts(), expected);
  } else {
    EXPECT_NE(scanner.counts(), expected) << "is listed as different: " << known->second;
  }
}

TEST_P(Case, LosesNoAlertsIfEveryVersionOfOverlapsIsInspected) {
  const std::string folder = corpus() + "/ids/" + GetParam();
  ScanOptions options;
  options.tracker.every_version = false;
  Scanner of_policy(rules_from(folder + "/test.rules"), options);
  ASSERT_TRUE(of_policy.capture(folder + "/in.pcap"));
  Scanner of_all(rules_from(folder + "/test.rules"));
  ASSERT_TRUE(of_all.capture(folder + "/in.pcap"));
  for (const auto& [sid, count] : of_policy.counts()) {
    const auto found = of_all.counts().find(sid);
    EXPECT_GE(found == of_all.counts().end() ? 0 : found->second, count) << sid;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Case, testing::ValuesIn(cases()), [](const auto& param) {
  std::string name = param.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Case);  // if there is no corpus

TEST(Conformance, ListsNoDifferenceForACaseThatDoesNotExist) {
  if (corpus().empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  const std::vector<std::string> all = cases();
  for (const auto& [name, reason] : known_differences()) {
    EXPECT_NE(std::find(all.begin(), all.end(), name), all.end()) << name;
    EXPECT_FALSE(reason.empty()) << name;
  }
  EXPECT_LE(known_differences().size() * 20, all.size());  // at least 95 % agree
}

TEST(Conformance, GeneratedRulesAlertAsTheReferenceEngineDoes) {
  const std::string folder = corpus();
  if (folder.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  ScanOptions options;
  options.detection.most_alerts = 255;
  Scanner scanner(rules_from(folder + "/ids/generated/test.rules"), options);
  ASSERT_TRUE(scanner.capture(folder + "/captures/mix.pcap.gz"));
  const std::map<std::uint32_t, std::string> known{
      {9000516, "the end of a stream of TLS, in bytes that were never acknowledged"},
      {9000299, "a packet more, whose payload the reference engine does not look at; why is not known"},
      {9000841, "the same packet"},
      {9000575, "the payload around a packet in Teredo is inspected as well; port 4790 is VXLAN's too"},
      {9001462, "the same"}};
  const nlohmann::json said = json_of(folder + "/ids/generated/expected.json");
  for (const auto& [text, wanted] : said.items()) {
    const auto sid = static_cast<std::uint32_t>(std::stoul(text));
    const auto found = scanner.counts().find(sid);
    const std::uint64_t count = found != scanner.counts().end() ? found->second : 0;
    const auto want = wanted.at("count").get<std::uint64_t>();
    const bool agrees = wanted.at("exact").get<bool>() ? count == want : (count != 0) == (want != 0);
    const auto listed = known.find(sid);
    EXPECT_EQ(agrees, listed == known.end())
        << sid << ": found " << count << ", wanted " << want
        << (listed != known.end() ? ", though listed as different: " + listed->second : "");
  }
}

TEST(Conformance, RealRulesAlertAsTheReferenceEngineDoesOnAMixOfRealCaptures) {
  const std::string folder = corpus();
  if (folder.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  AlertCounts expected;
  const nlohmann::json said = json_of(folder + "/ids/mix/payload-1969.expected.json");
  for (const auto& [sid, count] : said.items()) {
    expected[static_cast<std::uint32_t>(std::stoul(sid))] = count;
  }
  Scanner scanner(rules_from(folder + "/ids/mix/payload-1969.rules"));
  ASSERT_TRUE(scanner.capture(folder + "/captures/mix.pcap.gz"));
  EXPECT_EQ(scanner.counts(), expected);
}

}  // namespace
}  // namespace penstock::nids::test
