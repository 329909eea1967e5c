// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/saved_connections.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conntrack/connection_tables.h"
#include "conntrack/testing/clocked_table.h"

namespace penstock::conntrack {
namespace {

constexpr std::uint64_t kNowMs = 1'700'000'000'000;
constexpr std::uint64_t kMs = 1'000'000;

unsigned of_first(const Tuple&, unsigned) { return 0; }

/// A worker of a run, with a clock.
struct Worker {
  explicit Worker(ConnectionTables& connections) : access(connections.add_worker()) {}

  Tracked pass(const Packet& packet) {
    ParsedPacket parsed(packet);
    const Tracked tracked = access->table().track(parsed.view(), now_ns);
    if (tracked.connection != nullptr) access->table().confirm(*tracked.connection);
    return tracked;
  }

  std::shared_ptr<TableAccess> access;
  std::uint64_t now_ns = kNowMs * kMs;
};

std::string saved(const ConnectionTables& connections, std::size_t most_bytes = 1 << 20) {
  SavedConnectionsWriter writer(most_bytes);
  connections.for_each_saved([&](const SavedConnection& one) { writer.add(one); });
  return writer.finish(kNowMs);
}

std::string first_line(int connections) {
  return "penstock-connections version=2 saved_ms=1700000000000 connections=" + std::to_string(connections) + "\n";
}
const std::string kUdpLine =
    "protocol=17 timeout_ms=30000 src=10.1.0.1 dst=10.2.0.1 sport=1000 dport=80 status=0 mark=7 stream_in_ms=2000\n";
const std::string kTcpLine =
    "protocol=6 timeout_ms=432000000 src=2001:db8::1 dst=2001:db8::2 sport=1000 dport=80 status=6 mark=0 "
    "state=ESTABLISHED original=1,2,3,4,7,35 reply=5,6,7,8,0,32 last=9,10,11,12,13,14,3,1,2\n";

const std::string kTranslatedLine =
    "protocol=17 timeout_ms=30000 src=10.1.0.1 dst=192.0.2.7 sport=1000 dport=53 status=16 mark=0 reply_src=192.0.2.7 "
    "reply_dst=203.0.113.5 reply_sport=53 reply_dport=1024 stream_in_ms=2000\n";
const std::string kEchoLine =
    "protocol=1 timeout_ms=30000 src=10.1.0.1 dst=203.0.113.5 sport=7 dport=2048 status=34 mark=0 reply_src=10.2.0.1 "
    "reply_dst=10.1.0.1 reply_sport=9 reply_dport=0\n";

std::string mistake_of(const std::string& text) {
  const auto read = read_saved_connections(text, "file", kNowMs);
  return read ? "" : to_string(read.error());
}

TEST(SavedConnections, AreReadAsTheyWereWritten) {
  const std::string text = first_line(2) + kUdpLine + kTcpLine;
  const auto read = read_saved_connections(text, "file", kNowMs);
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), 2U);
  const auto& [udp, tcp] = std::pair((*read)[0], (*read)[1]);
  EXPECT_EQ(udp.record.mark, 7U);
  EXPECT_EQ(udp.record.remaining_ns, 30'000 * kMs);
  EXPECT_EQ(udp.udp_stream_in_ns, 2'000 * kMs);
  EXPECT_EQ(udp.record.reply.source_port, 80);
  EXPECT_EQ(tcp.record.tcp_state, TcpState::established);
  EXPECT_TRUE(tcp.record.assured() && tcp.record.seen_reply());
  EXPECT_EQ(tcp.tcp.sides[0].scale, 7);
  EXPECT_EQ(tcp.tcp.sides[1].max_window, 7U);
  EXPECT_EQ(tcp.tcp.last_kind, TcpKind::ack);
  EXPECT_EQ(tcp.tcp.last_direction, Direction::reply);
  SavedConnectionsWriter writer(1 << 20);
  for (const SavedConnection& one : *read) writer.add(one);
  const std::string again = writer.finish(kNowMs);
  EXPECT_EQ(again.substr(again.find('\n') + 1), kUdpLine + kTcpLine);
}

TEST(SavedConnections, AgeWhileNothingRuns) {
  const std::string text = first_line(2) + kUdpLine + kTcpLine;
  const auto later = read_saved_connections(text, "file", kNowMs + 29'000);
  ASSERT_TRUE(later);
  ASSERT_EQ(later->size(), 2U);
  EXPECT_EQ((*later)[0].record.remaining_ns, 1'000 * kMs);
  EXPECT_EQ((*later)[0].udp_stream_in_ns, 0U);
  const auto much_later = read_saved_connections(text, "file", kNowMs + 30'000);
  ASSERT_TRUE(much_later);
  EXPECT_EQ(much_later->size(), 1U) << "the time of the first one is over";
  const auto years_later = read_saved_connections(text, "file", ~std::uint64_t{0});
  ASSERT_TRUE(years_later);
  EXPECT_TRUE(years_later->empty());
  const auto set_back = read_saved_connections(text, "file", kNowMs - 1'000'000);
  ASSERT_TRUE(set_back);
  EXPECT_EQ((*set_back)[0].record.remaining_ns, 30'000 * kMs);
}

TEST(SavedConnections, AFileThatIsNotCompleteGivesNothing) {
  EXPECT_EQ(mistake_of(first_line(3) + kUdpLine + kTcpLine),
            "file: the saved connections are not complete: found 2, expected 3, as its first line says");
  EXPECT_NE(mistake_of(first_line(1) + kUdpLine + kTcpLine), "");
  const std::string text = first_line(2) + kUdpLine + kTcpLine;
  // Of the last line, only its end may be missing.
  for (std::size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_NE(mistake_of(text.substr(0, length)), "") << length;
}

TEST(SavedConnections, EveryFieldIsChecked) {
  EXPECT_EQ(mistake_of(first_line(1) + kUdpLine), "");
  const auto with = [](std::string line, std::string_view what, std::string_view instead) {
    line.replace(line.find(what), what.size(), instead);
    return mistake_of(first_line(1) + line);
  };
  EXPECT_EQ(with(kUdpLine, "timeout_ms=30000", "timeout_ms=-1"),
            "file:2: not a line of saved connections: found a wrong or missing field: timeout_ms, expected the file as "
            "penstock wrote it");
  EXPECT_NE(with(kUdpLine, "timeout_ms=30000", "timeout_ms=99999999999999"), "");
  EXPECT_NE(with(kUdpLine, "protocol=17", "protocol=256"), "");
  EXPECT_NE(with(kUdpLine, "src=10.1.0.1", "src=10.1.0.256"), "");
  EXPECT_NE(with(kUdpLine, "src=10.1.0.1", "src=2001:db8::1"), "") << "two families";
  EXPECT_NE(with(kUdpLine, "sport=1000", "sport=65536"), "");
  EXPECT_NE(with(kUdpLine, "status=0", "status=8"), "") << "a bit that is not kept";
  EXPECT_NE(with(kUdpLine, "status=0", "status=8192"), "") << "no helper for UDP";
  EXPECT_EQ(with(kTcpLine, "status=6", "status=8199"), "");
  EXPECT_NE(with(kTcpLine, "status=6", "status=8262"), "") << "numbers of other bytes are not kept";
  EXPECT_NE(with(kUdpLine, " mark=7", ""), "");
  EXPECT_NE(with(kUdpLine, "stream_in_ms=2000", "stream_in_ms=2000 more=1"), "");
  EXPECT_NE(with(kUdpLine, "protocol=17", "protocol=1"), "") << "no request of ICMP";
  EXPECT_NE(with(kTcpLine, "ESTABLISHED", "OPEN"), "");
  EXPECT_NE(with(kTcpLine, "ESTABLISHED", ""), "");
  EXPECT_NE(with(kTcpLine, "original=1,2,3,4,7,35", "original=1,2,3,4,7"), "");
  EXPECT_NE(with(kTcpLine, "original=1,2,3,4,7,35", "original=1,2,3,4,7,35,1"), "");
  EXPECT_NE(with(kTcpLine, "original=1,2,3,4,7,35", "original=1,2,3,4,15,35"), "") << "no scale of a window";
  EXPECT_NE(with(kTcpLine, ",3,1,2\n", ",9,1,2\n"), "") << "no kind of segment";
  EXPECT_NE(with(kTcpLine, ",3,1,2\n", ",3,2,2\n"), "") << "no direction";
}

TEST(SavedConnections, TranslationsAreReadAsTheyWereWritten) {
  const auto read = read_saved_connections(first_line(2) + kTranslatedLine + kEchoLine, "file", kNowMs);
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), 2U);
  const Record& udp = (*read)[0].record;
  EXPECT_EQ(udp.status, Connection::kSourceNat);
  EXPECT_EQ(udp.reply.destination.low, 0xcb007105U);
  EXPECT_EQ(udp.reply.destination_port, 1024);
  EXPECT_EQ((*read)[1].record.reply.source_port, 9) << "the identifier";
  SavedConnectionsWriter writer(1 << 20);
  for (const SavedConnection& one : *read) writer.add(one);
  const std::string again = writer.finish(kNowMs);
  EXPECT_EQ(again.substr(again.find('\n') + 1), kTranslatedLine + kEchoLine);
}

TEST(SavedConnections, TranslationsAreAsTheStatusSays) {
  const auto with = [](std::string line, std::string_view what, std::string_view instead) {
    line.replace(line.find(what), what.size(), instead);
    return mistake_of(first_line(1) + line);
  };
  EXPECT_NE(with(kTranslatedLine, "status=16", "status=0"), "");
  EXPECT_NE(with(kTranslatedLine, "status=16", "status=32"), "");
  EXPECT_NE(with(kTranslatedLine, "status=16", "status=48"), "") << "the destination is the same";
  EXPECT_NE(with(kTranslatedLine, "status=16", "status=144"), "") << "a bit that is not kept";
  EXPECT_NE(with(kTranslatedLine, "status=16", "status=65552"), "");
  EXPECT_NE(with(kTranslatedLine, "reply_src=192.0.2.7", "reply_src=192.0.2.8"), "") << "the destination is another";
  EXPECT_NE(with(kTranslatedLine, "reply_sport=53", "reply_sport=54"), "");
  EXPECT_NE(with(kTranslatedLine, "reply_dport=1024", "reply_dport=65536"), "");
  EXPECT_NE(with(kTranslatedLine, " reply_dport=1024", ""), "");
  EXPECT_NE(with(kTranslatedLine, "203.0.113.5", "2001:db8::1"), "") << "two families";
  std::string other_family = kTranslatedLine;
  other_family.replace(other_family.find("reply_src=192.0.2.7"), 19, "reply_src=2001:db8::2");
  EXPECT_NE(with(other_family, "203.0.113.5", "2001:db8::1"), "");
  EXPECT_NE(with(kTranslatedLine, "reply_dst=203.0.113.5 reply_sport=53 reply_dport=1024",
                 "reply_dst=10.1.0.1 reply_sport=53 reply_dport=1000"),
            "")
      << "not translated";
  EXPECT_EQ(with(kTranslatedLine, "203.0.113.5", "10.1.0.1"), "") << "only the port";
  EXPECT_NE(with(kUdpLine, "status=0", "status=16"), "") << "without a reply";
  EXPECT_NE(with(kEchoLine, "reply_dport=0", "reply_dport=1"), "") << "another code";
  EXPECT_NE(with(kEchoLine, "reply_dport=0", "reply_dport=768"), "") << "no reply of ICMP";
  EXPECT_NE(with(kEchoLine, "status=34", "status=18"), "");
  EXPECT_EQ(mistake_of(first_line(1) + "protocol=50 timeout_ms=1000 src=10.1.0.1 dst=192.0.2.7 sport=0 dport=0 "
                                       "status=16 mark=0 reply_src=192.0.2.7 reply_dst=203.0.113.5 reply_sport=0 "
                                       "reply_dport=0\n"),
            "");
  EXPECT_NE(mistake_of(first_line(1) + "protocol=50 timeout_ms=1000 src=10.1.0.1 dst=192.0.2.7 sport=0 dport=0 "
                                       "status=16 mark=0 reply_src=192.0.2.7 reply_dst=203.0.113.5 reply_sport=0 "
                                       "reply_dport=1\n"),
            "")
      << "no ports";
}

TEST(SavedConnections, OfOtherFilesAndVersionsNothingIsRead) {
  EXPECT_EQ(mistake_of("root:x:0:0\n"),
            "file: not a file of saved connections: expected a file that begins with penstock-connections ");
  EXPECT_EQ(mistake_of("penstock-connections version=3 anything\n"),
            "file:1: saved connections of another version of the format: found 3, expected 2");
  EXPECT_EQ(mistake_of("penstock-connections version=1 saved_ms=00000001700000000000 connections=0000000000\n"),
            "file:1: saved connections of another version of the format: found 1, of an earlier penstock, expected 2");
  EXPECT_NE(mistake_of("penstock-connections version=2 connections=0\n"), "");
  EXPECT_TRUE(is_saved_connections(first_line(0)));
  EXPECT_FALSE(is_saved_connections("*filter\n"));
  EXPECT_FALSE(is_saved_connections(""));
}

TEST(SavedConnections, MoreThanAReaderTakesAreLeftOut) {
  ConnectionTables connections({}, Clock::packets);
  Worker worker(connections);
  for (std::uint16_t port = 1; port <= 10; ++port) worker.pass(udp_packet({.source_port = port}));
  SavedConnectionsWriter writer(600);
  connections.for_each_saved([&](const SavedConnection& one) { writer.add(one); });
  EXPECT_GT(writer.written(), 0U);
  EXPECT_EQ(writer.written() + writer.left_out(), 10U);
  const std::string text = writer.finish(kNowMs);
  EXPECT_LE(text.size(), 600U);
  EXPECT_EQ(mistake_of(text), "");
}

/// The two runs, and a conversation that goes on in the second one.
class SecondRun : public ::testing::Test {
 protected:
  void begin() {
    auto read = read_saved_connections(saved(first_), "file", kNowMs);
    ASSERT_TRUE(read) << to_string(read.error());
    second_.restore(std::move(*read), &of_first);
    after.emplace(second_);
    after->access->pass_boundary();
  }

  ConnectionTables first_{{.tcp_loose = false}, Clock::packets}, second_{{.tcp_loose = false}, Clock::packets};
  Worker before{first_};
  std::optional<Worker> after;
};

TEST_F(SecondRun, GoesOnWithTcpAndChecksItsWindows) {
  const Ends ends;
  before.pass(tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = 1000}));
  before.pass(tcp_packet(ends.reversed(), {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 5000, .ack = 1001}));
  before.pass(tcp_packet(ends, {.sequence = 1001, .ack = 5001}));
  begin();
  EXPECT_EQ(after->access->table().counters().connections, 1U);
  const Tracked data = after->pass(tcp_packet(ends, {.sequence = 1001, .ack = 5001, .payload = 100}));
  EXPECT_EQ(data.state, State::established);
  EXPECT_TRUE(data.connection->assured());
  const Tracked far = after->pass(tcp_packet(ends, {.sequence = 900'001, .ack = 5001, .payload = 100}));
  EXPECT_EQ(far.state, State::invalid);
  EXPECT_EQ(far.reason, Reason::tcp_window);
  const Tracked unknown = after->pass(tcp_packet({.source_port = 2000}, {.sequence = 1, .ack = 1}));
  EXPECT_EQ(unknown.state, State::invalid) << "tcp_loose is off, so the first one is known from the file";
}

TEST_F(SecondRun, GoesOnWithUdpAndTimes) {
  before.pass(udp_packet({}));
  begin();
  const Tracked reply = after->pass(udp_packet(Ends{}.reversed()));
  EXPECT_EQ(reply.state, State::established);
  after->now_ns += 3 * kSecond;
  EXPECT_TRUE(after->pass(udp_packet({})).connection->assured()) << "the stream's time has gone on";
  after->now_ns += 121 * kSecond;
  EXPECT_EQ(after->pass(udp_packet({})).state, State::new_connection);
}

TEST(SavedConnections, GoOnWithTheirHelpers) {
  const Options offered{.ftp = {.offered = true, .ports = {21}}};
  const Ends ends{.destination_port = 21};
  ConnectionTables first(offered, Clock::packets);
  Worker before(first);
  before.pass(tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = 1000}));
  before.pass(tcp_packet(ends.reversed(), {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 5000, .ack = 1001}));
  before.pass(tcp_packet(ends, {.sequence = 1001, .ack = 5001}));
  for (const bool still : {true, false}) {
    ConnectionTables second(still ? offered : Options(), Clock::packets);
    auto read = read_saved_connections(saved(first), "file", kNowMs);
    ASSERT_TRUE(read) << to_string(read.error());
    second.restore(std::move(*read), &of_first);
    Worker after(second);
    after.access->pass_boundary();
    // Where lines begin is not saved: the next segment begins one.
    ParsedPacket line(tcp_packet(ends, {.sequence = 1001, .ack = 5001, .text = "PORT 10,1,0,1,4,5\r\n"}));
    const Tracked tracked = after.access->table().track(line.view(), after.now_ns);
    ASSERT_EQ(tracked.state, State::established);
    EXPECT_EQ(tracked.connection->has_helper(), still);
    if (still) {
      EXPECT_EQ(after.access->table().help(line.view(), tracked), Helped::passes);
    }
    EXPECT_EQ(after.access->table().counters().announced, still ? 1U : 0U);
  }
}

TEST_F(SecondRun, EachWorkerTakesItsOwn) {
  for (std::uint16_t port = 1; port <= 100; ++port) before.pass(udp_packet({.source_port = port}));
  auto read = read_saved_connections(saved(first_), "file", kNowMs);
  second_.restore(std::move(*read), [](const Tuple& tuple, unsigned workers) { return tuple.source_port % workers; });
  Worker even(second_), odd(second_);
  odd.access->pass_boundary();
  even.access->pass_boundary();
  EXPECT_EQ(even.access->table().counters().connections, 50U);
  EXPECT_EQ(odd.access->table().counters().connections, 50U);
  EXPECT_EQ(odd.pass(udp_packet(Ends{.source_port = 7}.reversed())).state, State::established);
  EXPECT_EQ(even.pass(udp_packet(Ends{.source_port = 7}.reversed())).state, State::new_connection);
}

TEST_F(SecondRun, TakesWhatItHasRoomFor) {
  for (std::uint16_t port = 1; port <= 100; ++port) before.pass(udp_packet({.source_port = port}));
  ConnectionTables small({.most_connections = 10}, Clock::packets);
  auto read = read_saved_connections(saved(first_), "file", kNowMs);
  std::vector<SavedConnection> twice = *read;
  twice.insert(twice.begin(), read->begin(), read->begin() + 5);
  small.restore(std::move(twice), &of_first);
  Worker worker(small);
  worker.access->pass_boundary();
  EXPECT_EQ(worker.access->table().counters().connections, 10U);
}

/// A connection whose source is translated, and who has its port in the second run.
class SecondRunWithNat : public SecondRun {
 protected:
  static constexpr NatRange kRange{
      .first_address = {0, 0xcb007105}, .last_address = {0, 0xcb007105}, .flags = NatRange::kAddresses};

  static Tracked translate(Worker& worker, const Packet& packet) {
    ParsedPacket parsed(packet);
    Table& table = worker.access->table();
    const Tracked tracked = table.track(parsed.view(), worker.now_ns);
    EXPECT_TRUE(table.translate(*tracked.connection, NatKind::source, kRange));
    EXPECT_TRUE(table.confirm(*tracked.connection));
    return tracked;
  }
  void begin_with(std::vector<NatKind> written) {
    auto read = read_saved_connections(saved(first_), "file", kNowMs);
    ASSERT_TRUE(read) << to_string(read.error());
    second_.restore(std::move(*read), &of_first);
    after.emplace(second_);
    for (const NatKind kind : written) after->access->table().will_write(kind);
    after->access->pass_boundary();
  }
};

TEST_F(SecondRunWithNat, GoesOnWithTranslationsAndTheirPorts) {
  const Tuple reply = translate(before, udp_packet({})).connection->reply;
  begin_with({NatKind::source, NatKind::destination});
  Table& table = after->access->table();
  const Found found = table.look_up(reply);
  ASSERT_NE(found.connection, nullptr);
  EXPECT_EQ(found.direction, Direction::reply);
  EXPECT_TRUE(found.connection->source_translated());
  EXPECT_EQ(after->pass(udp_packet({})).connection, found.connection) << "the same from the other side";
  // Another host with the same port.
  const Tuple other = translate(*after, udp_packet({.source = "10.1.0.77"})).connection->reply;
  EXPECT_EQ(other.destination, reply.destination);
  EXPECT_NE(other.destination_port, reply.destination_port) << "that port is in use again";
}

TEST_F(SecondRunWithNat, LeavesOutConnectionsWhoseTranslationIsNotWrittenToBothDirections) {
  static_cast<void>(translate(before, udp_packet({})));
  before.pass(udp_packet({.source_port = 7}));
  begin_with({NatKind::source});
  EXPECT_EQ(after->access->table().counters().connections, 1U);
}

TEST_F(SecondRunWithNat, OfConnectionsWithOneTupleOnlyTheFirstIsEntered) {
  Table table({.most_connections = 8});
  table.will_write(NatKind::source);
  table.will_write(NatKind::destination);
  std::string other = kTranslatedLine;
  other.replace(other.find("src=10.1.0.1"), 12, "src=10.1.0.2");
  const std::string answer =  // from its outside to the public address
      "protocol=17 timeout_ms=30000 src=192.0.2.7 dst=203.0.113.5 sport=53 dport=1024 status=0 mark=0 stream_in_ms=0\n";
  const std::string from_outside =
      "protocol=17 timeout_ms=30000 src=203.0.113.5 dst=192.0.2.7 sport=1024 dport=53 status=0 mark=0 stream_in_ms=0\n";
  const auto read = read_saved_connections(
      first_line(5) + kTranslatedLine + other + kTranslatedLine + answer + from_outside, "file", kNowMs);
  ASSERT_TRUE(read) << to_string(read.error());
  for (const SavedConnection& one : *read) table.restore(one);
  EXPECT_EQ(table.counters().connections, 1U);
}

}  // namespace
}  // namespace penstock::conntrack
