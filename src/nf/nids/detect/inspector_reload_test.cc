// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules are reloaded while flows last: state stays, whatever the new rule set's own numbers are, and what one rule set
// found is never taken for what another one searches.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/nids/detect/testing/cut_streams.h"
#include "nf/nids/detect/testing/reload_bed.h"

namespace penstock::nids::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Sids = std::vector<std::uint32_t>;

std::string rule(const std::string& options, int sid) {
  return "alert ip any any -> any any (" + options + " sid:" + std::to_string(sid) + ";)\n";
}

TEST(Reload, NewRulesSeeTheFlowbitsOfOldOnes) {
  ReloadBed bed(rule("content:\"login\"; flowbits:set,first; flowbits:noalert;", 1) +
                rule("content:\"admin\"; flowbits:set,second; flowbits:noalert;", 2));
  bed.frame(udp("admin"));
  // `second` had the number 1, which is now that of `new`.
  bed.reload(rule("content:\"never\"; flowbits:set,zero; flowbits:noalert;", 3) +
             rule("content:\"never\"; flowbits:set,new; flowbits:noalert;", 4) +
             rule("content:\"get\"; flowbits:isset,first;", 5) + rule("content:\"get\"; flowbits:isset,second;", 6) +
             rule("content:\"get\"; flowbits:isset,new;", 7) + rule("content:\"get\"; flowbits:isset,zero;", 8));
  bed.frame(udp("get"));
  bed.frame(udp("get", 9, 9));
  EXPECT_THAT(bed.sids(), ElementsAre(6));
}

TEST(Reload, NamesThatAreGoneLeaveNoStateToOthers) {
  const std::string a = rule("content:\"set\"; flowbits:set,a; xbits:set,a,track ip_src; flowint:a,=,3;", 1);
  const auto asks = [](const std::string& name) {
    return rule("content:\"ask\"; flowbits:isset," + name + ";", 2) +
           rule("content:\"ask\"; xbits:isset," + name + ",track ip_src;", 3) +
           rule("content:\"ask\"; flowint:" + name + ",isset;", 4);
  };
  ReloadBed bed(a + asks("a"));
  bed.frame(udp("set"));
  bed.frame(udp("ask"));
  EXPECT_THAT(bed.sids(), ElementsAre(1, 2, 4, 3));
  bed.reload(asks("b"));
  bed.frame(udp("ask"));
  EXPECT_THAT(bed.sids(), SizeIs(4));
  bed.roll_back(0);
  bed.frame(udp("ask"));
  EXPECT_THAT(bed.sids(), ElementsAre(1, 2, 4, 3, 2, 4, 3)) << "a rollback finds its state again";
}

TEST(Reload, FlowintsAndXbitsStay) {
  ReloadBed bed(rule("content:\"set\"; flowint:count,+,1; xbits:set,seen,track ip_src,expire 60; noalert;", 1));
  for (int i = 0; i < 3; ++i) bed.frame(udp("set"));
  bed.reload(rule("content:\"get\"; flowint:other,isset;", 2) + rule("content:\"get\"; flowint:count,==,3;", 3) +
             rule("content:\"get\"; xbits:isset,other,track ip_src;", 4) +
             rule("content:\"get\"; xbits:isset,seen,track ip_src;", 5));
  bed.frame(udp("get"));
  EXPECT_THAT(bed.sids(), ElementsAre(3, 5));
}

