// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Inbound ESP in fragments, on the CPU: the fragment that completes a datagram becomes the packet that the datagram
// carried; all others are consumed.
//
//   [IP|ESP 0..512] [IP|512..1024] [IP|1024..end]  ─▶  consumed, consumed, [inner packet]

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "nf/ipsec/ipsec_for_test.h"
#include "packet/testing/fragments.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::fragments_of;
using penstock::testing::packet;
using penstock::testing::with_right_checksums;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;

const std::string kFwd = everything("fwd", tunnel_template());

/// ESP packets of one SA, numbered after `state.sent`, one for each of the given plain packets.
std::vector<Bytes> sealed_by(const StateText& state, const std::vector<Bytes>& inner) {
  const bool tunnel = state.mode == "tunnel";
  End out = outwards(state(), everything("out", tunnel ? tunnel_template(state.reqid, state.source, state.destination)
                                                       : transport_template(state.reqid)));
  std::vector<Bytes> sealed;
  for (const Done& done : out({inner.begin(), inner.end()})) {
    EXPECT_EQ(done.fate, "forwarded");
    sealed.push_back(done.bytes);
  }
  return sealed;
}
Bytes sealed_by(const StateText& state, const Bytes& inner) {
  return sealed_by(state, std::vector<Bytes>{inner}).front();
}

std::vector<Arriving> arriving(const std::vector<Bytes>& frames) { return {frames.begin(), frames.end()}; }

nlohmann::json report_of(const End& end) {
  end.stage->begin_batch();  // counts are published with each batch
  nlohmann::json report;
  end.function->report(report);
  return report["fragments"];
}

class InboundFragments : public ::testing::Test {
 protected:
  const Bytes inner_ = plain(1400);
  StateText state_;
};

//   sent      [0..512]  [512..1024]  [1024..]
//   becomes   consumed   consumed    [IP|UDP, as it was before ESP]
TEST_F(InboundFragments, OfADatagramAreReassembledAndOpened) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512, 1024}, 7);
  End in = inwards(state_(), kFwd);
  const std::vector<Done> done = in(arriving(fragments));
  EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "forwarded"));
  EXPECT_EQ(done[2].bytes, inner_);
  EXPECT_EQ(in.state().window.top(), 1U);
  EXPECT_EQ(report_of(in), (nlohmann::json{{"received", 3}, {"reassembled", 1}, {"timed_out", 0}, {"dropped", 0}}));
}

//   batch 1   [1024..]
//   batch 2   [512..1024]
//   batch 3   [0..512]      completes it
TEST_F(InboundFragments, MayComeInAnyOrderAndInSeveralBatches) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512, 1024}, 7);
  std::vector<std::size_t> order{0, 1, 2};
  do {
    End in = inwards(state_(), kFwd);
    EXPECT_EQ(in(fragments[order[0]]).fate, "consumed");
    EXPECT_EQ(in(fragments[order[1]]).fate, "consumed");
    EXPECT_EQ(in(fragments[order[2]]), (Done{"forwarded", inner_})) << order[0] << order[1] << order[2];
  } while (std::next_permutation(order.begin(), order.end()));
}

//   A[0..]  B[0..]  [whole]  B[..end]  A[..end]
TEST_F(InboundFragments, OfSeveralDatagramsMayBeInterleavedWithWholePackets) {
  const Bytes other = plain(900), whole = plain(100);
  const std::vector<Bytes> sealed = sealed_by(state_, {inner_, other, whole});
  const auto a = fragments_of(sealed[0], {800}, 1);
  const auto b = fragments_of(sealed[1], {800}, 2);
  End in = inwards(state_(), kFwd);
  const std::vector<Done> done = in(arriving({a[0], b[0], sealed[2], b[1], a[1]}));
  EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "forwarded", "forwarded", "forwarded"));
  EXPECT_EQ(done[2].bytes, whole);
  EXPECT_EQ(done[3].bytes, other);
  EXPECT_EQ(done[4].bytes, inner_);
}

