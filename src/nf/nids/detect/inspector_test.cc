// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/inspector.h"

#include <gmock/gmock.h>

#include "nf/nids/detect/testing/detection_bed.h"

namespace penstock::nids::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Inspector, AlertsOnAContentOfAPacket) {
  DetectionBed bed(R"(alert udp any any -> any 2000 (content:"evil"; sid:1;))");
  bed.frame(udp("an evil word"));
  bed.frame(udp("a good word"));
  bed.frame(udp("an evil word", 1000, 2001));
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 1}));
}

TEST(Inspector, FindsAContentOfAnyLengthWithEveryMatcher) {
  std::string content;
  while (content.size() < 5000) content += "abcdefgh"[content.size() % 7];
  const std::string rules = "alert udp any any -> any any (content:\"" + content + "\"; sid:1;)\n" +
                            "alert udp any any -> any any (content:\"evil\"; sid:2;)";
  for (const MatcherKind matcher : {MatcherKind::hyperscan, MatcherKind::aho_corasick, MatcherKind::hashed_filter}) {
    DetectionBed bed(rules, {}, {.matcher = matcher});
    bed.frame(udp("evil " + content));
    std::string other = content;
    other[4999] = 'z';  // far away from the part that is searched first
    bed.frame(udp("evil " + other));
    EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 1}, SeenAlert{1, 2}, SeenAlert{2, 2}));
  }
}

TEST(Inspector, LeavesOutRulesWhoseExpressionsDoNotFit) {
  std::string rules = R"(alert udp any any -> any any (content:"evil"; priority:3; sid:1000;))";
  for (int i = 1; i <= 100; ++i) {
    rules += "\nalert udp any any -> any any (pcre:\"/evil" + std::to_string(i) +
             "/\"; priority:" + std::to_string(1 + i % 2) + "; sid:" + std::to_string(i) + ";)";
  }
  const auto detection = compiled(rules_of(rules), {.most_expression_bytes = 20'000});
  const RuleSet& set = detection->rules();
  ASSERT_GT(set.left_out.size(), 50U);
  EXPECT_EQ(set.rules.size() + set.left_out.size(), 101U);
  EXPECT_EQ(set.left_out[0].reason, "regular expression");
  EXPECT_THAT(to_string(set.left_out[0].why), ::testing::HasSubstr("no memory left for another regular expression"));
  for (const RuleSet::Left& left : set.left_out) EXPECT_NE(left.sid, 1000U) << "it has none";
  for (std::uint32_t sid = 2; sid <= 10; sid += 2) {  // highest priority, and first in order
    EXPECT_TRUE(std::ranges::any_of(set.rules, [&](const Rule& rule) { return rule.sid == sid; })) << sid;
  }
  EXPECT_TRUE(compiled(rules_of(rules))->rules().left_out.empty());
}

TEST(Inspector, AlertsInTheOrderOfPriority) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"a"; priority:3; sid:1;)
alert udp any any -> any any (content:"b"; priority:1; sid:2;)
alert udp any any -> any any (content:"c"; priority:2; sid:3;))");
  bed.frame(udp("abc"));
  EXPECT_THAT(bed.sids(), ElementsAre(2, 3, 1));
}

TEST(Inspector, SetsFlowbitsBeforeOtherRulesTestThem) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"a"; flowbits:isset,x; sid:1;)
alert udp any any -> any any (content:"a"; flowbits:set,x; noalert; sid:2;))");
  bed.frame(udp("a"));
  EXPECT_THAT(bed.sids(), ElementsAre(1));
}

TEST(Inspector, EvaluatesRulesWithoutAContent) {
  DetectionBed bed(R"(
alert udp any any -> any any (dsize:3; sid:1;)
alert udp any any -> any any (pcre:"/^ab/"; sid:2;)
alert udp any any -> any any (content:!"ab"; sid:3;))");
  bed.frame(udp("abc"));
  bed.frame(udp("xyzz"));
  bed.frame(udp(""));  // a negated content does not match an empty payload
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 1}, SeenAlert{1, 2}, SeenAlert{2, 3}));
}

