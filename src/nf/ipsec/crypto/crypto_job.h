// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One packet's cryptographic work, described by numbers. Encapsulation and decapsulation pass it to the ciphers, on
// host and device.

#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.h"

namespace penstock::ipsec {

/// The `sa` of a job without work.
inline constexpr std::uint32_t kNoSa = ~std::uint32_t{0};

inline constexpr std::uint32_t kEspHeaderBytes = 8;  // SPI and sequence number (RFC 4303 §2)

/// Where the fields of an ESP packet are: contiguous, at any alignment.
///
///     base + esp
///     | SPI, sequence number | IV       | payload, padding, pad length, next header | ICV       |
///     | 8                    | iv_bytes | text_bytes                                | icv_bytes |
///
/// The ESP header is present in both directions. The lengths match those in the SA's keys (SaKeys); they are repeated
/// here so that the layout is known without the keys. All of it must be within the packet's room.
struct CryptoJob {
  std::uint64_t sequence = 0;    // all 64 bits, even without ESN; with ESN the upper half is part of the ICV's input
  std::uint32_t sa = kNoSa;      // index of its SaKeys
  std::uint32_t esp = 0;         // offset of the ESP header from the batch's base address
  std::uint32_t text_bytes = 0;  // length of the encrypted part; a multiple of 16 for AES-CBC
  std::uint16_t iv_bytes = 0;    // 0, 8 or 16
  std::uint16_t icv_bytes = 0;   // at most 16, except for digest_null

  /// Offsets from the base.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t iv() const noexcept { return esp + kEspHeaderBytes; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t text() const noexcept { return iv() + iv_bytes; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t icv() const noexcept { return text() + text_bytes; }
  /// Bytes from the ESP header to the ICV.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t authenticated_bytes() const noexcept {
    return icv() - esp;
  }
};
static_assert(sizeof(CryptoJob) == 24 && std::is_trivially_copyable_v<CryptoJob>);

}  // namespace penstock::ipsec
