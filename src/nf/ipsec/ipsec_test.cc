// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Both directions together: what one end protects, the other restores; and what the function reports.

#include "nf/ipsec/ipsec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/testing/rounds.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/sa/esp_sa_table.h"
#include "packet/testing/random_frames.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::packet;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string digits(std::size_t bytes, unsigned first) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", (first + i * 37) & 0xff);
  return text;
}

/// Lines for every combination of algorithms that an SA may have.
std::vector<std::string> every_algorithm() {
  std::vector<std::string> all;
  for (const std::string& integrity :
       {"hmac(sha1) 0x" + digits(20, 7) + " 96", "hmac(sha256) 0x" + digits(32, 9) + " 128",
        "hmac(sha256) 0x" + digits(32, 11) + " 96", std::string("digest_null  0"), std::string("digest_null  96")}) {
    const std::string auth = "\tauth-trunc " + integrity + "\n";
    all.push_back(auth + "\tenc ecb(cipher_null) \n");
    for (const std::size_t key : {16U, 24U, 32U}) {
      all.push_back(auth + "\tenc cbc(aes) 0x" + digits(key, 1) + "\n");
      all.push_back(auth + "\tenc rfc3686(ctr(aes)) 0x" + digits(key + 4, 2) + "\n");
    }
  }
  for (const std::size_t key : {16U, 24U, 32U}) {
    for (const int bits : {64, 96, 128})
      all.push_back(fmt::format("\taead rfc4106(gcm(aes)) 0x{} {}\n", digits(key + 4, 3), bits));
  }
  return all;
}

/// Packets of one family, of many lengths and kinds. Fragments only for tunnels.
std::vector<Arriving> packets_of(bool ipv6, bool tunnel) {
  std::vector<Arriving> all;
  const auto begin = [&](penstock::testing::PacketBuilder b) {
    return ipv6 ? b.ipv6("2001:db8:1::1", "2001:db8:2::2") : b.ipv4("10.1.0.1", "10.2.0.2");
  };
  for (const std::size_t payload : {0U, 1U, 2U, 3U, 4U, 12U, 13U, 14U, 15U, 16U, 17U, 255U, 1400U}) {
    all.emplace_back(begin(packet().eth()).udp(1000, 2000).payload(std::string(payload, 'u')).bytes());
    all.emplace_back(begin(packet().eth()).tcp(1000, 2000).payload(std::string(payload, 't')).bytes());
  }
  all.emplace_back(begin(packet().eth()).icmp(ipv6 ? 128 : 8).payload("echo").bytes());
  all.emplace_back(begin(packet().eth().vlan(7)).udp(1, 2).payload("tagged").bytes());
  all.emplace_back(begin(packet().eth().vlan(7, ether_type::kQinQ).vlan(8)).tcp(1, 2).bytes());
  all.emplace_back(begin(packet()).sctp(1, 2).payload("raw").bytes(), LinkType::raw_ip);
  all.emplace_back(begin(packet().eth()).protocol(ip_protocol::kGre).raw({0, 0, 8, 0, 1, 2, 3}).bytes());
  if (ipv6) {
    all.emplace_back(begin(packet().eth()).extension(ip_protocol::kDestinationOptions, 2).udp(3, 4).bytes());
  } else {
    const Bytes no_operations(8, 1);
    all.emplace_back(packet().eth().ipv4("10.1.0.1", "10.2.0.2", 9, no_operations).tcp(3, 4).payload("o").bytes());
  }
  if (!tunnel) return all;
  if (ipv6) {
    all.emplace_back(begin(packet().eth()).fragment6(0x0101).raw(Bytes(33, 3)).bytes());
  } else {
    all.emplace_back(packet().eth().ipv4("10.1.0.1", "10.2.0.2", 64, {}, 0x2000).udp(5, 6).raw(Bytes(24, 4)).bytes());
    all.emplace_back(packet().eth().ipv4("10.1.0.1", "10.2.0.2", 64, {}, 0x0003).protocol(17).raw({1, 2, 3}).bytes());
  }
  return all;
}

/// The SAs to test, by what distinguishes them.
struct Combination {
  bool ipv6;  // outer family
  bool tunnel, udp, esn;
  std::uint32_t tfc_bytes;
};

