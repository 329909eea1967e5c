// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The outbound CPU stage: which packets use which SA, with which number, and which are dropped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/reasons.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::packet;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string report_of(const End& end, const char* member) {
  nlohmann::json report;
  end.function->report(report);
  const nlohmann::json& sa = report["sas"].at(0);
  return sa.contains(member) ? sa[member].dump() : "";
}

/// The port selects the SA: 1000 that with SPI 0x1000, all others that with 0x2000.
End two_sas() {
  StateText other;
  other.spi = 0x2000;
  other.reqid = 2;
  return outwards(StateText()() + other(),
                  policy_text("src 0.0.0.0/0 dst 0.0.0.0/0 proto udp dport 1000", "out", tunnel_template(1), 1) +
                      policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", "out", tunnel_template(2), 2));
}

/// Each SA's numbers follow packet order without a gap.
void expect_consecutive(const std::vector<Done>& sealed, std::map<std::uint32_t, std::uint32_t>& last) {
  for (const Done& done : sealed) {
    ASSERT_EQ(done.fate, "forwarded");
    ASSERT_EQ(sequence_of(done.bytes), ++last[spi_of(done.bytes)]);
  }
}

TEST(OutboundStage, NumbersThePacketsOfEachSaInTheirOrder) {
  End out = two_sas();
  std::map<std::uint32_t, std::uint32_t> last;
  // More than a burst, in runs of one packet, of several, and of more than a burst.
  std::vector<Arriving> batch;
  for (int i = 0; i < 100; ++i) batch.emplace_back(plain(20, i % 2 == 0 ? 1000 : 2000));
  for (int i = 0; i < 100; ++i) batch.emplace_back(plain(20, i % 7 < 3 ? 1000 : 2000));
  for (int i = 0; i < 300; ++i) batch.emplace_back(plain(20, 1000));
  ASSERT_NO_FATAL_FAILURE(expect_consecutive(out(batch), last));
  ASSERT_NO_FATAL_FAILURE(expect_consecutive(out(batch), last)) << "the next batch goes on";
  const auto second_worker = out.function->make_cpu_stage();
  ASSERT_NO_FATAL_FAILURE(expect_consecutive(run(*second_worker, *out.function, batch), last));
  ASSERT_NO_FATAL_FAILURE(expect_consecutive(out(batch), last)) << "and the first worker behind the second";
  EXPECT_EQ(last[0x1000] + last[0x2000], 4 * batch.size());
}

TEST(OutboundStage, PacketsThatAreNotProtectedTakeNoNumber) {
  End out = outwards(StateText()(), policy_text("src 10.1.0.0/16 dst 0.0.0.0/0", "out", tunnel_template()));
  const Bytes elsewhere = packet().eth().ipv4("10.9.0.1", "10.2.0.2").udp(1, 2).bytes();
  const auto sealed = out({plain(), elsewhere, plain(), elsewhere, plain()});
  EXPECT_EQ(sequence_of(sealed[0].bytes), 1U);
  EXPECT_EQ(sealed[1], (Done{"forwarded", elsewhere}));
  EXPECT_EQ(sequence_of(sealed[2].bytes), 2U);
  EXPECT_EQ(sequence_of(sealed[4].bytes), 3U);
}

TEST(OutboundStage, WorkersUseEachNumberOnce) {
  for (const unsigned workers : {2U, 4U}) {
    End out = two_sas();
    constexpr int kBatches = 30;
    std::vector<std::vector<Done>> sealed(workers);
    {
      std::atomic<unsigned> ready = 0;
      std::vector<std::jthread> threads;
      for (unsigned w = 0; w < workers; ++w) {
        threads.emplace_back([&, w] {
          const auto stage = out.function->make_cpu_stage();
          std::vector<Arriving> batch;
          for (int i = 0; i < 150; ++i) batch.emplace_back(plain(w, i % 5 < 3 ? 1000 : 2000));
          for (++ready; ready < workers;) std::this_thread::yield();
          for (int b = 0; b < kBatches; ++b) {
            for (Done& done : run(*stage, *out.function, batch)) sealed[w].push_back(std::move(done));
          }
        });
      }
    }
    std::map<std::uint32_t, std::set<std::uint32_t>> numbers;
    for (const auto& of_worker : sealed) {
      std::map<std::uint32_t, std::uint32_t> last;
      for (const Done& done : of_worker) {
        ASSERT_EQ(done.fate, "forwarded");
        const std::uint32_t number = sequence_of(done.bytes);
        ASSERT_TRUE(numbers[spi_of(done.bytes)].insert(number).second) << number;
        ASSERT_GT(number, last[spi_of(done.bytes)]) << "a worker's own packets are in order";
        last[spi_of(done.bytes)] = number;
      }
    }
    EXPECT_EQ(numbers[0x1000].size(), workers * kBatches * 90U);
    EXPECT_EQ(*numbers[0x1000].rbegin(), workers * kBatches * 90U) << "without a gap";
    EXPECT_EQ(*numbers[0x2000].rbegin(), workers * kBatches * 60U);
    // The receiver finds all of them authentic.
    StateText first, second;
    second.spi = 0x2000;
    second.reqid = 2;
    first.window = second.window = 4096;
    End in = inwards(first() + second());
    std::vector<Arriving> all;
    for (const auto& of_worker : sealed) {
      for (const Done& done : of_worker) all.emplace_back(done.bytes);
    }
    std::sort(all.begin(), all.end(),
              [](const Arriving& a, const Arriving& b) { return sequence_of(a.bytes) < sequence_of(b.bytes); });
    EXPECT_THAT(fates(in(all)), Each("forwarded"));
  }
}

TEST(OutboundStage, WithoutNumbersDropsAndNeverBeginsAnew) {
  StateText state;
  state.sent = 0xffff'fffe;
  End out = outwards(state(), everything("out", tunnel_template()));
  const auto sealed = out({plain(), plain(), plain()});
  EXPECT_THAT(fates(sealed), ElementsAre("forwarded", "sequence_exhausted", "sequence_exhausted"));
  EXPECT_EQ(sequence_of(sealed[0].bytes), 0xffff'ffffU);
  EXPECT_THAT(fates(out(std::vector<Arriving>(3, plain()))), Each("sequence_exhausted"));
  EXPECT_THAT(out.explain(plain()), HasSubstr("sequence_exhausted"));
  EXPECT_EQ(report_of(out, "hard"), "\"sequence numbers\"");
  EXPECT_EQ(report_of(out, "sent"), "4294967295");
}

TEST(OutboundStage, EsnGoesOnOverTheLowerHalf) {
  StateText state;
  state.sent = 0xffff'fffe;
  state.esn = true;
  End out = outwards(state(), everything("out", tunnel_template()));
  const auto sealed = out({plain(), plain(), plain()});
  ASSERT_THAT(fates(sealed), Each("forwarded"));
  EXPECT_EQ(sequence_of(sealed[0].bytes), 0xffff'ffffU);
  EXPECT_EQ(sequence_of(sealed[1].bytes), 0U);
  EXPECT_EQ(sequence_of(sealed[2].bytes), 1U);
  EXPECT_EQ(report_of(out, "sent"), "4294967297");

  state.sent = ~std::uint64_t{0} - 1;
  End last = outwards(state(), everything("out", tunnel_template()));
  EXPECT_THAT(fates(last({plain(), plain()})), ElementsAre("forwarded", "sequence_exhausted"));
}

TEST(OutboundStage, WrapsWhereTheSaMay) {
  StateText state;
  state.sent = 0xffff'fffe;
  state.flags = "extra_flag oseq-may-wrap";
  End out = outwards(state(), everything("out", tunnel_template()));
  const auto sealed = out({plain(), plain()});
  ASSERT_THAT(fates(sealed), Each("forwarded"));
  EXPECT_EQ(sequence_of(sealed[1].bytes), 0U);
}

TEST(OutboundStage, IvsAreNeverTheSame) {
  End out = outwards(StateText()(), everything("out", tunnel_template()));
  std::set<Bytes> ivs;
  for (const Done& done : out(std::vector<Arriving>(500, plain()))) {
    ivs.insert(Bytes(done.bytes.begin() + kEspAt + 8, done.bytes.begin() + kEspAt + 16));
  }
  EXPECT_EQ(ivs.size(), 500U);
}

TEST(OutboundStage, HardLimitOfPacketsEndsTheSa) {
  StateText state;
  state.more = limited("soft 3(packets), hard 5(packets)");
  End out = outwards(state(), everything("out", tunnel_template()));
  EXPECT_THAT(fates(out({plain(), plain()})), Each("forwarded"));
  EXPECT_EQ(report_of(out, "soft"), "");
  EXPECT_THAT(out(plain()).fate, "forwarded");
  EXPECT_EQ(report_of(out, "soft"), "\"packets\"");
  EXPECT_EQ(report_of(out, "hard"), "");
  EXPECT_THAT(fates(out(std::vector<Arriving>(4, plain()))),
              ElementsAre("forwarded", "forwarded", "lifetime", "lifetime"));
  EXPECT_EQ(report_of(out, "hard"), "\"packets\"");
  EXPECT_EQ(report_of(out, "packets"), "5");
  EXPECT_EQ(out(plain()).fate, "lifetime");
}

TEST(OutboundStage, HardLimitOfBytesEndsTheSa) {
  StateText state;
  // 33 bytes each: the third packet reaches the limit and still passes.
  state.more = limited(kNoLimit, "soft 34(bytes), hard 99(bytes)");
  End out = outwards(state(), everything("out", tunnel_template()));
  EXPECT_THAT(fates(out(std::vector<Arriving>(5, plain()))),
              ElementsAre("forwarded", "forwarded", "forwarded", "lifetime", "lifetime"));
  EXPECT_EQ(report_of(out, "soft"), "\"bytes\"");
  EXPECT_EQ(report_of(out, "hard"), "\"bytes\"");
  EXPECT_EQ(report_of(out, "bytes"), "99");
}

TEST(OutboundStage, TimeEndsTheSa) {
  StateText state;
  state.more =
      limited(kNoLimit, "soft (INF)(bytes), hard (INF)(bytes)", "2001-01-01 00:00:00", "soft 30(sec), hard 60(sec)");
  End out = outwards(state(), everything("out", tunnel_template()));
  EXPECT_EQ(out(plain()).fate, "lifetime");
  EXPECT_EQ(report_of(out, "hard"), "\"seconds since it was added\"");
  state.more = limited(kNoLimit, "soft (INF)(bytes), hard (INF)(bytes)", "2001-01-01 00:00:00",
                       "soft 30(sec), hard 9000000000(sec)");
  End dying = outwards(state(), everything("out", tunnel_template()));
  EXPECT_EQ(dying(plain()).fate, "forwarded") << "a soft limit only warns";
  EXPECT_EQ(report_of(dying, "soft"), "\"seconds since it was added\"");
}

/// RFC 4301 §4.4.2.1, and how IKE replaces SAs: the successor is installed before its predecessor is removed.
class MakeBeforeBreak : public ::testing::Test {
 protected:
  MakeBeforeBreak() {
    older_.more = limited(kNoLimit);
    newer_.spi = 0x2000;
    newer_.more = limited("soft (INF)(packets), hard 200(packets)", "soft (INF)(bytes), hard (INF)(bytes)",
                          "2001-01-01 01:00:00");
  }
  StateText older_, newer_;
};

TEST_F(MakeBeforeBreak, NewerIsUsedAndTheOlderWhenTheNewerHasEnded) {
  for (const std::string& states : {older_() + newer_(), newer_() + older_()}) {
    End out = outwards(states, everything("out", tunnel_template()));
    for (const Done& done : out(std::vector<Arriving>(200, plain()))) {
      ASSERT_EQ(done.fate, "forwarded");
      ASSERT_EQ(spi_of(done.bytes), 0x2000U);
    }
    const auto later = out(std::vector<Arriving>(10, plain()));
    EXPECT_THAT(fates(later), Each("forwarded"));
    for (const Done& done : later) EXPECT_EQ(spi_of(done.bytes), 0x1000U);
  }
}

///     one burst    1 … 5    6 … 12
///                  newer    older
TEST_F(MakeBeforeBreak, TakesOverInsideABurstInThePacketsOrder) {
  newer_.more =
      limited("soft (INF)(packets), hard 5(packets)", "soft (INF)(bytes), hard (INF)(bytes)", "2001-01-01 01:00:00");
  End out = outwards(older_() + newer_(), everything("out", tunnel_template()));
  const auto burst = out(std::vector<Arriving>(12, plain()));
  std::vector<std::uint32_t> spis;
  std::vector<std::uint32_t> numbers;
  for (const Done& done : burst) {
    ASSERT_EQ(done.fate, "forwarded");
    spis.push_back(spi_of(done.bytes));
    numbers.push_back(sequence_of(done.bytes));
  }
  EXPECT_THAT(spis, ElementsAre(0x2000, 0x2000, 0x2000, 0x2000, 0x2000, 0x1000, 0x1000, 0x1000, 0x1000, 0x1000, 0x1000,
                                0x1000));
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(out.state(1).hard(), SaState::Limit::packets);
}

TEST_F(MakeBeforeBreak, PassesThroughSeveralThatEndInsideABurst) {
  const auto ends_after = [](unsigned packets) {
    return limited("soft (INF)(packets), hard " + std::to_string(packets) + "(packets)");
  };
  older_.more = ends_after(3);
  newer_.more = ends_after(2);
  End out = outwards(older_() + newer_(), everything("out", tunnel_template()));
  EXPECT_THAT(fates(out(std::vector<Arriving>(7, plain()))),
              ElementsAre("forwarded", "forwarded", "forwarded", "forwarded", "forwarded", "lifetime", "lifetime"));
  EXPECT_THAT(fates(out(std::vector<Arriving>(2, plain()))), Each("lifetime"));
}

/// Verdicts on packets that return from a device on which an SA protected them.
std::vector<std::string> come_back(End& end, std::uint32_t sa, std::size_t packets) {
  const auto finish = end.function->make_finish_stage(*end.stage);
  const OutboundFinding finding{sa, 33};
  std::vector<PacketDescriptor> descriptors(packets);
  std::vector<PacketView> views;
  for (PacketDescriptor& packet : descriptors) views.push_back({nullptr, &packet});
  const std::vector<const std::byte*> findings(packets, reinterpret_cast<const std::byte*>(&finding));
  finish->finish(views, findings);
  std::vector<std::string> fates;
  for (const PacketDescriptor& packet : descriptors) {
    fates.emplace_back(packet.verdict.alive() ? "forwarded" : kReasons[packet.verdict.value]);
  }
  return fates;
}

TEST_F(MakeBeforeBreak, TakesOverBeforeWhatIsOnADeviceReachesAHardLimit) {
  End out = outwards(older_() + newer_(), everything("out", tunnel_template()));
  out.function->tables().states()[1]->expect_in_flight(50);
  EXPECT_THAT(come_back(out, 1, 100), Each("forwarded"));
  EXPECT_EQ(spi_of(out(plain()).bytes), 0x2000U) << "100 of 200 are left: what is in flight, twice";
  EXPECT_EQ(spi_of(out(plain()).bytes), 0x1000U);
  EXPECT_THAT(come_back(out, 1, 99), Each("forwarded")) << "what was in flight";
  EXPECT_THAT(come_back(out, 1, 2), Each("lifetime"));
}

TEST_F(MakeBeforeBreak, PacketsThatADeviceProtectedInTimeGoOn) {
  older_.more =
      limited(kNoLimit, "soft (INF)(bytes), hard (INF)(bytes)", "2001-01-01 00:00:00", "soft 0(sec), hard 60(sec)");
  End out = outwards(older_(), everything("out", tunnel_template()));
  EXPECT_EQ(out(plain()).fate, "lifetime");
  EXPECT_THAT(come_back(out, 0, 3), Each("forwarded"));
}

TEST_F(MakeBeforeBreak, OneBeforeItsSoftLimitIsPreferred) {
  newer_.more =
      limited("soft 3(packets), hard (INF)(packets)", "soft (INF)(bytes), hard (INF)(bytes)", "2001-01-01 01:00:00");
  End out = outwards(older_() + newer_(), everything("out", tunnel_template()));
  out({plain(), plain(), plain()});
  EXPECT_EQ(spi_of(out(plain()).bytes), 0x1000U);
  End alone = outwards(newer_(), everything("out", tunnel_template()));
  alone({plain(), plain(), plain()});
  EXPECT_EQ(spi_of(alone(plain()).bytes), 0x2000U) << "where there is no other, it serves on";
}

TEST_F(MakeBeforeBreak, BothAreOpenedInwards) {
  const std::string fwd = everything("fwd", tunnel_template());
  const std::string policies = everything("out", tunnel_template());
  End by_older = outwards(older_(), policies);
  End by_newer = outwards(newer_(), policies);
  End in = inwards(older_() + newer_(), fwd);
  EXPECT_THAT(
      fates(in({by_older(plain()).bytes, by_newer(plain()).bytes, by_older(plain()).bytes, by_newer(plain()).bytes})),
      Each("forwarded"));
}

Bytes from(const std::string& source) { return packet().eth().ipv4(source, "10.2.0.2").udp(1, 2).bytes(); }

TEST(OutboundStage, DoesWhatTheFirstPolicyByPrioritySays) {
  const std::string policies = policy_text("src 10.1.0.0/16 dst 10.2.0.0/16", "out", tunnel_template(), 50) +
                               policy_text("src 10.1.9.0/24 dst 10.2.0.0/16", "out action block", "", 10) +
                               policy_text("src 10.1.8.0/24 dst 10.2.0.0/16", "out", "", 20) +
                               policy_text("src 10.1.8.8/32 dst 10.2.0.0/16", "out action block", "", 60) +
                               policy_text("src 10.4.0.0/16 dst 10.2.0.0/16", "out", tunnel_template(4), 1) +
                               policy_text("src 10.5.0.0/16 dst 10.2.0.0/16", "in", tunnel_template(), 1) +
                               policy_text("src 10.6.0.0/16 dst 10.2.0.0/16", "out",
                                           tunnel_template(4, "192.0.2.1", "192.0.2.2", "\n\t\tlevel use"), 1);
  End out = outwards(StateText()(), policies);
  EXPECT_EQ(spi_of(out(from("10.1.0.1")).bytes), 0x1000U);
  EXPECT_EQ(out(from("10.1.9.1")).fate, "blocked");
  EXPECT_EQ(out(from("10.1.8.8")), (Done{"forwarded", from("10.1.8.8")})) << "bypass";
  EXPECT_EQ(out(from("10.4.0.1")).fate, "no_sa");
  EXPECT_EQ(out(from("10.5.0.1")), (Done{"forwarded", from("10.5.0.1")})) << "the policy is one of the way in";
  EXPECT_EQ(out(from("10.6.0.1")), (Done{"forwarded", from("10.6.0.1")})) << "optional";
  EXPECT_EQ(out(from("10.7.0.1")), (Done{"forwarded", from("10.7.0.1")}));

  Settings strict;
  strict.drops_unselected = true;
  End only = outwards(StateText()(), policies, strict);
  EXPECT_EQ(only(from("10.7.0.1")).fate, "no_policy");
  EXPECT_EQ(only(from("10.1.8.8")).fate, "forwarded");
  const Bytes arp = packet().eth().ether_type(ether_type::kArp).raw(Bytes(28)).padded_to(60).bytes();
  EXPECT_EQ(only(arp), (Done{"forwarded", arp}));

  EXPECT_EQ(out.explain(from("10.1.0.1")), "policy in line 1: protected by SA 0x00001000 from 192.0.2.1 to 192.0.2.2");
  EXPECT_THAT(out.explain(from("10.1.9.1")), HasSubstr("policy in line 5: blocked"));
  EXPECT_THAT(out.explain(from("10.1.8.8")), HasSubstr(": passes"));
  EXPECT_THAT(out.explain(from("10.4.0.1")), HasSubstr("no_sa"));
  EXPECT_EQ(out.explain(from("10.7.0.1")), "no policy: passes");
  EXPECT_EQ(only.explain(from("10.7.0.1")), "no policy");
  EXPECT_EQ(out.explain(arp), "not IP: passes");
}

TEST(OutboundStage, ExplainingTakesNoNumber) {
  End out = outwards(StateText()(), everything("out", tunnel_template()));
  static_cast<void>(out.explain(plain()));
  EXPECT_EQ(sequence_of(out(plain()).bytes), 1U);
}

TEST(OutboundStage, TransportModeIsForTheEndsOfItsSaAlone) {
  StateText state;
  state.source = "10.1.0.1";
  state.destination = "10.2.0.2";
  state.mode = "transport";
  End out = outwards(state(), everything("out", transport_template()));
  EXPECT_EQ(spi_of(out(from("10.1.0.1")).bytes), 0x1000U);
  EXPECT_EQ(out(from("10.1.0.9")).fate, "no_sa");
  EXPECT_EQ(out(packet().eth().ipv4("10.1.0.1", "10.2.0.2", 64, {}, 0x2000).udp(1, 2).raw(Bytes(8)).bytes()).fate,
            "fragment");
  EXPECT_EQ(out(packet().eth().ipv4("10.1.0.1", "10.2.0.2").protocol(ip_protocol::kNone).bytes()).fate, "next_header");
}

TEST(OutboundStage, DropsWhatIsDamagedOrCut) {
  End out = outwards(StateText()(), everything("out", tunnel_template()));
  Bytes longer = plain();
  longer[14 + 3] = 200;  // length of the IP header
  EXPECT_EQ(out(longer).fate, "malformed");
  EXPECT_EQ(out(Arriving(plain(100), LinkType::ethernet, 2000)).fate, "forwarded") << "only padding was cut off";
  Bytes cut = plain(100);
  const auto whole = static_cast<std::uint32_t>(cut.size());
  cut.resize(80);
  EXPECT_EQ(out(Arriving(cut, LinkType::ethernet, whole)).fate, "truncated");
  Bytes short_header = plain();
  short_header[14] = 0x44;
  EXPECT_EQ(out(short_header).fate, "malformed");
  cut.resize(20);
  EXPECT_EQ(out(Arriving(cut, LinkType::ethernet, whole)).fate, "truncated");
  EXPECT_EQ(sequence_of(out(plain()).bytes), 2U) << "none of those took a number";
}

/// UDP over IPv6 needs a checksum (RFC 8200 §8.1), here over the ciphertext.
TEST(OutboundStage, UdpOverIpv6HasItsChecksumWhateverWasDroppedBefore) {
  StateText ends;
  ends.more = limited("soft (INF)(packets), hard 1(packets)");
  StateText in_udp;
  in_udp.source = "2001:db8::1";
  in_udp.destination = "2001:db8::2";
  in_udp.spi = 0x2000;
  in_udp.reqid = 2;
  in_udp.more = "\tencap type espinudp sport 4500 dport 4500 addr ::\n";
  End out = outwards(
      ends() + in_udp(),
      policy_text("src 0.0.0.0/0 dst 0.0.0.0/0 proto udp dport 1000", "out", tunnel_template(1), 1) +
          policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", "out", tunnel_template(2, in_udp.source, in_udp.destination), 2));
  const auto sealed = out({plain(5, 1000), plain(5, 1000), plain(5, 1000), plain(), plain(6)});
  EXPECT_THAT(fates(sealed), ElementsAre("forwarded", "lifetime", "lifetime", "forwarded", "forwarded"));
  for (const std::size_t i : {3U, 4U}) {
    const Bytes& frame = sealed[i].bytes;
    constexpr std::size_t kAddresses = 14 + 8, kUdp = 14 + 40;
    const std::uint64_t length = frame.size() - kUdp;
    std::uint64_t pseudo = length + ip_protocol::kUdp;
    for (std::size_t at = kAddresses; at < kUdp; at += 2) pseudo += frame[at] * 256U + frame[at + 1];
    EXPECT_NE(word_at(frame, kUdp + 4) & 0xffff, 0U);
    EXPECT_EQ(penstock::testing::slow_checksum(frame, kUdp, frame.size(), pseudo), 0U);
  }
}

TEST(OutboundStage, ProtectsAFrameThatLiesElsewhereThanInItsBatch) {
  // As in the scratch memory of a batch that a device has failed: there is room before it, and its offset has none.
  for (const std::uint32_t offset : {0U, 16U, 64U}) {
    End out = outwards(StateText()(), everything("out", tunnel_template()));
    End same = outwards(StateText()(), everything("out", tunnel_template()));
    RoomyFrame frame(plain(), out.function->traits().growth);
    frame.view.packet->offset = offset;
    std::array<PacketView, 1> views{frame.view};
    out.stage->process(views);
    ASSERT_TRUE(views[0].packet->verdict.alive());
    EXPECT_EQ(Bytes(views[0].frame, views[0].frame + views[0].length()), same(plain()).bytes) << offset;
  }
}

TEST(OutboundStage, KeepsToTheMtu) {
  Settings link;
  link.mtu = 1000;
  link.too_big = TooBig::icmp;
  link.answers = false;
  End out = outwards(StateText()(), everything("out", tunnel_template()), link);
  std::size_t longest = 0;
  for (std::size_t payload = 850; payload < 1000; ++payload) {
    const Done done = out(plain(payload));
    if (done.fate != "forwarded") {
      EXPECT_EQ(done.fate, "too_big");
      continue;
    }
    EXPECT_EQ(longest, payload == 850 ? 0 : payload - 1) << "no longer one passes where a shorter does not";
    longest = payload;
    EXPECT_LE(done.bytes.size() - 14, 1000U);
  }
  // IP 20, ESP 8, IV 8, ICV 16; the text is a multiple of 4 with a trailer of 2 around IP and UDP of 28.
  EXPECT_EQ(longest, (1000U - 20 - 8 - 8 - 16) / 4 * 4 - 2 - 28);
}

TEST(OutboundStage, TfcPaddingHidesLengths) {
  StateText state;
  state.more = "\ttfcpad 600\n";
  End out = outwards(state(), everything("out", tunnel_template()));
  std::set<std::size_t> lengths;
  for (const std::size_t payload : {0U, 1U, 17U, 300U, 572U}) lengths.insert(out(plain(payload)).bytes.size());
  EXPECT_EQ(lengths.size(), 1U);
  EXPECT_GT(out(plain(700)).bytes.size(), *lengths.begin());

  Settings link;
  link.mtu = 576;
  link.too_big = TooBig::icmp;
  link.answers = false;
  End small = outwards(state(), everything("out", tunnel_template()), link);
  const Done padded = small(plain(1));
  EXPECT_EQ(padded.fate, "forwarded") << "padding makes no packet too long";
  EXPECT_LE(padded.bytes.size(), 14 + 576U);
  EXPECT_GT(padded.bytes.size(), 14 + 560U);
}

}  // namespace
}  // namespace penstock::ipsec
