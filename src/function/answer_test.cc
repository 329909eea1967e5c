// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What ICMP errors consist of is tested by ipsec (nf/ipsec/esp/mtu_test.cc).

#include "function/answer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::function {
namespace {

using penstock::testing::Bytes;
using penstock::testing::packet;
using penstock::testing::slow_checksum;

constexpr std::uint8_t kSyn = TcpHeader::kSyn, kFin = TcpHeader::kFin, kAck = TcpHeader::kAck, kRst = TcpHeader::kRst;

/// What answers a frame that arrives alone.
class Answered {
 public:
  explicit Answered(const Bytes& frame) : memory_(1 << 12), descriptors_(1), batch_(memory_, descriptors_, {}) {
    EXPECT_TRUE(batch_.append(frame, {0, static_cast<std::uint32_t>(frame.size()), 3, LinkType::ethernet}));
    emissions_.begin(batch_);
    emitter_.go_into(&emissions_);
    parse(view());
  }
  [[nodiscard]] PacketView view() { return batch_.view(0); }
  [[nodiscard]] Emitter& emitter() { return emitter_; }
  /// Empty: none. All leave by the port of arrival.
  [[nodiscard]] Bytes answer() {
    if (emissions_.none_left()) return {};
    const PacketView made = emissions_.take();
    EXPECT_EQ(made.packet->verdict, Verdict::forward(3));
    return {made.frame, made.frame + made.length()};
  }

 private:
  std::vector<std::uint8_t> memory_;
  std::vector<PacketDescriptor> descriptors_;
  Batch batch_;
  Emissions emissions_{1 << 14, 16};
  Emitter emitter_;
};

Bytes reset_for(const Bytes& frame) {
  Answered answered(frame);
  answer_with_reset(answered.view(), answered.view(), answered.emitter());
  return answered.answer();
}

std::uint32_t be32(const Bytes& frame, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | frame[i];
  return value;
}

TEST(Answer, AResetAcknowledgesWhatTheSegmentOccupies) {
  const auto syn = packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(1234, 80, kSyn).payload("abc").bytes();
  const Bytes reset = reset_for(syn);
  ASSERT_EQ(reset.size(), 14U + 20 + 20);
  EXPECT_TRUE(std::equal(reset.begin(), reset.begin() + 6, syn.begin() + 6)) << "back where it came from";
  EXPECT_TRUE(std::equal(reset.begin() + 6, reset.begin() + 12, syn.begin()));
  EXPECT_EQ(be32(reset, 26), be32(syn, 30));
  EXPECT_EQ(be32(reset, 30), be32(syn, 26));
  EXPECT_EQ(slow_checksum(reset, 14, 34), 0);
  EXPECT_EQ(be32(reset, 34), 80U << 16 | 1234);
  EXPECT_EQ(be32(reset, 38), 0U);
  EXPECT_EQ(be32(reset, 42), be32(syn, 38) + 4) << "SYN and three bytes";
  EXPECT_EQ(reset[47], kRst | kAck);
  std::uint64_t pseudo = 20 + ip_protocol::kTcp;
  for (std::size_t at = 26; at < 34; at += 2) pseudo += static_cast<std::uint64_t>(reset[at]) << 8 | reset[at + 1];
  EXPECT_EQ(slow_checksum(reset, 34, reset.size(), pseudo), 0);
}

TEST(Answer, AResetOfASegmentWithAnAcknowledgmentBeginsThere) {
  auto data = packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(1234, 80, kAck | kFin).payload("abc").bytes();
  data[42] = 0x12;
  const Bytes reset = reset_for(data);
  ASSERT_FALSE(reset.empty());
  EXPECT_EQ(be32(reset, 38), 0x1200'0000U | (be32(data, 42) & 0xff'ffff));
  EXPECT_EQ(be32(reset, 42), 0U);
  EXPECT_EQ(reset[47], kRst);
}

TEST(Answer, ResetsGoBackOverIpv6) {
  const auto syn = packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(1, 2, kSyn).bytes();
  const Bytes reset = reset_for(syn);
  ASSERT_EQ(reset.size(), 14U + 40 + 20);
  EXPECT_TRUE(std::equal(reset.begin() + 22, reset.begin() + 38, syn.begin() + 38));
  EXPECT_TRUE(std::equal(reset.begin() + 38, reset.begin() + 54, syn.begin() + 22));
  EXPECT_EQ(be32(reset, 62), be32(syn, 58) + 1);
  std::uint64_t pseudo = 20 + ip_protocol::kTcp;
  for (std::size_t at = 22; at < 54; at += 2) pseudo += static_cast<std::uint64_t>(reset[at]) << 8 | reset[at + 1];
  EXPECT_EQ(slow_checksum(reset, 54, reset.size(), pseudo), 0);
}

