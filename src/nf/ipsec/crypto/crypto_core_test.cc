// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/crypto_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

std::uint64_t number(const char* hex) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : from_hex(hex)) value = value << 8 | byte;
  return value;
}

KeyMaterial of_cipher(Cipher cipher, const char* key, const char* salt = "00000000") {
  KeyMaterial material;
  material.cipher = cipher;
  material.cipher_key = Secret{from_hex(key)};
  std::ranges::copy(from_hex(salt), material.salt.begin());
  if (cipher == Cipher::aes_gcm) material.icv_bytes = 16;
  return material;
}

struct Packet {
  Bytes bytes;
  CryptoJob job;
};

/// The ESP header, room for the IV, the text, and room for the ICV.
Packet packet_of(const SaKeys& keys, const Bytes& header, const Bytes& text, std::uint64_t sequence) {
  Packet packet;
  packet.job = job_of(keys, 0, 0, static_cast<std::uint32_t>(text.size()), sequence);
  packet.bytes.resize(packet_bytes(packet.job));
  std::ranges::copy(header, packet.bytes.begin());
  std::ranges::copy(text, packet.bytes.begin() + packet.job.text());
  return packet;
}

Bytes text_of(const Packet& packet) {
  return {packet.bytes.begin() + packet.job.text(), packet.bytes.begin() + packet.job.icv()};
}

struct CounterVector {
  const char* key;
  const char* nonce;
  const char* iv;
  const char* plain;
  const char* cipher;
};

class AesCtr : public ::testing::TestWithParam<CounterVector> {};

TEST_P(AesCtr, EncryptsAsRfc3686Says) {
  const CounterVector& vector = GetParam();
  KeyMaterial material = of_cipher(Cipher::aes_ctr, vector.key, vector.nonce);
  material.iv_base = number(vector.iv) - 5;
  const SaKeys keys = expanded(material);
  Packet packet = packet_of(keys, from_hex("0000432100000005"), from_hex(vector.plain), 5);

  seal(packet.job, keys, packet.bytes.data());

  EXPECT_EQ(to_hex(packet.bytes), std::string("0000432100000005") + vector.iv + vector.cipher);
  ASSERT_TRUE(open(packet.job, keys, packet.bytes.data()));
  EXPECT_EQ(to_hex(text_of(packet)), vector.plain);
}

INSTANTIATE_TEST_SUITE_P(
    Rfc3686, AesCtr,
    ::testing::Values(CounterVector{"ae6852f8121067cc4bf7a5765577f39e", "00000030", "0000000000000000",
                                    "53696e676c6520626c6f636b206d7367", "e4095d4fb7a7b3792d6175a3261311b8"},
                      CounterVector{"7e24067817fae0d743d6ce1f32539163", "006cb6db", "c0543b59da48d90b",
                                    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
                                    "5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28"},
                      CounterVector{"7691be035e5020a8ac6e618529f9a0dc", "00e0017b", "27777f3f4a1786f0",
                                    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
                                    "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f"},
                      CounterVector{"16af5b145fc9f579c175f93e3bfb0eed863d06ccfdb78515", "00000048", "36733c147d6d93cb",
                                    "53696e676c6520626c6f636b206d7367", "4b55384fe259c9c84e7935a003cbe928"},
                      CounterVector{"776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104", "00000060",
                                    "db5672c97aa8f0b2", "53696e676c6520626c6f636b206d7367",
                                    "145ad01dbf824ec7560863dc71e3e0c0"}));

