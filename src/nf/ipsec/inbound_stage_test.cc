// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The inbound CPU stage: what it opens and forwards, and why it drops the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/ipsec_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::packet;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;

const std::string kFwd = everything("fwd", tunnel_template());

/// `count` packets of one SA, numbered after `state.sent`.
std::vector<Arriving> sealed_by(const StateText& state, std::size_t count = 1) {
  const bool tunnel = state.mode == "tunnel";
  End out = outwards(state(), everything("out", tunnel ? tunnel_template(state.reqid, state.source, state.destination)
                                                       : transport_template(state.reqid)));
  std::vector<Arriving> batch(count, plain(40));
  const auto done = out(batch);
  EXPECT_THAT(fates(done), Each("forwarded"));
  return forwarded(done);
}

StateText sent(std::uint64_t number) {
  StateText state;
  state.sent = number;
  return state;
}

TEST(InboundStage, RefusesEveryTamperedByte) {
  for (const bool esn : {false, true}) {
    for (const std::string& algorithms : {kGcm, kCbcSha1}) {
      StateText state = sent(6);
      state.esn = esn;
      state.algorithms = algorithms;
      const Bytes good = sealed_by(state).front().bytes;
      End in = inwards(state(), kFwd);
      for (std::size_t at = kEspAt; at < good.size(); ++at) {
        for (const std::uint8_t bit : {std::uint8_t{1}, std::uint8_t{0x80}}) {
          Bytes bad = good;
          bad[at] ^= bit;
          const std::string expected = at < kEspAt + 4 ? "wrong_spi" : "integrity";
          ASSERT_EQ(in(bad).fate, expected) << "byte " << at - kEspAt << " of " << algorithms;
        }
      }
      EXPECT_EQ(in.state().window.top(), 0U) << "none of them moved the window";
      EXPECT_EQ(in(good), (Done{"forwarded", plain(40)}));
      EXPECT_EQ(in.state().refused(), (good.size() - kEspAt - 4) * 2);
    }
  }
}

TEST(InboundStage, RefusesTamperedPacketsAmongGoodOnes) {
  std::vector<Arriving> batch = sealed_by({}, 300);
  for (std::size_t i = 0; i < batch.size(); i += 3) batch[i].bytes[60] ^= 4;
  End in = inwards(StateText()(), kFwd);
  const auto opened = in(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(opened[i].fate, i % 3 == 0 ? "integrity" : "forwarded") << i;
    if (i % 3 != 0) {
      ASSERT_EQ(opened[i].bytes, plain(40));
    }
  }
}

TEST(InboundStage, RefusesWhatWasReceivedBefore) {
  const std::vector<Arriving> all = sealed_by({}, 200);
  End in = inwards(StateText()(), kFwd);
  EXPECT_THAT(fates(in({all[0], all[0], all[1], all[0]})),
              ElementsAre("forwarded", "replayed", "forwarded", "replayed"))
      << "in the same burst";
  EXPECT_EQ(in(all[1]).fate, "replayed") << "in a later batch";
  const auto second_worker = in.function->make_cpu_stage();
  EXPECT_THAT(fates(run(*second_worker, *in.function, {all[0], all[1], all[2]})),
              ElementsAre("replayed", "replayed", "forwarded"))
      << "by another worker";
  EXPECT_EQ(in(all[150]).fate, "forwarded");
  EXPECT_EQ(in(all[150 - 64]).fate, "too_old");
  EXPECT_EQ(in(all[150 - 63]).fate, "forwarded") << "the window's last number";
  EXPECT_EQ(in(all[150 - 63]).fate, "replayed");
  nlohmann::json report;
  in.function->report(report);
  EXPECT_EQ(report["sas"][0]["packets"], 5U) << "of both workers";
}

TEST(InboundStage, WithoutAWindowNothingIsReplayed) {
  StateText state;
  state.window = 0;
  std::string text = state();
  const std::size_t context = text.find("\tanti-replay");
  text = text.substr(0, context) + "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n";
  const std::vector<Arriving> all = sealed_by({}, 100);
  End in = inwards(text, kFwd);
  EXPECT_THAT(fates(in({all[99], all[0], all[0]})), Each("forwarded"));
}

