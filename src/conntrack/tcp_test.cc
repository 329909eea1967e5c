// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What must hold for TCP whatever kernel runs. kernel_oracle_test.cc compares the details.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conntrack/tcp_segment.h"
#include "conntrack/testing/clocked_table.h"

namespace penstock::conntrack {
namespace {

constexpr std::uint8_t kFin = TcpHeader::kFin, kSyn = TcpHeader::kSyn, kRst = TcpHeader::kRst, kAck = TcpHeader::kAck;

class Tcp : public ::testing::TestWithParam<const char*> {
 protected:
  static Ends ends() {
    return std::string(GetParam()) == "ipv4" ? Ends{} : Ends{"2001:db8::1", "2001:db8::2", 1000, 80};
  }
};
INSTANTIATE_TEST_SUITE_P(Both, Tcp, ::testing::Values("ipv4", "ipv6"),
                         [](const auto& version) { return version.param; });

TEST_P(Tcp, IsNewUntilTheServerAnswers) {
  ClockedTable tracking;
  const Packet syn = tcp_packet(ends(), {.flags = kSyn, .sequence = 1});
  Tracked tracked = tracking.pass(syn);
  EXPECT_EQ(tracked.state, State::new_connection);
  EXPECT_EQ(tracked.connection->tcp_state, TcpState::syn_sent);
  EXPECT_EQ(tracking.pass(syn).state, State::new_connection);
  tracked = tracking.pass(tcp_packet(ends().reversed(), {.flags = kSyn | kAck, .sequence = 7, .ack = 2}));
  EXPECT_EQ(tracked.state, State::established);
  EXPECT_EQ(tracked.direction, Direction::reply);
  EXPECT_EQ(tracked.connection->tcp_state, TcpState::syn_recv);
  EXPECT_FALSE(tracked.connection->assured());
  tracked = tracking.pass(tcp_packet(ends(), {.sequence = 2, .ack = 8}));
  EXPECT_EQ(tracked.state, State::established);
  EXPECT_EQ(tracked.direction, Direction::original);
  EXPECT_EQ(tracked.connection->tcp_state, TcpState::established);
  EXPECT_TRUE(tracked.connection->assured());
  EXPECT_EQ(tracking.table.remaining_ns(*tracked.connection), 432'000 * kSecond);
}

TEST_P(Tcp, ClosesBySegmentsOfBothSides) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, ends());
  EXPECT_EQ(tracking.pass(tcp.client({.flags = kFin | kAck})).connection->tcp_state, TcpState::fin_wait);
  ++tcp.client_next;
  EXPECT_EQ(tracking.pass(tcp.server({})).connection->tcp_state, TcpState::close_wait);
  EXPECT_EQ(tracking.pass(tcp.server({.flags = kFin | kAck})).connection->tcp_state, TcpState::last_ack);
  ++tcp.server_next;
  const Tracked last = tracking.pass(tcp.client({}));
  EXPECT_EQ(last.connection->tcp_state, TcpState::time_wait);
  EXPECT_EQ(tracking.table.remaining_ns(*last.connection), 120 * kSecond);
  EXPECT_EQ(last.state, State::established);