//   [0..512]  [512..1024]  (61 s)  [1024..]      the first two are given up
TEST_F(InboundFragments, WaitForAMinuteOfPacketTime) {
  auto fragments = arriving(fragments_of(sealed_by(state_, inner_), {512, 1024}, 7));
  End in = inwards(state_(), kFwd);
  EXPECT_THAT(fates(in({fragments[0], fragments[1]})), Each("consumed"));
  Arriving other = plain(5);
  other.time_s = 62;
  EXPECT_EQ(in(other).fate, "not_protected") << "it only shows the time";
  EXPECT_EQ(report_of(in)["timed_out"], 2);
  fragments[2].time_s = 63;
  EXPECT_EQ(in(fragments[2]).fate, "consumed");
}

TEST_F(InboundFragments, ThatAreMissingLeaveOtherDatagramsAlone) {
  std::vector<Bytes> plains(20, inner_);
  const std::vector<Bytes> sealed = sealed_by(state_, plains);
  End in = inwards(state_(), kFwd);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto fragments = fragments_of(sealed[i], {512, 1024}, static_cast<std::uint32_t>(i));
    if (i % 2 == 0) fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(i / 2 % 3));
    EXPECT_EQ(in(arriving(fragments)).back().fate, i % 2 == 0 ? "consumed" : "forwarded");
  }
}

//   [0..512]  [512..1024]  [512..1024, other bytes]  [1024..]
//   consumed   consumed         fragment             forwarded
TEST_F(InboundFragments, ThatContradictOthersAreRefused) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512, 1024}, 7);
  Bytes forged = fragments[1];
  forged.back() ^= 1;
  End in = inwards(state_(), kFwd);
  const auto done = in(arriving({fragments[0], fragments[1], forged, fragments[2]}));
  EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "fragment", "forwarded"));
  EXPECT_EQ(done[3].bytes, inner_);
  EXPECT_EQ(report_of(in)["dropped"], 1);
}

//   [512..1024, forged]  [0..512]  [512..1024]  [1024..]
//        consumed        consumed   fragment    integrity: at most one reading, and it is not authentic
TEST_F(InboundFragments, LetNoForgedBytesThrough) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512, 1024}, 7);
  Bytes forged = fragments[1];
  forged.back() ^= 1;
  End in = inwards(state_(), kFwd);
  const auto done = in(arriving({forged, fragments[0], fragments[1], fragments[2]}));
  EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "fragment", "integrity"));
  EXPECT_EQ(in.state().window.top(), 0U) << "the window has not moved";
  EXPECT_THAT(fates(in(arriving(fragments))), ElementsAre("consumed", "consumed", "forwarded"))
      << "and the packet can come again";
}

//   [0..512]            [1024..]
//        [504..1032, the same bytes]        overlaps in part: the datagram is given up, as in Linux
TEST_F(InboundFragments, ThatOverlapOthersInPartEndTheirDatagram) {
  const Bytes sealed = sealed_by(state_, inner_);
  const auto fragments = fragments_of(sealed, {512, 1024}, 7);
  const auto shifted = fragments_of(sealed, {504, 1032}, 7);
  End in = inwards(state_(), kFwd);
  EXPECT_THAT(fates(in(arriving({fragments[0], shifted[1], fragments[2]}))),
              ElementsAre("consumed", "fragment", "consumed"));
  EXPECT_THAT(fates(in(arriving(fragments_of(sealed, {512, 1024}, 8)))),
              ElementsAre("consumed", "consumed", "forwarded"));
}

//   [0..512]  [0..512]  [512..]  [512..]
TEST_F(InboundFragments, ThatComeTwiceMakeOnePacket) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512}, 7);
  End in = inwards(state_(), kFwd);
  EXPECT_THAT(fates(in(arriving({fragments[0], fragments[0], fragments[1], fragments[1]}))),
              ElementsAre("consumed", AnyOf("consumed", "fragment"), "forwarded", "consumed"));
}

TEST_F(InboundFragments, OfAReplayedPacketAreRefusedOnceItIsComplete) {
  const Bytes sealed = sealed_by(state_, inner_);
  End in = inwards(state_(), kFwd);
  EXPECT_EQ(in(sealed).fate, "forwarded");
  EXPECT_THAT(fates(in(arriving(fragments_of(sealed, {512, 1024}, 7)))),
              ElementsAre("consumed", "consumed", "replayed"));
}

