// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/fast_pattern.h"

#include <gtest/gtest.h>

#include <string_view>

namespace penstock::nids {
namespace {

Content content(std::string_view text) {
  Content made;
  made.bytes.assign(text.begin(), text.end());
  return made;
}

std::string text_of(const std::optional<FastPattern>& pattern) {
  return pattern ? std::string(pattern->literal.bytes.begin(), pattern->literal.bytes.end()) : "none";
}

TEST(FastPattern, IsTheRarestContentOfThePayload) {
  Rule rule;
  rule.buffers = {{Buffer::payload, {content("aaaaaaaa"), content("GET /x"), content("ab")}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "GET /x");
}

TEST(FastPattern, IsTheContentMarkedFastPattern) {
  Rule rule;
  Content named = content("ab");
  named.fast_pattern = true;
  named.nocase = true;
  rule.buffers = {{Buffer::payload, {content("GET /x"), named}}};
  const auto pattern = fast_pattern(rule);
  EXPECT_EQ(text_of(pattern), "ab");
  EXPECT_TRUE(pattern->literal.nocase);
}

TEST(FastPattern, IsCutAsTheRuleSpecifies) {
  Rule rule;
  Content named = content("abcdefgh");
  named.fast_pattern = true;
  named.chop_offset = 2;
  named.chop_length = 3;
  rule.buffers = {{Buffer::payload, {named}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "cde");
}

TEST(FastPattern, IsTheRarestPartOfALongContent) {
  Rule rule;
  const std::string rare = "\x7f\x91qzjx\x83~";
  rule.buffers = {{Buffer::payload, {content(std::string(500, 'a') + rare + std::string(500, 'a'))}}};
  const std::string part = text_of(fast_pattern(rule));
  EXPECT_EQ(part.size(), kMostPatternBytes);
  EXPECT_NE(part.find(rare), part.npos);
  EXPECT_EQ(text_of(fast_pattern(rule, 255)).size(), 255U);
}

TEST(FastPattern, ComesFromAnExpressionIfThereIsNoContent) {
  Pcre pcre;
  pcre.pattern = "\\Wconfidential\\W";
  pcre.caseless = true;
  Rule rule;
  rule.buffers = {{Buffer::payload, {pcre}}};
  const auto pattern = fast_pattern(rule);
  EXPECT_EQ(text_of(pattern), "confidential");
  EXPECT_TRUE(pattern->literal.nocase);
  rule.buffers = {{Buffer::payload, {pcre, content("ab")}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "ab");
  pcre.negated = true;
  rule.buffers = {{Buffer::payload, {pcre}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "none");
  pcre.negated = false;
  pcre.of = Pcre::Of::request_target;  // its bytes may be encoded differently
  rule.buffers = {{Buffer::payload, {pcre}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "none");
}

TEST(FastPattern, IsNeverANegatedContent) {
  Rule rule;
  Content negated = content("abcdefgh");
  negated.negated = true;
  negated.fast_pattern = true;
  rule.buffers = {{Buffer::payload, {negated}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "none");
}

TEST(FastPattern, ComesFromAHeaderOnlyIfThePayloadHasNone) {
  Rule rule;
  rule.buffers = {{Buffer::payload, {IsDataAt{}}}, {Buffer::tcp_header, {content("xyz")}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "xyz");
  EXPECT_EQ(fast_pattern(rule)->buffer, Buffer::tcp_header);
  rule.buffers[0].matches.push_back(content("a"));
  EXPECT_EQ(text_of(fast_pattern(rule)), "a");
}

TEST(FastPattern, NeverComesFromDecodedBase64) {
  Rule rule;
  rule.buffers = {{Buffer::payload, {Base64Decode{}}}, {Buffer::base64_data, {content("xyz")}}};
  EXPECT_EQ(text_of(fast_pattern(rule)), "none");
}

TEST(PatternStrength, CountsDifferentBytesAndLettersLess) {
  const auto strength = [](std::string_view text) {
    return pattern_strength({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(strength("aaa"), 3U + 1 + 1);
  EXPECT_EQ(strength("a1"), 3U + 4);
  EXPECT_EQ(strength("\x90\x91"), 6U + 6);
  EXPECT_EQ(strength(std::string_view("\0\xff", 2)), 4U + 4);
}

}  // namespace
}  // namespace penstock::nids
