// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The algorithms of ESP that there are here, and the lengths that follow from them.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock::ipsec {

enum class Cipher : std::uint8_t {
  null,     // RFC 2410
  aes_cbc,  // RFC 3602
  aes_ctr,  // RFC 3686
  aes_gcm,  // RFC 4106: its tag is the ICV, so it stands with Integrity::none
};

enum class Integrity : std::uint8_t {
  none,             // no ICV but a cipher's own
  digest_null,      // an ICV of any length that says nothing: zeros on the way out, not looked at on the way in
  hmac_sha1_96,     // RFC 2404
  hmac_sha256_128,  // RFC 4868
  hmac_sha256_96,   // what Linux cuts hmac(sha256) to unless told otherwise: the length of a draft before RFC 4868
};

/// Bytes of the IV in a packet, behind the eight of the ESP header.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t iv_bytes(Cipher cipher) noexcept {
  switch (cipher) {
    case Cipher::aes_cbc: return 16;
    case Cipher::aes_ctr:
    case Cipher::aes_gcm: return 8;
    case Cipher::null: break;
  }
  return 0;
}

/// What the length of the encrypted text, padding and trailer included, is a multiple of (RFC 4303 §2.4).
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t text_unit(Cipher cipher) noexcept {
  return cipher == Cipher::aes_cbc ? 16 : 4;
}

/// Bytes of the ICV; 0 where the SA says them: `digest_null` and the tag of AES-GCM.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t icv_bytes(Integrity integrity) noexcept {
  switch (integrity) {
    case Integrity::hmac_sha1_96:
    case Integrity::hmac_sha256_96: return 12;
    case Integrity::hmac_sha256_128: return 16;
    case Integrity::none:
    case Integrity::digest_null: break;
  }
  return 0;
}

}  // namespace penstock::ipsec
