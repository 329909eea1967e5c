// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Translations of connections: which addresses and ports they get, and that they are found again.

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/testing/rounds.h"
#include "conntrack/testing/translating_table.h"

namespace penstock::conntrack {
namespace {

const std::string kPublic = "192.0.2.1";

Tuple reply_of(const TranslatingTable& nat) { return nat.last.connection->reply; }

TEST(Nat, SourceIsTranslatedAndRepliesComeBack) {
  for (const auto& [inside, outside] :
       {std::pair{Ends{}, Ends{kPublic, "10.2.0.1"}},
        std::pair{Ends{"2001:db8::1", "2001:db8:2::1"}, Ends{"2001:db8:1::9", "2001:db8:2::1"}}}) {
    TranslatingTable nat;
    const NatRules rules{.source = to_address(outside.source)};
    EXPECT_EQ(nat.forward(udp_packet(inside), rules), udp_packet(outside));
    EXPECT_EQ(nat.last.connection->status, Connection::kConfirmed | Connection::kSourceNat |
                                               Connection::kSourceNatDone | Connection::kDestinationNatDone);
    EXPECT_EQ(nat.forward(udp_packet(outside.reversed())), udp_packet(inside.reversed()));
    EXPECT_EQ(nat.last.state, State::established);
    EXPECT_EQ(nat.last.direction, Direction::reply);
    EXPECT_EQ(nat.forward(udp_packet(inside)), udp_packet(outside)) << "later packets have no rules";
    EXPECT_TRUE(nat.forward(udp_packet(inside.reversed())));
    EXPECT_EQ(nat.last.state, State::new_connection) << "not a reply";
  }
}

TEST(Nat, DestinationIsTranslatedWithItsPort) {
  TranslatingTable nat;
  const Ends client{"10.9.0.1", kPublic, 4000, 80}, server{"10.9.0.1", "10.2.0.7", 4000, 8080};
  const NatRules rules{.destination = with_ports(to_address("10.2.0.7"), 8080, 8080)};
  EXPECT_EQ(nat.forward(tcp_packet(client, {.flags = TcpHeader::kSyn}), rules),
            tcp_packet(server, {.flags = TcpHeader::kSyn}));
  EXPECT_EQ(nat.last.connection->status, Connection::kConfirmed | Connection::kDestinationNat |
                                             Connection::kSourceNatDone | Connection::kDestinationNatDone);
  const TcpFields answer{.flags = TcpHeader::kSyn | TcpHeader::kAck, .ack = 1};
  EXPECT_EQ(nat.forward(tcp_packet(server.reversed(), answer)), tcp_packet(client.reversed(), answer));
  EXPECT_EQ(nat.last.state, State::established);
}

TEST(Nat, PortsOfADestinationAreShifted) {
  TranslatingTable nat;
  NatRules rules{.destination = with_ports(to_address("10.2.0.7"), 8000, 8009)};
  rules.destination.flags |= NatRange::kOffset;
  rules.destination.base_port = 9000;
  // 8005 is in the range, but its place is taken from its distance to 9000: it wraps. So does 9012.
  for (const auto& [before, after] : {std::pair{9000, 8000}, {9009, 8009}, {9012, 8002}, {8005, 8001}, {9003, 8003}}) {
    const auto client_port = static_cast<std::uint16_t>(4000 + before - 8000);
    const Ends client{"10.9.0.1", kPublic, client_port, static_cast<std::uint16_t>(before)},
        server{"10.9.0.1", "10.2.0.7", client_port, static_cast<std::uint16_t>(after)};
    EXPECT_EQ(nat.forward(udp_packet(client), rules), udp_packet(server)) << before;
    EXPECT_EQ(nat.forward(udp_packet(server.reversed())), udp_packet(client.reversed()));
  }
}

TEST(Nat, BothEndsAreTranslated) {
  TranslatingTable nat;
  const Ends before{"10.1.0.1", kPublic, 4000, 80}, after{kPublic, "10.1.0.7", 4000, 8080};
  const NatRules hairpin{.destination = with_ports(to_address("10.1.0.7"), 8080, 8080), .source = to_address(kPublic)};
  EXPECT_EQ(nat.forward(udp_packet(before), hairpin), udp_packet(after));
  EXPECT_EQ(nat.forward(udp_packet(after.reversed())), udp_packet(before.reversed()));
}

TEST(Nat, IdentifiersOfEchoAreTranslatedAsPorts) {
  TranslatingTable nat;
  const NatRules rules{.source = with_ports(to_address(kPublic), 700, 700)};
  const Ends inside{"10.1.0.1", "10.2.0.1"}, outside{kPublic, "10.2.0.1"};
  EXPECT_EQ(nat.forward(icmp_packet(inside, 8, 0, 5), rules), icmp_packet(outside, 8, 0, 700));
  EXPECT_EQ(nat.forward(icmp_packet(outside.reversed(), 0, 0, 700)), icmp_packet(inside.reversed(), 0, 0, 5));
  EXPECT_EQ(nat.last.direction, Direction::reply);
}

TEST(Nat, OtherProtocolsAreTranslatedByAddress) {
  TranslatingTable nat;
  const Ends inside{"10.1.0.1", "10.2.0.1"}, outside{kPublic, "10.2.0.1"};
  const Packet payload(12, 7);
  const NatRules rules{.source = to_address(kPublic)};
  EXPECT_EQ(nat.forward(ip_packet(inside, 89, payload), rules), ip_packet(outside, 89, payload));
  EXPECT_EQ(nat.forward(ip_packet(outside.reversed(), 89, payload)), ip_packet(inside.reversed(), 89, payload));
  EXPECT_FALSE(nat.forward(ip_packet({"10.1.0.2", "10.2.0.1"}, 89, payload), rules)) << "nothing tells them apart";
  EXPECT_EQ(nat.table.counters().no_free_port, 1);
}

TEST(Nat, APortIsKeptWhileItIsFree) {
  TranslatingTable nat;
  const NatRules rules{.source = to_address(kPublic)};
  nat.forward(udp_packet({.source = "10.1.0.1"}), rules);
  EXPECT_EQ(reply_of(nat).destination_port, 1000);
  nat.forward(udp_packet({.source = "10.1.0.2"}), rules);
  const std::uint16_t other = reply_of(nat).destination_port;
  EXPECT_NE(other, 1000);
  EXPECT_GE(other, 600) << "the class of the port";
  EXPECT_LT(other, 1024);
  nat.forward(udp_packet({.source = "10.1.0.2", .destination = "10.2.0.9"}), rules);
  EXPECT_EQ(reply_of(nat).destination_port, other) << "all connections of a socket have one port";
  nat.forward(udp_packet({.source = "10.1.0.3", .destination = "10.2.0.8"}), rules);
  EXPECT_EQ(reply_of(nat).destination_port, 1000) << "to another destination";
}

TEST(Nat, PortsStayInTheirClass) {
  struct Class {
    std::uint16_t port, first, last;
  };
  for (const auto& [port, first, last] : {Class{100, 1, 511}, Class{511, 1, 511}, Class{512, 600, 1023},
                                          Class{1023, 600, 1023}, Class{1024, 1024, 65535}}) {
    TranslatingTable nat;
    for (int host = 1; host < 60; ++host) {
      ASSERT_TRUE(nat.forward(udp_packet({.source = "10.1.0." + std::to_string(host), .source_port = port}),
                              {.source = to_address(kPublic)}));
      const std::uint16_t chosen = reply_of(nat).destination_port;
      EXPECT_TRUE(host == 1 ? chosen == port : chosen >= first && chosen <= last) << chosen;
    }
  }
}

TEST(Nat, WithoutAFreePortThePacketIsDropped) {
  TranslatingTable nat;
  const NatRules rules{.source = with_ports(to_address(kPublic), 2000, 2009)};
  std::set<std::uint16_t> ports;
  for (std::uint16_t port = 1; port <= 10; ++port) {
    ASSERT_TRUE(nat.forward(udp_packet({.source_port = port}), rules)) << port;
    ports.insert(reply_of(nat).destination_port);
  }
  EXPECT_EQ(ports.size(), 10);
  EXPECT_EQ(*ports.begin(), 2000);
  EXPECT_EQ(*ports.rbegin(), 2009);
  EXPECT_FALSE(nat.forward(udp_packet({.source_port = 11}), rules));
  EXPECT_EQ(nat.table.counters().no_free_port, 1);
  EXPECT_EQ(nat.table.counters().connections, 10);
  nat.wait(31);
  EXPECT_TRUE(nat.forward(udp_packet({.source_port = 11}), rules)) << "the others have expired";
}

TEST(Nat, AnEndedConnectionGivesItsPortToALaterOne) {
  TranslatingTable nat;
  const NatRules rules{.source = with_ports(to_address(kPublic), 2000, 2001)};
  const auto syn = [&](std::uint16_t port, std::uint32_t sequence) {
    return nat.forward(tcp_packet({.source_port = port}, {.flags = TcpHeader::kSyn, .sequence = sequence}), rules);
  };
  for (const std::uint16_t port : {std::uint16_t{1}, std::uint16_t{2}}) ASSERT_TRUE(syn(port, 1000));
  EXPECT_FALSE(syn(3, 5000));
  nat.table.for_each(0, 10, [](Connection& connection) { connection.tcp_state = TcpState::time_wait; });
  EXPECT_FALSE(syn(3, 500)) << "its segments could be taken for the old ones";
  EXPECT_TRUE(syn(3, 5000));
  EXPECT_EQ(nat.table.counters().connections, 2);
}

TEST(Nat, RandomPortsAreNotTheSenders) {
  TranslatingTable nat({.seed = 1});
  int kept = 0;
  for (std::uint16_t port = 2000; port < 2100; ++port) {
    nat.forward(udp_packet({.source_port = port}), {.source = to_address(kPublic, NatRange::kFullyRandom)});
    kept += reply_of(nat).destination_port == port;
  }
  EXPECT_LT(kept, 5);
}

TEST(Nat, DestinationPortsAreTakenInOrder) {
  TranslatingTable nat;
  const NatRules rules{.destination = with_ports(to_address("10.2.0.7"), 8000, 8003)};
  for (const int expected : {8000, 8001}) {
    // Two clients that look the same to the server.
    nat.forward(udp_packet({.destination = expected == 8000 ? kPublic : "192.0.2.2"}), rules);
    EXPECT_EQ(reply_of(nat).source_port, expected);
  }
}

TEST(Nat, AClashOfUntranslatedConnectionsChangesTheSourcePort) {
  TranslatingTable nat;
  const NatRules rules{.destination = to_address("10.2.0.7")};
  const Ends direct{"10.1.0.1", "10.2.0.7", 5000, 80}, forwarded{"10.1.0.1", kPublic, 5000, 80};
  ASSERT_EQ(nat.forward(udp_packet(direct)), udp_packet(direct));
  ASSERT_TRUE(nat.forward(udp_packet(forwarded), rules));
  EXPECT_NE(reply_of(nat).destination_port, 5000);
  EXPECT_EQ(nat.last.connection->status & (Connection::kSourceNat | Connection::kDestinationNat),
            Connection::kSourceNat | Connection::kDestinationNat);
  EXPECT_EQ(nat.forward(udp_packet(direct.reversed())), udp_packet(direct.reversed()));

  TranslatingTable reversed;
  ASSERT_TRUE(reversed.forward(udp_packet(forwarded), rules));
  ASSERT_TRUE(reversed.forward(udp_packet(direct)));
  EXPECT_NE(reply_of(reversed).destination_port, 5000) << "though no rule translates it";
}

TEST(Nat, NetmapKeepsTheHostPart) {
  TranslatingTable nat;
  const NatRules rules{.source = to_addresses("192.0.2.16", "192.0.2.31", NatRange::kNetmap)};
  EXPECT_EQ(nat.forward(udp_packet({.source = "10.1.7.5"}), rules), udp_packet({.source = "192.0.2.21"}));
  EXPECT_EQ(nat.forward(udp_packet(Ends{"2001:db8::5:1234", "2001:db8:2::1", 1, 2}),
                        {.source = to_addresses("2001:db8:1::", "2001:db8:1::ffff", NatRange::kNetmap)}),
            udp_packet(Ends{"2001:db8:1::1234", "2001:db8:2::1", 1, 2}));
}

TEST(Nat, AddressesOfARangeAreAllUsedAndDependOnTheHosts) {
  for (const bool persistent : {false, true}) {
    TranslatingTable nat;
    const NatRules rules{.source = to_addresses("192.0.2.1", "192.0.2.4", persistent ? NatRange::kPersistent : 0)};
    std::set<std::uint64_t> of_many, of_one;
    for (int host = 0; host < 100; ++host) {
      nat.forward(udp_packet({.source = "10.1.1." + std::to_string(host)}), rules);
      of_many.insert(reply_of(nat).destination.low);
      nat.forward(udp_packet({.destination = "10.3.0." + std::to_string(host),
                              .source_port = static_cast<std::uint16_t>(2000 + host)}),
                  rules);
      of_one.insert(reply_of(nat).destination.low);
    }
    EXPECT_EQ(of_many, (std::set<std::uint64_t>{0xc0000201, 0xc0000202, 0xc0000203, 0xc0000204}));
    EXPECT_EQ(of_one.size(), persistent ? 1 : 4);
  }
}

TEST(Nat, AConnectionIsTranslatedOnce) {
  TranslatingTable nat;
  nat.forward(udp_packet({}), {.source = to_address(kPublic)});
  Connection& connection = *nat.last.connection;
  const Tuple reply = connection.reply;
  EXPECT_TRUE(nat.table.translate(connection, NatKind::source, to_address("192.0.2.9")));
  EXPECT_EQ(connection.reply, reply);
}

TEST(Nat, ConnectionsThatClashWhenTheyAreConfirmedAreNot) {
  TranslatingTable nat;
  ASSERT_TRUE(nat.forward(udp_packet({.source = "10.1.0.1"}), {.source = to_address(kPublic)}));
  // As if both had been translated before one of them was confirmed.
  const Tuple reply = reply_of(nat);
  ASSERT_TRUE(nat.forward(udp_packet({.source = "10.1.0.2"}), {.source = to_address("192.0.2.2")}, true));
  nat.last.connection->reply = reply;
  EXPECT_FALSE(nat.table.confirm(*nat.last.connection));
  EXPECT_EQ(nat.table.counters().clashes, 1);
  nat.table.forget(*nat.last.connection);
  EXPECT_EQ(nat.table.counters().connections, 1);
}

TEST(Nat, TranslatedConnectionsLeaveNothingBehind) {
  TranslatingTable nat({.most_connections = 64});
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < testing::rounds(20'000); ++i) {
    const std::string host = "10.1.0." + std::to_string(1 + i % 7);
    const auto port = static_cast<std::uint16_t>(2000 + i % 11);
    const NatRules rules = i % 3 == 0 ? NatRules{} : NatRules{.source = with_ports(to_address(kPublic), 1, 40)};
    if (i % 2 == 0) {
      nat.forward(udp_packet({.source = host, .source_port = port}), rules);
    } else {
      nat.forward(tcp_packet({.source = host, .source_port = port}, {.flags = TcpHeader::kSyn, .sequence = ++number}),
                  rules);
      if (i % 5 == 0) nat.forward(tcp_packet({.source = host, .source_port = port}, {.flags = TcpHeader::kRst}));
    }
    if (i % 4 == 0) nat.wait(5);
    if (i % 8 == 0) nat.table.expire(nat.now_ns);
    nat.table.for_each(0, 64, [&](const Connection& connection) {
      ASSERT_EQ(connection.translated(), !are_inverse(connection.original, connection.reply));
    });
  }
  nat.wait(1000);
  nat.expire();
  EXPECT_EQ(nat.table.counters().connections, 0);
  EXPECT_EQ(nat.forward(udp_packet({kPublic, "10.2.0.1", 80, 5})), udp_packet({kPublic, "10.2.0.1", 80, 5}));
}

TEST(Nat, ErrorsAreTranslatedWithWhatTheyQuote) {
  TranslatingTable nat;
  const Ends inside{"10.1.0.1", "10.2.0.1", 1000, 80}, outside{kPublic, "10.2.0.1", 3000, 80};
  nat.forward(udp_packet(inside), {.source = with_ports(to_address(kPublic), 3000, 3000)});
  for (const std::size_t most : std::to_array<std::size_t>({28, 32})) {
    const auto quote = [&](const Ends& ends) {
      Packet packet = udp_packet(ends);
      packet.resize(most);
      return packet;
    };
    EXPECT_EQ(nat.forward(icmp_packet({"10.8.0.1", kPublic}, 3, 1, 0, quote(outside))),
              icmp_packet({"10.8.0.1", "10.1.0.1"}, 3, 1, 0, quote(inside)));
    EXPECT_EQ(nat.last.state, State::related);
    EXPECT_EQ(nat.forward(icmp_packet({"10.1.9.9", "10.2.0.1"}, 3, 1, 0, quote(inside.reversed()))),
              icmp_packet({kPublic, "10.2.0.1"}, 3, 1, 0, quote(outside.reversed())));
    EXPECT_EQ(nat.last.state, State::related);
  }
  EXPECT_FALSE(nat.forward(icmp_packet({"10.8.0.1", kPublic}, 5, 1, 0, udp_packet(outside)))) << "a redirect";
  Packet short_quote = udp_packet(outside);
  short_quote.resize(27);
  EXPECT_FALSE(nat.forward(icmp_packet({"10.8.0.1", kPublic}, 3, 1, 0, short_quote)));
}

TEST(Nat, FragmentsFollowTheirFirst) {
  TranslatingTable nat;
  const Packet inside = udp_packet({}, 100), outside = udp_packet({.source = kPublic, .source_port = 3000}, 100);
  const NatRules rules{.source = with_ports(to_address(kPublic), 3000, 3000)};
  EXPECT_EQ(nat.forward(fragment_of(inside, 0, 48, true), rules), fragment_of(outside, 0, 48, true));
  EXPECT_EQ(nat.forward(fragment_of(inside, 48, 108, false)), fragment_of(outside, 48, 108, false));
}

}  // namespace
}  // namespace penstock::conntrack
