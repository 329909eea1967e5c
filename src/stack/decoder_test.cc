// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "packet/testing/packet_builder.h"
#include "stack/flow_table.h"

namespace penstock::stack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Frame = penstock::testing::Bytes;
using penstock::testing::packet;
using penstock::testing::PacketBuilder;

Frame operator+(Frame a, const Frame& b) { return a.insert(a.end(), b.begin(), b.end()), a; }
Frame bytes(std::initializer_list<int> values) { return {values.begin(), values.end()}; }
std::string text(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::string> events_of(const DecodedPacket& packet) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kDecodeEventNames.size(); ++i) {
    if (packet.events[i]) names.emplace_back(kDecodeEventNames[i]);
  }
  return names;
}

/// Frames, decoded one after the other; the packets' bytes are the last frame's.
class Decoding {
 public:
  explicit Decoding(TrackerOptions options = {}) : decoder_(options, counters) {}

  const std::vector<DecodedPacket>& of(Frame frame, LinkType link = LinkType::ethernet) {
    frame_ = std::move(frame);
    frame_.shrink_to_fit();  // a byte too far is seen
    PacketDescriptor descriptor;
    descriptor.timestamp_ns = now_ns;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame_.size());
    descriptor.link_type = link;
    packets_.clear();
    decoder_.decode({frame_.data(), &descriptor}, ++number_, [&](DecodedPacket& p) noexcept { packets_.push_back(p); });
    return packets_;
  }
  const std::vector<DecodedPacket>& of(const PacketBuilder& builder) { return of(builder.bytes()); }

  TrackerCounters counters;
  std::uint64_t now_ns = 1'000'000'000;

 private:
  Decoder decoder_;
  Frame frame_;
  std::vector<DecodedPacket> packets_;
  std::uint64_t number_ = 0;
};

const auto kSyn = TcpHeader::kSyn;

TEST(DecodeEvent, IsFoundByItsName) {
  ASSERT_TRUE(decode_event_of("ipv6.frag_overlap"));
  EXPECT_EQ(decode_event_of("ipv6.frag_overlap")->index, decode_event("ipv6.frag_overlap").index);
  EXPECT_FALSE(decode_event_of("ipv6.frag"));
  EXPECT_FALSE(decode_event_of(""));
}

TEST(Decoder, FindsTcpInIpv4) {
  Decoding decoding;
  const auto& packets = decoding.of(packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(4000, 80, kSyn).payload("hello"));
  ASSERT_THAT(packets, SizeIs(1));
  const DecodedPacket& p = packets[0];
  EXPECT_EQ(p.ip_version, 4);
  EXPECT_EQ(p.protocol, 6);
  EXPECT_TRUE(p.is_tcp());
  EXPECT_TRUE(p.has_flow);
  EXPECT_EQ(p.source, (Endpoint{{0, 0x0a000001}, 4000}));
  EXPECT_EQ(p.destination, (Endpoint{{0, 0xc0000207}, 80}));
  EXPECT_THAT(p.ip, SizeIs(20));
  EXPECT_THAT(p.ip_payload, SizeIs(25));
  EXPECT_THAT(p.transport, SizeIs(20));
  EXPECT_EQ(text(p.payload), "hello");
  EXPECT_EQ(p.number, 1U);
  EXPECT_EQ(p.timestamp_ns, 1'000'000'000U);
  EXPECT_THAT(events_of(p), IsEmpty());
  EXPECT_FALSE(p.invalid);
  EXPECT_EQ(decoding.counters.packets, 1U);
}

TEST(Decoder, LeavesPaddingOut) {
  Decoding decoding;
  const auto& packets = decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("ab").padded_to(60));
  ASSERT_THAT(packets, SizeIs(1));
  EXPECT_EQ(text(packets[0].payload), "ab");
}

