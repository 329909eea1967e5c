// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The keys of an SA, expanded once: all that protecting a packet needs of them, on the host and on a device. Trivially
// copyable, so that an array of them goes to a device as it is; whoever owns such an array wipes it (`wipe`).

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

/// Of an ICV that is not the algorithm's own to choose: that of `digest_null`.
inline constexpr std::uint16_t kMostIcvBytes = 64;

/// Threads of a device that hash a packet together need as many powers of the hash key.
inline constexpr std::uint32_t kGhashLanes = 8;

/// What is said of an SA.
struct KeyMaterial {
  Cipher cipher = Cipher::null;
  Secret cipher_key;  // 16, 24 or 32 bytes, without the salt; none for `null`
  std::array<std::uint8_t, 4>
      salt{};  // the nonce of RFC 3686, the salt of RFC 4106: the last four bytes of their keying material
  Integrity integrity = Integrity::none;
  Secret integrity_key;         // of HMAC, any length; as the RFCs have it, that of the digest
  std::uint16_t icv_bytes = 0;  // of `digest_null`, at most kMostIcvBytes, and of AES-GCM: 8, 12 or 16
  bool esn = false;             // extended sequence numbers (RFC 4303 §2.2.1)
  std::uint64_t iv_base = 0;    // IVs are iv_base + sequence number (NumberSource)
};

struct alignas(16) SaKeys {
  Block encryption[kMostAesRounds + 1] = {};  // AES round keys
  Block decryption[kMostAesRounds + 1] = {};  // those of AES-CBC inwards
  Block ghash[kGhashLanes] = {};              // AES-GCM: powers 1, 2, … of the hash key, as `ghash_times` takes them
  Sha1::State sha1[2];                        // of HMAC: behind the inner padded key, and the outer
  Sha256::State sha256[2];
  std::uint64_t iv_base = 0;
  std::uint32_t salt = 0;  // as it lies in a counter block
  Cipher cipher = Cipher::null;
  Integrity integrity = Integrity::none;
  std::uint8_t rounds = 0;  // of AES: 10, 12 or 14
  bool esn = false;
  std::uint16_t iv_bytes = 0;  // as those of the SA's jobs
  std::uint16_t icv_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<SaKeys>);

/// Whether the lengths are those that the algorithms have; without, there is no SA. AES-GCM stands with
/// Integrity::none.
[[nodiscard]] bool fits(const KeyMaterial& material) noexcept;

/// The states after key ^ ipad and key ^ opad (RFC 2104 §2), of a key that is no longer than a block.
template <typename Hash>
void hmac_states(std::span<const std::uint8_t> key, typename Hash::State (&states)[2]) noexcept;

/// Of material that fits. Whatever of the keys was on the stack is wiped.
void expand(const KeyMaterial& material, SaKeys& keys) noexcept;

}  // namespace penstock::ipsec
