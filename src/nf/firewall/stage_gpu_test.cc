// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU stage on a lane, followed by the finish stage, with the CPU twin: verdicts, frames and counters.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "classify/random_rules_for_test.h"
#include "nf/firewall/corpus_for_test.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/recipe.h"
#include "nf/firewall/rules_for_test.h"
#include "nf/stage_twins_for_test.h"

namespace penstock::firewall {
namespace {

using testing::Frame;
using testing::RandomFrames;
using testing::StageTwins;
using testing::Way;

/// Two equal firewalls: one runs on the device, the other is its CPU twin.
struct Firewalls {
  Firewalls(const classify::Ruleset& rules, classify::Engine engine)
      : on_device(std::move(*Firewall::build(rules, engine))), on_host(std::move(*Firewall::build(rules, engine))) {}

  void expect_equal_counts() const {
    const auto device = on_device->counts();
    const auto host = on_host->counts();
    for (std::size_t i = 0; i < host.size(); ++i) {
      ASSERT_EQ(device[i].packets, host[i].packets) << "counter " << i;
      ASSERT_EQ(device[i].bytes, host[i].bytes) << "counter " << i;
    }
  }

  std::unique_ptr<Firewall> on_device, on_host;
};

class FirewallOnDevice : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, FirewallOnDevice, ::testing::ValuesIn(testing::kWays),
                         [](const auto& way) { return way.param.name; });

TEST_P(FirewallOnDevice, DecidesAndCountsAsItsTwinInBatchesOfEverySize) {
  for (const classify::Engine engine : kEngines) {
    Firewalls nfs(rules_about_random_frames(), engine);
    StageTwins twins(*nfs.on_device, *nfs.on_host, GetParam());
    RandomFrames draw(1);
    for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 1000U}) {
      while (twins.lane().batch().size() < size) {
        ASSERT_TRUE(twins.lane().append(draw.frame(), static_cast<PortIndex>(draw.below(4))));
      }
      ASSERT_NO_FATAL_FAILURE(twins.run()) << size << " packets";
    }
    for (int round = 0; round < 30; ++round) {
      for (std::uint32_t n = draw.below(4000); n > 0; --n) {
        if (!twins.lane().append(draw.frame(), static_cast<PortIndex>(draw.below(4)))) break;
      }
      ASSERT_NO_FATAL_FAILURE(twins.run()) << "round " << round;
    }
    ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts());
    const auto counts = nfs.on_device->counts();
    const auto unused = std::count_if(counts.begin(), counts.end(), [](const auto& c) { return c.packets == 0; });
    // A rule that calls a chain, one that returns from it, and one on the output port.
    EXPECT_LE(unused, 3) << "the packets do not meet the rules";
    EXPECT_LT(twins.punted(), twins.packets() / 4);
  }
}

TEST_P(FirewallOnDevice, DecidesAndCountsAsItsTwinByItsRecipe) {
  for (const classify::Engine engine : {classify::Engine::linear, classify::Engine::bitvector}) {
    Firewalls nfs(rules_about_random_frames(), engine);
    testing::FromRecipe on_device(*nfs.on_device, remote_kernel());
    StageTwins twins(on_device, *nfs.on_host, GetParam());
    RandomFrames draw(3);
    for (int round = 0; round < 5; ++round) {
      while (twins.lane().append(draw.frame(), static_cast<PortIndex>(draw.below(4)))) continue;
      ASSERT_NO_FATAL_FAILURE(twins.run()) << "round " << round;
    }
    ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts());
  }
}

TEST_P(FirewallOnDevice, DecidesAsItsTwinIfTheLastMatchDecides) {
  classify::Ruleset rules = rules_of(
      "@10.0.0.0/24 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF\n@0.0.0.0/0 192.0.2.0/25 0 : 65535 53 : 443 0x00/0x00\n"
      "@10.0.0.128/25 0.0.0.0/0 1024 : 40000 0 : 65535 0x00/0x00\n@0.0.0.0/0 0.0.0.0/0 0 : 65535 443 : 443 "
      "0x06/0xFF\n");
  for (classify::Entry& entry : rules.entries) entry.action = static_cast<classify::Action>(entry.rule % 3);
  let_last_decide(rules);
  for (const classify::Engine engine : kEngines) {
    Firewalls nfs(rules, engine);
    StageTwins twins(*nfs.on_device, *nfs.on_host, GetParam());
    RandomFrames draw(2);
    while (twins.lane().append(draw.frame(), static_cast<PortIndex>(draw.below(4)))) continue;
    ASSERT_NO_FATAL_FAILURE(twins.run());
    ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts());
    EXPECT_GT(nfs.on_device->counts()[3].packets, 0U);
  }
}

