// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/ip_only.h"

#include <gmock/gmock.h>

#include <deque>

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class IpOnlyRulesTest : public ::testing::Test {
 protected:
  CompiledRule& add(std::uint32_t source_first, std::uint32_t source_last, std::uint32_t destination_first,
                    std::uint32_t destination_last) {
    Rule& rule = texts_.emplace_back();
    rule.source.v4 = {{{source_first}, {source_last}}};
    rule.destination.v4 = {{{destination_first}, {destination_last}}};
    CompiledRule& compiled = rules_.emplace_back();
    compiled.rule = &rule;
    compiled.type = RuleType::ip_only;
    return compiled;
  }

  std::vector<std::uint32_t> of(std::uint32_t source, std::uint32_t destination,
                                std::size_t most_indexed = 1000) const {
    stack::DecodedPacket packet;
    packet.ip_version = 4;
    packet.source.address.low = source;
    packet.destination.address.low = destination;
    std::vector<std::uint32_t> found;
    IpOnlyRules(rules_, most_indexed).for_candidates(packet, [&](std::uint32_t place) { found.push_back(place); });
    return found;
  }

  static constexpr std::uint32_t kLast = 0xffff'ffff;
  std::deque<Rule> texts_;
  std::vector<CompiledRule> rules_;
};

TEST_F(IpOnlyRulesTest, AreFoundByTheNarrowSide) {
  add(10, 20, 0, kLast);
  add(15, 15, 0, kLast);
  add(0, kLast, 100, 200);
  EXPECT_THAT(of(9, 1), IsEmpty());
  EXPECT_THAT(of(10, 1), ElementsAre(0));
  EXPECT_THAT(of(15, 1), UnorderedElementsAre(0, 1));
  EXPECT_THAT(of(16, 200), UnorderedElementsAre(0, 2));
  EXPECT_THAT(of(21, 201), IsEmpty());
}

TEST_F(IpOnlyRulesTest, ReachTheLastAddress) {
  add(kLast - 1, kLast, 0, kLast);
  EXPECT_THAT(of(kLast, 1), ElementsAre(0));
  EXPECT_THAT(of(0, 1), IsEmpty());
}

TEST_F(IpOnlyRulesTest, WithWideRangesOrBothDirectionsAreAlwaysCandidates) {
  add(0, kLast, 0, kLast);
  add(10, 10, 20, 20);
  texts_.back().direction = RuleDirection::both_ways;
  EXPECT_THAT(of(20, 10), UnorderedElementsAre(0, 1));
}

TEST_F(IpOnlyRulesTest, AreAllCandidatesIfTheirRangesOverlapTooOften) {
  for (std::uint32_t i = 0; i < 30; ++i) add(100 + i, 200, 0, kLast);
  add(0, kLast, 7, 7);
  EXPECT_EQ(of(100, 1).size(), 1U) << "30 slices with up to 30 rules each";
  EXPECT_EQ(of(100, 1, 400).size(), 30U);
  EXPECT_EQ(of(100, 7, 400).size(), 31U);
}

TEST_F(IpOnlyRulesTest, DoNotIncludeOtherTypes) {
  add(10, 20, 0, kLast).type = RuleType::like_ip_only;
  EXPECT_TRUE(IpOnlyRules(rules_).empty());
  EXPECT_THAT(of(15, 1), IsEmpty());
}

}  // namespace
}  // namespace penstock::nids
