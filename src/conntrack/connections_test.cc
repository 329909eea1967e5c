// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/connections.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "conntrack/testing/packets.h"
#include "packet/parse_core.h"

namespace penstock::conntrack {
namespace {

/// Packets of a worker, whose descriptors stay until the chain is done with them.
class Traffic {
 public:
  explicit Traffic(const Options& options = {}, std::size_t most_packets = 16) : connections(options, most_packets) {}

  PacketView arrive(Packet bytes) {
    Arrived& arrived = arrived_.emplace_back();
    arrived.bytes = std::move(bytes);
    arrived.descriptor.length = arrived.descriptor.wire_length = static_cast<std::uint32_t>(arrived.bytes.size());
    arrived.descriptor.link_type = LinkType::raw_ip;
    arrived.descriptor.sequence = next_++;
    arrived.descriptor.timestamp_ns = 1'700'000'000'000'000'000;
    const PacketView packet{arrived.bytes.data(), &arrived.descriptor};
    parse(packet);
    return packet;
  }
  PacketView query(std::uint16_t port = 1000) { return arrive(udp_packet(ends(port))); }
  PacketView answer(std::uint16_t port = 1000) { return arrive(udp_packet(ends(port).reversed())); }
  State ask(PacketView packet) { return connections.of(packet).state; }
  [[nodiscard]] std::uint64_t confirmed() const { return connections.counters().confirmed; }

  Connections connections;

 private:
  struct Arrived {
    Packet bytes;
    PacketDescriptor descriptor;
  };
  static Ends ends(std::uint16_t port) {
    Ends ends;
    ends.source_port = port;
    return ends;
  }
  std::deque<Arrived> arrived_;
  std::uint32_t next_ = 0xfffffff8;  // it wraps soon
};

void drop(PacketView packet) { packet.packet->verdict = Verdict::drop(0); }

TEST(Connections, SayTheSameAboutAPacketHoweverOftenTheyAreAsked) {
  Traffic traffic;
  const PacketView query = traffic.query(), answer = traffic.answer();
  EXPECT_EQ(traffic.ask(query), State::new_connection);
  EXPECT_EQ(traffic.ask(answer), State::established);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(traffic.ask(query), State::new_connection);
    const Tracked tracked = traffic.connections.of(answer);
    EXPECT_EQ(tracked.state, State::established);
    EXPECT_EQ(tracked.direction, Direction::reply);
    EXPECT_NE(tracked.connection, nullptr);
  }
  EXPECT_EQ(traffic.connections.counters().found + traffic.connections.counters().begun, 2U);
  EXPECT_FALSE(traffic.connections.said(traffic.query()));
}

TEST(Connections, AreConfirmedByTheFirstPacketThatPassesTheChain) {
  Traffic traffic;
  const PacketView query = traffic.query();
  EXPECT_EQ(traffic.ask(query), State::new_connection);
  EXPECT_EQ(traffic.confirmed(), 0U);
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 1U);
  EXPECT_EQ(traffic.ask(traffic.answer()), State::established);
}

TEST(Connections, EndIfALaterFunctionDropsTheirOnlyPacket) {
  Traffic traffic;
  const PacketView query = traffic.query();
  EXPECT_TRUE(traffic.connections.may_begin(traffic.connections.of(query)));
  drop(query);
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 0U);
  EXPECT_EQ(traffic.ask(traffic.answer()), State::new_connection) << "its reply would be established";
}

TEST(Connections, APacketThatIsRefusedLeavesNothingForTheNextOne) {
  Traffic traffic;
  const PacketView query = traffic.query();
  EXPECT_EQ(traffic.ask(query), State::new_connection);
  drop(query);
  traffic.connections.refuse(query);
  const PacketView answer = traffic.answer();
  EXPECT_EQ(traffic.ask(answer), State::new_connection);
  traffic.connections.refuse(query);  // not the last one any more
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 1U);
}

