// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the core of the GPU stages, run on the host and followed by the finish stage, with the CPU twin.

#include "nf/firewall/judge_core.h"

#include <gtest/gtest.h>

#include <cstring>
#include <variant>
#include <vector>

#include "classify/bitvector_build.h"
#include "classify/random_rules_for_test.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/random_frames.h"

namespace penstock::firewall {
namespace {

std::unique_ptr<Firewall> firewall(const classify::Ruleset& rules, classify::Engine engine) {
  auto made = Firewall::build(rules, engine);
  EXPECT_TRUE(made) << to_string(made.error());
  return std::move(*made);
}

struct Packets {
  explicit Packets(std::size_t count) : descriptors(count) {
    testing::RandomFrames draw(1);
    for (PacketDescriptor& packet : descriptors) {
      const testing::Frame frame = draw.frame();
      bytes.push_back(frame.bytes);
      bytes.back().resize(frame.bytes.size() + 64);
      packet.length = static_cast<std::uint32_t>(frame.bytes.size());
      packet.wire_length = frame.wire_length;
      packet.link_type = frame.link_type;
      packet.in_port = static_cast<PortIndex>(draw.below(4));
      packet.verdict = Verdict::forward(static_cast<PortIndex>(draw.below(4)));
      views.push_back({bytes.back().data(), &packet});
      parse(views.back());
    }
  }
  std::vector<testing::Bytes> bytes;
  std::vector<PacketDescriptor> descriptors;
  std::vector<PacketView> views;
};

/// Does what a GPU stage and the finish stage do, without a GPU.
template <typename EngineView>
void judge(const JudgeCore<EngineView>& core, Firewall& firewall, Packets& packets) {
  std::vector<std::uint32_t> found(packets.views.size());
  std::vector<const std::byte*> findings;
  for (std::size_t i = 0; i < found.size(); ++i) {
    packets.descriptors[i].verdict = core(packets.views[i], found[i]);
    findings.push_back(reinterpret_cast<const std::byte*>(&found[i]));
  }
  firewall.make_finish_stage(*firewall.make_cpu_stage())->finish(packets.views, findings);
}

void expect_the_twins_results(const classify::Ruleset& rules, std::size_t most_unused_rules) {
  constexpr std::size_t kPackets = 20'000;
  const auto twin = firewall(rules, classify::Engine::linear);
  Packets expected(kPackets);
  twin->make_cpu_stage()->process(expected.views);
  const auto counts = twin->counts();
  std::vector<std::size_t> unused;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].packets == 0) unused.push_back(i);
  }
  EXPECT_LE(unused.size(), most_unused_rules) << ::testing::PrintToString(unused);

  const classify::LinearView linear{rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(),
                                    rules.ranges6.data(), static_cast<std::uint32_t>(rules.entries.size())};
  const auto tables = classify::build_bitvectors(rules);
  ASSERT_TRUE(tables);
  const std::variant<classify::LinearView, classify::BitVectorView> engines[] = {linear,
                                                                                 tables->view(rules.entries.data())};
  for (const auto& engine : engines) {
    const auto other = firewall(rules, classify::Engine::linear);
    Packets packets(kPackets);
    std::visit(
        [&](const auto& view) {
          judge(JudgeCore<std::decay_t<decltype(view)>>{view, classify::view_of(rules)}, *other, packets);
        },
        engine);
    for (std::size_t i = 0; i < kPackets; ++i) {
      ASSERT_EQ(packets.descriptors[i].verdict, expected.descriptors[i].verdict) << "packet " << i;
    }
    const auto others = other->counts();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      ASSERT_EQ(others[i].packets, counts[i].packets) << "counter " << i;
      ASSERT_EQ(others[i].bytes, counts[i].bytes) << "counter " << i;
    }
  }
}