TEST(Reload, ThresholdsContinueUnlessTheyChange) {
  for (const std::string track : {"by_src", "by_both", "by_rule", "by_flow"}) {
    const auto rules = [&](const std::string& seconds) {
      return rule("content:\"x\"; threshold:type threshold, track " + track + ", count 3, seconds " + seconds + ";", 1);
    };
    const std::string other =
        rule("content:\"x\"; threshold:type threshold, track " + track + ", count 9, seconds 60;", 2);
    ReloadBed bed(rules("60"));
    const auto alerts_of = [&](int frames) {
      const std::size_t before = bed.alerts().size();
      for (int i = 0; i < frames; ++i) bed.frame(udp("x"));
      return bed.alerts().size() - before;
    };
    EXPECT_EQ(alerts_of(2), 0U) << track;
    bed.reload(other + rules("60"));
    EXPECT_EQ(alerts_of(1), 1U) << track << ": the third match";
    EXPECT_EQ(alerts_of(2), 0U) << track;
    bed.reload(rules("61"));
    EXPECT_EQ(alerts_of(2), 0U) << track << ": counts anew";
    EXPECT_EQ(alerts_of(1), 1U) << track;
    bed.roll_back(1);
    EXPECT_EQ(alerts_of(1), 1U) << track << ": the third match of the former threshold";
  }
}

TEST(Reload, TagsStayAlthoughTheirRuleIsGone) {
  for (const std::string of : {"session", "host"}) {
    const std::string direction = of == "host" ? ",src" : "";
    ReloadBed bed(rule("content:\"a\"; tag:" + of + ",3,packets" + direction + ";", 1));
    bed.frame(udp("a"));
    bed.reload(rule("content:\"never\";", 2));
    for (int i = 0; i < 5; ++i) bed.frame(udp("b"));
    EXPECT_THAT(bed.sids(), ElementsAre(1, 0, 0)) << of;
  }
}

// The rule's number in the new set is that of another rule in the old set.
TEST(Reload, ARuleRenewsItsOwnTag) {
  const std::string a = rule("content:\"a\"; tag:session,3,packets;", 1);
  const std::string b = rule("content:\"b\"; tag:session,3,packets;", 2);
  ReloadBed bed(a + b);
  bed.frame(udp("a"));
  bed.frame(udp("."));
  bed.reload(b + a);
  bed.frame(udp("a"));  // renews the tag, which counts this packet too
  for (int i = 0; i < 5; ++i) bed.frame(udp("."));
  EXPECT_THAT(bed.sids(), ElementsAre(1, 0, 1, 0, 0, 0));
}

TEST(Reload, FlowsStayDroppedOrPassed) {
  ReloadBed bed(
      "drop udp any any -> any any (content:\"bad\"; sid:1;)\n"
      "pass tcp any any -> any any (content:\"fine\"; flow:established,only_stream; sid:2;)\n",
      {.drops = true}, {}, {.inline_streams = true});
  Conversation talk;
  bed.frames(talk.handshake());
  bed.frame(talk.data(0, "fine"));
  bed.frame(udp("bad"));
  bed.reload(rule("content:\"x\";", 3));
  bed.frame(udp("x"));
  EXPECT_TRUE(bed.inspector().frame_dropped());
  bed.frame(talk.data(0, "x"));
  EXPECT_FALSE(bed.inspector().frame_dropped());
  EXPECT_THAT(bed.sids(), ElementsAre(1));
  bed.frame(udp("x", 77, 78));
  EXPECT_THAT(bed.sids(), ElementsAre(1, 3)) << "other flows";
}

TEST(Reload, SuppressionsBelongToTheirRules) {
  RuleSet suppressed = rules_of(rule("content:\"a\";", 1));
  suppressed.suppressions.push_back({.gid = 1, .sid = 1, .always = true, .track = TrackBy::source, .addresses = {}});
  const RuleSet rules = rules_of(rule("content:\"a\";", 1));
  HostMemory hosts;
  StateStore with(suppressed, hosts), without(rules, hosts);
  without.share_flows(with);
  EXPECT_TRUE(with.suppressed(0, {}));
  EXPECT_FALSE(without.suppressed(0, {}));
}

