// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One packet's protection as numbers: what encapsulation and decapsulation hand to the ciphers, on the host and on a
// device.

#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.h"

namespace penstock::ipsec {

/// The `sa` of a job that there is no work for.
inline constexpr std::uint32_t kNoSa = ~std::uint32_t{0};

inline constexpr std::uint32_t kEspHeaderBytes = 8;  // SPI and sequence number (RFC 4303 §2)

/// Where the parts of an ESP packet lie, one behind the other, at any alignment:
///
///     base + esp
///     | SPI, sequence number | IV       | payload, padding, pad length, next header | ICV       |
///     | 8                    | iv_bytes | text_bytes                                | icv_bytes |
///
/// The ESP header is there, whichever way the packet goes. The lengths are those that the SA's keys say (SaKeys); they
/// stand here too so that the layout is known without the keys. All of it must lie in the packet's room.
struct CryptoJob {
  std::uint64_t sequence = 0;    // all 64 bits, with ESN and without; with ESN the upper half enters the ICV
  std::uint32_t sa = kNoSa;      // index of its SaKeys
  std::uint32_t esp = 0;         // offset of the ESP header from the base that the batch's packets share
  std::uint32_t text_bytes = 0;  // of what is encrypted; a multiple of 16 for AES-CBC
  std::uint16_t iv_bytes = 0;    // 0, 8 or 16
  std::uint16_t icv_bytes = 0;   // 16 at most, but for digest_null

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
