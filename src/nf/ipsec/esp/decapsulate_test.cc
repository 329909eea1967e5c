// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "nf/ipsec/esp/packets_for_test.h"

namespace penstock::ipsec {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;

constexpr std::uint8_t kSpi[] = {0x12, 0x34, 0x56, 0x78};
Bytes esp_and_iv(std::size_t iv_bytes) {
  Bytes bytes(kSpi, kSpi + 4);
  bytes.resize(8 + iv_bytes);
  bytes[7] = 42;
  return bytes;
}

PacketBuilder outer_ipv4() { return packet().eth().ipv4("192.0.2.1", "198.51.100.2"); }

/// ESP as from `ipv4_tunnel()`, with the text already decrypted.
Bytes opened(const Bytes& text) {
  return outer_ipv4().protocol(ip_protocol::kEsp).raw(esp_and_iv(16)).raw(text).raw(Bytes(12)).bytes();
}

/// `payload`, padded to blocks of 16.
Bytes text_of(Bytes payload, std::uint8_t next_header) {
  std::uint8_t pad = 0;
  while ((payload.size() + 2) % 16 != 0) payload.push_back(++pad);
  payload.push_back(pad);
  payload.push_back(next_header);
  return payload;
}

const Bytes kInner = packet().ipv4("10.1.0.1", "10.2.0.2").udp(1000, 2000).payload("hello").bytes();
const Bytes kInner6 = packet().ipv6("2001:db8:1::1", "2001:db8:2::2").udp(1000, 2000).payload("hello").bytes();

EspPacket found(const Bytes& frame, std::uint32_t wire_length = 0) {
  RoomyFrame roomy(frame, {0, 0}, LinkType::ethernet, wire_length);
  return find_esp(roomy.view, {});
}

TEST(FindEsp, SaysWhereItLies) {
  const EspPacket packet = found(opened(text_of(kInner, 4)));
  EXPECT_EQ(packet.kind, EspPacket::Kind::esp);
  EXPECT_FALSE(packet.udp);
  EXPECT_EQ(packet.spi, kTestSpi);
  EXPECT_EQ(packet.sequence, 42U);
  EXPECT_EQ(packet.behind_ip, 34U);
  EXPECT_EQ(packet.esp, 34U);
  EXPECT_EQ(packet.end, 34U + 24 + 48 + 12);
  EXPECT_EQ(packet.protocol_at, 23U);
}

TEST(FindEsp, EndsWhereTheIpPacketEnds) {
  Bytes padded = opened(text_of(kInner, 4));
  const std::size_t end = padded.size();
  padded.resize(end + 9);
  EXPECT_EQ(found(padded).end, end);
}

TEST(FindEsp, LooksBehindOptionsAndExtensionHeaders) {
  const EspPacket four = found(packet()
                                   .eth()
                                   .ipv4("192.0.2.1", "198.51.100.2", 64, {1, 1, 1, 0})
                                   .protocol(ip_protocol::kEsp)
                                   .raw(esp_and_iv(30))
                                   .bytes());
  EXPECT_EQ(four.esp, 38U);
  const EspPacket six = found(packet()
                                  .eth()
                                  .ipv6("2001:db8::1", "2001:db8::2")
                                  .extension(ip_protocol::kHopByHop, 2)
                                  .fragment6(0)
                                  .protocol(ip_protocol::kEsp)
                                  .raw(esp_and_iv(30))
                                  .bytes());
  EXPECT_EQ(six.kind, EspPacket::Kind::esp);
  EXPECT_EQ(six.esp, 14U + 40 + 16 + 8);
  EXPECT_EQ(six.protocol_at, 14U + 40 + 16);
}

TEST(FindEsp, FindsItBehindPort4500UnlessItIsIke) {
  const EspPacket esp = found(outer_ipv4().udp(1024, 4500).raw(esp_and_iv(30)).bytes());
  EXPECT_EQ(esp.kind, EspPacket::Kind::esp);
  EXPECT_TRUE(esp.udp);
  EXPECT_EQ(esp.behind_ip, 34U);
  EXPECT_EQ(esp.esp, 42U);
  EXPECT_EQ(esp.end, 42U + 38);
  EXPECT_EQ(found(outer_ipv4().udp(4500, 4500).raw(Bytes(4)).raw(esp_and_iv(30)).bytes()).kind, EspPacket::Kind::none);
  EXPECT_EQ(found(outer_ipv4().udp(4500, 1024).raw(esp_and_iv(30)).bytes()).kind, EspPacket::Kind::none);
  EXPECT_EQ(found(outer_ipv4().udp(500, 500).raw(esp_and_iv(30)).bytes()).kind, EspPacket::Kind::none);
  EXPECT_EQ(found(outer_ipv4().udp(4500, 4500).raw(Bytes(8, 1)).bytes()).kind, EspPacket::Kind::none)
      << "too short for ESP: another's";
}

TEST(FindEsp, FindsItBehindOtherPortsWhereSasNameThem) {
  std::vector<std::uint32_t> others(NatTraversalPorts::kWords);
  others[4501 / 32] = 1U << 4501 % 32;
  RoomyFrame frame(outer_ipv4().udp(1024, 4501).raw(esp_and_iv(30)).bytes());
  EXPECT_EQ(find_esp(frame.view, {others.data()}).kind, EspPacket::Kind::esp);
  EXPECT_EQ(find_esp(frame.view, {}).kind, EspPacket::Kind::none);
}

TEST(FindEsp, FindsFragmentsOfEspAndUdp) {
  const auto four = [](std::uint16_t word) { return packet().eth().ipv4("1.1.1.1", "2.2.2.2", 64, {}, word); };
  const auto six = [](std::uint16_t word) { return packet().eth().ipv6("2001:db8::1", "2001:db8::2").fragment6(word); };
  const Bytes data(80, 1);
  for (const Bytes& esp :
       {four(0x2000).protocol(ip_protocol::kEsp).raw(data).bytes(),
        four(0x0008).protocol(ip_protocol::kEsp).raw(data).bytes(),
        six(1).protocol(ip_protocol::kEsp).raw(data).bytes(), six(8).protocol(ip_protocol::kEsp).raw(data).bytes()}) {
    EXPECT_EQ(found(esp).kind, EspPacket::Kind::fragment);
    EXPECT_FALSE(found(esp).udp);
  }
  for (const Bytes& udp : {four(0x2000).udp(4500, 4500).raw(data).bytes(), four(0x2000).udp(1, 53).raw(data).bytes(),
                           four(0x0008).protocol(ip_protocol::kUdp).raw(data).bytes()}) {
    EXPECT_EQ(found(udp).kind, EspPacket::Kind::fragment);
    EXPECT_TRUE(found(udp).udp);
  }
  EXPECT_EQ(found(four(0x0008).protocol(ip_protocol::kTcp).raw(data).bytes()).kind, EspPacket::Kind::none);
}

TEST(FindEsp, TellsByTheFirstFragmentWhetherUdpMayCarryEsp) {
  const auto may_carry = [](std::uint16_t port, const Bytes& data) {
    const RoomyFrame frame(packet().eth().ipv4("1.1.1.1", "2.2.2.2", 64, {}, 0x2000).udp(1024, port).raw(data).bytes());
    return may_carry_esp(frame.view, {});
  };
  EXPECT_TRUE(may_carry(4500, Bytes(40, 1)));
  EXPECT_TRUE(may_carry(4500, {})) << "the SPI is in the next one";
  EXPECT_FALSE(may_carry(4500, Bytes(40, 0))) << "IKE";
  EXPECT_FALSE(may_carry(500, Bytes(40, 1)));
}

TEST(FindEsp, RefusesByName) {
  const auto reason = [](const Bytes& frame, std::uint32_t wire_length = 0) {
    const EspPacket packet = found(frame, wire_length);
    EXPECT_EQ(packet.kind, EspPacket::Kind::refused);
    return packet.reason;
  };
  EXPECT_EQ(reason(outer_ipv4().udp(4500, 4500).raw({0xff}).bytes()), Reason::keepalive);
  const auto six = [] { return packet().eth().ipv6("2001:db8::1", "2001:db8::2"); };
  EXPECT_EQ(reason(six().extension(ip_protocol::kAh, 2).protocol(ip_protocol::kEsp).raw(Bytes(80, 1)).bytes()),
            Reason::unsupported);
  EXPECT_EQ(reason(outer_ipv4().protocol(ip_protocol::kEsp).raw(Bytes(7, 1)).bytes()), Reason::malformed);

  Bytes cut = opened(text_of(kInner, 4));
  const auto whole = static_cast<std::uint32_t>(cut.size());
  cut.pop_back();
  EXPECT_EQ(reason(cut, whole), Reason::truncated);
  Bytes in_udp = outer_ipv4().udp(4500, 4500).raw(esp_and_iv(30)).bytes();
  in_udp.resize(in_udp.size() - 1);
  EXPECT_EQ(reason(in_udp, static_cast<std::uint32_t>(in_udp.size() + 1)), Reason::truncated);
  Bytes liar = outer_ipv4().udp(4500, 4500).raw(esp_and_iv(30)).bytes();
  liar[39] = 99;  // UDP's length
  EXPECT_EQ(reason(liar), Reason::malformed);
}

TEST(PlanDecapsulation, RefusesLengthsThatTheSaCannotHave) {
  const auto reason = [](std::size_t bytes, const SaView& sa, bool udp = false) {
    const PacketBuilder outer = udp ? outer_ipv4().udp(4500, 4500) : outer_ipv4().protocol(ip_protocol::kEsp);
    Bytes esp = esp_and_iv(0);
    esp.resize(bytes, 1);
    RoomyFrame frame(PacketBuilder(outer).raw(esp).bytes());
    const EspPacket packet = find_esp(frame.view, {});
    EXPECT_EQ(packet.kind, EspPacket::Kind::esp);
    return plan_decapsulation(frame.view, packet, sa, 0, packet.sequence).reason;
  };
  // ESP header 8, IV 16, ICV 12, and text in blocks of 16.
  EXPECT_EQ(reason(36 + 16, ipv4_tunnel()), Reason::none);
  for (const std::size_t bytes : {9, 20, 35, 36, 37, 36 + 15, 36 + 17, 36 + 31}) {
    EXPECT_EQ(reason(bytes, ipv4_tunnel()), Reason::malformed);
  }
  // 8, 8, 16, and text in words of 4.
  EXPECT_EQ(reason(32 + 4, transport(NetworkLayer::ipv4)), Reason::none);
  for (const std::size_t bytes : {31, 32, 33, 34, 35, 37, 38}) {
    EXPECT_EQ(reason(bytes, transport(NetworkLayer::ipv4)), Reason::malformed);
  }
  EXPECT_EQ(reason(36 + 16, ipv4_tunnel(), true), Reason::encapsulation);
  EXPECT_EQ(reason(36 + 16, in_udp(ipv4_tunnel())), Reason::encapsulation);
  EXPECT_EQ(reason(36 + 16, in_udp(ipv4_tunnel()), true), Reason::none);
}

TEST(PlanDecapsulation, CountsTheJobsOffsetsFromTheBatch) {
  RoomyFrame frame(opened(text_of(kInner, 4)), {100, 0});
  const EspPacket packet = find_esp(frame.view, {});
  const CryptoJob job = plan_decapsulation(frame.view, packet, ipv4_tunnel(), 3, 0x2'0000'002a).job;
  EXPECT_EQ(job.sa, 3U);
  EXPECT_EQ(job.sequence, 0x2'0000'002aU);
  EXPECT_EQ(job.esp, 134U);
  EXPECT_EQ(job.text_bytes, 48U);
  EXPECT_EQ(job.icv(), 134U + 24 + 48);
}

TEST(Decapsulate, BringsOutThePacketOfATunnel) {
  RoomyFrame four(opened(text_of(kInner, 4)));
  ASSERT_EQ(decapsulate(four, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(four.bytes(), packet().eth().ipv4("10.1.0.1", "10.2.0.2").udp(1000, 2000).payload("hello").bytes());
  EXPECT_EQ(four.view.packet->wire_length, four.view.length());
  EXPECT_EQ(four.base() + four.view.packet->offset, four.view.frame);
  RoomyFrame six(opened(text_of(kInner6, 41)));
  ASSERT_EQ(decapsulate(six, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(six.bytes(),
            packet().eth().ipv6("2001:db8:1::1", "2001:db8:2::2").udp(1000, 2000).payload("hello").bytes());
}

TEST(Decapsulate, CutsTfcPadding) {
  Bytes padded = kInner;
  padded.resize(padded.size() + 1000, 0xaa);
  RoomyFrame frame(opened(text_of(padded, 4)));
  ASSERT_EQ(decapsulate(frame, ipv4_tunnel()), Reason::none);
  EXPECT_EQ(frame.bytes(), packet().eth().ipv4("10.1.0.1", "10.2.0.2").udp(1000, 2000).payload("hello").bytes());
}

TEST(Decapsulate, DropsDummiesByName) {
  RoomyFrame frame(opened(text_of({}, ip_protocol::kNone)));
  EXPECT_EQ(decapsulate(frame, ipv4_tunnel()), Reason::dummy);
}

TEST(Decapsulate, RefusesWrongPadding) {
  const Bytes right = text_of(kInner, 4);  // 13 bytes of padding
  for (std::size_t i = right.size() - 15; i < right.size() - 2; ++i) {
    Bytes wrong = right;
    wrong[i] ^= 0x80;
    RoomyFrame frame(opened(wrong));
    EXPECT_EQ(decapsulate(frame, ipv4_tunnel()), Reason::padding) << i;
  }
  Bytes longer = right;
  longer[longer.size() - 2] = static_cast<std::uint8_t>(longer.size() - 1);
  RoomyFrame frame(opened(longer));
  EXPECT_EQ(decapsulate(frame, ipv4_tunnel()), Reason::padding) << "longer than the text";
  // An empty payload with the longest possible padding.
  Bytes all;
  for (std::uint8_t i = 1; i <= 30; ++i) all.push_back(i);
  all.push_back(30);
  all.push_back(ip_protocol::kNone);
  RoomyFrame only(opened(all));
  EXPECT_EQ(decapsulate(only, ipv4_tunnel()), Reason::dummy);
}

TEST(Decapsulate, RefusesNextHeadersThatATunnelCannotCarry) {
  for (const int next : {0, 6, 17, 50, 97, 255}) {
    RoomyFrame frame(opened(text_of(kInner, static_cast<std::uint8_t>(next))));
    EXPECT_EQ(decapsulate(frame, ipv4_tunnel()), Reason::next_header);
  }
}

TEST(Decapsulate, BelievesTheInnerHeaderNoFurtherThanTheTextGoes) {
  const auto reason = [](Bytes inner, std::size_t at, std::uint8_t value, std::uint8_t next) {
    inner[at] = value;
    RoomyFrame frame(opened(text_of(inner, next)), {0, 0});
    const Bytes before = frame.bytes();
    const Reason result = decapsulate(frame, ipv4_tunnel());
    if (result != Reason::none) {
      EXPECT_EQ(frame.bytes(), before);
    }
    return result;
  };
  EXPECT_EQ(reason(kInner, 0, 0x45, 4), Reason::none);
  EXPECT_EQ(reason(kInner, 0, 0x65, 4), Reason::malformed) << "version";
  EXPECT_EQ(reason(kInner, 0, 0x44, 4), Reason::malformed) << "header length";
  EXPECT_EQ(reason(kInner, 3, 34, 4), Reason::malformed) << "one byte more than there is";
  EXPECT_EQ(reason(kInner, 3, 19, 4), Reason::malformed) << "less than the header";
  EXPECT_EQ(reason(kInner, 2, 0xff, 4), Reason::malformed);
  EXPECT_EQ(reason(kInner, 0, 0x45, 41), Reason::malformed) << "the other version";
  EXPECT_EQ(reason(kInner6, 0, 0x60, 41), Reason::none);
  EXPECT_EQ(reason(kInner6, 0, 0x40, 41), Reason::malformed);
  EXPECT_EQ(reason(kInner6, 5, 14, 41), Reason::malformed);
  EXPECT_EQ(reason(kInner6, 4, 0xff, 41), Reason::malformed);
  EXPECT_EQ(reason(kInner6, 0, 0x60, 4), Reason::malformed);
  EXPECT_EQ(reason(Bytes(19, 0x45), 0, 0x45, 4), Reason::malformed);
  EXPECT_EQ(reason(Bytes(39, 0), 0, 0x60, 41), Reason::malformed);
  EXPECT_EQ(reason(Bytes(48, 0), 0, 0x60, 41), Reason::malformed) << "a jumbogram";
}

TEST(Decapsulate, TellsCongestionByRfc6040) {
  // Figure 4: rows by inner, columns by outer field; 0 Not-ECT, 2 ECT(0), 1 ECT(1), 3 CE; -1: dropped.
  constexpr int kFigure[4][4] = {{0, 0, 0, -1}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};
  for (const auto& [inner, next] : {std::pair{kInner, 4}, std::pair{kInner6, 41}}) {
    for (unsigned i = 0; i < 4; ++i) {
      for (unsigned o = 0; o < 4; ++o) {
        RoomyFrame frame(opened(text_of(inner, static_cast<std::uint8_t>(next))));
        std::uint8_t* const inside = frame.view.frame + 34 + 24;
        const NetworkLayer family = next == 4 ? NetworkLayer::ipv4 : NetworkLayer::ipv6;
        set_traffic_class(inside, family, static_cast<std::uint8_t>(0x28 | i));
        set_traffic_class(frame.view.frame + 14, NetworkLayer::ipv4, static_cast<std::uint8_t>(0xb8 | o));
        const Reason reason = decapsulate(frame, ipv4_tunnel());
        if (kFigure[i][o] < 0) {
          EXPECT_EQ(reason, Reason::ecn);
          continue;
        }
        ASSERT_EQ(reason, Reason::none);
        EXPECT_EQ(traffic_class(frame.view.frame + 14, family), 0x28 | kFigure[i][o]) << i << o;
        if (family == NetworkLayer::ipv4) {
          EXPECT_EQ(penstock::testing::slow_checksum(frame.bytes(), 14, 34), 0);
        }
      }
    }
  }
}

TEST(Decapsulate, TakesOverTheOuterDscpWhereTheSaSaysSo) {
  const auto inner_class = [](const SaView& sa) {
    RoomyFrame frame(opened(text_of(kInner, 4)));
    set_traffic_class(frame.view.frame + 34 + 24, NetworkLayer::ipv4, 0x29);
    set_traffic_class(frame.view.frame + 14, NetworkLayer::ipv4, 0xbb);
    EXPECT_EQ(decapsulate(frame, sa), Reason::none);
    EXPECT_EQ(penstock::testing::slow_checksum(frame.bytes(), 14, 34), 0);
    return frame.view.ipv4().tos;
  };
  SaView sa = ipv4_tunnel();
  EXPECT_EQ(inner_class(sa), 0x2b);
  sa.decap_dscp = true;
  EXPECT_EQ(inner_class(sa), 0xbb);
  sa.no_ecn = true;
  EXPECT_EQ(inner_class(sa), 0xb9);
  sa.decap_dscp = false;
  EXPECT_EQ(inner_class(sa), 0x29);
}

TEST(Decapsulate, RenewsChecksumsThatANatMadeWrong) {
  // Sealed by 10.0.0.9, which a NAT changed to 192.0.2.1: the inner checksum covers the former.
  const auto carried = [](const PacketBuilder& original) {
    RoomyFrame frame(original.bytes());
    EXPECT_EQ(encapsulate(frame, in_udp(transport(NetworkLayer::ipv4))), Reason::none);
    Bytes on_its_way = frame.bytes();
    const Bytes natted{192, 0, 2, 1};
    std::copy(natted.begin(), natted.end(), on_its_way.begin() + 26);
    RoomyFrame arrived(on_its_way);
    arrived.view.ipv4().checksum.set(0);
    arrived.view.ipv4().checksum.set(penstock::testing::slow_checksum(arrived.bytes(), 14, 34));
    EXPECT_EQ(decapsulate(arrived, in_udp(transport(NetworkLayer::ipv4))), Reason::none);
    return arrived.bytes();
  };
  const auto from = [](std::string_view source) { return packet().eth().ipv4(source, "198.51.100.2"); };
  EXPECT_EQ(carried(from("10.0.0.9").tcp(1, 2).payload("odd")), from("192.0.2.1").tcp(1, 2).payload("odd").bytes());
  EXPECT_EQ(carried(from("10.0.0.9").udp(1, 2).payload("odd")), from("192.0.2.1").udp(1, 2).payload("odd").bytes());
  EXPECT_EQ(carried(from("10.0.0.9").icmp(8)), from("192.0.2.1").icmp(8).bytes());
  // A payload whose checksum is 0, which UDP writes as all ones.
  const Bytes zeros = from("192.0.2.1").udp(1, 2).raw({0, 0}).bytes();
  const Bytes last = carried(from("10.0.0.9").udp(1, 2).raw({zeros[40], zeros[41]}));
  EXPECT_EQ((Bytes{last[40], last[41]}), (Bytes{0xff, 0xff}));
  Bytes unused = from("192.0.2.1").udp(1, 2).payload("x").bytes();
  unused[40] = unused[41] = 0;
  RoomyFrame frame(unused);
  ASSERT_EQ(encapsulate(frame, in_udp(transport(NetworkLayer::ipv4))), Reason::none);
  ASSERT_EQ(decapsulate(frame, in_udp(transport(NetworkLayer::ipv4))), Reason::none);
  EXPECT_EQ(frame.bytes(), unused) << "no checksum stays none";
}

TEST(Decapsulate, NeverReadsOutsideWhateverWasSealed) {
  // Correct lengths outside, anything inside; only a correct trailer gets far. The sanitizer detects bad accesses.
  std::mt19937_64 random(1);
  unsigned brought_out = 0;
  for (int i = 0; i < 200'000; ++i) {
    Bytes text((1 + random() % 8) * 16);
    for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : random() % 8);
    const auto pad = static_cast<std::uint8_t>(random() % (text.size() - 1));
    if (random() % 8 != 0) {
      for (unsigned p = 0; p < pad; ++p) text[text.size() - 2 - pad + p] = static_cast<std::uint8_t>(p + 1);
      text[text.size() - 2] = pad;
    }
    constexpr std::uint8_t kNext[] = {4, 41, 6, 17, 59, 4, 41};
    text.back() = kNext[random() % 7];
    if (random() % 2 == 0) text[0] = text.back() == 41 ? 0x60 : 0x45;
    SaView sa = ipv4_tunnel();
    sa.tunnel = random() % 2 == 0;
    sa.udp = random() % 2 == 0;
    const Bytes esp = esp_and_iv(16);
    const PacketBuilder outer = sa.udp ? outer_ipv4().udp(4500, 4500) : outer_ipv4().protocol(ip_protocol::kEsp);
    RoomyFrame frame(PacketBuilder(outer).raw(esp).raw(text).raw(Bytes(12)).bytes(), {0, 0});
    const std::uint32_t before = frame.view.length();
    if (decapsulate(frame, sa) != Reason::none) continue;
    ++brought_out;
    EXPECT_LT(frame.view.length(), before);
    EXPECT_GE(frame.view.frame, frame.base());
    EXPECT_LE(frame.view.frame + frame.view.length(), frame.base() + before);
  }
  EXPECT_GT(brought_out, 10'000U);
}

}  // namespace
}  // namespace penstock::ipsec
