// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/rounds.h"
#include "stack/flow_table.h"
#include "stack/testing/tcp_talk.h"

namespace penstock::stack {
namespace {

using namespace testing;  // NOLINT: the words of conversations
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Tracker, FollowsAConnectionFromItsHandshakeToItsEnd) {
  Talk talk;
  EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 99}).state, TcpState::syn_sent);
  EXPECT_EQ(talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100}).state, TcpState::syn_received);
  EXPECT_FALSE(talk.client({.sequence = 100, .ack = 1000}).established) << "before this packet it was not";
  EXPECT_EQ(talk.seen.back().state, TcpState::established);
  const Seen& request = talk.client({.sequence = 100, .ack = 1000, .data = "GET"});
  EXPECT_TRUE(request.established);
  EXPECT_TRUE(request.in_stream);
  EXPECT_FALSE(request.ready);
  talk.server({.sequence = 1000, .ack = 103, .data = "HTTP"});
  EXPECT_EQ(talk.client({.flags = kFin | kAck, .sequence = 103, .ack = 1004}).state, TcpState::close_wait);
  EXPECT_EQ(talk.inspected(), "GET") << "the client's end is in sight";
  EXPECT_EQ(talk.server({.flags = kFin | kAck, .sequence = 1004, .ack = 104}).state, TcpState::last_ack);
  EXPECT_EQ(talk.inspected(Direction::to_client), "HTTP");
  EXPECT_EQ(talk.client({.sequence = 104, .ack = 1005}).state, TcpState::closed);
  for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, IsEmpty());
  talk.finish();
  EXPECT_EQ(talk.ends, 0) << "all was inspected";
  EXPECT_EQ(talk.ended.size(), 1U);
}

/// client           server
///   SYN ─────────────▶
///   ◀──────── SYN/ACK
///   ACK + "GET" ─────▶   completes the handshake, and is a request
TEST(Tracker, CountsARequestInTheHandshakesLastAckAsEstablished) {
  for (const bool is_inline : {false, true}) {
    Talk talk({.inline_streams = is_inline});
    talk.client({.flags = kSyn, .sequence = 99});
    EXPECT_FALSE(talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100}).established);
    const Seen& request = talk.client({.sequence = 100, .ack = 1000, .data = "GET"});
    EXPECT_TRUE(request.established);
    EXPECT_EQ(request.state, TcpState::established);
  }
  Talk unanswered;
  unanswered.client({.flags = kSyn, .sequence = 99});
  EXPECT_FALSE(unanswered.client({.sequence = 100, .ack = 1000, .data = "GET"}).established);
  Talk wrong;
  wrong.client({.flags = kSyn, .sequence = 99});
  wrong.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
  EXPECT_FALSE(wrong.client({.sequence = 100, .ack = 7000, .data = "GET"}).established);
}

TEST(Tracker, InspectsWhatIsLeftOfAStreamThatNeverEnded) {
  Talk talk;
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "never acknowledged"});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "never acknowledged");
  EXPECT_EQ(talk.ends, 2);
}

TEST(Tracker, InspectsWhatWaitsWhenAResetEndsTheSession) {
  // A server's data, never acknowledged in full; the client's reset carries data.
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 1, .options = window_scale(14)});
  talk.server({.flags = kSyn | kAck, .sequence = 1000, .ack = 2, .window = 65535, .options = window_scale(14)});
  talk.client({.sequence = 2, .ack = 1001, .window = 65535});
  talk.server({.sequence = 1001, .ack = 2, .data = "Let Me "});
  talk.server({.sequence = 1008, .ack = 2, .data = "In, "});
  const Seen& reset = talk.client({.flags = kRst | kAck, .sequence = 2, .ack = 1008, .data = "why not"});
  EXPECT_EQ(reset.state, TcpState::closed);
  EXPECT_THAT(reset.events, IsEmpty());
  EXPECT_EQ(talk.inspected(Direction::to_client), "Let Me In, ");
  EXPECT_EQ(talk.inspected(), "") << "hosts discard what a reset carries";
}

TEST(Tracker, TellsOfASynAckThatIgnoresFastOpenData) {
  Talk talk;
  const std::string hello(100, 'h');
  talk.client({.flags = kSyn, .sequence = 99, .data = hello, .options = fast_open_cookie()});
  const Seen& answer = talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .options = fast_open_cookie()});
  EXPECT_THAT(answer.events, ElementsAre("3whs_synack_tfo_data_ignored"));
  talk.client({.sequence = 100, .ack = 1000, .data = hello});
  EXPECT_EQ(talk.seen.back().state, TcpState::established);
  talk.finish();
  EXPECT_EQ(talk.inspected(), hello);
}

// ---- Flows

TEST(Tracker, TellsFlowsApartByVlanAndTunnelAsWellAsEndpoints) {
  Talk talk;
  const std::uint64_t plain = talk.client({.flags = kSyn, .sequence = 1}).flow_id;
  talk.vlan_ids = {7, 0, 0};
  const std::uint64_t tagged = talk.client({.flags = kSyn, .sequence = 1}).flow_id;
  DecodedPacket udp = talk.between(true);
  udp.protocol = 17;
  const std::uint64_t other_protocol = talk.take(udp).flow_id;
  udp.tunnel_depth = 1;
  const std::uint64_t in_tunnel = talk.take(udp).flow_id;
  DecodedPacket back = talk.between(false);
  back.protocol = 17;
  back.tunnel_depth = 1;
  EXPECT_THAT((std::vector{plain, tagged, other_protocol, in_tunnel}), UnorderedElementsAre(1, 2, 3, 4));
  EXPECT_EQ(talk.take(back).flow_id, in_tunnel);
  EXPECT_EQ(talk.seen.back().direction, Direction::to_client);
}

TEST(Tracker, GivesWorkersFlowIdsOfTheirOwn) {
  Talk one({.flow_id_seed = 1}), two({.flow_id_seed = 2});
  EXPECT_NE(one.client({.flags = kSyn}).flow_id, two.client({.flags = kSyn}).flow_id);
  EXPECT_GT(static_cast<std::int64_t>(two.seen.back().flow_id), 0);
}

TEST(Tracker, EstablishesAFlowWithoutHandshakeOnceBothHaveSent) {
  Talk talk;
  DecodedPacket there = talk.between(true), back = talk.between(false);
  there.protocol = back.protocol = 17;
  EXPECT_FALSE(talk.take(there).established);
  EXPECT_FALSE(talk.take(there).established);
  EXPECT_TRUE(talk.take(back).established);
  EXPECT_TRUE(talk.take(there).established);
}

DecodedPacket icmp(const Talk& talk, bool from_client, const std::vector<std::uint8_t>& header,
                   const std::vector<std::uint8_t>& payload = {}) {
  DecodedPacket packet = talk.between(from_client);
  packet.protocol = 1;
  packet.source.port = packet.destination.port = 0;
  packet.transport = header;
  packet.payload = payload;
  return packet;
}

TEST(Tracker, PutsAnEchoAndItsReplyIntoOneFlow) {
  Talk talk;
  const std::vector<std::uint8_t> echo(8, 8), request = {8, 0, 0, 0, 0, 1, 0, 1}, reply = {0, 0, 0, 0, 0, 1, 0, 1},
                                              timestamp = {13, 0, 0, 0, 0, 1, 0, 1};
  DecodedPacket there = icmp(talk, true, request), back = icmp(talk, false, reply), other = icmp(talk, true, timestamp);
  const std::uint64_t flow = talk.take(there).flow_id;
  EXPECT_EQ(talk.take(back).flow_id, flow);
  EXPECT_TRUE(talk.seen.back().established);
  EXPECT_NE(talk.take(other).flow_id, flow);
}

TEST(Tracker, GivesAnUnreachableToTheFlowThatItIsAboutOrToNone) {
  Talk talk;
  const std::uint64_t flow = talk.client({.flags = kSyn, .sequence = 1}).flow_id;
  const std::vector<std::uint8_t> header = {3, 1, 0, 0, 0, 0, 0, 0};
  std::vector<std::uint8_t> quoted = {0x45, 0, 0,  40, 0, 0, 0,    0,    64, 6,  0, 0, 10, 0,
                                      0,    1, 10, 0,  0, 2, 0x9c, 0x40, 0,  80, 0, 0, 0,  1};
  DecodedPacket about = icmp(talk, false, header, quoted);
  EXPECT_EQ(talk.take(about).flow_id, flow);
  EXPECT_EQ(talk.seen.back().direction, Direction::to_client);
  quoted[21] = 0x41;
  DecodedPacket stray = icmp(talk, false, header, quoted);
  EXPECT_FALSE(talk.take(stray).has_flow);
}

TEST(Tracker, BeginsAFlowAnewBehindATimeout) {
  Talk talk;
  DecodedPacket packet = talk.between(true);
  packet.protocol = 17;
  const std::uint64_t first = talk.take(packet).flow_id;
  packet.timestamp_ns += 29'000'000'000;
  EXPECT_EQ(talk.take(packet).flow_id, first);
  packet.timestamp_ns += 31'000'000'000;
  EXPECT_NE(talk.take(packet).flow_id, first);
  EXPECT_THAT(talk.ended, ElementsAre(first));
}

TEST(Tracker, EndsFlowsByTheTimeOfOthersPackets) {
  Talk talk;
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "left"});
  talk.now_ns += 500'000'000'000;
  talk.client_port = 1;
  talk.client({.flags = kSyn, .sequence = 5});
  EXPECT_THAT(talk.ended, IsEmpty()) << "an established connection may be silent for 600 s";
  talk.now_ns += 200'000'000'000;
  talk.client_port = 2;
  talk.client({.flags = kSyn, .sequence = 5});
  EXPECT_THAT(talk.ended, UnorderedElementsAre(1, 2));
  EXPECT_EQ(talk.inspected(), "left");
}

/*  SYN of today ─ SYN of yesterday, on other ports ─ data of today    the second was over before it began  */
TEST(Tracker, EndsAFlowWithTheNextPacketIfItHadTimedOutWhenItBegan) {
  Talk talk;
  talk.handshake();
  const std::uint64_t today = talk.now_ns;
  talk.now_ns -= 86'400'000'000'000;
  talk.client_port = 1;
  const std::uint64_t old = talk.client({.flags = kSyn, .sequence = 5}).flow_id;
  EXPECT_THAT(talk.ended, IsEmpty());
  talk.now_ns = today;
  talk.client_port = 40000;
  talk.client({.sequence = 100, .ack = 1000, .data = "data"});
  EXPECT_THAT(talk.ended, ElementsAre(old));
}