/// The steps of other implementations' tests: each packet is sealed with its full number and opened by the whole stage.
TEST(InboundStage, TakesOfOtherImplementationsTestsAsManyPacketsAsTheySay) {
  const char* const corpus = std::getenv("PENSTOCK_CORPUS");
  const std::string root = corpus != nullptr ? corpus : PENSTOCK_SOURCE_DIR "/../shared/data";
  std::ifstream file(root + "/ipsec/replay_sequences.json");
  if (!file) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  const nlohmann::json sequences = nlohmann::json::parse(file);
  std::size_t steps = 0;
  for (const auto& sequence : sequences["sequences"]) {
    SCOPED_TRACE(sequence["name"].get<std::string>());
    const auto window = sequence["window"].get<std::uint32_t>();
    StateText state;
    state.esn = sequence["esn"];
    const auto text_of = [&](std::uint64_t top) {
      // The kernel's bit for the last received number is at (number - 1) modulo the window.
      const std::uint32_t count = std::max((window + 31) / 32, 1U);
      std::vector<std::uint32_t> ring(count);
      if (top != 0 && window != 0) {
        const std::uint32_t bit = (static_cast<std::uint32_t>(top) - 1) % window;
        ring[bit / 32] |= 1U << bit % 32;
      }
      std::string words;
      for (std::size_t i = count; i > 0; --i) words += fmt::format("{:08x} ", ring[i - 1]);
      state.received = top;
      std::string text = state();
      const std::string blank = "replay_window 64, bitmap-length 2\n\t 00000000 00000000 \n";
      text.replace(text.find(blank), blank.size(),
                   fmt::format("replay_window {}, bitmap-length {}\n\t {}\n", window, count, words));
      return text;
    };
    auto in = std::make_unique<End>(inwards(text_of(0), kFwd));
    for (const auto& step : sequence["steps"]) {
      if (step.contains("set_rx_top")) in = std::make_unique<End>(inwards(text_of(step["set_rx_top"]), kFwd));
      if (!step.contains("seqs") || (step.contains("only_if_window") && step["only_if_window"] != window)) continue;
      std::vector<Arriving> batch;
      for (const std::uint64_t number : step["seqs"]) {
        // Sealed by the portable core, not by the library that the stage uses.
        RoomyFrame frame(plain());
        const SaView& sa = in->function->tables().selection().sas().front();
        const Encapsulation plan = plan_encapsulation(frame.view, sa, frame.room());
        const CryptoJob job = encapsulate(frame.view, sa, 0, plan, number);
        seal(job, in->function->tables().keys().keys().front(), frame.base());
        batch.emplace_back(frame.bytes());
        if (step.value("bad_icv", false)) batch.back().bytes.back() ^= 1;
      }
      const auto opened = fates((*in)(batch));
      EXPECT_EQ(static_cast<std::size_t>(std::count(opened.begin(), opened.end(), "forwarded")),
                step["accepted"].get<std::size_t>())
          << step.dump();
      ++steps;
    }
  }
  EXPECT_GT(steps, 100U);
}

TEST(InboundStage, EspForUnknownSpisIsDroppedOnlyWhereItIsForUs) {
  End in = inwards(StateText()(), kFwd);
  StateText unknown;
  unknown.spi = 0x9999;
  EXPECT_EQ(in(sealed_by(unknown).front()).fate, "wrong_spi");
  StateText others = unknown;
  others.destination = "192.0.2.77";
  const Arriving passing = sealed_by(others).front();
  EXPECT_EQ(in(passing).fate, "not_protected") << "it goes on as any other packet: what selects it wants it protected";
  const std::string some = policy_text("src 10.0.0.0/8 dst 10.0.0.0/8", "fwd", tunnel_template());
  End gateway = inwards(StateText()(), some);
  EXPECT_EQ(gateway(passing), (Done{"forwarded", passing.bytes}));
  EXPECT_EQ(gateway(sealed_by(unknown).front()).fate, "wrong_spi");
  EXPECT_EQ(gateway.explain(sealed_by(unknown).front()), "wrong_spi");
  EXPECT_EQ(gateway.explain(passing), "in the clear");
  EXPECT_EQ(gateway.explain(sealed_by(StateText()).front()),
            "SA 0x00001000 from 192.0.2.1 to 192.0.2.2, sequence number 1");
  EXPECT_EQ(gateway(sealed_by(StateText()).front()).fate, "forwarded") << "explaining it took no number";
}

