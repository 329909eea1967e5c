// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/aes_core.h"

#include <gtest/gtest.h>

#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

struct Vector {
  const char* key;
  const char* plain;
  const char* cipher;
};

class Aes : public ::testing::TestWithParam<Vector> {};

TEST_P(Aes, EncryptsAndDecryptsAsFips197Says) {
  const Bytes key = from_hex(GetParam().key);
  const int rounds = aes_rounds(key.size());
  Block encryption[kMostAesRounds + 1];
  Block decryption[kMostAesRounds + 1];
  aes_encryption_keys(key, encryption);
  aes_decryption_keys(encryption, rounds, decryption);

  const Block cipher =
      aes_encrypt(host_encryption_table(), encryption, rounds, load_block(from_hex(GetParam().plain).data()));
  Bytes bytes(kBlockBytes);
  store_block(bytes.data(), cipher);
  EXPECT_EQ(to_hex(bytes), GetParam().cipher);
  store_block(bytes.data(), aes_decrypt(host_decryption_table(), decryption, rounds, cipher));
  EXPECT_EQ(to_hex(bytes), GetParam().plain);
}

INSTANTIATE_TEST_SUITE_P(Vectors, Aes,
                         ::testing::Values(
                             // Appendix B
                             Vector{"2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
                                    "3925841d02dc09fbdc118597196a0b32"},
                             // Appendix C.1, C.2, C.3
                             Vector{"000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
                                    "69c4e0d86a7b0430d8cdb78070b4c55a"},
                             Vector{"000102030405060708090a0b0c0d0e0f1011121314151617",
                                    "00112233445566778899aabbccddeeff", "dda97ca4864cdfe06eaf70a0ec0d7191"},
                             Vector{"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
                                    "00112233445566778899aabbccddeeff", "8ea2b7ca516745bfeafc49904b496089"}));

TEST(Aes, ExpandsTheKeyAsFips197AppendixASays) {
  Block keys[kMostAesRounds + 1];
  aes_encryption_keys(from_hex("2b7e151628aed2a6abf7158809cf4f3c"), keys);
  Bytes last(kBlockBytes);
  store_block(last.data(), keys[10]);
  EXPECT_EQ(to_hex(last), "d014f9a8c9ee2589e13f0cc8b6630ca6");
  aes_encryption_keys(from_hex("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b"), keys);
  store_block(last.data(), keys[12]);
  EXPECT_EQ(to_hex(last), "e98ba06f448c773c8ecc720401002202");
  aes_encryption_keys(from_hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"), keys);
  store_block(last.data(), keys[14]);
  EXPECT_EQ(to_hex(last), "fe4890d1e6188d0b046df344706c631e");
}

TEST(Aes, BlocksSideBySideAreThoseOneByOne) {
  RandomCrypto draw(1);
  Block keys[kMostAesRounds + 1];
  aes_encryption_keys(draw.bytes(32), keys);
  Block blocks[4];
  Block alone[4];
  for (int i = 0; i < 4; ++i) {
    blocks[i] = load_block(draw.bytes(kBlockBytes).data());
    alone[i] = aes_encrypt(host_encryption_table(), keys, 14, blocks[i]);
  }
  aes_encrypt(host_encryption_table(), keys, 14, blocks);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) EXPECT_EQ(blocks[i].w[k], alone[i].w[k]);
  }
}

TEST(AesCounter, GivesTheStateOfEveryCountBehindTwoRounds) {
  RandomCrypto draw(2);
  Block keys[kMostAesRounds + 1];
  aes_encryption_keys(draw.bytes(24), keys);
  Block block = load_block(draw.bytes(kBlockBytes).data());
  block.w[3] &= 0xffff;
  const AesCounter counter(host_encryption_table(), keys, block);
  for (std::uint32_t count = 0; count < 65536; count += 1 + draw.below(40)) {
    Block slow = block ^ keys[0];
    slow.w[3] ^= swap_bytes(count);
    for (int round = 1; round <= 2; ++round) slow = aes_round<1>(host_encryption_table(), slow, keys[round]);
    const Block fast = counter.after_two_rounds(host_encryption_table(), count);
    for (int k = 0; k < 4; ++k) ASSERT_EQ(fast.w[k], slow.w[k]) << count;
  }
}

}  // namespace
}  // namespace penstock::ipsec
