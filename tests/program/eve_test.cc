// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// EVE records that are not about alerts, of a run as an operator starts it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

class EveRecords : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("nids.rules", "alert icmp any any -> any any (msg:\"ping\"; itype:8; sid:1;)\n");
  }
  [[nodiscard]] std::vector<Json> records(const std::string& type) const {
    std::vector<Json> found;
    std::istringstream lines(read("eve.json"));
    for (std::string line; std::getline(lines, line);) {
      Json record = Json::parse(line);
      if (record["event_type"] == type) found.push_back(std::move(record));
    }
    return found;
  }
};

TEST_F(EveRecords, HaveStatisticsPeriodically) {
  write("live.yaml",
        "ports: {lan: {generator: {rate: 2kpps}}, wan: {null: {}}}\n"
        "chain: [nids: {rules: [nids.rules], stats_interval: 1s}]\n"
        "run: {workers: 2, duration: 3500ms}\n"
        "outputs: {eve: eve.json}\n");
  ASSERT_EQ(shell("penstock run live.yaml -q"), 0) << read("err");
  const auto all = records("stats");
  ASSERT_GE(all.size(), 3U) << "two or three, and one at the end";
  std::uint64_t before = 0;
  for (const Json& record : all) {
    const std::uint64_t packets = record["stats"]["decoder"]["pkts"];
    EXPECT_GT(packets, before);
    before = packets;
  }
  EXPECT_EQ(all.back()["stats"]["detect"]["engines"][0]["rules_loaded"], 1);
}

TEST_F(EveRecords, HaveOnlyTheLastStatisticsByDefault) {
  write("live.yaml",
        "ports: {lan: {generator: {rate: 2kpps}}, wan: {null: {}}}\n"
        "chain: [nids: {rules: [nids.rules]}]\n"
        "run: {duration: 1500ms}\n"
        "outputs: {eve: eve.json}\n");
  ASSERT_EQ(shell("penstock run live.yaml -q"), 0) << read("err");
  EXPECT_EQ(records("stats").size(), 1U);
  EXPECT_TRUE(records("flow").empty());
}

TEST_F(EveRecords, HaveEachFlowOnceWhenItEnds) {
  write("chain.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}}\n"
        "chain: [nids: {rules: [nids.rules], flow_records: true}]\n"
        "outputs: {eve: eve.json, report: report.json}\n");
  ASSERT_EQ(shell("penstock run chain.yaml -q --workers 2"), 0) << read("err");
  const auto flows = records("flow");
  EXPECT_EQ(flows.size(), json("report.json")["functions"][0]["details"]["stack"]["flows"]);
  EXPECT_EQ(flows.size(), records("stats").back()["stats"]["flow"]["total"]);
  std::vector<std::uint64_t> ids;
  std::uint64_t packets = 0;
  for (const Json& record : flows) {
    ids.push_back(record["flow_id"]);
    packets +=
        record["flow"]["pkts_toserver"].get<std::uint64_t>() + record["flow"]["pkts_toclient"].get<std::uint64_t>();
  }
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end()) << "a flow comes twice";
  EXPECT_GT(packets, 100U);
  // An alert names the flow that ends later.
  for (const Json& alert : records("alert"))
    EXPECT_TRUE(std::ranges::binary_search(ids, alert["flow_id"].get<std::uint64_t>()));
  EXPECT_FALSE(records("alert").empty());
}

}  // namespace
}  // namespace penstock