// RFC 3602 §4, case 5: a whole packet in transport mode. The IV is given, so the steps of `seal` are called one by one.
TEST(AesCbc, EncryptsAsRfc3602Says) {
  const SaKeys keys = expanded(of_cipher(Cipher::aes_cbc, "90d382b410eeba7ad938c46cec1a82bf"));
  const Bytes text = from_hex(
      "08000ebda70a00008e9c083db95b070008090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
      "202122232425262728292a2b2c2d2e2f3031323334353637"
      "0102030405060708090a0b0c0d0e0e01");
  Packet packet = packet_of(keys, from_hex("0000432100000001"), text, 1);
  std::ranges::copy(from_hex("e96e8c08ab465763fd098d45dd3ff893"), packet.bytes.begin() + packet.job.iv());

  encrypt_cbc(host_encryption_table(), packet.job, keys, packet.bytes.data());

  EXPECT_EQ(to_hex(text_of(packet)),
            "f663c25d325c18c6a9453e194e120849a4870b66cc6b9965330013b4898dc856a4699e523a55db08"
            "0b59ec3a8e4b7e52775b07d1db34ed9c538ab50c551b874aa269add047ad2d5913ac19b7cfbad4a6");
  ASSERT_TRUE(open(packet.job, keys, packet.bytes.data()));
  EXPECT_EQ(text_of(packet), text);
}

TEST(AesCbc, IsNotOpenedWhereTheTextIsNoWholeNumberOfBlocks) {
  const SaKeys keys = expanded(of_cipher(Cipher::aes_cbc, "90d382b410eeba7ad938c46cec1a82bf"));
  Packet packet = packet_of(keys, Bytes(8), Bytes(20, 7), 1);
  const Bytes before = packet.bytes;
  EXPECT_FALSE(open(packet.job, keys, packet.bytes.data()));
  EXPECT_EQ(packet.bytes, before);
}

// draft-mcgrew-gcm-test-01 §4: a DNS query in tunnel mode.
TEST(AesGcm, SealsAndOpensAsTheDraftForRfc4106Says) {
  KeyMaterial material = of_cipher(Cipher::aes_gcm, "feffe9928665731c6d6a8f9467308308", "cafebabe");
  material.iv_base = number("facedbaddecaf888") - 1;
  const SaKeys keys = expanded(material);
  const char* text =
      "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d001000001000000000000"
      "037369700963796265726369747902646b00000100010004";
  Packet packet = packet_of(keys, from_hex("0000a5f800000001"), from_hex(text), 1);

  seal(packet.job, keys, packet.bytes.data());

  EXPECT_EQ(to_hex(packet.bytes),
            "0000a5f800000001facedbaddecaf888"
            "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642"
            "cfbb85a5b47e48a4ec3b9ba95d918bd4"
            "29c737579ff19e58cffc607a3bce8994");
  ASSERT_TRUE(open(packet.job, keys, packet.bytes.data()));
  EXPECT_EQ(to_hex(text_of(packet)), text);
}

TEST(Seal, TakesATextOfNoBytes) {
  RandomCrypto draw(4);
  for (const KeyMaterial& material : draw.every_algorithm()) {
    const SaKeys keys = expanded(material);
    Packet packet = packet_of(keys, draw.bytes(8), {}, 7);
    seal(packet.job, keys, packet.bytes.data());
    EXPECT_TRUE(open(packet.job, keys, packet.bytes.data()));
  }
}

TEST(Seal, MakesAnIvForCbcThatNobodyForetells) {
  RandomCrypto draw(5);
  KeyMaterial material = of_cipher(Cipher::aes_cbc, "90d382b410eeba7ad938c46cec1a82bf");
  material.iv_base = 1'000'000'000;
  const SaKeys keys = expanded(material);
  std::vector<Bytes> ivs;
  for (std::uint64_t sequence = 1; sequence <= 200; ++sequence) {
    Packet packet = packet_of(keys, Bytes(8), Bytes(16), sequence);
    seal(packet.job, keys, packet.bytes.data());
    ivs.emplace_back(packet.bytes.begin() + packet.job.iv(), packet.bytes.begin() + packet.job.text());
  }
  int differing = 0;
  for (std::size_t i = 1; i < ivs.size(); ++i) {
    for (std::size_t k = 0; k < kBlockBytes; ++k) {
      differing += __builtin_popcount(static_cast<unsigned>(ivs[i][k] ^ ivs[i - 1][k]));
    }
  }
  EXPECT_NEAR(differing / (199.0 * 128), 0.5, 0.02);  // consecutive IVs differ in half of their bits
  std::set<std::string> distinct;
  for (const Bytes& iv : ivs) distinct.insert(to_hex(iv));
  EXPECT_EQ(distinct.size(), ivs.size());
}