TEST(Inspector, MatchesANegatedDsizeOnlyOnPayloads) {
  DetectionBed bed(R"(
alert udp any any -> any any (dsize:!5; sid:1;)
alert udp any any -> any any (dsize:<5; sid:2;)
alert udp any any -> any any (dsize:>=1; sid:3;))");
  bed.frame(udp(""));
  bed.frame(udp("abc"));
  bed.frame(udp("abcde"));
  EXPECT_THAT(bed.alerts(),
              ElementsAre(SeenAlert{1, 2}, SeenAlert{2, 1}, SeenAlert{2, 2}, SeenAlert{2, 3}, SeenAlert{3, 3}));
}

TEST(Inspector, AlertsOnAddressRulesOncePerFlowAndDirection) {
  DetectionBed bed("alert ip 10.0.0.0/8 any -> any any (sid:1;)");
  bed.frame(udp("a"));
  bed.frame(udp("b"));
  bed.frame(packet().eth().ipv4("10.0.0.2", "10.0.0.1").udp(2000, 1000).payload("c").bytes());
  bed.frame(packet().eth().ipv4("10.0.0.2", "10.0.0.1").udp(2000, 1000).payload("d").bytes());
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 1}, SeenAlert{3, 1}));
}

TEST(Inspector, AlertsOnNegatedAddressesForEachPacket) {
  DetectionBed bed("alert udp !192.168.0.0/16 any -> any any (sid:1;)");
  bed.frame(udp("a"));
  bed.frame(udp("b"));
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 1}, SeenAlert{2, 1}));
}

TEST(Inspector, LimitsTheAlertsOfAPacket) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"a"; priority:3; sid:1;)
alert udp any any -> any any (content:"a"; priority:1; sid:2;)
alert udp any any -> any any (content:"a"; priority:2; sid:3;))",
                   {}, {.most_alerts = 2});
  bed.frame(udp("a"));
  EXPECT_THAT(bed.sids(), ElementsAre(2, 3));
  EXPECT_EQ(bed.inspector().counters().alerts_over_limit, 1U);
}

TEST(Inspector, GivesUpEvaluationsOverTheBudgetOfAFrame) {
  // Ten bytes are tested, with one step each for the evaluation, its option and its search.
  constexpr std::uint64_t kOne = 3 * kWorkOfStep + 10;
  constexpr std::string_view kRules = R"(
alert udp any any -> any any (content:!"x"; sid:1;)
alert udp any any -> any any (content:!"y"; sid:2;)
alert udp any any -> any any (content:!"z"; sid:3;)
alert udp any any -> any any (dsize:10; sid:4;))";
  DetectionBed bed(kRules, {.budget = {.work = 2 * kOne, .work_per_byte = 0}});
  bed.frame(udp("0123456789"));
  bed.frame(udp("0123456789"));
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 1}, SeenAlert{2, 1}));
  EXPECT_EQ(bed.inspector().counters().frames_over_budget, 2U);
  EXPECT_EQ(bed.inspector().counters().evaluations_given_up, 4U);

  DetectionBed enough(kRules, {.budget = {.work = 1, .work_per_byte = kOne}});
  enough.frame(udp("0123456789"));
  EXPECT_THAT(enough.sids(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(enough.inspector().counters().frames_over_budget, 0U);
}

TEST(Inspector, ChargesFlowStateToTheBudget) {
  std::string rules;
  for (int i = 1; i <= 1000; ++i) {
    rules += "alert udp any any -> any any (flowint:v" + std::to_string(i) + ",+,1; flowbits:set,b" +
             std::to_string(i) + "; noalert; sid:" + std::to_string(i) + ";)\n";
  }
  DetectionBed enough(rules);
  enough.frame(udp("a"));
  EXPECT_EQ(enough.inspector().counters().evaluations, 1000U);
  EXPECT_EQ(enough.inspector().counters().frames_over_budget, 0U);
  // One step for each evaluation, and one for each of its two changes.
  DetectionBed scarce(rules, {.budget = {.work = 600 * kWorkOfStep + 1, .work_per_byte = 0}});
  scarce.frame(udp("a"));
  EXPECT_EQ(scarce.inspector().counters().evaluations, 200U);
  EXPECT_EQ(scarce.inspector().counters().evaluations_given_up, 800U);
  EXPECT_EQ(scarce.inspector().counters().frames_over_budget, 1U);
}

TEST(Inspector, HasOneBudgetForAllPacketsOfAFrame) {
  constexpr std::uint64_t kOne = 3 * kWorkOfStep + 10;
  const Frame inner = packet().ipv4("10.0.0.3", "10.0.0.4").udp(1, 2).payload("0123456789").bytes();
  const Frame tunnelled = packet().eth().ipv4("10.0.0.1", "10.0.0.2").protocol(4).raw(inner).bytes();
  constexpr std::string_view kRules = R"(
alert ip 10.0.0.1 any -> any any (ttl:64; sid:1;)
alert udp any any -> any any (content:!"x"; sid:2;))";
  constexpr std::uint64_t kTtl = kWorkOfStep + 4;
  DetectionBed enough(kRules, {.budget = {.work = kTtl + kOne + 1, .work_per_byte = 0}});
  enough.frame(tunnelled);
  EXPECT_THAT(enough.sids(), ElementsAre(1, 2));
  DetectionBed scarce(kRules, {.budget = {.work = kOne + 1, .work_per_byte = 0}});
  scarce.frame(tunnelled);
  EXPECT_THAT(scarce.sids(), ElementsAre(1));
  EXPECT_EQ(scarce.inspector().counters().frames_over_budget, 1U);
}

