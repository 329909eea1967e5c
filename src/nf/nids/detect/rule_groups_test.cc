// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/rule_groups.h"

#include <gmock/gmock.h>

#include <deque>
#include <random>

namespace penstock::nids {
namespace {

using stack::Direction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RuleGroupsTest : public ::testing::Test {
 protected:
  CompiledRule& add(PortSet source, PortSet destination, ProtocolClass protocol = ProtocolClass::tcp) {
    Rule& rule = texts_.emplace_back();
    rule.source_ports = std::move(source);
    rule.destination_ports = std::move(destination);
    CompiledRule& compiled = rules_.emplace_back();
    compiled.rule = &rule;
    compiled.type = RuleType::stream;
    compiled.protocols = bit_of(protocol);
    compiled.directions = bit_of(Direction::to_server) | bit_of(Direction::to_client);
    return compiled;
  }

  static std::vector<std::uint32_t> of(const RuleGroups& groups, Direction direction, std::uint16_t source,
                                       std::uint16_t destination, ProtocolClass protocol = ProtocolClass::tcp) {
    stack::DecodedPacket packet;
    packet.source.port = source;
    packet.destination.port = destination;
    return groups.groups()[groups.group_of(protocol, direction, packet)];
  }

  std::deque<Rule> texts_;
  std::vector<CompiledRule> rules_;
};

PortSet port(std::uint16_t first, std::uint16_t last) { return {{{first, last}}}; }
PortSet port(std::uint16_t number) { return port(number, number); }

TEST_F(RuleGroupsTest, AreByTheServersPort) {
  add(PortSet::any(), port(80));
  add(port(80), PortSet::any());
  add(PortSet::any(), PortSet::any());
  const RuleGroups groups(rules_);
  EXPECT_THAT(of(groups, Direction::to_server, 5000, 80), ElementsAre(0, 1, 2));
  EXPECT_THAT(of(groups, Direction::to_server, 5000, 81), ElementsAre(1, 2));
  EXPECT_THAT(of(groups, Direction::to_client, 80, 5000), ElementsAre(0, 1, 2));
  EXPECT_THAT(of(groups, Direction::to_client, 81, 5000), ElementsAre(0, 2));
}

TEST_F(RuleGroupsTest, AreByDirectionAndProtocol) {
  add(PortSet::any(), PortSet::any()).directions = bit_of(Direction::to_server);
  add(PortSet::any(), PortSet::any(), ProtocolClass::udp);
  add(PortSet::any(), PortSet::any(), ProtocolClass::icmp);
  const RuleGroups groups(rules_);
  EXPECT_THAT(of(groups, Direction::to_server, 1, 2), ElementsAre(0));
  EXPECT_THAT(of(groups, Direction::to_client, 1, 2), IsEmpty());
  EXPECT_THAT(of(groups, Direction::to_client, 1, 2, ProtocolClass::udp), ElementsAre(1));
  EXPECT_THAT(of(groups, Direction::to_client, 0, 0, ProtocolClass::icmp), ElementsAre(2));
  EXPECT_THAT(of(groups, Direction::to_client, 0, 0, ProtocolClass::sctp), IsEmpty());
}

TEST_F(RuleGroupsTest, HaveABidirectionalRuleByEitherPort) {
  add(port(1000), port(2000));
  texts_.back().direction = RuleDirection::both_ways;
  const RuleGroups groups(rules_);
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    EXPECT_THAT(of(groups, direction, 1000, 2000), ElementsAre(0));
    EXPECT_THAT(of(groups, direction, 2000, 1000), ElementsAre(0));
  }
}

TEST_F(RuleGroupsTest, LeaveOutAddressOnlyRules) {
  add(PortSet::any(), PortSet::any()).type = RuleType::ip_only;
  const RuleGroups groups(rules_);
  EXPECT_THAT(of(groups, Direction::to_server, 1, 2), IsEmpty());
}

TEST_F(RuleGroupsTest, StayWithinTheirLimits) {
  for (std::uint16_t i = 1; i <= 500; ++i) add(PortSet::any(), port(static_cast<std::uint16_t>(i * 7)));
  const RuleGroups groups(rules_, {.groups = 10, .rules = 100'000});
  // Ten groups to the server, one to the client, and the empty one.
  EXPECT_LE(groups.groups().size(), 12U);
  for (std::uint16_t i = 1; i <= 500; ++i) {
    EXPECT_THAT(of(groups, Direction::to_server, 1, static_cast<std::uint16_t>(i * 7)), ::testing::Contains(i - 1));
  }
}

TEST_F(RuleGroupsTest, HaveEveryRuleOfAPortWhateverTheRanges) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> number(0, 65535);
  for (int i = 0; i < 300; ++i) {
    PortSet ports;
    std::uint32_t at = static_cast<std::uint32_t>(number(random));
    for (int range = 0; range < 3 && at <= 65535; ++range) {
      const std::uint32_t last = std::min<std::uint32_t>(65535, at + static_cast<std::uint32_t>(number(random)) % 500);
      ports.ranges.push_back({static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(last)});
      at = last + 2 + static_cast<std::uint32_t>(number(random)) % 9000;
    }
    add(PortSet::any(), std::move(ports));
  }
  // Without room for some slices, for most, and for all but one.
  for (const GroupLimits& limits :
       {GroupLimits{}, GroupLimits{.kept = 1000}, GroupLimits{.sliced = 200}, GroupLimits{.sliced = 0}}) {
    const RuleGroups groups(rules_, limits);
    for (int i = 0; i < 500; ++i) {
      const auto at = static_cast<std::uint16_t>(number(random));
      const auto group = of(groups, Direction::to_server, 1, at);
      for (std::uint32_t place = 0; place < rules_.size(); ++place) {
        if (!texts_[place].destination_ports.contains(at)) continue;
        EXPECT_TRUE(std::binary_search(group.begin(), group.end(), place)) << "port " << at << ", rule " << place;
      }
    }
  }
}

TEST_F(RuleGroupsTest, UseBoundedMemoryForRulesThatOverlapAtEveryPort) {
  for (std::uint16_t i = 0; i < 20'000; ++i) add(PortSet::any(), port(i, static_cast<std::uint16_t>(65'535 - i)));
  const RuleGroups groups(rules_);
  for (const std::uint16_t at :
       std::initializer_list<std::uint16_t>{0, 1, 80, 443, 10'000, 19'999, 40'000, 60'000, 65'535}) {
    const auto group = of(groups, Direction::to_server, 1, at);
    for (std::uint32_t place = 0; place < rules_.size(); place += 7) {
      if (!texts_[place].destination_ports.contains(at)) continue;
      EXPECT_TRUE(std::binary_search(group.begin(), group.end(), place)) << "port " << at << ", rule " << place;
    }
  }
}

}  // namespace
}  // namespace penstock::nids