TEST_P(FirewallOnDevice, DecidesAndCountsAsItsTwinByRandomRules) {
  for (const std::uint32_t entries : {1U, 64U, 513U, 4097U}) {
    classify::Draw draw_rules(entries);
    draw_rules.without_connections();
    classify::Ruleset rules = draw_rules.rules(entries);
    for (classify::Entry& entry : rules.entries) {
      if (entry.action != classify::Action::skip) entry.action = static_cast<classify::Action>(entry.rule % 3);
    }
    Firewalls nfs(rules, classify::Engine::bitvector);
    StageTwins twins(*nfs.on_device, *nfs.on_host, GetParam());
    RandomFrames draw(entries);
    for (int round = 0; round < 5; ++round) {
      while (twins.lane().append(draw.frame(), static_cast<PortIndex>(draw.below(80)))) continue;
      ASSERT_NO_FATAL_FAILURE(twins.run());
    }
    ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts());
  }
}

/// Makes a packet that has this key.
Frame frame_of(const classify::Key& key, RandomFrames& draw) {
  const Ipv4Address from{static_cast<std::uint32_t>(key.source.low)};
  const Ipv4Address to{static_cast<std::uint32_t>(key.destination.low)};
  auto packet = testing::packet().eth().ipv4(to_string(from), to_string(to));
  const auto source = static_cast<std::uint16_t>(key.source_port);
  const auto destination = static_cast<std::uint16_t>(key.destination_port);
  switch (key.protocol()) {
    case ip_protocol::kTcp: packet.tcp(source, destination, static_cast<std::uint8_t>(draw.below(256))); break;
    case ip_protocol::kUdp: packet.udp(source, destination); break;
    case ip_protocol::kIcmp: packet.icmp(static_cast<std::uint8_t>(draw.below(16))); break;
    default: packet.protocol(static_cast<std::uint8_t>(key.protocol())); break;
  }
  return testing::whole_frame(packet.payload("x"));
}

TEST_P(FirewallOnDevice, DecidesAndCountsAsItsTwinByClassBenchSets) {
  bool any = false;
  for (const char* const name : {"acl_1k", "fw_1k", "ipc_1k", "fw_10k"}) {
    const auto set = corpus_set(name);
    if (!set || set->keys.empty()) continue;
    any = true;
    const auto read = read_rules(set->rules, name, {});
    ASSERT_TRUE(read);
    const bool small = std::string_view(name).ends_with("_1k");
    Firewalls nfs(read->value, small ? classify::Engine::rfc : classify::Engine::bitvector);
    StageTwins twins(*nfs.on_device, *nfs.on_host, GetParam());
    RandomFrames draw(1);
    for (const classify::Key& key : set->keys) {
      const Frame frame = frame_of(key, draw);
      if (twins.lane().append(frame)) continue;
      ASSERT_NO_FATAL_FAILURE(twins.run()) << name;
      ASSERT_TRUE(twins.lane().append(frame));
    }
    ASSERT_NO_FATAL_FAILURE(twins.run()) << name;
    ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts()) << name;
    EXPECT_GT(twins.forwarded(), twins.packets() / 2) << name;
  }
  if (!any) GTEST_SKIP() << "no ClassBench sets; PENSTOCK_CORPUS names a folder with classify/";
}

TEST(FirewallStages, DecideAlikeWhereManyAreInFlightOverTheSameTables) {
  const auto nf = std::move(*Firewall::build(rules_about_random_frames(), classify::Engine::bitvector));
  std::vector<std::unique_ptr<testing::OwnLane>> lanes;
  for (int i = 0; i < 8; ++i) lanes.push_back(std::make_unique<testing::OwnLane>(*nf, testing::kWays[0]));
  RandomFrames draw(4);
  std::vector<Frame> frames;
  for (int i = 0; i < 1000; ++i) frames.push_back(draw.frame());
  for (const auto& lane : lanes) {
    for (const Frame& frame : frames) ASSERT_TRUE(lane->append(frame));
  }
  for (const auto& lane : lanes) ASSERT_TRUE(lane->start());
  for (const auto& lane : lanes) ASSERT_EQ(lane->wait(), gpu::Progress::kDone);
  for (const auto& lane : lanes) {
    const auto verdicts = lane->lane().results().verdicts;
    EXPECT_TRUE(std::ranges::equal(verdicts, lanes[0]->lane().results().verdicts));
  }
}

}  // namespace
}  // namespace penstock::firewall
