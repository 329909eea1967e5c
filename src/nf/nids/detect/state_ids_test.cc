// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/state_ids.h"

#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "nf/nids/detect/testing/detection_bed.h"

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Known = StateIds::Known;

StateIds ids_of(const RuleSet& rules, std::vector<Known> known, StateIds::Unused& unused) {
  auto ids = StateIds::assign(rules, known, unused);
  EXPECT_TRUE(ids) << to_string(ids.error());
  return *ids;
}

std::string setter(const std::string& bit, int sid) {
  return "alert udp any any -> any any (flowbits:set," + bit + "; flowint:" + bit + ",+,1; xbits:set," + bit +
         ",track ip_src; sid:" + std::to_string(sid) + ";)\n";
}
std::string counter(int sid, const std::string& threshold, int rev = 1) {
  return "alert udp any any -> any any (threshold:" + threshold + "; sid:" + std::to_string(sid) +
         "; rev:" + std::to_string(rev) + ";)\n";
}
std::string tagger(int sid) {
  return "alert udp any any -> any any (tag:session,3,packets; sid:" + std::to_string(sid) + ";)\n";
}

TEST(StateIds, KeepsNumbersOfNamesThatStay) {
  const RuleSet first = testing::rules_of(setter("a", 1) + setter("b", 2));
  const RuleSet second = testing::rules_of(setter("c", 3) + setter("b", 2) + setter("a", 1));
  StateIds::Unused unused;
  const StateIds one = ids_of(first, {}, unused);
  const StateIds two = ids_of(second, {{&first, &one}}, unused);
  for (const auto numbers : {&StateIds::flowbits, &StateIds::flowints, &StateIds::xbits}) {
    EXPECT_THAT(one.*numbers, ElementsAre(0, 1));
    EXPECT_THAT(two.*numbers, ElementsAre(2, 1, 0));
  }
}

TEST(StateIds, GivesNoNumberTwice) {
  const RuleSet with_a = testing::rules_of(setter("a", 1)), with_b = testing::rules_of(setter("b", 1));
  StateIds::Unused unused;
  const StateIds one = ids_of(with_a, {}, unused);
  const StateIds two = ids_of(with_b, {{&with_a, &one}}, unused);
  const StateIds three = ids_of(with_a, {{&with_b, &two}}, unused);
  EXPECT_THAT(two.flowbits, ElementsAre(1));
  EXPECT_THAT(three.flowbits, ElementsAre(2)) << "state of the first rule set's bit is not found again";
}

TEST(StateIds, GivesOldNumbersBackInARollback) {
  const RuleSet first = testing::rules_of(setter("a", 1) + setter("b", 2)), second = testing::rules_of(setter("b", 2));
  StateIds::Unused unused;
  const StateIds one = ids_of(first, {}, unused);
  const StateIds two = ids_of(second, {{&first, &one}}, unused);
  EXPECT_THAT(ids_of(first, {{&second, &two}, {&first, &one}}, unused).flowbits, ElementsAre(0, 1));
  EXPECT_EQ(unused.flowbits, 2U);
}

TEST(StateIds, KeepsThresholdsBySidUnlessTheirDefinitionChanges) {
  const std::string limit = "type limit, track by_src, count 3, seconds 60";
  const std::string longer = "type limit, track by_src, count 3, seconds 61";
  const RuleSet first = testing::rules_of(tagger(7) + counter(1, limit) + counter(2, limit) + tagger(3));
  const RuleSet second = testing::rules_of(counter(5, limit) + counter(2, longer, 2) + counter(1, limit, 2));
  StateIds::Unused unused;
  const StateIds one = ids_of(first, {}, unused);
  const StateIds two = ids_of(second, {{&first, &one}}, unused);
  EXPECT_THAT(one.thresholds, ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(two.thresholds, ElementsAre(2, 3, 0));
  const StateIds back = ids_of(first, {{&second, &two}, {&first, &one}}, unused);
  EXPECT_EQ(back.thresholds, one.thresholds);
}

TEST(StateIds, KeepsTagsBySid) {
  const RuleSet first = testing::rules_of(tagger(7) + tagger(3)), second = testing::rules_of(tagger(3) + tagger(4));
  StateIds::Unused unused;
  const StateIds one = ids_of(first, {}, unused);
  EXPECT_THAT(ids_of(second, {{&first, &one}}, unused).tags, ElementsAre(1, 2));
}

TEST(StateIds, NeedsNoNewNumbersForTheSameRules) {
  const RuleSet rules =
      testing::rules_of(setter("a", 1) + counter(2, "type limit, track by_src, count 1, seconds 9") + tagger(3));
  StateIds::Unused unused;
  StateIds last = ids_of(rules, {}, unused);
  const StateIds::Unused before = unused;
  for (int i = 0; i < 10; ++i) last = ids_of(rules, {{&rules, &last}}, unused);
  EXPECT_EQ(unused.flowbits, before.flowbits);
  EXPECT_EQ(unused.flowints, before.flowints);
  EXPECT_EQ(unused.xbits, before.xbits);
  EXPECT_EQ(unused.thresholds, before.thresholds);
  EXPECT_EQ(unused.tags, before.tags);
}

TEST(StateIds, FailsAndChangesNothingIfNoNumbersAreLeft) {
  const RuleSet rules = testing::rules_of(setter("a", 1) + setter("b", 2));
  for (const auto counted : {&StateIds::Unused::flowbits, &StateIds::Unused::flowints, &StateIds::Unused::xbits}) {
    StateIds::Unused unused;
    unused.*counted = StateIds::kEnd - 1;
    const auto ids = StateIds::assign(rules, {}, unused);
    ASSERT_FALSE(ids);
    EXPECT_THAT(to_string(ids.error()), HasSubstr("expected a new run"));
    EXPECT_EQ(unused.*counted, StateIds::kEnd - 1);
    EXPECT_EQ(unused.thresholds, 0U);
  }
  StateIds::Unused unused;
  unused.flowbits = StateIds::kEnd - 2;
  const StateIds last = ids_of(rules, {}, unused);
  EXPECT_TRUE(StateIds::assign(rules, std::array{Known{&rules, &last}}, unused)) << "no new names, no new numbers";
}

}  // namespace
}  // namespace penstock::nids