StateText state_of(const Combination& c) {
  StateText state;
  if (c.tunnel) {
    state.source = c.ipv6 ? "2001:db8::1" : "192.0.2.1";
    state.destination = c.ipv6 ? "2001:db8::2" : "192.0.2.2";
  } else {
    state.source = c.ipv6 ? "2001:db8:1::1" : "10.1.0.1";
    state.destination = c.ipv6 ? "2001:db8:2::2" : "10.2.0.2";
    state.mode = "transport";
  }
  state.esn = c.esn;
  if (c.esn) state.sent = state.received = 0xffff'fff0;  // the lower half wraps on the way
  if (c.udp)
    state.more += fmt::format("\tencap type espinudp sport 4500 dport 4500 addr {}\n", c.ipv6 ? "::" : "0.0.0.0");
  if (c.tfc_bytes != 0) state.more += fmt::format("\ttfcpad {}\n", c.tfc_bytes);
  return state;
}

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const bool ipv6 : {false, true}) {
    for (const bool udp : {false, true}) {
      for (const bool esn : {false, true}) {
        all.push_back({ipv6, true, udp, esn, 0});
        all.push_back({ipv6, true, udp, esn, 700});
        all.push_back({ipv6, false, udp, esn, 0});
      }
    }
  }
  return all;
}

TEST(Ipsec, GivesBackWhatItProtectedByEveryAlgorithmInEveryMode) {
  std::uint32_t tried = 0;
  for (const Combination& c : combinations()) {
    std::vector<Arriving> packets = packets_of(c.ipv6, c.tunnel);
    if (c.tunnel) {
      for (const Arriving& other : packets_of(!c.ipv6, true)) packets.push_back(other);
    }
    for (const std::string& algorithms : every_algorithm()) {
      if (tried++ % penstock::testing::stride() != 0) continue;
      StateText state = state_of(c);
      state.algorithms = algorithms;
      SCOPED_TRACE(state());
      const std::string wanted = c.tunnel ? tunnel_template(1, state.source, state.destination) : transport_template();
      End out = outwards(state(), everything("out", wanted));
      End in = inwards(state(), everything("fwd", wanted));
      const std::vector<Done> sealed = out(packets);
      ASSERT_THAT(fates(sealed), Each("forwarded"));
      std::vector<Arriving> arriving;
      for (std::size_t i = 0; i < packets.size(); ++i) {
        ASSERT_GT(sealed[i].bytes.size(), packets[i].bytes.size());
        ASSERT_GE(sealed[i].bytes.size(), c.tfc_bytes) << "TFC padding";
        arriving.emplace_back(sealed[i].bytes, packets[i].link);
      }
      const std::vector<Done> opened = in(arriving);
      for (std::size_t i = 0; i < packets.size(); ++i)
        ASSERT_EQ(opened[i], (Done{"forwarded", packets[i].bytes})) << "packet " << i;
    }
  }
}

TEST(Ipsec, HidesWhatItProtects) {
  const Bytes secret = packet().eth().ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).payload("attack at dawn").bytes();
  for (const std::string& algorithms : every_algorithm()) {
    StateText state;
    state.algorithms = algorithms;
    End out = outwards(state(), everything("out", tunnel_template()));
    const Done sealed = out(secret);
    const std::string text(sealed.bytes.begin(), sealed.bytes.end());
    const bool hidden = text.find("attack") == std::string::npos;
    EXPECT_EQ(hidden, algorithms.find("cipher_null") == std::string::npos) << algorithms;
  }
}

/// Both families in both modes, named by address.
std::string several_states() {
  StateText tunnel;
  StateText six = tunnel;
  six.source = "2001:db8::1";
  six.destination = "2001:db8::2";
  six.spi = 0x2000;
  six.reqid = 2;
  six.algorithms = kCbcSha1;
  six.esn = true;
  return tunnel() + six();
}
std::string several_policies(const std::string& direction) {
  return policy_text("src 0.0.0.0/0 dst 0.0.0.0/0 proto udp", direction, tunnel_template(), 1) +
         policy_text("src 0.0.0.0/0 dst 0.0.0.0/0 proto icmp", direction, "", 2) +
         policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", direction, tunnel_template(2, "2001:db8::1", "2001:db8::2"), 3) +
         policy_text("src ::/0 dst ::/0 proto tcp", direction, tunnel_template(), 4) +
         policy_text("src ::/0 dst ::/0", direction, tunnel_template(2, "2001:db8::1", "2001:db8::2"), 5);
}

