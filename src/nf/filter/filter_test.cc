// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the function from its parameters: what its filters decide, what they count, and what a reload keeps.

#include "nf/filter/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::filter {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using ::testing::HasSubstr;

using Values = std::vector<std::pair<std::string, std::string>>;

RawParameter raw(const std::string& name, const std::string& value) {
  RawParameter parameter;
  parameter.name = name;
  parameter.items = {value};
  parameter.place = parameter.name_place = {"chain.yaml", 4, 7};
  if (value.starts_with("to=")) parameter.shape = RawParameter::Shape::mapping;
  return parameter;
}

std::vector<RawParameter> raw(const Values& values) {
  std::vector<RawParameter> all;
  for (const auto& [name, value] : values) all.push_back(raw(name, value));
  return all;
}

class FilterTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<function::NetworkFunction>> make(const Values& values,
                                                          const std::vector<Values>& filters = {}) {
    std::vector<RawParameter> given = raw(values);
    if (!filters.empty()) {
      RawParameter list;
      list.name = "filters";
      list.shape = RawParameter::Shape::entries;
      list.place = {"chain.yaml", 5, 3};
      for (std::size_t i = 0; i < filters.size(); ++i) {
        list.entries.push_back(raw(filters[i]));
        list.item_places.push_back({"chain.yaml", static_cast<std::uint32_t>(6 + i), 5});
      }
      given.push_back(std::move(list));
    }
    auto parameters = Parameters::read(filter_kind().parameters, given, {"chain.yaml", 3, 1});
    if (!parameters) return failure(parameters.error());
    context_.ports = ports_;
    context_.ports_write = {false, true, true};
    auto made = filter_kind().make(*parameters, context_);
    if (!made) return failure(parameters->placed(made.error()));
    return made;
  }
  std::unique_ptr<function::NetworkFunction> filter(const Values& values, const std::vector<Values>& filters = {}) {
    auto made = make(values, filters);
    EXPECT_TRUE(made) << to_string(made.error());
    return made ? std::move(*made) : nullptr;
  }
  std::string errors(const Values& values, const std::vector<Values>& filters = {}) {
    const auto made = make(values, filters);
    return made ? "made without an error" : to_string(made.error());
  }

  std::vector<std::string> ports_{"lan", "wan", "dmz"};
  function::NfContext context_;
};

Verdict decide(function::CpuStage& stage, const PacketBuilder& builder, LinkType type = LinkType::ethernet) {
  penstock::testing::Bytes bytes = builder.bytes();
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
  descriptor.link_type = type;
  descriptor.verdict = Verdict::forward(7);
  PacketView view{bytes.data(), &descriptor};
  parse(view);
  stage.process({&view, 1});
  return descriptor.verdict;
}

PacketBuilder web() { return packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(40000, 80); }
PacketBuilder dns() { return packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(40000, 53).payload("question"); }

constexpr Verdict kPassed = Verdict::forward(7);
constexpr Verdict kFiltered = Verdict::drop(DropReason::filtered);

TEST_F(FilterTest, ForwardsWhatMatchesAndDropsTheRest) {
  const auto function = filter({{"expression", "tcp port 80"}});
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, web()), kPassed) << "the port that was chosen before is kept";
  EXPECT_EQ(decide(*stage, dns()), kFiltered);
}

TEST_F(FilterTest, DropsWhatMatchesAndForwardsTheRest) {
  const auto function = filter({{"expression", "tcp port 80"}, {"match", "drop"}});
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, web()), kFiltered);
  EXPECT_EQ(decide(*stage, dns()), kPassed);
}

TEST_F(FilterTest, SendsWhatMatchesToAPort) {
  const auto function = filter({{"expression", "udp"}, {"match", "to=dmz"}});
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, dns()), Verdict::forward(2));
  EXPECT_EQ(decide(*stage, web()), kPassed);
}

