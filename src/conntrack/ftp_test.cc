// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/ftp.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "conntrack/line_starts.h"
#include "conntrack/sequence_shift.h"
#include "conntrack/testing/translating_table.h"

namespace penstock::conntrack {
namespace {

using Kind = FtpAnnouncement::Kind;

FtpAnnouncement read(std::string_view line, Direction direction, std::uint8_t ip_version = 4) {
  const Ipv6Address otherwise = address_of(ip_version == 4 ? "10.9.9.9" : "2001:db8::9");
  return read_ftp({reinterpret_cast<const std::uint8_t*>(line.data()), line.size()}, direction, ip_version, otherwise);
}
FtpAnnouncement of_client(std::string_view line, std::uint8_t ip_version = 4) {
  return read(line, Direction::original, ip_version);
}
FtpAnnouncement of_server(std::string_view line, std::uint8_t ip_version = 4) {
  return read(line, Direction::reply, ip_version);
}
std::string numbers_in(std::string_view line, const FtpAnnouncement& said) {
  return std::string(line.substr(said.offset, said.length));
}

struct Line {
  std::string_view text;
  Direction direction;
  std::uint8_t ip_version;
  std::string_view address;
  std::uint16_t port;
  std::string_view numbers;
};

TEST(Ftp, ReadsCommandsAndReplies) {
  constexpr auto kClient = Direction::original, kServer = Direction::reply;
  for (const Line& line : {
           Line{"PORT 10,1,0,1,4,5\r\n", kClient, 4, "10.1.0.1", 1029, "10,1,0,1,4,5"},
           Line{"port 10,1,0,1,0,21\r\nNOOP\r\n", kClient, 4, "10.1.0.1", 21, "10,1,0,1,0,21"},
           Line{"EPRT |1|10.1.0.1|6275|\r\n", kClient, 4, "10.1.0.1", 6275, "|1|10.1.0.1|6275|"},
           Line{"EPRT !1!10.1.0.1!6275!\r\n", kClient, 4, "10.1.0.1", 6275, "!1!10.1.0.1!6275!"},
           Line{"EPRT |2|2001:db8::1|80|\r\n", kClient, 6, "2001:db8::1", 80, "|2|2001:db8::1|80|"},
           Line{"227 Entering Passive Mode (10,2,0,1,200,1).\r\n", kServer, 4, "10.2.0.1", 51201, "10,2,0,1,200,1"},
           Line{"227 =10,2,0,1,200,1\r\n", kServer, 4, "10.2.0.1", 51201, "10,2,0,1,200,1"},
           Line{"229 Entering Extended Passive Mode (|||6446|)\r\n", kServer, 4, "10.9.9.9", 6446, "|||6446|"},
           Line{"229 (|||6446|)\r\n", kServer, 6, "2001:db8::9", 6446, "|||6446|"},
       }) {
    const FtpAnnouncement said = read(line.text, line.direction, line.ip_version);
    EXPECT_EQ(said.kind, Kind::found) << line.text;
    EXPECT_EQ(said.address, address_of(std::string(line.address))) << line.text;
    EXPECT_EQ(said.port, line.port) << line.text;
    EXPECT_EQ(numbers_in(line.text, said), line.numbers);
  }
}

TEST(Ftp, TellsLinesThatAreNotCompleteFromOthers) {
  for (const std::string_view line :
       {"P", "por", "PORT", "PORT ", "PORT\r\n", "PORT 10,1,0,1,4", "PORT 10,1,0,1,4,5", "PORT 10,1,0,1,4,5\n",
        "PORT 10,1,0,1,4,5,6\r\n", "PORT 10.1.0.1,4,5\r\n", "PORT  10,1,0,1,4,5\r\n", "E", "EPRT |1|10.1.0.1|6275",
        "EPRT |1|10.1.0.1|0|\r\n", "EPRT |2|2001:db8::1|80|\r\n", "EPRT 111010.1.0.1111\r\n", "EPRT |1|10.1.0|99|\r\n",
        "EPRT .1.10.1.0.1.99.\r\n"}) {
    EXPECT_EQ(of_client(line).kind, Kind::incomplete) << line;
    EXPECT_EQ(of_server(line).kind, Kind::none) << line;
  }
  for (const std::string_view line :
       {"2", "22", "227", "227 ", "227 ok\r\n", "227 (10,2,0,1,200", "227 (10,2,0,1,200,1", "229 ok\r\n", "229 (|||)",
        "229 (||6446|)\r\n", "229 (|||6446)\r\n", "229 (|||0|)\r\n", "229 (|| |6446|)\r\n"}) {
    EXPECT_EQ(of_server(line).kind, Kind::incomplete) << line;
    EXPECT_EQ(of_client(line).kind, Kind::none) << line;
  }
  EXPECT_EQ(of_client("EPRT |2|2001:db8::x|80|\r\n", 6).kind, Kind::incomplete);
  EXPECT_EQ(of_client("EPRT |1|10.1.0.1|80|\r\n", 6).kind, Kind::incomplete);
  for (const std::string_view line : {"USER x\r\n", "\r\n", " PORT 10,1,0,1,4,5\r\n", "PASV\r\n", "xPORT"})
    EXPECT_EQ(of_client(line).kind, Kind::none) << line;
  for (const std::string_view line : {"226 done\r\n", "227-a\r\n", "22x"}) EXPECT_EQ(of_server(line).kind, Kind::none);
}

TEST(Ftp, WritesNumbersAsLinux) {
  const auto written = [](FtpCommand command, std::uint8_t version, const char* address, std::uint16_t port) {
    std::array<char, kMostFtpNumbers + 1> text{};
    return std::string(text.data(), write_ftp(text, command, version, address_of(address), port));
  };
  EXPECT_EQ(written(FtpCommand::port, 4, "198.51.100.1", 0x1234), "198,51,100,1,18,52");
  EXPECT_EQ(written(FtpCommand::pasv, 4, "255.255.255.255", 65535), "255,255,255,255,255,255");
  EXPECT_EQ(written(FtpCommand::eprt, 4, "198.51.100.1", 80), "|1|198.51.100.1|80|");
  EXPECT_EQ(written(FtpCommand::eprt, 6, "2001:db8::1", 65535), "|2|2001:0db8:0000:0000:0000:0000:0000:0001|65535|");
  EXPECT_EQ(written(FtpCommand::epsv, 6, "2001:db8::1", 6446), "|||6446|");
}

TEST(LineStarts, AreTheLastTwo) {
  LineStarts lines;
  EXPECT_FALSE(lines.begins_at(100));
  lines.add(100);
  lines.add(200);
  EXPECT_TRUE(lines.begins_at(100) && lines.begins_at(200));
  lines.add(300);
  EXPECT_FALSE(lines.begins_at(100));
  EXPECT_TRUE(lines.begins_at(200) && lines.begins_at(300));
  lines.add(50);
  EXPECT_FALSE(lines.begins_at(50)) << "it is older than both";
  lines.add(300);
  EXPECT_TRUE(lines.begins_at(200));
  LineStarts wrapped;
  for (const std::uint32_t at : {0xfffffff0U, 0xfffffffaU, 5U}) wrapped.add(at);
  EXPECT_FALSE(wrapped.begins_at(0xfffffff0));
  EXPECT_TRUE(wrapped.begins_at(5));
}

TEST(LineStarts, OfAConnectionThatIsPickedUpAreUnknownOnce) {
  LineStarts lines = LineStarts::picked_up();
  EXPECT_TRUE(lines.begins_at(1234));
  EXPECT_FALSE(lines.begins_at(1234));
}

TEST(SequenceShift, CountsBytesAfterAChange) {
  SequenceShift shift;
  EXPECT_EQ(shift.of(7), 0);
  shift.add(100, 3);
  EXPECT_EQ(shift.of(100), 0);
  EXPECT_EQ(shift.of(120), 3);
  EXPECT_EQ(shift.of_shifted(123), 3);
  EXPECT_EQ(shift.of_shifted(100), 0);
  shift.add(100, 3);
  EXPECT_EQ(shift.of(120), 3) << "the same segment, sent again";
  shift.add(150, std::uint32_t(-5));
  EXPECT_EQ(shift.of(150), 3);
  EXPECT_EQ(shift.of(170), std::uint32_t(-2));
  shift.add(140, 9);
  EXPECT_EQ(shift.of(170), std::uint32_t(-2)) << "older than the last change";
  SequenceShift wraps;
  wraps.add(0xfffffff0, 4);
  EXPECT_EQ(wraps.of(10), 4);
  EXPECT_EQ(wraps.of(0xffffffe0), 0);
}

TEST(SequenceShift, ChangesSackBlocksAtOddPlacesToo) {
  SequenceShifts shifts;
  shifts[1].add(1000, 7);
  Packet options{1, 5, 18, 0, 0, 0x10, 0, 0, 0, 0x11, 0, 0, 0, 0x12, 0, 0, 0, 0x13, 0, 1};  // 4096..4352, 4608..4864
  ParsedPacket parsed(tcp_packet({}, {.sequence = 5, .ack = 2007, .options = options}));
  shift_sequence_numbers(parsed.view(), shifts, Direction::original);
  put_be32(options, 3, 0x1000 - 7);
  put_be32(options, 7, 0x1100 - 7);
  put_be32(options, 11, 0x1200 - 7);
  put_be32(options, 15, 0x1300 - 7);
  EXPECT_EQ(parsed.bytes, tcp_packet({}, {.sequence = 5, .ack = 2000, .options = options}));
}

// Connections.

constexpr const char* kClient = "10.1.0.1";
constexpr const char* kServer = "10.2.0.1";

Options with_helper() {
  Options options;
  options.ftp.offered = true;
  options.ftp.ports = {21, 2121};
  return options;
}

/// What passes a table with the helper, as it leaves, and how.
struct HelpingTable : TranslatingTable {
  explicit HelpingTable(const Options& options = with_helper()) : TranslatingTable(options) {}

