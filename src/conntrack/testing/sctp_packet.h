// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "conntrack/testing/packets.h"

namespace penstock::conntrack {

/// RFC 9260 appendix A, bit by bit.
inline std::uint32_t slow_crc32c(const Packet& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

/// With a correct checksum. `chunks` follow the header.
inline Packet sctp_packet(const Ends& ends, const Packet& chunks, std::uint32_t tag = 0) {
  Packet transport(sizeof(SctpHeader));
  put_be16(transport, 0, ends.source_port);
  put_be16(transport, 2, ends.destination_port);
  put_be32(transport, 4, tag);
  transport.insert(transport.end(), chunks.begin(), chunks.end());
  const std::uint32_t crc = slow_crc32c(transport);
  for (unsigned i = 0; i < 4; ++i) transport[8 + i] = static_cast<std::uint8_t>(crc >> 8 * i);
  return ip_packet(ends, ip_protocol::kSctp, transport);
}

}  // namespace penstock::conntrack
