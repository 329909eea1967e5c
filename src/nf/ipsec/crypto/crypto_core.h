// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Seals and opens one packet: ESP with its ciphers and ICVs (RFC 4303, 3602, 3686, 4106, 2404, 4868). `seal` and `open`
// do a whole job in one thread; they are the test oracle for device kernels and for the CPU library. Device threads use
// the same building blocks.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/aes_core.h"
#include "nf/ipsec/crypto/block_core.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/crypto/ghash_core.h"
#include "nf/ipsec/crypto/hmac_core.h"
#include "nf/ipsec/crypto/keys.h"

namespace penstock::ipsec {

/// IV of an outbound packet for CTR and GCM, which must be unique: iv_base + sequence, eight bytes big-endian.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Block make_counter_iv(const CryptoJob& job, const SaKeys& keys) noexcept {
  const std::uint64_t number = keys.iv_base + job.sequence;
  return {{swap_bytes(static_cast<std::uint32_t>(number >> 32)), swap_bytes(static_cast<std::uint32_t>(number)), 0, 0}};
}

/// IV for CBC, which must be unpredictable: the same number as a block, encrypted under the packet's own key (SP
/// 800-38A appendix C).
template <typename Table>
[[nodiscard]] PENSTOCK_HOST_DEVICE Block make_cbc_iv(const Table& encryption, const CryptoJob& job,
                                                     const SaKeys& keys) noexcept {
  const Block number = make_counter_iv(job, keys);
  return aes_encrypt(encryption, keys.encryption, keys.rounds, Block{{0, 0, number.w[0], number.w[1]}});
}

/// The salt, the IV and a block count (RFC 3686 §4, SP 800-38D §7.1).
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Block counter_block(const SaKeys& keys, const Block& iv,
                                                              std::uint32_t count) noexcept {
  return {{keys.salt, iv.w[0], iv.w[1], swap_bytes(count)}};
}

/// Count of the text's first block. The tag of AES-GCM is encrypted with the count before it.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t first_count(Cipher cipher) noexcept {
  return cipher == Cipher::aes_gcm ? 2 : 1;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t blocks_of(std::uint32_t bytes) noexcept {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

/// Bytes in the text's block `b`: 16, except in the last.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t bytes_of_block(const CryptoJob& job,
                                                                          std::uint32_t b) noexcept {
  const std::uint32_t left = job.text_bytes - b * kBlockBytes;
  return left < kBlockBytes ? left : kBlockBytes;
}

/// Number of blocks that GHASH processes: additional data, text, lengths.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t ghash_blocks(const CryptoJob& job) noexcept {
  return blocks_of(job.text_bytes) + 2;
}

/// GHASH's input block `b` (SP 800-38D §7.1), in big-endian words. The additional data is the ESP header; with ESN, the
/// upper half of the sequence number is inserted in its middle (RFC 4106 §5).
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Block ghash_block(const CryptoJob& job, bool esn, const std::uint8_t* base,
                                                            std::uint32_t b) noexcept {
  if (b == 0) {
    const Block header = swap_bytes(load_block(base + job.esp, kEspHeaderBytes));
    if (!esn) return header;
    return {{header.w[0], static_cast<std::uint32_t>(job.sequence >> 32), header.w[1], 0}};
  }
  if (b == ghash_blocks(job) - 1) return {{0, 8 * (kEspHeaderBytes + (esn ? 4U : 0U)), 0, 8 * job.text_bytes}};
  return swap_bytes(load_block(base + job.text() + (b - 1) * kBlockBytes, bytes_of_block(job, b - 1)));
}

/// The tag of AES-GCM for a GHASH result.
template <typename Table>
[[nodiscard]] PENSTOCK_HOST_DEVICE Block gcm_tag(const Table& encryption, const CryptoJob& job, const SaKeys& keys,
                                                 const std::uint8_t* base, const Block& hash) noexcept {
  const Block iv = load_block(base + job.iv(), 8);
  return swap_bytes(hash) ^ aes_encrypt(encryption, keys.encryption, keys.rounds, counter_block(keys, iv, 1));
}

/// The first sixteen bytes of the packet's HMAC. `Hash` is the integrity algorithm's; see `hmac` for `Reader`.
template <typename Hash, typename Reader>
[[nodiscard]] PENSTOCK_HOST_DEVICE Block hmac_icv(const CryptoJob& job, const SaKeys& keys,
                                                  const std::uint8_t* base) noexcept {
  const std::uint32_t bytes = job.authenticated_bytes();
  const Reader reader(base + job.esp, bytes);
  if constexpr (Hash::kStateWords == Sha1::kStateWords) {
    return digest_bytes(hmac<Sha1>(reader, bytes, keys.esn, job.sequence, keys.sha1[0], keys.sha1[1]));
  } else {
    return digest_bytes(hmac<Sha256>(reader, bytes, keys.esn, job.sequence, keys.sha256[0], keys.sha256[1]));
  }
}

/// Whether the packet's ICV equals `expected`, compared in constant time.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool same_icv(const CryptoJob& job, const std::uint8_t* base,
                                                        const Block& expected) noexcept {
  const Block difference = load_block(base + job.icv(), job.icv_bytes) ^ first_bytes(expected, job.icv_bytes);
  return (difference.w[0] | difference.w[1] | difference.w[2] | difference.w[3]) == 0;
}

/// Whether the packet is authenticated at all.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool has_proof(const SaKeys& keys) noexcept {
  return keys.cipher == Cipher::aes_gcm ||
         (keys.integrity != Integrity::none && keys.integrity != Integrity::digest_null);
}

