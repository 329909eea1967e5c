// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether rules about headers apply to a packet. For host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/packet.h"

namespace penstock::classify {

/// Whether rules apply to a packet. If a header that rules test is missing, the packet is dropped; otherwise it could
/// evade them.
enum class Standing : std::uint8_t {
  judged,     // rules apply
  not_ip,     // passes; but not if an IP packet may be behind a link header that is cut off or has too many tags
  malformed,  // dropped, like `truncated`
  truncated,
  elsewhere,  // passes: other rules apply, as the user of these rules knows
};

/// Whether the packet, if it were complete, would have a transport header that rules can test, or might have one behind
/// an extension header that is cut off.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool lacks_header(const PacketLayout& layout) noexcept {
  const bool ipv4 = layout.network == NetworkLayer::ipv4;
  switch (layout.transport) {
    case ip_protocol::kTcp:
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite:
    case ip_protocol::kSctp: return true;
    case ip_protocol::kIcmp: return ipv4;
    case ip_protocol::kIcmpv6:
    // Extension headers: parsing only stops at one if it is cut off.
    case ip_protocol::kHopByHop:
    case ip_protocol::kRouting:
    case ip_protocol::kFragment:
    case ip_protocol::kAh:
    case ip_protocol::kDestinationOptions: return !ipv4;
    default: return false;
  }
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Standing standing_of(const PacketLayout& layout) noexcept {
  constexpr unsigned kWhole = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
  if (!layout.is_ip()) {
    if (layout.network == NetworkLayer::arp) return Standing::not_ip;
    if (layout.has(PacketLayout::kMalformed)) return Standing::malformed;
    return layout.has(PacketLayout::kTruncated) ? Standing::truncated : Standing::not_ip;
  }
  if ((layout.flags & kWhole) == kWhole) return Standing::judged;
  if (!layout.has(PacketLayout::kNetworkHeader)) {
    return layout.has(PacketLayout::kTruncated) ? Standing::truncated : Standing::malformed;
  }
  // As in Linux, a rule without ports may still match it.
  if (layout.has(PacketLayout::kLaterFragment)) return Standing::judged;
  if ((layout.flags & (PacketLayout::kMalformed | PacketLayout::kMalformedTransport)) != 0) return Standing::malformed;
  return lacks_header(layout) ? Standing::truncated : Standing::judged;
}

}  // namespace penstock::classify