TEST_F(FilterTest, ChoosesPortsOnlyIfNothingIsJustForwarded) {
  EXPECT_TRUE(filter({{"expression", "udp"}, {"match", "to=dmz"}, {"otherwise", "drop"}})->traits().chooses_port);
  EXPECT_FALSE(filter({{"expression", "udp"}, {"match", "to=dmz"}})->traits().chooses_port);
  EXPECT_FALSE(filter({{"expression", "udp"}, {"match", "drop"}})->traits().chooses_port);
  EXPECT_FALSE(filter({{"otherwise", "drop"}}, {{{"name", "names"}, {"expression", "udp port 53"}, {"match", "to=dmz"}},
                                                {{"name", "web"}, {"expression", "tcp port 80"}}})
                   ->traits()
                   .chooses_port);
  EXPECT_TRUE(filter({{"expression", "udp"}, {"match", "to=dmz"}})->traits().chooses_some_ports);
  EXPECT_FALSE(
      filter({{"expression", "udp"}, {"match", "to=dmz"}, {"otherwise", "drop"}})->traits().chooses_some_ports);
  EXPECT_FALSE(filter({{"expression", "udp"}, {"match", "drop"}})->traits().names_ports());
}

TEST_F(FilterTest, TheFirstOfSeveralFiltersDecides) {
  const auto function = filter({}, {{{"name", "names"}, {"expression", "udp port 53"}, {"match", "drop"}},
                                    {{"name", "udp"}, {"expression", "udp"}, {"match", "to=wan"}},
                                    {{"name", "web"}, {"expression", "tcp port 80"}}});
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, dns()), kFiltered);
  EXPECT_EQ(decide(*stage, packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2)), Verdict::forward(1));
  EXPECT_EQ(decide(*stage, web()), kPassed);
  EXPECT_EQ(decide(*stage, packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2)), kFiltered)
      << "a filter forwards, so what none matches is dropped";
}

TEST_F(FilterTest, OtherwiseDecidesAboutUnmatchedPackets) {
  const auto function = filter({{"expression", "tcp port 80"}, {"otherwise", "forward"}});
  EXPECT_EQ(decide(*function->make_cpu_stage(), dns()), kPassed);
}

TEST_F(FilterTest, CountsForEveryFilterWhatItMatches) {
  const auto function = filter({}, {{{"name", "udp"}, {"expression", "udp"}},
                                    {{"name", "names"}, {"expression", "udp port 53"}},
                                    {{"name", "big"}, {"expression", "greater 1000"}}});
  auto stage = function->make_cpu_stage();
  const std::uint64_t length = dns().bytes().size();
  for (int i = 0; i < 3; ++i) decide(*stage, dns());
  decide(*stage, web());
  for (const bool ended : {false, true}) {
    if (ended) stage.reset();
    nlohmann::json report;
    function->report(report);
    const nlohmann::json& filters = report["filters"];
    ASSERT_EQ(filters.size(), 3U);
    EXPECT_EQ(filters[0]["name"], "udp");
    EXPECT_EQ(filters[0]["expression"], "udp");
    EXPECT_EQ(filters[0]["match"], "forward");
    EXPECT_EQ(filters[0]["packets"], 3U);
    EXPECT_EQ(filters[0]["bytes"], 3 * length);
    EXPECT_EQ(filters[0]["decided"]["packets"], 3U);
    EXPECT_EQ(filters[1]["packets"], 3U) << "although the filter before it decides";
    EXPECT_EQ(filters[1]["decided"]["packets"], 0U);
    EXPECT_EQ(filters[2]["packets"], 0U);
    EXPECT_EQ(report["unmatched"]["packets"], 1U);
    EXPECT_EQ(report["unmatched"]["bytes"], web().bytes().size());
  }
}