TEST(Connections, StayIfAnyOfTheirFirstPacketsPasses) {
  for (const bool first_passes : {true, false}) {
    Traffic traffic;
    const PacketView one = traffic.query(), two = traffic.query();
    EXPECT_EQ(traffic.ask(one), State::new_connection);
    EXPECT_EQ(traffic.ask(two), State::new_connection);
    drop(first_passes ? two : one);
    traffic.connections.settle();
    EXPECT_EQ(traffic.confirmed(), 1U);
    EXPECT_EQ(traffic.ask(traffic.answer()), State::established);
  }
  Traffic traffic;
  for (const PacketView packet : {traffic.query(), traffic.query()}) {
    static_cast<void>(traffic.ask(packet));
    drop(packet);
  }
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 0U);
  EXPECT_EQ(traffic.ask(traffic.answer()), State::new_connection);
}

TEST(Connections, WhatAFunctionKeepsHasPassed) {
  Traffic traffic;
  const PacketView query = traffic.query();
  static_cast<void>(traffic.ask(query));
  query.packet->verdict = Verdict::consume();
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 1U);
}

TEST(Connections, AreSettledByBatchInAnyOrder) {
  Traffic traffic;
  Connections& connections = traffic.connections;
  connections.begin_batch(2);
  const PacketView later = traffic.query(2);
  static_cast<void>(traffic.ask(later));
  connections.begin_batch(1);
  static_cast<void>(traffic.ask(traffic.query(1)));
  connections.begin_batch(3);
  const PacketView last = traffic.query(3);
  static_cast<void>(traffic.ask(last));
  connections.settle(1);
  EXPECT_EQ(traffic.confirmed(), 1U);
  EXPECT_EQ(traffic.ask(traffic.answer(1)), State::established);
  drop(later);
  connections.settle(2);
  EXPECT_EQ(traffic.confirmed(), 1U);
  connections.settle(3);
  EXPECT_EQ(traffic.confirmed(), 2U);
}

TEST(Connections, OfPacketsThatWereHeldAreSettledBeforeThoseThatCameLater) {
  Traffic traffic;
  static_cast<void>(traffic.ask(traffic.query(1)));
  const std::size_t position = traffic.connections.position();
  static_cast<void>(traffic.ask(traffic.query(2)));
  traffic.connections.settle_after(position);
  EXPECT_EQ(traffic.confirmed(), 1U);
  EXPECT_EQ(traffic.ask(traffic.answer(2)), State::established);
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 2U);
}

TEST(Connections, MakeRoomEvenBeforeTheyAreConfirmed) {
  Traffic traffic({.most_connections = 2});
  for (std::uint16_t port = 1; port <= 3; ++port) EXPECT_EQ(traffic.ask(traffic.query(port)), State::new_connection);
  EXPECT_EQ(traffic.connections.counters().early_drops, 1U);
  traffic.connections.settle();
  EXPECT_EQ(traffic.confirmed(), 2U);
  EXPECT_EQ(traffic.ask(traffic.answer(2)), State::established);
  EXPECT_EQ(traffic.ask(traffic.answer(1)), State::new_connection);
}

TEST(Connections, AreLostToTheirPacketsIfTheyEndBeforeTheirTranslationIsKnown) {
  Traffic traffic;
  const PacketView first = traffic.query(1), next = traffic.query(1), other = traffic.query(2);
  for (const PacketView packet : {first, next, other}) static_cast<void>(traffic.ask(packet));
  EXPECT_FALSE(traffic.connections.of(next).lost);
  drop(first);
  drop(next);
  traffic.connections.settle();
  EXPECT_TRUE(traffic.connections.of(next).lost);
  EXPECT_EQ(traffic.connections.of(next).connection, nullptr);
  EXPECT_FALSE(traffic.connections.of(other).lost);
}

TEST(Connections, AreNotLostIfTheyWereNotTranslated) {
  Traffic traffic({.most_connections = 1});
  static_cast<void>(traffic.ask(traffic.query(1)));
  traffic.connections.settle();
  const PacketView known = traffic.query(1), next = traffic.query(2);
  static_cast<void>(traffic.ask(known));
  static_cast<void>(traffic.ask(next));
  EXPECT_EQ(traffic.connections.counters().early_drops, 1U);
  EXPECT_NE(traffic.connections.of(known).connection, nullptr) << "a copy";
  EXPECT_FALSE(traffic.connections.of(known).lost);
}

