// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
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

/*  Ethernet │ VLAN 5 │ VLAN 6 │ VLAN 7 │ … │ IPv4  */
TEST(Decoder, RemembersEightVlans) {
  Decoding decoding;
  const auto tagged = [&] { return packet().eth().vlan(5).vlan(0x2006).vlan(7); };
  const auto& packets = decoding.of(tagged().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
  EXPECT_EQ(packets[0].vlan_count, 3);
  EXPECT_THAT(packets[0].vlan_ids, ElementsAre(5, 6, 7, 0, 0, 0, 0, 0));
  EXPECT_THAT(events_of(packets[0]), IsEmpty());
  const auto& eight =
      decoding.of(tagged().vlan(8).vlan(9).vlan(10).vlan(11).vlan(12).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
  EXPECT_THAT(eight[0].vlan_ids, ElementsAre(5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_EQ(eight[0].ip_version, 4) << "Linux takes any number";
  EXPECT_THAT(events_of(eight[0]), ElementsAre("vlan.too_many_layers")) << "as Suricata, which stops there";
  const auto& nine =
      decoding.of(tagged().vlan(8).vlan(9).vlan(10).vlan(11).vlan(12).vlan(13).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
  EXPECT_EQ(nine[0].ip_version, 0);
  EXPECT_TRUE(nine[0].undecodable);
}

TEST(Decoder, TellsFlowsApartByAllTheirVlans) {
  Decoding decoding;
  const auto hash = [&](std::uint16_t deepest) {
    const auto& packets =
        decoding.of(packet().eth().vlan(1).vlan(2).vlan(3).vlan(deepest).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
    return flow_lookup_of(packets[0], 7)->hash;
  };
  EXPECT_NE(hash(4), hash(5));
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
const Frame kInnerEthernet = packet().eth().ipv4("10.1.0.1", "10.1.0.2").udp(700, 800).payload("inner").bytes();
const Frame kInnerTeredo = packet().ipv6("2001:0:a0a:101::1", "fd00::2").udp(700, 800).payload("inner").bytes();

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

/*  IPv6 │ destination options: tunnel encapsulation limit │ IPv6, or GRE │ …    as Linux sends it (RFC 2473 §4.1.1)  */
TEST(Decoder, DecodesTunnelsBehindExtensionHeaders) {
  Decoding decoding;
  const auto with_limit = [](int next) {
    return packet().eth().ipv6("fd00::8", "fd00::9").protocol(60).raw(bytes({next, 0, 4, 1, 4, 1, 1, 0}));
  };
  for (const auto& [next, inner] : {std::pair{41, kInner6}, {4, kInner}, {47, bytes({0, 0, 0x86, 0xdd}) + kInner6}}) {
    const auto& packets = decoding.of(with_limit(next).raw(inner));
    ASSERT_THAT(packets, SizeIs(2)) << next;
    EXPECT_EQ(text(packets[1].payload), "inner");
  }
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

PacketBuilder udp(std::uint16_t from, std::uint16_t to, const Frame& payload) {
  return packet().eth().ipv4("192.0.2.1", "192.0.2.2").udp(from, to).raw(payload);
}

/*  UDP │ flags, reserved, network identifier, reserved │ Ethernet │ IP  */
TEST(Decoder, DecodesVxlan) {
  Decoding decoding;
  expect_inner(decoding.of(vxlan(kInnerEthernet)));
  for (const std::uint16_t port : TunnelPorts().vxlan) {
    if (port != 0) expect_inner(decoding.of(vxlan(kInnerEthernet, 8, port)));
  }
  EXPECT_THAT(decoding.of(vxlan(kInnerEthernet, 8, 4788)), SizeIs(1));
  EXPECT_THAT(decoding.of(udp(4789, 9, bytes({8, 0, 0, 0, 0, 0, 7, 0}) + kInnerEthernet)), SizeIs(1))
      << "the destination port says what a payload is";
  TrackerOptions options;
  options.tunnel_ports.vxlan = {1234};
  Decoding other(options);
  expect_inner(other.of(vxlan(kInnerEthernet, 8, 1234)));
  EXPECT_THAT(other.of(vxlan(kInnerEthernet)), SizeIs(1));
}

// RFC 7348 §5: "ignored on receipt". A group policy sets some (draft-smith-vxlan-group-policy).
TEST(Decoder, IgnoresVxlansReservedBits) {
  Decoding decoding;
  for (int bit = 0; bit < 64; ++bit) {
    if (bit == 4 || (bit >= 32 && bit < 56)) continue;  // the flag that must be set, the network identifier
    Frame header = bytes({8, 0, 0, 0, 0, 0, 7, 0});
    header[static_cast<std::size_t>(bit) / 8] |= static_cast<std::uint8_t>(0x80 >> bit % 8);
    expect_inner(decoding.of(udp(50000, 4789, header + kInnerEthernet)));
  }
  expect_inner(decoding.of(udp(50000, 4789, bytes({0x88, 0, 0x12, 0x34, 0, 0, 7, 0}) + kInnerEthernet)));
  const auto& without = decoding.of(vxlan(kInnerEthernet, 0));
  ASSERT_THAT(without, SizeIs(1)) << "every receiver drops it";
  EXPECT_THAT(without[0].payload, SizeIs(8 + kInnerEthernet.size()));
}

/*  UDP │ flags with P, next protocol │ what that names  */
TEST(Decoder, DecodesWhatVxlansGenericExtensionNames) {
  Decoding decoding;
  const auto gpe = [&](int next, const Frame& inner, int flags = 0x0c) {
    return decoding.of(udp(50000, 4790, bytes({flags, 0, 0, next, 0, 0, 7, 0}) + inner));
  };
  expect_inner(gpe(1, kInner));
  expect_inner(gpe(2, kInner6));
  expect_inner(gpe(3, kInnerEthernet));
  expect_inner(gpe(4, bytes({0, 2, 2, 1, 0, 0, 1, 1}) + kInner));
  expect_inner(gpe(1, kInnerEthernet));  // whoever does not know the flag finds this
  expect_inner(gpe(1, kInnerEthernet, 0x8c));
}

TEST(Decoder, FindsIpBehindOtherHeadersInVxlan) {
  Decoding decoding;
  const Frame macs(12);
  expect_inner(decoding.of(vxlan(macs + bytes({0x88, 0x47, 0, 2, 0x51, 64}) + kInner)));
  expect_inner(decoding.of(vxlan(macs + bytes({0, 46, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0}) + kInner)));
  const auto& unknown = decoding.of(vxlan(macs + bytes({0x12, 0x34}) + kInner));
  ASSERT_THAT(unknown, SizeIs(1));
  EXPECT_THAT(events_of(unknown[0]), ElementsAre("vxlan.unknown_payload_type"));
  EXPECT_FALSE(unknown[0].carries_packet);
  EXPECT_TRUE(unknown[0].undecodable);
  EXPECT_FALSE(decoding.of(vxlan(macs + bytes({0x88, 0xcc, 1, 2})))[0].undecodable);
  EXPECT_FALSE(decoding.of(vxlan(macs + bytes({8, 6}) + Frame(28)))[0].undecodable);
}

/*  UDP │ version and length of options, flags, EtherType, network identifier, reserved │ options │ Ethernet  */
TEST(Decoder, DecodesGeneve) {
  Decoding decoding;
  const auto geneve = [](int version_and_length, const Frame& more) {
    return udp(50000, 6081, bytes({version_and_length, 0, 0x65, 0x58, 0, 0, 7, 0}) + more);
  };
  expect_inner(decoding.of(geneve(2, bytes({1, 2, 3, 1, 0, 0, 0, 0}) + kInnerEthernet)));
  expect_inner(
      decoding.of(geneve(1, bytes({1, 2, 3, 9}) + kInnerEthernet)));  // who does not process options steps over
  expect_inner(decoding.of(udp(50000, 6081, bytes({0, 0x3f, 0x65, 0x58, 0, 0, 7, 0xff}) + kInnerEthernet)));
  EXPECT_THAT(decoding.of(geneve(0x40, kInnerEthernet)), SizeIs(1)) << "another version";
  EXPECT_THAT(decoding.of(geneve(63, kInnerEthernet)), SizeIs(1));
}

// Who sends chooses the source port: what is found by it alone must not hide the payload from rules.
TEST(Decoder, ShowsThePayloadAsWellWhereATunnelIsButAGuess) {
  Decoding decoding;
  const auto both = [&](const std::vector<DecodedPacket>& packets) {
    ASSERT_THAT(packets, SizeIs(2));
    EXPECT_FALSE(packets[0].carries_packet);
    EXPECT_EQ(text(packets[1].payload), "inner");
  };
  both(decoding.of(udp(6081, 53, bytes({0, 0, 0x65, 0x58, 0, 0, 7, 0}) + kInnerEthernet)));
  both(decoding.of(udp(3544, 53, kInnerTeredo)));
  both(decoding.of(udp(53, 3544, kInnerTeredo)));
}

/*  UDP │ authentication? │ origin? │ IPv6 of which one address is Teredo's │ trailers?  */
TEST(Decoder, DecodesTeredoOnlyWhereItIsTeredo) {
  Decoding decoding;
  const auto inner = [&](const Frame& payload, std::uint16_t port = 3544) {
    const auto& packets = decoding.of(udp(port, 9, payload));
    EXPECT_FALSE(packets[0].undecodable);
    return packets.size() == 2 ? text(packets[1].payload) : "none";
  };
  EXPECT_EQ(inner(kInnerTeredo), "inner");
  EXPECT_EQ(inner(kInnerTeredo, 3545), "none");
  EXPECT_EQ(inner(kInner6), "none") << "neither address is Teredo's";
  EXPECT_EQ(inner(packet().ipv6("fd00::1", "2001:0:a0a:101::1").udp(1, 2).payload("to").bytes()), "to");
  EXPECT_EQ(inner(packet().ipv6("2001:1::1", "fd00::1").udp(1, 2).payload("to").bytes()), "none");
  EXPECT_EQ(inner(bytes({0, 0, 1, 2, 3, 4, 5, 6}) + kInnerTeredo), "inner");
  const Frame authentication = bytes({0, 1, 2, 3, 'i', 'd', 'v', 'a', 'l', 1, 2, 3, 4, 5, 6, 7, 8, 0});
  EXPECT_EQ(inner(authentication + bytes({0, 0, 1, 2, 3, 4, 5, 6}) + kInnerTeredo), "inner");
  EXPECT_EQ(inner(kInnerTeredo + bytes({1, 4, 0, 0, 0, 0})), "inner") << "RFC 6081's trailers";
  EXPECT_EQ(inner(Frame(kInnerTeredo.begin(), kInnerTeredo.end() - 1)), "none");
  EXPECT_NE(inner(packet().ipv6("fe80::1", "ff02::2").icmp(133).bytes()), "none") << "a client asks its server";
}

TEST(Decoder, HidesNoPayloadBehindAPacketThatIsNone) {
  Decoding decoding;
  Frame broken = kInnerEthernet;
  broken[14 + 20 + 5] = 200;  // longer than UDP can be
  for (const Frame& inner : {broken, Frame(12) + bytes({8, 0, 0x45, 0}), Frame(10)}) {
    const auto packets = decoding.of(vxlan(inner));
    EXPECT_FALSE(packets[0].carries_packet);
    EXPECT_THAT(packets[0].payload, SizeIs(8 + inner.size()));
    EXPECT_TRUE(std::ranges::any_of(packets, &DecodedPacket::undecodable));
  }
  const auto& gre = in_ipv4(decoding, 47, bytes({0, 0, 0x65, 0x58}) + Frame(12) + bytes({0x12, 0x34}));
  EXPECT_FALSE(gre[0].carries_packet);
  EXPECT_TRUE(gre[1].undecodable);
}

// RFC 2675 §4, and Linux in packets of any size.
TEST(Decoder, TakesAllThatFollowsForUdpOfLengthZeroInIpv6) {
  Decoding decoding;
  Frame frame = packet().eth().ipv6("fd00::1", "fd00::2").udp(1, 2).payload("hidden").bytes();
  frame[14 + 40 + 5] = 0;
  EXPECT_EQ(text(decoding.of(frame)[0].payload), "hidden");
  EXPECT_THAT(events_of(decoding.of(frame)[0]), ElementsAre("udp.len_invalid"));
  frame = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("no").bytes();
  frame[14 + 20 + 5] = 0;
  EXPECT_THAT(decoding.of(frame)[0].transport, IsEmpty());
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
  expect(LinkType::ethernet, macs + bytes({0x88, 0x64, 0x11, 0, 0, 1, 0, 39, 2, 0x81, 0, 2, 0x51, 64}));
  expect(LinkType::ethernet, macs + bytes({0x88, 0x47, 0, 1, 0x50, 64, 0, 2, 0x51, 64}));
  expect(LinkType::ethernet, macs + bytes({0x89, 0x4f, 0, 2, 2, 1, 0, 0, 1, 1}));
  expect(LinkType::ethernet, macs + bytes({0x88, 0xe7, 0, 0, 0, 1}) + macs + bytes({8, 0}));
  expect(LinkType::ethernet, macs + bytes({0x89, 0x26, 0, 0, 0, 1, 8, 0}));
}

/*  MAC addresses │ length │ LLC: AA AA 03 │ SNAP: organization, EtherType │ IP  */
TEST(Decoder, FindsIpBehindLlcAndSnap) {
  Decoding decoding;
  const Frame macs(12);
  const auto payload = [&](const Frame& between, const Frame& ip = kInner) {
    return text(decoding.of(macs + between + ip)[0].payload);
  };
  EXPECT_EQ(payload(bytes({0, 46, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0})), "inner");
  EXPECT_EQ(payload(bytes({0, 66, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd}), kInner6), "inner");
  EXPECT_EQ(payload(bytes({0x81, 0, 0, 5, 0, 46, 0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0})), "inner");
  EXPECT_EQ(payload(bytes({0, 46, 0xaa, 0xaa, 3, 0, 0, 0x0c, 8, 0})), "") << "an organization's own";
}

TEST(Decoder, SaysWhereAPacketMayLieThatItDoesNotFind) {
  Decoding decoding;
  const auto of = [&](const Frame& frame, LinkType link = LinkType::ethernet) {
    return std::ranges::any_of(decoding.of(frame, link), &DecodedPacket::undecodable);
  };
  const Frame macs(12);
  const auto ethernet = [&](std::initializer_list<int> type, const Frame& more = kInner) {
    return of(macs + bytes(type) + more);
  };
  EXPECT_FALSE(ethernet({8, 0}));
  EXPECT_TRUE(ethernet({0x12, 0x34})) << "an unknown EtherType";
  EXPECT_TRUE(ethernet({0x81, 0, 0, 1, 0x12, 0x34}));
  EXPECT_TRUE(ethernet({0x88, 0xe5})) << "MACsec";
  EXPECT_TRUE(ethernet({0x89, 0x2f})) << "HSR, which lies around other frames";
  EXPECT_TRUE(ethernet({0x88, 0x47, 0, 2, 0x51, 64}, bytes({0x55, 1, 2, 3}) + kInner)) << "MPLS";
  EXPECT_TRUE(ethernet({0x88, 0x47, 0, 0, 0x71, 64})) << "a reserved label";
  EXPECT_TRUE(ethernet({0x88, 0x64, 0x11, 0, 0, 1, 0, 0}));
  EXPECT_TRUE(ethernet({0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0x00, 0x3d})) << "multilink PPP";
  EXPECT_TRUE(ethernet({0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0x00, 0x2d})) << "compressed TCP";
  EXPECT_TRUE(ethernet({0, 46, 0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7})) << "bridged frames in SNAP";
  EXPECT_TRUE(ethernet({0, 46, 0x06, 0x06, 3})) << "IP's own LLC address";
  EXPECT_TRUE(of(Frame(20), LinkType::raw_ip));
  EXPECT_TRUE(of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").protocol(51).raw(kInner).bytes())) << "AH";
  EXPECT_TRUE(of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").protocol(137).raw(kInner).bytes())) << "MPLS in IP";
  EXPECT_TRUE(of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").protocol(47).raw(bytes({0, 0, 0x12, 0x34, 1})).bytes()));
  EXPECT_TRUE(of(packet().eth().ipv6("fd00::1", "fd00::2").protocol(60).raw(bytes({6, 9, 0, 0})).bytes()));
  EXPECT_TRUE(of(Frame(12) + bytes({8, 0}) + Frame(kInner.begin(), kInner.end() - 1))) << "cut";
  Frame deep = kInner;
  for (int i = 0; i < 20; ++i) deep = packet().ipv4("10.1.0.1", "10.1.0.2").protocol(4).raw(deep).bytes();
  EXPECT_TRUE(of(deep, LinkType::raw_ip)) << "tunnels in each other";
  Frame tcp = packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).bytes();
  tcp[14 + 20 + 12] = 0x40;
  EXPECT_TRUE(of(tcp)) << "TCP's header is too short";
}

TEST(Decoder, KnowsWhatCarriesNoIp) {
  Decoding decoding;
  const Frame macs(12);
  const auto undecodable = [&](std::initializer_list<int> type) {
    return decoding.of(macs + bytes(type) + Frame(40))[0].undecodable;
  };
  EXPECT_FALSE(undecodable({8, 6}));                                         // ARP, sound or not
  EXPECT_FALSE(undecodable({0x88, 0xcc}));                                   // LLDP
  EXPECT_FALSE(undecodable({0x88, 0x09}));                                   // LACP
  EXPECT_FALSE(undecodable({0x88, 0x8e}));                                   // EAPOL
  EXPECT_FALSE(undecodable({0x81, 0, 0, 5, 0x88, 0xf7}));                    // PTP, tagged
  EXPECT_FALSE(undecodable({0x88, 0x63, 0x11, 9, 0, 0, 0, 0}));              // PPPoE discovery
  EXPECT_FALSE(undecodable({0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0xc0, 0x21}));  // PPP's link control
  EXPECT_FALSE(undecodable({0, 38, 0x42, 0x42, 3}));                         // spanning tree
  EXPECT_FALSE(undecodable({0, 38, 0xfe, 0xfe, 3}));                         // IS-IS
  EXPECT_FALSE(undecodable({0, 38, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0}));    // CDP
  const auto ip = [&](std::uint8_t protocol, const Frame& payload) {
    return in_ipv4(decoding, protocol, payload)[0].undecodable;
  };
  EXPECT_FALSE(ip(2, Frame(8))) << "IGMP";
  EXPECT_FALSE(ip(89, Frame(24))) << "OSPF";
  EXPECT_FALSE(ip(50, Frame(40))) << "ESP";
  EXPECT_FALSE(ip(253, Frame(40))) << "rules see its addresses and protocol";
  EXPECT_FALSE(ip(47, bytes({0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 5}))) << "PPTP's acknowledgment";
  EXPECT_FALSE(ip(47, bytes({0, 0, 0, 0}))) << "a keep-alive";
  EXPECT_EQ(decoding.counters.undecodable, 0U);
}

TEST(Decoder, CountsFramesThatItDoesNotUnderstandAndRefusesThemWhereItIsTo) {
  const Frame unknown = Frame(12) + bytes({0x12, 0x34}) + kInner;
  const Frame tunnel = vxlan(unknown);
  for (const bool refuses : {false, true}) {
    TrackerOptions options;
    options.refuse_undecodable = refuses;
    Decoding decoding(options);
    EXPECT_EQ(decoding.of(unknown)[0].refused, refuses ? Refusal::undecodable : Refusal::none);
    EXPECT_EQ(decoding.of(tunnel)[0].refused, refuses ? Refusal::undecodable : Refusal::none);
    EXPECT_EQ(decoding.of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2))[0].refused, Refusal::none);
    EXPECT_EQ(decoding.counters.undecodable, 2U);
  }
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