RC_GTEST_PROP(Ipsec, GivesBackRandomFrames, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  penstock::testing::RandomFrames random(seed);
  End out = outwards(several_states(), several_policies("out"));
  End in = inwards(several_states(), several_policies("fwd"));
  std::vector<Arriving> given;
  for (int i = 0; i < 200; ++i) {
    const penstock::testing::Frame frame = random.frame();
    given.emplace_back(frame.bytes, frame.link_type, frame.wire_length);
  }
  const std::vector<Done> sealed = out(given);
  std::vector<Arriving> arriving;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (sealed[i].fate != "forwarded" || sealed[i].bytes == given[i].bytes) continue;
    arriving.emplace_back(sealed[i].bytes, given[i].link);
    of.push_back(i);
  }
  const std::vector<Done> opened = in(arriving);
  for (std::size_t i = 0; i < opened.size(); ++i) {
    const Arriving& before = given[of[i]];
    RoomyFrame frame(before.bytes, {}, before.link, before.wire_length);
    // Bytes after the IP packet are not forwarded.
    const Bytes expected(before.bytes.begin(), before.bytes.begin() + frame.view.layout().end);
    RC_ASSERT(opened[i] == (Done{"forwarded", expected}));
  }
}

/// Whether a text contains six consecutive digits of a key.
bool tells_a_key(const std::string& text, const std::string& states) {
  std::size_t at = 0;
  while ((at = states.find(" 0x", at)) != std::string::npos) {
    const std::size_t from = at + 3;
    const std::size_t to = states.find_first_not_of("0123456789abcdef", from);
    at = to;
    if (to - from < 32) continue;
    for (std::size_t i = from; i + 6 <= to; ++i) {
      if (text.find(states.substr(i, 6)) != std::string::npos) return true;
    }
  }
  return false;
}

TEST(Ipsec, ReportCountsWhatEachSaCarried) {
  const std::string states = several_states();
  End out = outwards(states, several_policies("out"));
  const Bytes udp = plain(100);
  const Bytes tcp = packet().eth().ipv4("10.1.0.1", "10.2.0.2").tcp(1, 2).payload("12345").bytes();
  const Bytes icmp = packet().eth().ipv4("10.1.0.1", "10.2.0.2").icmp(8).bytes();
  std::vector<Done> sealed = out({udp, tcp, udp, icmp, udp});
  nlohmann::json report;
  out.function->report(report);
  const char* const expected = R"([
    {"spi": "0x00001000", "source": "192.0.2.1", "destination": "192.0.2.2", "line": 1, "packets": 3, "bytes": 384,
     "sent": 3},
    {"spi": "0x00002000", "source": "2001:db8::1", "destination": "2001:db8::2", "line": 9, "packets": 1, "bytes": 45,
     "sent": 1}])";
  EXPECT_EQ(report["sas"], nlohmann::json::parse(expected));

  End in = inwards(states, several_policies("fwd"));
  Bytes damaged = sealed[2].bytes;
  damaged.back() ^= 1;
  EXPECT_THAT(fates(in({sealed[0].bytes, sealed[1].bytes, damaged, sealed[3].bytes, sealed[4].bytes, sealed[0].bytes,
                        sealed[0].bytes})),
              ElementsAre("forwarded", "forwarded", "integrity", "forwarded", "forwarded", "replayed", "replayed"));
  report.clear();
  in.function->report(report);
  // Byte counts are those of the original IP packets.
  const std::size_t six = sealed[1].bytes.size() - 14;
  EXPECT_EQ(report["sas"][0]["packets"], 2);
  EXPECT_EQ(report["sas"][0]["bytes"], 2 * (sealed[0].bytes.size() - 14));
  EXPECT_EQ(report["sas"][0]["received"], 3);
  EXPECT_EQ(report["sas"][0]["replayed"], 2);
  EXPECT_EQ(report["sas"][0]["integrity"], 1);
  EXPECT_EQ(report["sas"][1]["packets"], 1);
  EXPECT_EQ(report["sas"][1]["bytes"], six);
  EXPECT_EQ(report["sas"][1]["integrity"], 0);
  EXPECT_FALSE(report["sas"][0].contains("sent"));

  End unused = outwards(states, several_policies("out"));
  report.clear();
  unused.function->report(report);
  EXPECT_TRUE(report["sas"].empty());
}

TEST(Ipsec, TellsNobodyItsKeys) {
  const std::string states = several_states();
  ASSERT_TRUE(tells_a_key(kCbcSha1, states)) << "this test can see one";
  End out = outwards(states, several_policies("out"));
  End in = inwards(states, several_policies("fwd"));
  const Bytes sealed = out(plain()).bytes;
  in(sealed);
  std::string told = out.function->description() + in.function->description() + out.explain(plain()) +
                     in.explain(sealed) + in.explain(plain());
  nlohmann::json report;
  out.function->report(report["out"]);
  in.function->report(report["in"]);
  told += report.dump();
  // Two SAs with the same name, and a truncated key.
  const auto twice = parse_states(states + states, "state.txt");
  ASSERT_FALSE(twice);
  told += to_string(twice.error());
  const auto cut = parse_states(states.substr(0, states.find(" 128\n") - 1) + " 128\n", "state.txt");
  ASSERT_FALSE(cut);
  told += to_string(cut.error());
  EXPECT_THAT(told, HasSubstr("0x00001000"));
  EXPECT_FALSE(tells_a_key(told, states)) << told;
}