TEST(Decoder, TakesUdpsPayloadByUdpsLength) {
  Decoding decoding;
  Frame frame = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1000, 2000).payload("abcdef").bytes();
  frame[14 + 20 + 5] = 8 + 2;  // less than IP has
  EXPECT_EQ(text(decoding.of(frame)[0].payload), "ab");
  frame[14 + 20 + 5] = 8 + 7;  // more
  const DecodedPacket& more = decoding.of(frame)[0];
  EXPECT_THAT(more.transport, IsEmpty());
  EXPECT_EQ(more.protocol, 17);
  EXPECT_EQ(more.source.port, 0);
  EXPECT_THAT(events_of(more), ElementsAre("udp.pkt_too_small"));
  EXPECT_TRUE(more.invalid);
  frame[14 + 20 + 5] = 7;
  EXPECT_THAT(events_of(decoding.of(frame)[0]), ElementsAre("udp.len_invalid"));
}

TEST(Decoder, RemembersThreeVlans) {
  Decoding decoding;
  const auto tagged = [&] { return packet().eth().vlan(5).vlan(0x2006).vlan(7); };
  const auto& packets = decoding.of(tagged().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
  EXPECT_EQ(packets[0].vlan_count, 3);
  EXPECT_THAT(packets[0].vlan_ids, ElementsAre(5, 6, 7));
  const auto& four = decoding.of(tagged().vlan(8).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
  EXPECT_THAT(events_of(four[0]), ElementsAre("vlan.too_many_layers"));
  EXPECT_EQ(four[0].ip_version, 0);
}

TEST(Decoder, TellsWhatIsWrongWithIpv4) {
  Decoding decoding;
  const Frame good = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("abcd").bytes();
  const auto with = [&](std::size_t at, int value) {
    Frame frame = good;
    frame[14 + at] = static_cast<std::uint8_t>(value);
    return events_of(decoding.of(frame)[0]);
  };
  EXPECT_THAT(with(0, 0x55), ElementsAre("ipv4.wrong_ip_version"));
  EXPECT_THAT(with(0, 0x44), ElementsAre("ipv4.hlen_too_small"));
  EXPECT_THAT(with(3, 19), ElementsAre("ipv4.iplen_smaller_than_hlen"));
  EXPECT_THAT(with(3, 33), ElementsAre("ipv4.trunc_pkt"));
  EXPECT_THAT(with(9, 58), ElementsAre("ipv4.icmpv6"));
  EXPECT_THAT(events_of(decoding.of(Frame(good.begin(), good.begin() + 33))[0]), ElementsAre("ipv4.pkt_too_small"));
  EXPECT_THAT(events_of(decoding.of(Frame(good.begin(), good.begin() + 13))[0]), ElementsAre("ethernet.pkt_too_small"));
  EXPECT_EQ(decoding.of(Frame(good.begin(), good.end() - 1))[0].ip_version, 0);
  EXPECT_TRUE(decoding.of(Frame(good.begin(), good.end() - 1))[0].truncated);
}

TEST(Decoder, TellsWhatIsWrongWithIpv4Options) {
  Decoding decoding;
  const auto with = [&](std::initializer_list<int> options) {
    return events_of(decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, bytes(options)).udp(1, 2))[0]);
  };
  EXPECT_THAT(with({1, 1, 1, 1, 1, 1, 1, 0}), IsEmpty());
  EXPECT_THAT(with({1, 1, 1, 0}), ElementsAre("ipv4.opt_pad_required"));
  EXPECT_THAT(with({148, 4, 0, 0, 148, 4, 0, 0}), ElementsAre("ipv4.opt_duplicate"));
  EXPECT_THAT(with({148, 3, 0, 0, 0, 0, 0, 0}), ElementsAre("ipv4.opt_invalid_len"));
  EXPECT_THAT(with({148, 9, 0, 0, 0, 0, 0, 0}), ElementsAre("ipv4.opt_invalid_len"));
  EXPECT_THAT(with({7, 7, 5, 0, 0, 0, 0, 0}), ElementsAre("ipv4.opt_malformed"));
  EXPECT_THAT(with({7, 7, 4, 0, 0, 0, 0, 0}), IsEmpty());
  EXPECT_THAT(with({99, 4, 0, 0, 99, 4, 0, 0}), ElementsAre("ipv4.opt_invalid"));
  EXPECT_THAT(with({1, 1, 1, 1, 1, 1, 1, 148}), ElementsAre("ipv4.opt_eol_required"));
  EXPECT_THAT(with({134, 10, 0, 0, 0, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0}), IsEmpty());
  EXPECT_THAT(with({134, 10, 0, 0, 0, 1, 1, 4, 1, 0, 0, 0, 0, 0, 0, 0}), ElementsAre("ipv4.opt_malformed"));
}