/// The new rule matches `text`, of which `before` bytes arrive before the reload.
Sids alerts_of_split(const std::string& old_rules, const std::string& text, std::size_t before, bool is_inline) {
  ReloadBed bed(old_rules, {}, {}, {.inline_streams = is_inline, .chunk_bytes = 16});
  Conversation talk;
  bed.frames(talk.handshake());
  bed.frame(talk.data(0, std::string(100, '.') + text.substr(0, before)));
  bed.frame(talk.ack(1));
  bed.frame(talk.ack(0));  // the old rules inspect all
  bed.reload(rule("content:\"never\";", 1) + rule("content:\"" + text + "\"; flow:only_stream;", 2));
  bed.frame(talk.data(0, text.substr(before) + std::string(100, '.')));
  bed.frame(talk.ack(1));
  bed.finish();
  return bed.sids();
}

TEST(Reload, NewRulesMatchAcrossTheReloadAsFarAsBytesAreKept) {
  const std::string text = "attack at dawn";
  for (const bool is_inline : {false, true}) {
    for (std::size_t before = 0; before < text.size(); ++before) {
      EXPECT_EQ(alerts_of_split(rule("content:\"some other text\";", 1), text, before, is_inline), Sids{2}) << before;
    }
    EXPECT_THAT(alerts_of_split(rule("content:\"some other text\";", 1), text, text.size(), is_inline), IsEmpty())
        << "inspected by the old rules";
  }
  EXPECT_EQ(alerts_of_split(rule("content:\"abcd\";", 1), text, 3, false), Sids{2});
  EXPECT_THAT(alerts_of_split(rule("content:\"abcd\";", 1), text, 4, false), IsEmpty()) << "the old rules need 3 bytes";
}

TEST(Reload, NewRulesThatReachFurtherFindEverythingThatArrivesLater) {
  const std::string text = std::string(200, 'a') + std::string(200, 'b') + "c";
  for (const bool is_inline : {false, true}) {
    ReloadBed bed(rule("content:\"x\";", 1), {}, {}, {.inline_streams = is_inline, .chunk_bytes = 16});
    Conversation before_reload(1000), after_reload(1001);
    bed.frames(before_reload.handshake());
    bed.frame(before_reload.data(0, std::string(100, '.')));
    bed.frame(before_reload.ack(1));
    bed.reload(rule("content:\"" + text + "\"; flow:only_stream;", 2));
    bed.frames(after_reload.handshake());
    for (Conversation* talk : {&before_reload, &after_reload}) {
      for (std::size_t at = 0; at < text.size(); at += 50) {
        bed.frame(talk->data(0, text.substr(at, 50)));
        bed.frame(talk->ack(1));
      }
    }
    bed.finish();
    EXPECT_EQ(bed.sids(), (Sids{2, 2})) << is_inline;
  }
}

// The device's batch began before the reload; its findings are those of the old rules' literals.
TEST(Reload, FindingsOfOtherRulesAreNotBelieved) {
  const std::string first = rule("content:\"first text\"; flow:only_stream;", 1);
  const std::string second = rule("content:\"second text\"; flow:only_stream;", 2);
  ReloadBed bed(first + second, {}, {}, {.chunk_bytes = 64});
  Conversation talk;
  for (const Frame& frame : talk.handshake()) bed.frame(frame, {.known = true, .literals = {}});
  const auto data = [&](const std::string& text) {
    const Frame frame = talk.data(0, text);
    const std::vector<std::uint32_t> literals = literals_in(bed.detection(), frame);
    bed.frame(frame, {.known = true, .literals = literals});
  };
  data("....second text....");  // noted with its literal, but not inspected yet
  bed.reload(second + rule("content:\"never\"; flow:only_stream;", 3) + first);
  data("....first text....");
  bed.use(0);
  data(std::string(100, '.'));
  bed.frame(talk.ack(1));
  bed.finish();
  Sids sids = bed.sids();
  std::sort(sids.begin(), sids.end());
  EXPECT_EQ(sids, (Sids{1, 2}));
}

