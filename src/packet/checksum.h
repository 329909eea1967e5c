// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/byte_order.h"
#include "base/host_device.h"
#include "packet/layout.h"

namespace penstock {

/// Adds `length` bytes to a running sum, as 16-bit big-endian words; an odd last byte is padded with zero. Sums of
/// parts can be added if all parts but the last have an even length. `length` must be below 64 KiB.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t checksum_add(const std::uint8_t* bytes, std::uint32_t length,
                                                                     std::uint32_t sum = 0) noexcept {
  std::uint32_t i = 0;
#ifndef __CUDA_ARCH__
  // Eight bytes at a time, in the host's byte order: the sum of swapped words is the swapped sum (RFC 1071 §2).
  if constexpr (std::endian::native == std::endian::little) {
    std::uint64_t swapped = 0;
    for (; i + 8 <= length; i += 8) {
      std::uint32_t words[2];
      std::memcpy(words, bytes + i, sizeof words);
      swapped += std::uint64_t{words[0]} + words[1];
    }
    for (int fold = 0; fold < 3; ++fold) swapped = (swapped & 0xffff) + (swapped >> 16);
    swapped = (swapped & 0xffff) + (swapped >> 16);
    sum += static_cast<std::uint32_t>((swapped & 0xff) << 8 | swapped >> 8);
  }
#endif
  for (; i + 1 < length; i += 2) sum += static_cast<std::uint32_t>(bytes[i]) << 8 | bytes[i + 1];
  if (i < length) sum += static_cast<std::uint32_t>(bytes[i]) << 8;
  return sum;
}

/// Folds the sum to 16 bits and complements it, which gives the value of the checksum field. The result is 0 for a
/// header with a valid checksum.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t checksum_finish(std::uint32_t sum) noexcept {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint16_t checksum(const std::uint8_t* bytes,
                                                                 std::uint32_t length) noexcept {
  return checksum_finish(checksum_add(bytes, length));
}

/// Partial checksum over the pseudo header (RFC 768, RFC 9293 §3.1, RFC 8200 §8.1), to be continued over the `bytes` of
/// the transport header and payload. `ip` is the IP header.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t pseudo_header_sum(const std::uint8_t* ip, NetworkLayer family,
                                                                          std::uint8_t protocol,
                                                                          std::uint32_t bytes) noexcept {
  const std::uint32_t sum = protocol + (bytes >> 16) + (bytes & 0xffff);
  return family == NetworkLayer::ipv4 ? checksum_add(ip + 12, 8, sum) : checksum_add(ip + 8, 32, sum);
}

/// Updates the checksum for a 16-bit word that changed from `before` to `after`: RFC 1624 eq. 3, HC' = ~(~HC + ~m +
/// m'). Also correct where eq. 4 of RFC 1141 gives -0 instead of +0.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t checksum_update(std::uint16_t checksum, std::uint16_t before,
                                                                           std::uint16_t after) noexcept {
  const std::uint32_t sum =
      static_cast<std::uint32_t>(static_cast<std::uint16_t>(~checksum)) + static_cast<std::uint16_t>(~before) + after;
  return checksum_finish(sum);
}

}  // namespace penstock
