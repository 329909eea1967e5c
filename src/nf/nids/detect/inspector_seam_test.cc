// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Matches across the seams of a stream's pieces: each is reported exactly once, wherever it is, however the stream was
// cut into segments, in whatever order they arrive, and whoever searched the payloads.

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/nids/detect/stream_reach.h"
#include "nf/nids/detect/testing/cut_streams.h"

namespace penstock::nids::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kChunk = 48;

struct Case {
  const char* rule;
  std::string text;  // a text that the rule matches
};

class Seam : public ::testing::TestWithParam<std::tuple<Mode, SearchedBy>> {
 protected:
  /// Places the text at every position of a stream with several pieces.
  static void expect_once_at_every_place(const Case& given) {
    const auto [mode, who] = GetParam();
    std::mt19937 random(7);
    CutStreams streams(given.rule, mode, who, kChunk, 3 * kChunk);
    for (std::size_t before = 0; before < 4 * kChunk; ++before) {
      const std::string text = std::string(before, '.') + given.text + std::string(3 * kChunk, '.');
      for (std::uint32_t i = 0; i < penstock::testing::rounds(5); ++i) {
        ASSERT_THAT(streams.alerts_of(text, random), SizeIs(1)) << given.rule << " after " << before;
      }
    }
  }
};

TEST_P(Seam, ReportsAContentOnce) {
  expect_once_at_every_place({R"(alert tcp any any -> any any (content:"attack at dawn"; sid:1;))", "attack at dawn"});
  expect_once_at_every_place({R"(alert tcp any any -> any any (content:"AT"; nocase; sid:1;))", "at"});
  const std::string longer = "a pattern that takes more than a piece of the stream, and some of the next";
  const std::string rule = R"(alert tcp-stream any any -> any any (content:")" + longer + R"("; sid:1;))";
  expect_once_at_every_place({rule.c_str(), longer});
}

TEST_P(Seam, ReportsContentsOnEitherSideOnce) {
  const std::string text = "attack in twenty days at dawn";
  for (const char* const rule :
       {R"(alert tcp any any -> any any (content:"attack"; content:"dawn"; distance:0; sid:1;))",
        R"(alert tcp any any -> any any (content:"dawn"; content:"attack"; sid:1;))",
        R"(alert tcp any any -> any any (content:"at"; content:"dawn"; within:40; sid:1;))",
        R"(alert tcp any any -> any any (content:"attack"; fast_pattern; content:"days";
                                    distance:5; within:20; content:!"dusk"; within:9; isdataat:12,relative; sid:1;))",
        R"(alert tcp any any -> any any (content:"dawn"; fast_pattern; content:"twenty";
                                    distance:-19; within:30; sid:1;))"}) {
    std::string one_line(rule);
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    expect_once_at_every_place({one_line.c_str(), text});
  }
}

TEST_P(Seam, ReportsAnExpressionOnce) {
  expect_once_at_every_place(
      {R"(alert tcp any any -> any any (pcre:"/att.ck\s+at\s+d[a-z]wn/"; sid:1;))", "attack at dawn"});
  expect_once_at_every_place({R"(alert tcp any any -> any any (content:"attack"; pcre:"/^ at .*dawn/R"; sid:1;))",
                              "attack at the break of dawn"});
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Seam,
                         ::testing::Combine(::testing::Values(Mode::watching, Mode::inline_),
                                            ::testing::Values(SearchedBy::us, SearchedBy::another)));

// --- Rules with positions ------------------------------------------------------------------------------------------

/// The alerts for a stream in exactly these segments.
std::vector<std::uint32_t> sids_of(std::string_view rules, const std::vector<std::string>& segments, Mode mode) {
  stack::TrackerOptions tracker;
  tracker.chunk_bytes = 1;
  tracker.inline_streams = mode == Mode::inline_;
  DetectionBed bed(rules, {}, {}, tracker);
  Conversation talk;
  bed.frames(talk.handshake());
  for (const std::string& segment : segments) bed.frames({talk.data(0, segment), talk.ack(1), talk.data(0, {})});
  bed.finish();
  return bed.sids();
}

constexpr std::string_view kPlaced = R"(
alert tcp any any -> any any (content:"attack"; depth:8; sid:1;)
alert tcp any any -> any any (content:"attack"; startswith; sid:2;)
alert tcp any any -> any any (content:"attack"; offset:1; sid:3;)
alert tcp any any -> any any (content:"attack"; isdataat:2; sid:4;)
alert tcp any any -> any any (pcre:"/^attack/"; sid:5;))";

TEST(SeamOfPlaces, PlacesCountFromWhereNewBytesBegin) {
  const std::string much(2 * kMostStreamReach, '.');
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    // Rules that match anywhere after a position of the stream also match across a seam.
    const std::vector<std::string> straddles{much, much, "att", "ack"};
    EXPECT_THAT(sids_of(kPlaced, straddles, mode), ::testing::UnorderedElementsAre(3, 4));
    // Off the path, rules 1 and 2 also test the packet.
    const std::vector<std::uint32_t> sids = sids_of(kPlaced, {much, much, "attack", "..."}, mode);
    EXPECT_THAT((std::set<std::uint32_t>(sids.begin(), sids.end())), ElementsAre(1, 2, 3, 4, 5));
  }
}

