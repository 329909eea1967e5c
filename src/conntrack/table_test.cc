// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/testing/rounds.h"
#include "conntrack/testing/clocked_table.h"

namespace penstock::conntrack {
namespace {

constexpr std::uint8_t kSyn = TcpHeader::kSyn;

Packet syn(std::uint16_t port) { return tcp_packet({.source_port = port}, {.flags = kSyn}); }

Packet fragment_of(const Packet& datagram, std::uint32_t from, std::uint32_t to, bool more, std::uint16_t id = 7) {
  Packet packet(datagram.begin(), datagram.begin() + 20);
  packet.insert(packet.end(), datagram.begin() + 20 + from, datagram.begin() + 20 + to);
  put_be16(packet, 2, static_cast<std::uint32_t>(packet.size()));
  put_be16(packet, 4, id);
  put_be16(packet, 6, (more ? 0x2000U : 0U) | from / 8);
  return packet;
}

TEST(Table, UdpIsAStreamTwoSecondsAfterItsBeginning) {
  for (const Ends& ends : {Ends{}, Ends{"2001:db8::1", "2001:db8::2", 1, 2}}) {
    ClockedTable tracking;
    EXPECT_EQ(tracking.pass(udp_packet(ends)).state, State::new_connection);
    Tracked tracked = tracking.pass(udp_packet(ends.reversed()));
    EXPECT_EQ(tracked.state, State::established);
    EXPECT_EQ(tracking.table.remaining_ns(*tracked.connection), 30 * kSecond);
    tracking.wait(3);
    tracked = tracking.pass(udp_packet(ends));
    EXPECT_EQ(tracking.table.remaining_ns(*tracked.connection), 120 * kSecond);
    EXPECT_TRUE(tracked.connection->assured());
  }
}

TEST(Table, IcmpRepliesBelongToRequestsWithTheirId) {
  ClockedTable tracking;
  const Ends ends;
  EXPECT_EQ(tracking.pass(icmp_packet(ends.reversed(), 0, 0, 5)).reason, Reason::no_connection);
  EXPECT_EQ(tracking.pass(icmp_packet(ends, 8, 0, 5)).state, State::new_connection);
  EXPECT_EQ(tracking.pass(icmp_packet(ends.reversed(), 0, 0, 6)).state, State::invalid);
  const Tracked reply = tracking.pass(icmp_packet(ends.reversed(), 0, 0, 5));
  EXPECT_EQ(reply.state, State::established);
  EXPECT_EQ(reply.direction, Direction::reply);
  EXPECT_EQ(reply.connection->original.source_port, 5);
  EXPECT_EQ(tracking.pass(icmp_packet(ends, 10, 0, 5)).state, State::invalid) << "router solicitation";
}

TEST(Table, NeighbourDiscoveryIsUntracked) {
  ClockedTable tracking;
  const Ends ends{"fe80::1", "fe80::2", 0, 0};
  for (const std::uint8_t type : std::to_array<std::uint8_t>({130, 131, 132, 133, 134, 135, 136, 143, 151, 152})) {
    EXPECT_EQ(tracking.pass(icmp_packet(ends, type, 0, 0)).state, State::untracked) << int{type};
  }
  EXPECT_EQ(tracking.table.counters().untracked, 10);
}

TEST(Table, ErrorsAreRelatedToTheConnectionThatTheyQuote) {
  for (const Ends& ends : {Ends{}, Ends{"2001:db8::1", "2001:db8::2", 1000, 80}}) {
    ClockedTable tracking;
    const bool v6 = ends.is_v6();
    const Packet quoted = udp_packet(ends);
    tracking.pass(quoted);
    const std::string router = v6 ? "2001:db8:9::9" : "192.0.2.9";
    const std::uint8_t unreachable = v6 ? 1 : 3;
    const Tracked related =
        tracking.pass(icmp_packet({.source = router, .destination = ends.source}, unreachable, 0, 0, quoted));
    EXPECT_EQ(related.state, State::related);
    EXPECT_EQ(related.direction, Direction::reply);
    ASSERT_NE(related.connection, nullptr);
    EXPECT_EQ(related.connection->original.source_port, 1000);
    EXPECT_EQ(tracking.pass(icmp_packet({.source = router, .destination = ends.destination}, unreachable, 0, 0, quoted))
                  .state,
              State::invalid)
        << "not to the sender of the quoted packet";
    EXPECT_EQ(tracking
                  .pass(icmp_packet({.source = router, .destination = ends.source}, unreachable, 0, 0,
                                    Packet(quoted.begin(), quoted.begin() + (v6 ? 42 : 22))))
                  .state,
              State::invalid)
        << "does not reach to the ports";
    EXPECT_EQ(tracking.table.counters().related, 1);
  }
}

TEST(Table, RedirectsOfIpv6AreRelatedIfARouterMaySendThem) {
  ClockedTable tracking;
  const Ends ends{"2001:db8::1", "2001:db8::2", 1000, 80};
  const Packet quoted = udp_packet(ends);
  tracking.pass(quoted);
  Packet payload(32);  // target and destination
  payload.insert(payload.end(), {4, static_cast<std::uint8_t>((8 + quoted.size()) / 8), 0, 0, 0, 0, 0, 0});
  payload.insert(payload.end(), quoted.begin(), quoted.end());
  const auto redirect = [&](const char* source, std::uint8_t hop_limit) {
    Packet packet = icmp_packet({.source = source, .destination = ends.source}, 137, 0, 0, payload);
    packet[7] = hop_limit;
    return packet;
  };
  EXPECT_EQ(tracking.pass(redirect("fe80::9", 255)).state, State::related);
  EXPECT_EQ(tracking.pass(redirect("fe80::9", 64)).state, State::invalid);
  EXPECT_EQ(tracking.pass(redirect("2001:db8::9", 255)).state, State::invalid);
}

TEST(Table, ChecksumsAreCheckedOnRequest) {
  for (const bool check : {true, false}) {
    ClockedTable tracking({.checksum = check});
    for (Packet packet : {udp_packet({}), tcp_packet({}, {.flags = kSyn}), icmp_packet({}, 8, 0, 1),
                          udp_packet({"2001:db8::1", "2001:db8::2", 1, 2})}) {
      const Tracked right = tracking.drop(packet);
      EXPECT_EQ(right.state, State::new_connection);
      packet.back() ^= 1;
      EXPECT_EQ(tracking.drop(packet).state, check ? State::invalid : State::new_connection);
    }
    EXPECT_EQ(tracking.invalid(Reason::checksum), check ? 4 : 0);
  }
}

TEST(Table, TruncatedCapturesCountAsTheyWereOnTheWire) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, {});
  const Packet whole = tcp.client({.payload = 500});
  ParsedPacket truncated(Packet(whole.begin(), whole.begin() + 60), static_cast<std::uint32_t>(whole.size()));
  EXPECT_EQ(tracking.table.track(truncated.view(), tracking.now_ns).state, State::established);
  tcp.client_next += 500;
  EXPECT_EQ(tracking.pass(tcp.server({})).state, State::established) << "acknowledges all 500 bytes";
}