TEST(Ipsec, DescriptionSaysWhatIsLoaded) {
  EXPECT_THAT(outwards(several_states(), several_policies("out")).function->description(),
              HasSubstr("out, 2 SAs, 5 policies; on the CPU by intel-ipsec-mb ("));
  EXPECT_THAT(inwards(StateText()()).function->description(), HasSubstr("in, 1 SA; on the CPU"));
}

// Several functions of one process that use the same SA.
//
//     1000 > 2000 UDP ─▶ ipsec (dport 2000) ──ESP 0x1000, 1──▶ ipsec#2 (dport 3000) ──▶
//     1000 > 3000 UDP ─▶ ipsec ────────────────────────────▶ ipsec#2 ──ESP 0x1000, 2──▶

std::string by_port(unsigned port, const std::string& rest = tunnel_template()) {
  return policy_text("src 0.0.0.0/0 dst 0.0.0.0/0 proto udp dport " + std::to_string(port), "out", rest);
}

/// The bytes of the sequence number and the GCM IV.
std::string nonce_of(const Bytes& frame) { return {frame.begin() + kEspAt + 8, frame.begin() + kEspAt + 16}; }

TEST(IpsecTwice, TwoFunctionsOutNeverSendWithOneNonce) {
  SaRegistry registry;
  StateText state;
  End first = outwards(state(), by_port(2000), {}, &registry);
  End second = outwards(state(), by_port(3000), {}, &registry);
  std::set<std::string> nonces;
  std::set<std::uint32_t> numbers;
  for (int round = 0; round < 50; ++round) {
    for (End* const end : {&first, &second}) {
      for (const Done& done : (*end)(std::vector<Arriving>(7, plain(40, end == &first ? 2000 : 3000)))) {
        ASSERT_EQ(done.fate, "forwarded");
        EXPECT_TRUE(nonces.insert(nonce_of(done.bytes)).second);
        EXPECT_TRUE(numbers.insert(sequence_of(done.bytes)).second);
      }
    }
  }
  EXPECT_EQ(nonces.size(), 700U);
  EXPECT_EQ(*numbers.rbegin(), 700U) << "and leave no gap";
}

TEST(IpsecTwice, ChainsOfOneProcessShareAnSaToo) {
  SaRegistry registry;
  StateText state;
  std::optional<End> first(outwards(state(), by_port(2000), {}, &registry));
  (*first)(std::vector<Arriving>(7, plain()));
  End second = outwards(state(), by_port(2000), {}, &registry);
  EXPECT_EQ(sequence_of(second(plain()).bytes), 8U);
  first.reset();
  EXPECT_EQ(sequence_of(second(plain()).bytes), 9U);
}

TEST(IpsecTwice, WorkersOfTwoFunctionsUseEachNumberOnce) {
  SaRegistry registry;
  StateText state;
  End first = outwards(state(), by_port(2000), {}, &registry);
  End second = outwards(state(), by_port(2000), {}, &registry);
  std::array<std::vector<std::uint32_t>, 4> numbers;
  {
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < numbers.size(); ++worker) {
      workers.emplace_back([&, worker] {
        const Ipsec& function = worker % 2 == 0 ? *first.function : *second.function;
        const auto stage = const_cast<Ipsec&>(function).make_cpu_stage();
        for (int round = 0; round < 40; ++round) {
          for (const Done& done : ipsec::testing::run(*stage, function, std::vector<Arriving>(5, plain()))) {
            numbers[worker].push_back(sequence_of(done.bytes));
          }
        }
      });
    }
  }
  std::set<std::uint32_t> all;
  for (const auto& of_worker : numbers) all.insert(of_worker.begin(), of_worker.end());
  EXPECT_EQ(all.size(), 800U);
  EXPECT_EQ(*all.rbegin(), 800U);
}

TEST(IpsecTwice, WhatOneFunctionInHasOpenedTheOtherRefuses) {
  SaRegistry registry;
  StateText state;
  const std::vector<Arriving> sealed = forwarded(outwards(state(), by_port(2000))(std::vector<Arriving>(3, plain())));
  End first = inwards(state(), std::nullopt, &registry);
  End second = inwards(state(), std::nullopt, &registry);
  EXPECT_EQ(first(sealed[0]).fate, "forwarded");
  EXPECT_EQ(second(sealed[0]).fate, "replayed");
  EXPECT_EQ(second(sealed[1]).fate, "forwarded");
  EXPECT_THAT(fates(first(sealed)), ElementsAre("replayed", "replayed", "forwarded"));
}

