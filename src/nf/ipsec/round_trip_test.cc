// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Encapsulation followed by decapsulation restores the packet bit for bit, except for the link's padding.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "nf/ipsec/esp/packets_for_test.h"
#include "packet/testing/random_frames.h"

namespace penstock::ipsec {
namespace {

/// Both ends of a direction agree on these.
class RandomSas {
 public:
  explicit RandomSas(std::uint64_t seed) : random_(seed) {}

  SaView sa(NetworkLayer inner) {
    SaView sa = chance(2) ? ipv4_tunnel() : ipv6_tunnel();
    sa.tunnel = !chance(3);
    if (!sa.tunnel) sa = transport(inner);
    constexpr std::array<std::array<std::uint8_t, 2>, 4> kCiphers{{{0, 4}, {16, 16}, {8, 4}, {8, 4}}};
    const auto [iv, block] = kCiphers[random_() % 4];
    constexpr std::uint8_t kIcvs[] = {0, 12, 16, 8};
    sa.iv_bytes = iv;
    sa.block_bytes = block;
    sa.icv_bytes = kIcvs[random_() % 4];
    // In transport mode, UDP encapsulation recomputes transport checksums, whether they were correct or not.
    if (sa.tunnel && chance(3)) sa = in_udp(sa);
    sa.no_ecn = chance(4);
    sa.no_pmtu_discovery = chance(4);
    if (chance(2)) {
      sa.dont_encap_dscp = chance(2);
    } else {
      sa.decap_dscp = chance(2);
    }
    if (chance(4)) sa.tfc_bytes = static_cast<std::uint32_t>(random_() % 3000);
    return sa;
  }

 private:
  bool chance(unsigned n) { return random_() % n == 0; }
  std::mt19937_64 random_;
};

/// True if the SA could carry the packet, which then came back.
bool comes_back(const Bytes& bytes, LinkType link, std::uint32_t wire_length, RandomSas& sas) {
  RoomyFrame frame(bytes, {72, 3100}, link, wire_length);
  const PacketLayout before = frame.view.layout();
  const SaView sa = sas.sa(before.network);
  if (encapsulate(frame, sa, 0xfedcba9876543210) != Reason::none) return false;
  const FrameRoom growth = growth_of(sa);
  EXPECT_LE(frame.view.length(), bytes.size() + growth.head + growth.tail);
  EXPECT_EQ(frame.view.layout().end, frame.view.length());
  EXPECT_FALSE(frame.view.layout().has(PacketLayout::kMalformed));
  EXPECT_EQ(decapsulate(frame, sa), Reason::none);
  EXPECT_EQ(frame.bytes(), Bytes(bytes.begin(), bytes.begin() + before.end));
  const PacketLayout after = frame.view.layout();
  EXPECT_EQ(after, before);
  return true;
}

RC_GTEST_PROP(RoundTrip, GivesBackRandomFrames, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  penstock::testing::RandomFrames frames(seed);
  RandomSas sas(seed + 1);
  for (int i = 0; i < 20; ++i) {
    const penstock::testing::Frame frame = frames.frame();
    static_cast<void>(comes_back(frame.bytes, frame.link_type, frame.wire_length, sas));
    RC_ASSERT(!::testing::Test::HasFailure());
  }
}

TEST(RoundTrip, GivesBackMostOfThem) {
  penstock::testing::RandomFrames frames(1);
  RandomSas sas(2);
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    const penstock::testing::Frame frame = frames.frame();
    taken += comes_back(frame.bytes, frame.link_type, frame.wire_length, sas) ? 1 : 0;
  }
  EXPECT_GT(taken, 700);
}

}  // namespace
}  // namespace penstock::ipsec
