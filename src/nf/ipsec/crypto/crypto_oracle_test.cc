// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `seal` and `open` against OpenSSL: packets built from its AES, GCM and HMAC must match byte for byte.

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <memory>

#include "base/testing/rounds.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

const EVP_CIPHER* openssl_cipher(const char* mode, std::size_t key_bytes) {
  return EVP_get_cipherbyname(("aes-" + std::to_string(8 * key_bytes) + "-" + mode).c_str());
}

/// Without padding. With `tag`, of GCM over `aad`, as many bytes of it as there are.
Bytes encrypt(const char* mode, const Secret& key, const Bytes& iv, const Bytes& text, const Bytes& aad = {},
              Bytes* tag = nullptr) {
  const Context context(EVP_CIPHER_CTX_new());
  EXPECT_EQ(
      1, EVP_EncryptInit_ex(context.get(), openssl_cipher(mode, key.size()), nullptr, key.bytes().data(), iv.data()));
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  int length = 0;
  if (!aad.empty()) {
    EXPECT_EQ(1, EVP_EncryptUpdate(context.get(), nullptr, &length, aad.data(), static_cast<int>(aad.size())));
  }
  Bytes out(text.size() + kBlockBytes);
  EXPECT_EQ(1, EVP_EncryptUpdate(context.get(), out.data(), &length, text.data(), static_cast<int>(text.size())));
  int rest = 0;
  EXPECT_EQ(1, EVP_EncryptFinal_ex(context.get(), out.data() + length, &rest));
  out.resize(static_cast<std::size_t>(length + rest));
  if (tag != nullptr) {
    EXPECT_EQ(1, EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag->size()), tag->data()));
  }
  return out;
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

Bytes big_endian(std::uint64_t number, int bytes) {
  Bytes out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(number >> shift));
  return out;
}

/// The bytes on the wire, from the ESP header on.
Bytes sealed_by_openssl(const KeyMaterial& material, const Bytes& header, const Bytes& text, std::uint64_t sequence) {
  const Bytes number = big_endian(material.iv_base + sequence, 8);
  const Bytes salt(material.salt.begin(), material.salt.end());
  Bytes iv;
  Bytes cipher_text = text;
  Bytes tag(material.icv_bytes);
  switch (material.cipher) {
    case Cipher::aes_cbc: {
      Bytes block(8);
      append(block, number);
      iv = encrypt("ecb", material.cipher_key, {}, block);
      cipher_text = encrypt("cbc", material.cipher_key, iv, text);
      break;
    }
    case Cipher::aes_ctr: {
      iv = number;
      Bytes counter = salt;
      append(counter, iv);
      append(counter, big_endian(1, 4));
      cipher_text = encrypt("ctr", material.cipher_key, counter, text);
      break;
    }
    case Cipher::aes_gcm: {
      iv = number;
      Bytes nonce = salt;
      append(nonce, iv);
      Bytes aad(header.begin(), header.begin() + 4);
      if (material.esn) append(aad, big_endian(sequence >> 32, 4));
      aad.insert(aad.end(), header.begin() + 4, header.end());
      cipher_text = encrypt("gcm", material.cipher_key, nonce, text, aad, &tag);
      break;
    }
    case Cipher::null: break;
  }
  Bytes packet = header;
  append(packet, iv);
  append(packet, cipher_text);
  switch (material.integrity) {
    case Integrity::hmac_sha1_96:
    case Integrity::hmac_sha256_128:
    case Integrity::hmac_sha256_96: {
      Bytes covered = packet;
      if (material.esn) append(covered, big_endian(sequence >> 32, 4));
      Bytes digest(EVP_MAX_MD_SIZE);
      unsigned length = 0;
      const auto key = material.integrity_key.bytes();
      HMAC(material.integrity == Integrity::hmac_sha1_96 ? EVP_sha1() : EVP_sha256(), key.data(),
           static_cast<int>(key.size()), covered.data(), covered.size(), digest.data(), &length);
      digest.resize(material.integrity == Integrity::hmac_sha256_128 ? 16 : 12);
      append(packet, digest);
      break;
    }
    case Integrity::digest_null: append(packet, Bytes(material.icv_bytes)); break;
    case Integrity::none:
      if (material.cipher == Cipher::aes_gcm) append(packet, tag);
      break;
  }
  return packet;
}