TEST_F(FilterTest, RunsMoreFiltersThanAWordHasBits) {
  std::vector<Values> filters;
  for (int i = 0; i < 70; ++i) {
    filters.push_back({{"name", "port" + std::to_string(i)}, {"expression", "tcp dst port " + std::to_string(i + 20)}});
  }
  const auto function = filter({}, filters);
  EXPECT_EQ(function->traits().findings_bytes, 12U);
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, web()), kPassed);
  EXPECT_THAT(static_cast<Filter&>(*function).counts()[60].packets, 1U);
}

TEST_F(FilterTest, DropsFramesOfLinkTypesForWhichThereIsNoProgram) {
  const auto function = filter({{"expression", "ether host 02:00:00:00:00:01"}, {"match", "drop"}});
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, web()), kFiltered);
  EXPECT_EQ(decide(*stage, packet().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2), LinkType::raw_ip),
            Verdict::drop(DropReason::link_type))
      << "it cannot be known whether the filter would have dropped it";
}

TEST_F(FilterTest, CompilesExpressionsForTheLinkTypeOfEachFrame) {
  const auto function = filter({{"expression", "tcp port 80"}});
  const auto stage = function->make_cpu_stage();
  const auto raw_web = packet().ipv4("10.0.0.1", "10.0.0.2").tcp(40000, 80);
  const auto raw_dns = packet().ipv4("10.0.0.1", "10.0.0.2").udp(40000, 53);
  EXPECT_EQ(decide(*stage, raw_web, LinkType::raw_ip), kPassed);
  EXPECT_EQ(decide(*stage, raw_dns, LinkType::raw_ip), kFiltered);
}

TEST_F(FilterTest, SeesNoPayloadIfOnlyHeadersAreAskedFor) {
  const auto whole = filter({{"expression", "udp[8] = 0x71"}});
  const auto headers = filter({{"expression", "udp[8] = 0x71"}, {"sees", "headers"}});
  EXPECT_EQ(decide(*whole->make_cpu_stage(), dns()), kPassed);
  EXPECT_EQ(decide(*headers->make_cpu_stage(), dns()), kFiltered);
  EXPECT_TRUE(whole->traits().cpu.reads.has(Field::payload));
  EXPECT_FALSE(headers->traits().cpu.reads.has(Field::payload));
}

TEST_F(FilterTest, ReadsProgramsOfTcpdump) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "filter_test.bpf";
  std::ofstream(path) << "4\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n6 0 0 0\n";
  const auto function = filter({{"program", path}});
  const auto stage = function->make_cpu_stage();
  EXPECT_EQ(decide(*stage, web()), kPassed);
  EXPECT_EQ(decide(*stage, packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(1, 80)), kFiltered);
  EXPECT_EQ(decide(*stage, packet().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2), LinkType::raw_ip),
            Verdict::drop(DropReason::link_type));
  std::filesystem::remove(path);
}

TEST_F(FilterTest, RefusesAProgramThatTheVerifierRefuses) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "filter_test_bad.bpf";
  std::ofstream(path) << "2\n5 0 0 7\n6 0 0 0\n";
  EXPECT_THAT(errors({{"program", path}}), HasSubstr("filter_test_bad.bpf:2"));
  std::filesystem::remove(path);
}