/*  SYN ─ SYN/ACK ─ ACK ─ … silence … ─ data    the connection is forgotten, the data are of none that is known
    SYN ─ … silence … ─ ACK with data            the same, before it was established                                  */
TEST(Tracker, CountsConnectionsThatItForgetsAndPacketsOfNoneThatItKnows) {
  for (const bool longer : {false, true}) {
    TrackerOptions options;
    if (longer) options.tcp_established_timeout_s = options.tcp_new_timeout_s = 10'000;
    Talk talk(options);
    talk.handshake();
    talk.now_ns += 601'000'000'000;
    talk.client({.sequence = 100, .ack = 1000, .data = "late"});
    EXPECT_EQ(talk.tracker.counters().tcp_idle_timeouts, longer ? 0U : 1U);
    EXPECT_EQ(talk.tracker.counters().tcp_unknown_connection, longer ? 0U : 1U);
    talk.client_port = 1;
    talk.client({.flags = kSyn, .sequence = 99});
    talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
    talk.now_ns += 61'000'000'000;
    talk.client({.sequence = 100, .ack = 1000, .data = "late"});
    EXPECT_EQ(talk.tracker.counters().handshake_timeouts, longer ? 0U : 1U);
    EXPECT_EQ(talk.tracker.counters().tcp_unknown_connection, longer ? 0U : 2U);
  }
}

TEST(Tracker, CountsNoConnectionThatEndsByItself) {
  Talk talk;
  talk.handshake();
  talk.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
  talk.server({.flags = kFin | kAck, .sequence = 1000, .ack = 101});
  talk.client({.sequence = 101, .ack = 1001});
  talk.now_ns += 1'000'000'000'000;
  talk.client_port = 1;
  talk.handshake();
  talk.finish();
  EXPECT_EQ(talk.tracker.counters().tcp_idle_timeouts, 0U);
  EXPECT_EQ(talk.tracker.counters().handshake_timeouts, 0U);
  EXPECT_EQ(talk.tracker.counters().tcp_unknown_connection, 0U);
}

//   client                                     server
//     SYN 5000000               ─▶                           anybody can send that
//                               ◀─  SYN/ACK 9000000
//     ACK 5000001, ack 9000001  ─▶                           both have agreed
TEST(Tracker, BeginsAFlowAnewOnceBothSidesHaveAgreed) {
  for (const bool closed : {false, true}) {
    Talk talk;
    talk.handshake();
    if (closed) {
      talk.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
      talk.server({.flags = kFin | kAck, .sequence = 1000, .ack = 101});
      talk.client({.sequence = 101, .ack = 1001});
    }
    EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 5'000'000}).flow_id, 1U);
    EXPECT_EQ(talk.server({.flags = kSyn | kAck, .sequence = 9'000'000, .ack = 5'000'001}).flow_id, 1U);
    const Seen& ack = talk.client({.sequence = 5'000'001, .ack = 9'000'001});
    EXPECT_EQ(ack.flow_id, 2U);
    EXPECT_EQ(ack.state, TcpState::established);
    EXPECT_THAT(talk.ended, ElementsAre(1));
    EXPECT_TRUE(talk.client({.sequence = 5'000'001, .ack = 9'000'001, .data = "anew"}).in_stream);
    talk.finish();
    EXPECT_EQ(talk.inspected(), "anew");
  }
}

TEST(Tracker, BeginsAFlowAnewInTheOtherDirection) {
  Talk talk;
  talk.handshake();
  talk.client({.flags = kRst, .sequence = 100});
  talk.server({.flags = kSyn, .sequence = 5'000'000});
  talk.client({.flags = kSyn | kAck, .sequence = 9'000'000, .ack = 5'000'001});
  const Seen& ack = talk.server({.sequence = 5'000'001, .ack = 9'000'001});
  EXPECT_EQ(ack.flow_id, 2U);
  EXPECT_EQ(ack.direction, Direction::to_server);
}

// RFC 5961 §4.2: the host answers with a challenge ACK, and goes on.
TEST(Tracker, GoesOnWithALiveConnectionWhateverSynComes) {
  Talk talk;
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "EV"});
  talk.client({.flags = kFin | kAck, .sequence = 102, .ack = 1000});  // dies on the way
  for (std::uint32_t isn = 1; isn < 20; ++isn) talk.client({.flags = kSyn, .sequence = isn * 1'000'000});
  talk.server({.sequence = 1000, .ack = 102});
  EXPECT_EQ(talk.client({.sequence = 102, .ack = 1000, .data = "IL"}).flow_id, 1U);
  talk.server({.sequence = 1000, .ack = 104});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "EVIL");
}

// A server that wants the watcher to lose its place: the numbers are those of the live connection.
TEST(Tracker, DoesNotBeginAnewByASynAckThatTheClientNeverAgreedTo) {
  Talk talk;
  talk.handshake();
  talk.server({.sequence = 1000, .ack = 100, .data = "EV"});
  talk.server({.flags = kSyn | kAck, .sequence = 1001, .ack = 100});
  talk.client({.sequence = 100, .ack = 1002});  // the challenge ACK
  EXPECT_EQ(talk.server({.sequence = 1002, .ack = 100, .data = "IL"}).flow_id, 1U);
  talk.client({.sequence = 100, .ack = 1004});
  talk.finish();
  EXPECT_EQ(talk.inspected(Direction::to_client), "EVIL");
}

TEST(Tracker, KeepsABlockedFlowWhateverBeginsOnItsEndpoints) {
  class Blocker final : public PacketSink {
   public:
    void packet(TrackedPacket& packet) noexcept override {
      packet.flow->blocked = true;
      ++packets;
    }
    void flow_ended(Flow&) noexcept override { ++ended; }
    int packets = 0, ended = 0;
  } blocker;
  Talk talk;
  const auto send = [&](bool from_client, std::uint8_t flags, std::uint32_t sequence, std::uint32_t ack) {
    std::vector<std::uint8_t> header(20);
    auto& tcp = *reinterpret_cast<TcpHeader*>(header.data());
    tcp.sequence.set(sequence);
    tcp.acknowledgment.set(ack);
    tcp.data_offset = 5 << 4;
    tcp.flags = flags;
    DecodedPacket packet = talk.between(from_client);
    packet.protocol = 6;
    packet.transport = header;
    talk.tracker.track(packet, blocker);
  };
  for (const std::uint32_t isn : {99U, 5'000'099U, 10'000'099U}) {
    send(true, kSyn, isn, 0);
    send(false, kSyn | kAck, isn + 900, isn + 1);
    send(true, kAck, isn + 1, isn + 901);
    send(true, kRst, isn + 1, 0);
  }
  EXPECT_EQ(blocker.packets, 12);
  EXPECT_EQ(blocker.ended, 0);
}

TEST(Tracker, KeepsFlowsOfIpInIpByTheirAddresses) {
  Talk talk;
  DecodedPacket outer = talk.between(true);
  outer.protocol = 4;
  outer.source.port = outer.destination.port = 0;
  const std::uint64_t flow = talk.take(outer).flow_id;
  EXPECT_NE(flow, 0U);
  EXPECT_EQ(talk.take(outer).flow_id, flow);
  EXPECT_EQ(talk.seen.back().direction, Direction::to_server);
}

TEST(FlowTable, SpreadsKeysThatCollideUnderAnotherSeed) {
  const auto bucket = [](DecodedPacket& packet, std::uint64_t seed) {
    return flow_lookup_of(packet, seed)->hash & 0xfffU;
  };
  Talk talk;
  DecodedPacket packet = talk.between(true);
  packet.protocol = 17;
  unsigned collide = 0, collide_still = 0;
  for (std::uint32_t address = 0; address < 65536; ++address) {
    packet.source.address.low = address;
    if (bucket(packet, 1) != 0) continue;
    ++collide;
    collide_still += bucket(packet, 2) == 0 ? 1U : 0U;
  }
  EXPECT_GT(collide, 4U);
  EXPECT_LE(collide_still, 2U);
  // Ports against the low half of an address, and both halves of it, whatever the seed.
  packet.ip_version = 6;
  std::vector<std::uint32_t> hashes;
  for (std::uint16_t port = 0; port < 1000; ++port) {
    packet.source.port = port;
    packet.source.address = {0x2001'0db8ULL << 32, 5 - (std::uint64_t{port} << 40)};
    hashes.push_back(flow_lookup_of(packet, 3)->hash);
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_GT(std::unique(hashes.begin(), hashes.end()) - hashes.begin(), 990);
}

// ---- Handshakes

TEST(Tracker, IgnoresSessionsWhoseHandshakeItHasNotSeen) {
  Talk talk;
  const Seen& data = talk.client({.sequence = 100, .ack = 1000, .data = "x"});
  EXPECT_TRUE(data.has_flow && !data.in_stream && !data.established);
  EXPECT_EQ(data.state, TcpState::none);
  EXPECT_THAT(talk.server({.flags = kFin | kAck, .sequence = 1000, .ack = 101}).events,
              ElementsAre("fin_but_no_session"));
  EXPECT_THAT(talk.server({.flags = kRst, .sequence = 1000}).events, ElementsAre("rst_but_no_session"));
}

TEST(Tracker, PicksUpASessionInItsMidst) {
  Talk talk({.midstream = true});
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "GET"}).in_stream);
  EXPECT_TRUE(talk.server({.sequence = 1000, .ack = 103, .data = "HTTP"}).established);
  talk.client({.sequence = 103, .ack = 1004});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "GET");
  EXPECT_EQ(talk.inspected(Direction::to_client), "HTTP");
}

TEST(Tracker, TurnsAFlowAroundThatBeginsWithTheAnswer) {
  Talk talk({.midstream = true});
  EXPECT_EQ(talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100}).direction, Direction::to_client);
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000}).direction, Direction::to_server);
  EXPECT_EQ(talk.seen.back().state, TcpState::established);
  talk.server({.sequence = 1000, .ack = 100, .data = "hello"});
  talk.client({.sequence = 100, .ack = 1005, .data = "bye"});
  for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, IsEmpty());
  talk.finish();
  EXPECT_EQ(talk.inspected(Direction::to_client), "hello");
  EXPECT_EQ(talk.inspected(), "bye");
}

