// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole chains: each folder here is a case. `chain.yaml` is run as it stands; every capture that it writes, out-x, must
// hold the records of expected-x, and its report the counts of expected.json. Each README tells where these come from.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chain/run.h"
#include "config/chain_file.h"
#include "golden/capture_file.h"

namespace penstock::golden {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(PENSTOCK_SOURCE_DIR "/tests/golden")) {
    if (fs::exists(entry.path() / "chain.yaml")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A chain's report, as expected.json has it: packets, what was dropped and why, what the readers left out.
json counts_of(const json& report, std::size_t unsupported) {
  json counts{{"packets", report["packets"]}, {"dropped", json::object()}, {"unsupported", unsupported}};
  const auto add = [&](const std::string& who, const json& reasons) {
    for (const auto& [reason, count] : reasons.items()) {
      if (count != 0) counts["dropped"][who + "." + reason] = count;
    }
  };
  for (const json& function : report["functions"]) add(function["name"], function["dropped"]["reasons"]);
  add("chain", report["dropped_by_chain"]);
  return counts;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = fs::path(PENSTOCK_SOURCE_DIR "/tests/golden") / GetParam();
    std::string name = (fs::temp_directory_path() / "penstock-golden-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    out_ = name;
    for (const auto& port : YAML::LoadFile(folder_ / "chain.yaml")["ports"]) {
      const YAML::Node pcap = port.second["pcap"];
      readers_ += pcap["read"] ? 1 : 0;
      if (pcap["write"]) written_[port.first.Scalar()] = pcap["write"].Scalar();
    }
  }
  void TearDown() override { fs::remove_all(out_); }

  /// Runs the chain with its captures written to a folder that goes away, and compares what does not depend on order.
  void run(std::vector<config::Override> overrides) {
    for (const auto& [port, name] : written_) overrides.push_back({"ports." + port + ".pcap.write", out_ / name, ""});
    auto loaded = config::load_chain(folder_ / "chain.yaml", {std::move(overrides), false, false});
    ASSERT_TRUE(loaded) << penstock::to_string(loaded.error());
    const std::atomic<bool> stop{false};
    const auto result = chain::run(loaded->chain, {}, stop);
    ASSERT_TRUE(result) << penstock::to_string(result.error());
    EXPECT_TRUE(result->errors.empty()) << penstock::to_string(result->errors);
    loaded->chain.ports.clear();  // closes the captures
    EXPECT_EQ(counts_of(result->report, loaded->unsupported.size()),
              json::parse(std::ifstream(folder_ / "expected.json")));
  }

  /// Each written capture beside its expectation.
  template <typename Compare>
  void for_each_capture(Compare compare) {
    for (const auto& [port, name] : written_) {
      ASSERT_TRUE(name.starts_with("out")) << name;
      SCOPED_TRACE(name);
      const CaptureFile out = read_capture_file(out_ / name);
      const CaptureFile expected = read_capture_file(folder_ / ("expected" + name.substr(3)));
      EXPECT_EQ(out.link_type, expected.link_type);
      compare(expected, out);
    }
  }

  void expect_the_same_flows() {
    for_each_capture([](const CaptureFile& expected, const CaptureFile& out) {
      auto flows = flows_of(out);
      for (const auto& [flow, records] : flows_of(expected)) {
        expect_the_same(records, flows[flow]);
        flows.erase(flow);
      }
      for (const auto& [flow, records] : flows) ADD_FAILURE() << "unexpected: " << to_string(records.front());
    });
  }

  static void expect_the_same(const std::vector<Record>& expected, const std::vector<Record>& out) {
    const auto [e, o] = std::mismatch(expected.begin(), expected.end(), out.begin(), out.end());
    if (e == expected.end() && o == out.end()) return;
    ADD_FAILURE() << fmt::format("record {} of {}, expected {}:\n  out      {}\n  expected {}", o - out.begin(),
                                 out.size(), expected.size(), o == out.end() ? "none" : to_string(*o),
                                 e == expected.end() ? "none" : to_string(*e));
  }

  fs::path folder_;
  fs::path out_;
  std::size_t readers_ = 0;
  std::map<std::string, std::string> written_;  // file names by port
};

TEST_P(Golden, SendsWhatIsExpected) {
  ASSERT_NO_FATAL_FAILURE(run({}));
  // Ports that read take turns: between them there is no order.
  if (readers_ > 1) return expect_the_same_flows();
  for_each_capture(
      [](const CaptureFile& expected, const CaptureFile& out) { expect_the_same(expected.records, out.records); });
}

TEST_P(Golden, TwoWorkersKeepFlowsInOrder) {
  ASSERT_NO_FATAL_FAILURE(run({{"run.workers", "2", ""}}));
  expect_the_same_flows();
}

TEST_P(Golden, BatchesOfOnePacketSendTheSame) {
  ASSERT_NO_FATAL_FAILURE(run({{"run.batch.packets", "1", ""}}));
  expect_the_same_flows();
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param; });

}  // namespace
}  // namespace penstock::golden
