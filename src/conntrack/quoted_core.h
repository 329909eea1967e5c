// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Skips the extension headers of a quoted IPv6 packet, which may end anywhere, for host and device.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "packet/ip.h"

namespace penstock::conntrack {

/// Where the transport header of the IPv6 packet begins whose first `size` bytes, at least an IPv6 header, are quoted;
/// it may lie beyond them. `protocol` is the header's next one, and then that of the transport header. 0 if that is
/// unknown, or if the packet is not a first fragment.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::size_t find_quoted_transport(const std::uint8_t* packet,
                                                                            std::size_t size,
                                                                            std::uint8_t& protocol) noexcept {
  constexpr std::size_t kMostExtensionHeaders = 16, kUpToOffset = 4;  // of a fragment header
  std::size_t at = sizeof(Ipv6Header);
  for (std::size_t headers = 0; headers <= kMostExtensionHeaders; ++headers) {
    const bool fragment = protocol == ip_protocol::kFragment;
    const bool authentication = protocol == ip_protocol::kAh;
    if (protocol == ip_protocol::kNone) return 0;
    if (!fragment && !authentication && protocol != ip_protocol::kHopByHop && protocol != ip_protocol::kRouting &&
        protocol != ip_protocol::kDestinationOptions) {
      return at;
    }
    if (size < at + (fragment ? kUpToOffset : sizeof(Ipv6Extension))) return 0;
    if (fragment && ((packet[at + 2] << 8 | packet[at + 3]) & Ipv6FragmentHeader::kOffsetMask) != 0) return 0;
    protocol = packet[at];
    const std::size_t length = packet[at + 1];
    at += fragment ? sizeof(Ipv6FragmentHeader) : authentication ? (length + 2) * 4 : (length + 1) * 8;
  }
  return 0;
}

}  // namespace penstock::conntrack