TEST(Inspector, GivesUpOnlyExpressionsIfTheirBudgetIsUsedUp) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"a"; pcre:"/ab/"; sid:1;)
alert udp any any -> any any (content:"a"; pcre:!"/cd/"; sid:2;)
alert udp any any -> any any (content:"a"; sid:3;))",
                   {.budget = {.expressions = 0, .expressions_per_byte = 0}});
  bed.frame(udp("ab"));
  bed.frame(udp("ab"));
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{1, 3}, SeenAlert{2, 3}));
  EXPECT_EQ(bed.inspector().counters().pcre_limits, 4U);
  EXPECT_EQ(bed.inspector().counters().frames_over_budget, 2U);
  EXPECT_EQ(bed.inspector().counters().evaluations_given_up, 0U);
}

TEST(Inspector, PassesPacketsWhoseEvaluationItGaveUp) {
  DetectionBed bed(R"(drop udp any any -> any any (content:"a"; pcre:"/ab/"; sid:1;))",
                   {.drops = true, .budget = {.expressions = 0, .expressions_per_byte = 0}});
  bed.frame(udp("ab"));
  EXPECT_FALSE(bed.inspector().frame_dropped().has_value());
  EXPECT_EQ(bed.inspector().counters().frames_over_budget, 1U);
}

TEST(Inspector, HasABudgetForEachEndOfAStream) {
  DetectionBed bed(R"(alert tcp any any -> any any (content:"evil"; content:!"x"; flow:only_stream; sid:1;))",
                   {.budget = {.work = 300, .work_per_byte = 0}});
  for (std::uint16_t port = 40000; port < 40004; ++port) {
    Conversation conversation(port);
    bed.frames(conversation.handshake());
    bed.frame(conversation.data(0, "evil"));
  }
  bed.finish();
  EXPECT_THAT(bed.sids(), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(bed.inspector().counters().frames_over_budget, 0U);
}

TEST(Inspector, PassesAPacketThatAPassRuleMatches) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"a"; sid:1;)
pass udp any any -> any any (content:"b"; sid:2;))");
  bed.frame(udp("ab"));
  bed.frame(udp("a"));  // the rule matched a packet, not a flow
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{2, 1}));
}

TEST(Inspector, PassesTheFlowOfAnAddressOnlyPassRule) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"a"; sid:1;)
pass udp 10.0.0.1 any -> any any (sid:2;))");
  bed.frame(udp("a"));
  bed.frame(udp("a"));
  EXPECT_THAT(bed.sids(), IsEmpty());
}

