// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/contested_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/bytes.h"
#include "nf/nids/detect/buffer_program.h"
#include "nf/nids/detect/contested_reading.h"

namespace penstock::nids {
namespace {

using penstock::testing::bytes_of;
using stack::ContestedBytes;
using stack::StreamChunk;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::string text_of(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

/// A chunk, by default at byte 100 of its stream.
class Chunk {
 public:
  explicit Chunk(std::string text, std::uint64_t begin = 100) : text_(std::move(text)), begin_(begin) {}
  Chunk& version(std::size_t at, std::string bytes, bool possible = true) {
    given_.push_back({at, std::move(bytes), possible});
    return *this;
  }
  Chunk& urgent(std::size_t at) {
    urgent_.push_back({.offset = begin_ + at});
    return *this;
  }
  /// Borrows from this object.
  [[nodiscard]] StreamChunk get() const {
    versions_.clear();
    for (const Given& version : given_) {
      versions_.push_back({.offset = begin_ + version.at,
                           .data = bytes_of(version.bytes).data(),
                           .length = static_cast<std::uint32_t>(version.bytes.size()),
                           .possible = version.possible});
    }
    return {.offset = begin_, .bytes = bytes_of(text_), .versions = versions_, .urgent = urgent_, .contested = true};
  }
  [[nodiscard]] ContestedText read(std::uint32_t left_out = 0) const {
    ContestedText text;
    text.read(get(), left_out);
    return text;
  }
  /// Everything that the receiver may have read, found by trying each choice at each position.
  [[nodiscard]] std::set<std::string> readings() const {
    std::set<std::string> all{""};
    for (std::size_t i = 0; i < text_.size(); ++i) {
      std::set<char> here{text_[i]};
      for (const Given& version : given_) {
        if (version.possible && version.at <= i && i < version.at + version.bytes.size()) {
          here.insert(version.bytes[i - version.at]);
        }
      }
      std::set<std::string> longer;
      for (const std::string& before : all) {
        for (const char byte : here) longer.insert(before + byte);
      }
      all = std::move(longer);
    }
    return all;
  }

 private:
  struct Given {
    std::size_t at;
    std::string bytes;
    bool possible;
  };
  std::string text_;
  std::uint64_t begin_;
  std::vector<Given> given_;
  mutable std::vector<ContestedBytes::Version> versions_;
  std::vector<ContestedBytes::UrgentMark> urgent_;
};

TEST(ContestedText, HasEveryReadingThatAChoiceOfVersionsGives) {
  const ContestedText text = Chunk("GOODxy").version(2, "TH").read();
  EXPECT_TRUE(text.differs());
  EXPECT_TRUE(text.find(bytes_of("GOOD"), false));
  EXPECT_TRUE(text.find(bytes_of("GOTH"), false));
  EXPECT_TRUE(text.find(bytes_of("OTDx"), false)) << "of both";
  EXPECT_EQ(text.find(bytes_of("xy"), false), 4U);
  EXPECT_FALSE(text.find(bytes_of("GOAT"), false));
  EXPECT_FALSE(text.find(bytes_of("goth"), false));
  EXPECT_TRUE(text.find(bytes_of("gotH"), true));
  EXPECT_FALSE(text.find(bytes_of("xyz"), false)) << "beyond the end";
}

TEST(ContestedText, IgnoresVersionsThatTheReceiverCannotHave) {
  EXPECT_FALSE(Chunk("GOOD").version(0, "EVIL", false).read().differs());
  EXPECT_FALSE(Chunk("GOOD").version(4, "EVIL").read().differs()) << "after the chunk";
}

TEST(ContestedText, LeavesUrgentBytesOut) {
  const Chunk chunk = Chunk("EVxIyL").urgent(2).urgent(4);
  EXPECT_EQ(text_of(chunk.read(3).bytes()), "EVIL");
  EXPECT_EQ(text_of(chunk.read(1).bytes()), "EVIyL");
  EXPECT_FALSE(chunk.read(0).differs());
  std::vector<std::uint32_t> choices;
  for_each_choice_of_urgent(chunk.get(), [&](std::uint32_t left_out) { choices.push_back(left_out); });
  EXPECT_THAT(choices, UnorderedElementsAre(0, 1, 2, 3));
}

TEST(ContestedText, ReadsAVersionAroundAnUrgentByte) {
  const ContestedText text = Chunk("GOxOD").version(1, "RxA").urgent(2).read(1);
  EXPECT_TRUE(text.find(bytes_of("GRAD"), false));
}

// Compared with all readings: a content is found if, and only if, one of them has it.
TEST(ContestedText, FindsAContentIfAReadingHasIt) {
  std::mt19937 random(1);
  const auto any = [&](unsigned below) { return static_cast<std::size_t>(random() % below); };
  const auto any_text = [&](std::size_t length) {
    std::string text;
    while (text.size() < length) text += "abAB"[any(4)];
    return text;
  };
  ContestedReader reader;
  unsigned found = 0;
  for (int round = 0; round < 2000; ++round) {
    Chunk chunk(any_text(8));
    for (std::size_t i = any(4); i-- > 0;) {
      const std::size_t at = any(8);
      chunk.version(at, any_text(1 + any(static_cast<unsigned>(8 - at))), any(4) != 0);
    }
    const ContestedText text = chunk.read();
    const std::set<std::string> readings = chunk.readings();
    const std::string content = any_text(2 + any(4));
    bool has = false;
    for (const std::string& reading : readings) has = has || reading.find(content) != std::string::npos;
    ASSERT_EQ(text.find(bytes_of(content), false).has_value(), has) << content;

    // A rule with this content matches the reading found, which is one that the receiver may have had.
    Content option;
    option.bytes.assign(content.begin(), content.end());
    const std::vector<BufferMatch> options{option};
    const bool holds = reader.find(text, chunk.get(), options, {}, [&](std::span<const std::uint8_t> bytes) {
      return text_of(bytes).find(content) != std::string::npos;
    });
    ASSERT_EQ(holds, has);
    if (!holds) continue;
    ++found;
    EXPECT_TRUE(readings.contains(text_of(reader.bytes()))) << text_of(reader.bytes());
  }
  EXPECT_GT(found, 300U);
}

// Compared with all readings: an expression matches if, and only if, it matches one of them.
TEST(ContestedReading, FindsAnExpressionIfAReadingMatches) {
  std::mt19937 random(3);
  const auto any = [&](unsigned below) { return static_cast<std::size_t>(random() % below); };
  const auto any_text = [&](std::size_t length) {
    std::string text;
    while (text.size() < length) text += "abcd"[any(4)];
    return text;
  };
  constexpr std::array kPatterns = {"ab[cd]{2}a",          "a.*bb", "^[ab]+c", "(?:abc|acd)d",  "[^a]a[^a]$",
                                    "(a|bc)+da.b",         "bb?cc", "a{3}",    "d|c*?ab{1,2}d", "(?i)AB.{1,3}CD",
                                    "\\Aa?b|[^\\D]*ccc\\z"};
  InspectionScratch scratch;
  ContestedReader reader;
  unsigned found = 0, missing = 0;
  for (int round = 0; round < 3000; ++round) {
    Chunk chunk(any_text(8), 0);
    for (std::size_t i = 1 + any(4); i-- > 0;) {
      const std::size_t at = any(8);
      chunk.version(at, any_text(1 + any(static_cast<unsigned>(8 - at))), any(4) != 0);
    }
    const ContestedText text = chunk.read();
    if (!text.differs()) continue;
    Pcre pcre;
    pcre.pattern = kPatterns[any(kPatterns.size())];
    const std::vector<BufferMatch> options{pcre};
    const auto program = BufferProgram::compile(options);
    ASSERT_TRUE(program) << to_string(program.error());
    const auto matches = [&](std::span<const std::uint8_t> bytes) { return program->matches(bytes, scratch); };
    const std::set<std::string> readings = chunk.readings();
    const bool has = std::ranges::any_of(readings, [&](const auto& reading) {
      scratch.begin_frame();
      return matches(bytes_of(reading));
    });
    scratch.begin_frame();
    const bool holds = reader.find(text, chunk.get(), options, expressions_of(options), matches);
    ASSERT_EQ(holds, has) << pcre.pattern << " in " << ::testing::PrintToString(readings);
    ++(has ? found : missing);
    if (!holds) continue;
    EXPECT_TRUE(readings.contains(text_of(reader.bytes()))) << text_of(reader.bytes());
  }
  EXPECT_GT(found, 300U);
  EXPECT_GT(missing, 300U);
}

//   the sender    |EXPR|ESS|I|ON-43fce8a0-END|
//   decoys        |    |   | |nine of them, with the expression's beginnings|
TEST(ContestedReading, FollowsAnExpressionThroughDecoysThatBeginLikeIt) {
  Chunk chunk("the EXPRESSIR/-43f/EXPRESSION-43fc/EXPRESSION-43fc/O");
  chunk.version(1, "EXPRESSION").version(12, "R/-43f/EXPRESSION-43fc/EXPRESSION-43fc/O");
  chunk.version(12, "ON-43fce8a0-ENDnhhqyhzhjrrvmgiltfobmaplm");
  chunk.version(12, "EXP/e8a0-/EXPRESSION/0-END/3fce/EXPRESSI");
  chunk.version(12, "?>AAC=?CBC>@=>?B?@A>>A<=B?B>>>C>>CCB>B?C");
  chunk.version(12, "EX/EXPR/EXPRESSION-43fce8a0-E/EXPRESSION");
  chunk.version(12, "fdhbdbbgeeghifdhdiccfefdhfgccgghigddbhbf");
  Pcre pcre;
  pcre.pattern = "the EXPRESSION-[a-f0-9]{8}-END";
  const std::vector<BufferMatch> options{pcre};
  const auto program = BufferProgram::compile(options);
  ASSERT_TRUE(program) << to_string(program.error());
  InspectionScratch scratch;
  const auto matches = [&](std::span<const std::uint8_t> bytes) { return program->matches(bytes, scratch); };
  const ContestedText text = chunk.read();
  ASSERT_FALSE(matches(text.bytes()));
  ContestedReader reader;
  EXPECT_TRUE(reader.find(text, chunk.get(), options, expressions_of(options), matches));
}

TEST(ContestedReading, CombinesContentsOfSeveralVersions) {
  const Chunk chunk = Chunk("one xxx three").version(4, "two").version(0, "ONE");
  Content one, two;
  one.bytes = {'O', 'N', 'E'};
  two.bytes = {'t', 'w', 'o'};
  const std::vector<BufferMatch> options{one, two};
  ContestedReader reader;
  EXPECT_TRUE(reader.find(chunk.read(), chunk.get(), options, {},
                          [](std::span<const std::uint8_t> bytes) { return text_of(bytes) == "ONE two three"; }));
}

//   the sender    |one |two |three!|         and another sender, who hides it
//                   |xxxxx|   |yyyy|
TEST(ContestedReading, SeparatesSegmentsThatContradictEachOther) {
  Chunk chunk("onxxxxxhreyyyy");
  chunk.version(2, "xxxxx").version(10, "yyyy").version(0, "one ").version(4, "two ").version(8, "three!");
  ContestedReader reader;
  std::set<std::string> read;
  EXPECT_FALSE(reader.find(chunk.read(), chunk.get(), {}, {}, [&](std::span<const std::uint8_t> bytes) {
    EXPECT_TRUE(read.insert(text_of(bytes)).second) << "each once";
    return false;
  }));
  EXPECT_THAT(read, ::testing::IsSupersetOf({"onxxxxxhreyyyy", "one two three!", "onxxxxx three!"}));
}

// A decoy that arrives last, over segments of one byte each.
TEST(ContestedReading, FindsManySegmentsThatOneContradicts) {
  const std::string attack = "EXPRESSION";
  Chunk chunk("##########");
  for (std::size_t i = 0; i < attack.size(); ++i) chunk.version(i, attack.substr(i, 1));
  chunk.version(0, "##########");
  ContestedReader reader;
  EXPECT_TRUE(reader.find(chunk.read(), chunk.get(), {}, {},
                          [&](std::span<const std::uint8_t> bytes) { return text_of(bytes) == attack; }));
}

TEST(ContestedSearch, FindsTheLiteralsThatMayBeThere) {
  const auto literal = [](std::string_view text, bool nocase = false) {
    return Literal{{text.begin(), text.end()}, nocase};
  };
  const std::vector<Literal> literals{literal("GOTH"), literal("goth"), literal("goth", true), literal("h"),
                                      literal("H"),    literal("TD"),   literal("GOAT"),       literal("yz")};
  const ContestedSearch search(literals);
  const ContestedText text = Chunk("GOODxy").version(2, "TH").read();
  std::set<std::string> found;
  EXPECT_TRUE(search.search(text, literals, [&](std::uint32_t index) {
    found.insert(text_of(literals[index].bytes) + (literals[index].nocase ? "/i" : ""));
  }));
  // For single bytes, the rule checks the case.
  EXPECT_THAT(found, ElementsAre("GOTH", "H", "TD", "goth/i", "h"));
}

}  // namespace
}  // namespace penstock::nids