  std::string forward_line(const Packet& packet, const NatRules& rules = {}) {
    const auto output = forward(packet, rules);
    if (!output) return "dropped";
    ParsedPacket parsed(*output);
    EXPECT_FALSE(find_problem(parsed)) << "wrong checksum or length";
    const PacketLayout& layout = parsed.descriptor.layout;
    return {output->begin() + layout.payload_offset, output->begin() + layout.end};
  }
  State state_of(const Packet& packet) {
    static_cast<void>(forward(packet));
    return last.state;
  }

 private:
  static bool find_problem(ParsedPacket& parsed) {
    Transport transport;
    return !read_transport(parsed.view(), transport) || find_error(parsed.view(), transport, true) ||
           parsed.descriptor.layout.end != parsed.bytes.size();
  }
};

/// A control connection, as its two hosts see it.
struct Control {
  explicit Control(HelpingTable& of, NatRules nat_rules = {}, Ends of_client = {kClient, kServer, 3000, 21},
                   const std::optional<Ends>& of_server = {})
      : table(of), rules(nat_rules), client(of_client), server(of_server.value_or(client.reversed())) {
    open();
  }
  void open() {
    EXPECT_TRUE(table.forward(tcp_packet(client, {.flags = TcpHeader::kSyn, .sequence = 999}), rules));
    EXPECT_TRUE(
        table.forward(tcp_packet(server, {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 4999, .ack = 1000})));
    EXPECT_TRUE(table.forward(tcp_packet(client, {.sequence = 1000, .ack = 5000})));
    from_server("220 hello\r\n");
    from_client("USER me\r\n");
  }
  std::string from_client(const std::string& text) {
    const std::string got =
        table.forward_line(tcp_packet(client, {.sequence = client_next, .ack = server_seen, .text = text}));
    if (got == "dropped") return got;
    client_next += static_cast<std::uint32_t>(text.size());
    client_seen += static_cast<std::uint32_t>(got.size());
    return got;
  }
  std::string from_server(const std::string& text) {
    const std::string got =
        table.forward_line(tcp_packet(server, {.sequence = server_next, .ack = client_seen, .text = text}));
    if (got == "dropped") return got;
    server_next += static_cast<std::uint32_t>(text.size());
    server_seen += static_cast<std::uint32_t>(got.size());
    return got;
  }

