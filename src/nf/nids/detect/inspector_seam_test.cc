// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What lies over the seams of a stream's pieces: it is told, and told once, wherever it lies, however the stream was
// cut into segments, in whatever order they come, and whoever searched the payloads.

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "nf/nids/detect/content_search.h"
#include "nf/nids/detect/stream_reach.h"
#include "nf/nids/detect/testing/detection_bed.h"

namespace penstock::nids::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kChunk = 48;

enum class Mode : std::uint8_t { watching, inline_ };
enum class SearchedBy : std::uint8_t { us, another };

/// The literals whose first bytes are in the frame's payload, as a GPU tells them: in order, each once.
std::vector<std::uint32_t> literals_in(const Detection& detection, const Frame& frame) {
  constexpr std::size_t kCut = 8, kHeaders = 14 + 20 + 20;
  const auto in_lower_case = [](auto from, auto to) {  // no rule here has upper case that matters
    std::string text(from, to);
    for (char& c : text) c = static_cast<char>(to_lower(static_cast<std::uint8_t>(c)));
    return text;
  };
  const std::string payload = in_lower_case(frame.begin() + kHeaders, frame.end());
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < detection.literals().size(); ++i) {
    const auto& bytes = detection.literals()[i].bytes;
    const auto length = static_cast<std::ptrdiff_t>(std::min(kCut, bytes.size()));
    const std::string text = in_lower_case(bytes.begin(), bytes.begin() + length);
    if (payload.find(text) != payload.npos) found.push_back(i);
  }
  return found;
}

/// Streams from client to server, one after the other, each cut at random, with acknowledgements at random. Inline,
/// segments also change places and come again.
class CutStreams {
 public:
  CutStreams(std::string_view rules, Mode mode, SearchedBy who)
      : mode_(mode), who_(who), bed_(rules, {.drops = false}, {}, tracker(mode)) {}

  /// How many alerts there are of the next stream.
  [[nodiscard]] std::size_t alerts_of(const std::string& text, std::mt19937& random) {
    const std::size_t before = bed_.alerts().size();
    Conversation talk(++port_);
    for (const Frame& one : talk.handshake()) frame(one);
    talk.skip(0, static_cast<std::uint32_t>(text.size()));
    const std::size_t most = 1 + random() % (3 * kChunk);
    std::vector<std::pair<std::size_t, std::size_t>> cuts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = std::min(text.size() - at, 1 + random() % most);
      cuts.emplace_back(at, length);
      at += length;
    }
    const auto segment = [&](std::size_t from, std::size_t length) {
      frame(talk.data_at(0, static_cast<std::int64_t>(from) - static_cast<std::int64_t>(text.size()),
                         std::string_view(text).substr(from, length)));
    };
    Conversation acks(port_);
    static_cast<void>(acks.handshake());
    std::size_t acked = 0;
    const auto acknowledge = [&](std::size_t up_to) {
      acks.skip(0, static_cast<std::uint32_t>(up_to - acked));
      acked = up_to;
      frame(acks.ack(1));
    };
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const bool swaps = mode_ == Mode::inline_ && i + 1 < cuts.size() && random() % 4 == 0;
      if (swaps) segment(cuts[i + 1].first, cuts[i + 1].second);
      segment(cuts[i].first, cuts[i].second);
      if (swaps) ++i;
      const std::size_t sent = cuts[i].first + cuts[i].second;
      if (random() % 4 == 0) {  // again, from some place on
        const std::size_t back = std::min<std::size_t>(sent - acked, random() % 20);
        segment(sent - back, back);
      }
      if (random() % 2 == 0) acknowledge(sent);
    }
    acknowledge(text.size());
    bed_.finish();
    return bed_.alerts().size() - before;
  }

 private:
  static stack::TrackerOptions tracker(Mode mode) {
    stack::TrackerOptions options;
    options.chunk_bytes = kChunk;
    options.inline_streams = mode == Mode::inline_;
    return options;
  }
  void frame(const Frame& frame) {
    if (who_ == SearchedBy::us) return bed_.frame(frame);
    const std::vector<std::uint32_t> literals = literals_in(bed_.detection(), frame);
    bed_.frame(frame, {.known = true, .literals = literals});
  }

  Mode mode_;
  SearchedBy who_;
  DetectionBed bed_;
  std::uint16_t port_ = 1000;
};

struct Case {
  const char* rule;
  std::string text;  // what it describes
};

class Seam : public ::testing::TestWithParam<std::tuple<Mode, SearchedBy>> {
 protected:
  /// The text at every place of a stream of several pieces.
  static void expect_once_at_every_place(const Case& given) {
    const auto [mode, who] = GetParam();
    std::mt19937 random(7);
    CutStreams streams(given.rule, mode, who);
    for (std::size_t before = 0; before < 4 * kChunk; ++before) {
      const std::string text = std::string(before, '.') + given.text + std::string(3 * kChunk, '.');
      for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(streams.alerts_of(text, random), 1U) << given.rule << " behind " << before;
      }
    }
  }
};

