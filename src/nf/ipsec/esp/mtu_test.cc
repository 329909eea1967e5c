// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/esp/mtu.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nf/ipsec/esp/packets_for_test.h"

namespace penstock::ipsec {
namespace {

using penstock::testing::packet;
using penstock::testing::slow_checksum;

/// A batch of one packet, and what was emitted for it.
class Cut {
 public:
  explicit Cut(const Bytes& frame) : memory_(1 << 16), descriptors_(1), batch_(memory_, descriptors_, {}) {
    EXPECT_TRUE(batch_.append(frame, {0, static_cast<std::uint32_t>(frame.size()), 0, LinkType::ethernet}));
    emissions_.begin(batch_);
    emitter_.go_into(&emissions_);
    parse(view());
  }
  [[nodiscard]] PacketView view() { return batch_.view(0); }
  [[nodiscard]] function::Emitter& emitter() { return emitter_; }
  [[nodiscard]] static Bytes bytes_of(PacketView packet) { return {packet.frame, packet.frame + packet.length()}; }
  /// What was emitted, in order.
  [[nodiscard]] std::vector<Bytes> emitted() {
    std::vector<Bytes> all;
    emissions_.arrange();
    while (!emissions_.none_left()) all.push_back(bytes_of(emissions_.take()));
    return all;
  }
  /// The packet itself, followed by the emitted ones.
  [[nodiscard]] std::vector<Bytes> fragments() {
    std::vector<Bytes> all{bytes_of(view())};
    for (Bytes& frame : emitted()) all.push_back(std::move(frame));
    return all;
  }

