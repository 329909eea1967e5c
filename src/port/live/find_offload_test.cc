// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"
#include "port/live/offload.h"

namespace penstock::port {
namespace {

using testing::PacketBuilder;
using testing::slow_checksum;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kMtu = 1500;

struct Places {
  std::size_t addresses, addresses_end, transport, field;
};
Places places_of(const Bytes& frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  const PacketLayout layout = parse(frame.data(), length, length, LinkType::ethernet);
  const bool is_ipv4 = layout.network == NetworkLayer::ipv4;
  const std::size_t addresses = layout.network_offset + std::size_t{is_ipv4 ? 12U : 8U};
  const std::size_t field = layout.transport_offset + (layout.transport == ip_protocol::kTcp ? 16U : 6U);
  return {addresses, addresses + (is_ipv4 ? 8 : 32), layout.transport_offset, field};
}
std::uint16_t pseudo_sum(const Bytes& frame, std::uint8_t protocol) {
  const Places at = places_of(frame);
  const std::uint64_t rest = protocol + (frame.size() - at.transport);
  return static_cast<std::uint16_t>(0xffff - slow_checksum(frame, at.addresses, at.addresses_end, rest));
}
/// As a sender leaves it for the NIC (CHECKSUM_PARTIAL).
Bytes without_checksum(Bytes frame, std::uint8_t protocol) {
  const std::uint16_t sum = pseudo_sum(frame, protocol);
  const std::size_t field = places_of(frame).field;
  frame[field] = static_cast<std::uint8_t>(sum >> 8);
  frame[field + 1] = static_cast<std::uint8_t>(sum & 0xff);
  return frame;
}
bool has_work(const VirtioHeader& header) { return header.lacks_checksum() || header.is_segmented(); }

struct Kind {
  std::string name;
  Bytes frame;
  std::uint8_t protocol;
};
std::vector<Kind> kinds() {
  const std::string v6a = "fd00::1", v6b = "fd00::2";
  return {
      {"TCP, IPv4", PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(5, 80).payload("hello").bytes(), 6},
      {"UDP, IPv4", PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").udp(5, 53).payload("odd").bytes(), 17},
      {"TCP, IPv6", PacketBuilder().eth().ipv6(v6a, v6b).tcp(5, 80).payload("hello").bytes(), 6},
      {"UDP, IPv6", PacketBuilder().eth().ipv6(v6a, v6b).udp(5, 53).payload("even").bytes(), 17},
      {"a VLAN tag", PacketBuilder().eth().vlan(7).ipv4("10.0.0.1", "10.0.0.2").tcp(5, 80).bytes(), 6},
      {"an option", PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {1, 1, 1, 0}).udp(5, 53).bytes(), 17},
  };
}

TEST(FindOffload, CompletesWhatTheSenderHasLeft) {
  for (const Kind& kind : kinds()) {
    Bytes frame = without_checksum(kind.frame, kind.protocol);
    ASSERT_NE(frame, kind.frame) << kind.name;
    const VirtioHeader header = find_offload(frame, kMtu);
    ASSERT_TRUE(header.lacks_checksum()) << kind.name;
    EXPECT_FALSE(header.is_segmented()) << kind.name;
    ASSERT_TRUE(complete_checksum(frame, header, 0)) << kind.name;
    EXPECT_EQ(frame, kind.frame) << kind.name;
  }
}

TEST(FindOffload, LeavesCompleteFramesAlone) {
  for (const Kind& kind : kinds()) EXPECT_FALSE(has_work(find_offload(kind.frame, kMtu))) << kind.name;
}

TEST(FindOffload, LeavesWrongChecksumsAlone) {
  for (Kind kind : kinds()) {
    kind.frame[places_of(kind.frame).field] ^= 0x40;
    EXPECT_FALSE(has_work(find_offload(kind.frame, kMtu))) << kind.name;
  }
}

TEST(FindOffload, ChangesNothingIfACorrectChecksumLooksUnfinishedByChance) {
  unsigned found = 0;
  for (unsigned value = 0; value <= 0xffff && found == 0; ++value) {
    const std::string payload{static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
    const Bytes frame = PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").udp(5, 53).payload(payload).bytes();
    Bytes same = frame;
    const VirtioHeader header = find_offload(same, kMtu);
    if (!header.lacks_checksum()) continue;
    ++found;
    ASSERT_TRUE(complete_checksum(same, header, 0));
    EXPECT_EQ(same, frame);
  }
  EXPECT_EQ(found, 1U);
}

TEST(FindOffload, LeavesOtherFramesAlone) {
  const Bytes icmp = PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(8).payload("x").bytes();
  EXPECT_FALSE(has_work(find_offload(icmp, kMtu)));
  Bytes padded = kinds()[0].frame;
  padded.push_back(1);
  EXPECT_FALSE(has_work(find_offload(without_checksum(padded, 6), kMtu)));
  Bytes fragment = without_checksum(kinds()[1].frame, 17);
  fragment[20] |= 0x20;  // more fragments
  EXPECT_FALSE(has_work(find_offload(fragment, kMtu)));
  const Bytes whole = without_checksum(kinds()[2].frame, 6);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(has_work(find_offload(std::span(whole).first(length), kMtu))) << length;
}

TEST(FindOffload, SplitsTcpThatIsLongerThanTheMtu) {
  std::string payload(5000, '\0');
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 7);
  const Bytes options{1, 1, 1, 1};
  const std::vector<Bytes> frames{
      PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(5, 80, TcpHeader::kAck, options).payload(payload).bytes(),
      PacketBuilder().eth().ipv6("fd00::1", "fd00::2").tcp(5, 80, TcpHeader::kAck, options).payload(payload).bytes(),
  };
  for (const Bytes& frame : frames) {
    EXPECT_FALSE(has_work(find_offload(frame, kMtu)));
    const Bytes left = without_checksum(frame, 6);
    const VirtioHeader header = find_offload(left, kMtu);
    ASSERT_TRUE(header.is_segmented());
    const auto segments = Segmenter::of(left, header, 0);
    ASSERT_TRUE(segments);
    EXPECT_EQ(segments->count(), 4U);
    EXPECT_EQ(segments->length(0), kMtu + sizeof(EthernetHeader));
    std::string joined;
    for (std::size_t i = 0; i < segments->count(); ++i) {
      Bytes segment(segments->length(i));
      segments->write(i, segment.data());
      const auto length = static_cast<std::uint32_t>(segment.size());
      const PacketLayout layout = parse(segment.data(), length, length, LinkType::ethernet);
      joined.append(segment.begin() + layout.payload_offset, segment.end());
    }
    EXPECT_EQ(joined, payload);
    EXPECT_FALSE(find_offload(left, 9000).is_segmented());
  }
}

TEST(FindOffload, DoesNotSplitUdp) {
  const std::string payload(5000, 'x');
  const Bytes frame = without_checksum(
      PacketBuilder().eth().ipv4("10.0.0.1", "10.0.0.2").udp(5, 53).payload(payload).bytes(), ip_protocol::kUdp);
  EXPECT_FALSE(find_offload(frame, kMtu).is_segmented());
}

}  // namespace
}  // namespace penstock::port
