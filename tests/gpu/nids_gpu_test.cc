// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Intrusion detection with payloads scanned on a GPU: the same alerts as on the CPU alone, field by field, and the same
// drops, in whatever way batches cross and however small they are.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "config/chain_file.h"
#include "golden/golden_case.h"
#include "gpu/way.h"
#include "nids/common_traffic.h"
#include "port/testing/port_harness.h"
#include "run/run.h"

namespace penstock::on_gpu {
namespace {

namespace fs = std::filesystem;
using nids::test::kCommonRules;
using port::testing::TemporaryFolder;

std::vector<std::string> shipped_captures() { return nids::test::shipped_captures(golden::root()); }

struct Scan {
  std::vector<std::string> alerts;  // EVE lines, sorted
  Json report;
};

/// Scans a capture with a chain of only nids. `run`: lines of the chain file's run section.
Scan scan(const std::string& capture, const std::string& nids, const std::string& run) {
  const TemporaryFolder folder;
  const std::string eve = folder / "eve.json";
  const std::string chain = folder / "chain.yaml";
  const std::string text =
      fmt::format("ports:\n  in: {{pcap: {{read: \"{}\"}}}}\nchain:\n  - nids: {{{}}}\nrun:\n{}outputs: {{eve: {}}}\n",
                  capture, nids, run, eve);
  Scan result;
  if (!write_text_file(chain, text)) throw std::runtime_error("no chain file");
  auto loaded = config::load_chain(chain, {});
  if (!loaded) throw std::runtime_error(to_string(loaded.error()));
  static const std::atomic<bool> kNever{false};
  auto ran = run::run(loaded->chain, {}, kNever);
  if (!ran) throw std::runtime_error(to_string(ran.error()));
  result.report = report::to_json(ran->report);
  loaded = tl::unexpected(Errors{});  // closes the chain, so that all logs are written
  const auto lines = read_text_file(eve);
  if (!lines) throw std::runtime_error(to_string(lines.error()));
  std::istringstream stream(*lines);
  for (std::string line; std::getline(stream, line);) {
    Json event = Json::parse(line);
    if (event["event_type"] == "stats") continue;
    event.erase("flow_id");  // it depends on which worker came first
    result.alerts.push_back(event.dump());
  }
  std::ranges::sort(result.alerts);
  return result;
}

std::string on_cpu(unsigned workers = 1) { return fmt::format("  processor: cpu\n  workers: {}\n", workers); }
/// With a short waiting queue: pinning one of the default size takes longer than scanning a shipped capture.
std::string on_this(const Way& way, const char* packets, unsigned workers) {
  return fmt::format(
      "  processor: gpu\n  transfer: {}\n  frames: {}\n  sharing: {}\n  workers: {}\n"
      "  batch: {{packets: {}, bytes: 512KiB}}\n  queue: {{bytes: 1MiB}}\n",
      transfer_of(way), frames_of(way), sharing_of(way), workers, packets);
}

void expect_the_same(const std::string& capture, const std::string& nids, const Scan& expected,
                     const std::string& run) {
  SCOPED_TRACE(capture + ", " + run);
  const Scan got = scan(capture, nids, run);
  ASSERT_EQ(got.alerts.size(), expected.alerts.size());
  for (std::size_t i = 0; i < expected.alerts.size(); ++i) ASSERT_EQ(got.alerts[i], expected.alerts[i]);
  EXPECT_EQ(got.report["packets"].dump(), expected.report["packets"].dump());
  const auto& inspection = got.report["functions"][0]["details"]["inspection"];
  const std::uint64_t scanned = inspection["scanned_on_gpu"];
  EXPECT_EQ(scanned, got.report["packets"]["in"].get<std::uint64_t>()) << "not all were scanned on the GPU";
}

class NidsOnGpu : public ::testing::Test {
 protected:
  std::string rules(const std::string& text) {
    const std::string path = folder_ / "common.rules";
    EXPECT_TRUE(write_text_file(path, text));
    return fmt::format("rules: [\"{}\"], payload: true", path);
  }
  TemporaryFolder folder_;
};

TEST_F(NidsOnGpu, AlertsAsItsTwinOnEveryShippedCapture) {
  const std::string nids = rules(kCommonRules);
  std::size_t alerts = 0;
  std::size_t next_way = 0;
  for (const std::string& capture : shipped_captures()) {
    const Scan expected = scan(capture, nids, on_cpu());
    alerts += expected.alerts.size();
    // Three ways for each: starting a run takes longer than such a capture.
    for (int n = 0; n < 3; ++n) {
      const Way& way = kWays[next_way++ % std::size(kWays)];
      ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids, expected, on_this(way, "4096", 1)));
    }
    ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids, expected, on_this(kWays[2], "1", 1)));
    const Scan by_three = scan(capture, nids, on_cpu(3));
    ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids, by_three, on_this(kWays[2], "33", 3)));
    if (HasFailure()) return;
  }
  EXPECT_GT(alerts, 1000U);
}

TEST_F(NidsOnGpu, AlertsAsItsTwinByThePapersAlgorithm) {
  const std::string nids = rules(kCommonRules);
  std::size_t alerts = 0;
  std::size_t next_way = 0;
  for (const std::string& capture : shipped_captures()) {
    const Scan expected = scan(capture, nids, on_cpu());
    alerts += expected.alerts.size();
    const std::string run = on_this(kWays[next_way++ % std::size(kWays)], "33", 1);
    ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids + ", gpu_matcher: aho_corasick", expected, run));
    if (HasFailure()) return;
  }
  EXPECT_GT(alerts, 1000U);
}