TEST(Table, OtherFramesAreUntracked) {
  ClockedTable tracking;
  EXPECT_EQ(tracking.pass({}).state, State::untracked);
  ParsedPacket arp(testing::packet().eth().ether_type(ether_type::kArp).raw(Packet(28)).bytes());
  arp.descriptor.link_type = LinkType::ethernet;
  parse(arp.view());
  EXPECT_EQ(tracking.table.track(arp.view(), 0).state, State::untracked);
}

TEST(Table, ForgetsWhatIsNotConfirmed) {
  ClockedTable tracking({.most_connections = 1});
  for (int i = 0; i < 3; ++i) {
    const Tracked tracked = tracking.drop(syn(1));
    ASSERT_EQ(tracked.state, State::new_connection) << "the last one has left its memory";
    if (i == 1) tracking.table.forget(*tracked.connection);
  }
  EXPECT_EQ(tracking.table.counters().connections, 0);
  const Tracked kept = tracking.pass(syn(1));
  tracking.table.confirm(*kept.connection);
  tracking.table.forget(*kept.connection);
  EXPECT_EQ(tracking.table.counters().connections, 1) << "a confirmed one stays";
  EXPECT_EQ(tracking.table.counters().confirmed, 1);
}

TEST(Table, MakesRoomWithTheOldestConnectionThatIsNotAssured) {
  ClockedTable tracking({.most_connections = 4});
  for (const std::uint16_t port : std::to_array<std::uint16_t>({1, 2})) OpenTcp(tracking, {.source_port = port});
  for (const std::uint16_t port : std::to_array<std::uint16_t>({11, 12, 13}))
    EXPECT_EQ(tracking.pass(syn(port)).state, State::new_connection);
  EXPECT_EQ(tracking.table.counters().early_drops, 1);
  std::set<std::uint16_t> ports;
  tracking.table.for_each(0, 100, [&](const Connection& connection) { ports.insert(connection.original.source_port); });
  EXPECT_EQ(ports, (std::set<std::uint16_t>{1, 2, 12, 13}));
}