 private:
  std::vector<std::uint8_t> memory_;
  std::vector<PacketDescriptor> descriptors_;
  Batch batch_;
  function::Emissions emissions_{1 << 16, 16};
  function::Emitter emitter_;
};

std::uint32_t be16(const Bytes& frame, std::size_t at) {
  return static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
}

/// Reassembles IPv4 fragments, checking each.
Bytes put_together(const std::vector<Bytes>& fragments, std::uint32_t mtu) {
  Bytes payload;
  for (std::size_t i = 0; i < fragments.size(); ++i) {
    const Bytes& f = fragments[i];
    const std::size_t header = (f[14] & 15U) * 4;
    EXPECT_LE(f.size() - 14, mtu);
    EXPECT_EQ(be16(f, 16), f.size() - 14) << "total length";
    EXPECT_EQ(slow_checksum(f, 14, 14 + header), 0) << "checksum";
    EXPECT_EQ((be16(f, 20) & 0x1fff) * 8, payload.size()) << "offset";
    EXPECT_EQ((be16(f, 20) & 0x2000) != 0, i + 1 < fragments.size()) << "more";
    EXPECT_EQ(be16(f, 18), be16(fragments[0], 18)) << "identification";
    payload.insert(payload.end(), f.begin() + static_cast<std::ptrdiff_t>(14 + header), f.end());
  }
  return payload;
}

Bytes udp_packet(std::size_t payload, const Bytes& options = {}) {
  return packet()
      .eth()
      .ipv4("192.0.2.1", "192.0.2.2", 64, options)
      .udp(4500, 4500)
      .payload(std::string(payload, 'x'))
      .bytes();
}

TEST(Mtu, CutsIpv4IntoFragmentsThatMakeItUp) {
  for (const std::size_t payload : {1473U, 1480U, 2000U, 2952U, 2953U, 4000U, 9000U}) {
    for (const std::uint32_t mtu : {576U, 1280U, 1499U, 1500U}) {
      const Bytes whole = udp_packet(payload);
      Cut cut(whole);
      ASSERT_TRUE(cut_into_fragments(cut.view(), mtu, cut.emitter()));
      const Bytes together = put_together(cut.fragments(), mtu);
      EXPECT_EQ(together, Bytes(whole.begin() + 34, whole.end())) << payload << " in " << mtu;
    }
  }
}

TEST(Mtu, RepeatsOnlyTheOptionsThatAreToBeCopied) {
  // Record route (not copied), router alert (copied), end.
  const Bytes options{7, 7, 4, 0, 0, 0, 0, 0x94, 4, 0, 0, 0};
  const Bytes whole = udp_packet(3000, options);
  Cut cut(whole);
  ASSERT_TRUE(cut_into_fragments(cut.view(), 1500, cut.emitter()));
  const std::vector<Bytes> fragments = cut.fragments();
  ASSERT_EQ(fragments.size(), 3U);
  EXPECT_EQ(fragments[0][14] & 15, 8);
  EXPECT_EQ(fragments[1][14] & 15, 6);
  EXPECT_EQ(Bytes(fragments[1].begin() + 34, fragments[1].begin() + 38), (Bytes{0x94, 4, 0, 0}));
  EXPECT_EQ(put_together(fragments, 1500), Bytes(whole.begin() + 46, whole.end()));
}

TEST(Mtu, CutsIpv6BehindAFragmentHeader) {
  for (const std::size_t payload : {1441U, 1448U, 3000U, 9000U}) {
    const Bytes whole =
        packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(4500, 4500).payload(std::string(payload, 'y')).bytes();
    Cut cut(whole);
    ASSERT_TRUE(cut_into_fragments(cut.view(), 1500, cut.emitter()));
    const std::vector<Bytes> fragments = cut.fragments();
    Bytes together;
    for (std::size_t i = 0; i < fragments.size(); ++i) {
      const Bytes& f = fragments[i];
      EXPECT_LE(f.size() - 14, 1500U);
      EXPECT_EQ(be16(f, 18), f.size() - 54) << "payload length";
      EXPECT_EQ(f[20], 44) << "next header";
      EXPECT_EQ(f[54], 17);
      EXPECT_EQ(be16(f, 56) & 0xfff8, together.size());
      EXPECT_EQ(be16(f, 56) & 1, i + 1 < fragments.size() ? 1U : 0U);
      EXPECT_TRUE(std::equal(f.begin() + 58, f.begin() + 62, fragments[0].begin() + 58)) << "identification";
      together.insert(together.end(), f.begin() + 62, f.end());
    }
    EXPECT_EQ(together, Bytes(whole.begin() + 54, whole.end())) << payload;
  }
}

TEST(Mtu, DropsWhatThereIsNoRoomToCut) {
  Cut cut(udp_packet(3000));
  cut.emitter().go_into(nullptr);
  EXPECT_FALSE(cut_into_fragments(cut.view(), 1500, cut.emitter()));
}

TEST(Mtu, TellsTheSenderOverIpv4WhatFits) {
  const SaView sa = ipv4_tunnel();
  const Bytes frame = packet()
                          .eth({{2, 0, 0, 0, 0, 9}}, {{2, 0, 0, 0, 0, 7}})
                          .ipv4("10.1.0.1", "10.2.0.1")
                          .udp(1, 2)
                          .payload(std::string(1400, 'z'))
                          .bytes();
  Cut cut(frame);
  answer_too_big(cut.view(), sa, 1400, cut.emitter());
  const std::vector<Bytes> made = cut.emitted();
  ASSERT_EQ(made.size(), 1U);
  const Bytes& f = made[0];
  EXPECT_EQ(Bytes(f.begin(), f.begin() + 14), (Bytes{2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 8, 0}));
  EXPECT_EQ(f.size(), 14U + 576);
  EXPECT_EQ(slow_checksum(f, 14, 34), 0);
  EXPECT_EQ(Bytes(f.begin() + 26, f.begin() + 34), (Bytes{192, 0, 2, 1, 10, 1, 0, 1})) << "from the tunnel's end";
  EXPECT_EQ(f[34], 3);
  EXPECT_EQ(f[35], 4);
  EXPECT_EQ(slow_checksum(f, 34, f.size()), 0);
  EXPECT_EQ(be16(f, 40), inner_mtu(sa, 1400));
  EXPECT_TRUE(std::equal(f.begin() + 42, f.end(), frame.begin() + 14)) << "quotes the packet";
}

TEST(Mtu, TellsTheSenderOverIpv6WhatFits) {
  const Bytes frame =
      packet().eth().ipv6("2001:db8:1::1", "2001:db8:2::1").udp(1, 2).payload(std::string(1450, 'z')).bytes();
  Cut cut(frame);
  answer_too_big(cut.view(), ipv4_tunnel(), 1500, cut.emitter());
  const std::vector<Bytes> made = cut.emitted();
  ASSERT_EQ(made.size(), 1U);
  const Bytes& f = made[0];
  EXPECT_EQ(f.size(), 14U + 1280);
  EXPECT_EQ(f[54], 2);
  EXPECT_EQ(be16(f, 60), inner_mtu(ipv4_tunnel(), 1500));
  EXPECT_TRUE(std::equal(f.begin() + 22, f.begin() + 38, frame.begin() + 38)) << "from whom it was for";
  EXPECT_TRUE(std::equal(f.begin() + 38, f.begin() + 54, frame.begin() + 22));
  // The pseudo header: addresses, length, next header.
  const std::size_t bytes = f.size() - 54;
  std::uint64_t pseudo = bytes + 58;
  for (std::size_t at = 22; at < 54; at += 2) pseudo += be16(f, at);
  EXPECT_EQ(slow_checksum(f, 54, f.size(), pseudo), 0);
}

TEST(Mtu, AnswersNobodyWhoMustNotBeAnswered) {
  const std::string text(1400, 'z');
  for (const Bytes& frame :
       {packet().eth().ipv4("0.0.0.0", "10.2.0.1").udp(1, 2).payload(text).bytes(),
        packet().eth().ipv4("224.0.0.5", "10.2.0.1").udp(1, 2).payload(text).bytes(),
        packet().eth().ipv4("10.1.0.1", "224.0.0.5").udp(1, 2).payload(text).bytes(),
        packet().eth({{1, 0, 0x5e, 0, 0, 5}}).ipv4("10.1.0.1", "10.2.0.1").udp(1, 2).payload(text).bytes(),
        packet().eth().ipv4("10.1.0.1", "10.2.0.1", 64, {}, 0x4010).udp(1, 2).payload(text).bytes(),
        packet().eth().ipv6("::", "2001:db8::1").udp(1, 2).payload(text).bytes()}) {
    Cut cut(frame);
    answer_too_big(cut.view(), ipv4_tunnel(), 1400, cut.emitter());
    EXPECT_TRUE(cut.emitted().empty());
  }
}

}  // namespace
}  // namespace penstock::ipsec
