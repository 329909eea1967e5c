// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/keys.h"

#include <cassert>
#include <cstddef>
#include <cstring>

#include "nf/ipsec/crypto/ghash_core.h"
#include "nf/ipsec/crypto/hmac_core.h"

namespace penstock::ipsec {

namespace {

bool is_hmac(Integrity integrity) noexcept {
  switch (integrity) {
    case Integrity::hmac_sha1_96:
    case Integrity::hmac_sha256_128:
    case Integrity::hmac_sha256_96: return true;
    case Integrity::none:
    case Integrity::digest_null: break;
  }
  return false;
}

}  // namespace

template <typename Hash>
void hmac_states(std::span<const std::uint8_t> key, typename Hash::State (&states)[2]) noexcept {
  static_assert(Secret::kCapacity <= kShaBlockBytes);
  assert(key.size() <= kShaBlockBytes);
  constexpr std::uint8_t kPads[2] = {0x36, 0x5c};
  for (int side = 0; side < 2; ++side) {
    std::uint8_t padded[kShaBlockBytes];
    std::memset(padded, kPads[side], sizeof padded);
    for (std::size_t i = 0; i < key.size(); ++i) padded[i] = static_cast<std::uint8_t>(padded[i] ^ key[i]);
    std::uint32_t words[16];
    MessageBytes(padded, sizeof padded).next(words);
    states[side] = {};
    Hash::compress(states[side], words);
    wipe(padded, sizeof padded);
    wipe(words, sizeof words);
  }
}
template void hmac_states<Sha256>(std::span<const std::uint8_t>, Sha256::State (&)[2]) noexcept;

bool fits(const KeyMaterial& material) noexcept {
  const std::size_t cipher_key = material.cipher_key.size();
  const bool aes_key = cipher_key == 16 || cipher_key == 24 || cipher_key == 32;
  if (material.cipher == Cipher::null ? cipher_key != 0 : !aes_key) return false;
  if (!is_hmac(material.integrity) && !material.integrity_key.empty()) return false;
  if (material.cipher == Cipher::aes_gcm) {
    const std::uint16_t icv = material.icv_bytes;
    return material.integrity == Integrity::none && (icv == 8 || icv == 12 || icv == 16);
  }
  return material.integrity != Integrity::digest_null || material.icv_bytes <= kMostIcvBytes;
}

void expand(const KeyMaterial& material, SaKeys& keys) noexcept {
  assert(fits(material));
  wipe(&keys, sizeof keys);
  keys = SaKeys{};
  keys.cipher = material.cipher;
  keys.integrity = material.integrity;
  keys.esn = material.esn;
  keys.iv_bytes = iv_bytes(material.cipher);
  const bool told = material.cipher == Cipher::aes_gcm || material.integrity == Integrity::digest_null;
  keys.icv_bytes = told ? material.icv_bytes : icv_bytes(material.integrity);
  keys.iv_base = material.iv_base;
  keys.salt = load_block(material.salt.data(), 4).w[0];
  if (material.cipher != Cipher::null) {
    keys.rounds = static_cast<std::uint8_t>(aes_rounds(material.cipher_key.size()));
    aes_encryption_keys(material.cipher_key.bytes(), keys.encryption);
  }
  if (material.cipher == Cipher::aes_cbc) aes_decryption_keys(keys.encryption, keys.rounds, keys.decryption);
  if (material.cipher == Cipher::aes_gcm) {
    // The hash key is an encrypted block of zeros (SP 800-38D §7.1).
    Block power = swap_bytes(aes_encrypt(host_encryption_table(), keys.encryption, keys.rounds, Block{}));
    for (Block& key : keys.ghash) {
      key = ghash_key(power);
      power = ghash_times(power, keys.ghash[0]);
    }
    wipe(&power, sizeof power);
  }
  switch (material.integrity) {
    case Integrity::hmac_sha1_96: hmac_states<Sha1>(material.integrity_key.bytes(), keys.sha1); break;
    case Integrity::hmac_sha256_128:
    case Integrity::hmac_sha256_96: hmac_states<Sha256>(material.integrity_key.bytes(), keys.sha256); break;
    case Integrity::none:
    case Integrity::digest_null: break;
  }
}

}  // namespace penstock::ipsec
