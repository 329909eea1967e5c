// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/request.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::control {
namespace {

std::string mistake(std::string_view line) {
  const auto request = read_request(line);
  return request ? "none" : to_string(request.error().error);
}

TEST(ControlRequest, IsReadAsItIsWritten) {
  for (const CommandKind& kind : commands()) {
    EXPECT_EQ(kind_of(kind.command).name, kind.name);
    Request request{"id \"7\"", kind.command};
    for (const Argument& argument : kind.arguments) {
      Json& value = request.arguments[std::string(argument.name)];
      switch (argument.type) {
        case Argument::Type::flag: value = true; break;
        case Argument::Type::text: value = std::string(argument.most, 'x'); break;
        case Argument::Type::number: value = argument.most; break;
        case Argument::Type::choice: value = argument.choices.back(); break;
      }
    }
    const std::string text = request_text(request);
    ASSERT_EQ(text.find('\n'), text.size() - 1);
    const auto read = read_request(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->id, request.id);
    EXPECT_EQ(read->command, request.command);
    EXPECT_EQ(read->arguments, request.arguments);
  }
}

TEST(ControlRequest, NeedsNoId) {
  const auto request = read_request(R"({"version": 1, "command": "stats"})");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->id.is_null());
  EXPECT_TRUE(request->arguments.empty());
}

TEST(ControlRequest, TakesOnlyTheWordsOfAChoice) {
  const auto request = read_request(R"({"version": 1, "command": "log-level", "level": "debug"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->text("level"), "debug");
  EXPECT_TRUE(read_request(R"({"version": 1, "command": "log-level"})"));
  for (const std::string wrong : {R"("notice")", R"("")", R"("Debug")", "7", "true", "null"}) {
    const auto refused = read_request(R"({"version": 1, "command": "log-level", "level": )" + wrong + "}");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().error.expected, "one of error, warning, info, debug");
  }
}

TEST(ControlRequest, SaysWhatIsWrongAndWhatIsExpected) {
  const std::string example = R"(, expected an object such as {"version": 1, "command": "status"})";
  EXPECT_EQ(mistake(""), R"(not valid JSON at byte 1: expected an object such as {"version": 1, "command": "status"})");
  EXPECT_EQ(mistake("[1]"), "not a request: found a list" + example);
  EXPECT_EQ(mistake("7"), "not a request: found '7'" + example);
  EXPECT_EQ(mistake("{}"), "version: missing: expected 1");
  EXPECT_EQ(mistake(R"({"version":2,"command":"status"})"), "version: not supported: found '2', expected 1");
  EXPECT_EQ(mistake(R"({"version":1})"),
            "command: missing: expected one of status, stats, explain, trace, capture, reload, rollback, drain, stop, "
            "reopen-logs, log-level, conntrack, hand-over");
  EXPECT_EQ(mistake(R"({"version":1,"command":"rolback"})"), "unknown command: found 'rolback', expected rollback");
  EXPECT_EQ(mistake(R"({"version":1,"command":"stats","dry_run":true})"),
            "unknown member of a stats request: found 'dry_run', expected one of version, id, command");
  EXPECT_EQ(mistake(R"({"version":1,"command":"reload","dryrun":true})"),
            "unknown member of a reload request: found 'dryrun', expected dry_run");
  EXPECT_EQ(mistake(R"({"version":1,"command":"reload","dry_run":"yes"})"),
            "dry_run: wrong value: found '\"yes\"', expected true or false");
  EXPECT_EQ(mistake(R"({"version":1,"command":"explain","tuple":"x","length":0})"),
            "length: wrong value: found '0', expected a whole number in 1..65535");
  EXPECT_EQ(mistake(R"({"version":1,"command":"explain","tuple":"x","length":-1})"),
            "length: wrong value: found '-1', expected a whole number in 1..65535");
  EXPECT_EQ(mistake(R"({"version":1,"command":"explain"})").substr(0, 14), "tuple: missing");
  EXPECT_NE(mistake(R"({"version":1,"command":"explain","tuple":")" + std::string(257, 'x') + "\"}"), "none");
  EXPECT_EQ(mistake(R"({"version":1,"version":1})"), "'version': given twice: expected once");
  EXPECT_EQ(mistake(R"({"version":1,"command":{"a":1}})"),
            "'command': wrong value: found an object, expected a text, a number, true, false or null");
}

TEST(ControlRequest, RefusesIdsThatItWouldNotRepeat) {
  EXPECT_NE(mistake(R"({"version":1,"id":1.5,"command":"status"})"), "none");
  EXPECT_NE(mistake(R"({"version":1,"id":true,"command":"status"})"), "none");
  EXPECT_NE(mistake(R"({"version":1,"id":")" + std::string(257, 'a') + R"(","command":"status"})"), "none");
  EXPECT_EQ(mistake(R"({"version":1,"id":")" + std::string(256, 'a') + R"(","command":"status"})"), "none");
}

TEST(ControlRequest, KeepsTheIdOfAWrongRequest) {
  const auto request = read_request(R"({"id": "mine", "version": 1, "command": "no such"})");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().id, "mine");
  EXPECT_EQ(read_request(R"({"id": "mine", "version": )").error().id, "mine");
}

TEST(ControlRequest, SurvivesDeepAndBrokenText) {
  EXPECT_NE(mistake(std::string(60'000, '[')), "none");
  EXPECT_NE(mistake(R"({"version":)" + std::string(60'000, '[')), "none");
  EXPECT_NE(mistake(std::string("{\"version\":1,\"command\":\"st\0ats\"}", 31)), "none");
  EXPECT_NE(mistake("{\"version\":1,\"command\":\"\xff\xfe\"}"), "none");
  EXPECT_NE(mistake(R"({"version":1,"id":99999999999999999999999999,"command":"status"})"), "none");
  EXPECT_NE(mistake(R"({"version":1e999,"command":"status"})"), "none");
}

TEST(ControlAnswer, RepeatsTheId) {
  EXPECT_EQ(result_text("a", {{"x", 1}}), "{\"version\":1,\"id\":\"a\",\"ok\":true,\"result\":{\"x\":1}}\n");
}

TEST(ControlAnswer, HasAllErrors) {
  const Errors errors{{{"f", 1, 2}, "m", "x", "y"}, {{}, "n", "", ""}};
  const std::string text = failure_text(7, Failure::mistakes, errors);
  EXPECT_EQ(text,
            R"({"version":1,"id":7,"ok":false,"error":{"kind":"mistakes","file":"f","line":1,"column":2,"message":"m",)"
            R"("found":"x","expected":"y","further":[{"file":null,"line":null,"column":null,"message":"n",)"
            R"("found":null,"expected":null}]}})"
            "\n");
  EXPECT_EQ(to_string(errors_of(Json::parse(text)["error"])), to_string(errors));
}

TEST(ControlAnswer, IsValidWhateverBytesItHas) {
  const std::string text = result_text(nullptr, {{"name", "\xff\n\x01"}});
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_FALSE(Json::parse(text, nullptr, false).is_discarded());
}

}  // namespace
}  // namespace penstock::control
