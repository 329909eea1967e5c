// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/conntrack_text.h"

#include <gtest/gtest.h>

namespace penstock::cli {
namespace {

using Json = nlohmann::ordered_json;

Json tcp() {
  return {{"protocol", "tcp"},
          {"protocol_number", 6},
          {"timeout_s", 431'999},
          {"state", "ESTABLISHED"},
          {"original", {{"src", "10.0.0.1"}, {"dst", "192.0.2.7"}, {"sport", 40'000}, {"dport", 443}}},
          {"reply", {{"src", "192.0.2.7"}, {"dst", "10.0.0.1"}, {"sport", 443}, {"dport", 40'000}}},
          {"seen_reply", true},
          {"assured", true},
          {"mark", 3}};
}

// As conntrack 1.4.7 prints them, but for `use`.
TEST(ConntrackText, IsThatOfConntrack) {
  EXPECT_EQ(connection_line(tcp()),
            "tcp      6 431999 ESTABLISHED src=10.0.0.1 dst=192.0.2.7 sport=40000 dport=443 src=192.0.2.7 dst=10.0.0.1 "
            "sport=443 dport=40000 [ASSURED] mark=3\n");
  Json control = tcp();
  control["helper"] = "ftp";
  const std::string line = connection_line(control);
  EXPECT_EQ(line.substr(line.find(" mark")), " mark=3 helper=ftp\n");
  Json icmp{{"protocol", "icmp"},
            {"protocol_number", 1},
            {"timeout_s", 29},
            {"state", nullptr},
            {"original", {{"src", "10.0.0.1"}, {"dst", "10.0.0.2"}, {"type", 8}, {"code", 0}, {"id", 7}}},
            {"reply", {{"src", "10.0.0.2"}, {"dst", "10.0.0.1"}, {"type", 0}, {"code", 0}, {"id", 7}}},
            {"seen_reply", false},
            {"assured", false},
            {"mark", 0}};
  EXPECT_EQ(connection_line(icmp),
            "icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=7 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 type=0 "
            "code=0 id=7 mark=0\n");
}

TEST(ConntrackText, OfEventsBeginsWithTheirKind) {
  Json event = tcp();
  event["kind"] = "new";
  EXPECT_EQ(connection_event_line(event).substr(0, 40), "    [NEW] tcp      6 431999 ESTABLISHED ");
  event["kind"] = "update";
  EXPECT_EQ(connection_event_line(event).substr(0, 18), " [UPDATE] tcp     ");
  event["kind"] = "destroy";
  EXPECT_EQ(connection_event_line(event).substr(0, 46), "[DESTROY] tcp      6 ESTABLISHED src=10.0.0.1 ");
}

TEST(ConntrackText, CountsByProtocol) {
  EXPECT_EQ(connection_count_text({{"connections", 1'234}, {"by_protocol", {{"tcp", 1'200}, {"200", 34}}}}),
            "1,234 connections\n  tcp 1,200\n  200 34\n");
}

TEST(ConntrackText, PassesNoControlCharactersOn) {
  Json evil = tcp();
  evil["state"] = "\033[2J";
  EXPECT_EQ(connection_line(evil).find('\033'), std::string::npos);
  evil.erase("reply");
  EXPECT_THROW(static_cast<void>(connection_line(evil)), Json::exception);
}

}  // namespace
}  // namespace penstock::cli