TEST(Tracker, FollowsOneSideAloneIfItMay) {
  Talk talk({.async_oneside = true});
  talk.client({.flags = kSyn, .sequence = 99});
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000}).state, TcpState::established);
  talk.client({.sequence = 100, .ack = 1000, .data = "one"});
  EXPECT_TRUE(talk.client({.sequence = 103, .ack = 1500, .data = "two"}).in_stream);
  talk.finish();
  EXPECT_EQ(talk.inspected(), "onetwo");
}

TEST(Tracker, TellsWhatIsWrongWithAHandshake) {
  struct Case {
    const char* event;
    void (*play)(Talk&);
    TrackerOptions options = {};
  };
  const Case cases[] = {
      {"3whs_synack_with_wrong_ack",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 77});
       }},
      {"3whs_synack_in_wrong_direction",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.client({.flags = kSyn | kAck, .sequence = 99, .ack = 100});
       }},
      {"3whs_synack_toserver_on_syn_recv",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.client({.flags = kSyn | kAck, .sequence = 99, .ack = 1000});
       }},
      {"3whs_synack_resend_with_different_ack",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 200});
       }},
      {"3whs_syn_toclient_on_syn_recv",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.server({.flags = kSyn, .sequence = 999});
       }},
      {"3whs_syn_resend_diff_seq_on_syn_recv",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.client({.flags = kSyn, .sequence = 77});
       }},
      {"3whs_right_seq_wrong_ack_evasion",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.client({.sequence = 100, .ack = 5000});
       }},
      {"3whs_wrong_seq_wrong_ack",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.client({.sequence = 99999, .ack = 5000});
       }},
      {"3whs_ack_in_wrong_dir",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.server({.sequence = 1000, .ack = 100});
       },
       {.inline_streams = true}},
      {"3whs_ack_data_inject",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
         t.server({.sequence = 1000, .ack = 100, .data = "evil"});
       },
       {.inline_streams = true}},
      {"3whs_async_wrong_seq",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.client({.sequence = 500, .ack = 1000});
       },
       {.async_oneside = true}},
      {"3whs_synack_flood",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         for (std::uint32_t i = 0; i < 7; ++i) t.server({.flags = kSyn | kAck, .sequence = 999 + i * 1000, .ack = 100});
       }},
      {"4whs_synack_with_wrong_ack",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn, .sequence = 999});
         t.client({.flags = kSyn | kAck, .sequence = 99, .ack = 5});
       }},
      {"4whs_synack_with_wrong_syn",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn, .sequence = 999});
         t.client({.flags = kSyn | kAck, .sequence = 98, .ack = 1000});
       }},
      {"4whs_wrong_seq",
       [](Talk& t) {
         t.client({.flags = kSyn, .sequence = 99});
         t.server({.flags = kSyn, .sequence = 999});
         t.client({.flags = kSyn | kAck, .sequence = 99, .ack = 1000});
         t.server({.sequence = 7, .ack = 100});
       }},
      {"pkt_broken_ack", [](Talk& t) { t.client({.flags = kSyn, .sequence = 99, .ack = 3}); }},
      {"fin_syn",
       [](Talk& t) {
         t.handshake();
         t.client({.flags = kSyn | kFin, .sequence = 100});
       }},
  };
  for (const Case& wrong : cases) {
    Talk talk(wrong.options);
    wrong.play(talk);
    EXPECT_THAT(talk.seen.back().events, ::testing::Contains(wrong.event));
    talk.seen.pop_back();
    for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, ::testing::Not(::testing::Contains(wrong.event)));
  }
}

TEST(Tracker, TakesTheSynAckThatTheClientTook) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
  talk.server({.flags = kSyn | kAck, .sequence = 4999, .ack = 100});
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 5000}).state, TcpState::established);
  EXPECT_THAT(talk.seen.back().events, IsEmpty());
  EXPECT_TRUE(talk.server({.sequence = 5000, .ack = 100, .data = "x"}).in_stream);
}

TEST(Tracker, FollowsAHandshakeOfFourPackets) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99});
  talk.server({.flags = kSyn, .sequence = 999});
  EXPECT_EQ(talk.client({.flags = kSyn | kAck, .sequence = 99, .ack = 1000}).state, TcpState::syn_received);
  EXPECT_EQ(talk.server({.sequence = 1000, .ack = 100}).state, TcpState::established);
  for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, IsEmpty());
}

TEST(Tracker, TakesDataOfAFastOpenSyn) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99, .data = "early", .options = fast_open_cookie()});
  EXPECT_TRUE(talk.seen.back().in_stream);
  EXPECT_EQ(talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 105}).state, TcpState::established);
  talk.client({.sequence = 105, .ack = 1000, .data = " late"});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "early late");
}

//   SYN 99 "early"  ─▶            some servers take them without the option of RFC 7413: the answer tells
//                   ◀─ SYN/ACK, ack 100 or 105
TEST(Tracker, FollowsTheAnswerAboutDataOfAnOrdinarySyn) {
  for (const bool taken : {false, true}) {
    Talk talk;
    EXPECT_TRUE(talk.client({.flags = kSyn, .sequence = 99, .data = "early"}).in_stream);
    talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = taken ? 105U : 100U});
    EXPECT_EQ(talk.client({.sequence = taken ? 105U : 100U, .ack = 1000}).state, TcpState::established);
    talk.client({.sequence = taken ? 105U : 100U, .ack = 1000, .data = " late"});
    talk.server({.sequence = 1000, .ack = taken ? 110U : 105U});
    talk.finish();
    EXPECT_EQ(talk.inspected(), taken ? "early late" : " late");
  }
}

TEST(Tracker, GoesOnWhereTheHandshakesLastAckWasLost) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
  EXPECT_EQ(talk.server({.sequence = 1000, .ack = 100, .data = "220 hello"}).state, TcpState::established);
  EXPECT_TRUE(talk.seen.back().in_stream);
}

// ---- Windows, timestamps

TEST(Tracker, RefusesWhatIsOutOfTheWindow) {
  Talk talk;
  talk.handshake(99, 999, 1000);
  const Seen& far = talk.client({.sequence = 2000, .ack = 1000, .data = "far"});
  EXPECT_THAT(far.events, ElementsAre("est_packet_out_of_window"));
  EXPECT_FALSE(far.in_stream);
  EXPECT_TRUE(far.established) << "other options of rules still see it";
  EXPECT_TRUE(talk.client({.sequence = 1000, .ack = 1000, .data = "near"}).in_stream);
  EXPECT_THAT(talk.client({.sequence = 100, .ack = 60000}).events,
              UnorderedElementsAre("pkt_invalid_ack", "est_invalid_ack"));
}

TEST(Tracker, ScalesWindows) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99, .window = 1000, .options = window_scale(2)});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .window = 1000, .options = window_scale(3)});
  talk.client({.sequence = 100, .ack = 1000, .window = 1000});
  talk.server({.sequence = 1000, .ack = 100, .window = 1000});
  EXPECT_TRUE(talk.client({.sequence = 8090, .ack = 1000, .data = "near", .window = 1000}).in_stream);
  EXPECT_FALSE(talk.client({.sequence = 8110, .ack = 1000, .data = "far"}).in_stream);
  EXPECT_TRUE(talk.server({.sequence = 4990, .ack = 100, .data = "near"}).in_stream);
  EXPECT_FALSE(talk.server({.sequence = 5010, .ack = 100, .data = "far"}).in_stream);
}

TEST(Tracker, RefusesTimestampsThatGoBack) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99, .options = timestamps(1000)});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .options = timestamps(5000)});
  talk.client({.sequence = 100, .ack = 1000, .options = timestamps(1001)});
  const Seen& old = talk.client({.sequence = 100, .ack = 1000, .data = "old", .options = timestamps(500)});
  EXPECT_THAT(old.events, ElementsAre("pkt_invalid_timestamp"));
  EXPECT_FALSE(old.in_stream);
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "new", .options = timestamps(1002)}).in_stream);
}

TEST(Tracker, TellsRetransmissionsAndKeepAlivesFromData) {
  Talk talk;
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "hello"});
  talk.server({.sequence = 1000, .ack = 105});
  const Seen& again = talk.client({.sequence = 100, .ack = 1000, .data = "hell"});
  EXPECT_THAT(again.events, ElementsAre("est_pkt_before_last_ack"));
  EXPECT_FALSE(again.in_stream);
  const Seen& keep_alive = talk.client({.sequence = 104, .ack = 1000, .data = "z"});
  EXPECT_THAT(keep_alive.events, IsEmpty());
  EXPECT_FALSE(keep_alive.in_stream);
  EXPECT_THAT(talk.server({.sequence = 1000, .ack = 105}).events, IsEmpty());
  talk.finish();
  EXPECT_EQ(talk.inspected(), "hello");
}

// ---- The end of sessions