TEST(Answer, NothingAnswersAResetOrAnythingButTcp) {
  EXPECT_TRUE(reset_for(packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(1, 2, kRst).bytes()).empty());
  EXPECT_TRUE(reset_for(packet().eth().ipv4("10.0.0.1", "192.0.2.7").udp(1, 2).bytes()).empty());
}

TEST(Answer, NobodyIsAnsweredWhoMustNotBe) {
  const auto may = [](const Bytes& frame) { return may_be_answered(Answered(frame).view()); };
  EXPECT_TRUE(may(packet().eth().ipv4("10.1.0.1", "10.2.0.1").udp(1, 2).bytes()));
  EXPECT_TRUE(may(packet().eth().ipv4("10.1.0.1", "10.2.0.1").icmp(8, 0).bytes()));
  EXPECT_FALSE(may(packet().eth().ipv4("10.1.0.1", "10.2.0.1").icmp(3, 1).bytes())) << "an error";
  // The first four bytes of an error.
  auto cut4 = packet().eth().ipv4("10.1.0.1", "10.2.0.1").icmp(3, 1).bytes();
  cut4.resize(14 + 20 + 4);
  cut4[17] = 20 + 4;
  EXPECT_FALSE(may(cut4));
  auto cut6 = packet().eth().ipv6("fd00::1", "2001:db8::1").udp(1 << 8, 0).bytes();
  cut6.resize(14 + 40 + 4);
  cut6[19] = 4;
  cut6[20] = ip_protocol::kIcmpv6;
  EXPECT_FALSE(may(cut6));
  EXPECT_FALSE(may(packet().eth().ipv4("0.0.0.0", "10.2.0.1").udp(1, 2).bytes()));
  EXPECT_FALSE(may(packet().eth().ipv4("10.1.0.1", "224.0.0.5").udp(1, 2).bytes()));
  EXPECT_FALSE(may(packet().eth({{1, 0, 0x5e, 0, 0, 5}}).ipv4("10.1.0.1", "10.2.0.1").udp(1, 2).bytes()));
  EXPECT_FALSE(may(packet().eth().ipv6("ff02::1", "2001:db8::1").udp(1, 2).bytes()));
  EXPECT_FALSE(may(packet().eth().ipv6("2001:db8::1", "ff0e::1").udp(1, 2).bytes()));
  EXPECT_FALSE(may(packet().eth().ipv6("::1", "2001:db8::1").udp(1, 2).bytes()));
  EXPECT_FALSE(may(packet().eth().ipv4("10.1.0.1", "127.0.0.1").udp(1, 2).bytes()));
  for (const int first : {1, 0}) {  // from a group; from nobody
    auto frame = packet().eth().ipv4("10.1.0.1", "10.2.0.1").udp(1, 2).bytes();
    std::fill_n(frame.begin() + 6, 6, std::uint8_t{0});
    frame[6] = static_cast<std::uint8_t>(first);
    EXPECT_FALSE(may(frame));
  }
}

TEST(Answer, IsLimitedToSoManyASecond) {
  AnswerLimit limit;
  unsigned answers = 0;
  for (int i = 0; i < 5000; ++i) answers += limit.take(7 + i % 2) ? 1 : 0;
  EXPECT_EQ(answers, 1001U) << "one of second 7, then those of second 8, in which those of second 7 are late";
  EXPECT_TRUE(limit.take(9));
  EXPECT_TRUE(limit.take(9 - 3600)) << "the clock was set back";
}

TEST(Answer, IsLimitedForEachReceiver) {
  for (const bool ipv4 : {true, false}) {
    ReceiverLimit limit;
    const auto take = [&](int host, double seconds) {
      const Bytes frame =
          ipv4 ? packet().eth().ipv4(fmt::format("10.1.0.{}", host), "10.2.0.1").udp(1, 2).bytes()
               : packet().eth().ipv6(fmt::format("2001:db8:0:{}::1", host), "2001:db8:1::1").udp(1, 2).bytes();
      Answered answered(frame);
      answered.view().packet->timestamp_ns = static_cast<std::uint64_t>(seconds * 1e9);
      return limit.take(answered.view());
    };
    unsigned answers = 0;
    for (int i = 0; i < 100; ++i) answers += take(1, 1000) ? 1 : 0;
    EXPECT_EQ(answers, 6U);
    EXPECT_TRUE(take(2, 1000)) << "another receiver";
    EXPECT_TRUE(take(1, 1001));
    EXPECT_FALSE(take(1, 1001.5));
    EXPECT_TRUE(take(1, 10)) << "the clock was set back";
  }
}

}  // namespace
}  // namespace penstock::function