TEST(Table, EstablishedConnectionsOutliveAFlood) {
  constexpr std::uint16_t kEstablished = 50;
  ClockedTable tracking({.most_connections = 64});
  std::vector<OpenTcp> open;
  for (std::uint16_t port = 0; port < kEstablished; ++port) open.emplace_back(tracking, Ends{.source_port = port});
  for (std::uint32_t i = 0; i < testing::rounds(20'000); ++i) {
    tracking.pass(syn(static_cast<std::uint16_t>(1000 + i)));
    if (i % 100 == 0) tracking.wait(1);
  }
  for (const OpenTcp& tcp : open) EXPECT_EQ(tracking.pass(tcp.server({})).state, State::established);
  EXPECT_EQ(tracking.table.counters().most_connections, 64);
}

TEST(Table, IsFullIfAllConnectionsAreAssured) {
  ClockedTable tracking({.most_connections = 2});
  OpenTcp first(tracking, {.source_port = 1});
  OpenTcp second(tracking, {.source_port = 2});
  EXPECT_EQ(tracking.pass(syn(3)).reason, Reason::full);
  EXPECT_EQ(tracking.invalid(Reason::full), 1);
  EXPECT_EQ(tracking.pass(first.server({})).state, State::established);
  tracking.pass(second.client({.flags = TcpHeader::kFin | TcpHeader::kAck}));
  EXPECT_EQ(tracking.pass(syn(3)).state, State::new_connection) << "in the place of one that the client has closed";
  EXPECT_EQ(tracking.pass(first.server({})).state, State::established);
}

TEST(Table, ConnectionsExpireOnTimeThoughNobodyLooks) {
  ClockedTable tracking;
  tracking.pass(udp_packet({}));
  tracking.wait(29);
  EXPECT_EQ(tracking.pass(udp_packet({})).connection->confirmed(), true);
  tracking.wait(30);
  EXPECT_FALSE(tracking.drop(udp_packet({})).connection->confirmed()) << "another connection";
  EXPECT_EQ(tracking.table.counters().expired, 1);
}

TEST(Table, ExpiryFreesConnectionsOfAllTimeouts) {
  ClockedTable tracking;
  tracking.pass(udp_packet({}));                // 30 s
  tracking.pass(syn(1));                        // 120 s
  tracking.pass(ip_packet({}, 89, Packet(8)));  // 600 s
  OpenTcp tcp(tracking, {.source_port = 5});    // 5 days
  std::vector<std::uint64_t> left;
  std::uint64_t passed = 0;
  for (const std::uint64_t until : std::to_array<std::uint64_t>({29, 33, 119, 123, 599, 603, 431'999, 432'004})) {
    while (passed < until) {
      const std::uint64_t step = std::min<std::uint64_t>(until - passed, 1000);
      tracking.wait(step);
      passed += step;
      tracking.expire();
    }
    left.push_back(tracking.table.counters().connections);
  }
  EXPECT_EQ(left, (std::vector<std::uint64_t>{4, 3, 3, 2, 2, 1, 1, 0}));
}

TEST(Table, ExpiryFollowsShorterTimeouts) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, {});
  tracking.expire();
  tracking.pass(tcp.client({.flags = TcpHeader::kRst}));
  tracking.wait(13);
  tracking.expire();
  EXPECT_EQ(tracking.table.counters().connections, 0);
}

