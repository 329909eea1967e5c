// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Transport headers in their wire format, and the headers of the tunnels that Penstock recognises.

#pragma once

#include <cstdint>

#include "base/byte_order.h"
#include "base/host_device.h"

namespace penstock {

/// RFC 9293 §3.1
struct TcpHeader {
  Be16 source_port, destination_port;
  Be32 sequence, acknowledgment;
  std::uint8_t data_offset;  // high 4 bits: header length in 4-byte words
  std::uint8_t flags;
  Be16 window, checksum, urgent;

  static constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32, kEce = 64, kCwr = 128;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr unsigned header_length() const noexcept {
    return (data_offset >> 4) * 4U;
  }
};
static_assert(sizeof(TcpHeader) == 20);

/// RFC 768
struct UdpHeader {
  Be16 source_port, destination_port, length, checksum;
};
static_assert(sizeof(UdpHeader) == 8);

/// RFC 9260 §3.1; chunks follow.
struct SctpHeader {
  Be16 source_port, destination_port;
  Be32 verification_tag, checksum;
};
static_assert(sizeof(SctpHeader) == 12);

/// RFC 792 and RFC 4443, which begin alike.
struct IcmpHeader {
  std::uint8_t type, code;
  Be16 checksum;
  Be32 rest;
};
static_assert(sizeof(IcmpHeader) == 8);

/// RFC 4303 §2
struct EspHeader {
  Be32 spi, sequence;
};
static_assert(sizeof(EspHeader) == 8);

/// RFC 2784, RFC 2890: optional checksum, key and sequence follow, by the flags.
struct GreHeader {
  Be16 flags_version;
  Be16 protocol;  // an EtherType

  static constexpr std::uint16_t kChecksum = 0x8000, kRouting = 0x4000, kKey = 0x2000, kSequence = 0x1000,
                                 kVersionMask = 7;
};
static_assert(sizeof(GreHeader) == 4);

/// RFC 7348 §5; follows a UDP header with port 4789, and is followed by an Ethernet frame.
struct VxlanHeader {
  std::uint8_t flags;
  std::uint8_t reserved[3];
  Be32 vni;  // high 24 bits

  static constexpr std::uint8_t kVniPresent = 8;
  static constexpr std::uint16_t kPort = 4789;
};
static_assert(sizeof(VxlanHeader) == 8);

}  // namespace penstock
