// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/buffer_program.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "nf/nids/detect/matches_for_test.h"

namespace penstock::nids {
namespace {

using Matches = std::vector<BufferMatch>;
using Is = ByteTest::Operator;
using Math = ByteMath::Operator;
using Range = NumberRange::Operator;

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

InspectionScratch& scratch() {
  static InspectionScratch scratch;
  return scratch;
}

bool match(std::string_view text, const Matches& matches) {
  auto program = BufferProgram::compile(matches);
  EXPECT_TRUE(program) << to_string(program.error());
  scratch().begin_frame();
  scratch().begin_rule();
  return program && program->matches(as_bytes(text), scratch());
}

/// In a buffer other than the payload, where relative options are set up differently.
bool match_in(Buffer buffer, std::string_view text, const Matches& matches, const Matches& base64_data = {}) {
  auto program = BufferProgram::compile(BufferMatches{buffer, matches}, base64_data);
  EXPECT_TRUE(program) << to_string(program.error());
  scratch().begin_frame();
  scratch().begin_rule();
  return program && program->matches(as_bytes(text), scratch());
}

using namespace std::string_view_literals;

TEST(BufferProgram, FindsAContentAnywhere) {
  EXPECT_TRUE(match("xxabcxx", {content("abc")}));
  EXPECT_TRUE(match("abc", {content("abc")}));
  EXPECT_FALSE(match("ab", {content("abc")}));
  EXPECT_FALSE(match("xxABCxx", {content("abc")}));
  EXPECT_TRUE(match("xxABcxx", {content("aBc").nocase()}));
  EXPECT_FALSE(match("x@Bc", {content("`bc").nocase()}));  // case folding only applies to letters
}

TEST(BufferProgram, HasNoMatchWithoutABuffer) {
  auto program = BufferProgram::compile(Matches{content("a").negated()});
  ASSERT_TRUE(program);
  EXPECT_FALSE(program->matches({}, scratch()));
  EXPECT_TRUE(match("", {content("a").negated()}));
  EXPECT_TRUE(match("", {bsize(Range::equal, 0)}));
}

TEST(BufferProgram, PlacesByOffsetAndDepthFromTheStart) {
  EXPECT_TRUE(match("xxabc", {content("abc").offset(2)}));
  EXPECT_FALSE(match("xxabc", {content("abc").offset(3)}));
  EXPECT_TRUE(match("xxabc", {content("abc").depth(5)}));
  EXPECT_FALSE(match("xxabc", {content("abc").depth(4)}));
  EXPECT_TRUE(match("xxabc", {content("abc").offset(1).depth(4)}));
  EXPECT_FALSE(match("xxabc", {content("abc").offset(1).depth(3)}));
  EXPECT_TRUE(match("abcx", {content("abc").starts_with()}));
  EXPECT_FALSE(match("xabc", {content("abc").starts_with()}));
  EXPECT_FALSE(match("abc", {content("abc").offset(9)}));
}

TEST(BufferProgram, PlacesByDistanceAndWithinFromTheLastEnd) {
  EXPECT_TRUE(match("a12b", {content("a"), content("b").distance(2)}));
  EXPECT_FALSE(match("a12b", {content("a"), content("b").distance(3)}));
  EXPECT_TRUE(match("a12b", {content("a"), content("b").within(3)}));
  EXPECT_FALSE(match("a12b", {content("a"), content("b").within(2)}));
  EXPECT_TRUE(match("a12b", {content("a"), content("b").distance(1).within(2)}));
  EXPECT_FALSE(match("a12b", {content("a"), content("b").distance(1).within(1)}));
  EXPECT_TRUE(match("ba", {content("a"), content("b").distance(-2).within(1)}));
  EXPECT_TRUE(match("ba", {content("a"), content("b").distance(-200)}));
  EXPECT_FALSE(match("ba", {content("a"), content("b").distance(-1)}));
  // A window that ends before the start of the buffer has no end (Suricata's unsigned arithmetic).
  EXPECT_TRUE(match("xxab", {content("a"), content("b").distance(-10).within(3)}));
  EXPECT_FALSE(match("xxab", {content("a"), content("b").distance(-2).within(2)}));
}

TEST(BufferProgram, BacktracksToAnotherMatchOfAnEarlierContent) {
  EXPECT_TRUE(match("a1111a2b", {content("a"), content("b").within(2)}));
  EXPECT_TRUE(match("ax ax axb", {content("a"), content("x").within(1), content("b").within(1)}));
  EXPECT_TRUE(match("aab", {content("a"), content("b").distance(0).within(1)}));
  EXPECT_FALSE(match("aaxb", {content("a"), content("b").within(1)}));
  // Also with overlapping matches.
  EXPECT_TRUE(match("aaaab", {content("aaa"), content("b").within(1)}));
}

TEST(BufferProgram, GivesUpIfNoOtherPositionIsTried) {
  // Nothing depends on the position of 'a', so its second occurrence, which would match, is not tried.
  EXPECT_TRUE(match("a1a2", {content("a"), byte_test(1, Is::equal, '2', 0).relative()}));
  EXPECT_FALSE(match("a1a2", {content("a"), isdataat(0), byte_test(1, Is::equal, '2', 0).relative()}));
  // In another buffer, the byte_test counts from the preceding content, whatever is between them.
  EXPECT_TRUE(
      match_in(Buffer::tcp_header, "a1a2", {content("a"), isdataat(0), byte_test(1, Is::equal, '2', 0).relative()}));
  // With only a distance, the first position leaves the most room.
  EXPECT_FALSE(match("ab1ab2", {content("a"), content("b").distance(0), content("1"), content("3").distance(0)}));
  EXPECT_TRUE(match("ab1ab2", {content("a"), content("b").distance(0), content("2").within(1)}));
}

TEST(BufferProgram, NegatedContentsAreNowhereInTheirWindow) {
  EXPECT_TRUE(match("xyz", {content("a").negated()}));
  EXPECT_FALSE(match("xaz", {content("a").negated()}));
  EXPECT_TRUE(match("xxa", {content("a").negated().depth(2)}));
  EXPECT_FALSE(match("xaa", {content("a").negated().depth(2)}));
  EXPECT_TRUE(match("x", {content("a").negated().offset(5)}));
  EXPECT_TRUE(match("k12a", {content("k"), content("a").negated().within(2)}));
  EXPECT_FALSE(match("k1a2", {content("k"), content("a").negated().within(2)}));
  // Another k has no a after it.
  EXPECT_TRUE(match("kak1", {content("k"), content("a").negated().within(1)}));
  EXPECT_TRUE(match("kak1", {content("k"), content("a").negated().distance(0)}));
  // The position stays at the end of the last match.
  EXPECT_TRUE(match("k12b", {content("k"), content("a").negated(), content("b").distance(2).within(1)}));
}

TEST(BufferProgram, EndsWithTheBuffersEnd) {
  EXPECT_TRUE(match("abcabc", {content("abc").ends_with()}));
  EXPECT_FALSE(match("abcabcx", {content("abc").ends_with()}));
  EXPECT_FALSE(match("abcx", {content("abc").ends_with().depth(3)}));
  EXPECT_TRUE(match("xabc", {content("x"), content("abc").ends_with().distance(0)}));
  EXPECT_FALSE(match("xabc", {content("abc").negated().ends_with()}));
  EXPECT_TRUE(match("abcx", {content("abc").negated().ends_with()}));
  // If it is negated, only the first match is tested.
  EXPECT_TRUE(match("abcabc", {content("abc").negated().ends_with()}));
  // isdataat:!1,relative after a content means the same.
  EXPECT_TRUE(match("abcabc", {content("abc"), isdataat(1).relative().negated()}));
  EXPECT_FALSE(match("abcabcx", {content("abc"), isdataat(1).relative().negated()}));
}

TEST(BufferProgram, TestsWhetherDataAreAtAPosition) {
  EXPECT_TRUE(match("0123456789", {isdataat(9)}));
  EXPECT_FALSE(match("0123456789", {isdataat(10)}));
  EXPECT_TRUE(match("0123456789", {isdataat(10).negated()}));
  EXPECT_FALSE(match("0123456789", {isdataat(9).negated()}));
  // A relative isdataat requires that many bytes.
  EXPECT_TRUE(match("0123456789", {isdataat(10).relative()}));
  EXPECT_FALSE(match("0123456789", {isdataat(11).relative()}));
  EXPECT_TRUE(match("a123", {content("a"), isdataat(3).relative()}));
  EXPECT_FALSE(match("a123", {content("a"), isdataat(4).relative()}));
  EXPECT_TRUE(match("a123", {content("a"), isdataat(4).relative().negated()}));
  EXPECT_FALSE(match("a123", {content("a"), isdataat(3).relative().negated()}));
  // Another match has fewer bytes after it.
  EXPECT_TRUE(match("a123a1", {content("a"), isdataat(2).relative().negated()}));
  EXPECT_TRUE(match("\x03xyz"sv, {byte_extract(1, 0, 0), isdataat(variable(0)).relative()}));
  EXPECT_FALSE(match("\x04xyz"sv, {byte_extract(1, 0, 0), isdataat(variable(0)).relative()}));
  EXPECT_TRUE(match("\x03xyz"sv, {byte_extract(1, 0, 0), isdataat(variable(0))}));
  EXPECT_FALSE(match("\xff\xff\xff\xff"sv, {byte_extract(4, 0, 0), isdataat(variable(0))}));
  EXPECT_TRUE(match("\xff\xff\xff\xff"sv, {byte_extract(4, 0, 0), isdataat(variable(0)).negated()}));
}

TEST(BufferProgram, TestsBinaryNumbers) {
  EXPECT_TRUE(match("\x01\x02\x03"sv, {byte_test(2, Is::equal, 0x0102, 0)}));
  EXPECT_TRUE(match("\x01\x02\x03"sv,
                    {byte_test(2, Is::equal, 0x0201, 0).with([](ByteTest& o) { o.order = ByteOrder::little; })}));
  EXPECT_TRUE(match("\x01\x02\x03"sv, {byte_test(1, Is::greater, 2, 2)}));
  EXPECT_FALSE(match("\x01\x02\x03"sv, {byte_test(1, Is::greater, 3, 2)}));
  EXPECT_TRUE(match("\x01\x02\x03"sv, {byte_test(1, Is::greater_equal, 3, 2)}));
  EXPECT_TRUE(match("\x01\x02\x03"sv, {byte_test(1, Is::less, 2, 0)}));
  EXPECT_FALSE(match("\x01\x02\x03"sv, {byte_test(1, Is::less, 1, 0)}));
  EXPECT_TRUE(match("\x01\x02\x03"sv, {byte_test(1, Is::less_equal, 1, 0)}));
  EXPECT_TRUE(match("\x06"sv, {byte_test(1, Is::bit_and, 2, 0)}));
  EXPECT_FALSE(match("\x06"sv, {byte_test(1, Is::bit_and, 8, 0)}));
  EXPECT_TRUE(match("\x06"sv, {byte_test(1, Is::bit_and, 8, 0).negated()}));
  EXPECT_FALSE(match("\x06"sv, {byte_test(1, Is::bit_xor, 6, 0)}));
  EXPECT_TRUE(match("\x06"sv, {byte_test(1, Is::bit_xor, 5, 0)}));
  EXPECT_FALSE(match("\x01\x02"sv, {byte_test(2, Is::equal, 0x0102, 1)}));
  EXPECT_FALSE(match("\x01\x02"sv, {byte_test(1, Is::equal, 1, -1)}));
  EXPECT_TRUE(match("\xff\xff\xff\xff\xff\xff\xff\xff"sv, {byte_test(8, Is::equal, -1, 0)}));
  EXPECT_FALSE(match("\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, {byte_test(9, Is::equal, -1, 0)}));
  // It does not move the position.
  EXPECT_TRUE(
      match("a\x05"
            "b"sv,
            {content("a"), byte_test(1, Is::equal, 5, 0).relative(), content("b").distance(1).within(1)}));
  // The value is masked and shifted right: 'H' & 0xf8 is 0x48, which is 9 in units of the mask's lowest bit.
  EXPECT_TRUE(match("HT", {byte_test(1, Is::equal, 9, 0).with([](ByteTest& o) { o.bitmask = 0xf8; })}));
  EXPECT_TRUE(match("HT", {byte_test(2, Is::equal, 0x90a, 0).with([](ByteTest& o) { o.bitmask = 0xf8f8; })}));
}

TEST(BufferProgram, TestsNumbersInText) {
  const auto is = [](std::string_view text, std::int64_t bytes, NumberText base, std::int64_t value) {
    return match(text, {byte_test(bytes, Is::equal, value, 0).text(base)});
  };
  EXPECT_TRUE(is("123x", 3, NumberText::decimal, 123));
  EXPECT_TRUE(is("123x", 4, NumberText::decimal, 123));
  EXPECT_TRUE(is("123", 2, NumberText::decimal, 12));
  EXPECT_TRUE(is(" 42 ", 4, NumberText::decimal, 42));
  EXPECT_TRUE(is("ff", 2, NumberText::hexadecimal, 255));
  EXPECT_TRUE(is("0xFF", 4, NumberText::hexadecimal, 255));
  EXPECT_TRUE(is("0xzz", 4, NumberText::hexadecimal, 0));
  EXPECT_TRUE(is("778", 3, NumberText::octal, 63));
  EXPECT_TRUE(is("12", 2, NumberText::automatic, 12));
  EXPECT_TRUE(is("012", 3, NumberText::automatic, 10));
  EXPECT_TRUE(is("0x1f", 4, NumberText::automatic, 31));
  EXPECT_TRUE(is("0x1f", 4, NumberText::automatic, 31));
  EXPECT_TRUE(is("017", 3, NumberText::automatic, 15));
  EXPECT_TRUE(is("17", 2, NumberText::automatic, 17));
  EXPECT_TRUE(is("09", 2, NumberText::automatic, 0));
  EXPECT_TRUE(is("0x", 2, NumberText::automatic, 0));
  EXPECT_TRUE(is("-1", 2, NumberText::decimal, -1));
  EXPECT_FALSE(is("x1", 2, NumberText::decimal, 0));
  EXPECT_TRUE(is("18446744073709551615", 20, NumberText::decimal, -1));
  EXPECT_FALSE(is("18446744073709551616", 20, NumberText::decimal, 0));
}

TEST(BufferProgram, JumpsPastTheNumberThatItReads) {
  const auto jump = byte_jump(1, 0).relative();
  // 2 bytes after the length byte.
  EXPECT_TRUE(match("k\x02..b"sv, {content("k"), jump, content("b").within(1)}));
  EXPECT_FALSE(match("k\x01..b"sv, {content("k"), jump, content("b").within(1)}));
  // Past the end: no match.
  EXPECT_FALSE(match("k\x03..b"sv, {content("k"), jump}));
  EXPECT_TRUE(match("\x02..b"sv, {byte_jump(1, 0), content("b").within(1)}));
  EXPECT_TRUE(
      match("..\x03"
            "b"sv,
            {byte_jump(1, 2).with([](ByteJump& o) { o.from_beginning = true; }), content("b").within(1)}));
  EXPECT_TRUE(
      match("k\x01....b"sv, {content("k"), jump.with([](ByteJump& o) { o.multiplier = 4; }), content("b").within(1)}));
  EXPECT_TRUE(
      match("k\x01....b"sv, {content("k"), jump.with([](ByteJump& o) { o.align = true; }), content("b").within(1)}));
  EXPECT_TRUE(match("k\x03..b"sv, {content("k"), jump.with([](ByteJump& o) { o.post_offset = number(-1); }),
                                   content("b").within(1)}));
  EXPECT_TRUE(
      match("k\x24..b"sv, {content("k"), jump.with([](ByteJump& o) { o.bitmask = 0xf0; }), content("b").within(1)}));
  // A position before the start becomes the start.
  EXPECT_TRUE(match("bk\x01"sv, {content("k"), jump.with([](ByteJump& o) { o.post_offset = number(-100); }),
                                 content("b").within(1)}));
  EXPECT_TRUE(match("...13........b..........."sv, {byte_jump(2, 3).text(NumberText::decimal).with([](ByteJump& o) {
                                                      o.from_end = true;
                                                      o.post_offset = number(-25);
                                                    }),
                                                    content("b").within(1)}));
}

TEST(BufferProgram, ExtractsVariablesForLaterOptions) {
  // "\x02" is offset, depth, distance, within, or a value.
  EXPECT_TRUE(match("\x02.ab"sv, {byte_extract(1, 0, 0), content("a").offset(variable(0))}));
  EXPECT_FALSE(
      match("\x02"
            "a.b"sv,
            {byte_extract(1, 0, 0), content("a").offset(variable(0))}));
  EXPECT_TRUE(
      match("\x02"
            "a.b"sv,
            {byte_extract(1, 0, 0), content("a").depth(variable(0))}));
  EXPECT_FALSE(match("\x02.a"sv, {byte_extract(1, 0, 0), content("a").depth(variable(0))}));
  EXPECT_TRUE(match("\x02..b"sv, {byte_extract(1, 0, 0), content("b").distance(variable(0)).within(1)}));
  EXPECT_TRUE(match("\x02.b"sv, {byte_extract(1, 0, 0), content("b").within(variable(0))}));
  EXPECT_FALSE(match("\x02..b"sv, {byte_extract(1, 0, 0), content("b").within(variable(0))}));
  EXPECT_TRUE(match("\x02\x02"sv, {byte_extract(1, 0, 0), byte_test(1, Is::equal, variable(0), 1)}));
  // The position is after the extracted bytes; for text, after its digits.
  EXPECT_TRUE(match("k12ab", {content("k"), byte_extract(3, 0, 0).relative().text(NumberText::decimal),
                              content("ab").within(2), byte_test(1, Is::equal, variable(0), 3).negated()}));
  EXPECT_TRUE(match("\x05\x0a"sv, {byte_extract(1, 0, 0).with([](ByteExtract& o) { o.multiplier = 2; }),
                                   byte_test(1, Is::equal, variable(0), 1)}));
  EXPECT_TRUE(match("\x05\x08"sv, {byte_extract(1, 0, 0).with([](ByteExtract& o) { o.align = 4; }),
                                   byte_test(1, Is::equal, variable(0), 1)}));
  // A depth from a variable counts from the offset.
  EXPECT_TRUE(match("\x02..ab"sv, {byte_extract(1, 0, 0), content("ab").offset(3).depth(variable(0))}));
}

TEST(BufferProgram, CalculatesVariables) {
  const auto result = [](std::string_view text, Math operation, std::int64_t value, std::int64_t expected) {
    return match(text, {byte_math(1, 0, operation, number(value), 0),
                        byte_test(1, Is::equal, variable(0), 1).with([&](ByteTest& o) { o.value = variable(0); }),
                        byte_test(1, Is::equal, expected, 1)});
  };
  EXPECT_TRUE(result("\x05\x08"sv, Math::add, 3, 8));
  EXPECT_TRUE(result("\x05\x02"sv, Math::subtract, 3, 2));
  EXPECT_TRUE(result("\x05\x0f"sv, Math::multiply, 3, 15));
  EXPECT_TRUE(result("\x07\x02"sv, Math::divide, 3, 2));
  EXPECT_TRUE(result("\x05\x28"sv, Math::shift_left, 3, 40));
  EXPECT_TRUE(result("\x28\x05"sv, Math::shift_right, 3, 5));
  EXPECT_FALSE(match("\x28\x05"sv, {byte_math(1, 0, Math::divide, number(0), 0)}));
  EXPECT_TRUE(
      match("\x28\x00"sv, {byte_math(1, 0, Math::shift_left, number(64), 0), byte_test(1, Is::equal, variable(0), 1)}));
  // With extracted values and sizes.
  EXPECT_TRUE(match("\x02\x01\x00\x02"sv,
                    {byte_extract(1, 0, 0),
                     byte_math(1, 1, Math::multiply, variable(0), 1).with([](ByteMath& o) { o.bytes = number(1); }),
                     byte_test(1, Is::equal, variable(1), 3)}));
  EXPECT_TRUE(match("\x02\x01\x00\x00\x00\x00"sv,
                    {byte_extract(1, 0, 0),
                     byte_math(0, 1, Math::subtract, number(256), 1).with([](ByteMath& o) { o.bytes = variable(0); }),
                     byte_test(1, Is::equal, variable(1), 3)}));
  // Its mask applies to the result.
  EXPECT_TRUE(
      match("\x11\x02"sv, {byte_math(1, 0, Math::add, number(0x10), 0).with([](ByteMath& o) { o.bitmask = 0xf0; }),
                           byte_test(1, Is::equal, variable(0), 1)}));
}

TEST(BufferProgram, KeepsVariablesFromBufferToBuffer) {
  auto first = BufferProgram::compile(Matches{byte_extract(1, 0, 0)});
  auto second = BufferProgram::compile(Matches{byte_test(1, Is::equal, variable(0), 0)});
  ASSERT_TRUE(first && second);
  scratch().begin_rule();
  EXPECT_TRUE(first->matches(as_bytes("\x07"sv), scratch()));
  EXPECT_TRUE(second->matches(as_bytes("\x07"sv), scratch()));
  scratch().begin_rule();
  EXPECT_FALSE(second->matches(as_bytes("\x07"sv), scratch()));
}

TEST(BufferProgram, RunsRegularExpressions) {
  EXPECT_TRUE(match("xx foo123", {pcre("foo\\d+")}));
  EXPECT_FALSE(match("xx FOO123", {pcre("foo\\d+")}));
  EXPECT_TRUE(match("xx FOO123", {pcre("foo\\d+").with([](Pcre& o) { o.caseless = true; })}));
  EXPECT_FALSE(match("xfoo", {pcre("foo").with([](Pcre& o) { o.anchored = true; })}));
  EXPECT_FALSE(match("a\nfoo", {pcre("^foo")}));
  EXPECT_TRUE(match("a\nfoo", {pcre("^foo").with([](Pcre& o) { o.multiline = true; })}));
  EXPECT_FALSE(match("a\nb", {pcre("a.b")}));
  EXPECT_TRUE(match("a\nb", {pcre("a.b").with([](Pcre& o) { o.dotall = true; })}));
  EXPECT_TRUE(match("ab", {pcre("a b").with([](Pcre& o) { o.extended = true; })}));
  EXPECT_TRUE(match("ab\n", {pcre("b$")}));
  EXPECT_FALSE(match("ab\n", {pcre("b$").with([](Pcre& o) { o.dollar_endonly = true; })}));
  EXPECT_TRUE(match("xyz", {pcre("foo").negated()}));
  EXPECT_FALSE(match("foo", {pcre("foo").negated()}));
  // The expression refers to its own groups.
  EXPECT_TRUE(match("abcabc", {pcre("^(abc)\\1$")}));
  // Relative to the content's end; what follows is relative to its own end.
  EXPECT_TRUE(match("foo k foo", {content("k"), pcre("^ foo").relative()}));
  EXPECT_FALSE(match("foo k", {content("k"), pcre("foo").relative()}));
  EXPECT_TRUE(match("a12b", {pcre("\\d+"), content("b").within(1)}));
  EXPECT_TRUE(match("12x 34b", {pcre("\\d+"), content("b").within(1)}));
  EXPECT_TRUE(match("12x 34b", {pcre("\\d+"), pcre("^b").relative()}));
  EXPECT_TRUE(match("k1 k2", {content("k"), pcre("^2").relative()}));
}

TEST(BufferProgram, ReportsTheExpressionThatDoesNotCompile) {
  const auto program = BufferProgram::compile(Matches{pcre("a(b")});
  ASSERT_FALSE(program);
  EXPECT_EQ(to_string(program.error()), "regular expression: missing closing parenthesis at byte 3: found 'a(b'");
}

TEST(BufferProgram, GivesUpExpressionsThatTakeTooManySteps) {
  const std::uint64_t before = scratch().counters().pcre_limits;
  EXPECT_FALSE(match(std::string(30, 'a') + "c", {pcre("(a+)+b|(a*)*c$d")}));
  EXPECT_EQ(scratch().counters().pcre_limits, before + 1);
}

TEST(BufferProgram, RunsExpressionsOnLongBuffers) {
  for (const std::size_t at : {0UL, 32763UL, 32766UL, 32767UL, 32768UL, 65535UL, 100000UL}) {
    const std::string text = std::string(at, '.') + "\nfoo1" + std::string(40000, '-');
    EXPECT_TRUE(match(text, {pcre("foo\\d")})) << at;
    EXPECT_TRUE(match(text, {pcre("^foo").with([](Pcre& o) { o.multiline = true; })})) << at;
    EXPECT_TRUE(match(text, {pcre("(?<=\\n)foo"), content("1").within(1)})) << at;
    EXPECT_FALSE(match(text, {pcre("foo").with([](Pcre& o) { o.anchored = true; })})) << at;
    EXPECT_FALSE(match(text, {pcre("^foo")})) << at;
    EXPECT_FALSE(match(text, {pcre("\\Gfoo")})) << at;
    EXPECT_FALSE(match(text, {pcre("\\n(*COMMIT)bar|foo")})) << at;
  }
}

TEST(BufferProgram, RunsExpensiveExpressionsWithinTheirLimits) {
  // Some positions take far more steps than others; most take none.
  const std::string gap(700, 'y');
  for (const std::size_t before : {0UL, 1000UL, 20000UL, 60000UL}) {
    const std::string text = std::string(before, '.') + "a" + gap + "!" + "a" + gap + "b" + std::string(before, '.');
    EXPECT_TRUE(match(text, {pcre("a(?:y|q)*b")})) << before;
    EXPECT_TRUE(match(text, {pcre("a(?:y|q)*b"), content(".").within(1).negated()}) == (before == 0)) << before;
    EXPECT_FALSE(match(text, {pcre("a(?:y|q)*c")})) << before;
    EXPECT_TRUE(match("a" + gap + "b" + text, {pcre("^a(?:y|q)*b")})) << before;
    EXPECT_TRUE(match(text, {pcre("(*ANYCRLF)a(?:y|q)*b")})) << before;
  }
}

bool match_by(InspectionScratch& by, std::string_view text, const Matches& matches) {
  auto program = BufferProgram::compile(matches);
  EXPECT_TRUE(program) << to_string(program.error());
  by.begin_rule();
  return program && program->matches(as_bytes(text), by);
}

TEST(BufferProgram, GivesUpExpressionsThatTakeTooMuchWork) {
  // Each position takes nearly as many steps as PCRE2 allows.
  const auto slow = pcre("[ab]{1,55}?[ab]{1,55}?[cd]");
  InspectionBudget budget;
  budget.expressions = 3'500'000;
  budget.expressions_per_byte = 0;
  budget.rule_expressions = 1'000'000;
  budget.rule_expressions_per_byte = 0;
  InspectionScratch scarce(budget);
  const std::string text = std::string(5000, 'a') + "c";
  EXPECT_FALSE(match_by(scarce, text, {slow}));
  EXPECT_EQ(scarce.counters().pcre_limits, 1U);
  EXPECT_EQ(scarce.counters().frames_over_budget, 0U);
  // Another rule has its own budget, as long as the frame has some left.
  EXPECT_TRUE(match_by(scarce, text, {pcre("ac$")}));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(match_by(scarce, text, {slow}));
  EXPECT_FALSE(match_by(scarce, text, {pcre("ac$")}));
  EXPECT_FALSE(match_by(scarce, text, {pcre("x").negated()}));
  EXPECT_EQ(scarce.counters().pcre_limits, 12U);
  EXPECT_EQ(scarce.counters().frames_over_budget, 1U);
  EXPECT_TRUE(match_by(scarce, text, {content("ac")}));
  // The next frame has a new budget.
  scarce.begin_frame();
  EXPECT_TRUE(match_by(scarce, text, {pcre("ac$")}));
}

/// Each of these takes quadratic time or more if nothing bounds it.
TEST(BufferProgram, BoundsTheWorkOfEachKindOfExpensiveExpression) {
  const std::string as = std::string(60'000, 'a') + "\nb";
  for (const char* const pattern :
       {"a.*b", "a.*?b", "(a|a)*b", "(?:a+)+b", "a{1,1000}?a{1,1000}b", "(a)(?:.|c)*b", "[^\n]{50000}b", "a(?=.*b)",
        "\\s*a+b", "(a+)\\1+b", "(?(?=a)a*b|c)", "(a?){30}b"}) {
    InspectionScratch scarce;
    const std::uint64_t before = scarce.counters().pcre_limits;
    EXPECT_FALSE(match_by(scarce, as, {pcre(pattern)})) << pattern;
    EXPECT_EQ(scarce.counters().pcre_limits, before + 1) << pattern;
  }
}

TEST(BufferProgram, TakesTheSameWorkEachTime) {
  // The budget runs out somewhere in the text, at a position that depends on nothing but the text.
  const std::string text = std::string(3000, 'a') + "c" + std::string(3000, 'a');
  const auto least_that_does = [&] {
    std::uint64_t least = 1, most = std::uint64_t{1} << 32;
    while (least < most) {
      InspectionBudget budget;
      budget.rule_expressions_per_byte = budget.expressions_per_byte = 0;
      budget.rule_expressions = budget.expressions = (least + most) / 2;
      InspectionScratch scarce(budget);
      if (match_by(scarce, text, {pcre("a[ab]{1,40}?[ab]{1,40}?c")})) {
        most = (least + most) / 2;
      } else {
        least = (least + most) / 2 + 1;
      }
    }
    return least;
  };
  const std::uint64_t least = least_that_does();
  EXPECT_GT(least, 100'000U);
  EXPECT_EQ(least_that_does(), least);
}

TEST(BufferProgram, GivesUpWhenAFramesBudgetIsUsedUp) {
  InspectionBudget budget;
  budget.work = 1000;
  budget.work_per_byte = 10;
  InspectionScratch scarce(budget);
  const std::string text(600, 'a');
  const auto holds = [&](const Matches& matches) { return match_by(scarce, text, matches); };
  EXPECT_TRUE(holds({content("b").negated()}));
  EXPECT_FALSE(holds({content("b").negated()}));  // the search was not completed, so it might be there
  EXPECT_FALSE(holds({content("a")}));
  EXPECT_FALSE(scarce.take(kWorkOfStep));
  EXPECT_EQ(scarce.counters().frames_over_budget, 1U);
  scarce.begin_frame();
  scarce.add_bytes(100);  // a larger frame may cost more
  EXPECT_TRUE(holds({content("b").negated()}));
  EXPECT_TRUE(holds({content("b").negated()}));
  EXPECT_TRUE(holds({content("a")}));
  EXPECT_EQ(scarce.counters().frames_over_budget, 1U);
  // A search with many comparisons is charged for them.
  scarce.begin_frame();
  std::string alike;
  while (alike.size() < text.size()) alike += "xy";
  EXPECT_FALSE(match_by(scarce, alike, {content("xyxx").negated()}));
  EXPECT_EQ(scarce.counters().frames_over_budget, 2U);
}

TEST(BufferProgram, GivesUpRulesThatTakeTooManySteps) {
  // Every 'a' is followed by many others: an exponential number of placements.
  Matches matches{content("a")};
  for (int i = 0; i < 10; ++i) matches.push_back(content("a").within(50));
  matches.push_back(content("b").within(1));
  const std::uint64_t before = scratch().counters().inspection_limits;
  EXPECT_FALSE(match(std::string(200, 'a'), matches));
  EXPECT_EQ(scratch().counters().inspection_limits, before + 1);
  EXPECT_TRUE(match(std::string(200, 'a') + "b", {content("a"), content("b").within(1)}));
  EXPECT_FALSE(match(std::string(4000, 'a') + "b", {content("a"), content("b").within(1)}));
}

TEST(BufferProgram, DecodesBase64ForTheCaller) {
  EXPECT_TRUE(match("k SGVsbG8gV29ybGQ=", {content("k "), base64_decode().relative()}));
  const auto decoded = scratch().base64();
  EXPECT_EQ(std::string(decoded.begin(), decoded.end()), "Hello World");
  EXPECT_TRUE(match("xxSGVsbG8=", {base64_decode(4, 2)}));
  EXPECT_EQ(scratch().base64().size(), 3U);
  EXPECT_FALSE(match("!", {base64_decode()}));
  EXPECT_FALSE(match("AAAA", {base64_decode(0, 4)}));
  scratch().begin_rule();
  EXPECT_TRUE(scratch().base64().empty());
}

TEST(BufferProgram, TestsDecodedBase64IfItIsGivenTheOptions) {
  const auto in = [](std::string_view text, const Matches& matches, const Matches& data) {
    return match_in(Buffer::payload, text, matches, data);
  };
  EXPECT_TRUE(in("SGVsbG8=", {base64_decode()}, {content("Hello"), isdataat(5).negated()}));
  EXPECT_FALSE(in("SGVsbG8=", {base64_decode()}, {content("World")}));
  EXPECT_FALSE(in("SGVsbG8=", {base64_decode()}, {}));
  // It ends the list of the rule's own options.
  EXPECT_TRUE(in("SGVsbG8=", {base64_decode(), content("nowhere")}, {content("Hello")}));
  // Another match of the content is followed by other data.
  EXPECT_TRUE(in("k:QUFB k:SGVsbG8=", {pcre("k:"), content("k:").distance(-2).within(2), base64_decode().relative()},
                 {content("AAA")}));
}

TEST(BufferProgram, TestsTheBuffersSize) {
  EXPECT_TRUE(match("12345", {bsize(Range::equal, 5)}));
  EXPECT_FALSE(match("12345", {bsize(Range::less, 5)}));
  EXPECT_TRUE(match("12345", {bsize(Range::less_equal, 5)}));
  EXPECT_TRUE(match("12345", {bsize(Range::greater, 4)}));
  EXPECT_TRUE(match("12345", {bsize(Range::between, 4, 6)}));
  EXPECT_FALSE(match("12345", {bsize(Range::between, 5, 7)}));
  EXPECT_TRUE(match("12345", {bsize(Range::not_equal, 4)}));
}

}  // namespace
}  // namespace penstock::nids
