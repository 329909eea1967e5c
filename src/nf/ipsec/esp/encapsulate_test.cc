// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/sa/sa.h"

namespace penstock::ipsec {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using penstock::testing::slow_checksum;
using ::testing::ElementsAre;

PacketBuilder udp_in_ipv4() { return packet().eth().ipv4("10.1.0.1", "10.2.0.2").udp(1000, 2000).payload("hello"); }
PacketBuilder udp_in_ipv6() {
  return packet().eth().ipv6("2001:db8:1::1", "2001:db8:2::2").udp(1000, 2000).payload("hello");
}

/// Of the fields that the builder leaves as they are in all packets.
Bytes with_ipv4(Bytes frame, std::size_t ip, std::uint8_t tos, std::uint16_t id, std::uint16_t fragment) {
  frame[ip + 1] = tos;
  frame[ip + 4] = static_cast<std::uint8_t>(id >> 8);
  frame[ip + 5] = static_cast<std::uint8_t>(id);
  frame[ip + 6] = static_cast<std::uint8_t>(fragment >> 8);
  frame[ip + 7] = static_cast<std::uint8_t>(fragment);
  frame[ip + 10] = frame[ip + 11] = 0;
  const std::uint16_t sum = slow_checksum(frame, ip, ip + 20);
  frame[ip + 10] = static_cast<std::uint8_t>(sum >> 8);
  frame[ip + 11] = static_cast<std::uint8_t>(sum);
  return frame;
}

Bytes bytes_from(const Bytes& frame, std::size_t from, std::size_t count = ~std::size_t{0}) {
  const std::size_t end = std::min(frame.size(), count == ~std::size_t{0} ? frame.size() : from + count);
  return {frame.begin() + static_cast<std::ptrdiff_t>(from), frame.begin() + static_cast<std::ptrdiff_t>(end)};
}

Bytes esp_header(std::uint32_t sequence) {
  return {0x12,
          0x34,
          0x56,
          0x78,
          static_cast<std::uint8_t>(sequence >> 24),
          static_cast<std::uint8_t>(sequence >> 16),
          static_cast<std::uint8_t>(sequence >> 8),
          static_cast<std::uint8_t>(sequence)};
}

TEST(Encapsulate, PutsAnIpv4PacketIntoAnIpv4Tunnel) {
  const Bytes plain = udp_in_ipv4().bytes();
  RoomyFrame frame(plain);
  const SaView sa = ipv4_tunnel();
  const Encapsulation plan = plan_encapsulation(frame.view, sa, frame.room());
  ASSERT_EQ(plan.reason, Reason::none);
  const CryptoJob job = encapsulate(frame.view, sa, 7, plan, 0x1'0000'0102);

  // 33 bytes of packet, 13 of padding and two of trailer make three blocks.
  Bytes text = bytes_from(plain, 14);
  for (std::uint8_t i = 1; i <= 13; ++i) text.push_back(i);
  text.push_back(13);
  text.push_back(4);
  const Bytes iv_and_icv = bytes_from(frame.bytes(), 14 + 20 + 8, 16);
  const Bytes icv = bytes_from(frame.bytes(), 14 + 20 + 8 + 16 + 48);
  const Bytes expected = packet()
                             .eth()
                             .ipv4("192.0.2.1", "198.51.100.2")
                             .protocol(ip_protocol::kEsp)
                             .raw(esp_header(0x102))
                             .raw(iv_and_icv)
                             .raw(text)
                             .raw(icv)
                             .bytes();
  EXPECT_EQ(frame.bytes(), with_ipv4(expected, 14, 0, 0x102, 0));
  EXPECT_EQ(icv.size(), 12U);
  EXPECT_EQ(frame.view.packet->wire_length, frame.view.length());
  EXPECT_EQ(plan.ip_bytes, frame.view.length() - 14);

  EXPECT_EQ(job.sequence, 0x1'0000'0102U);
  EXPECT_EQ(job.sa, 7U);
  EXPECT_EQ(frame.base() + job.esp, frame.view.frame + 34);
  EXPECT_EQ(job.text_bytes, 48U);
  EXPECT_EQ(frame.base() + job.icv() + job.icv_bytes, frame.view.frame + frame.view.length());
}

TEST(Encapsulate, PutsAnIpv6PacketIntoAnIpv6Tunnel) {
  const Bytes plain = udp_in_ipv6().bytes();
  RoomyFrame frame(plain);
  SaView sa = ipv6_tunnel();
  sa.iv_bytes = 8;
  sa.block_bytes = 4;
  sa.icv_bytes = 16;
  ASSERT_EQ(encapsulate(frame, sa, 9), Reason::none);
  const Bytes expected = packet()
                             .eth()
                             .ipv6("2001:db8::1", "2001:db8::2")
                             .protocol(ip_protocol::kEsp)
                             .raw(esp_header(9))
                             .raw(bytes_from(frame.bytes(), 62, 8))
                             .raw(bytes_from(plain, 14))
                             .raw({1, 1, 41})
                             .raw(bytes_from(frame.bytes(), 14 + 40 + 16 + 56))
                             .bytes();
  EXPECT_EQ(frame.bytes(), expected);
}

TEST(Encapsulate, LinkHeaderNamesTheOuterVersionBehindItsTags) {
  RoomyFrame tagged(packet().eth().vlan(7, ether_type::kQinQ).vlan(9).ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).bytes());
  ASSERT_EQ(encapsulate(tagged, ipv6_tunnel()), Reason::none);
  EXPECT_EQ(bytes_from(tagged.bytes(), 0, 22),
            packet().eth().vlan(7, ether_type::kQinQ).vlan(9).ether_type(ether_type::kIpv6).bytes());
  EXPECT_EQ(tagged.view.layout().network, NetworkLayer::ipv6);
  EXPECT_EQ(tagged.view.layout().transport, ip_protocol::kEsp);

