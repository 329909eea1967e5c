// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/field_text.h"

#include <gtest/gtest.h>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock {
namespace {

using testing::Bytes;
using testing::packet;

struct Parsed {
  explicit Parsed(const testing::PacketBuilder& builder, LinkType link = LinkType::ethernet, std::size_t cut = 0)
      : bytes(builder.bytes()) {
    descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
    bytes.resize(bytes.size() - cut);
    descriptor.length = static_cast<std::uint32_t>(bytes.size());
    descriptor.link_type = link;
    parse(view());
  }
  PacketView view() { return {bytes.data(), &descriptor}; }
  std::string operator[](Field field) { return format_field(field, view()); }

  Bytes bytes;
  PacketDescriptor descriptor;
};

TEST(FieldText, FormatsValuesInTheirUsualForm) {
  Parsed p(packet().eth().vlan(7).ipv4("10.0.0.1", "192.0.2.1", 63).tcp(1000, 80, TcpHeader::kSyn | TcpHeader::kAck));
  EXPECT_EQ(p[Field::eth_dst], "02:00:00:00:00:02");
  EXPECT_EQ(p[Field::eth_type], "0x0800");
  EXPECT_EQ(p[Field::vlan_tags], "0x81000007");
  EXPECT_EQ(p[Field::ipv4_src], "10.0.0.1");
  EXPECT_EQ(p[Field::ipv4_ttl], "63");
  EXPECT_EQ(p[Field::ipv4_id], "0x1234");
  EXPECT_EQ(p[Field::ipv4_length], "40");
  EXPECT_EQ(p[Field::l4_src_port], "1000");
  EXPECT_EQ(p[Field::tcp_flags], "S.");
  EXPECT_EQ(p[Field::tcp_window], "1000");
  Parsed q(packet().eth().ipv6("2001:db8::1", "2001:db8::2", 9).udp(53, 4000));
  EXPECT_EQ(q[Field::ipv6_dst], "2001:db8::2");
  EXPECT_EQ(q[Field::ipv6_hop_limit], "9");
  EXPECT_EQ(q[Field::udp_length], "8");
}

TEST(FieldText, WritesTcpFlagsAsTcpdumpDoes) {
  const auto flags = [](std::uint8_t bits) {
    return Parsed(packet().eth().ipv4("1.1.1.1", "2.2.2.2").tcp(1, 2, bits))[Field::tcp_flags];
  };
  EXPECT_EQ(flags(0), "none");
  EXPECT_EQ(flags(TcpHeader::kFin | TcpHeader::kPsh | TcpHeader::kAck), "FP.");
  EXPECT_EQ(flags(0xff), "FSRP.UEW");
}

TEST(FieldText, WritesNothingForAMissingField) {
  Parsed p(packet().eth().ipv4("1.1.1.1", "2.2.2.2").udp(1, 2));
  for (const Field field : {Field::vlan_tags, Field::ipv6_src, Field::tcp_flags, Field::ipv4_options, Field::payload,
                            Field::trailer, Field::arp, Field::link_header}) {
    EXPECT_EQ(p[field], "") << name(field);
  }
}

TEST(FieldText, TruncatesLongFieldsAndShowsTheirLength) {
  Parsed p(packet().eth().ipv4("1.1.1.1", "2.2.2.2").udp(1, 2).raw(Bytes(17, 0xab)));
  EXPECT_EQ(p[Field::payload], "abababababababababababababababab… (17 bytes)");
  Parsed q(packet().eth().ipv4("1.1.1.1", "2.2.2.2").udp(1, 2).raw(Bytes(16, 0xab)));
  EXPECT_EQ(q[Field::payload], "abababababababababababababababab");
}

TEST(FieldText, WritesMetadata) {
  Parsed p(packet().eth().ipv4("1.1.1.1", "2.2.2.2").udp(1, 2).payload("12345"), LinkType::ethernet, 4);
  p.descriptor.timestamp_ns = 1'000'000'007;
  p.descriptor.in_port = 3;
  p.descriptor.mark = 0x1f;
  p.descriptor.flow_hash = 0xabc;
  EXPECT_EQ(p[Field::frame_shape], "43 bytes");
  EXPECT_EQ(p[Field::wire_length], "47");
  EXPECT_EQ(p[Field::timestamp], "1.000000007");
  EXPECT_EQ(p[Field::in_port], "port 3");
  EXPECT_EQ(p[Field::mark], "0x1f");
  EXPECT_EQ(p[Field::flow_hash], "0x00000abc");
  EXPECT_EQ(p[Field::verdict], "no port");
  p.descriptor.verdict = Verdict::forward(2);
  EXPECT_EQ(p[Field::verdict], "port 2");
}

TEST(PacketText, NamesEndpointsAndProtocol) {
  const auto text = [](const testing::PacketBuilder& b, LinkType link = LinkType::ethernet, std::size_t cut = 0) {
    return format_packet(Parsed(b, link, cut).view());
  };
  EXPECT_EQ(text(packet().eth().ipv4("10.0.0.1", "192.0.2.1").tcp(1000, 80)), "IPv4 10.0.0.1:1000 > 192.0.2.1:80 TCP");
  EXPECT_EQ(text(packet().ipv6("::1", "2001:db8::2").udp(53, 4000), LinkType::raw_ip),
            "IPv6 [::1]:53 > [2001:db8::2]:4000 UDP");
  EXPECT_EQ(text(packet().eth().ipv4("1.1.1.1", "2.2.2.2").icmp(8)), "IPv4 1.1.1.1 > 2.2.2.2 ICMP");
  EXPECT_EQ(text(packet().eth().ipv4("1.1.1.1", "2.2.2.2").protocol(200)), "IPv4 1.1.1.1 > 2.2.2.2 protocol 200");
  EXPECT_EQ(text(packet().eth().ipv4("1.1.1.1", "2.2.2.2", 64, {}, 0x0010).udp(1, 2)),
            "IPv4 1.1.1.1 > 2.2.2.2 UDP fragment");
  EXPECT_EQ(text(packet().eth().ether_type(ether_type::kArp).raw(Bytes(28))), "ARP");
  EXPECT_EQ(text(packet().eth().ether_type(0x88cc).raw(Bytes(28))), "EtherType 0x88cc");
}

TEST(PacketText, DescribesMalformedPackets) {
  testing::PacketBuilder whole = packet().eth().ipv4("1.1.1.1", "2.2.2.2").tcp(1, 2).payload("some");
  EXPECT_EQ(format_packet(Parsed(whole, LinkType::ethernet, 10).view()), "IPv4 1.1.1.1 > 2.2.2.2 TCP truncated");
  EXPECT_EQ(format_packet(Parsed(whole, LinkType::ethernet, 30).view()), "IPv4 truncated");
  EXPECT_EQ(format_packet(Parsed(whole, LinkType::ethernet, 50).view()), "not IP truncated");
  Parsed shorter(whole);
  shorter.bytes[14 + 3] = 200;  // more than on the wire
  parse(shorter.view());
  EXPECT_EQ(format_packet(shorter.view()), "IPv4 malformed");
  Parsed offset(whole);
  offset.bytes[14 + 20 + 12] = 0x10;  // a TCP header length of four bytes
  parse(offset.view());
  EXPECT_EQ(format_packet(offset.view()), "IPv4 1.1.1.1 > 2.2.2.2 TCP malformed");
}

}  // namespace
}  // namespace penstock