TEST_F(InboundFragments, AreCheckedAgainstPoliciesAsWholePacketsAre) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512}, 7);
  End other = inwards(state_(), everything("fwd", tunnel_template(2)));
  EXPECT_THAT(fates(other(arriving(fragments))), ElementsAre("consumed", "policy_mismatch"));
  StateText elsewhere;
  elsewhere.spi = 0x2000;
  EXPECT_THAT(fates(inwards(elsewhere(), kFwd)(arriving(fragments))), ElementsAre("consumed", "wrong_spi"));
}

TEST_F(InboundFragments, ForOtherDestinationsPass) {
  auto fragments = fragments_of(sealed_by(state_, inner_), {512}, 7);
  for (Bytes& fragment : fragments) {
    fragment[14 + 19] = 77;
    fragment = with_right_checksums(fragment);
  }
  End in = inwards(state_(), policy_text("src 10.0.0.0/8 dst 10.0.0.0/8", "fwd", tunnel_template()));
  const auto done = in(arriving(fragments));
  EXPECT_EQ(done[0], (Done{"forwarded", fragments[0]}));
  EXPECT_EQ(done[1], (Done{"forwarded", fragments[1]}));
}

TEST_F(InboundFragments, ThatTheCaptureCutAreRefused) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512}, 7);
  const Bytes cut(fragments[0].begin(), fragments[0].end() - 8);
  End in = inwards(state_(), kFwd);
  EXPECT_EQ(in(Arriving(cut, LinkType::ethernet, static_cast<std::uint32_t>(fragments[0].size()))).fate, "truncated");
  EXPECT_EQ(in(fragments[1]).fate, "consumed");
}

TEST_F(InboundFragments, OfTransportModeAreOpenedToo) {
  state_.mode = "transport";
  const Bytes inner = packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(1, 2).payload(std::string(1400, 'y')).bytes();
  const auto fragments = fragments_of(sealed_by(state_, inner), {512, 1024}, 7);
  const auto done = inwards(state_(), everything("fwd", transport_template()))(arriving(fragments));
  EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "forwarded"));
  Bytes expected = inner;
  expected[14 + 4] = 0, expected[14 + 5] = 7;  // identification of the fragments
  EXPECT_EQ(done[2].bytes, with_right_checksums(expected));
}

//   [IPv6|fragment 0|ESP..]  [IPv6|fragment 512|..]  [IPv6|fragment 1024|..]
TEST_F(InboundFragments, OfIpv6AreOpened) {
  state_.source = "2001:db8::1";
  state_.destination = "2001:db8::2";
  for (const std::string mode : {"tunnel", "transport"}) {
    state_.mode = mode;
    const bool tunnel = mode == "tunnel";
    const Bytes inner = packet()
                            .eth()
                            .ipv6(tunnel ? "2001:db8:1::1" : "2001:db8::1", tunnel ? "2001:db8:2::1" : "2001:db8::2")
                            .udp(1, 2)
                            .payload(std::string(1400, 'y'))
                            .bytes();
    const auto fragments = fragments_of(sealed_by(state_, inner), {512, 1024}, 70000);
    const auto done = inwards(state_(), everything("fwd", tunnel ? tunnel_template(1, "2001:db8::1", "2001:db8::2")
                                                                 : transport_template()))(arriving(fragments));
    EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "forwarded")) << mode;
    EXPECT_EQ(done[2].bytes, inner) << mode;
  }
}

//   outside [ECT(0)]  [CE]  [ECT(0)]   ─▶   inside [CE]: congestion on the way of any fragment (RFC 3168 §5.3, RFC
//   6040)
TEST_F(InboundFragments, PassOnCongestionThatAnyOfThemExperienced) {
  for (const bool six : {false, true}) {
    if (six) state_.source = "2001:db8::1", state_.destination = "2001:db8::2";
    Bytes inner = inner_;
    inner[14 + 1] = 2;
    inner = with_right_checksums(inner);
    auto fragments = fragments_of(sealed_by(state_, inner), {512, 1024}, 7);
    Bytes& marked = fragments[1];
    marked[14 + 1] = static_cast<std::uint8_t>(marked[14 + 1] | (six ? 0x30 : 3));
    if (!six) marked = with_right_checksums(marked);
    const auto done = inwards(
        state_(), everything("fwd", tunnel_template(1, state_.source, state_.destination)))(arriving(fragments));
    inner[14 + 1] = 3;
    EXPECT_EQ(done[2], (Done{"forwarded", with_right_checksums(inner)})) << six;
  }
}