/// Of frames without an IP header, those pass in which no host can find one.
TEST(JudgeCore, FramesInWhichAnIpHeaderMayBeHiddenAreDropped) {
  PacketLayout layout;
  layout.network = NetworkLayer::other;
  EXPECT_EQ(standing_of(layout), Standing::not_ip);
  layout.network = NetworkLayer::none;
  layout.flags = PacketLayout::kMalformed;  // too many VLAN tags
  EXPECT_EQ(standing_of(layout), Standing::malformed);
  layout.flags = PacketLayout::kTruncated;
  EXPECT_EQ(standing_of(layout), Standing::truncated);
  layout.network = NetworkLayer::arp;
  EXPECT_EQ(standing_of(layout), Standing::not_ip);
}

TEST(JudgeCore, DecidesAndCountsLikeTheCpuTwin) {
  // A rule that calls a chain and one that returns from it have no counters of their own.
  expect_the_twins_results(rules_about_random_frames(), 2);
}

TEST(JudgeCore, DecidesAndCountsLikeTheCpuTwinWithRandomRules) {
  classify::Draw draw(3);
  draw.without_connections();
  classify::Ruleset rules = draw.rules(600);
  for (classify::Entry& entry : rules.entries) {
    if (entry.action != classify::Action::skip) entry.action = static_cast<classify::Action>(entry.rule % 3);
  }
  rules.ipv6_policy = classify::Target::reject;
  expect_the_twins_results(rules, rules.rules.size());
}

TEST(FirewallFinish, CountsNothingForPacketsToWhichNoRulesApply) {
  const auto nf = firewall(rules_about_random_frames(), classify::Engine::linear);
  Packets packets(2);
  const std::uint32_t found[] = {classify::kNoCounter, 3};
  const std::byte* const findings[] = {reinterpret_cast<const std::byte*>(&found[0]),
                                       reinterpret_cast<const std::byte*>(&found[1])};
  nf->make_finish_stage(*nf->make_cpu_stage())->finish(packets.views, findings);
  const auto counts = nf->counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(counts[i].packets, i == 3 ? 1U : 0U) << "counter " << i;
    EXPECT_EQ(counts[i].bytes, i == 3 ? packets.descriptors[1].length : 0U) << "counter " << i;
  }
}

TEST(FirewallFinish, CountsABurstOfOneRuleAndOneOfSeveral) {
  const auto nf = firewall(rules_about_random_frames(), classify::Engine::linear);
  const auto stage = nf->make_finish_stage(*nf->make_cpu_stage());
  Packets packets(100);
  std::uint64_t bytes = 0;
  for (const PacketDescriptor& packet : packets.descriptors) bytes += packet.length;
  std::vector<std::uint32_t> found(packets.views.size(), 3);
  std::vector<const std::byte*> findings;
  for (const std::uint32_t& finding : found) findings.push_back(reinterpret_cast<const std::byte*>(&finding));
  const auto expect = [&](std::uint64_t of_3, std::uint64_t bytes_of_3, std::uint64_t of_1) {
    EXPECT_EQ(nf->counts()[3].packets, of_3);
    EXPECT_EQ(nf->counts()[3].bytes, bytes_of_3);
    EXPECT_EQ(nf->counts()[1].packets, of_1);
  };
  stage->finish(packets.views, findings);
  expect(100, bytes, 0);
  found[50] = 1;
  stage->finish(packets.views, findings);
  expect(199, 2 * bytes - packets.descriptors[50].length, 1);
  found.assign(100, classify::kNoCounter);
  stage->finish(packets.views, findings);
  expect(199, 2 * bytes - packets.descriptors[50].length, 1);
}

TEST(FirewallFinish, NeedsNothingFromTheDevice) {
  const auto nf = firewall(rules_about_random_frames(), classify::Engine::linear);
  ASSERT_TRUE(nf->traits().finish);
  EXPECT_EQ(nf->traits().finish->reads, FieldSet{Field::frame_shape});
  EXPECT_TRUE(nf->traits().finish->writes.empty());
  EXPECT_EQ(nf->traits().findings_bytes, 4U);
}

}  // namespace
}  // namespace penstock::firewall