TEST(InboundStage, RefusesWhatIsCutOrTooShort) {
  const Bytes good = sealed_by(StateText()).front().bytes;
  const auto whole = static_cast<std::uint32_t>(good.size());
  for (std::size_t bytes = kEspAt; bytes < good.size(); ++bytes) {
    End in = inwards(StateText()(), kFwd);
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
    ASSERT_EQ(in(Arriving(cut, LinkType::ethernet, whole)).fate, "truncated") << bytes;
    // Or the packet itself claims to be that short.
    Bytes shorter = cut;
    shorter[14 + 2] = static_cast<std::uint8_t>((bytes - 14) >> 8);
    shorter[14 + 3] = static_cast<std::uint8_t>(bytes - 14);
    ASSERT_THAT(in(shorter).fate, AnyOf("malformed", "integrity")) << bytes;
    if ((good.size() - bytes) % 4 != 0) {
      ASSERT_EQ(in(shorter).fate, "malformed") << bytes;
    }
    ASSERT_EQ(in(good).fate, "forwarded") << "and the good one is not disturbed";
  }
}

TEST(InboundStage, TakesUdpEncapsulationAsTheSaHasIt) {
  StateText in_udp;
  in_udp.more = kInUdp;
  StateText bare = in_udp;
  bare.more = "";
  const Arriving udp = sealed_by(in_udp).front();
  const Arriving no_udp = sealed_by(bare).front();
  EXPECT_EQ(inwards(in_udp(), kFwd)(udp), (Done{"forwarded", plain(40)}));
  EXPECT_EQ(inwards(in_udp(), kFwd)(no_udp).fate, "encapsulation");
  EXPECT_EQ(inwards(bare(), kFwd)(no_udp), (Done{"forwarded", plain(40)}));
  EXPECT_EQ(inwards(bare(), kFwd)(udp).fate, "encapsulation");

  const std::string some = policy_text("src 10.0.0.0/8 dst 10.0.0.0/8", "fwd", tunnel_template());
  End in = inwards(in_udp(), some);
  const auto to_port_4500 = [](const Bytes& payload, const char* to) {
    return packet().eth().ipv4("192.0.2.1", to).udp(4500, 4500).raw(payload).bytes();
  };
  EXPECT_EQ(in(to_port_4500({0xff}, "192.0.2.2")).fate, "keepalive");
  EXPECT_EQ(in(to_port_4500({0xff}, "192.0.2.3")).fate, "forwarded") << "somebody else's";
  const Bytes ike = to_port_4500(Bytes(40, 0), "192.0.2.2");
  EXPECT_EQ(in(ike), (Done{"forwarded", ike})) << "behind the non-ESP marker";
  EXPECT_EQ(in(to_port_4500(Bytes(40, 1), "192.0.2.2")).fate, "wrong_spi");
  const Bytes elsewhere = packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(4500, 4501).raw(Bytes(40, 1)).bytes();
  EXPECT_EQ(in(elsewhere).fate, "forwarded");
}

/// ESP around arbitrary text, with the SA's keys.
Bytes around(const End& end, const Bytes& text, std::uint32_t sequence, std::uint8_t tos = 0) {
  const SaView& sa = end.function->tables().selection().sas().front();
  Bytes body(8 + sa.iv_bytes);
  body.insert(body.end(), text.begin(), text.end());
  body.resize(body.size() + sa.icv_bytes);
  Bytes frame = packet().eth().ipv4("192.0.2.1", "192.0.2.2").protocol(ip_protocol::kEsp).raw(body).bytes();
  frame[14 + 1] = tos;
  for (unsigned i = 0; i < 4; ++i) {
    frame[kEspAt + i] = static_cast<std::uint8_t>(sa.spi >> (24 - 8 * i));
    frame[kEspAt + 4 + i] = static_cast<std::uint8_t>(sequence >> (24 - 8 * i));
  }
  CryptoJob job;
  job.sequence = sequence;
  job.sa = 0;
  job.esp = kEspAt;
  job.text_bytes = static_cast<std::uint32_t>(text.size());
  job.iv_bytes = sa.iv_bytes;
  job.icv_bytes = sa.icv_bytes;
  seal(job, end.function->tables().keys().keys().front(), frame.data());
  return frame;
}