  HelpingTable& table;
  NatRules rules;
  Ends client, server;
  std::uint32_t client_next = 1000, client_seen = 1000;  // the next byte, as the client and as the server numbers it
  std::uint32_t server_next = 5000, server_seen = 5000;
};

Packet syn(const char* from, std::uint16_t from_port, const char* to, std::uint16_t to_port) {
  return tcp_packet({from, to, from_port, to_port}, {.flags = TcpHeader::kSyn});
}

TEST(FtpHelper, ExpectsWhatIsAnnounced) {
  HelpingTable table;
  Control control(table);
  EXPECT_EQ(table.last.connection->status & Connection::kHelper, Connection::kHelper);
  EXPECT_EQ(control.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(table.table.counters().expectations, 1);
  table.last.connection->mark = 77;
  const Ends data{kServer, kClient, 20, 1029};
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1029)), State::related);
  EXPECT_TRUE(table.last.expected && !table.last.is_error() && table.last.may_be_first());
  EXPECT_EQ(table.last.connection->status & (Connection::kExpected | Connection::kHelper), Connection::kExpected);
  EXPECT_EQ(table.last.connection->mark, 77) << "as its master";
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1029)), State::related) << "until it is answered";
  EXPECT_EQ(table.state_of(tcp_packet(data.reversed(), {.flags = TcpHeader::kSyn | TcpHeader::kAck, .ack = 1})),
            State::established);
  EXPECT_EQ(table.state_of(tcp_packet(data, {.sequence = 1, .ack = 1})), State::established);
  EXPECT_FALSE(table.last.expected);
  EXPECT_EQ(table.state_of(syn(kServer, 21, kClient, 1029)), State::new_connection) << "it was expected once";
  const Counters& counters = table.table.counters();
  EXPECT_EQ(counters.announced, 1);
  EXPECT_EQ(counters.arrived, 1);
  EXPECT_EQ(counters.expectations, 0);
  EXPECT_EQ(counters.related, 0) << "these are ICMP errors";
}

