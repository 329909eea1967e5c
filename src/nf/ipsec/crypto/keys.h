// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The expanded keys of an SA: everything needed to protect a packet, on host and device. Trivially copyable, so that
// arrays of them can be copied to a device; the owner of such an array must wipe it (`wipe`).

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "nf/ipsec/crypto/aes_core.h"
#include "nf/ipsec/crypto/algorithms.h"
#include "nf/ipsec/crypto/block_core.h"
#include "nf/ipsec/crypto/secret.h"
#include "nf/ipsec/crypto/sha1_core.h"
#include "nf/ipsec/crypto/sha256_core.h"

namespace penstock::ipsec {

/// The longest ICV that `digest_null` may have.
inline constexpr std::uint16_t kMostIcvBytes = 64;

/// Threads of a device that hash one packet together. As many powers of the hash key are precomputed.
inline constexpr std::uint32_t kGhashLanes = 8;

/// An SA's configured keys and algorithms.
struct KeyMaterial {
  Cipher cipher = Cipher::null;
  Secret cipher_key;  // 16, 24 or 32 bytes, without the salt; none for `null`
  std::array<std::uint8_t, 4>
      salt{};  // RFC 3686's nonce or RFC 4106's salt: the last four bytes of the keying material
  Integrity integrity = Integrity::none;
  Secret integrity_key;         // for HMAC, any length; the RFCs use the length of the digest
  std::uint16_t icv_bytes = 0;  // for `digest_null`, at most kMostIcvBytes; for AES-GCM 8, 12 or 16
  bool esn = false;             // extended sequence numbers (RFC 4303 §2.2.1)
  std::uint64_t iv_base = 0;    // IVs are iv_base + sequence number (NumberSource)
};

struct alignas(16) SaKeys {
  Block encryption[kMostAesRounds + 1] = {};  // AES round keys
  Block decryption[kMostAesRounds + 1] = {};  // for decrypting AES-CBC
  Block ghash[kGhashLanes] = {};  // AES-GCM: powers 1, 2, … of the hash key, in the form for `ghash_times`
  Sha1::State sha1[2];            // HMAC: states after the inner and the outer padded key
  Sha256::State sha256[2];
  std::uint64_t iv_base = 0;
  std::uint32_t salt = 0;  // in the byte order of a counter block
  Cipher cipher = Cipher::null;
  Integrity integrity = Integrity::none;
  std::uint8_t rounds = 0;  // AES: 10, 12 or 14
  bool esn = false;
  std::uint16_t iv_bytes = 0;  // as in the SA's jobs
  std::uint16_t icv_bytes = 0;
  std::uint8_t reserved[4] = {};  // no padding, since arrays of it may go to another process
};
static_assert(std::has_unique_object_representations_v<SaKeys>);

/// Whether all lengths are valid for the algorithms; otherwise there can be no SA. AES-GCM requires Integrity::none.
[[nodiscard]] bool fits(const KeyMaterial& material) noexcept;

/// The states after key ^ ipad and key ^ opad (RFC 2104 §2), for a key no longer than a block.
template <typename Hash>
void hmac_states(std::span<const std::uint8_t> key, typename Hash::State (&states)[2]) noexcept;

/// Requires material that `fits`. Copies of keys on the stack are wiped.
void expand(const KeyMaterial& material, SaKeys& keys) noexcept;

}  // namespace penstock::ipsec