TEST(Connections, CountOnlyTheFirstPacketsThatAreNotSettled) {
  for (const bool passes : {true, false}) {
    Traffic traffic({}, 1024);
    for (int i = 0; i < 600; ++i) {
      const PacketView packet = traffic.query();
      static_cast<void>(traffic.ask(packet));
      if (!passes) drop(packet);
    }
    traffic.connections.settle();
    EXPECT_EQ(traffic.confirmed(), passes ? 1U : 0U);
    EXPECT_EQ(traffic.connections.counters().connections, passes ? 1U : 0U);
  }
}

TEST(Connections, ThatEndAtOnceAreNotConfirmed) {
  Traffic traffic;
  const Ends ends;
  static_cast<void>(traffic.ask(traffic.arrive(tcp_packet(ends, {.flags = TcpHeader::kSyn}))));
  const PacketView reset = traffic.arrive(
      tcp_packet(ends.reversed(), {.flags = static_cast<std::uint8_t>(TcpHeader::kRst | TcpHeader::kAck), .ack = 1}));
  static_cast<void>(traffic.ask(reset));
  traffic.connections.settle();
  EXPECT_EQ(traffic.connections.counters().connections, 0U);
  EXPECT_EQ(traffic.ask(traffic.arrive(tcp_packet(ends, {.flags = TcpHeader::kSyn}))), State::new_connection);
}

/// A control connection of FTP, of which nothing is settled yet, and the packet that announces a data connection.
struct Announced {
  Announced() : traffic({.ftp = {.offered = true, .ports = {21}}}, 16) {
    const Ends client{.source_port = 3000, .destination_port = 21};
    pass(tcp_packet(client, {.flags = TcpHeader::kSyn, .sequence = 999}));
    pass(tcp_packet(client.reversed(), {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 4999, .ack = 1000}));
    pass(tcp_packet(client, {.sequence = 1000, .ack = 5000, .text = "USER x\r\n"}));
    last = pass(tcp_packet(client, {.sequence = 1008, .ack = 5000, .text = "PORT 10,1,0,1,4,5\r\n"}));
  }
  PacketView pass(Packet bytes) {
    const PacketView packet = traffic.arrive(std::move(bytes));
    const Tracked tracked = traffic.connections.of(packet);
    EXPECT_TRUE(traffic.connections.needs_help(packet, tracked, false));
    EXPECT_EQ(traffic.connections.help(packet, tracked), Helped::passes);
    EXPECT_FALSE(traffic.connections.needs_help(packet, tracked, true)) << "once is enough";
    return packet;
  }
  State data() {
    return traffic.ask(traffic.arrive(tcp_packet({"10.2.0.1", "10.1.0.1", 20, 1029}, {.flags = TcpHeader::kSyn})));
  }

  Traffic traffic;
  PacketView last{};
};

TEST(Connections, ExpectAtOnceWhatAPacketAnnounces) {
  Announced with;
  EXPECT_EQ(with.data(), State::related) << "in the same burst";
  Announced settled;
  settled.traffic.connections.settle();
  EXPECT_EQ(settled.data(), State::related);
}

TEST(Connections, ExpectNothingThatADroppedPacketHasAnnounced) {
  Announced announced;
  drop(announced.last);
  announced.traffic.connections.settle();
  EXPECT_EQ(announced.data(), State::new_connection);
  Announced again;
  drop(again.last);
  again.pass(tcp_packet({.source_port = 3000, .destination_port = 21},
                        {.sequence = 1008, .ack = 5000, .text = "PORT 10,1,0,1,4,5\r\n"}));
  again.traffic.connections.settle();
  EXPECT_EQ(again.data(), State::related) << "the one that was sent again has passed";
}

}  // namespace
}  // namespace penstock::conntrack