/// The ICV for AES-GCM and the HMACs, from a packet that has its IV and ciphertext.
template <typename Table>
[[nodiscard]] PENSTOCK_HOST_DEVICE Block make_icv(const Table& encryption, const CryptoJob& job, const SaKeys& keys,
                                                  const std::uint8_t* base) noexcept {
  if (keys.integrity == Integrity::hmac_sha1_96) return hmac_icv<Sha1, MessageBytes>(job, keys, base);
  if (keys.integrity != Integrity::none) return hmac_icv<Sha256, MessageBytes>(job, keys, base);
  Block hash{};
  for (std::uint32_t b = 0; b < ghash_blocks(job); ++b) {
    hash = ghash_times(hash ^ ghash_block(job, keys.esn, base, b), keys.ghash[0]);
  }
  return gcm_tag(encryption, job, keys, base, hash);
}

/// Writes the ICV of `digest_null`.
PENSTOCK_HOST_DEVICE inline void write_null_icv(const CryptoJob& job, std::uint8_t* base) noexcept {
  for (std::uint32_t i = 0; i < job.icv_bytes; ++i) base[job.icv() + i] = 0;
}

/// Encrypts or decrypts with AES-CTR, also as part of AES-GCM.
template <typename Table>
PENSTOCK_HOST_DEVICE void crypt_by_counter(const Table& encryption, const CryptoJob& job, const SaKeys& keys,
                                           std::uint8_t* base) noexcept {
  const Block iv = load_block(base + job.iv(), 8);
  for (std::uint32_t b = 0; b < blocks_of(job.text_bytes); ++b) {
    std::uint8_t* at = base + job.text() + b * kBlockBytes;
    const std::uint32_t bytes = bytes_of_block(job, b);
    const Block pad =
        aes_encrypt(encryption, keys.encryption, keys.rounds, counter_block(keys, iv, first_count(keys.cipher) + b));
    store_block(at, load_block(at, bytes) ^ pad, bytes);
  }
}

/// Encrypts the text's whole blocks; leaves any remainder unchanged.
template <typename Table>
PENSTOCK_HOST_DEVICE void encrypt_cbc(const Table& encryption, const CryptoJob& job, const SaKeys& keys,
                                      std::uint8_t* base) noexcept {
  const std::uint32_t blocks = job.text_bytes / kBlockBytes;
  if (blocks == 0) return;
  std::uint8_t* at = base + job.text();
  Block chained = load_block(base + job.iv());
  Block text = load_block(at);
  for (std::uint32_t b = 0; b < blocks; ++b, at += kBlockBytes) {
    // Prefetches the next block while this one is encrypted.
    const Block next = b + 1 < blocks ? load_block(at + kBlockBytes) : Block{};
    chained = aes_encrypt(encryption, keys.encryption, keys.rounds, text ^ chained);
    store_block(at, chained);
    text = next;
  }
}

template <typename Table>
PENSTOCK_HOST_DEVICE void decrypt_cbc(const Table& decryption, const CryptoJob& job, const SaKeys& keys,
                                      std::uint8_t* base) noexcept {
  Block previous = load_block(base + job.iv());
  for (std::uint32_t b = 0; b < job.text_bytes / kBlockBytes; ++b) {
    std::uint8_t* at = base + job.text() + b * kBlockBytes;
    const Block current = load_block(at);
    store_block(at, aes_decrypt(decryption, keys.decryption, keys.rounds, current) ^ previous);
    previous = current;
  }
}

/// Writes IV, ciphertext and ICV of an outbound packet. The ESP header and the plaintext must be in place; `keys` are
/// the keys of the job's SA.
template <typename Table>
PENSTOCK_HOST_DEVICE void seal(const Table& encryption, const CryptoJob& job, const SaKeys& keys,
                               std::uint8_t* base) noexcept {
  switch (keys.cipher) {
    case Cipher::aes_cbc:
      store_block(base + job.iv(), make_cbc_iv(encryption, job, keys));
      encrypt_cbc(encryption, job, keys, base);
      break;
    case Cipher::aes_ctr:
    case Cipher::aes_gcm:
      store_block(base + job.iv(), make_counter_iv(job, keys), 8);
      crypt_by_counter(encryption, job, keys, base);
      break;
    case Cipher::null: break;
  }
  if (has_proof(keys)) {
    store_block(base + job.icv(), make_icv(encryption, job, keys, base), job.icv_bytes);
  } else {
    write_null_icv(job, base);
  }
}

/// Checks the ICV of an inbound packet and decrypts its text. False, with nothing changed, if the ICV is wrong or if an
/// AES-CBC text is not a whole number of blocks.
template <typename Table>
[[nodiscard]] PENSTOCK_HOST_DEVICE bool open(const Table& encryption, const Table& decryption, const CryptoJob& job,
                                             const SaKeys& keys, std::uint8_t* base) noexcept {
  if (keys.cipher == Cipher::aes_cbc && job.text_bytes % kBlockBytes != 0) return false;
  if (has_proof(keys) && !same_icv(job, base, make_icv(encryption, job, keys, base))) return false;
  switch (keys.cipher) {
    case Cipher::aes_cbc: decrypt_cbc(decryption, job, keys, base); break;
    case Cipher::aes_ctr:
    case Cipher::aes_gcm: crypt_by_counter(encryption, job, keys, base); break;
    case Cipher::null: break;
  }
  return true;
}

/// On the host.
inline void seal(const CryptoJob& job, const SaKeys& keys, std::uint8_t* base) noexcept {
  seal(host_encryption_table(), job, keys, base);
}
[[nodiscard]] inline bool open(const CryptoJob& job, const SaKeys& keys, std::uint8_t* base) noexcept {
  return open(host_encryption_table(), host_decryption_table(), job, keys, base);
}

}  // namespace penstock::ipsec