TEST(Tracker, TellsWhatIsWrongOnceASessionIsOpen) {
  struct Case {
    const char* event;
    void (*play)(Talk&);
  };
  const Case cases[] = {
      {"est_synack_toserver", [](Talk& t) { t.client({.flags = kSyn | kAck, .sequence = 99, .ack = 1000}); }},
      {"est_synack_resend_with_different_ack",
       [](Talk& t) { t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 50}); }},
      {"est_synack_resend_with_diff_seq",
       [](Talk& t) { t.server({.flags = kSyn | kAck, .sequence = 50, .ack = 100}); }},
      {"est_synack_resend",
       [](Talk& t) {
         t.server({.sequence = 1000, .ack = 100, .data = "x"});
         t.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
       }},
      {"est_syn_toclient", [](Talk& t) { t.server({.flags = kSyn, .sequence = 999}); }},
      {"est_syn_resend", [](Talk& t) { t.client({.flags = kSyn, .sequence = 99}); }},
      {"est_syn_resend_diff_seq", [](Talk& t) { t.client({.flags = kSyn, .sequence = 98}); }},
      {"fin_out_of_window", [](Talk& t) { t.client({.flags = kFin | kAck, .sequence = 90000000, .ack = 1000}); }},
      {"fin_invalid_ack", [](Talk& t) { t.client({.flags = kFin | kAck, .sequence = 100, .ack = 90000000}); }},
      {"fin1_invalid_ack",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.sequence = 100, .ack = 90000000});
       }},
      {"fin1_ack_wrong_seq",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.sequence = 90000000, .ack = 1001, .data = "x"});
       }},
      {"fin1_fin_wrong_seq",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.flags = kFin | kAck, .sequence = 90000000, .ack = 1001});
       }},
      {"fin2_fin_wrong_seq",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.sequence = 100, .ack = 1001});
         t.client({.flags = kFin | kAck, .sequence = 90000000, .ack = 1001});
       }},
      {"fin2_ack_wrong_seq",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.sequence = 100, .ack = 1001});
         t.client({.sequence = 90000000, .ack = 1001, .data = "x"});
       }},
      {"fin2_invalid_ack",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.sequence = 100, .ack = 1001});
         t.client({.sequence = 100, .ack = 90000000, .data = "x"});
       }},
      {"closewait_fin_out_of_window",
       [](Talk& t) {
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
         t.server({.flags = kFin | kAck, .sequence = 90000000, .ack = 101});
       }},
      {"closewait_ack_out_of_window",
       [](Talk& t) {
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
         t.server({.sequence = 90000000, .ack = 101, .data = "x"});
       }},
      {"closewait_invalid_ack",
       [](Talk& t) {
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
         t.server({.sequence = 1000, .ack = 90000000, .data = "x"});
       }},
      {"closewait_pkt_before_last_ack",
       [](Talk& t) {
         t.server({.sequence = 1000, .ack = 100, .data = "x"});
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1001});
         t.server({.sequence = 1000, .ack = 101, .data = "x"});
       }},
      {"lastack_ack_wrong_seq",
       [](Talk& t) {
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 101});
         t.client({.sequence = 90000000, .ack = 1001, .data = "x"});
       }},
      {"lastack_invalid_ack",
       [](Talk& t) {
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 101});
         t.client({.sequence = 101, .ack = 90000000, .data = "x"});
       }},
      {"timewait_ack_wrong_seq",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1001});
         t.server({.sequence = 90000000, .ack = 101, .data = "x"});
       }},
      {"timewait_invalid_ack",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1001});
         t.server({.sequence = 1001, .ack = 90000000, .data = "x"});
       }},
      {"closing_ack_wrong_seq",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.flags = kFin, .sequence = 100});
         t.server({.sequence = 90000000, .ack = 101, .data = "x"});
       }},
      {"closing_invalid_ack",
       [](Talk& t) {
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
         t.client({.flags = kFin, .sequence = 100});
         t.server({.sequence = 1001, .ack = 90000000, .data = "x"});
       }},
      {"shutdown_syn_resend",
       [](Talk& t) {
         t.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000});
         t.client({.flags = kSyn, .sequence = 99});
       }},
      {"rst_invalid_ack", [](Talk& t) { t.client({.flags = kRst | kAck, .sequence = 100, .ack = 90000000}); }},
      {"suspected_rst_inject",
       [](Talk& t) {
         t.server({.flags = kRst, .sequence = 1000});
         t.server({.sequence = 1000, .ack = 100, .data = "I did not"});
       }},
      {"pkt_retransmission",
       [](Talk& t) {
         t.client({.sequence = 100, .ack = 1000, .data = "hello"});
         t.server({.flags = kFin | kAck, .sequence = 1000, .ack = 105});
         t.client({.sequence = 100, .ack = 1001, .data = "hello"});
       }},
      {"pkt_bad_window_update", [](Talk& t) { t.client({.sequence = 700, .ack = 1200, .window = 10}); }},
      {"reassembly_overlap_different_data",
       [](Talk& t) {
         t.client({.sequence = 100, .ack = 1000, .data = "hello"});
         t.client({.sequence = 100, .ack = 1000, .data = "HELLO"});
       }},
      {"reassembly_seq_gap",
       [](Talk& t) {
         t.client({.sequence = 100, .ack = 1000, .data = "one"});
         t.client({.sequence = 108, .ack = 1000, .data = "two"});
         t.server({.sequence = 1000, .ack = 111});
       }},
  };
  for (const Case& wrong : cases) {
    SCOPED_TRACE(wrong.event);
    Talk talk;
    talk.handshake();
    wrong.play(talk);
    EXPECT_THAT(talk.seen.back().events, ::testing::Contains(wrong.event));
    EXPECT_FALSE(talk.seen.back().in_stream &&
                 std::string_view(wrong.event).find("wrong_seq") != std::string_view::npos);
    talk.seen.pop_back();
    for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, ::testing::Not(::testing::Contains(wrong.event)));
  }
}

TEST(Tracker, IgnoresResetsThatTheHostWouldIgnore) {
  Talk talk;
  talk.handshake();
  EXPECT_EQ(talk.client({.flags = kRst, .sequence = 5000}).state, TcpState::established)
      << "in the window, not the next";
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "go on"}).in_stream);
  // RFC 5961 §3.2: the exact number alone ends a connection.
  for (const OverlapPolicy policy : {OverlapPolicy::linux_host, OverlapPolicy::solaris, OverlapPolicy::bsd}) {
    Talk strict({.stream_policy = policy});
    strict.handshake();
    strict.client({.sequence = 105, .ack = 1000, .data = "behind a hole"});
    for (const std::uint32_t sequence : {99U, 101U, 105U, 5000U}) {
      EXPECT_EQ(strict.client({.flags = kRst, .sequence = sequence}).state, TcpState::established) << sequence;
    }
    EXPECT_EQ(strict.server({.flags = kRst, .sequence = 1005}).state, TcpState::established);
    EXPECT_EQ(strict.server({.flags = kRst, .sequence = 1000}).state, TcpState::closed);
  }
}

// RFC 7323 §3.2: the answer echoes the timestamp of a SYN. A client resets the connection otherwise.
TEST(Tracker, TakesNoSynAckThatEchoesAnotherTimestamp) {
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 99, .options = timestamps(5000)});
  talk.client({.flags = kSyn, .sequence = 99, .options = timestamps(6000)});
  const Seen& fake = talk.server({.flags = kSyn | kAck, .sequence = 7777, .ack = 100, .options = timestamps(1, 4999)});
  EXPECT_EQ(fake.state, TcpState::syn_sent);
  EXPECT_THAT(fake.events, ElementsAre("pkt_invalid_timestamp"));
  EXPECT_EQ(talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .options = timestamps(1, 5500)}).state,
            TcpState::syn_received);
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .options = timestamps(6001)}).state, TcpState::established);
}

// Twelve SYNs that never arrive, before or after the one that does.
TEST(Tracker, FollowsTheSynThatIsAnsweredHoweverManyAreNot) {
  for (const std::uint32_t before : {0U, 3U, 12U}) {
    Talk talk({.seam_bytes = 100});
    for (std::uint32_t i = 0; i < before; ++i) talk.client({.flags = kSyn, .sequence = 5000 + i * 1000});
    talk.client({.flags = kSyn, .sequence = 99, .options = window_scale(7)});
    for (std::uint32_t i = before; i < 12; ++i) talk.client({.flags = kSyn, .sequence = 5000 + i * 1000});
    talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .options = window_scale(7)});
    talk.client({.sequence = 100, .ack = 1000});
    EXPECT_EQ(talk.seen.back().state, TcpState::established) << before;
    EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "EVIL"}).in_stream) << before;
    talk.server({.sequence = 1000, .ack = 104});
    talk.finish();
    EXPECT_EQ(talk.inspected(), "EVIL") << before;
  }
}

TEST(Tracker, KeepsTheDataOfAFastOpenThatIsAnsweredAmongOthers) {
  Talk talk({.seam_bytes = 100});
  talk.client({.flags = kSyn, .sequence = 5000});
  talk.client({.flags = kSyn, .sequence = 99, .data = "EV", .options = fast_open_cookie()});
  talk.client({.flags = kSyn, .sequence = 7000});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 102});
  talk.client({.sequence = 102, .ack = 1000, .data = "IL"});
  talk.server({.sequence = 1000, .ack = 104});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "EVIL");
}

TEST(Tracker, GoesOnBehindAResetThatItsSenderDoesNotKnow) {
  Talk talk;
  talk.handshake();
  talk.server({.flags = kRst, .sequence = 1000});
  talk.server({.sequence = 1000, .ack = 100, .data = "I did not"});
  talk.client({.sequence = 100, .ack = 1009, .data = "send that"});
  talk.finish();
  EXPECT_EQ(talk.inspected(Direction::to_client), "I did not");
  EXPECT_EQ(talk.inspected(), "send that");
}

// ---- Streams

TEST(Tracker, InspectsStreamsInChunksOnceTheyAreAcknowledged) {
  Talk talk;
  talk.handshake();
  const std::string kilobyte(1000, 'k');
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(talk.client({.sequence = 100 + i * 1000, .ack = 1000, .data = kilobyte}).ready);
  }
  EXPECT_FALSE(talk.server({.sequence = 1000, .ack = 2659}).ready);
  EXPECT_FALSE(talk.client({.sequence = 3100, .ack = 1000, .data = "x"}).ready) << "2559 bytes";
  talk.server({.sequence = 1000, .ack = 2660});
  EXPECT_TRUE(talk.client({.sequence = 3101, .ack = 1000, .data = "y"}).ready);
  ASSERT_EQ(talk.chunks[0].size(), 1U);
  EXPECT_EQ(talk.chunks[0][0].bytes.size(), 2560U);
  talk.finish();
  EXPECT_EQ(talk.inspected(), kilobyte + kilobyte + kilobyte + "xy");
}

TEST(Tracker, OffersBytesAheadOfASeamAgain) {
  Talk talk({.chunk_bytes = 4, .seam_bytes = 3});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "abcdefgh"});
  talk.server({.sequence = 1000, .ack = 106});
  talk.client({.sequence = 108, .ack = 1000, .data = "ij"});
  talk.finish();
  EXPECT_THAT(talk.chunks[0], ElementsAre(Talk::Chunk{0, "abcdef", 0}, Talk::Chunk{3, "defghij", 3}));
}

TEST(Tracker, PartsChunksAtAGap) {
  Talk talk;
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "VERY"});
  talk.client({.sequence = 108, .ack = 1000, .data = "DATA"});
  talk.server({.sequence = 1000, .ack = 112});
  talk.finish();
  EXPECT_THAT(talk.chunks[0], ElementsAre(Talk::Chunk{0, "VERY", 0}, Talk::Chunk{8, "DATA", 0}));
}

TEST(Tracker, StopsAtTheDepthOfAStream) {
  Talk talk({.stream_depth = 10});
  talk.handshake();
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "0123456"}).in_stream);
  EXPECT_THAT(talk.client({.sequence = 107, .ack = 1000, .data = "789abc"}).events,
              ElementsAre("reassembly_depth_reached"));
  EXPECT_FALSE(talk.client({.sequence = 113, .ack = 1000, .data = "seen as a packet"}).in_stream);
  talk.finish();
  EXPECT_EQ(talk.inspected(), "0123456789");
}