TEST_F(InboundFragments, OnTaggedLinksKeepTheirTag) {
  const Bytes inner =
      packet().eth().vlan(7).ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).payload(std::string(900, 'z')).bytes();
  const auto fragments = fragments_of(sealed_by(state_, inner), {512}, 7, 18);
  const auto done = inwards(state_(), kFwd)(arriving(fragments));
  EXPECT_EQ(done[1], (Done{"forwarded", inner}));
}

/// The largest datagram that ESP can carry: 65,535 bytes in the outer packet.
TEST_F(InboundFragments, MakeDatagramsOfAnySize) {
  std::size_t longest = 0;
  for (std::size_t payload = 65'400; payload <= 65'507; ++payload) {
    End out = outwards(state_(), everything("out", tunnel_template()));
    const Done sealed = out(plain(payload));
    if (sealed.fate != "forwarded") {
      EXPECT_EQ(sealed.fate, "too_long");
      continue;
    }
    if (payload % 16 != 0 && sealed.bytes.size() < 65'535 + 14 - 3) continue;
    longest = payload;
    std::vector<std::size_t> cuts;
    for (std::size_t cut = 1480; cut < sealed.bytes.size() - 34; cut += 1480) cuts.push_back(cut);
    const auto done = inwards(state_(), kFwd)(arriving(fragments_of(sealed.bytes, cuts, 7)));
    ASSERT_EQ(done.back(), (Done{"forwarded", plain(payload)})) << payload;
  }
  EXPECT_GT(longest, 65'440U);
}

//   [0..65,528]  [65,528..65,600]     no IP packet is so long
TEST_F(InboundFragments, ThatReachTooFarAreRefused) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512, 1024}, 7);
  Bytes beyond = fragments[2];
  beyond[14 + 6] = 0x1f, beyond[14 + 7] = 0xff;
  End in = inwards(state_(), kFwd);
  EXPECT_THAT(fates(in(arriving({fragments[0], fragments[1], with_right_checksums(beyond), fragments[2]}))),
              ElementsAre("consumed", "consumed", "fragment", "forwarded"));
}

//   [IPv6|fragment 0|fragment 0, more|ESP..]  [IPv6|fragment 512, of ESP|..]     nobody sends fragments in fragments
TEST_F(InboundFragments, InFragmentsAreRefused) {
  state_.source = "2001:db8::1";
  state_.destination = "2001:db8::2";
  End in = inwards(state_(), everything("fwd", tunnel_template(1, state_.source, state_.destination)));
  for (const Bytes& fragment : fragments_of(sealed_by(state_, inner_), {800}, 7)) {
    auto nested = fragments_of(fragment, {512}, fragment[14 + 40 + 3]);
    for (Bytes& one : nested) one[14 + 40] = ip_protocol::kEsp;  // as each says of itself; that of the first one counts
    nested[0][14 + 40] = ip_protocol::kFragment;
    std::swap(nested[0], nested[1]);
    EXPECT_THAT(fates(in(arriving(nested))), ElementsAre("consumed", "fragment"));
  }
}

TEST_F(InboundFragments, AreDroppedIfThereIsNoRoomForTheDatagram) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512}, 7);
  End in = inwards(state_(), kFwd);
  in.making->emitter.go_into(nullptr);
  EXPECT_THAT(fates(in(arriving(fragments))), ElementsAre("consumed", "no_room"));
  in.making->emitter.go_into(&in.making->emissions);
  EXPECT_THAT(fates(in(arriving(fragments))), ElementsAre("consumed", "forwarded")) << "the SA is not disturbed";
}

//   peer: whole datagrams in two fragments each; flood: first fragments of 200,000 datagrams from as many addresses
TEST_F(InboundFragments, OfOthersAreLimitedInMemoryAndLoseNothingOfAPeer) {
  const std::vector<Bytes> sealed = sealed_by(state_, std::vector<Bytes>(50, inner_));
  End in = inwards(state_(), kFwd);
  Bytes flood = fragments_of(sealed[0], {512}, 1)[0];
  std::uint32_t source = 0x0b000000;
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    const auto fragments = fragments_of(sealed[i], {512}, static_cast<std::uint32_t>(i));
    EXPECT_EQ(in(fragments[0]).fate, "consumed");
    std::vector<Arriving> batch;
    for (int n = 0; n < 4000; ++n) {
      ++source;
      for (unsigned byte = 0; byte < 4; ++byte)
        flood[14 + 12 + byte] = static_cast<std::uint8_t>(source >> (24 - 8 * byte));
      batch.emplace_back(with_right_checksums(flood));
    }
    for (const Done& done : in(batch)) ASSERT_THAT(done.fate, AnyOf("consumed", "no_room"));
    ASSERT_EQ(in(fragments[1]).fate, "forwarded") << i;
  }
}