TEST(Open, RefusesAPacketWithAnyBitChangedAndLeavesItAsItIs) {
  RandomCrypto draw(6);
  int changed = 0;
  for (const KeyMaterial& material : draw.every_algorithm()) {
    const SaKeys keys = expanded(material);
    if (!has_proof(keys)) continue;
    Packet packet = packet_of(keys, draw.bytes(8), draw.bytes(48), draw.number());
    seal(packet.job, keys, packet.bytes.data());
    const Bytes sealed = packet.bytes;
    for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
      packet.bytes[bit / 8] = static_cast<std::uint8_t>(packet.bytes[bit / 8] ^ 1U << (bit % 8));
      const Bytes tampered = packet.bytes;
      ASSERT_FALSE(open(packet.job, keys, packet.bytes.data())) << bit;
      ASSERT_EQ(packet.bytes, tampered) << bit;
      packet.bytes = sealed;
      ++changed;
    }
    ASSERT_TRUE(open(packet.job, keys, packet.bytes.data()));
  }
  EXPECT_GT(changed, 30'000);
}

TEST(Open, TakesTheUpperHalfOfTheNumberWithEsnAlone) {
  RandomCrypto draw(7);
  for (const KeyMaterial& material : draw.every_algorithm()) {
    const SaKeys keys = expanded(material);
    if (!has_proof(keys)) continue;
    Packet packet = packet_of(keys, draw.bytes(8), draw.bytes(32), 0x1'00000000);
    seal(packet.job, keys, packet.bytes.data());
    packet.job.sequence = 0x2'00000000;
    EXPECT_EQ(open(packet.job, keys, packet.bytes.data()), !keys.esn);
  }
}

TEST(Open, DoesNotLookAtAnIcvThatSaysNothing) {
  KeyMaterial material = of_cipher(Cipher::aes_ctr, "90d382b410eeba7ad938c46cec1a82bf");
  material.integrity = Integrity::digest_null;
  material.icv_bytes = 12;
  const SaKeys keys = expanded(material);
  Packet packet = packet_of(keys, Bytes(8), Bytes(20, 7), 1);
  std::fill(packet.bytes.begin() + packet.job.icv(), packet.bytes.end(), std::uint8_t{9});
  seal(packet.job, keys, packet.bytes.data());
  EXPECT_TRUE(
      std::all_of(packet.bytes.begin() + packet.job.icv(), packet.bytes.end(), [](auto byte) { return byte == 0; }));
  packet.bytes.back() = 1;
  ASSERT_TRUE(open(packet.job, keys, packet.bytes.data()));
  EXPECT_EQ(text_of(packet), Bytes(20, 7));
}

TEST(Keys, FitOnlyWithTheLengthsThatTheAlgorithmsHave) {
  EXPECT_TRUE(fits(of_cipher(Cipher::aes_cbc, "000102030405060708090a0b0c0d0e0f")));
  EXPECT_FALSE(fits(of_cipher(Cipher::aes_cbc, "000102030405060708090a0b0c0d0e")));
  EXPECT_FALSE(fits(of_cipher(Cipher::aes_ctr, "")));
  EXPECT_FALSE(fits(of_cipher(Cipher::null, "00")));
  KeyMaterial gcm = of_cipher(Cipher::aes_gcm, "000102030405060708090a0b0c0d0e0f");
  EXPECT_TRUE(fits(gcm));
  gcm.icv_bytes = 4;
  EXPECT_FALSE(fits(gcm));
  gcm.icv_bytes = 12;
  gcm.integrity = Integrity::hmac_sha1_96;
  EXPECT_FALSE(fits(gcm));
  KeyMaterial without = of_cipher(Cipher::null, "");
  EXPECT_TRUE(fits(without));
  without.integrity = Integrity::digest_null;
  without.icv_bytes = kMostIcvBytes;
  EXPECT_TRUE(fits(without));
  without.icv_bytes = kMostIcvBytes + 1;
  EXPECT_FALSE(fits(without));
}

}  // namespace
}  // namespace penstock::ipsec
