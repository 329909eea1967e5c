// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace penstock::report {
namespace {

using Json = nlohmann::json;

std::string escaped(std::string_view text) {
  std::string out;
  append_json_escaped(out, text);
  return out;
}

/// The text as another JSON parser reads it.
std::string read_back(std::string_view text) { return Json::parse('"' + escaped(text) + '"').get<std::string>(); }

std::string hex_text(unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  return {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
}

TEST(JsonText, EscapesEveryByteSoThatItCanBeReadBack) {
  for (unsigned byte = 0; byte < 0x100; ++byte) {
    const std::string text = "a" + std::string(1, static_cast<char>(byte)) + "z";
    // A single byte above ASCII is not valid UTF-8.
    const std::string expected = byte < 0x80 ? text : "a" + hex_text(static_cast<unsigned char>(byte)) + "z";
    EXPECT_EQ(read_back(text), expected) << byte;
  }
  EXPECT_EQ(escaped("\"\\\b\f\n\r\t\x01\x1f\x7f/"), "\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/");
}

TEST(JsonText, LeavesEveryCodePointUnchanged) {
  const auto utf8 = [](std::uint32_t c) {
    std::string text;
    if (c < 0x80) return text += static_cast<char>(c);
    if (c < 0x800) return text += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    if (c < 0x10000) {
      return text += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
                      static_cast<char>(0x80 | (c & 63))};
    }
    return text += {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
                    static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
  };
  for (std::uint32_t c = 0x80; c < 0x110000; ++c) {
    const std::string text = utf8(c);
    const bool surrogate = c >= 0xd800 && c < 0xe000;
    ASSERT_EQ(escaped(text) == text, !surrogate) << c;
  }
}

TEST(JsonText, ShowsInvalidUtf8) {
  EXPECT_EQ(escaped("\xc0\xaf"), "\\\\xc0\\\\xaf");  // overlong
  EXPECT_EQ(escaped("\xe0\x80\x80"), "\\\\xe0\\\\x80\\\\x80");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\\\xed\\\\xa0\\\\x80");             // half of a surrogate pair
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\\\xf4\\\\x90\\\\x80\\\\x80");  // above the last code point
  EXPECT_EQ(escaped("\xc3"), "\\\\xc3");                                   // truncated
  EXPECT_EQ(escaped("\xe2\x82\"\xac"), "\\\\xe2\\\\x82\\\"\\\\xac");
  EXPECT_EQ(escaped("\xc3\xa9\xff"), "\xc3\xa9\\\\xff");
}

TEST(JsonText, IsJsonWhateverTheBytes) {
  std::mt19937 random(20261);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 0x80 : 0x80 + random() % 0x80);
    ASSERT_TRUE(Json::accept('"' + escaped(text) + '"'));
  }
}

TEST(JsonText, PutsCommasBetweenMembersAndElements) {
  std::string line = "before\n";
  JsonText json(line);
  json.begin();
  json.member("a", 18446744073709551615U);
  json.open("b");
  json.close();
  json.open("c");
  json.member("d", "{[");
  json.member("e", [](std::string& out) { out += "raw"; });
  json.close();
  json.open_array("f");
  json.element(1);
  json.element("x,");
  json.close_array();
  json.open_array_escaped("k\"");
  json.close_array();
  json.close();
  EXPECT_EQ(line,
            "before\n"
            R"({"a":18446744073709551615,"b":{},"c":{"d":"{[","e":"raw"},"f":[1,"x,"],"k\"":[]})");
}

TEST(JsonText, EncodesTheBase64ExamplesOfTheRfc) {
  const auto base64 = [](std::string_view text) {
    std::string out;
    append_base64(out, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return out;
  };
  // RFC 4648 §10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfb\xf0"), "//778A==");
}

}  // namespace
}  // namespace penstock::report