TEST(Decoder, StepsOverExtensionHeaders) {
  Decoding decoding;
  const auto& packets = decoding.of(packet()
                                        .eth()
                                        .ipv6("2001:db8::1", "2001:db8::2")
                                        .extension(ip_protocol::kHopByHop, 2)
                                        .extension(ip_protocol::kRouting)
                                        .fragment6(0)
                                        .extension(ip_protocol::kDestinationOptions)
                                        .udp(546, 547)
                                        .payload("x"));
  ASSERT_THAT(packets, SizeIs(1));
  const DecodedPacket& p = packets[0];
  EXPECT_EQ(p.ip_version, 6);
  EXPECT_EQ(p.protocol, 17);
  EXPECT_EQ(p.source, (Endpoint{*parse_ipv6("2001:db8::1"), 546}));
  EXPECT_THAT(p.ip, SizeIs(40 + 16 + 8 + 8 + 8));
  EXPECT_EQ(p.ip.data() + p.ip.size(), p.transport.data());
  EXPECT_EQ(text(p.payload), "x");
  EXPECT_FALSE(p.fragment);
  EXPECT_THAT(events_of(p), UnorderedElementsAre("ipv6.exthdr_useless_fh", "ipv6.hopopts_only_padding",
                                                 "ipv6.dstopts_only_padding", "ipv6.rh_type_0"));
}

TEST(Decoder, TellsWhatIsWrongWithIpv6) {
  Decoding decoding;
  const auto ip6 = [] { return packet().eth().ipv6("2001:db8::1", "2001:db8::2"); };
  const auto events = [&](const PacketBuilder& builder) { return events_of(decoding.of(builder)[0]); };
  EXPECT_THAT(events(ip6()), IsEmpty());
  EXPECT_THAT(events(ip6().payload("x")), ElementsAre("ipv6.data_after_none_header"));
  EXPECT_THAT(events(ip6().protocol(99).payload("xyz")), ElementsAre("ipv6.unknown_next_header"));
  EXPECT_THAT(events(ip6().protocol(1).payload("xyz")), ElementsAre("ipv6.icmpv4"));
  EXPECT_THAT(events(ip6().protocol(43).raw(bytes({59, 1, 4, 0, 0, 0, 0, 0}))), ElementsAre("ipv6.trunc_exthdr"));
  EXPECT_THAT(events(ip6().protocol(44).raw(bytes({59, 0, 0, 1}))), ElementsAre("ipv6.trunc_exthdr"));
  EXPECT_THAT(events(ip6().protocol(60).raw(bytes({59, 0, 5, 1, 0, 0, 1, 0}))),
              ElementsAre("ipv6.exthdr_invalid_optlen"));
  EXPECT_THAT(events(ip6().protocol(0).raw(bytes({59, 0, 5, 2, 0, 0, 1, 0}))), ElementsAre("ipv6.zero_len_padn"));
  EXPECT_THAT(events(ip6().protocol(0).raw(bytes({59, 0, 9, 4, 0, 0, 0, 0}))), ElementsAre("ipv6.hopopts_unknown_opt"));
  EXPECT_THAT(events(ip6().protocol(51).raw(bytes({59, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}))),
              ElementsAre("ipv6.exthdr_ah_res_not_null"));
  EXPECT_THAT(events(ip6().fragment6(0).fragment6(0)),
              UnorderedElementsAre("ipv6.exthdr_useless_fh", "ipv6.exthdr_dupl_fh"));
  EXPECT_THAT(events(ip6().extension(0).extension(0)),
              UnorderedElementsAre("ipv6.hopopts_only_padding", "ipv6.exthdr_dupl_hh"));
  EXPECT_THAT(events(ip6().extension(60).extension(60)), ElementsAre("ipv6.dstopts_only_padding"));
  EXPECT_THAT(events(ip6().extension(60).extension(60).extension(60)),
              UnorderedElementsAre("ipv6.dstopts_only_padding", "ipv6.exthdr_dupl_dh"));
  EXPECT_THAT(events(ip6().extension(43).extension(43)), UnorderedElementsAre("ipv6.rh_type_0", "ipv6.exthdr_dupl_rh"));
  Frame frame = ip6().payload("x").bytes();
  frame.pop_back();
  EXPECT_THAT(events_of(decoding.of(frame)[0]), ElementsAre("ipv6.trunc_pkt"));
}