TEST(Table, ExpiryDoesABoundedAmountOfWork) {
  ClockedTable tracking;
  for (std::uint16_t port = 0; port < 1000; ++port) tracking.pass(udp_packet({.source_port = port}));
  tracking.wait(1'000'000);
  tracking.table.expire(tracking.now_ns);
  EXPECT_EQ(tracking.table.counters().connections, 1000 - 64);
  tracking.expire();
  EXPECT_EQ(tracking.table.counters().connections, 0);
}

TEST(Table, TimeGoesOnFromWhereItWasSet) {
  ClockedTable tracking;
  const Connection& connection = *tracking.pass(udp_packet({})).connection;
  const auto remaining_s_at = [&](std::uint64_t now_ns) {
    tracking.now_ns = now_ns;
    tracking.pass({});
    return tracking.table.remaining_ns(connection) / kSecond;
  };
  const std::uint64_t begin = tracking.now_ns, back = begin - 1'000'000 * kSecond, far = std::uint64_t{0} - 5 * kSecond;
  EXPECT_EQ(remaining_s_at(begin - 50 * kSecond), 30) << "out of order: the latest time counts";
  EXPECT_EQ(remaining_s_at(begin + 5 * kSecond), 25);
  EXPECT_EQ(remaining_s_at(back), 25);
  EXPECT_EQ(remaining_s_at(back + 5 * kSecond), 20);
  EXPECT_EQ(remaining_s_at(far), 20);
  EXPECT_EQ(remaining_s_at(far + 5 * kSecond), 15);
  EXPECT_EQ(remaining_s_at(10 * kSecond), 5) << "time wraps";
  EXPECT_EQ(remaining_s_at(16 * kSecond), 0);
}

TEST(Table, LaterFragmentsFollowTheirFirst) {
  ClockedTable tracking;
  const Packet datagram = udp_packet({}, 100);
  EXPECT_EQ(tracking.pass(fragment_of(datagram, 48, 108, false)).reason, Reason::fragment) << "before its first";
  const Tracked first = tracking.pass(fragment_of(datagram, 0, 48, true));
  EXPECT_EQ(first.state, State::new_connection);
  const Tracked later = tracking.pass(fragment_of(datagram, 48, 108, false));
  EXPECT_EQ(later.state, State::new_connection) << "a datagram has one state";
  EXPECT_EQ(later.connection, first.connection);
  EXPECT_EQ(tracking.pass(fragment_of(datagram, 40, 108, false)).reason, Reason::fragment) << "overlaps the first";
  EXPECT_EQ(tracking.pass(fragment_of(datagram, 48, 108, false, 8)).reason, Reason::fragment) << "another datagram";
  tracking.wait(29);
  tracking.pass(udp_packet({}));
  tracking.wait(2);
  EXPECT_EQ(tracking.pass(fragment_of(datagram, 48, 108, false)).reason, Reason::fragment) << "too late";
}