//   [inner]  ─▶ out (mtu 600) ─▶ [ESP 0..]  [ESP ..]  [ESP ..end]  ─▶ in ─▶ [inner]
TEST_F(InboundFragments, OfOurOwnOutboundFunctionAreOpened) {
  Settings settings;
  settings.mtu = 600;
  for (const bool six : {false, true}) {
    if (six) state_.source = "2001:db8::1", state_.destination = "2001:db8::2";
    const std::string tunnel = tunnel_template(1, state_.source, state_.destination);
    End out = outwards(state_(), everything("out", tunnel), settings);
    End in = inwards(state_(), everything("fwd", tunnel));
    for (const std::size_t payload : {100U, 400U, 540U, 1200U, 3000U}) {
      const Bytes inner = plain(payload);
      const Done first = out(inner);
      if (first.fate == "too_big") continue;  // of IPv6, only packets of up to 1280 bytes are fragmented
      std::vector<Bytes> frames{first.bytes};
      function::Emissions& made = out.making->emissions;
      for (made.arrange(); !made.none_left();) {
        const PacketView next = made.take();
        frames.emplace_back(next.frame, next.frame + next.length());
      }
      EXPECT_EQ(frames.size() > 1, payload > 400) << payload;
      for (const Bytes& frame : frames) EXPECT_LE(frame.size(), 614U);
      const auto done = in(arriving(frames));
      EXPECT_EQ(done.back(), (Done{"forwarded", inner})) << payload;
    }
  }
}

/// For an SA with UDP encapsulation (RFC 3948).
class InboundUdpFragments : public InboundFragments {
 protected:
  InboundUdpFragments() { state_.more = kInUdp; }
};

//   [IP|UDP 4500|ESP 0..512]  [IP|512..1024]  [IP|1024..]       later fragments have no ports
TEST_F(InboundUdpFragments, WithEspAreOpened) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512, 1024}, 7);
  std::vector<std::size_t> order{0, 1, 2};
  do {
    End in = inwards(state_(), kFwd);
    const auto done = in(arriving({fragments[order[0]], fragments[order[1]], fragments[order[2]]}));
    EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "forwarded"));
    EXPECT_EQ(done[2].bytes, inner_);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(InboundUdpFragments, ToAnAddressWithoutSuchAnSaAreNoneOfOurs) {
  const auto fragments = fragments_of(sealed_by(state_, inner_), {512}, 7);
  state_.more.clear();
  End in = inwards(state_(), policy_text("src 10.0.0.0/8 dst 10.0.0.0/8", "fwd", tunnel_template()));
  EXPECT_THAT(fates(in(arriving(fragments))), ElementsAre("fragment", "forwarded")) << "the first one names port 4500";
}

//   first fragment to port 500, or to 4500 with the marker of IKE: no ESP. It and the others pass as they are
TEST_F(InboundUdpFragments, WithoutEspPassUnchanged) {
  End in = inwards(state_(), policy_text("src 10.0.0.0/8 dst 10.0.0.0/8", "fwd", tunnel_template()));
  for (const std::uint16_t port : {std::uint16_t{500}, std::uint16_t{4500}}) {
    const Bytes whole =
        packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(port, port).raw(Bytes(4)).raw(Bytes(1300, 'k')).bytes();
    ASSERT_EQ(in(whole).fate, "forwarded");
    const auto fragments = fragments_of(whole, {512, 1024}, port);
    for (const Bytes& fragment : fragments) EXPECT_EQ(in(fragment), (Done{"forwarded", fragment})) << port;
  }
}