TEST(FtpHelper, ExpectsTheServersPortFromTheClientOnly) {
  for (const std::string line : {"227 Entering Passive Mode (10,2,0,1,200,1).\r\n", "229 x (|||51201|)\r\n"}) {
    HelpingTable table;
    Control control(table);
    EXPECT_EQ(control.from_server(line), line);
    EXPECT_EQ(table.state_of(syn("10.1.0.2", 4000, kServer, 51201)), State::new_connection);
    EXPECT_EQ(table.state_of(syn(kClient, 4000, kServer, 51200)), State::new_connection);
    EXPECT_EQ(table.state_of(syn(kClient, 4000, kServer, 51201)), State::related);
  }
}

TEST(FtpHelper, WorksWithIpv6) {
  HelpingTable table;
  Control control(table, {}, {"2001:db8::1", "2001:db8:2::1", 3000, 21});
  EXPECT_EQ(control.from_client("EPRT |2|2001:DB8:0::1|4000|\r\n"), "EPRT |2|2001:DB8:0::1|4000|\r\n");
  EXPECT_EQ(table.state_of(syn("2001:db8:2::1", 20, "2001:db8::1", 4000)), State::related);
  EXPECT_EQ(control.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(table.table.counters().announced, 1);
}

TEST(FtpHelper, ExpectsNothingForOtherHostsOrPort0) {
  HelpingTable table;
  Control control(table);
  control.from_client("PORT 10,1,0,2,4,5\r\n");
  control.from_client("PORT 10,1,0,1,0,0\r\n");
  control.from_server("227 (10,1,0,9,4,5)\r\n");
  EXPECT_EQ(table.table.counters().announced, 0);
  EXPECT_EQ(table.state_of(syn(kServer, 20, "10.1.0.2", 1029)), State::new_connection);
}

TEST(FtpHelper, BelievesOnlyBeginningsOfLines) {
  HelpingTable table;
  Control control(table);
  control.from_client("RETR ");
  EXPECT_EQ(control.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(table.table.counters().announced, 0);
  // Nor in any other order: the end of that segment is known now.
  control.client_next -= 3;
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(table.table.counters().announced, 0);
}

TEST(FtpHelper, DropsAnnouncementsInSeveralSegments) {
  HelpingTable table;
  Control control(table);
  EXPECT_EQ(control.from_client("PORT 10,1,0"), "dropped");
  EXPECT_EQ(table.table.counters().incomplete_announcements, 1);
  EXPECT_EQ(control.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 10,1,0,1,4,5\r\n") << "sent again in one piece";
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1029)), State::related);
}

TEST(FtpHelper, IsOnlyOfConnectionsToItsPorts) {
  for (const std::uint16_t port : std::to_array<std::uint16_t>({20, 22, 0})) {
    HelpingTable table;
    Control control(table, {}, {kClient, kServer, 3000, port});
    control.from_client("PORT 10,1,0,1,4,5\r\n");
    EXPECT_EQ(table.table.counters().announced, 0);
  }
  HelpingTable without{Options()};
  Control control(without);
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(without.table.counters().announced, 0);
  EXPECT_FALSE(without.table.give_helper(*without.last.connection));
  HelpingTable second_port;
  Control of_second(second_port, {}, {kClient, kServer, 3000, 2121});
  of_second.from_client("PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(second_port.table.counters().announced, 1);
}

TEST(FtpHelper, IsGivenByRulesToo) {
  Options options;
  options.ftp.offered = true;
  HelpingTable table(options);
  const Ends ends{kClient, kServer, 3000, 5000};
  ParsedPacket first(tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = 999}));
  Tracked tracked = table.table.track(first.view(), table.now_ns);
  EXPECT_TRUE(table.table.give_helper(*tracked.connection));
  EXPECT_TRUE(table.table.give_helper(*tracked.connection)) << "again";
  table.table.confirm(*tracked.connection);
  ParsedPacket datagram(udp_packet(ends));
  EXPECT_FALSE(table.table.give_helper(*table.table.track(datagram.view(), table.now_ns).connection));
  Control control(table, {}, ends);
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(table.table.counters().announced, 1);
}