TEST(Table, LaterFragmentsOfIpv6FollowTheirFirst) {
  ClockedTable tracking;
  const Packet udp{0, 1, 0, 2, 0, 32, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto fragment = [&](std::uint16_t offset) {
    return testing::packet()
        .ipv6("2001:db8::1", "2001:db8::2")
        .extension(ip_protocol::kDestinationOptions)
        .fragment6(offset)
        .protocol(ip_protocol::kUdp)
        .raw(udp)
        .bytes();
  };
  EXPECT_EQ(tracking.pass(fragment(16)).reason, Reason::fragment);
  EXPECT_EQ(tracking.pass(fragment(0 | 1)).state, State::new_connection);
  EXPECT_EQ(tracking.pass(fragment(16)).state, State::new_connection);
  EXPECT_EQ(tracking.pass(fragment(8)).reason, Reason::fragment) << "overlaps the first";
}

TEST(Table, FragmentsOfADroppedDatagramAreInvalid) {
  ClockedTable tracking;
  const Packet datagram = udp_packet({}, 100);
  tracking.drop(fragment_of(datagram, 0, 48, true));
  EXPECT_EQ(tracking.pass(fragment_of(datagram, 48, 108, false)).reason, Reason::fragment);
}

TEST(Table, SegmentsInFragmentsAreAsLongAsTheirFragments) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, {});
  const Packet segment = tcp.client({.payload = 500});
  tracking.pass(fragment_of(segment, 0, 400, true));
  tracking.pass(fragment_of(segment, 400, 520, false));
  tcp.client_next += 500;
  EXPECT_EQ(tracking.pass(tcp.server({})).state, State::established) << "acknowledges all 500 bytes";
}

TEST(Table, ListsConnectionsInSteps) {
  ClockedTable tracking;
  constexpr std::uint16_t kConnections = 10;
  for (std::uint16_t port = 0; port < kConnections; ++port) tracking.pass(udp_packet({.source_port = port}));
  std::set<std::uint16_t> ports;
  int steps = 0;
  std::uint32_t from = 0;
  do {
    from = tracking.table.for_each(from, 3, [&](Connection& connection) {
      ports.insert(connection.original.source_port);
      connection.mark = connection.original.source_port;
    });
    ++steps;
  } while (from != 0);
  EXPECT_EQ(ports.size(), kConnections);
  EXPECT_EQ(steps, 4);
  tracking.wait(20);
  EXPECT_EQ(tracking.pass(udp_packet({.source_port = 7})).connection->mark, 7);
  tracking.wait(11);
  tracking.pass({});  // time passes, but nothing has removed what has expired
  int alive = 0;
  tracking.table.for_each(0, 100, [&](const Connection&) { ++alive; });
  EXPECT_EQ(alive, 1) << "not the expired ones";
}

/// An attacker's SYN in an open connection is let pass, until its answer shows what it was. Its fragments must not
/// count as bytes that were sent.
TEST(ConntrackFragments, OfASegmentThatIsOnlyLetPassDoNotMoveTheWindow) {
  ClockedTable tracking;
  const OpenTcp tcp(tracking, {});
  constexpr std::uint32_t kFar = 0x60000000;
  Packet syn = tcp.client({.flags = TcpHeader::kSyn, .sequence = kFar, .payload = 40});
  Packet first(syn.begin(), syn.begin() + 20 + 40), later(syn.begin(), syn.begin() + 20);
  later.insert(later.end(), syn.begin() + 20 + 40, syn.end());
  put_be16(first, 2, static_cast<std::uint32_t>(first.size()));
  put_be16(first, 6, 0x2000);
  put_be16(later, 2, static_cast<std::uint32_t>(later.size()));
  put_be16(later, 6, 5);
  ASSERT_EQ(tracking.pass(first).state, State::established);
  ASSERT_EQ(tracking.pass(later).state, State::established);
  EXPECT_EQ(tracking.pass(tcp.server({.ack = kFar})).state, State::invalid);
}

}  // namespace
}  // namespace penstock::conntrack