TEST_P(Seam, AContentIsToldOnce) {
  expect_once_at_every_place({R"(alert tcp any any -> any any (content:"attack at dawn"; sid:1;))", "attack at dawn"});
  expect_once_at_every_place({R"(alert tcp any any -> any any (content:"AT"; nocase; sid:1;))", "at"});
  const std::string longer = "a pattern that takes more than a piece of the stream, and some of the next";
  const std::string rule = R"(alert tcp-stream any any -> any any (content:")" + longer + R"("; sid:1;))";
  expect_once_at_every_place({rule.c_str(), longer});
}

TEST_P(Seam, ContentsOnEitherSideAreToldOnce) {
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

TEST_P(Seam, AnExpressionIsToldOnce) {
  expect_once_at_every_place(
      {R"(alert tcp any any -> any any (pcre:"/att.ck\s+at\s+d[a-z]wn/"; sid:1;))", "attack at dawn"});
  expect_once_at_every_place({R"(alert tcp any any -> any any (content:"attack"; pcre:"/^ at .*dawn/R"; sid:1;))",
                              "attack at the break of dawn"});
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Seam,
                         ::testing::Combine(::testing::Values(Mode::watching, Mode::inline_),
                                            ::testing::Values(SearchedBy::us, SearchedBy::another)));

// --- What has a place ----------------------------------------------------------------------------------------------

/// A stream in pieces of exactly these segments.
std::vector<std::uint32_t> told(std::string_view rules, const std::vector<std::string>& segments, Mode mode) {
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
    // Those that hold anywhere behind a place of the stream do so over a seam too.
    const std::vector<std::string> straddles{much, much, "att", "ack"};
    EXPECT_THAT(told(kPlaced, straddles, mode), ::testing::UnorderedElementsAre(3, 4));
    // Watching, rules 1 and 2 look at the packet as well.
    const std::vector<std::uint32_t> sids = told(kPlaced, {much, much, "attack", "..."}, mode);
    EXPECT_THAT((std::set<std::uint32_t>(sids.begin(), sids.end())), ElementsAre(1, 2, 3, 4, 5));
  }
}

TEST(SeamOfPlaces, AtTheStreamsStartTheyCountFromThere) {
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    // One more that has no place, since the tracker keeps bytes for such rules alone.
    const std::string rules = std::string(kPlaced) + R"(
alert tcp any any -> any any (content:"0123456789"; sid:6;))";
    EXPECT_THAT(told(rules, {".att", "ack"}, mode), ::testing::UnorderedElementsAre(1, 3, 4));
    EXPECT_THAT(told(rules, {"a", "ttac", "k"}, mode), ::testing::UnorderedElementsAre(1, 2, 4, 5));
  }
}

TEST(SeamOfPlaces, ALineBeginsOnlyBehindALine) {
  constexpr std::string_view kRule = R"(alert tcp any any -> any any (pcre:"/^attack/m"; sid:1;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(told(kRule, {std::string(9, '.') + "\nat", "tack"}, mode), ElementsAre(1));
    // The look back begins with the word, which is in the midst of a line.
    EXPECT_THAT(told(kRule, {"..........", "atta" + std::string(kMostStreamReach - 4, 'x'), "ck"}, mode), IsEmpty());
    EXPECT_THAT(told(R"(alert tcp any any -> any any (pcre:"/^attack.*dawn/ms"; sid:1;))",
                     {std::string(9, '.'), "attack" + std::string(kMostStreamReach - 6, 'x'), "dawn"}, mode),
                IsEmpty());
  }
}

TEST(SeamOfPlaces, TheTargetOfARequestIsReadOverIt) {
  constexpr std::string_view kRule = R"(alert tcp any any -> any any (pcre:"/evil\.php/U"; sid:1;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(told(kRule, {"Host: a\r\n\r\nGET /ev", "il.php HTTP/1.1\r\n"}, mode), ElementsAre(1));
  }
}

// --- What was told -------------------------------------------------------------------------------------------------

TEST(SeamOfRepeats, EachNewMatchIsToldAndNoneAgain) {
  constexpr std::string_view kRules = R"(
alert tcp any any -> any any (content:"attack"; sid:1;)
alert tcp any any -> any any (content:"att"; content:"ack"; within:3; sid:2;))";
  for (const Mode mode : {Mode::watching, Mode::inline_}) {
    EXPECT_THAT(told(kRules, {"attack", ".", ".", "."}, mode), ::testing::UnorderedElementsAre(1, 2));
    EXPECT_THAT(told(kRules, {"attack", "att", "ack", "."}, mode), ::testing::UnorderedElementsAre(1, 2, 1, 2));
  }
}

}  // namespace
}  // namespace penstock::nids::testing
