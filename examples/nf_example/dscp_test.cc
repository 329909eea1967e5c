// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "dscp.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"
#include "property/access_check.h"
#include "property/access_runs.h"
#include "property/random_packets.h"

namespace dscp {
namespace {

using penstock::testing::Bytes;

constexpr std::size_t kIp = 14;  // after the Ethernet header

/// The frame after a chain of only `dscp`. The packet must be forwarded by the port that was chosen before.
Bytes sent(Bytes frame, std::uint8_t value) {
  penstock::PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  descriptor.verdict = penstock::Verdict::forward(3);
  penstock::PacketView packet{frame.data(), &descriptor};
  penstock::parse(packet);
  make_dscp(value)->make_cpu_stage()->process({&packet, 1});
  EXPECT_EQ(descriptor.verdict, penstock::Verdict::forward(3));
  return frame;
}

/// The frame with this TOS, and with the checksum recomputed over the whole header.
Bytes with_tos(Bytes frame, unsigned tos) {
  const std::size_t end = kIp + (frame[kIp] & 15U) * 4;
  frame[kIp + 1] = static_cast<std::uint8_t>(tos);
  frame[kIp + 10] = frame[kIp + 11] = 0;
  const std::uint16_t checksum = penstock::testing::slow_checksum(frame, kIp, end);
  frame[kIp + 10] = static_cast<std::uint8_t>(checksum >> 8);
  frame[kIp + 11] = static_cast<std::uint8_t>(checksum);
  return frame;
}

TEST(Dscp, SetsTheCodePointOfIpv4WithItsChecksumAndLeavesEcn) {
  const Bytes options{1, 1, 1, 0};
  for (const auto& packet : {penstock::testing::packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(5060, 5060),
                             penstock::testing::packet().eth().ipv4("10.9.8.7", "192.0.2.1", 1, options).tcp(22, 22),
                             penstock::testing::packet().eth().ipv4("10.0.0.1", "192.0.2.1", 64, {}, 100)}) {
    for (unsigned tos = 0; tos < 256; ++tos) {
      const Bytes frame = with_tos(packet.bytes(), tos);
      for (unsigned value = 0; value < 64; ++value) {
        ASSERT_EQ(sent(frame, static_cast<std::uint8_t>(value)), with_tos(frame, value << 2 | (tos & 3)))
            << "TOS " << tos << ", DSCP " << value;
      }
    }
  }
}

TEST(Dscp, KeepsAWrongChecksumWrong) {
  Bytes frame = penstock::testing::packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(53, 53).bytes();
  frame[kIp + 11] ^= 1;
  const Bytes out = sent(frame, 46);
  EXPECT_NE(out, with_tos(out, out[kIp + 1]));
  EXPECT_EQ(sent(out, 0), frame);
}

TEST(Dscp, SetsTheCodePointOfIpv6AndLeavesEcnAndFlowLabel) {
  const Bytes frame = penstock::testing::packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(53, 53).bytes();
  for (unsigned ecn = 0; ecn < 4; ++ecn) {
    Bytes in = frame;
    Bytes expected = frame;
    // Version 6, traffic class (of which two bits are ECN's), flow label 0xabcde.
    in[kIp] = 0x6f, in[kIp + 1] = static_cast<std::uint8_t>(0xca | ecn << 4), in[kIp + 2] = 0xbc, in[kIp + 3] = 0xde;
    expected = in;
    expected[kIp] = 0x6b;  // DSCP 46: 1011 10
    expected[kIp + 1] = static_cast<std::uint8_t>(0x8a | ecn << 4);
    EXPECT_EQ(sent(in, 46), expected) << "ECN " << ecn;
  }
}

TEST(Dscp, DoesNotChangePacketsWithoutAnIpHeader) {
  Bytes arp = penstock::testing::packet().eth().ether_type(0x0806).bytes();
  arp.resize(60, 0x45);
  EXPECT_EQ(sent(arp, 46), arp);
  Bytes cut = penstock::testing::packet().eth().ipv4("10.0.0.1", "192.0.2.1").bytes();
  cut.resize(kIp + 19);
  EXPECT_EQ(sent(cut, 46), cut);
}

// The transfer plan relies on this: the function reads and writes nothing else, and drops nothing.
TEST(Dscp, AccessesOnlyWhatItsTraitsDeclare) {
  const auto function = make_dscp(46);
  const auto run = [] {
    return std::make_unique<penstock::property::CpuRun>(penstock::property::MadeFunction{nullptr, make_dscp(46)});
  };
  penstock::property::RandomPackets random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<penstock::property::Packet> packets;
    for (int i = 0; i < 32; ++i) packets.push_back(random.next());
    const auto violation = penstock::property::violation(run, function->traits().cpu, packets, random);
    ASSERT_EQ(violation, std::nullopt) << *violation;
  }
}

}  // namespace
}  // namespace dscp
