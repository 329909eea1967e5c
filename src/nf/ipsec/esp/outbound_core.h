// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of an outbound packet other than its policies, for host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/esp/encapsulate_core.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Whether policies apply to the packet: `none` if they do; `not_ip` if they do not, in which case it normally passes;
/// otherwise the reason to drop it.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Reason standing_of(const PacketLayout& layout) noexcept {
  if (!layout.is_ip()) return Reason::not_ip;
  // The selector fields could not be trusted.
  if (layout.has(PacketLayout::kMalformed)) return Reason::malformed;
  if (layout.has(PacketLayout::kNetworkHeader)) return Reason::none;
  return layout.has(PacketLayout::kTruncated) ? Reason::truncated : Reason::malformed;
}

/// Whether a non-IP packet is dropped if only packets that a policy selects may pass: all but ARP, which the link
/// itself needs.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool drops_not_ip(const PacketLayout& layout,
                                                               bool drops_unselected) noexcept {
  return drops_unselected && layout.network != NetworkLayer::arp;
}

/// The MTU of the outgoing link, and how to handle packets that exceed it.
struct MtuView {
  std::uint32_t mtu = 0;  // 0: none
  bool cuts = true;       // fragment packets that are too long, where allowed
};

/// Whether the protected packet exceeds the link's MTU and must not be fragmented after ESP processing. The original
/// packet decides, whatever the outer IP version (RFC 2473 §7, RFC 4301 §8.1, §8.2): IPv4 with DF is not fragmented,
/// unless a tunnel SA clears the outer DF bit. IPv6 is not fragmented either, except in a tunnel, where packets of up
/// to kLeastIpv6Mtu bytes always are.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool exceeds_mtu(PacketView packet, const SaView& sa,
                                                           const Encapsulation& plan, MtuView link) noexcept {
  if (link.mtu == 0 || plan.ip_bytes <= link.mtu) return false;
  const PacketLayout& layout = packet.layout();
  if (layout.network == NetworkLayer::ipv6) {
    return !sa.tunnel || layout.ip_bytes() > kLeastIpv6Mtu;
  }
  if (!link.cuts) return true;
  if (sa.tunnel && sa.no_pmtu_discovery) return false;
  return (packet.ipv4().fragment.value() & Ipv4Header::kDontFragment) != 0;
}

}  // namespace penstock::ipsec
