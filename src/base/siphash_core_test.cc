// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/siphash_core.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace penstock {
namespace {

constexpr SipKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};  // bytes 0, 1, 2 …

/// Messages of bytes 0, 1, 2 …, and the MACs of the reference implementation (vectors.h), read as little-endian words.
TEST(SipHash, IsThatOfTheReference) {
  EXPECT_EQ(siphash(kKey, {0x0706050403020100}), 0x93f5f5799a932462);
  EXPECT_EQ(siphash(kKey, {0x0706050403020100, 0x0f0e0d0c0b0a0908}), 0x3f2acc7f57c29bdb);
  EXPECT_EQ(siphash(kKey, {0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110}), 0xb8ad50c6f649af94);
  EXPECT_EQ(siphash(kKey, {0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110, 0x1f1e1d1c1b1a1918}),
            0x7127512f72f27cce);
  EXPECT_EQ(siphash(kKey, {0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110, 0x1f1e1d1c1b1a1918,
                           0x2726252423222120, 0x2f2e2d2c2b2a2928, 0x3736353433323130}),
            0xb78dbfaf3a8d83bd);
}

TEST(SipHash, DependsOnEachBitOfKeyAndMessage) {
  const std::uint64_t mac = siphash(kKey, {0, 0});
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    EXPECT_NE(siphash(kKey, {one, 0}), mac);
    EXPECT_NE(siphash(kKey, {0, one}), mac);
    EXPECT_NE(siphash({kKey.low ^ one, kKey.high}, {0, 0}), mac);
    EXPECT_NE(siphash({kKey.low, kKey.high ^ one}, {0, 0}), mac);
  }
}

}  // namespace
}  // namespace penstock