/// An IP packet as an ESP text: padded to a multiple of 4, with this next header and these final bytes.
Bytes text_of(const Bytes& frame, std::uint8_t next_header) {
  Bytes text(frame.begin() + 14, frame.end());
  std::uint8_t padding = 0;
  while ((text.size() + 2) % 4 != 0) text.push_back(++padding);
  text.push_back(padding);
  text.push_back(next_header);
  return text;
}

TEST(InboundStage, DropsWhatAnAuthenticPacketMustNotCarry) {
  End in = inwards(StateText()(), kFwd);
  std::uint32_t number = 0;
  EXPECT_EQ(in(around(in, text_of(plain(), 4), ++number)).fate, "forwarded") << "this test can seal";
  EXPECT_EQ(in(around(in, Bytes{1, 2, 3, 4, 5, 6, 6, 59}, ++number)).fate, "dummy");
  EXPECT_EQ(in(around(in, text_of(plain(), 41), ++number)).fate, "malformed") << "IPv4 is not IPv6";
  EXPECT_EQ(in(around(in, text_of(plain(), 6), ++number)).fate, "next_header") << "TCP is for transport mode";
  EXPECT_EQ(in(around(in, Bytes{9, 9, 9, 9, 9, 9, 200, 4}, ++number)).fate, "padding") << "longer than the text";
  Bytes wrong = text_of(plain(4), 4);  // 32 bytes, two of padding
  ASSERT_EQ(wrong[wrong.size() - 2], 2);
  wrong[wrong.size() - 3] = 7;
  EXPECT_EQ(in(around(in, wrong, ++number)).fate, "padding");
  Bytes too_long = text_of(plain(), 4);
  too_long[3] = 200;
  EXPECT_EQ(in(around(in, too_long, ++number)).fate, "malformed");
  EXPECT_EQ(in(around(in, text_of(plain(), 4), ++number, 3)).fate, "ecn") << "congestion, and inside Not-ECT";
  EXPECT_EQ(in(around(in, text_of(plain(), 4), number)).fate, "replayed") << "authentic, so its number was taken";
}

// Policies.

Bytes clear(const std::string& source) { return packet().eth().ipv4(source, "10.2.0.2").udp(1, 2).bytes(); }

TEST(InboundStage, PoliciesSayWhatMayComeInTheClear) {
  End in = inwards(StateText()(), policy_text("src 10.1.0.0/16 dst 10.2.0.0/16", "fwd", tunnel_template(), 50) +
                                      policy_text("src 10.1.8.0/24 dst 10.2.0.0/16", "fwd", "", 10) +
                                      policy_text("src 10.1.9.0/24 dst 10.2.0.0/16", "fwd action block", "", 20) +
                                      policy_text("src 10.3.0.0/16 dst 10.2.0.0/16", "in", tunnel_template(), 10) +
                                      policy_text("src 10.4.0.0/16 dst 10.2.0.0/16", "out", tunnel_template(), 10) +
                                      policy_text("src 10.5.0.0/16 dst 10.2.0.0/16", "fwd",
                                                  tunnel_template(1, "192.0.2.1", "192.0.2.2", "\n\t\tlevel use"), 10));
  EXPECT_EQ(in(clear("10.1.0.1")).fate, "not_protected");
  EXPECT_EQ(in(clear("10.1.8.1")), (Done{"forwarded", clear("10.1.8.1")}));
  EXPECT_EQ(in(clear("10.1.9.1")).fate, "blocked");
  EXPECT_EQ(in(clear("10.3.0.1")).fate, "not_protected");
  EXPECT_EQ(in(clear("10.4.0.1")).fate, "forwarded") << "a policy of the way out";
  EXPECT_EQ(in(clear("10.5.0.1")).fate, "forwarded") << "optional";
  EXPECT_EQ(in(clear("10.9.0.1")).fate, "forwarded") << "no policy";
  Bytes damaged = clear("10.9.0.1");
  damaged[14] = 0x41;
  EXPECT_EQ(in(damaged).fate, "malformed");
}