// Most hosts leave the byte out of the stream, if they have not read further before the pointer came.
TEST(Tracker, SaysWhichBytesOfAStreamAreUrgent) {
  Talk talk({.seam_bytes = 100});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "EV"});
  talk.client({.flags = kAck | kUrg, .sequence = 102, .ack = 1000, .data = "IxL", .urgent = 2});
  talk.client({.flags = kAck | kUrg, .sequence = 105, .ack = 1000, .data = " code", .urgent = 0});
  talk.client({.flags = kAck | kUrg, .sequence = 102, .ack = 1000, .data = "IxL", .urgent = 2});
  talk.server({.sequence = 1000, .ack = 110});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "EVIxL code");
  EXPECT_THAT(talk.contested[0], ElementsAre(Talk::Contested{0, "EVIxL code", 0, {"!@3", "!@5"}}));
}

// RFC 9293 §3.8.5: the pointer is an offset from the segment's number; the byte may come in a later segment.
TEST(Tracker, MarksAnUrgentByteThatComesInALaterSegment) {
  Talk talk({.seam_bytes = 100});
  talk.handshake();
  talk.client({.flags = kAck | kUrg, .sequence = 100, .ack = 1000, .urgent = 4});
  talk.client({.sequence = 100, .ack = 1000, .data = "EVIxL"});
  talk.server({.sequence = 1000, .ack = 105});
  talk.finish();
  EXPECT_THAT(talk.contested[0], ElementsAre(Talk::Contested{0, "EVIxL", 0, {"!@3"}}));
}

TEST(Tracker, GivesTheSameStreamAcrossTheWrapOfSequenceNumbers) {
  Talk talk;
  const std::uint32_t isn = 0xfffffff0;
  talk.handshake(isn, isn);
  std::string sent;
  std::uint32_t sequence = isn + 1;
  for (int i = 0; i < 40; ++i) {
    const std::string text = "segment " + std::to_string(i) + ",";
    EXPECT_TRUE(talk.client({.sequence = sequence, .ack = isn + 1, .data = text}).in_stream);
    sequence += static_cast<std::uint32_t>(text.size());
    sent += text;
    talk.server({.sequence = isn + 1, .ack = sequence});
  }
  talk.finish();
  EXPECT_EQ(talk.inspected(), sent);
  for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, IsEmpty());
}

TEST(Tracker, InspectsInlineStreamsAsTheyComeWithWhatWasAhead) {
  Talk talk({.inline_streams = true});
  talk.handshake();
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "EV"}).ready);
  EXPECT_TRUE(talk.client({.sequence = 102, .ack = 1000, .data = "IL"}).ready);
  EXPECT_FALSE(talk.client({.sequence = 104, .ack = 1000}).ready);
  EXPECT_THAT(talk.chunks[0], ElementsAre(Talk::Chunk{0, "EV", 0}, Talk::Chunk{0, "EVIL", 2}));
  talk.client({.sequence = 108, .ack = 1000, .data = "late"});
  talk.client({.sequence = 104, .ack = 1000, .data = "hole"});
  EXPECT_EQ(talk.chunks[0].back(), (Talk::Chunk{0, "EVILholelate", 4, 4}));
}

TEST(Tracker, SaysOfInlineStreamsWhichBytesAreNews) {
  Talk talk({.inline_streams = true});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "abcdef"});
  EXPECT_FALSE(talk.client({.sequence = 102, .ack = 1000, .data = "cdef"}).ready) << "nothing new";
  talk.client({.sequence = 104, .ack = 1000, .data = "efgh"});
  EXPECT_EQ(talk.chunks[0].back(), (Talk::Chunk{0, "abcdefgh", 6}));
  talk.client({.sequence = 112, .ack = 1000, .data = "mn"});
  talk.client({.sequence = 106, .ack = 1000, .data = "ghijklmn"});
  EXPECT_EQ(talk.chunks[0].back(), (Talk::Chunk{0, "abcdefghijklmn", 8, 2}));
  talk.client({.sequence = 110, .ack = 1000, .data = "KLmn"});
  EXPECT_EQ(talk.chunks[0].back(), (Talk::Chunk{0, "abcdefghijklmn", 10})) << "other bytes, whoever wins";
}

// A hole may be filled when much behind it has been inspected: what was ahead of it is still there.
TEST(Tracker, KeepsInlineWhatIsAheadOfAHole) {
  Talk talk({.inline_streams = true, .chunk_bytes = 8, .seam_bytes = 4});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "abcdefgh"});
  talk.server({.sequence = 1000, .ack = 108});
  talk.client({.sequence = 112, .ack = 1000, .data = "0123456789012345678901234567890123456789"});
  talk.client({.sequence = 108, .ack = 1000, .data = "hole"});
  EXPECT_EQ(talk.chunks[0].back(), (Talk::Chunk{0, "abcdefghhole01234567", 8, 8}));
}

/// Segments of 100 bytes, acknowledged at once. Each comes with chunk_bytes of the stream before it, once there are so
/// many.
///
///     0        100       …        4000     4100
///     |────────|─────────…─────────|────────|
///                 ├──── 2560 ──────┤ seen   └ new
TEST(Tracker, InspectsInlineEachSegmentWithAChunkOfBytesBeforeIt) {
  for (const std::uint32_t seam : {0U, 100U}) {
    Talk talk({.inline_streams = true, .seam_bytes = seam});
    talk.handshake();
    for (std::uint32_t i = 0; i < 60; ++i) {
      talk.client({.sequence = 100 + i * 100, .ack = 1000, .data = std::string(100, static_cast<char>('a' + i % 26))});
      ASSERT_EQ(talk.chunks[0].size(), i + 1);
      const Talk::Chunk& chunk = talk.chunks[0].back();
      ASSERT_EQ(chunk.seen, std::min(i * 100, 2560U));
      ASSERT_EQ(chunk.bytes.size(), chunk.seen + 100);
      talk.server({.sequence = 1000, .ack = 200 + i * 100});
    }
  }
}

TEST(Tracker, InspectsInlineWhatASegmentBringsThatBeginsInWhatWasLetGo) {
  Talk talk({.inline_streams = true, .chunk_bytes = 8});
  talk.handshake();
  const std::string old(100, 'o');
  talk.client({.sequence = 100, .ack = 1000, .data = old});
  talk.server({.sequence = 1000, .ack = 200});
  talk.client({.sequence = 200, .ack = 1000, .data = "x"});  // lets go of most of what was acknowledged
  talk.chunks[0].clear();
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = old + "x" + "EVIL"}).ready);
  ASSERT_EQ(talk.chunks[0].size(), 1U);
  EXPECT_THAT(talk.chunks[0][0].bytes, ::testing::EndsWith("xEVIL"));
}

TEST(Tracker, OffersInlineAStreamWithItsUrgentByteAndWithout) {
  Talk talk({.inline_streams = true, .chunk_bytes = 8, .seam_bytes = 4});
  talk.handshake();
  talk.client({.flags = kAck | kUrg, .sequence = 100, .ack = 1000, .data = "EVIxL!", .urgent = 4});
  EXPECT_THAT(talk.chunks[0], ElementsAre(Talk::Chunk{0, "EVIxL!", 0}));
  EXPECT_THAT(talk.contested[0], ElementsAre(Talk::Contested{0, "EVIxL!", 0, {"!@3"}}));
  talk.client({.sequence = 106, .ack = 1000, .data = "go"});
  EXPECT_EQ(talk.contested[0].back(), (Talk::Contested{0, "EVIxL!go", 6, {"!@3"}}));
}

// A segment that never arrived is in the stream; the same bytes pass, but now with a mark:
//
//   client ── EVI ──────▶ host
//          ──    xL ─────▶ ✗  dropped, by a function behind, or lost
//          ──    xL, U ─▶       no news, but a host that leaves the urgent byte out reads EVIL
TEST(Tracker, OffersInlineBytesAgainThatAreUrgentNow) {
  Talk talk({.inline_streams = true, .chunk_bytes = 8, .seam_bytes = 4});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "EVI"});
  talk.client({.sequence = 103, .ack = 1000, .data = "xL"});
  talk.chunks[0].clear();
  EXPECT_FALSE(talk.client({.sequence = 103, .ack = 1000, .data = "xL"}).ready) << "they have been inspected";
  EXPECT_TRUE(talk.client({.flags = kAck | kUrg, .sequence = 103, .ack = 1000, .data = "xL", .urgent = 1}).ready);
  EXPECT_THAT(talk.chunks[0], IsEmpty());
  EXPECT_THAT(talk.contested[0], ElementsAre(Talk::Contested{0, "EVIxL", 0, {"!@3"}}));
  EXPECT_FALSE(talk.client({.flags = kAck | kUrg, .sequence = 103, .ack = 1000, .data = "xL", .urgent = 1}).ready);
}

// The mark comes in a segment by itself, ahead of the bytes.
TEST(Tracker, OffersInlineBytesAgainThatASegmentWithoutBytesNamedUrgent) {
  Talk talk({.inline_streams = true, .chunk_bytes = 8, .seam_bytes = 4});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "EVI"});
  talk.client({.sequence = 103, .ack = 1000, .data = "xL"});  // dropped
  EXPECT_FALSE(talk.client({.flags = kAck | kUrg, .sequence = 103, .ack = 1000, .urgent = 1}).ready);
  EXPECT_THAT(talk.contested[0], IsEmpty());
  EXPECT_TRUE(talk.client({.sequence = 103, .ack = 1000, .data = "xL"}).ready);
  EXPECT_THAT(talk.contested[0], ElementsAre(Talk::Contested{0, "EVIxL", 0, {"!@3"}}));
}

// A server with SYN cookies has kept nothing of the SYN, and believes an ACK that is up to three bytes off:
//
//   client ── SYN 101 ─▶ ◀─ SYN/ACK ── server
//          ── ACK, 99 ──▶                 its stream begins at 99, and not at 102
//          ── EVIL, at 99 ─▶              other servers read "L"
TEST(Tracker, OffersAStreamThatBeginsBeforeItsSynWithTheBytesBeforeItAndWithout) {
  for (const std::uint32_t early : {1U, 3U}) {
    Talk talk({.chunk_bytes = 8, .seam_bytes = 4});
    talk.handshake();  // the SYN is 99
    talk.client({.sequence = 100 - early, .ack = 1000});
    talk.client({.sequence = 100 - early, .ack = 1000, .data = "EVIL"});
    talk.server({.sequence = 1000, .ack = 104 - early});
    talk.finish();
    EXPECT_EQ(talk.inspected(), "EVIL") << early;
    ASSERT_FALSE(talk.contested[0].empty());
    EXPECT_EQ(talk.contested[0].back().versions.size(), early) << "each of these bytes may not be there";
  }
}