TEST(Inspector, DropsTheRestOfTheFlowOnlyIfItMayDrop) {
  constexpr std::string_view kRules = R"(
drop udp any any -> any any (content:"a"; sid:1;)
alert udp any any -> any any (content:"b"; sid:2;))";
  DetectionBed watching(kRules);
  watching.frame(udp("ab"));
  EXPECT_FALSE(watching.inspector().frame_dropped());
  watching.frame(udp("b"));
  EXPECT_THAT(watching.alerts(), ElementsAre(SeenAlert{1, 1}, SeenAlert{1, 2}, SeenAlert{2, 2}));

  DetectionBed dropping(kRules, {.drops = true});
  dropping.frame(udp("b"));
  EXPECT_FALSE(dropping.inspector().frame_dropped());
  dropping.frame(udp("ab"));
  EXPECT_TRUE(dropping.inspector().frame_dropped());
  dropping.frame(udp("b"));
  EXPECT_TRUE(dropping.inspector().frame_dropped());
  EXPECT_THAT(dropping.alerts(), ElementsAre(SeenAlert{1, 2}, SeenAlert{2, 1, false, true}, SeenAlert{2, 2}));
  EXPECT_EQ(dropping.inspector().counters().dropped[static_cast<std::size_t>(DropReason::rule)], 2U);
}

TEST(Inspector, LogsThePacketsOfATag) {
  DetectionBed bed(R"(alert udp any any -> any any (content:"a"; tag:session,3,packets; sid:1;))");
  for (const char* const text : {"x", "a", "y", "z", "w"}) bed.frame(udp(text));
  EXPECT_THAT(bed.alerts(), ElementsAre(SeenAlert{2, 1}, SeenAlert{3, 0}, SeenAlert{4, 0}));
}

TEST(Inspector, InspectsHeaders) {
  DetectionBed bed(R"(
alert udp any any -> any any (udp.hdr; content:"|07 d0|"; offset:2; depth:2; sid:1;)
alert udp any any -> any any (ipv4.hdr; content:"|0a 00 00 09|"; sid:2;))");
  bed.frame(udp(""));
  EXPECT_THAT(bed.sids(), ElementsAre(1));
}

TEST(Inspector, TakesCandidatesFromAGpu) {
  DetectionBed bed(R"(
alert udp any any -> any any (content:"evil"; sid:1;)
alert udp any any -> any any (content:"good"; sid:2;))");
  std::uint32_t evil = 0;
  while (bed.detection().literals()[evil].bytes[0] != 'e') ++evil;
  bed.frame(udp("good and evil"), {.known = true, .literals = {}});  // the inspector trusts it
  EXPECT_THAT(bed.sids(), IsEmpty());
  bed.frame(udp("good and evil"), {.known = true, .literals = {&evil, 1}});
  EXPECT_THAT(bed.sids(), ElementsAre(1));
  bed.frame(udp("good"), {.known = true, .literals = {&evil, 1}});  // a candidate is not a match
  EXPECT_THAT(bed.sids(), ElementsAre(1));
}

// --- Streams -------------------------------------------------------------------------------------------------------

TEST(InspectorOfStreams, FindsAMatchAcrossSegments) {
  DetectionBed bed(R"(
alert tcp any any -> any 80 (content:"evil word"; sid:1;)
alert tcp-pkt any any -> any 80 (content:"evil word"; sid:2;)
alert tcp-stream any any -> any 80 (content:"evil word"; sid:3;))");
  Conversation talk;
  bed.frames(talk.handshake());
  bed.frames({talk.data(0, "an evil"), talk.data(0, " word"), talk.ack(1)});
  bed.finish();
  std::vector<std::uint32_t> sids = bed.sids();
  EXPECT_THAT(sids, ElementsAre(1, 3));
  for (const SeenAlert& alert : bed.alerts()) EXPECT_TRUE(alert.in_stream);
}

TEST(InspectorOfStreams, FindsAContentLongerThanAChunk) {
  std::string content;
  while (content.size() < 5000) content += "abcdefgh"[content.size() % 7];
  const std::string rules = "drop tcp any any -> any any (content:\"" + content + "\"; sid:1;)";
  for (const bool is_inline : {false, true}) {
    DetectionBed bed(rules, {.drops = is_inline}, {}, {.inline_streams = is_inline});
    Conversation talk;
    bed.frames(talk.handshake());
    const std::string text = std::string(700, '.') + content + std::string(300, '.');
    for (std::size_t at = 0; at < text.size(); at += 1000) {
      EXPECT_FALSE(bed.inspector().frame_dropped().has_value()) << "before its last byte";
      bed.frames({talk.data(0, text.substr(at, 1000))});
      if (at + 1000 < text.size()) bed.frame(talk.ack(1));
    }
    EXPECT_EQ(bed.inspector().frame_dropped().has_value(), is_inline);
    bed.finish();
    EXPECT_THAT(bed.sids(), ElementsAre(1));
  }
}