TEST_F(NidsOnGpu, AlertsAsItsTwinWithTheStateOfFlowsWhichIsCountedAsItCrosses) {
  const std::string nids = rules(kCommonRules);
  std::uint64_t states = 0;
  std::size_t next_way = 0;
  for (const std::string& capture : shipped_captures()) {
    const Scan expected = scan(capture, nids, on_cpu());
    // Three ways for each, so that each way is used with many captures.
    for (int n = 0; n < 3; ++n) {
      const std::string run = on_this(kWays[next_way++ % std::size(kWays)], "33", 1);
      ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids + ", flow_state: automaton", expected, run));
      const Json with = scan(capture, nids + ", flow_state: automaton", run).report;
      const Json without = scan(capture, nids, run).report;
      EXPECT_EQ(
          with["pcie"]["to_device_bytes"].get<std::uint64_t>(),
          without["pcie"]["to_device_bytes"].get<std::uint64_t>() + 8 * with["packets"]["in"].get<std::uint64_t>())
          << capture << ", " << run;
      EXPECT_EQ(with["pcie"]["to_host_bytes"], without["pcie"]["to_host_bytes"]);
      states += with["functions"][0]["details"]["inspection"]["flow_states"].get<std::uint64_t>();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(states, 100U);
}

TEST_F(NidsOnGpu, DropsAsItsTwin) {
  const std::string nids = rules(
                               "drop tcp any any -> any any (msg:\"a\"; content:\"GET \"; sid:1;)\n"
                               "drop udp any any -> any any (msg:\"b\"; content:\"example\"; sid:2;)\n") +
                           ", action: drop";
  std::uint64_t dropped = 0;
  for (const std::string& capture : shipped_captures()) {
    const Scan expected = scan(capture, nids, on_cpu());
    dropped += expected.report["packets"]["dropped"].get<std::uint64_t>();
    for (const char* const packets : {"1", "33"}) {
      ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids, expected, on_this(kWays[2], packets, 1)));
    }
  }
  EXPECT_GT(dropped, 20U);
}

TEST_F(NidsOnGpu, AlertsOnPacketsByThemselvesAsItsTwin) {
  const std::string nids = rules(
                               "alert tcp-pkt any any -> any any (msg:\"a\"; content:\"GET \"; sid:1;)\n"
                               "alert udp any any -> any any (msg:\"b\"; content:\"example\"; sid:2;)\n"
                               "alert icmp any any -> any any (msg:\"c\"; content:\"abc\"; sid:3;)\n") +
                           ", tracking: packets";
  std::size_t alerts = 0;
  for (const std::string& capture : shipped_captures()) {
    const Scan expected = scan(capture, nids, on_cpu());
    alerts += expected.alerts.size();
    ASSERT_NO_FATAL_FAILURE(expect_the_same(capture, nids, expected, on_this(kWays[2], "33", 1)));
  }
  EXPECT_GT(alerts, 20U);
}

/// With PENSTOCK_CORPUS: real and generated rules on real captures.
TEST_F(NidsOnGpu, AlertsAsItsTwinOnTheCorpus) {
  const char* const corpus = std::getenv("PENSTOCK_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "PENSTOCK_CORPUS names no folder";
  const fs::path root(corpus);
  std::vector<std::pair<std::string, std::string>> scans;  // rules, capture
  for (const char* const of : {"ids/generated/test.rules", "ids/mix/payload-147.rules", "ids/mix/payload-1969.rules"}) {
    if (fs::exists(root / of) && fs::exists(root / "captures/mix.pcap.gz")) {
      scans.emplace_back((root / of).string(), (root / "captures/mix.pcap.gz").string());
    }
  }
  for (const char* const of : {"ids/a", "ids/b", "ids/d"}) {
    if (!fs::exists(root / of)) continue;
    for (const auto& entry : fs::directory_iterator(root / of)) {
      scans.emplace_back((entry.path() / "test.rules").string(), (entry.path() / "in.pcap").string());
    }
  }
  ASSERT_FALSE(scans.empty());
  std::size_t on_gpu_scans = 0;
  for (const auto& [of, capture] : scans) {
    SCOPED_TRACE(of);
    const std::string nids = fmt::format("rules: [\"{}\"]", of);
    const Scan expected = scan(capture, nids, on_cpu());
    const std::string on_gpu = on_this(kWays[2], "1000", 1);
    Scan got;
    try {
      got = scan(capture, nids, on_gpu);
    } catch (const std::runtime_error& error) {
      // Rules without a content have no literals to search for.
      ASSERT_NE(std::string(error.what()).find("no function of the chain has a GPU stage"), std::string::npos)
          << error.what();
      continue;
    }
    ++on_gpu_scans;
    EXPECT_TRUE(got.alerts == expected.alerts) << got.alerts.size() << " alerts, and " << expected.alerts.size();
    const bool large = capture.ends_with(".gz");
    if (!large) continue;
    EXPECT_GT(expected.alerts.size(), 100U);
    EXPECT_TRUE(scan(capture, nids, on_this(kWays[4], "33", 1)).alerts == expected.alerts);
  }
  EXPECT_GE(on_gpu_scans, scans.size() / 2);
}

}  // namespace
}  // namespace penstock::on_gpu