TEST_F(FilterTest, ReportsMistakesWithTheirPlace) {
  EXPECT_THAT(errors({}), HasSubstr("filter: nothing to filter by: expected `expression`, `program` or `filters`"));
  EXPECT_THAT(errors({{"expression", "tcp prot 80"}}), HasSubstr("chain.yaml:4:7:"));
  EXPECT_THAT(errors({{"expression", "tcp"}, {"program", "x"}}), HasSubstr("an expression and a program"));
  EXPECT_THAT(errors({{"expression", "tcp"}, {"match", "reject"}}),
              HasSubstr("match: wrong value: found 'reject', expected forward, drop or a mapping"));
  EXPECT_THAT(errors({{"expression", "tcp"}, {"match", "to=wam"}}),
              HasSubstr("match: unknown port: found 'wam', expected wan"));
  EXPECT_THAT(errors({{"expression", "tcp"}, {"match", "to=lan"}}),
              HasSubstr("match: the port does not write: found 'lan', expected wan"));
  EXPECT_THAT(errors({{"expression", "tcp"}}, {{{"name", "a"}, {"expression", "udp"}}}),
              HasSubstr("`expression` cannot be combined with `filters`"));
  EXPECT_THAT(errors({}, {{{"name", "a"}, {"expression", "udp"}}, {{"name", "a"}, {"expression", "tcp"}}}),
              HasSubstr("two filters have the same name: found 'a'"));
  EXPECT_THAT(errors({}, {{{"expression", "udp"}}}), HasSubstr("chain.yaml:6:5: name is missing"));
  EXPECT_THAT(errors({}, {{{"name", "a b"}, {"expression", "udp"}}}), HasSubstr("wrong name of a filter"));
}

TEST_F(FilterTest, WarnsOfAnExpressionThatMakesNoSenseForEthernet) {
  EXPECT_TRUE(make({{"expression", "inbound"}}));
  EXPECT_THAT(to_string(context_.cautions), HasSubstr("cannot be compiled for Ethernet"));
}

TEST_F(FilterTest, ExplainsItsDecision) {
  const auto function = filter({}, {{{"name", "names"}, {"expression", "udp port 53"}, {"match", "drop"}},
                                    {{"name", "udp"}, {"expression", "udp"}}});
  const auto stage = function->make_cpu_stage();
  penstock::testing::Bytes bytes = dns().bytes();
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
  const PacketView view{bytes.data(), &descriptor};
  parse(view);
  EXPECT_EQ(stage->explain(view), "filter names (udp port 53): drop; also matches udp");
}

TEST_F(FilterTest, AReloadSaysWhatChangesAndKeepsTheCountsOfUnchangedFilters) {
  const Values names{{"name", "names"}, {"expression", "udp port 53"}}, udp{{"name", "udp"}, {"expression", "udp"}},
      udp6{{"name", "udp"}, {"expression", "ip6 and udp"}}, web80{{"name", "web"}, {"expression", "tcp port 80"}};
  const auto before = filter({}, {names, udp});
  auto old_stage = before->make_cpu_stage();
  decide(*old_stage, dns());

  const auto same = filter({}, {names, udp});
  EXPECT_EQ(same->changes_from(*before).value(), "");
  const auto next = filter({}, {web80, names, udp6});
  EXPECT_EQ(next->changes_from(*before).value(), "1 filter added, 1 changed");
  EXPECT_EQ(filter({}, {udp, names})->changes_from(*before).value(), "filters in another order");

  ASSERT_TRUE(next->take_over(*before));
  const auto stage = next->make_cpu_stage();
  decide(*old_stage, dns());  // of a batch that began before
  decide(*stage, dns());
  old_stage.reset();
  next->predecessor_ended();
  const std::vector<Count> counts = static_cast<Filter&>(*next).counts();
  ASSERT_EQ(counts.size(), 4U);
  EXPECT_EQ(counts[0].packets, 0U);
  EXPECT_EQ(counts[1].packets, 3U) << "the same filter";
  EXPECT_EQ(counts[2].packets, 0U) << "another expression under the same name";
}

TEST_F(FilterTest, LeavesRoomForMoreFilters) {
  EXPECT_EQ(filter({{"expression", "tcp"}})->traits().findings_bytes, 4U);
  EXPECT_EQ(filter({{"expression", "tcp"}, {"most_filters", "100"}})->traits().findings_bytes, 16U);
  EXPECT_THAT(
      errors({{"most_filters", "1"}}, {{{"name", "a"}, {"expression", "udp"}}, {{"name", "b"}, {"expression", "tcp"}}}),
      HasSubstr("fewer filters are allowed than there are: found 1, expected at least 2"));
}

}  // namespace
}  // namespace penstock::filter