TEST(Decoder, TellsWhatIsWrongWithTcp) {
  Decoding decoding;
  const auto tcp = [&](const Frame& options) {
    return events_of(decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2, kSyn, options))[0]);
  };
  EXPECT_THAT(tcp(bytes({2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 0, 0})), IsEmpty());
  EXPECT_THAT(tcp(bytes({2, 4, 5, 180, 2, 4, 5, 180})), ElementsAre("tcp.opt_duplicate"));
  EXPECT_THAT(tcp(bytes({2, 3, 5, 0})), ElementsAre("tcp.opt_invalid_len"));
  EXPECT_THAT(tcp(bytes({5, 9, 0, 0})), ElementsAre("tcp.opt_invalid_len"));
  Frame frame = packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).bytes();
  frame[14 + 20 + 12] = 0x60;
  EXPECT_THAT(events_of(decoding.of(frame)[0]), ElementsAre("tcp.hlen_too_small"));
  frame[14 + 20 + 12] = 0x40;
  EXPECT_THAT(events_of(decoding.of(frame)[0]), ElementsAre("tcp.invalid_optlen"));
  EXPECT_THAT(decoding.of(frame)[0].transport, IsEmpty());
  EXPECT_FALSE(decoding.of(frame)[0].has_flow);
}

TEST(Decoder, CountsWhatAnIcmpErrorQuotesAsPayload) {
  Decoding decoding;
  const Frame quoted = packet().ipv4("10.0.0.2", "10.0.0.1").udp(5, 6).bytes();
  const auto& packets = decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(3, 3).raw(quoted));
  ASSERT_THAT(packets, SizeIs(1));
  EXPECT_THAT(packets[0].transport, SizeIs(8));
  EXPECT_EQ(text(packets[0].payload), text(quoted));
  EXPECT_THAT(events_of(packets[0]), IsEmpty());
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(3, 3).payload("abc"))[0]),
              ElementsAre("icmpv4.ipv4_trunc_pkt"));
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(77))[0]),
              ElementsAre("icmpv4.unknown_type"));
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(8, 1))[0]),
              ElementsAre("icmpv4.unknown_code"));
}

TEST(Decoder, TakesAllOfARouterAdvertisementForItsHeader) {
  Decoding decoding;
  const auto& packets = decoding.of(packet()
                                        .eth()
                                        .ipv4("10.0.0.1", "10.0.0.2")
                                        .protocol(1)
                                        .raw(bytes({9, 0, 0, 0, 1, 2, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8})));
  EXPECT_THAT(packets[0].transport, SizeIs(16));
  EXPECT_THAT(packets[0].payload, SizeIs(8));
}

TEST(Decoder, CountsIcmpv6sPayloadAsSuricata) {
  Decoding decoding;
  const auto payload = [&](std::uint8_t type) {
    return text(decoding.of(packet().eth().ipv6("fe80::1", "fe80::2", 1).icmp(type).payload("123456"))[0].payload);
  };
  EXPECT_EQ(payload(128), "123456");
  EXPECT_EQ(payload(135), std::string(2, 0));
}

TEST(Decoder, ChecksTheHopLimitOfMulticastListeners) {
  Decoding decoding;
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv6("fe80::1", "ff02::1", 64).icmp(131))[0]),
              ElementsAre("icmpv6.mld_message_with_invalid_hl"));
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv6("fe80::1", "ff02::1", 1).icmp(131))[0]), IsEmpty());
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv6("fe80::1", "ff02::1").icmp(200))[0]),
              ElementsAre("icmpv6.experimentation_type"));
  EXPECT_THAT(events_of(decoding.of(packet().eth().ipv6("fe80::1", "ff02::1").icmp(50))[0]),
              ElementsAre("icmpv6.unassigned_type"));
}

