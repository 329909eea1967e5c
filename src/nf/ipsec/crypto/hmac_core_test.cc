// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/hmac_core.h"

#include <gtest/gtest.h>

#include <string_view>

#include "nf/ipsec/crypto/keys.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

template <typename Hash>
std::string hex_of(const typename Hash::State& state) {
  std::string text;
  for (const std::uint32_t word : state.w) {
    for (int shift = 24; shift >= 0; shift -= 8) text += to_hex({static_cast<std::uint8_t>(word >> shift)});
  }
  return text;
}

std::string hmac_sha1(const Bytes& key, const Bytes& message, bool esn = false, std::uint64_t sequence = 0) {
  KeyMaterial material;
  material.integrity = Integrity::hmac_sha1_96;
  material.integrity_key = Secret{key};
  const SaKeys keys = expanded(material);
  const auto bytes = static_cast<std::uint32_t>(message.size());
  return hex_of<Sha1>(
      hmac<Sha1>(MessageBytes(message.data(), bytes), bytes, esn, sequence, keys.sha1[0], keys.sha1[1]));
}

std::string hmac_sha256(const Bytes& key, const Bytes& message, bool esn = false, std::uint64_t sequence = 0) {
  KeyMaterial material;
  material.integrity = Integrity::hmac_sha256_128;
  material.integrity_key = Secret{key};
  const SaKeys keys = expanded(material);
  const auto bytes = static_cast<std::uint32_t>(message.size());
  return hex_of<Sha256>(
      hmac<Sha256>(MessageBytes(message.data(), bytes), bytes, esn, sequence, keys.sha256[0], keys.sha256[1]));
}

Bytes text(std::string_view characters) { return {characters.begin(), characters.end()}; }

TEST(HmacSha1, GivesTheDigestsOfRfc2202) {
  EXPECT_EQ(hmac_sha1(Bytes(20, 0x0b), text("Hi There")), "b617318655057264e28bc0b6fb378c8ef146be00");
  EXPECT_EQ(hmac_sha1(text("Jefe"), text("what do ya want for nothing?")), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
  EXPECT_EQ(hmac_sha1(Bytes(20, 0xaa), Bytes(50, 0xdd)), "125d7342b9ac11cd91a39af48aa17b4f63f175d3");
}

TEST(HmacSha256, GivesTheDigestsOfRfc4231) {
  EXPECT_EQ(hmac_sha256(Bytes(20, 0x0b), text("Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256(text("Jefe"), text("what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256(Bytes(20, 0xaa), Bytes(50, 0xdd)),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
}

// The upper half is hashed as if it followed the packet (RFC 4303 §2.2.1). Covers every length of the last block.
TEST(Hmac, TakesTheUpperHalfOfTheSequenceNumberAsFourBytesMore) {
  RandomCrypto draw(2);
  const Bytes key = draw.bytes(32);
  for (std::size_t length = 0; length < 200; ++length) {
    const Bytes message = draw.bytes(length);
    Bytes longer = message;
    for (const int byte : {0xfe, 0xdc, 0xba, 0x98}) longer.push_back(static_cast<std::uint8_t>(byte));
    EXPECT_EQ(hmac_sha1(key, message, true, 0xfedcba98'76543210), hmac_sha1(key, longer)) << length;
    EXPECT_EQ(hmac_sha256(key, message, true, 0xfedcba98'76543210), hmac_sha256(key, longer)) << length;
    EXPECT_EQ(hmac_sha256(key, message, false, 0xfedcba98'76543210), hmac_sha256(key, message)) << length;
  }
}

}  // namespace
}  // namespace penstock::ipsec