// The same, a byte at a time: they are no keep-alive probes.
TEST(Tracker, TakesSingleBytesBeforeTheSynForData) {
  Talk talk({.chunk_bytes = 8, .seam_bytes = 4});
  talk.handshake();
  talk.client({.sequence = 97, .ack = 1000, .data = "E"});
  talk.client({.sequence = 98, .ack = 1000, .data = "V"});
  talk.client({.sequence = 99, .ack = 1000, .data = "IL"});
  talk.server({.sequence = 1000, .ack = 101});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "EVIL");
}

TEST(Tracker, BeginsAStreamBehindItsSynOnceTheServerHasAcknowledgedThat) {
  Talk talk({.chunk_bytes = 8, .seam_bytes = 4});
  talk.handshake();
  talk.server({.sequence = 1000, .ack = 100, .data = "hello"});
  talk.client({.sequence = 99, .ack = 1005, .data = "xGOOD"});
  talk.server({.sequence = 1005, .ack = 104});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "GOOD");
  EXPECT_THAT(talk.contested[0], IsEmpty());
}

TEST(Tracker, RefusesInlineAStreamThatBeginsBeforeItsSyn) {
  Talk talk({.inline_streams = true});
  talk.handshake();
  EXPECT_EQ(talk.client({.sequence = 98, .ack = 1000, .data = "EVIL"}).refused, Refusal::invalid);
  EXPECT_EQ(talk.client({.sequence = 99, .ack = 1000, .data = "E"}).refused, Refusal::invalid);
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "GOOD"}).refused, Refusal::none);
  EXPECT_EQ(talk.client({.sequence = 99, .ack = 1000, .data = "xG"}).refused, Refusal::none) << "known by now";
}

// ---- Evasions

TEST(Tracker, SeesWhatTheHostOfEachPolicySees) {
  const std::pair<OverlapPolicy, const char*> kept[] = {
      {OverlapPolicy::first, "GOODxxLIE"},      {OverlapPolicy::last, "EVILxxONE"},
      {OverlapPolicy::bsd, "GOODxxLIE"},        {OverlapPolicy::bsd_right, "EVILxxONE"},
      {OverlapPolicy::linux_host, "GOODxxLIE"}, {OverlapPolicy::windows, "GOODxxLIE"},
      {OverlapPolicy::solaris, "EVILxxONE"}};
  for (const auto& [policy, text] : kept) {
    Talk talk({.stream_policy = policy, .every_version = false});
    talk.handshake();
    talk.client({.sequence = 100, .ack = 1000, .data = "GOOD"});
    EXPECT_THAT(talk.client({.sequence = 100, .ack = 1000, .data = "EVIL"}).events,
                ElementsAre("reassembly_overlap_different_data"));
    talk.client({.sequence = 106, .ack = 1000, .data = "LIE"});
    talk.client({.sequence = 106, .ack = 1000, .data = "ONE"});
    talk.client({.sequence = 104, .ack = 1000, .data = "xx"});
    talk.finish();
    EXPECT_EQ(talk.inspected(), text) << static_cast<int>(policy);
    EXPECT_THAT(talk.contested[0], IsEmpty());
  }
}

//   seq   100    104    106    109
//          |GOOD─|xx────|LIE───|       the receiver may never have had some of them
//          |EVIL─|      |ONE───|
TEST(Tracker, OffersEachVersionOfBytesThatWereNotAcknowledged) {
  Talk talk({.seam_bytes = 100});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "GOOD"});
  talk.client({.sequence = 100, .ack = 1000, .data = "EVIL"});
  talk.client({.sequence = 106, .ack = 1000, .data = "LIE"});
  talk.client({.sequence = 106, .ack = 1000, .data = "ONE"});
  talk.client({.sequence = 104, .ack = 1000, .data = "xx"});
  EXPECT_THAT(talk.contested[0], IsEmpty());
  talk.server({.sequence = 1000, .ack = 109});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "GOODxxLIE");
  EXPECT_THAT(talk.contested[0],
              ElementsAre(Talk::Contested{0, "GOODxxLIE", 0, {"GOOD@0", "EVIL@0", "LIE@6", "ONE@6"}}));
}

// What the receiver has acknowledged nobody can change: sent again, one byte earlier, with other content.
TEST(Tracker, KeepsAcknowledgedBytesWhateverThePolicy) {
  for (const OverlapPolicy policy :
       {OverlapPolicy::first, OverlapPolicy::last, OverlapPolicy::bsd, OverlapPolicy::bsd_right,
        OverlapPolicy::linux_host, OverlapPolicy::windows, OverlapPolicy::solaris}) {
    Talk talk({.stream_policy = policy, .seam_bytes = 100});
    talk.handshake();
    talk.client({.sequence = 100, .ack = 1000, .data = "x"});
    talk.client({.sequence = 101, .ack = 1000, .data = "EVIL"});
    talk.server({.sequence = 1000, .ack = 105});
    talk.client({.sequence = 100, .ack = 1000, .data = "yGOOD, and more"});
    talk.server({.sequence = 1000, .ack = 115});
    talk.finish();
    EXPECT_EQ(talk.inspected(), "xEVIL, and more") << static_cast<int>(policy);
    EXPECT_THAT(talk.contested[0], IsEmpty());
  }
}

// A match may go on behind contested bytes: they are offered again with what follows.
TEST(Tracker, OffersContestedBytesAgainWithWhatFollows) {
  Talk talk({.chunk_bytes = 4, .seam_bytes = 4});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "GO"});
  talk.client({.sequence = 100, .ack = 1000, .data = "EV"});
  talk.client({.sequence = 102, .ack = 1000, .data = "ab"});
  talk.server({.sequence = 1000, .ack = 104});
  talk.client({.sequence = 104, .ack = 1000, .data = "cdefgh"});
  talk.server({.sequence = 1000, .ack = 110});
  talk.client({.sequence = 110, .ack = 1000, .data = "ijklmn"});
  talk.server({.sequence = 1000, .ack = 116});
  talk.finish();
  EXPECT_THAT(talk.contested[0], ElementsAre(Talk::Contested{0, "GOab", 0, {"GO@0", "EV@0"}},
                                             Talk::Contested{0, "GOabcd", 4, {"GO@0", "EV@0"}}));
}

// What the session refuses is in the stream once the receiver has acknowledged it: it was less strict.
TEST(Tracker, PutsRefusedDataIntoTheStreamOnceTheReceiverAcknowledgesThem) {
  const TcpPacket fakes[] = {{.flags = kRst, .sequence = 102},
                             {.flags = kFin | kAck, .sequence = 102, .ack = 1000},
                             {.sequence = 102, .ack = 1000, .data = "LIES"}};
  for (const TcpPacket& fake : fakes) {  // each of which never arrives
    Talk talk({.seam_bytes = 100});
    talk.handshake();
    talk.client({.sequence = 100, .ack = 1000, .data = "EV"});
    talk.server({.sequence = 1000, .ack = 102});
    talk.client(fake);
    talk.client({.sequence = 102, .ack = 999'999, .data = "IL"});  // acknowledges what was never sent
    talk.server({.sequence = 1000, .ack = 104});
    talk.client({.sequence = 104, .ack = 1000, .data = "!"});
    talk.server({.sequence = 1000, .ack = 105});
    talk.finish();
    if (fake.data.empty()) {
      EXPECT_EQ(talk.inspected(), "EVIL!");
    } else {
      EXPECT_EQ(talk.inspected(), "EVLIES") << "as far as the watcher knows; but see the versions";
      ASSERT_FALSE(talk.contested[0].empty());
      EXPECT_THAT(talk.contested[0].back().versions, ::testing::IsSupersetOf({"IL@2", "!@4"}));
    }
  }
}

TEST(Tracker, KeepsOutOfTheStreamWhatTheReceiverNeverAcknowledged) {
  Talk talk({.seam_bytes = 100});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "good"});
  talk.client({.sequence = 104, .ack = 999'999, .data = "refused"});
  talk.server({.sequence = 1000, .ack = 104});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "good");
  EXPECT_THAT(talk.contested[0], IsEmpty());
}

// A reset that never arrives has everything inspected; what was before it may come all the same.
TEST(Tracker, InspectsWhatFillsAHoleBehindTheInspection) {
  Talk talk({.seam_bytes = 100});
  talk.handshake();
  talk.client({.sequence = 102, .ack = 1000, .data = "IL"});
  talk.client({.flags = kRst, .sequence = 100});
  talk.client({.sequence = 100, .ack = 1000, .data = "EV"});
  talk.server({.sequence = 1000, .ack = 104});
  talk.client({.sequence = 104, .ack = 1000, .data = "!"});
  talk.finish();
  ASSERT_FALSE(talk.chunks[0].empty());
  EXPECT_THAT(talk.chunks[0], ::testing::Contains(Talk::Chunk{0, "EVIL", 0, 2}));
}

// The reset has "EVIL" inspected. The refused segment that the receiver then acknowledges has these bytes again.
TEST(Tracker, OffersOnlyTheMissingBytesOfAnAcknowledgedSegmentAsNew) {
  Talk talk;
  talk.handshake();
  talk.client({.flags = 0, .sequence = 100, .data = "EVILDATA"});
  talk.client({.sequence = 100, .ack = 1000, .data = "EVIL"});
  talk.client({.flags = kRst, .sequence = 104});
  EXPECT_EQ(talk.inspected(), "EVIL");
  talk.server({.sequence = 1000, .ack = 108});
  talk.client({.sequence = 108, .ack = 1000, .data = "!"});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "EVILDATA!");
}

TEST(Tracker, OffersOnlyTheMissingBytesOfALateSegmentAsNew) {
  Talk talk({.chunk_bytes = 2});
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "abc"});
  talk.client({.sequence = 106, .ack = 1000, .data = "ghi"});
  talk.client({.flags = kRst, .sequence = 103});
  talk.client({.sequence = 100, .ack = 1000, .data = "abcdefghi"});
  EXPECT_EQ(talk.chunks[0].back(), (Talk::Chunk{1, "bcdefgh", 2, 2}));
  talk.finish();
  EXPECT_EQ(talk.chunks[0].size(), 3U);
}

