// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// SAs of every combination of algorithms, and packets to protect, drawn at random.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/crypto/keys.h"

namespace penstock::ipsec {

using Bytes = std::vector<std::uint8_t>;

inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  int nibbles = 0;
  std::uint8_t byte = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    byte = static_cast<std::uint8_t>(byte << 4 | digit);
    if (++nibbles % 2 == 0) bytes.push_back(byte);
  }
  return bytes;
}

inline std::string to_hex(const Bytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    for (const int nibble : {byte >> 4, byte & 15}) text += "0123456789abcdef"[nibble];
  }
  return text;
}

class RandomCrypto {
 public:
  explicit RandomCrypto(std::uint64_t seed) : generator_(seed) {}

  std::uint64_t number() { return generator_(); }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(generator_() % bound); }
  Bytes bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator_());
    return bytes;
  }

  /// One SA for each combination of cipher, key length, integrity, ICV length and ESN, with random keys.
  std::vector<KeyMaterial> every_algorithm() {
    std::vector<KeyMaterial> all;
    const auto add = [&](Cipher cipher, std::size_t cipher_key, Integrity integrity, std::uint16_t icv) {
      for (const bool esn : {false, true}) {
        KeyMaterial material;
        material.cipher = cipher;
        material.cipher_key = Secret{bytes(cipher_key)};
        for (std::uint8_t& byte : material.salt) byte = static_cast<std::uint8_t>(number());
        material.integrity = integrity;
        const bool hmac = icv_bytes(integrity) != 0;
        if (hmac) material.integrity_key = Secret{bytes(integrity == Integrity::hmac_sha1_96 ? 20 : 32)};
        material.icv_bytes = icv;
        material.esn = esn;
        material.iv_base = number();
        all.push_back(material);
      }
    };
    for (const Integrity integrity : {Integrity::none, Integrity::digest_null, Integrity::hmac_sha1_96,
                                      Integrity::hmac_sha256_128, Integrity::hmac_sha256_96}) {
      add(Cipher::null, 0, integrity, 12);
      for (const std::size_t key : {16U, 24U, 32U}) {
        add(Cipher::aes_cbc, key, integrity, 16);
        add(Cipher::aes_ctr, key, integrity, 20);
      }
    }
    for (const std::size_t key : {16U, 24U, 32U}) {
      for (const std::uint16_t icv : {std::uint16_t{8}, std::uint16_t{12}, std::uint16_t{16}})
        add(Cipher::aes_gcm, key, Integrity::none, icv);
    }
    return all;
  }

 private:
  std::mt19937_64 generator_;
};

inline SaKeys expanded(const KeyMaterial& material) {
  SaKeys keys;
  expand(material, keys);
  return keys;
}

/// A job of this SA at `esp`, and the number of bytes that it covers from there.
inline CryptoJob job_of(const SaKeys& keys, std::uint32_t sa, std::uint32_t esp, std::uint32_t text_bytes,
                        std::uint64_t sequence) {
  CryptoJob job;
  job.sequence = sequence;
  job.sa = sa;
  job.esp = esp;
  job.text_bytes = text_bytes;
  job.iv_bytes = keys.iv_bytes;
  job.icv_bytes = keys.icv_bytes;
  return job;
}
inline std::uint32_t packet_bytes(const CryptoJob& job) { return job.authenticated_bytes() + job.icv_bytes; }

}  // namespace penstock::ipsec
