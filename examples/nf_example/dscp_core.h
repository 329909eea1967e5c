// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes one packet; written once, compiled for host and device. Packets that are not IP, or lack a complete IP
// header, are not changed.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/checksum.h"
#include "packet/packet.h"

namespace dscp {

/// The DS field is the upper six bits of IPv4's TOS and IPv6's traffic class (RFC 2474 §3); the lower two are ECN (RFC
/// 3168 §5).
struct DscpCore {
  std::uint8_t value;  // 0..63

  PENSTOCK_HOST_DEVICE penstock::Verdict operator()(penstock::PacketView packet) const noexcept {
    const penstock::PacketLayout& layout = packet.layout();
    if (layout.has(penstock::PacketLayout::kNetworkHeader)) {
      if (layout.network == penstock::NetworkLayer::ipv4) set(packet.ipv4());
      if (layout.network == penstock::NetworkLayer::ipv6) set(packet.ipv6());
    }
    // Keeps the verdict: an earlier function may have chosen the port.
    return packet.packet->verdict;
  }

 private:
  PENSTOCK_HOST_DEVICE void set(penstock::Ipv4Header& ip) const noexcept {
    const auto tos = static_cast<std::uint8_t>(value << 2 | (ip.tos & 3U));
    if (tos == ip.tos) return;
    // The 16-bit word of the header that changes: version, header length and TOS.
    const auto before = static_cast<std::uint16_t>(ip.version_ihl << 8 | ip.tos);
    const auto after = static_cast<std::uint16_t>(ip.version_ihl << 8 | tos);
    ip.tos = tos;
    ip.checksum.set(penstock::checksum_update(ip.checksum.value(), before, after));
  }
  PENSTOCK_HOST_DEVICE void set(penstock::Ipv6Header& ip) const noexcept {
    constexpr std::uint32_t kDscpBits = 0x0fc00000;
    const auto bits = static_cast<std::uint32_t>(value) << 22;
    ip.version_class_label.set((ip.version_class_label.value() & ~kDscpBits) | bits);
  }
};

}  // namespace dscp