TEST(InboundStage, PoliciesSayWhatAnSaMayBring) {
  const auto by_tunnel = [](const std::string& source, const std::string& policies, const StateText& state = {}) {
    End in = inwards(state(), policies);
    return in(around(in, text_of(clear(source), 4), 1)).fate;
  };
  const std::string lans = "src 10.1.0.0/16 dst 10.2.0.0/16";
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd", tunnel_template())), "forwarded");
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "in", tunnel_template())), "forwarded");
  EXPECT_EQ(by_tunnel("10.9.0.1", policy_text(lans, "fwd", tunnel_template())), "no_policy");
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "out", tunnel_template())), "no_policy");
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd")), "policy_mismatch") << "a bypass asks for no tunnel";
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd action block")), "blocked");
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd", tunnel_template(2))), "policy_mismatch") << "another reqid";
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd", tunnel_template(1, "192.0.2.9"))), "policy_mismatch")
      << "another gateway";
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd", transport_template())), "policy_mismatch");
  StateText selective;
  selective.more = "\tsel src 10.1.0.0/24 dst 10.2.0.0/16 \n";
  EXPECT_EQ(by_tunnel("10.1.0.1", policy_text(lans, "fwd", tunnel_template()), selective), "forwarded");
  EXPECT_EQ(by_tunnel("10.1.1.1", policy_text(lans, "fwd", tunnel_template()), selective), "policy_mismatch");
}

TEST(InboundStage, WithoutPoliciesTheSelectorsOfTheSasDecide) {
  StateText selective;
  selective.more = "\tsel src 10.1.0.0/24 dst 10.2.0.0/16 proto udp \n";
  End in = inwards(selective());
  std::uint32_t number = 0;
  EXPECT_EQ(in(around(in, text_of(clear("10.1.0.1"), 4), ++number)), (Done{"forwarded", clear("10.1.0.1")}));
  EXPECT_EQ(in(around(in, text_of(clear("10.1.1.1"), 4), ++number)).fate, "policy_mismatch");
  EXPECT_EQ(in(around(in, text_of(packet().eth().ipv4("10.1.0.1", "10.2.0.2").icmp(8).bytes(), 4), ++number)).fate,
            "policy_mismatch");
  EXPECT_EQ(in(clear("10.1.1.1")).fate, "forwarded") << "in the clear";
}

TEST(InboundStage, WhatTransportModeBringsMustBeAllowedToo) {
  StateText state;
  state.source = "10.1.0.1";
  state.destination = "10.2.0.2";
  state.mode = "transport";
  const std::string hosts = "src 10.1.0.1/32 dst 10.2.0.2/32";
  const Arriving arriving = sealed_by(state).front();
  EXPECT_EQ(inwards(state(), policy_text(hosts, "in", transport_template()))(arriving), (Done{"forwarded", plain(40)}));
  EXPECT_EQ(inwards(state(), policy_text(hosts, "in", transport_template(9)))(arriving).fate, "policy_mismatch");
  EXPECT_EQ(inwards(state(), policy_text(hosts, "in", tunnel_template()))(arriving).fate, "policy_mismatch");
  EXPECT_EQ(inwards(state(), policy_text(hosts + " proto tcp", "in", transport_template()))(arriving).fate, "forwarded")
      << "no policy: as Linux has it, only tunnels need one";
}

TEST(InboundStage, HardLimitEndsTheSa) {
  StateText state;
  state.more = limited("soft 1(packets), hard 2(packets)");
  StateText sender;
  const auto all = sealed_by(sender, 4);
  End in = inwards(state(), kFwd);
  EXPECT_THAT(fates(in(all)), ElementsAre("forwarded", "forwarded", "lifetime", "lifetime"));
  EXPECT_EQ(in(sealed_by(sent(10)).front()).fate, "lifetime");
  nlohmann::json report;
  in.function->report(report);
  EXPECT_EQ(report["sas"][0]["hard"], "packets");
  EXPECT_EQ(report["sas"][0]["packets"], 2);
}

}  // namespace
}  // namespace penstock::ipsec