TEST(IpsecTwice, TheTwoEndsOfAnSaDoNotDisturbEachOther) {
  SaRegistry registry;
  StateText state;
  state.more = limited("soft (INF)(packets), hard 3(packets)");
  End out = outwards(state(), by_port(2000), {}, &registry);
  End in = inwards(state(), std::nullopt, &registry);
  const std::vector<Done> sealed = out(std::vector<Arriving>(4, plain()));
  EXPECT_THAT(fates(sealed), ElementsAre("forwarded", "forwarded", "forwarded", "lifetime"));
  EXPECT_THAT(fates(in(forwarded(sealed))), Each("forwarded")) << "each end counts what it has carried";
}

TEST(IpsecTwice, LimitsAreThoseOfTheSaAndEachFunctionReportsItsOwnPackets) {
  SaRegistry registry;
  StateText old, successor;
  old.more = limited("soft 4(packets), hard 6(packets)");
  successor.spi = 0x2000;
  successor.more = limited(kNoLimit, "soft (INF)(bytes), hard (INF)(bytes)", "2000-01-01 00:00:00");
  End first = outwards(old() + successor(), by_port(2000), {}, &registry);
  End second = outwards(old() + successor(), by_port(2000), {}, &registry);
  const auto spis = [](const std::vector<Done>& all) {
    std::vector<std::uint32_t> found;
    for (const Done& done : all) found.push_back(done.fate == "forwarded" ? spi_of(done.bytes) : 0);
    return found;
  };
  EXPECT_THAT(spis(first(std::vector<Arriving>(3, plain()))), ElementsAre(0x1000, 0x1000, 0x1000));
  EXPECT_THAT(spis(second(std::vector<Arriving>(2, plain()))), ElementsAre(0x1000, 0x1000)) << "the fourth of four";
  EXPECT_THAT(spis(first(std::vector<Arriving>(1, plain()))), ElementsAre(0x2000)) << "it has heard of the limit";
  nlohmann::json report;
  first.function->report(report);
  EXPECT_EQ(report["sas"][0]["packets"], 3);
  EXPECT_EQ(report["sas"][0]["sent"], 5);
  EXPECT_EQ(report["sas"][1]["packets"], 1);
  second.function->report(report = {});
  EXPECT_EQ(report["sas"][0]["packets"], 2);
  EXPECT_EQ(report["sas"][0]["sent"], 5);
}

TEST(IpsecTwice, EachSaIsOnceInTheTableForWireshark) {
  SaRegistry registry;
  StateText shared;
  StateText other;
  other.spi = 0x99;
  const End first = outwards(shared(), by_port(2000), {}, &registry);
  const End second = outwards(shared() + other(), by_port(2000), {}, &registry);
  const std::array<const function::NetworkFunction*, 2> both{first.function.get(), second.function.get()};
  ASSERT_EQ(ipsec_kind().outputs.size(), 1U);
  EXPECT_EQ(ipsec_kind().outputs[0].text(both), esp_sa_table(second.function->tables().sas()));
}

TEST(IpsecTwice, WithoutARunNothingIsSent) {
  StateText state;
  End out = outwards(state(), by_port(2000));
  EXPECT_EQ(out(plain()).fate, "forwarded");
  out.function->end_run();
  const auto& of = out.function->tables().states()[0];
  of->end_run();
  EXPECT_EQ(out(plain()).fate, "not_reserved");
}

TEST(Ipsec, RefusesTwoSendersWithOneKeyThatCounts) {
  const auto build = [](const std::string& states) {
    TableSources sources;
    SaRegistry registry;
    sources.registry = &registry;
    sources.numbers = fixed_numbers();
    sources.state_file = "state.txt";
    sources.policy_file = "policy.txt";
    sources.sas = std::move(parse_states(states, "state.txt")->value);
    sources.policies = std::move(parse_policies(everything("out", tunnel_template()), "policy.txt")->value);
    return Tables::build(std::move(sources));
  };
  StateText one, two;
  two.spi = 0x1001;
  EXPECT_TRUE(build(one() + two()));
  std::string copied = one();
  copied.replace(copied.find("00001000"), 8, "00001001");
  const auto refused = build(one() + copied);
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.error()), ::testing::HasSubstr("have the same key and salt"));
  one.algorithms = two.algorithms = kCbcSha1;
  EXPECT_TRUE(build(one() + two())) << "its IVs do not count";
}

}  // namespace
}  // namespace penstock::ipsec
