// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/ghash_core.h"

#include <gtest/gtest.h>

#include <vector>

#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

Block element(const char* hex) { return swap_bytes(load_block(from_hex(hex).data())); }

std::string hex_of(const Block& block) {
  Bytes bytes(kBlockBytes);
  store_block(bytes.data(), swap_bytes(block));
  return to_hex(bytes);
}

/// SP 800-38D §6.3, algorithm 1, implemented literally.
Block slow_product(const Block& x, Block v) {
  Block z{};
  for (unsigned i = 0; i < 128; ++i) {
    if ((x.w[i / 32] >> (31 - i % 32) & 1) != 0) z = z ^ v;
    const bool last = (v.w[3] & 1) != 0;
    v = {{v.w[0] >> 1, v.w[1] >> 1 | v.w[0] << 31, v.w[2] >> 1 | v.w[1] << 31, v.w[3] >> 1 | v.w[2] << 31}};
    if (last) v.w[0] ^= 0xe1000000;
  }
  return z;
}

TEST(CarrylessProduct, IsTheSumOfShiftedWordsWithoutCarries) {
  RandomCrypto draw(4);
  std::vector<std::uint32_t> words{0, 1, 0x80000000, 0x11111111, 0x88888888, 0x77777777, 0xfffffffe, 0x7fffffff, ~0U};
  for (int i = 0; i < 300; ++i) words.push_back(static_cast<std::uint32_t>(draw.number()));
  for (const std::uint32_t a : words) {
    for (const std::uint32_t b : words) {
      std::uint64_t sum = 0;
      for (unsigned bit = 0; bit < 32; ++bit) {
        if ((b >> bit & 1) != 0) sum ^= std::uint64_t{a} << bit;
      }
      ASSERT_EQ(carryless_product(a, b), sum) << a << " " << b;
    }
  }
}

TEST(Ghash, MultipliesAsTheDefinitionDoes) {
  RandomCrypto draw(3);
  const Block one = element("80000000000000000000000000000000");
  for (int i = 0; i < 3000; ++i) {
    Block a = load_block(draw.bytes(kBlockBytes).data());
    Block b = load_block(draw.bytes(kBlockBytes).data());
    if (i % 10 == 0) a = Block{};
    if (i % 10 == 1) b = one;
    if (i % 10 == 2) a.w[0] = a.w[1] = a.w[2] = a.w[3] = ~0U;
    if (i % 10 == 3) b.w[0] = b.w[1] = b.w[2] = b.w[3] = ~0U;
    EXPECT_EQ(hex_of(ghash_times(a, ghash_key(b))), hex_of(slow_product(a, b)));
  }
}

TEST(Ghash, MultipliesEachPowerOfXByEach) {
  for (unsigned i = 0; i < 128; ++i) {
    for (unsigned k = 0; k < 128; ++k) {
      Block a{};
      Block b{};
      a.w[i / 32] = 1U << (31 - i % 32);
      b.w[k / 32] = 1U << (31 - k % 32);
      ASSERT_EQ(hex_of(ghash_times(a, ghash_key(b))), hex_of(slow_product(a, b))) << i << " " << k;
    }
  }
}

// "The Galois/Counter Mode of Operation", McGrew and Viega, test case 2: GHASH(H, {}, C).
TEST(Ghash, GivesTheHashOfTheSpecificationsExample) {
  const Block key = ghash_key(element("66e94bd4ef8a2c3b884cfa59ca342b2e"));
  const Block first = ghash_times(element("0388dace60b6a392f328c2b971b2fe78"), key);
  EXPECT_EQ(hex_of(first), "5e2ec746917062882c85b0685353deb7");
  const Block lengths = element("00000000000000000000000000000080");
  EXPECT_EQ(hex_of(ghash_times(first ^ lengths, key)), "f38cbb1ad69223dcc3457ae5b6b0f885");
}

}  // namespace
}  // namespace penstock::ipsec