  const Tracked again = tracking.pass(tcp.client({.flags = kSyn, .sequence = 100'000}));
  EXPECT_EQ(again.state, State::new_connection) << "another connection with the same ports";
  EXPECT_EQ(tracking.table.counters().connections, 1);
  EXPECT_EQ(tracking.table.counters().ended, 1);
}

TEST_P(Tcp, RejectsWhatIsOutsideTheWindow) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, ends());
  EXPECT_EQ(tracking.pass(tcp.client({.payload = 1000})).state, State::established);
  EXPECT_EQ(tracking.pass(tcp.client({.sequence = 5000, .payload = 10})).state, State::invalid);
  EXPECT_EQ(tracking.pass(tcp.client({.ack = 1})).state, State::invalid) << "acknowledges too much";
  EXPECT_EQ(tracking.invalid(Reason::tcp_window), 2);
}

TEST_P(Tcp, ScalesWindowsIfBothSidesOffer) {
  for (const bool both : {false, true}) {
    ClockedTable tracking;
    const Packet scale{3, 3, 7};
    tracking.pass(tcp_packet(ends(), {.flags = kSyn, .sequence = 0, .options = both ? scale : Packet{}}));
    tracking.pass(tcp_packet(ends().reversed(), {.flags = kSyn | kAck, .sequence = 0, .ack = 1, .options = scale}));
    tracking.pass(tcp_packet(ends(), {.sequence = 1, .ack = 1}));
    tracking.pass(tcp_packet(ends().reversed(), {.sequence = 1, .ack = 1, .window = 1000}));
    const Tracked far = tracking.pass(tcp_packet(ends(), {.sequence = 100'000, .ack = 1, .payload = 1}));
    EXPECT_EQ(far.state, both ? State::established : State::invalid);
  }
}

TEST_P(Tcp, BelievesResetsWhereTheReceiverExpectsThem) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, ends());
  tracking.pass(tcp.client({}));
  EXPECT_EQ(tracking.pass(tcp.server({.flags = kRst, .sequence = std::uint32_t(-100)})).reason, Reason::tcp_reset);
  const Tracked near = tracking.pass(tcp.server({.flags = kRst, .sequence = 100}));
  EXPECT_EQ(near.state, State::established);
  EXPECT_EQ(near.connection->tcp_state, TcpState::established) << "the client answers with a challenge ACK";
  EXPECT_EQ(tracking.pass(tcp.server({.flags = kRst})).connection->tcp_state, TcpState::close);
}

TEST_P(Tcp, IsOverAtOnceIfTheServerRefuses) {
  ClockedTable tracking;
  tracking.pass(tcp_packet(ends(), {.flags = kSyn, .sequence = 1}));
  const Tracked refused = tracking.pass(tcp_packet(ends().reversed(), {.flags = kRst | kAck, .ack = 2}));
  EXPECT_EQ(refused.state, State::established);
  ASSERT_NE(refused.connection, nullptr) << "may be read until the next packet";
  EXPECT_EQ(refused.connection->original.source_port, 1000);
  EXPECT_EQ(tracking.table.counters().connections, 0);
}

TEST_P(Tcp, IsPickedUpOnlyIfLoose) {
  const Packet data = tcp_packet(ends(), {.sequence = 1, .ack = 1, .payload = 10});
  ClockedTable loose;
  const Tracked picked_up = loose.pass(data);
  EXPECT_EQ(picked_up.state, State::new_connection);
  EXPECT_EQ(loose.table.remaining_ns(*picked_up.connection), 300 * kSecond);
  ClockedTable strict({.tcp_loose = false});
  EXPECT_EQ(strict.pass(data).reason, Reason::no_connection);
  EXPECT_EQ(strict.table.counters().connections, 0);
}

TEST_P(Tcp, LivesShorterAfterRetransmissionsAndWithoutAcknowledgment) {
  ClockedTable tracking;
  OpenTcp tcp(tracking, ends());
  const Packet data = tcp.client({.payload = 10});
  EXPECT_EQ(tracking.table.remaining_ns(*tracking.pass(data).connection), 300 * kSecond);
  tcp.client_next += 10;
  const Packet ack = tcp.server({});
  EXPECT_EQ(tracking.table.remaining_ns(*tracking.pass(ack).connection), 432'000 * kSecond);
  for (int i = 0; i < 3; ++i) tracking.pass(ack);
  EXPECT_EQ(tracking.table.remaining_ns(*tracking.pass(ack).connection), 300 * kSecond);
}

TEST_P(Tcp, FollowsASimultaneousOpen) {
  ClockedTable tracking;
  tracking.pass(tcp_packet(ends(), {.flags = kSyn, .sequence = 10}));
  EXPECT_EQ(tracking.pass(tcp_packet(ends().reversed(), {.flags = kSyn, .sequence = 20})).connection->tcp_state,
            TcpState::syn_sent2);
  tracking.pass(tcp_packet(ends(), {.flags = kSyn | kAck, .sequence = 10, .ack = 21}));
  EXPECT_EQ(tracking.pass(tcp_packet(ends().reversed(), {.sequence = 21, .ack = 11})).connection->tcp_state,
            TcpState::established);
}

TEST_P(Tcp, RejectsFlagsThatNoTcpSends) {
  ClockedTable tracking;
  for (const int flags : {0, kSyn | kFin, kSyn | kRst, int{kFin}, kFin | kRst | kAck, 0x3f}) {
    EXPECT_EQ(tracking.pass(tcp_packet(ends(), {.flags = static_cast<std::uint8_t>(flags)})).reason, Reason::tcp_flags)
        << flags;
  }
  EXPECT_EQ(tracking.table.counters().connections, 0);
}

TEST(TcpOptions, EndAtTheFirstMalformedOne) {
  TcpSide side;
  read_syn_options(Packet{3, 3, 5, 4, 9, 4, 2}, side);
  EXPECT_EQ(side.scale, 5);
  EXPECT_FALSE(side.has(TcpSide::kSack));
  read_syn_options(Packet{4, 2, 3, 3, 200}, side);
  EXPECT_EQ(side.scale, 14) << "the most that RFC 7323 allows";
  EXPECT_TRUE(side.has(TcpSide::kSack));
  EXPECT_EQ(highest_sack(Packet{5, 18, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 8}, 5), 9);
  EXPECT_EQ(highest_sack(Packet{5, 9, 0, 0, 0, 1, 0, 0, 0}, 5), 5) << "no whole block";
}

}  // namespace
}  // namespace penstock::conntrack
