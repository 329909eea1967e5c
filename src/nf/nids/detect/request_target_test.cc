// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/request_target.h"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "nf/nids/detect/buffer_program.h"

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::span<const std::uint8_t> bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
std::string text(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::string> targets(std::string_view stream) {
  std::vector<std::string> all;
  RequestTargets walk(bytes(stream));
  for (RequestTargets::Target target; walk.next(target);) all.push_back(text(target.bytes));
  return all;
}

std::string normal(std::string_view target, std::size_t room_size = 100) {
  std::vector<std::uint8_t> room(room_size);
  return text(normal_target({bytes(target), false}, room));
}

TEST(RequestTargets, AreThoseOfRequestLines) {
  EXPECT_THAT(targets("GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST  /b c  HTTP/1.0\r\n"), ElementsAre("/a", "/b c"));
  EXPECT_THAT(targets("OPTIONS * HTTP/1.1"), ElementsAre("*"));
  EXPECT_THAT(targets("HTTP/1.1 200 OK\r\nget /a HTTP/1.1\r\n GET /a HTTP/1.1\r\nGET /a\r\nGET HTTP/1.1\r\n\n\nGET "),
              IsEmpty());
  EXPECT_THAT(targets(std::string(40, 'A') + " /a HTTP/1.1\n"), IsEmpty());
}

TEST(RequestTargets, AreNormalised) {
  EXPECT_EQ(normal("/a/b?c=%41"), "/a/b?c=%41");
  EXPECT_EQ(normal("/%61%2fb%zz%"), "/a/b%zz%");
  EXPECT_EQ(normal("//a\\b///c"), "/a/b/c");
  EXPECT_EQ(normal("/a/./b/../c/.."), "/a/");
  EXPECT_EQ(normal("/../../a"), "/a");
  EXPECT_EQ(normal("/a/..b/...?../.."), "/a/..b/...?../..");
  EXPECT_EQ(normal("http://host/a"), "/a");
  EXPECT_EQ(normal("http://host"), "");
  EXPECT_EQ(normal("/a?http://b"), "/a?http://b");
  EXPECT_EQ(normal("/0123456789", 4), "/012");
  std::vector<std::uint8_t> room(10);
  EXPECT_TRUE(normal_target({bytes("host:443"), true}, room).empty());
}

bool matches(std::string_view pattern, Pcre::Of of, std::string_view payload, bool negated = false) {
  Pcre pcre;
  pcre.pattern = pattern;
  pcre.of = of;
  pcre.negated = negated;
  const std::vector<BufferMatch> options{pcre};
  const auto program = BufferProgram::compile(options);
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return false;
  }
  InspectionScratch scratch;
  scratch.begin_rule();
  return program->matches(bytes(payload), scratch);
}

TEST(RequestTargets, AreMatchedByExpressionsWithTheFlags) {
  constexpr std::string_view kStream = "GET /x%41 HTTP/1.0\r\nA: one\r\n\r\nGET /two HTTP/1.0\r\n\r\n";
  using Of = Pcre::Of;
  EXPECT_TRUE(matches("^/xA$", Of::request_target, kStream));
  EXPECT_FALSE(matches("^/x%41$", Of::request_target, kStream));
  EXPECT_TRUE(matches("^/x%41$", Of::raw_request_target, kStream));
  EXPECT_TRUE(matches("(two)+", Of::request_target, kStream));
  EXPECT_FALSE(matches("one", Of::request_target, kStream));
  EXPECT_TRUE(matches("one", Of::buffer, kStream));
  EXPECT_TRUE(matches("two", Of::request_target, kStream, true));  // one of them does not have it
  EXPECT_FALSE(matches("t", Of::request_target, "no request", true));
}

}  // namespace
}  // namespace penstock::nids