TEST(SeamOfPlaces, AtTheStreamsStartTheyCountFromThere) {
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    // Add a rule without a position, since the tracker keeps bytes only for such rules.
    const std::string rules = std::string(kPlaced) + R"(
alert tcp any any -> any any (content:"0123456789"; sid:6;))";
    EXPECT_THAT(sids_of(rules, {".att", "ack"}, mode), ::testing::UnorderedElementsAre(1, 3, 4));
    EXPECT_THAT(sids_of(rules, {"a", "ttac", "k"}, mode), ::testing::UnorderedElementsAre(1, 2, 4, 5));
  }
}

TEST(SeamOfPlaces, ALineBeginsOnlyAfterALine) {
  constexpr std::string_view kRule = R"(alert tcp any any -> any any (pcre:"/^attack/m"; sid:1;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(sids_of(kRule, {std::string(9, '.') + "\nat", "tack"}, mode), ElementsAre(1));
    // The bytes kept begin with the word, which is in the middle of a line.
    EXPECT_THAT(sids_of(kRule, {"..........", "atta" + std::string(kMostStreamReach - 4, 'x'), "ck"}, mode), IsEmpty());
    EXPECT_THAT(sids_of(R"(alert tcp any any -> any any (pcre:"/^attack.*dawn/ms"; sid:1;))",
                        {std::string(9, '.'), "attack" + std::string(kMostStreamReach - 6, 'x'), "dawn"}, mode),
                IsEmpty());
  }
}

TEST(SeamOfPlaces, TheTargetOfARequestIsReadAcrossIt) {
  constexpr std::string_view kRule = R"(alert tcp any any -> any any (pcre:"/evil\.php/U"; sid:1;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(sids_of(kRule, {"Host: a\r\n\r\nGET /ev", "il.php HTTP/1.1\r\n"}, mode), ElementsAre(1));
  }
}

// --- Matches over long distances -----------------------------------------------------------------------------------

constexpr std::string_view kApart = R"(
alert tcp any any -> any any (content:"FIRST"; content:"SECOND"; distance:0; sid:1;)
alert tcp any any -> any any (content:"SECOND"; content:"FIRST"; sid:2;)
alert tcp any any -> any any (content:"FIRST"; content:"SECOND"; within:3000; sid:3;)
alert tcp any any -> any any (pcre:"/FIRST.*SECOND/s"; sid:4;)
alert tcp any any -> any any (content:"FIRST"; pcre:"/SECOND/R"; sid:5;)
alert tcp any any -> any any (content:"FIRST"; fast_pattern; content:"SECOND"; distance:0; byte_test:1,=,0x2e,0,relative; sid:6;)
alert tcp any any -> any any (content:"SECOND"; fast_pattern; content:"FIRST"; offset:1; isdataat:1000; sid:7;)
alert tcp any any -> any any (content:"IRS"; byte_jump:1,1,relative,multiplier 1,post_offset 0; content:"SECOND"; sid:8;))";

/// FIRST and SECOND at a distance, in segments of 100 bytes:
///
///     …|..FIRST..|.........|  …  |....SECO|ND......|…
TEST_P(Seam, ReportsContentsThatAreFarApart) {
  const auto [mode, who] = GetParam();
  std::mt19937 random(3);
  for (const std::size_t apart : {1UL, 400UL, 1500UL, 2540UL}) {
    CutStreams streams(kApart, mode, who, kMostStreamReach, 100);
    for (const std::size_t before : {1UL, 77UL, 3000UL, 7001UL}) {
      const std::string text =
          std::string(before, '.') + "FIRST" + std::string(apart, '.') + "SECOND" + std::string(1500, '.');
      std::vector<std::uint32_t> sids = streams.alerts_of(text, random);
      std::sort(sids.begin(), sids.end());
      EXPECT_THAT(sids, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << apart << " apart, after " << before;
    }
  }
}

// --- Reported matches ----------------------------------------------------------------------------------------------

/// The second match crosses a seam directly after the first one, which is inspected again together with it.
TEST(SeamOfRepeats, ReportsAMatchAfterAReportedOne) {
  constexpr std::string_view kRule = R"(alert tcp any any -> any any (content:"att"; content:"ack"; sid:1;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(sids_of(kRule, {"attack", "att", ".", "ack", "."}, mode), ElementsAre(1, 1));
    EXPECT_THAT(sids_of(kRule, {"att", "ack", ".att.", "ack", "."}, mode), ElementsAre(1, 1));
    EXPECT_THAT(sids_of(kRule, {"att", "ack", ".ack.", "ack", "."}, mode), ElementsAre(1)) << "bytes of one match";
  }
}

TEST(SeamOfRepeats, ReportsEachNewMatchOnce) {
  constexpr std::string_view kRules = R"(
alert tcp any any -> any any (content:"attack"; sid:1;)
alert tcp any any -> any any (content:"att"; content:"ack"; within:3; sid:2;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(sids_of(kRules, {"attack", ".", ".", "."}, mode), ::testing::UnorderedElementsAre(1, 2));
    EXPECT_THAT(sids_of(kRules, {"attack", "att", "ack", "."}, mode), ::testing::UnorderedElementsAre(1, 2, 1, 2));
  }
}

}  // namespace
}  // namespace penstock::nids::testing