const Frame kInner = packet().ipv4("10.1.0.1", "10.1.0.2").udp(700, 800).payload("inner").bytes();
const Frame kInner6 = packet().ipv6("fd00::1", "fd00::2").udp(700, 800).payload("inner").bytes();

/// An outer packet with a protocol, and `kInner` or another in it.
std::vector<DecodedPacket> in_ipv4(Decoding& decoding, std::uint8_t protocol, const Frame& payload) {
  return decoding.of(packet().eth().vlan(9).ipv4("192.0.2.1", "192.0.2.2").protocol(protocol).raw(payload));
}

void expect_inner(const std::vector<DecodedPacket>& packets) {
  ASSERT_THAT(packets, SizeIs(2));
  EXPECT_EQ(packets[0].tunnel_depth, 0);
  EXPECT_TRUE(packets[0].carries_packet);
  EXPECT_EQ(packets[1].tunnel_depth, 1);
  EXPECT_EQ(packets[1].source.port, 700);
  EXPECT_EQ(text(packets[1].payload), "inner");
  EXPECT_EQ(packets[1].vlan_count, 0);
  EXPECT_EQ(packets[1].number, packets[0].number);
  EXPECT_THAT(events_of(packets[0]), IsEmpty());
}

TEST(Decoder, DecodesIpInIp) {
  Decoding decoding;
  expect_inner(in_ipv4(decoding, 4, kInner));
  expect_inner(in_ipv4(decoding, 41, kInner6));
  expect_inner(decoding.of(packet().eth().ipv6("fd00::8", "fd00::9").protocol(4).raw(kInner)));
  expect_inner(decoding.of(packet().eth().ipv6("fd00::8", "fd00::9").protocol(41).raw(kInner6)));
  EXPECT_EQ(decoding.counters.tunnelled, 4U);
}

TEST(Decoder, SaysOfWhichTunnelsFlowsAreKept) {
  Decoding decoding;
  const auto ip_in_ip = in_ipv4(decoding, 4, kInner);
  EXPECT_TRUE(ip_in_ip[0].has_flow);
  EXPECT_TRUE(flow_lookup_of(ip_in_ip[0], 0));
  const auto gre = in_ipv4(decoding, 47, bytes({0, 0, 8, 0}) + kInner);
  EXPECT_FALSE(gre[0].has_flow);
  EXPECT_FALSE(flow_lookup_of(gre[0], 0));
  EXPECT_TRUE(flow_lookup_of(gre[1], 0));
}

TEST(Decoder, GivesATunnelUpWhosePacketIsWrong) {
  Decoding decoding;
  const auto& packets = in_ipv4(decoding, 4, Frame(kInner.begin(), kInner.end() - 1));
  ASSERT_THAT(packets, SizeIs(1));
  EXPECT_FALSE(packets[0].carries_packet);
  EXPECT_EQ(decoding.counters.tunnelled, 0U);
}

TEST(Decoder, DecodesGre) {
  Decoding decoding;
  const Frame ethernet = packet().eth().ipv4("10.1.0.1", "10.1.0.2").udp(700, 800).payload("inner").bytes();
  expect_inner(in_ipv4(decoding, 47, bytes({0, 0, 8, 0}) + kInner));
  expect_inner(in_ipv4(decoding, 47, bytes({0, 0, 0x86, 0xdd}) + kInner6));
  expect_inner(in_ipv4(decoding, 47, bytes({0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2}) + kInner));
  expect_inner(in_ipv4(decoding, 47, bytes({0, 0, 0x65, 0x58}) + ethernet));
  expect_inner(in_ipv4(decoding, 47, bytes({0, 0, 0x88, 0xbe}) + ethernet));
  expect_inner(in_ipv4(decoding, 47, bytes({0x30, 1, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21}) + kInner));
  // A source route entry of two bytes, and the last one.
  expect_inner(in_ipv4(decoding, 47, bytes({0x40, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 2, 7, 7, 0, 0, 0, 0}) + kInner));
  const auto& erspan =
      in_ipv4(decoding, 47, bytes({0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 0, 0, 0, 0, 0}) + ethernet);
  ASSERT_THAT(erspan, SizeIs(2));
  EXPECT_THAT(erspan[1].vlan_ids[0], 5);
}