/// A packet surrounded by other bytes is sealed, opened, and compared with OpenSSL's.
void check(const KeyMaterial& material, std::uint32_t text_bytes, RandomCrypto& draw) {
  const SaKeys keys = expanded(material);
  const std::uint32_t esp = draw.below(32);
  const CryptoJob job = job_of(keys, 0, esp, text_bytes, draw.number());
  const Bytes header = draw.bytes(8);
  const Bytes text = draw.bytes(text_bytes);
  Bytes room = draw.bytes(esp + packet_bytes(job) + 40);
  std::ranges::copy(header, room.begin() + job.esp);
  std::ranges::copy(text, room.begin() + job.text());
  Bytes expected = room;
  const Bytes packet = sealed_by_openssl(material, header, text, job.sequence);
  ASSERT_EQ(packet.size(), packet_bytes(job));
  std::ranges::copy(packet, expected.begin() + job.esp);

  seal(job, keys, room.data());
  ASSERT_EQ(to_hex(room), to_hex(expected)) << text_bytes << " bytes";

  ASSERT_TRUE(open(job, keys, room.data())) << text_bytes << " bytes";
  std::ranges::copy(text, expected.begin() + job.text());
  ASSERT_EQ(to_hex(room), to_hex(expected)) << text_bytes << " bytes";
}

std::uint32_t in_units(std::uint32_t bytes, Cipher cipher) {
  return cipher == Cipher::aes_cbc ? bytes / kBlockBytes * kBlockBytes : bytes;
}

TEST(CryptoOracle, SealsAsOpensslDoesAtEveryShortLength) {
  RandomCrypto draw(20);
  for (const KeyMaterial& material : draw.every_algorithm()) {
    for (std::uint32_t bytes = 0; bytes < 200; bytes += penstock::testing::stride()) {
      check(material, in_units(bytes, material.cipher), draw);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CryptoOracle, SealsAsOpensslDoesAtRandomLengths) {
  RandomCrypto draw(21);
  for (std::uint32_t round = 0; round < penstock::testing::rounds(20); ++round) {
    for (const KeyMaterial& material : draw.every_algorithm()) {
      check(material, in_units(draw.below(round % 4 != 1 ? 2000 : 9000), material.cipher), draw);
      if (HasFatalFailure()) return;
    }
  }
}

// A packet has at most 4096 blocks, so its count needs a second byte but never a third.
TEST(CryptoOracle, SealsAsOpensslDoesWhereTheCountGrowsByAByte) {
  RandomCrypto draw(22);
  const auto materials = draw.every_algorithm();
  for (std::size_t i = 0; i < materials.size(); i += penstock::testing::stride()) {
    const KeyMaterial& material = materials[i];
    for (const std::uint32_t blocks : {254U, 255U, 256U, 257U, 4095U}) {
      check(material, blocks * kBlockBytes, draw);
      if (HasFatalFailure()) return;
    }
  }
}

// The IV is a 64-bit number that wraps to 0. In a counter block, nothing carries into it.
TEST(CryptoOracle, SealsAsOpensslDoesWhereTheIvComesBackToZero) {
  RandomCrypto draw(23);
  for (KeyMaterial material : draw.every_algorithm()) {
    const SaKeys keys = expanded(material);
    const CryptoJob job = job_of(keys, 0, 0, 48, draw.number());
    for (const std::uint64_t number : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0xffffffff}}) {
      material.iv_base = number - job.sequence;
      const Bytes header = draw.bytes(8);
      const Bytes text = draw.bytes(48);
      Bytes room(packet_bytes(job));
      std::ranges::copy(header, room.begin());
      std::ranges::copy(text, room.begin() + job.text());
      seal(job, expanded(material), room.data());
      EXPECT_EQ(to_hex(room), to_hex(sealed_by_openssl(material, header, text, job.sequence)));
    }
  }
}

}  // namespace
}  // namespace penstock::ipsec