TEST(FtpHelper, ExpectsForFiveMinutes) {
  HelpingTable table;
  Control control(table);
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  table.wait(299);
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  table.wait(299);
  control.from_client("PORT 10,1,0,1,4,6\r\n");
  EXPECT_EQ(table.table.counters().expectations, 1) << "the newer one takes its place";
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1029)), State::new_connection);
  table.wait(300);
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1030)), State::new_connection);
  EXPECT_EQ(table.table.counters().expectations_expired, 1);
  EXPECT_EQ(table.table.counters().expectations, 0);
}

TEST(FtpHelper, ExpectsNothingOnceTheControlConnectionIsGone) {
  HelpingTable table;
  Control control(table);
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  table.table.flush(*table.last.connection);
  EXPECT_EQ(table.table.counters().expectations, 0);
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1029)), State::new_connection);
}

TEST(FtpHelper, ExpectsAtMostSoManyAndEachOnce) {
  Options options = with_helper();
  options.most_expectations = 2;
  HelpingTable table(options);
  Control first(table), second(table, {}, {kClient, kServer, 3001, 21}), third(table, {}, {kClient, kServer, 3002, 21});
  first.from_client("PORT 10,1,0,1,4,5\r\n");
  EXPECT_EQ(second.from_client("PORT 10,1,0,1,4,5\r\n"), "dropped") << "as the first one";
  EXPECT_NE(second.from_client("PORT 10,1,0,1,4,6\r\n"), "dropped");
  EXPECT_EQ(third.from_client("PORT 10,1,0,1,4,7\r\n"), "dropped") << "there is no room";
  EXPECT_EQ(table.table.counters().unexpected, 2);
  EXPECT_NE(first.from_client("PORT 10,1,0,1,4,8\r\n"), "dropped") << "in the place of its own";
  EXPECT_EQ(table.table.counters().expectations, 2);
}

TEST(FtpHelper, UsesAnExpectationOnlyForPacketsThatBeginAConnection) {
  HelpingTable table;
  Control control(table);
  control.from_client("PORT 10,1,0,1,4,5\r\n");
  const Ends data{kServer, kClient, 20, 1029};
  EXPECT_EQ(table.state_of(tcp_packet(data, {.flags = TcpHeader::kRst})), State::invalid);
  Packet wrong = syn(kServer, 20, kClient, 1029);
  wrong.back() ^= 1;
  EXPECT_EQ(table.state_of(wrong), State::invalid);
  EXPECT_EQ(table.state_of(syn(kServer, 20, kClient, 1029)), State::related);
}