TEST(Decoder, TellsWhatIsWrongWithGre) {
  Decoding decoding;
  const auto gre = [&](std::initializer_list<int> header) {
    return events_of(in_ipv4(decoding, 47, bytes(header))[0]);
  };
  EXPECT_THAT(gre({0, 0, 8}), ElementsAre("gre.pkt_too_small"));
  EXPECT_THAT(gre({0, 2, 8, 0}), ElementsAre("gre.wrong_version"));
  EXPECT_THAT(gre({1, 0, 8, 0}), ElementsAre("gre.version0_recur"));
  EXPECT_THAT(gre({0, 8, 8, 0}), ElementsAre("gre.version0_flags"));
  EXPECT_THAT(gre({0x20, 0, 8, 0}), ElementsAre("gre.version0_hdr_too_big"));
  EXPECT_THAT(gre({0x40, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 9}), ElementsAre("gre.version0_malformed_sre_hdr"));
  EXPECT_THAT(gre({0xa0, 1, 0x88, 0x0b}), ElementsAre("gre.version1_chksum"));
  EXPECT_THAT(gre({0x20, 1, 8, 0}), ElementsAre("gre.version1_wrong_protocol"));
  EXPECT_THAT(gre({0, 1, 0x88, 0x0b}), ElementsAre("gre.version1_no_key"));
  EXPECT_THAT(gre({0x20, 1, 0x88, 0x0b}), ElementsAre("gre.version1_hdr_too_big"));
}

Frame vxlan(const Frame& inner, int flags = 8, std::uint16_t to = 4789) {
  return packet()
      .eth()
      .ipv4("192.0.2.1", "192.0.2.2")
      .udp(50000, to)
      .raw(bytes({flags, 0, 0, 0, 0, 0, 7, 0}) + inner)
      .bytes();
}

TEST(Decoder, DecodesTunnelsOverUdp) {
  Decoding decoding;
  const Frame ethernet = packet().eth().ipv4("10.1.0.1", "10.1.0.2").udp(700, 800).payload("inner").bytes();
  expect_inner(decoding.of(vxlan(ethernet)));
  EXPECT_THAT(decoding.of(vxlan(ethernet, 0)), SizeIs(1));
  EXPECT_THAT(decoding.of(vxlan(ethernet, 8, 4788)), SizeIs(1));
  const auto udp = [](std::uint16_t port, const Frame& payload) {
    return packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(port, 9).raw(payload);
  };
  expect_inner(decoding.of(udp(3544, kInner6)));
  expect_inner(decoding.of(udp(3544, bytes({0, 0, 1, 2, 3, 4, 5, 6}) + kInner6)));
  EXPECT_THAT(decoding.of(udp(3545, kInner6)), SizeIs(1));
  EXPECT_THAT(decoding.of(udp(3544, kInner6 + bytes({0}))), SizeIs(1));
  expect_inner(decoding.of(udp(6081, bytes({2, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 1, 0, 0, 0, 0}) + ethernet)));
  EXPECT_THAT(decoding.of(udp(6081, bytes({1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 1, 0, 0, 0, 0}) + ethernet)),
              SizeIs(1));
}

TEST(Decoder, BoundsTunnelsInEachOther) {
  TrackerOptions options;
  options.most_tunnels = 3;
  Decoding few(options), many;
  Frame frame = kInner;
  for (int i = 0; i < 40; ++i) frame = packet().ipv4("10.1.0.1", "10.1.0.2").protocol(4).raw(frame).bytes();
  EXPECT_THAT(few.of(frame, LinkType::raw_ip), SizeIs(4));
  const auto& packets = many.of(frame, LinkType::raw_ip);
  EXPECT_THAT(packets, SizeIs(8));
  EXPECT_THAT(events_of(packets.back()), ElementsAre("too_many_layers"));
}

