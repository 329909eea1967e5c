// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/connection_inquiry.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "conntrack/saved_connections.h"
#include "conntrack/testing/clocked_table.h"

namespace penstock::control {
namespace {

using conntrack::Packet;

/// Two workers, whose boundaries pass while an inquiry waits.
class ConnectionInquiryTest : public ::testing::Test {
 protected:
  void pass(unsigned worker, const Packet& packet) {
    conntrack::ParsedPacket parsed(packet);
    conntrack::Table& table = workers_[worker]->table();
    const conntrack::Tracked tracked = table.track(parsed.view(), 1'700'000'000 * conntrack::kSecond);
    if (tracked.connection != nullptr) table.confirm(*tracked.connection);
  }
  void pass_queries(unsigned worker, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      pass(worker, conntrack::udp_packet({.source_port = static_cast<std::uint16_t>(i + 1), .destination_port = 53}));
  }
  [[nodiscard]] Result<std::unique_ptr<ConnectionInquiry>> make(const Json& arguments) const {
    return ConnectionInquiry::make({7, Command::conntrack, arguments}, tracked_);
  }
  [[nodiscard]] std::string mistake_of(const Json& arguments) const {
    const auto made = make(arguments);
    return made ? "" : to_string(made.error());
  }
  /// The lines of the next part.
  std::vector<Json> lines_of(const LineHandler::Part& part) {
    std::vector<Json> lines;
    std::istringstream text(part.text);
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  /// Events until the answer, which is the last element.
  std::vector<Json> all_of(ConnectionInquiry& inquiry) {
    std::vector<Json> all;
    for (;;) {
      const LineHandler::Part part = inquiry.next_part(true);
      for (Json& line : lines_of(part)) {
        EXPECT_EQ(line["id"], 7);
        all.push_back(line.contains("event") ? line["event"] : line.value("result", line));
      }
      if (part.last) return all;
      for (const auto& worker : workers_) worker->pass_boundary();
    }
  }
  std::vector<Json> all_of(const Json& arguments) { return all_of(**make(arguments)); }

  std::shared_ptr<conntrack::ConnectionTables> connections_ = std::make_shared<conntrack::ConnectionTables>(
      conntrack::Options{.most_connections = 20'000, .ftp = {.offered = true, .ports = {21}}},
      conntrack::Clock::packets);
  std::vector<std::shared_ptr<conntrack::TableAccess>> workers_{connections_->add_worker(), connections_->add_worker()};
  std::vector<run::TrackedConnections> tracked_{{"firewall", connections_}};
};

TEST_F(ConnectionInquiryTest, ShowsHelpers) {
  for (const std::uint16_t port : std::to_array<std::uint16_t>({21, 22}))
    pass(0, conntrack::tcp_packet({.destination_port = port}, {.flags = TcpHeader::kSyn}));
  EXPECT_EQ(all_of({{"action", "list"}, {"dport", 21}})[0]["helper"], "ftp");
  EXPECT_FALSE(all_of({{"action", "list"}, {"dport", 22}})[0].contains("helper"));
}

TEST_F(ConnectionInquiryTest, ListsTheConnectionsOfAllWorkers) {
  pass_queries(0, 6'000);
  pass_queries(1, 1);
  const auto all = all_of({{"action", "list"}});
  ASSERT_EQ(all.size(), 6'002U);
  EXPECT_EQ(all.back(), Json({{"connections", 6'001}}));
  EXPECT_EQ(
      all.front().dump(),
      R"({"function":"firewall","family":"ipv4","protocol":"udp","protocol_number":17,"timeout_s":30,"state":null,)"
      R"("original":{"src":"10.1.0.1","dst":"10.2.0.1","sport":1,"dport":53},)"
      R"("reply":{"src":"10.2.0.1","dst":"10.1.0.1","sport":53,"dport":1},)"
      R"("seen_reply":false,"assured":false,"mark":0})");
  EXPECT_EQ(all_of({{"action", "list"}, {"limit", 5'000}}).size(), 5'001U);
  const auto one = all_of({{"action", "list"}, {"sport", 5}, {"src", "10.1.0.0/24"}});
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0]["original"]["sport"], 5);
}

TEST_F(ConnectionInquiryTest, CountsAndFlushes) {
  pass_queries(0, 300);
  pass(1, conntrack::tcp_packet({"2001:db8::1", "2001:db8::2", 1, 2}, {.flags = TcpHeader::kSyn}));
  pass(1, conntrack::icmp_packet({"10.1.0.1", "10.2.0.1", 0, 0}, 8, 0, 9));
  pass(1, conntrack::ip_packet({}, 200, {1, 2, 3, 4}));
  EXPECT_EQ(all_of({{"action", "count"}}).back(),
            Json({{"connections", 303}, {"by_protocol", {{"icmp", 1}, {"tcp", 1}, {"udp", 300}, {"200", 1}}}}));
  EXPECT_EQ(all_of({{"action", "flush"}, {"state", "SYN_SENT"}, {"family", "ipv6"}}).back(), Json({{"removed", 1}}));
  EXPECT_EQ(all_of({{"action", "flush"}, {"proto", "udp"}}).back(), Json({{"removed", 300}}));
  EXPECT_EQ(all_of({{"action", "list"}})[0]["original"],
            Json({{"src", "10.1.0.1"}, {"dst", "10.2.0.1"}, {"type", 8}, {"code", 0}, {"id", 9}}));
  EXPECT_EQ(all_of({{"action", "flush"}}).back(), Json({{"removed", 2}}));
  EXPECT_EQ(all_of({{"action", "count"}}).back(), Json({{"connections", 0}, {"by_protocol", Json::object()}}));
}

TEST_F(ConnectionInquiryTest, AClientThatTakesNothingKeepsNobodyWaiting) {
  pass_queries(0, 6'000);
  const auto slow = make({{"action", "list"}});
  ASSERT_TRUE(slow);
  EXPECT_EQ((*slow)->next_part(true).text, "");
  const auto other = make({{"action", "count"}});
  EXPECT_EQ((*other)->next_part(true).text, "") << "one after the other";
  for (int boundary = 0; boundary < 2; ++boundary) workers_[0]->pass_boundary();
  const auto first = (*slow)->next_part(true);
  EXPECT_EQ(lines_of(first).size(), 512U);
  // The first one does not ask for its next part.
  EXPECT_EQ(all_of(**other).back()["connections"], 6'000);
  EXPECT_EQ(all_of({{"action", "flush"}}).back()["removed"], 6'000);
  EXPECT_EQ(all_of(**slow).back(), Json({{"connections", 4'096}})) << "the others have gone meanwhile";
}

TEST_F(ConnectionInquiryTest, FollowsEventsAndSaysHowManyAreLost) {
  const auto made = make({{"action", "events"}, {"proto", "udp"}});
  ASSERT_TRUE(made);
  ConnectionInquiry& inquiry = **made;
  EXPECT_TRUE(inquiry.follows_events());
  EXPECT_EQ(inquiry.next_part(true).text, "");
  pass(1, conntrack::tcp_packet({}, {.flags = TcpHeader::kSyn}));
  pass_queries(1, 1);
  auto lines = lines_of(inquiry.next_part(true));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["event"]["kind"], "new");
  EXPECT_EQ(lines[0]["event"]["original"]["dport"], 53);
  pass_queries(0, conntrack::EventQueue::kCapacity + 17);
  lines = lines_of(inquiry.next_part(true));
  EXPECT_EQ(lines.size(), 513U);
  EXPECT_EQ(lines.back()["event"], Json({{"kind", "lost"}, {"events", 17}}));
  LineHandler::Part part;
  while (!part.last) part = inquiry.next_part(false);
  EXPECT_EQ(lines_of(part).back()["result"],
            Json({{"events", 1 + conntrack::EventQueue::kCapacity}, {"lost", 17}, {"ended", "run"}}));
}

TEST_F(ConnectionInquiryTest, EndsEventsAtTheirLimitAndWithItself) {
  {
    const auto made = make({{"action", "events"}, {"limit", 2}});
    pass_queries(0, 5);
    const auto part = (*made)->next_part(true);
    EXPECT_TRUE(part.last);
    EXPECT_EQ(lines_of(part).back()["result"], Json({{"events", 2}, {"lost", 0}, {"ended", "count"}}));
    EXPECT_TRUE(workers_[0]->events().wanted());
  }
  EXPECT_FALSE(workers_[0]->events().wanted());
}

TEST_F(ConnectionInquiryTest, SavesAsTheFileOfTheNextRun) {
  pass_queries(0, 2'000);
  pass(1, conntrack::tcp_packet({}, {.flags = TcpHeader::kSyn}));
  const auto made = make({{"action", "save"}});
  ASSERT_TRUE(made);
  conntrack::SavedConnectionsWriter writer(1 << 20);
  const std::vector<Json> all = all_of(**made);
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    writer.add_lines(all[i]["lines"].get<std::string>(), all[i]["connections"].get<std::uint64_t>());
  EXPECT_EQ(all.back(), Json({{"connections", 2'001}, {"format", 2}}));
  const auto read = conntrack::read_saved_connections(writer.finish(0), "saved", 0);
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), 2'001U);
  EXPECT_EQ(read->front().record.original.destination_port, 53);
  EXPECT_EQ(read->back().record.tcp_state, conntrack::TcpState::syn_sent);
  EXPECT_EQ(all_of({{"action", "save"}, {"proto", "tcp"}}).back()["connections"], 1);
  EXPECT_EQ(mistake_of({{"action", "save"}, {"limit", 1}}), "limit: not of save: expected list or events");
}

TEST_F(ConnectionInquiryTest, FailsWhenTheRunEnds) {
  pass_queries(0, 1);
  const auto made = make({{"action", "count"}});
  EXPECT_EQ((*made)->next_part(true).text, "");
  const auto part = (*made)->next_part(false);
  EXPECT_TRUE(part.last);
  EXPECT_EQ(lines_of(part)[0]["error"]["kind"], "not_running");
}

TEST_F(ConnectionInquiryTest, RefusesWhatMeansNothing) {
  EXPECT_EQ(mistake_of({{"action", "count"}, {"limit", 1}}), "limit: not of count: expected list or events");
  EXPECT_EQ(mistake_of({{"action", "list"}, {"timeout", 1}}), "timeout: not of list: expected events");
  EXPECT_EQ(mistake_of({{"action", "list"}, {"proto", "tcpp"}}),
            "proto: wrong value: found 'tcpp', expected a protocol such as tcp, udp, icmp, or a number to 255");
  EXPECT_EQ(mistake_of({{"action", "list"}, {"dst", "10.0.0.1/8"}}),
            "dst: wrong value: found '10.0.0.1/8', expected an address, or a prefix without host bits: 10.0.0.0/8");
}

}  // namespace
}  // namespace penstock::control