// The old rules note a segment, the new ones the next one. Its bytes come again, and differ, when the old rules are
// back: what was found in them is not in the stream.
TEST(Reload, AnInspectorThatMissedPacketsForgetsWhatItKnew) {
  const std::string rules = rule("content:\"needle in hay\"; flow:only_stream;", 1);
  ReloadBed bed(rules, {}, {}, {.every_version = false, .chunk_bytes = 256});
  Conversation talk;
  for (const Frame& frame : talk.handshake()) bed.frame(frame, {.known = true, .literals = {}});
  const auto found = [&](const Frame& frame) {
    const std::vector<std::uint32_t> literals = literals_in(bed.detection(), frame);
    bed.frame(frame, {.known = true, .literals = literals});
  };
  found(talk.data(0, std::string(20, '.')));
  bed.reload(rules);
  found(talk.data(0, "..needle in hay....."));
  bed.use(0);
  found(talk.data_at(0, -20, std::string(40, '.')));  // holds no literal, but the stream has the first version
  talk.skip(0, 20);
  found(talk.data(0, std::string(300, '.')));
  bed.frame(talk.ack(1));
  bed.finish();
  EXPECT_THAT(bed.sids(), ElementsAre(1));
}

class ReloadSeam : public ::testing::TestWithParam<std::tuple<Mode, SearchedBy>> {};