  RoomyFrame six_in_four(udp_in_ipv6().bytes());
  ASSERT_EQ(encapsulate(six_in_four, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(six_in_four.view.layout().network, NetworkLayer::ipv4);
  EXPECT_EQ(six_in_four.view.ipv4().fragment.value(), 0) << "its sender cannot make it shorter";

  RoomyFrame long_six(
      packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(1, 2).payload(std::string(1233, 'x')).bytes());
  ASSERT_EQ(encapsulate(long_six, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(long_six.view.ipv4().fragment.value(), Ipv4Header::kDontFragment);
  EXPECT_EQ(long_six.view.ipv4().id.value(), 0);
}

TEST(Encapsulate, LinkTypesThatNameAnEtherTypeCarryEitherVersion) {
  struct Case {
    LinkType link;
    Bytes before, after;
  };
  const Bytes cooked(14);
  const Bytes cooked2(18);
  Bytes sll4 = cooked, sll6 = cooked, sll2_4{0x08, 0}, sll2_6{0x86, 0xdd};
  sll4.insert(sll4.end(), {0x08, 0});
  sll6.insert(sll6.end(), {0x86, 0xdd});
  sll2_4.insert(sll2_4.end(), cooked2.begin(), cooked2.end());
  sll2_6.insert(sll2_6.end(), cooked2.begin(), cooked2.end());
  for (const Case& c : {Case{LinkType::raw_ip, {}, {}}, Case{LinkType::linux_sll, sll4, sll6},
                        Case{LinkType::linux_sll2, sll2_4, sll2_6},
                        Case{LinkType::cisco_hdlc, {0x0f, 0, 0x08, 0}, {0x0f, 0, 0x86, 0xdd}}}) {
    RoomyFrame frame(packet().raw(c.before).ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).bytes(), {72, 64}, c.link);
    ASSERT_EQ(encapsulate(frame, ipv6_tunnel()), Reason::none);
    EXPECT_EQ(bytes_from(frame.bytes(), 0, c.before.size()), c.after);
    EXPECT_EQ(frame.view.layout().network, NetworkLayer::ipv6);
  }
}

TEST(Encapsulate, RefusesAnotherVersionWhereTheLinkHeaderCannotNameIt) {
  const Bytes frame = packet().raw({0, 0, 0, 2}).ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).bytes();
  RoomyFrame other(frame, {72, 64}, LinkType::loop);
  EXPECT_EQ(encapsulate(other, ipv6_tunnel()), Reason::link_type);
  RoomyFrame same(frame, {72, 64}, LinkType::loop);
  EXPECT_EQ(encapsulate(same, ipv4_tunnel()), Reason::none);
}

TEST(Encapsulate, CutsOffTheLinksPadding) {
  const Bytes plain = packet().eth().ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).bytes();
  RoomyFrame padded(packet().eth().ipv4("10.1.0.1", "10.2.0.2").udp(1, 2).padded_to(60).bytes());
  RoomyFrame bare(plain);
  ASSERT_EQ(encapsulate(padded, ipv4_tunnel()), Reason::none);
  ASSERT_EQ(encapsulate(bare, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(padded.view.length(), bare.view.length());
}

TEST(Encapsulate, DontFragmentIsTheInnerPacketsUnlessTheSaClearsIt) {
  const auto inner = [](std::uint16_t fragment) {
    return packet().eth().ipv4("10.1.0.1", "10.2.0.2", 64, {}, fragment).udp(1, 2).bytes();
  };
  SaView sa = ipv4_tunnel();
  for (const std::uint16_t df : {std::uint16_t{0}, Ipv4Header::kDontFragment}) {
    RoomyFrame frame(inner(df));
    ASSERT_EQ(encapsulate(frame, sa, 77), Reason::none);
    EXPECT_EQ(frame.view.ipv4().fragment.value(), df);
    EXPECT_EQ(frame.view.ipv4().id.value(), df != 0 ? 0 : 77);
  }
  sa.no_pmtu_discovery = true;
  RoomyFrame four(inner(Ipv4Header::kDontFragment));
  ASSERT_EQ(encapsulate(four, sa, 77), Reason::none);
  EXPECT_EQ(four.view.ipv4().fragment.value(), 0);
  EXPECT_EQ(four.view.ipv4().id.value(), 77);
  RoomyFrame six(udp_in_ipv6().bytes());
  ASSERT_EQ(encapsulate(six, sa, 77), Reason::none);
  EXPECT_EQ(six.view.ipv4().fragment.value(), 0);
}

TEST(Encapsulate, TrafficClassIsTheInnerOneUnlessTheSaSaysOtherwise) {
  struct Case {
    bool dont_encap_dscp, no_ecn;
    std::uint8_t outer;
  };
  for (const Case& c :
       {Case{false, false, 0xbb}, Case{true, false, 0x03}, Case{false, true, 0xb8}, Case{true, true, 0}}) {
    for (const bool inner_is_v4 : {true, false}) {
      for (SaView sa : {ipv4_tunnel(), ipv6_tunnel()}) {
        sa.dont_encap_dscp = c.dont_encap_dscp;
        sa.no_ecn = c.no_ecn;
        Bytes plain = inner_is_v4 ? with_ipv4(udp_in_ipv4().bytes(), 14, 0xbb, 1, 0) : udp_in_ipv6().bytes();
        if (!inner_is_v4) plain[14] = 0x6b, plain[15] = 0xb5;  // and a flow label
        RoomyFrame frame(plain);
        ASSERT_EQ(encapsulate(frame, sa), Reason::none);
        EXPECT_EQ(traffic_class(frame.view.frame + 14, sa.outer), c.outer);
        if (sa.outer == NetworkLayer::ipv6) {
          EXPECT_EQ(frame.view.ipv6().version_class_label.value() & 0xfffff, 0U) << "the flow label stays inside";
        }
      }
    }
  }
}

TEST(Encapsulate, TfcPaddingStandsBetweenPacketAndPadding) {
  SaView sa = ipv4_tunnel();
  sa.tfc_bytes = 100;
  const Bytes plain = udp_in_ipv4().bytes();  // 33 bytes of IP
  RoomyFrame frame(plain, {72, 164});
  ASSERT_EQ(encapsulate(frame, sa), Reason::none);
  const Bytes text = bytes_from(frame.bytes(), 14 + 20 + 8 + 16, 112);
  EXPECT_EQ(bytes_from(text, 0, 33), bytes_from(plain, 14));
  EXPECT_EQ(bytes_from(text, 33, 67), Bytes(67));
  EXPECT_THAT(bytes_from(text, 100), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 4));

  SaView across = transport(NetworkLayer::ipv4);
  across.tfc_bytes = 100;
  RoomyFrame none(plain);
  EXPECT_EQ(plan_encapsulation(none.view, across, none.room()).tfc_bytes, 0U) << "RFC 4303 §2.7: of tunnels alone";
}

TEST(Encapsulate, TransportModeFollowsIpv4Options) {
  const Bytes options{7, 3, 4, 0};
  const Bytes plain = packet().eth().ipv4("192.0.2.1", "198.51.100.2", 9, options).udp(1, 2).payload("abc").bytes();
  RoomyFrame frame(plain);
  ASSERT_EQ(encapsulate(frame, transport(NetworkLayer::ipv4), 5), Reason::none);
  const Bytes expected = packet()
                             .eth()
                             .ipv4("192.0.2.1", "198.51.100.2", 9, options)
                             .protocol(ip_protocol::kEsp)
                             .raw(esp_header(5))
                             .raw(bytes_from(frame.bytes(), 14 + 24 + 8, 8))
                             .raw(bytes_from(plain, 14 + 24))
                             .raw({1, 2, 3, 3, 17})
                             .raw(bytes_from(frame.bytes(), 14 + 24 + 16 + 16))
                             .bytes();
  EXPECT_EQ(frame.bytes(), expected);
  EXPECT_EQ(frame.view.length(), 14U + 24 + 16 + 16 + 16);
}

TEST(Encapsulate, TransportModeFollowsIpv6ExtensionHeaders) {
  const auto headers = [] {
    return packet()
        .eth()
        .ipv6("2001:db8::1", "2001:db8::2")
        .extension(ip_protocol::kHopByHop)
        .extension(ip_protocol::kDestinationOptions)
        .extension(ip_protocol::kRouting, 3)
        .fragment6(0)
        .extension(ip_protocol::kDestinationOptions, 2);
  };
  const Bytes plain = headers().tcp(1, 2).bytes();
  RoomyFrame frame(plain);
  ASSERT_EQ(encapsulate(frame, transport(NetworkLayer::ipv6), 5), Reason::none);
  constexpr std::size_t kEsp = 14 + 40 + 8 + 8 + 24 + 8 + 16;
  const Bytes expected = headers()
                             .protocol(ip_protocol::kEsp)
                             .raw(esp_header(5))
                             .raw(bytes_from(frame.bytes(), kEsp + 8, 8))
                             .raw(bytes_from(plain, kEsp))
                             .raw({1, 2, 2, 6})
                             .raw(bytes_from(frame.bytes(), kEsp + 16 + 24))
                             .bytes();
  EXPECT_EQ(frame.bytes(), expected);
}

TEST(Encapsulate, TransportModeRefusesWhatOnlyATunnelCanCarry) {
  RoomyFrame first(packet().eth().ipv4("1.1.1.1", "2.2.2.2", 64, {}, Ipv4Header::kMoreFragments).udp(1, 2).bytes());
  EXPECT_EQ(encapsulate(first, transport(NetworkLayer::ipv4)), Reason::fragment);
  RoomyFrame later(packet().eth().ipv6("2001:db8::1", "2001:db8::2").fragment6(8).udp(1, 2).bytes());
  EXPECT_EQ(encapsulate(later, transport(NetworkLayer::ipv6)), Reason::fragment);
  RoomyFrame authenticated(
      packet().eth().ipv6("2001:db8::1", "2001:db8::2").extension(ip_protocol::kAh, 2).udp(1, 2).bytes());
  EXPECT_EQ(encapsulate(authenticated, transport(NetworkLayer::ipv6)), Reason::unsupported);
  RoomyFrame nothing(packet().eth().ipv6("2001:db8::1", "2001:db8::2").bytes());
  EXPECT_EQ(encapsulate(nothing, transport(NetworkLayer::ipv6)), Reason::next_header);
  RoomyFrame other(udp_in_ipv4().bytes());
  EXPECT_EQ(encapsulate(other, transport(NetworkLayer::ipv6)), Reason::policy_mismatch);
  for (RoomyFrame* frame : {&first, &later, &authenticated, &nothing}) {
    const bool ipv4 = frame->view.layout().network == NetworkLayer::ipv4;
    EXPECT_EQ(encapsulate(*frame, ipv4 ? ipv4_tunnel() : ipv6_tunnel()), Reason::none);
  }
}

TEST(Encapsulate, UdpHasNoChecksumOverIpv4AndARightOneOverIpv6) {
  RoomyFrame four(udp_in_ipv4().bytes());
  ASSERT_EQ(encapsulate(four, in_udp(ipv4_tunnel())), Reason::none);
  EXPECT_EQ(bytes_from(four.bytes(), 34, 8), (Bytes{0x11, 0x94, 0x11, 0x94, 0, 8 + 8 + 16 + 48 + 12, 0, 0}));
  EXPECT_EQ(four.view.layout().transport, ip_protocol::kUdp);
  EXPECT_EQ(bytes_from(four.bytes(), 42, 8), esp_header(1));

  RoomyFrame six(udp_in_ipv6().bytes());
  ASSERT_EQ(encapsulate(six, in_udp(ipv6_tunnel())), Reason::none);
  const Bytes whole = six.bytes();
  EXPECT_EQ(
      whole,
      packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(4500, 4500).raw(bytes_from(whole, 14 + 40 + 8)).bytes());
}

TEST(Encapsulate, UdpChecksumOfZeroIsWrittenAsAllOnes) {
  RoomyFrame frame(udp_in_ipv6().bytes());
  const SaView sa = in_udp(ipv6_tunnel());
  const Encapsulation plan = plan_encapsulation(frame.view, sa, frame.room());
  const CryptoJob job = encapsulate(frame.view, sa, 0, plan, 1);
  write_udp_checksum(frame.view, job);
  // With the checksum itself as a word of the IV, the new checksum is 0.
  std::copy_n(frame.view.frame + 60, 2, frame.base() + job.iv());
  write_udp_checksum(frame.view, job);
  EXPECT_EQ(bytes_from(frame.bytes(), 60, 2), (Bytes{0xff, 0xff}));
}

TEST(Encapsulate, RefusesWhatIsNoWholeIpPacket) {
  RoomyFrame arp(packet().eth().ether_type(ether_type::kArp).raw(Bytes(28)).bytes());
  EXPECT_EQ(encapsulate(arp, ipv4_tunnel()), Reason::not_ip);
  Bytes plain = udp_in_ipv4().bytes();
  RoomyFrame cut(bytes_from(plain, 0, plain.size() - 1), {72, 64}, LinkType::ethernet,
                 static_cast<std::uint32_t>(plain.size()));
  EXPECT_EQ(encapsulate(cut, ipv4_tunnel()), Reason::truncated);
  RoomyFrame wrong(bytes_from(plain, 0, plain.size() - 1));
  EXPECT_EQ(encapsulate(wrong, ipv4_tunnel()), Reason::malformed);
}

TEST(Encapsulate, RefusesWhatTheOuterLengthFieldCannotSay) {
  // 65,535 = 20 + 8 + 16 + text + 12: the text is a multiple of 16.
  const auto of = [](std::size_t ip_bytes) {
    return RoomyFrame(packet().eth().ipv4("10.1.0.1", "10.2.0.2").raw(Bytes(ip_bytes - 20)).bytes());
  };
  RoomyFrame longest = of(65470), longer = of(65471);
  EXPECT_EQ(encapsulate(longest, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(longest.view.ipv4().total_length.value(), 65472 + 56);
  EXPECT_EQ(encapsulate(longer, ipv4_tunnel()), Reason::too_long);
  // IPv6's payload length excludes its header.
  RoomyFrame most = of(65486), more = of(65487);
  EXPECT_EQ(encapsulate(most, ipv6_tunnel()), Reason::none);
  EXPECT_EQ(encapsulate(more, ipv6_tunnel()), Reason::too_long);
}

TEST(Encapsulate, RefusesToGrowBeyondTheFramesRoom) {
  const Bytes plain = udp_in_ipv4().bytes();
  // 13 of padding, 2 of trailer, 12 of ICV.
  for (const auto& [head, tail, reason] : {std::tuple{44U, 27U, Reason::none}, std::tuple{43U, 27U, Reason::no_room},
                                           std::tuple{44U, 26U, Reason::no_room}}) {
    RoomyFrame frame(plain, {head, tail});
    EXPECT_EQ(encapsulate(frame, ipv4_tunnel()), reason);
  }
  const FrameRoom most = growth_of(in_udp(ipv6_tunnel()));
  EXPECT_EQ(most.head, 40U + 8 + 8 + 16);
  EXPECT_EQ(most.tail, 15U + 2 + 12);
}

TEST(SaLayout, InnerMtuIsTheLongestPacketThatFits) {
  for (const std::uint32_t mtu : {576U, 1280U, 1499U, 1500U}) {
    for (const SaView& sa : {ipv4_tunnel(), ipv6_tunnel(), in_udp(ipv4_tunnel()), transport(NetworkLayer::ipv4)}) {
      const std::uint32_t inner = inner_mtu(sa, mtu);
      const auto ip_bytes = [&](std::uint32_t bytes) {
        RoomyFrame frame(packet().eth().ipv4("10.1.0.1", "10.2.0.2").raw(Bytes(bytes - 20)).bytes());
        return plan_encapsulation(frame.view, sa, frame.room()).ip_bytes;
      };
      EXPECT_LE(ip_bytes(inner), mtu);
      EXPECT_GT(ip_bytes(inner + 1), mtu);
    }
  }
  EXPECT_EQ(inner_mtu(ipv4_tunnel(), 71), 0U);
  EXPECT_EQ(inner_mtu(ipv4_tunnel(), 72), 14U);
}

TEST(SaLayout, FollowsFromTheAlgorithmsAndTheFlags) {
  SecurityAssociation sa;
  sa.source = Ipv6Address{1, 2};
  sa.destination = Ipv6Address{3, 4};
  sa.spi = 0x1000;
  sa.cipher = Cipher::aes_cbc;
  sa.icv_bytes = 12;
  sa.udp = UdpEncapsulation{4500, 4501, {}};
  sa.esn = sa.decap_dscp = true;
  sa.tfc_bytes = 4000;
  const SaView view = sa_view(sa, 1500);
  EXPECT_EQ(view.outer, NetworkLayer::ipv6);
  EXPECT_EQ(view.source, (Ipv6Address{1, 2}));
  EXPECT_EQ(view.destination, (Ipv6Address{3, 4}));
  EXPECT_EQ(view.head_bytes(), 40U + 8 + 8 + 16);
  EXPECT_EQ(view.block_bytes, 16);
  EXPECT_EQ(view.udp_destination_port, 4501);
  EXPECT_TRUE(view.tunnel && view.esn && view.decap_dscp);
  EXPECT_FALSE(view.no_ecn || view.dont_encap_dscp || view.no_pmtu_discovery);
  EXPECT_EQ(view.tfc_bytes, inner_mtu(view, 1500)) << "padding makes no packet too big";
  sa.cipher = Cipher::aes_gcm;
  EXPECT_EQ(sa_view(sa, 1500).iv_bytes, 8);
  EXPECT_EQ(sa_view(sa, 1500).block_bytes, 4);
}

}  // namespace
}  // namespace penstock::ipsec
