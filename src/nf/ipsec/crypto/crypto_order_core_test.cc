// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/crypto_order_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

TEST(CryptoOrder, GivesEveryPairOfCipherAndProofAClassOfItsOwn) {
  RandomCrypto draw(40);
  std::vector<int> members(kJobClasses);
  for (const KeyMaterial& material : draw.every_algorithm()) {
    const std::uint32_t its_class = job_class(material.cipher, material.integrity);
    ASSERT_LT(its_class, kJobClasses);
    EXPECT_EQ(cipher_of_class(its_class), material.cipher);
    EXPECT_EQ(proof_of_class(its_class), proof_of(material.cipher, material.integrity));
    ++members[its_class];
  }
  EXPECT_EQ(std::ranges::count(members, 0), 0);
}

TEST(CryptoOrder, PutsLongerPacketsFirst) {
  for (std::uint32_t bytes = 0; bytes < 70'000; ++bytes) {
    EXPECT_LT(length_bin(bytes), kLengthBins);
    EXPECT_GE(length_bin(bytes), length_bin(bytes + 1));
  }
  for (std::uint32_t bytes = 0; bytes < 2048; bytes += 64) EXPECT_GT(length_bin(bytes), length_bin(bytes + 64));
  EXPECT_GT(length_bin(4000), length_bin(9000));
  EXPECT_GT(length_bin(30'000), length_bin(60'000));
}

// Whatever the sizes of the classes, each position of a kernel's classes belongs to exactly one warp, and no warp spans
// classes.
TEST(CryptoOrder, GivesEachPacketOfAKernelToOneWarp) {
  RandomCrypto draw(41);
  for (int round = 0; round < 300; ++round) {
    ClassBounds bounds{};
    for (std::uint32_t c = 0; c < kJobClasses; ++c) {
      bounds.begin[c + 1] = bounds.begin[c] + (draw.below(2) == 0 ? 0 : draw.below(100));
    }
    std::vector<std::uint32_t> packets_per_warp(kJobClasses);
    for (std::uint32_t& packets : packets_per_warp) packets = std::vector<std::uint32_t>{0, 4, 32}[draw.below(3)];
    std::vector<int> taken(bounds.begin[kJobClasses]);
    for (std::uint32_t warp = 0;; ++warp) {
      const WarpWork work = work_of_warp(bounds, warp, [&](std::uint32_t c) { return packets_per_warp[c]; });
      if (work.first == work.end) break;
      ASSERT_LE(work.end - work.first, packets_per_warp[work.job_class]);
      ASSERT_GE(work.first, bounds.begin[work.job_class]);
      ASSERT_LE(work.end, bounds.begin[work.job_class + 1]);
      for (std::uint32_t place = work.first; place < work.end; ++place) ++taken[place];
    }
    for (std::uint32_t c = 0; c < kJobClasses; ++c) {
      for (std::uint32_t place = bounds.begin[c]; place < bounds.begin[c + 1]; ++place) {
        ASSERT_EQ(taken[place], packets_per_warp[c] == 0 ? 0 : 1);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::ipsec