TEST(Decoder, ReadsAllLinkTypes) {
  Decoding decoding;
  const auto expect = [&](LinkType link, const Frame& before) {
    const auto& packets = decoding.of(before + kInner, link);
    ASSERT_THAT(packets, SizeIs(1));
    EXPECT_EQ(text(packets[0].payload), "inner") << static_cast<int>(link);
    EXPECT_EQ(packets[0].link_type, link);
  };
  expect(LinkType::raw_ip, {});
  expect(LinkType::null_host, bytes({2, 0, 0, 0}));
  expect(LinkType::null_host, bytes({0, 0, 0, 2}));
  expect(LinkType::loop, bytes({0, 0, 0, 2}));
  expect(LinkType::linux_sll, Frame(14) + bytes({8, 0}));
  expect(LinkType::linux_sll2, bytes({8, 0}) + Frame(18));
  expect(LinkType::ppp, bytes({0xff, 3, 0, 0x21}));
  expect(LinkType::ppp, bytes({0, 0x21}));
  expect(LinkType::ppp, bytes({0x21}));
  expect(LinkType::cisco_hdlc, bytes({15, 0, 8, 0}));
  const Frame macs(12);
  expect(LinkType::ethernet, macs + bytes({0x88, 0x64, 0x11, 0, 0, 1, 0, 35, 0, 0x21}));
  expect(LinkType::ethernet, macs + bytes({0x88, 0x47, 0, 1, 0x50, 64, 0, 2, 0x51, 64}));
  expect(LinkType::ethernet, macs + bytes({0x89, 0x4f, 0, 2, 2, 1, 0, 0, 1, 1}));
  expect(LinkType::ethernet, macs + bytes({0x88, 0xe7, 0, 0, 0, 1}) + macs + bytes({8, 0}));
  expect(LinkType::ethernet, macs + bytes({0x89, 0x26, 0, 0, 0, 1, 8, 0}));
}

TEST(Decoder, TellsWhatIsWrongWithLinkLayers) {
  Decoding decoding;
  const auto of = [&](LinkType link, const Frame& frame) { return events_of(decoding.of(frame, link)[0]); };
  const Frame macs(12);
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x12, 0x34, 0})), ElementsAre("ethernet.unknown_ethertype"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x81, 0, 0})), ElementsAre("vlan.header_too_small"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x81, 0, 0, 1, 0x12, 0x34})),
              UnorderedElementsAre("vlan.unknown_type", "ethernet.unknown_ethertype"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({8, 6, 0, 1})), ElementsAre("arp.pkt_too_small"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x88, 0x63, 0x11, 1, 0, 0, 0, 0})), ElementsAre("pppoe.wrong_code"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x88, 0x63, 0x11, 9, 0, 0, 0, 1})),
              ElementsAre("pppoe.malformed_tags"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x88, 0x47, 0, 0, 0, 64})), ElementsAre("mpls.header_too_small"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x88, 0x47, 0, 0, 0x31, 64})),
              ElementsAre("mpls.bad_label_implicit_null"));
  EXPECT_THAT(of(LinkType::ethernet, macs + bytes({0x89, 0x4f, 0, 2, 0, 1, 0, 0, 1, 1, 0})),
              ElementsAre("nsh.reserved_type"));
  EXPECT_THAT(of(LinkType::ppp, bytes({0xff, 3, 0xc0, 0x21})), IsEmpty());
  EXPECT_THAT(of(LinkType::ppp, bytes({0xff, 3, 0, 0x21, 0x45})), ElementsAre("ppp.ip4_pkt_too_small"));
  EXPECT_THAT(of(LinkType::ppp, bytes({0xff, 3, 0, 0x2b})), ElementsAre("ppp.unsup_proto"));
  EXPECT_THAT(of(LinkType::ppp, bytes({0xff, 3, 0x77, 0x76})), ElementsAre("ppp.wrong_type"));
  EXPECT_THAT(of(LinkType::ppp, {}), ElementsAre("ppp.pkt_too_small"));
  EXPECT_THAT(of(LinkType::raw_ip, Frame(20)), ElementsAre("ipraw.invalid_ip_version"));
  EXPECT_THAT(of(LinkType::null_host, bytes({9, 0, 0, 0})), ElementsAre("ltnull.unsupported_type"));
  EXPECT_THAT(of(LinkType::linux_sll, Frame(15)), ElementsAre("sll.pkt_too_small"));
}