TEST(FtpHelper, TranslatesAnnouncementsOfClients) {
  HelpingTable table;
  const NatRules masquerade{.source = to_address("198.51.100.201")};
  Control control(table, masquerade, {kClient, kServer, 3000, 21}, Ends{kServer, "198.51.100.201", 21, 3000});
  EXPECT_EQ(control.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 198,51,100,201,4,5\r\n");
  EXPECT_EQ(table.last.connection->status & Connection::kSequenceAdjusted, Connection::kSequenceAdjusted);
  EXPECT_EQ(control.from_server("200 ok\r\n"), "200 ok\r\n");
  // The data connection goes to the client, from the server as it is.
  const auto data = table.forward(syn(kServer, 20, "198.51.100.201", 1029), masquerade);
  EXPECT_EQ(table.last.state, State::related);
  EXPECT_EQ(data, syn(kServer, 20, kClient, 1029));
  const Packet answer =
      tcp_packet({kClient, kServer, 1029, 20}, {.flags = TcpHeader::kSyn | TcpHeader::kAck, .ack = 1});
  EXPECT_EQ(table.forward(answer),
            tcp_packet({"198.51.100.201", kServer, 1029, 20}, {.flags = TcpHeader::kSyn | TcpHeader::kAck, .ack = 1}));
  // Later segments are numbered by what the server has got, and acknowledgments by what the client has sent.
  EXPECT_EQ(table.forward(tcp_packet(control.client, {.sequence = control.client_next, .ack = control.server_seen})),
            tcp_packet({"198.51.100.201", kServer, 3000, 21},
                       {.sequence = control.client_next + 6, .ack = control.server_seen}));
  EXPECT_EQ(table.forward(tcp_packet(control.server, {.sequence = control.server_next, .ack = control.client_seen})),
            tcp_packet(control.client.reversed(), {.sequence = control.server_next, .ack = control.client_seen - 6}));
  // Sent again, it becomes what it was.
  control.client_next -= 19;
  control.client_seen -= 25;
  EXPECT_EQ(control.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 198,51,100,201,4,5\r\n");
}

TEST(FtpHelper, TranslatesAnnouncementsOfServers) {
  HelpingTable table;
  const NatRules forwarded{.destination = to_address("10.1.0.1")};
  Control control(table, forwarded, {"10.2.0.1", "198.51.100.201", 3000, 21}, Ends{"10.1.0.1", "10.2.0.1", 21, 3000});
  EXPECT_EQ(control.from_server("227 Mode (10,1,0,1,200,1).\r\n"), "227 Mode (198,51,100,201,200,1).\r\n");
  EXPECT_EQ(control.from_client("LIST\r\n"), "LIST\r\n");
  EXPECT_EQ(table.forward(syn("10.2.0.1", 4000, "198.51.100.201", 51201)), syn("10.2.0.1", 4000, "10.1.0.1", 51201));
  EXPECT_EQ(control.from_server("229 x (|||51202|)\r\n"), "229 x (|||51202|)\r\n");
  EXPECT_EQ(table.forward(syn("10.2.0.1", 4001, "198.51.100.201", 51202)), syn("10.2.0.1", 4001, "10.1.0.1", 51202));
}

TEST(FtpHelper, TakesAnotherPortIfOneIsTaken) {
  HelpingTable table;
  const NatRules masquerade{.source = to_address("198.51.100.1")};
  Control first(table, masquerade, {kClient, kServer, 3000, 21}, Ends{kServer, "198.51.100.1", 21, 3000});
  Control second(table, masquerade, {"10.1.0.2", kServer, 3001, 21}, Ends{kServer, "198.51.100.1", 21, 3001});
  EXPECT_EQ(first.from_client("PORT 10,1,0,1,4,5\r\n"), "PORT 198,51,100,1,4,5\r\n");
  const std::string got = second.from_client("PORT 10,1,0,2,4,5\r\n");
  const FtpAnnouncement said = of_client(got);
  ASSERT_EQ(said.kind, Kind::found) << got;
  EXPECT_GT(said.port, 1029);
  EXPECT_EQ(table.forward(syn(kServer, 20, "198.51.100.1", said.port)), syn(kServer, 20, "10.1.0.2", 1029));
  EXPECT_EQ(table.forward(syn(kServer, 20, "198.51.100.1", 1029)), syn(kServer, 20, kClient, 1029));
  EXPECT_EQ(first.from_client("PORT 10,1,0,1,255,255\r\n").substr(0, 5), "PORT ");
  EXPECT_EQ(second.from_client("PORT 10,1,0,2,255,255\r\n"), "dropped") << "there is no port after it";
}

TEST(FtpHelper, DropsWhatWouldGetTooLong) {
  HelpingTable table;
  const NatRules masquerade{.source = to_address("198.51.100.201")};
  Control control(table, masquerade, {kClient, kServer, 3000, 21}, Ends{kServer, "198.51.100.201", 21, 3000});
  std::string line = "PORT 10,1,0,1,4,5\r\n";
  line.resize(std::numeric_limits<std::uint16_t>::max() - 40, 'x');
  ParsedPacket longest(tcp_packet(control.client, {.sequence = control.client_next, .ack = 5011, .text = line}));
  const Tracked tracked = table.table.track(longest.view(), table.now_ns);
  ASSERT_EQ(tracked.state, State::established);
  EXPECT_EQ(table.table.help(longest.view(), tracked), Helped::too_long);
  EXPECT_EQ(table.table.counters().expectations, 0);
}

}  // namespace
}  // namespace penstock::conntrack