//   0 ab ·· ·· gh ·· kl     refused "ab", then "kl"; a reset, which has "kl" inspected
//     ab                    acknowledged: fills one hole
//              gh           fills another one before the first is inspected
TEST(Tracker, InspectsLateBytesOnBothSidesOfAHole) {
  Talk talk;
  talk.handshake();
  talk.client({.flags = 0, .sequence = 100, .data = "ab"});
  talk.client({.sequence = 110, .ack = 1000, .data = "kl"});
  talk.client({.flags = kRst, .sequence = 100});
  talk.server({.sequence = 1000, .ack = 102});
  talk.client({.sequence = 106, .ack = 1000, .data = "gh"});
  talk.finish();
  EXPECT_THAT(talk.chunks[0], ElementsAre(Talk::Chunk{10, "kl", 0}, Talk::Chunk{0, "ab", 0}, Talk::Chunk{6, "gh", 0}));
}

// The same with more runs between the late bytes than one inspection offers.
TEST(Tracker, InspectsLateBytesAfterAnyNumberOfHoles) {
  for (const bool ends : {false, true}) {
    Talk talk;
    talk.handshake();
    talk.client({.flags = 0, .sequence = 100, .data = "ab"});
    constexpr std::uint32_t kRuns = TcpSession::kMostChunks;
    for (std::uint32_t i = 1; i <= kRuns; ++i) talk.client({.sequence = 100 + 8 * i, .ack = 1000, .data = "run"});
    talk.client({.flags = kRst, .sequence = 100});
    talk.server({.sequence = 1000, .ack = 102});
    constexpr std::uint32_t kLate = 8 * kRuns - 4;  // before the last run
    talk.client({.sequence = 100 + kLate, .ack = 1000, .data = "gh"});
    EXPECT_EQ(talk.chunks[0].size(), 2 * kRuns) << "what fits into two inspections";
    if (ends) {
      talk.finish();
    } else {
      talk.client({.sequence = 102, .ack = 1000});
    }
    EXPECT_THAT(talk.chunks[0], ::testing::Contains(Talk::Chunk{kLate, "gh", 0})) << "at the end: " << ends;
  }
}

TEST(Tracker, RefusesInlineWhatDiffersFromWhatHasPassedWhateverThePolicy) {
  for (const OverlapPolicy policy : {OverlapPolicy::last, OverlapPolicy::bsd, OverlapPolicy::solaris}) {
    Talk talk({.stream_policy = policy, .inline_streams = true});
    talk.handshake();
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "EV"}).refused, Refusal::none);
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "EV"}).refused, Refusal::none) << "sent again";
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "go"}).refused, Refusal::changed_bytes);
    EXPECT_EQ(talk.client({.sequence = 102, .ack = 1000, .data = "IL"}).refused, Refusal::none);
    EXPECT_EQ(talk.chunks[0].back().bytes, "EVIL") << "what the host has";
  }
  Talk watching;
  watching.handshake();
  watching.client({.sequence = 100, .ack = 1000, .data = "EV"});
  EXPECT_EQ(watching.client({.sequence = 100, .ack = 1000, .data = "go"}).refused, Refusal::none) << "off the path";
}

// ---- On a path: what must not pass

const TrackerOptions kInline{.inline_streams = true};

TEST(Tracker, RefusesInlineBytesThatTheStreamDoesNotTake) {
  const auto refused = [](const TcpPacket& packet, bool from_client = true) {
    Talk talk(kInline);
    talk.handshake();
    talk.server({.sequence = 1000, .ack = 100, .window = 1000});
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "seen"}).refused, Refusal::none);
    const Refusal refusal = talk.send(packet, from_client).refused;
    EXPECT_EQ(talk.tracker.counters().stream_invalid, refusal == Refusal::invalid ? 1U : 0U);
    return refusal;
  };
  EXPECT_EQ(refused({.sequence = 90000, .ack = 1000, .data = "EVIL"}), Refusal::invalid) << "out of the window";
  EXPECT_EQ(refused({.flags = 0, .sequence = 104, .data = "EVIL"}), Refusal::invalid) << "no ACK flag";
  EXPECT_EQ(refused({.sequence = 104, .ack = 90000, .data = "EVIL"}), Refusal::invalid) << "of what was never sent";
  EXPECT_EQ(refused({.flags = kFin | kAck, .sequence = 90000, .ack = 1000, .data = "EVIL"}), Refusal::invalid);
  EXPECT_EQ(refused({.flags = kFin | kAck, .sequence = 102, .ack = 90000, .data = "en"}), Refusal::none) << "again";
  EXPECT_EQ(refused({.flags = kFin | kAck, .sequence = 102, .ack = 90000, .data = "EV"}), Refusal::invalid);
  EXPECT_EQ(refused({.sequence = 103, .ack = 1000, .data = "x"}), Refusal::invalid)
      << "no keep-alive: not acknowledged";
  EXPECT_EQ(refused({.sequence = 103, .ack = 1000, .data = "n"}), Refusal::none);
  EXPECT_EQ(refused({.flags = kRst, .sequence = 5'000'000}), Refusal::invalid);
  EXPECT_EQ(refused({.flags = kRst, .sequence = 200}), Refusal::none) << "its host answers";
  EXPECT_EQ(refused({.flags = kSyn, .sequence = 77}), Refusal::none) << "its host answers";
  EXPECT_EQ(refused({.flags = kSyn | kAck, .sequence = 77, .ack = 3}, false), Refusal::none);
  EXPECT_EQ(refused({.sequence = 1000, .ack = 90000}, false), Refusal::none) << "it brings nothing";
}

TEST(Tracker, RefusesInlineWhatComesBehindTheEnd) {
  Talk talk(kInline);
  talk.handshake();
  talk.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000, .data = "all"});
  EXPECT_EQ(talk.client({.sequence = 104, .ack = 1000, .data = "EVIL"}).refused, Refusal::none)
      << "it is in the stream";
  EXPECT_TRUE(talk.seen.back().in_stream);
  talk.server({.flags = kFin | kAck, .sequence = 1000, .ack = 104});
  talk.client({.sequence = 104, .ack = 1001});
  EXPECT_EQ(talk.seen.back().state, TcpState::closed);
  EXPECT_EQ(talk.client({.flags = kFin | kAck, .sequence = 100, .ack = 1000, .data = "all"}).refused, Refusal::none);
  EXPECT_EQ(talk.server({.sequence = 1001, .ack = 104, .data = "EVIL"}).refused, Refusal::invalid);
}

TEST(Tracker, RefusesInlineDataBeforeTheHandshakeIsDone) {
  Talk talk(kInline);
  talk.client({.flags = kSyn, .sequence = 99});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
  EXPECT_EQ(talk.server({.sequence = 1000, .ack = 100, .data = "early"}).refused, Refusal::invalid);
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 5, .data = "wrong"}).refused, Refusal::invalid);
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "right"}).refused, Refusal::none);
  EXPECT_EQ(talk.server({.sequence = 1000, .ack = 105, .data = "early"}).refused, Refusal::none) << "and comes again";
}

TEST(Tracker, LetsPassInlineWhatItCannotJudge) {
  Talk unknown(kInline);
  EXPECT_EQ(unknown.client({.sequence = 100, .ack = 1000, .data = "from the middle"}).refused, Refusal::none);
  EXPECT_EQ(unknown.server({.flags = kRst, .sequence = 5}).refused, Refusal::none);

  Talk one_way(kInline);  // the server's answers go another way
  one_way.client({.flags = kSyn, .sequence = 99});
  one_way.client({.sequence = 100, .ack = 1000});
  EXPECT_EQ(one_way.client({.sequence = 100, .ack = 1000, .data = "GET"}).refused, Refusal::none);

  Talk picked_up({.midstream = true, .inline_streams = true});
  picked_up.client({.sequence = 100, .ack = 1000, .data = "from the middle"});
  EXPECT_EQ(picked_up.client({.sequence = 90, .ack = 90'000'000, .data = "odd"}).refused, Refusal::none);

  Talk watching;
  watching.handshake();
  EXPECT_EQ(watching.client({.sequence = 5'000'000, .ack = 1000, .data = "off the path"}).refused, Refusal::none);
}

TEST(Tracker, LetsPassInlineWhatComesAgain) {
  Talk talk(kInline);
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "first"});
  talk.server({.sequence = 1000, .ack = 105});
  talk.client({.sequence = 105, .ack = 1000, .data = "second"});
  talk.server({.sequence = 1000, .ack = 111});
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "first"}).refused, Refusal::none) << "the ACK was lost";
  EXPECT_EQ(talk.client({.sequence = 110, .ack = 1000, .data = std::string_view("\0", 1)}).refused, Refusal::none)
      << "a keep-alive";
  EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 99}).refused, Refusal::none);
  EXPECT_EQ(talk.tracker.counters().stream_invalid, 0U);
}

// Hosts send their last segments again as one.
TEST(Tracker, TakesInlineAFinWhoseSegmentBeginsInWhatWasSent) {
  for (const bool server_first : {false, true}) {
    Talk talk(kInline);
    talk.handshake();
    if (server_first) talk.server({.flags = kFin | kAck, .sequence = 1000, .ack = 100});
    const std::uint32_t ack = server_first ? 1001 : 1000;
    talk.client({.sequence = 100, .ack = ack, .data = "we att"});
    const Seen& fin = talk.client({.flags = kFin | kAck, .sequence = 103, .ack = ack, .data = "attack"});
    EXPECT_EQ(fin.refused, Refusal::none);
    EXPECT_TRUE(fin.in_stream);
    EXPECT_EQ(fin.state, server_first ? TcpState::time_wait : TcpState::close_wait);
    EXPECT_THAT(fin.events, IsEmpty());
    EXPECT_EQ(talk.chunks[0].back().bytes, "we attack");
  }
}

TEST(Tracker, TakesInlineTheByteThatAsksForAWindow) {
  Talk talk(kInline);
  talk.handshake();
  talk.server({.sequence = 1000, .ack = 100, .window = 0});
  EXPECT_TRUE(talk.client({.sequence = 100, .ack = 1000, .data = "a"}).in_stream);
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "x"}).refused, Refusal::changed_bytes);
  talk.server({.sequence = 1000, .ack = 101, .window = 1000});  // it had opened
  talk.client({.sequence = 101, .ack = 1000, .data = "ttack"});
  EXPECT_EQ(talk.chunks[0].back().bytes, "attack");
}

