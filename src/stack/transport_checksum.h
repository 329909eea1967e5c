// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Verifies TCP, UDP and ICMP checksums of decoded packets.

#pragma once

#include <cstddef>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "stack/decoded_packet.h"

namespace penstock::stack {

/// Covers the first `length` bytes of the IP payload and the pseudo-header of RFC 9293 §3.1 or RFC 8200 §8.1. ICMP over
/// IPv4 has no pseudo-header.
[[nodiscard]] inline bool transport_checksum_is_right(const DecodedPacket& packet, std::size_t length) noexcept {
  std::uint32_t sum = checksum_add(packet.ip_payload.data(), static_cast<std::uint32_t>(length));
  if (packet.protocol != ip_protocol::kIcmp) {
    for (const Endpoint* const endpoint : {&packet.source, &packet.destination}) {
      for (const std::uint64_t word : {endpoint->address.high, endpoint->address.low}) {
        for (unsigned shift = 0; shift < 64; shift += 16) sum += static_cast<std::uint16_t>(word >> shift);
      }
    }
    sum += packet.protocol + static_cast<std::uint32_t>(length);
  }
  return checksum_finish(sum) == 0;
}

}  // namespace penstock::stack
