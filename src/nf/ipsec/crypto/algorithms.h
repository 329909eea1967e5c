// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The supported ESP algorithms, and the lengths that follow from them.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock::ipsec {

enum class Cipher : std::uint8_t {
  null,     // RFC 2410
  aes_cbc,  // RFC 3602
  aes_ctr,  // RFC 3686
  aes_gcm,  // RFC 4106: its tag is the ICV, so it is combined with Integrity::none
};

enum class Integrity : std::uint8_t {
  none,             // no ICV except the cipher's own
  digest_null,      // an ICV of any length without meaning: written as zeros, ignored when received
  hmac_sha1_96,     // RFC 2404
  hmac_sha256_128,  // RFC 4868
  hmac_sha256_96,   // Linux's default truncation of hmac(sha256), from a draft that preceded RFC 4868
};

/// Length of a packet's IV in bytes; it follows the 8-byte ESP header.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t iv_bytes(Cipher cipher) noexcept {
  switch (cipher) {
    case Cipher::aes_cbc: return 16;
    case Cipher::aes_ctr:
    case Cipher::aes_gcm: return 8;
    case Cipher::null: break;
  }
  return 0;
}

/// The encrypted text, including padding and trailer, is a multiple of this many bytes (RFC 4303 §2.4).
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t text_unit(Cipher cipher) noexcept {
  return cipher == Cipher::aes_cbc ? 16 : 4;
}

/// Length of the ICV in bytes; 0 if the SA sets it: `digest_null` and the tag of AES-GCM.
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