// What is too old for one host, another takes. A clock may stand at 0.
TEST(Tracker, TakesInlineSegmentsOfOldTimestamps) {
  Talk talk(kInline);
  talk.client({.flags = kSyn, .sequence = 99, .options = timestamps(50)});
  talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .options = timestamps(7)});
  talk.client({.sequence = 100, .ack = 1000, .options = timestamps(51)});
  const Seen& old = talk.client({.sequence = 100, .ack = 1000, .data = "ev", .options = timestamps(3)});
  EXPECT_EQ(old.refused, Refusal::none);
  EXPECT_TRUE(old.in_stream);
  EXPECT_THAT(old.events, ElementsAre("pkt_invalid_timestamp"));
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "no", .options = timestamps(52)}).refused,
            Refusal::changed_bytes);
  EXPECT_EQ(talk.client({.flags = kRst, .sequence = 500'000, .options = timestamps(3)}).refused, Refusal::invalid);
}

TEST(Tracker, RefusesInlineWrongChecksumsIfItVerifiesThem) {
  for (const bool on_path : {false, true}) {
    Talk talk({.verify_checksums = true, .inline_streams = on_path});
    EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 99}).refused, on_path ? Refusal::invalid : Refusal::none);
  }
}

// RFC 3168 §6.1.1: ECE and CWR say that its sender knows of congestion notification.
TEST(Tracker, SeesAConnectionBeginAnewWithCongestionFlagsToo) {
  Talk talk;
  talk.server({.flags = kFin | kAck, .sequence = 5, .ack = 6});  // the rest of another, the server's packet first
  EXPECT_EQ(talk.client({.flags = kSyn | 0xc0, .sequence = 99}).direction, Direction::to_server);
  talk.server({.flags = kSyn | kAck | 0x40, .sequence = 999, .ack = 100});
  EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000}).state, TcpState::established);
}

TEST(Tracker, PutsTinySegmentsInAnyOrderTogether) {
  Talk talk;
  talk.handshake();
  const std::string text = "GET /etc/passwd HTTP/1.0";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t at = i % 2 == 0 ? text.size() - 1 - i / 2 : i / 2;
    talk.client(
        {.sequence = 100 + static_cast<std::uint32_t>(at), .ack = 1000, .data = std::string_view(text).substr(at, 1)});
  }
  talk.finish();
  EXPECT_EQ(talk.inspected(), text);
}

TEST(Tracker, KeepsWrongChecksumsOutOfStreamsIfItVerifiesThem) {
  Talk talk({.verify_checksums = true});
  EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 99}).state, TcpState::none) << "its checksum is 0";
  EXPECT_EQ(talk.tracker.counters().tcp_invalid_checksums, 1U);

  std::vector<std::uint8_t> syn = {0, 7, 0, 80, 0, 0, 0, 99, 0, 0, 0, 0, 0x50, kSyn, 1, 0, 0, 0, 0, 0};
  const auto state_of_syn = [&] {
    DecodedPacket packet = talk.between(true);
    packet.protocol = 6;
    packet.source.port = 7;
    packet.ip_payload = packet.transport = syn;
    return talk.take(packet).state;
  };
  EXPECT_EQ(state_of_syn(), TcpState::none);
  // By hand: addresses 0a00 0001 0a00 0002, protocol 6, length 20, ports 7 80, sequence 99, 5002, window 100.
  const std::uint16_t sum = 0x0a00 + 1 + 0x0a00 + 2 + 6 + 20 + 7 + 80 + 99 + 0x5002 + 0x100;
  syn[16] = static_cast<std::uint8_t>(static_cast<std::uint16_t>(~sum) >> 8);
  syn[17] = static_cast<std::uint8_t>(~sum);
  EXPECT_EQ(state_of_syn(), TcpState::syn_sent);
}

// ---- Bounds

/// What a flood of packets with ever new addresses does.
class Flood final : public PacketSink {
 public:
  void packet(TrackedPacket& packet) noexcept override { with_flow += packet.flow != nullptr ? 1U : 0U; }
  void flow_ended(Flow& flow) noexcept override {
    static_cast<void>(flow);
    ++ended;
  }
  std::uint64_t with_flow = 0, ended = 0;
};

TEST(Tracker, StaysInItsBoundsUnderASynFloodAndKeepsEstablishedConnections) {
  TrackerOptions options;
  options.flow_memory = 4 << 20;
  options.stream_memory = 4 << 20;
  Talk talk(options);
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "kept "});
  Flood flood;
  std::array<std::uint8_t, 20> header{};
  auto& tcp = *reinterpret_cast<TcpHeader*>(header.data());
  tcp.data_offset = 0x50;
  tcp.flags = kSyn;
  DecodedPacket syn = talk.between(true);
  syn.protocol = 6;
  syn.transport = header;
  constexpr std::uint32_t kSyns = penstock::testing::rounds(20'000'000);
  for (std::uint32_t i = 0; i < kSyns; ++i) {
    syn.timestamp_ns += 1000;
    syn.source.address.low = 0x14000000 + i;
    talk.tracker.track(syn, flood);
  }
  EXPECT_EQ(flood.with_flow, kSyns);
  EXPECT_GT(flood.ended, kSyns - 40000);
  EXPECT_EQ(talk.tracker.counters().flows_evicted, flood.ended);
  talk.now_ns = syn.timestamp_ns;
  EXPECT_TRUE(talk.client({.sequence = 105, .ack = 1000, .data = "alive"}).in_stream);
  talk.finish();
  EXPECT_EQ(talk.inspected(), "kept alive");
  EXPECT_EQ(talk.tracker.counters().flows, talk.tracker.counters().flows_ended);
}

/// Connections that each leave holes open between segments of this, more than 2 MiB have room for.
void leave_holes(Talk& talk, const std::string& data) {
  for (std::uint16_t port = 1; port < 300; ++port) {
    talk.client_port = port;
    talk.handshake();
    for (std::uint32_t i = 0; i < 20; ++i) talk.client({.sequence = 101 + i * 2000, .ack = 1000, .data = data});
  }
}

TEST(Tracker, StaysInItsBoundsUnderAFloodOfSegments) {
  TrackerOptions options;
  options.stream_memory = 2 << 20;
  Talk talk(options);
  const std::string data(1400, 'd');
  leave_holes(talk, data);
  EXPECT_GT(talk.tracker.counters().stream_memory_refused, 0U);
  for (const Seen& seen : talk.seen) {
    EXPECT_FALSE(seen.in_stream && !seen.events.empty()) << "what has no room in the stream is seen as a packet";
  }
  const auto told = std::count_if(talk.seen.begin(), talk.seen.end(), [](const Seen& seen) {
    return std::find(seen.events.begin(), seen.events.end(), "reassembly_insert_memcap") != seen.events.end();
  });
  EXPECT_EQ(static_cast<std::uint64_t>(told), talk.tracker.counters().stream_memory_refused);
  talk.finish();
  // All of it is given back: another connection has what it needs.
  talk.client_port = 5000;
  talk.handshake();
  EXPECT_THAT(talk.client({.sequence = 100, .ack = 1000, .data = data}).events, IsEmpty());
}

TEST(Tracker, RefusesSegmentsThatMemoryHasNoRoomForIfItIsTo) {
  for (const bool refuses : {false, true}) {
    TrackerOptions options;
    options.inline_streams = true;
    options.refuse_when_full = refuses;
    options.stream_memory = 2 << 20;
    Talk talk(options);
    const std::string data(1400, 'd');
    leave_holes(talk, data);
    std::uint64_t refused = 0;
    for (const Seen& seen : talk.seen) {
      ASSERT_TRUE(seen.refused == Refusal::none || seen.refused == Refusal::stream_memory);
      refused += seen.refused == Refusal::stream_memory ? 1U : 0U;
    }
    EXPECT_GT(talk.tracker.counters().stream_memory_refused, 0U);
    EXPECT_EQ(refused, refuses ? talk.tracker.counters().stream_memory_refused : 0U);
    // Once there is room, what was dropped comes again.
    talk.finish();
    talk.client_port = 5000;
    talk.handshake();
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = data}).refused, Refusal::none);
  }
}

TEST(Tracker, RefusesSessionsThatMemoryHasNoRoomForIfItIsTo) {
  TrackerOptions options;
  options.inline_streams = options.refuse_when_full = true;
  options.stream_memory = 1 << 16;  // 32 sessions
  Talk talk(options);
  for (std::uint16_t port = 1; port <= 32; ++port) {
    talk.client_port = port;
    talk.handshake();
  }
  talk.client_port = 33;
  EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 99}).refused, Refusal::stream_memory);
  EXPECT_THAT(talk.ended, IsEmpty()) << "established connections stay";
}

TEST(Tracker, LetsNoConnectionGoOnUnseenThatMemoryHadNoRoomForIfItIsTo) {
  for (const bool refuses : {false, true}) {
    TrackerOptions options;
    options.inline_streams = true;
    options.refuse_when_full = refuses;
    options.flow_memory = 1;  // one flow
    Talk talk(options);
    const std::uint16_t port = talk.client_port;
    talk.client({.flags = kSyn, .sequence = 99});
    talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100});
    talk.client_port = 1;
    talk.client({.flags = kSyn, .sequence = 5});  // takes the room of the other, which is no connection yet
    EXPECT_EQ(talk.ended.size(), 1U);
    talk.client_port = port;
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "unseen"}).refused,
              refuses ? Refusal::flow_memory : Refusal::none);
    talk.now_ns += 61'000'000'000;  // as long as a half-open connection is remembered where there is room
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "too late"}).refused, Refusal::none);
  }
}

TEST(Tracker, GivesUpNoEstablishedConnectionForAnotherIfWhatHasNoRoomIsRefused) {
  for (const bool refuses : {false, true}) {
    TrackerOptions options;
    options.inline_streams = true;
    options.refuse_when_full = refuses;
    options.flow_memory = 1;
    Talk talk(options);
    const std::uint16_t port = talk.client_port;
    talk.handshake();
    talk.client_port = 1;
    const Seen& second = talk.client({.flags = kSyn, .sequence = 5});
    EXPECT_EQ(second.refused, refuses ? Refusal::flow_memory : Refusal::none);
    EXPECT_EQ(second.has_flow, !refuses);
    EXPECT_EQ(talk.tracker.counters().flow_memory_refused, refuses ? 1U : 0U);
    talk.client_port = port;
    EXPECT_EQ(talk.client({.sequence = 100, .ack = 1000, .data = "seen"}).in_stream, refuses);
  }
}

}  // namespace
}  // namespace penstock::stack
