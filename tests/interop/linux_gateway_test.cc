// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The same packets through a Linux gateway in a network namespace, and through our chain with its routes, neighbours
// and rules. The output must be equal, byte for byte, and every rule must have matched as often. Skipped if namespaces,
// iptables or Python are not available.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "config/chain_file.h"
#include "golden/capture_file.h"
#include "run/run.h"

namespace penstock {
namespace {

using golden::CaptureFile;
using golden::read_capture_file;
using golden::Record;

constexpr std::string_view kChain = R"(
ports:
  lan: {pcap: {read: lan.pcap, write: out-lan.pcap}}
  wan: {pcap: {read: wan.pcap, write: out-wan.pcap}}
  dmz: {pcap: {read: dmz.pcap, write: out-dmz.pcap}}
chain:
  - router:
      routes: [routes.txt, local.txt]
      neighbours: neighbours.txt
      interfaces: {lo: none}
      macs: {lan: "02:00:00:00:01:01", wan: "02:00:00:00:02:02", dmz: "02:00:00:00:03:01"}
  - firewall: {rules: counted.txt}
)";

/// Number of matches of each rule with a verdict, by its text, as `iptables-save -c` counts: "[5:420] -A FORWARD …".
std::map<std::string, std::uint64_t> counts_of_the_kernel(const std::string& path) {
  std::map<std::string, std::uint64_t> counts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t rule = line.find("] -A ");
    const std::size_t target = line.find(" -j ");
    if (rule == std::string::npos || target == std::string::npos) continue;
    const std::string word = line.substr(target + 4, line.find(' ', target + 4) - target - 4);
    const std::uint64_t packets = std::stoull(line.substr(1));
    if (packets != 0 && (word == "ACCEPT" || word == "DROP" || word == "REJECT"))
      counts[line.substr(rule + 2)] += packets;
  }
  return counts;
}

/// Runs both once for all tests in this file.
class LinuxGateway : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = ::testing::TempDir() + "/linux_gateway_XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    const std::string script =
        "unshare -rn " PENSTOCK_SOURCE_DIR "/tests/interop/linux_gateway.sh " PENSTOCK_SOURCE_DIR;
    const int status = std::system((script + " " + directory_ + " >" + directory_ + "/log 2>&1").c_str());
    std::stringstream log;
    log << std::ifstream(directory_ + "/log").rdbuf();
    log_ = log.str();
    // 1: unshare itself is not permitted; 77: the script lacks a dependency; 127: unshare does not exist.
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    skipped_ = code == 77 || code == 127 || log_.starts_with("unshare:");
    if (skipped_) return;
    ASSERT_EQ(code, 0) << log_;
    std::ofstream(directory_ + "/chain.yaml") << kChain;
    auto loaded = config::load_chain(directory_ + "/chain.yaml", {{}, true, false});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    const std::atomic<bool> stop{false};
    const auto result = run::run(loaded->chain, {}, stop);
    ASSERT_TRUE(result) << to_string(result.error());
    report_ = report::to_json(result->report);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }
  void SetUp() override {
    if (skipped_) GTEST_SKIP() << "no network namespace with virtual links, iptables and Python here: " << log_;
    ASSERT_FALSE(report_.is_null()) << log_;
  }

  /// The flows, separated by input port, because there is no order between ports.
  static auto flows_by_port(const CaptureFile& out) {
    static const auto arrivals = [] {
      std::map<std::uint64_t, std::string> ports;  // by time: all packets have different times
      for (const std::string port : {"lan", "wan", "dmz"}) {
        for (const Record& record : read_capture_file(directory_ + "/" + port + ".pcap").records)
          ports[record.time_ns] = port;
      }
      return ports;
    }();
    std::map<std::string, std::vector<Record>> flows;
    for (const auto& [flow, records] : golden::flows_of(out)) {
      for (const Record& record : records) flows[arrivals.at(record.time_ns) + flow].push_back(record);
    }
    return flows;
  }

  static inline std::string directory_;
  static inline std::string log_;
  static inline bool skipped_ = false;
  static inline nlohmann::json report_;
};

TEST_F(LinuxGateway, ForwardsTheSamePacketsInTheSameOrderOfEachFlow) {
  std::size_t forwarded = 0;
  for (const std::string port : {"lan", "wan", "dmz"}) {
    const CaptureFile kernel = read_capture_file(directory_ + "/expected-" + port + ".pcap");
    const CaptureFile ours = read_capture_file(directory_ + "/out-" + port + ".pcap");
    auto flows = flows_by_port(ours);
    for (const auto& [flow, expected] : flows_by_port(kernel)) {
      const std::vector<Record>& packets = flows[flow];
      EXPECT_EQ(packets.size(), expected.size());
      for (std::size_t i = 0; i < std::min(packets.size(), expected.size()); ++i)
        ASSERT_EQ(to_string(packets[i]), to_string(expected[i])) << "by " << port;
      flows.erase(flow);
    }
    for (const auto& [flow, packets] : flows) ADD_FAILURE() << "not by " << port << ": " << to_string(packets.front());
    forwarded += kernel.records.size();
  }
  EXPECT_EQ(report_["packets"]["forwarded"], forwarded);
  EXPECT_GT(forwarded, 2000U);
}

TEST_F(LinuxGateway, MatchesEveryRuleEquallyOften) {
  std::map<std::string, std::uint64_t> ours;
  for (const auto& rule : report_["functions"][1]["details"]["rules"])
    ours[rule["text"]] += rule["packets"].get<std::uint64_t>();
  const auto kernel = counts_of_the_kernel(directory_ + "/counted.txt");
  EXPECT_GT(kernel.size(), 20U);
  EXPECT_EQ(ours, kernel);
}

}  // namespace
}  // namespace penstock
