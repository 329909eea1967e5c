// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder with a chain file that reads captures and writes captures and alerts. A test redirects the outputs to
// another folder and compares them.

#pragma once

#include <fmt/format.h>
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
#include <utility>
#include <vector>

#include "bundle.h"
#include "config/chain_file.h"
#include "golden/capture_file.h"
#include "nf/catalog.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "run/run.h"

namespace penstock::golden {

/// The root of tests/ and examples/: the bundle that contains this program, or else the source tree.
[[nodiscard]] inline const std::filesystem::path& root() {
  static const std::filesystem::path found = bundle().value_or(PENSTOCK_SOURCE_DIR);
  return found;
}

/// The names of the cases in tests/golden.
[[nodiscard]] inline std::vector<std::string> cases() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root() / "tests/golden", none)) {
    if (std::filesystem::exists(entry.path() / "chain.yaml")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A folder for the outputs of a run, deleted with its contents by the destructor.
class OutFolder {
 public:
  OutFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-golden-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  OutFolder(const OutFolder&) = delete;
  OutFolder& operator=(const OutFolder&) = delete;
  ~OutFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct CaseRun {
  nlohmann::ordered_json report;
  std::size_t unsupported = 0;  // constructs that readers left out
};

/// The functions of the catalog, set up so that each run gives the same packets.
inline function::NfKinds repeatable_kinds() {
  static const std::vector<const function::NfKind*> kKinds = [] {
    std::vector<const function::NfKind*> kinds(nf::catalog().begin(), nf::catalog().end());
    std::replace(kinds.begin(), kinds.end(), &ipsec::ipsec_kind(), &ipsec::testing::fixed_iv_kind());
    return kinds;
  }();
  return kKinds;
}

class Case {
 public:
  explicit Case(std::filesystem::path folder) : folder_(std::move(folder)) {
    const YAML::Node file = YAML::LoadFile(folder_ / "chain.yaml");
    for (const auto& port : file["ports"]) {
      const YAML::Node pcap = port.second["pcap"];
      readers_ += pcap["read"] ? 1 : 0;
      if (pcap["write"]) written_[port.first.Scalar()] = pcap["write"].Scalar();
    }
    note_functions(file["chain"]);
    for (const auto& output : file["outputs"]) {
      if (output.first.Scalar() != "append") logs_.push_back(output.first.Scalar());
    }
  }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// The number of ports that read. One worker merges them by time; several workers divide them.
  [[nodiscard]] std::size_t readers() const { return readers_; }
  [[nodiscard]] const std::map<std::string, std::string>& written() const { return written_; }  // file names by port
  [[nodiscard]] bool has_router() const { return routes_; }
  /// Packets get numbers in the order in which they come to it: with several workers, others.
  [[nodiscard]] bool numbers_packets() const { return numbers_; }

  /// Whether the chain has the outputs eve and fast_log.
  [[nodiscard]] bool writes_alerts() const { return std::ranges::find(logs_, "fast_log") != logs_.end(); }

  /// Runs the chain, with its captures and logs redirected to `out`.
  void run(const OutFolder& out, std::vector<config::Override> overrides, CaseRun& into) const {
    for (const auto& [port, name] : written_) overrides.push_back({"ports." + port + ".pcap.write", out / name, ""});
    for (const std::string& log : logs_) overrides.push_back({"outputs." + log, out / log, ""});
    auto loaded = config::load_chain(folder_ / "chain.yaml", {std::move(overrides), false, false, repeatable_kinds()});
    ASSERT_TRUE(loaded) << penstock::to_string(loaded.error());
    const std::atomic<bool> stop{false};
    auto result = run::run(loaded->chain, {}, stop);
    ASSERT_TRUE(result) << penstock::to_string(result.error());
    EXPECT_TRUE(result->errors.empty()) << penstock::to_string(result->errors);
    loaded->chain.ports.clear();  // closes the captures
    into = {report::to_json(result->report), loaded->unsupported.size()};
  }

 private:
  /// Those of arms too.
  void note_functions(const YAML::Node& chain) {
    for (const auto& function : chain) {
      if (!function.IsMap()) continue;
      routes_ |= function["router"].IsDefined();
      numbers_ |= function["ipsec"].IsDefined() && !function["ipsec"]["direction"].IsDefined();
      for (const auto& arm : function["fork"]) note_functions(arm["chain"]);
    }
  }

  std::filesystem::path folder_;
  std::size_t readers_ = 0;
  std::map<std::string, std::string> written_;
  std::vector<std::string> logs_;
  bool routes_ = false;
  bool numbers_ = false;
};

inline void expect_the_same(const std::vector<Record>& expected, const std::vector<Record>& out) {
  const auto [e, o] = std::mismatch(expected.begin(), expected.end(), out.begin(), out.end());
  if (e == expected.end() && o == out.end()) return;
  ADD_FAILURE() << fmt::format("record {} of {}, expected {}:\n  out      {}\n  expected {}", o - out.begin(),
                               out.size(), expected.size(), o == out.end() ? "none" : to_string(*o),
                               e == expected.end() ? "none" : to_string(*e));
}

inline void expect_the_same_flows(const CaptureFile& expected, const CaptureFile& out) {
  auto flows = flows_of(out);
  for (const auto& [flow, records] : flows_of(expected)) {
    expect_the_same(records, flows[flow]);
    flows.erase(flow);
  }
  for (const auto& [flow, records] : flows) ADD_FAILURE() << "unexpected: " << to_string(records.front());
}

/// The lines of a text file. The test fails if it does not exist.
[[nodiscard]] inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The part of a fast.log line that does not depend on which packet of a host came first: "[1:1000008:1] Traceroute".
[[nodiscard]] inline std::string rule_of(const std::string& alert) {
  const std::size_t from = alert.find("[**] ");
  const std::size_t to = alert.find(" [**]", from + 1);
  return from == std::string::npos || to == std::string::npos ? alert : alert.substr(from + 5, to - from - 5);
}

/// Alerts by rule. Several workers see a host's packets in no particular order, so a threshold may let another one
/// through.
[[nodiscard]] inline std::map<std::string, unsigned> alerts_by_rule(const std::vector<std::string>& alerts) {
  std::map<std::string, unsigned> count;
  for (const std::string& alert : alerts) ++count[rule_of(alert)];
  return count;
}

}  // namespace penstock::golden
