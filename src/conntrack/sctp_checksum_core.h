// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Updates the CRC32c of an SCTP packet (RFC 9260 appendix A) for other ports, without reading the packet: a CRC is
// linear, so what changes depends on the changed bits and their distance from the end.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock::conntrack {

/// The product of two polynomials modulo CRC32c's. The highest bit is the coefficient of x^0.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t multiply_crc32c(std::uint32_t a, std::uint32_t b) noexcept {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? b >> 1 ^ kPolynomial : b >> 1;
  }
  return product;
}

/// What to XOR with the CRC32c of `length` bytes when `changed` is XORed with the first four of them. Both are
/// little-endian values, as SCTP sends its CRC.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t crc32c_change(std::uint32_t changed,
                                                                         std::uint32_t length) noexcept {
  constexpr std::uint32_t kToTheEighth = 0x80000000 >> 8;
  for (std::uint32_t power = kToTheEighth; length != 0; length >>= 1) {
    if ((length & 1) != 0) changed = multiply_crc32c(changed, power);
    power = multiply_crc32c(power, power);
  }
  return changed;
}

}  // namespace penstock::conntrack