TEST_P(ReloadSeam, ReportsEachMatchOnceAtEveryPlace) {
  constexpr std::uint32_t kChunk = 48;
  const auto [mode, who] = GetParam();
  const std::vector<std::pair<std::string, std::string>> cases{
      {"content:\"attack at dawn\";", "attack at dawn"},
      {"content:\"attack\"; content:\"dawn\"; distance:0;", "attack in twenty days at dawn"},
      {"content:\"dawn\"; content:\"attack\";", "attack in twenty days at dawn"},
      {"pcre:\"/att.ck\\s+at\\s+d[a-z]wn/\";", "attack at dawn"}};
  for (const auto& [options, matched] : cases) {
    std::mt19937 random(7);
    CutStreamsOf<AlternatingBed> streams("alert tcp any any -> any any (" + options + " sid:1;)\n", mode, who, kChunk,
                                         3 * kChunk);
    for (std::size_t before = 0; before < 4 * kChunk; ++before) {
      const std::string text = std::string(before, '.') + matched + std::string(3 * kChunk, '.');
      for (std::uint32_t i = 0; i < penstock::testing::rounds(3); ++i) {
        ASSERT_THAT(streams.alerts_of(text, random), SizeIs(1)) << options << " after " << before;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ReloadSeam,
                         ::testing::Combine(::testing::Values(Mode::watching, Mode::inline_),
                                            ::testing::Values(SearchedBy::us, SearchedBy::another)));

/// Interleaved conversations: segments in and out of order, repeated with the same or other bytes, and datagrams.
std::vector<Frame> random_traffic(std::mt19937& random) {
  std::vector<Conversation> talks;
  std::vector<Frame> frames;
  for (std::uint16_t port = 4000; port < 4010; ++port) {
    talks.emplace_back(port);
    for (Frame& frame : talks.back().handshake()) frames.push_back(std::move(frame));
  }
  const std::array<std::string, 6> texts{"GET /one", " two HTTP/1.1", std::string(300, 'x'), "one", "two three", "on"};
  for (int i = 0; i < 2000; ++i) {
    Conversation& talk = talks[random() % talks.size()];
    const unsigned side = random() % 4 == 0 ? 1 : 0;
    const std::string& text = texts[random() % texts.size()];
    switch (random() % 8) {
      case 0: talk.skip(side, static_cast<std::uint32_t>(random() % 8)); break;
      case 1: frames.push_back(talk.data_at(side, -static_cast<std::int64_t>(random() % 40), text)); break;
      case 2: frames.push_back(talk.data_at(side, static_cast<std::int64_t>(random() % 40), text)); break;
      case 3: frames.push_back(udp(text, static_cast<std::uint16_t>(random() % 5 + 5000))); break;
      case 4: frames.push_back(talk.ack(1 - side)); break;
      default: frames.push_back(talk.data(side, text)); break;
    }
  }
  return frames;
}

TEST_P(ReloadSeam, RulesThatStayGiveTheSameAlertsAsWithoutReloads) {
  const std::string rules =
      "alert tcp any any -> any any (content:\"one two\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"one\"; flowbits:isnotset,seen; flowbits:set,seen; sid:2;)\n"
      "alert tcp any any -> any any (content:\"two\"; flowbits:isset,seen; flowbits:toggle,other; sid:3;)\n"
      "alert tcp any any -> any any (content:\"three\"; flowbits:isset,other; tag:session,3,packets; sid:4;)\n"
      "alert tcp any any -> any any (content:\"GET\"; flowint:gets,<,5; sid:5;)\n"
      "alert tcp any any -> any any (content:\"GET\"; flowint:gets,+,1; noalert; sid:11;)\n"
      "alert udp any any -> any any (content:\"two\"; threshold:type both, track by_src, count 3, seconds 1; sid:6;)\n"
      "alert udp any any -> any any (content:\"one\"; xbits:toggle,x,track ip_pair,expire 2; sid:7;)\n"
      "alert ip any any -> any any (content:\"three\"; xbits:isset,x,track ip_pair; sid:8;)\n"
      "alert tcp any any -> any any (content:\"HTTP\"; threshold:type limit, track by_flow, count 2, seconds 1; "
      "sid:9;)\n"
      "alert tcp any any -> any any (content:\"x\"; content:\"on\"; distance:0; detection_filter:track by_dst, count 4,"
      " seconds 1; sid:10;)\n";
  const Mode mode = std::get<0>(GetParam());
  const SearchedBy who = std::get<1>(GetParam());
  stack::TrackerOptions tracker;
  tracker.inline_streams = mode == Mode::inline_;
  tracker.chunk_bytes = 100;
  const auto alerts = [&](auto& bed, const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) {
      if (who == SearchedBy::us) {
        bed.frame(frame);
      } else {
        const std::vector<std::uint32_t> literals = literals_in(bed.detection(), frame);
        bed.frame(frame, {.known = true, .literals = literals});
      }
    }
    bed.finish();
    return bed.alerts();
  };
  std::mt19937 random(5);
  for (std::uint32_t i = 0; i < penstock::testing::rounds(4); ++i) {
    const std::vector<Frame> frames = random_traffic(random);
    DetectionBed without(rules, {}, {}, tracker);
    AlternatingBed with(rules, {}, {}, tracker);
    const std::vector<SeenAlert> expected = alerts(without, frames);
    ASSERT_EQ(alerts(with, frames), expected);
    EXPECT_EQ(with.epochs(), 6U);
    for (const std::uint32_t sid : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U}) {
      EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [&](const SeenAlert& a) { return a.sid == sid; }))
          << sid;
    }
    EXPECT_EQ(with.inspector().counters().packets, without.inspector().counters().packets);
    EXPECT_EQ(with.inspector().counters().alerts, without.inspector().counters().alerts);
    EXPECT_EQ(with.inspector().counters().stream_bytes, without.inspector().counters().stream_bytes);
  }
}

TEST(Reload, NumbersOfTheSameRulesDiffer) {
  AlternatingBed bed("alert tcp any any -> any any (content:\"one\"; flowbits:set,a; sid:1;)\n");
  const std::vector<Literal> before(bed.detection().literals().begin(), bed.detection().literals().end());
  bed.reload(bed.with_others(3));
  ASSERT_GT(bed.detection().literals().size(), before.size());
  EXPECT_NE(bed.detection().literals()[0].bytes, before[0].bytes);
  EXPECT_NE(bed.detection().rules().flowbits[0], "a");
}

}  // namespace
}  // namespace penstock::nids::testing