/// The fragments of an IPv4 packet with 24 bytes of payload; `offset` and `length` in units of 8 bytes.
Frame fragment4(unsigned offset, unsigned length, bool more, const Frame& whole = kInner) {
  const Frame ip_payload = Frame(whole.begin() + 20, whole.end());
  const auto begin = ip_payload.begin() + offset * 8;
  const auto end = more ? begin + length * 8 : ip_payload.end();
  return packet()
      .eth()
      .vlan(4)
      .ipv4("10.1.0.1", "10.1.0.2", 64, {}, static_cast<std::uint16_t>(offset | (more ? 0x2000U : 0U)))
      .protocol(whole[9])
      .raw(Frame(begin, end))
      .bytes();
}

TEST(Decoder, PutsADatagramTogetherFromItsFragments) {
  Decoding decoding;
  const auto& first = decoding.of(fragment4(0, 1, true));
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_TRUE(first[0].fragment);
  EXPECT_FALSE(first[0].has_flow);
  EXPECT_EQ(first[0].source.port, 0);
  EXPECT_THAT(first[0].transport, IsEmpty());
  const auto& second = decoding.of(fragment4(1, 0, false));
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_TRUE(second[0].fragment);
  EXPECT_FALSE(second[1].fragment);
  EXPECT_TRUE(second[1].reassembled);
  EXPECT_EQ(second[1].tunnel_depth, 0);
  EXPECT_EQ(second[1].source.port, 700);
  EXPECT_EQ(text(second[1].payload), "inner");
  EXPECT_EQ(second[1].vlan_ids[0], 4);
  EXPECT_EQ(second[1].number, 2U);
  EXPECT_EQ(decoding.counters.reassembled, 1U);
  EXPECT_EQ(decoding.counters.fragments, 2U);
}

TEST(Decoder, DecodesTheTunnelInAReassembledDatagram) {
  Decoding decoding;
  Frame tunnel = packet().ipv4("10.1.0.1", "10.1.0.2").protocol(4).raw(kInner).bytes();
  EXPECT_THAT(decoding.of(fragment4(2, 0, false, tunnel)), SizeIs(1));
  const auto& packets = decoding.of(fragment4(0, 2, true, tunnel));
  ASSERT_THAT(packets, SizeIs(3));
  EXPECT_TRUE(packets[1].carries_packet);
  EXPECT_TRUE(packets[1].reassembled);
  EXPECT_EQ(packets[2].tunnel_depth, 1);
  EXPECT_EQ(text(packets[2].payload), "inner");
}

TEST(Decoder, PutsIpv6TogetherWithoutTheFragmentHeader) {
  Decoding decoding;
  const auto fragment = [](std::uint16_t offset, bool more, std::string_view payload) {
    auto builder = packet().eth().ipv6("fd00::1", "fd00::2").extension(ip_protocol::kDestinationOptions);
    builder.fragment6(static_cast<std::uint16_t>(offset | (more ? 1U : 0U))).protocol(17);
    return builder.payload(payload).bytes();
  };
  using namespace std::string_view_literals;
  EXPECT_THAT(decoding.of(fragment(8, false, "payload")), SizeIs(1));
  EXPECT_EQ(decoding.of(fragment(8, false, "payload"))[0].protocol, 44);
  const auto& packets = decoding.of(fragment(0, true, "\x00\x35\x00\x36\x00\x0f\x00\x00"sv));
  ASSERT_THAT(packets, SizeIs(2));
  EXPECT_EQ(packets[1].protocol, 17);
  EXPECT_EQ(packets[1].source.port, 53);
  EXPECT_EQ(text(packets[1].payload), "payload");
  EXPECT_THAT(packets[1].ip, SizeIs(48));
  EXPECT_THAT(events_of(packets[1]), ElementsAre("ipv6.dstopts_only_padding"));
}

}  // namespace
}  // namespace penstock::stack