//   [512..1024]  [0..512, port 500]  [1024..]    the first one comes too late to let the others pass: one packet
TEST_F(InboundUdpFragments, WithoutEspGoOnAsOnePacketIfAnotherComesBeforeTheFirst) {
  End in = inwards(state_(), policy_text("src 10.0.0.0/8 dst 10.0.0.0/8", "fwd", tunnel_template()));
  const Bytes whole = packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(500, 500).raw(Bytes(1300, 'k')).bytes();
  const auto fragments = fragments_of(whole, {512, 1024}, 0x1234);  // the identification of `whole`
  const auto done = in(arriving({fragments[1], fragments[0], fragments[2]}));
  EXPECT_THAT(fates(done), ElementsAre("consumed", "consumed", "forwarded"));
  EXPECT_EQ(done[2].bytes, whole);
  const auto again = in(arriving(fragments));
  EXPECT_EQ(again[2], (Done{"forwarded", fragments[2]})) << "the next datagram of the identification, in order";
}

TEST_F(InboundUdpFragments, ObeyThePoliciesForPacketsInTheClear) {
  End in = inwards(state_(), everything("fwd", tunnel_template()));
  const Bytes whole = packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(500, 500).raw(Bytes(1300, 'k')).bytes();
  const auto fragments = fragments_of(whole, {512, 1024}, 9);
  EXPECT_THAT(fates(in(arriving(fragments))), Each("not_protected"));
  EXPECT_THAT(fates(in(arriving(fragments_of(whole, {1024}, 10)))), Each("not_protected"));
  const auto others = fragments_of(whole, {512}, 11);
  EXPECT_THAT(fates(in(arriving({others[1], others[0]}))), ElementsAre("consumed", "not_protected"));
}

/// However a packet is fragmented, and in whatever order its fragments arrive, the result is that of the whole packet.
RC_GTEST_PROP(InboundFragmentsProperty, FareAsTheWholePacketDoes, ()) {
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  StateText state;
  const bool six = any(2) == 0;
  if (six) state.source = "2001:db8::1", state.destination = "2001:db8::2";
  if (any(2) == 0) state.mode = "transport";
  if (any(2) == 0) state.algorithms = kCbcSha1;
  if (!six && any(3) == 0) state.more = kInUdp;
  state.esn = any(2) == 0;
  const bool tunnel = state.mode == "tunnel";
  std::vector<Bytes> inner;
  for (std::size_t count = 1 + any(6); count > 0; --count) {
    const std::string payload(any(10) == 0 ? any(20'000) : any(3000), static_cast<char>('a' + count));
    auto builder = packet().eth();
    if (six) {
      builder.ipv6("2001:db8::1", "2001:db8::2");
    } else {
      builder.ipv4("192.0.2.1", "192.0.2.2");
    }
    inner.push_back(builder.udp(5, 6).payload(payload).bytes());
  }
  std::vector<Bytes> sealed = sealed_by(state, inner);
  // Some packets are not authentic, or belong to another SA.
  for (Bytes& frame : sealed) {
    if (any(5) == 0) frame[frame.size() - 1 - any(frame.size() - 60)] ^= 4;
  }
  const std::string policies =
      everything("fwd", tunnel ? tunnel_template(1, state.source, state.destination) : transport_template());
  End whole = inwards(state(), policies), cut = inwards(state(), policies);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    const std::size_t bytes = sealed[i].size() - (six ? 54 : 34);
    std::vector<std::size_t> cuts;
    for (std::size_t at = 8 + 8 * any(std::min<std::size_t>(200, bytes / 8 - 1)); at < bytes; at += 8 + 8 * any(200)) {
      cuts.push_back(at);
    }
    // Like the datagram's, so that what transport mode keeps of the header is the same.
    auto fragments = fragments_of(sealed[i], cuts, static_cast<std::uint32_t>(sealed[i][18] << 8 | sealed[i][19]));
    std::shuffle(fragments.begin(), fragments.end(), random);
    const auto expected = whole(sealed[i]);
    const auto done = cut(arriving(fragments));
    for (std::size_t n = 0; n + 1 < done.size(); ++n) RC_ASSERT(done[n].fate == "consumed");
    RC_ASSERT(done.back().fate == expected.fate);
    if (expected.fate == "forwarded") RC_ASSERT(done.back().bytes == expected.bytes);
  }
  RC_ASSERT(whole.state().window.top() == cut.state().window.top());
}

}  // namespace
}  // namespace penstock::ipsec
