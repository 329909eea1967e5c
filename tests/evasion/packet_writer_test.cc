// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/packet_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace penstock::evasion {
namespace {

constexpr Address kHere{.bytes = {10, 0, 0, 1}}, kThere{.bytes = {198, 18, 0, 1}};
const Endpoint kFrom{kHere, 4000}, kTo{kThere, 80};

Bytes text(std::string_view characters) { return {characters.begin(), characters.end()}; }

/// Sum over a range that contains its own checksum: all ones if it is correct.
std::uint32_t folded_sum(BytesView bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? bytes[i] * 256U : bytes[i];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

std::uint32_t pseudo_header(std::uint8_t protocol, std::size_t length) {
  return folded_sum(BytesView(kHere.bytes).first(4), folded_sum(BytesView(kThere.bytes).first(4))) + protocol +
         static_cast<std::uint32_t>(length);
}

TEST(PacketWriter, ChecksumsAreRight) {
  for (const std::string_view payload : {"", "a", "ab", "odd bytes"}) {
    const Bytes tcp = tcp_segment(kFrom, kTo, {.sequence = 7, .flags = tcp::kAck}, text(payload));
    EXPECT_EQ(folded_sum(tcp, pseudo_header(6, tcp.size())), 0xffffU);
    const Bytes udp = udp_datagram(kFrom, kTo, text(payload));
    EXPECT_EQ(folded_sum(udp, pseudo_header(17, udp.size())), 0xffffU);
    const Bytes ip = ip_packet(kHere, kThere, {.options = {1, 1, 1}}, tcp);
    EXPECT_EQ(folded_sum(BytesView(ip).first(24)), 0xffffU);
  }
}

TEST(PacketWriter, SpoiledChecksumsAreWrong) {
  Bytes tcp = tcp_segment(kFrom, kTo, {}, text("payload"));
  spoil_checksum(6, tcp);
  EXPECT_NE(folded_sum(tcp, pseudo_header(6, tcp.size())), 0xffffU);
  const Bytes ip = ip_packet(kHere, kThere, {.wrong_checksum = true}, tcp);
  EXPECT_NE(folded_sum(BytesView(ip).first(20)), 0xffffU);
}

TEST(PacketWriter, AFragmentHasItsOffset) {
  const Bytes v4 =
      ip_fragment(kHere, kThere, {.protocol = 17}, {.id = 0x1234, .offset = 16, .more = true}, text("12345678"));
  EXPECT_EQ(get16(v4, 4), 0x1234);
  EXPECT_EQ(get16(v4, 6), 0x2002);
  Address here = kHere, there = kThere;
  here.v6 = there.v6 = true;
  // After another extension header, which then names it.
  const Bytes v6 =
      ip_fragment(here, there, {.protocol = 17, .options = {17, 0, 1, 4, 0, 0, 0, 0}, .first_extension = 60},
                  {.id = 0x12345678, .offset = 16, .more = true}, text("12345678"));
  EXPECT_EQ(v6[6], 60);
  EXPECT_EQ(v6[40], 44);
  EXPECT_EQ(v6[48], 17);
  EXPECT_EQ(get16(v6, 50), 0x11);
  EXPECT_EQ(get32(v6, 52), 0x12345678U);
  EXPECT_EQ(get16(v6, 4), 24);
}

TEST(PacketWriter, WrittenPacketsCanBeParsed) {
  const Bytes segment = tcp_segment(kFrom, kTo,
                                    {.sequence = 7,
                                     .acknowledgment = 8,
                                     .flags = tcp::kAck | tcp::kPsh,
                                     .window = 9,
                                     .options = {1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6}},
                                    text("payload"));
  const Bytes packet = ip_packet(kHere, kThere, {}, segment);
  const auto parsed = parse_packet(packet);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->source, kFrom);
  EXPECT_EQ(parsed->destination, kTo);
  EXPECT_EQ(parsed->tcp.sequence, 7U);
  EXPECT_EQ(parsed->tcp.acknowledgment, 8U);
  EXPECT_EQ(parsed->timestamp, 5U);
  EXPECT_EQ(parsed->timestamp_echo, 6U);
  EXPECT_TRUE(std::ranges::equal(parsed->payload, text("payload")));
}

}  // namespace
}  // namespace penstock::evasion