/// One byte at a time, after bytes with the literals of many rules: the frame's budget bounds the work.
TEST(InspectorOfStreams, BoundsTheCostOfRulesWithTheirLiteralInOlderBytes) {
  std::string rules;
  for (int i = 1; i <= 300; ++i) {
    rules += "alert tcp any any -> any any (content:\"begin\"; content:\"e\"; distance:0; content:\"n" +
             std::to_string(i) + "\"; within:50; sid:" + std::to_string(i) + ";)\n";
  }
  DetectionBed bed(rules, {.budget = {.work = 100'000, .work_per_byte = 64}}, {}, {.inline_streams = true});
  Conversation talk;
  bed.frames(talk.handshake());
  std::string text = "begin";
  while (text.size() < 2000) text += "een";
  bed.frame(talk.data(0, text));
  for (int i = 0; i < 20; ++i) bed.frames({talk.data(0, "e"), talk.ack(1)});
  EXPECT_GE(bed.inspector().counters().frames_over_budget, 20U);
  EXPECT_GT(bed.inspector().counters().evaluations_given_up, 1000U);
}

TEST(InspectorOfStreams, DropsInlineASegmentThatDiffersFromPassedBytes) {
  const auto verdicts = [](bool drops) {
    DetectionBed bed(R"(drop tcp any any -> any 80 (content:"evil"; sid:1;))", {.drops = drops}, {},
                     {.inline_streams = drops});
    Conversation talk;
    bed.frames(talk.handshake());
    std::vector<bool> dropped;
    for (const Frame& frame : {talk.data(0, "good"), talk.data_at(0, -4, "bad!"), talk.data(0, "more")}) {
      bed.frame(frame);
      dropped.push_back(bed.inspector().frame_dropped().has_value());
    }
    return dropped;
  };
  EXPECT_THAT(verdicts(true), ElementsAre(false, true, false)) << "the frame alone, not its flow";
  EXPECT_THAT(verdicts(false), ElementsAre(false, false, false));
}

TEST(InspectorOfStreams, InspectsAStreamOnlyOnce) {
  DetectionBed bed(R"(alert tcp any any -> any 80 (content:"evil"; sid:1;))");
  Conversation talk;
  bed.frames(talk.handshake());
  for (int i = 0; i < 10; ++i) {
    bed.frames({talk.data(0, i == 0 ? "evil" + std::string(1000, 'x') : std::string(1000, 'x')), talk.ack(1)});
  }
  bed.finish();
  EXPECT_THAT(bed.sids(), ElementsAre(1));
}

TEST(InspectorOfStreams, AlsoInspectsPacketsIfTheRuleHasAnOffset) {
  DetectionBed bed(R"(
alert tcp any any -> any 80 (content:"b"; depth:1; sid:1;)
alert tcp any any -> any 80 (content:"b"; sid:2;))");
  Conversation talk;
  bed.frames(talk.handshake());
  bed.frames({talk.data(0, "a"), talk.ack(1), talk.data(0, "b"), talk.ack(1)});
  bed.finish();
  EXPECT_THAT(bed.alerts(),
              ::testing::UnorderedElementsAre(SeenAlert{6, 1, false}, ::testing::Field(&SeenAlert::sid, 2U)));
}

TEST(InspectorOfStreams, KnowsTheDirection) {
  DetectionBed bed(R"(
alert tcp any any -> any any (flow:to_server,established; content:"evil"; sid:1;)
alert tcp any any -> any any (flow:to_client,established; content:"evil"; sid:2;))");
  Conversation talk;
  bed.frames(talk.handshake());
  bed.frames({talk.data(1, "evil"), talk.ack(0)});
  bed.finish();
  EXPECT_THAT(bed.sids(), ElementsAre(2));
}

}  // namespace
}  // namespace penstock::nids::testing
