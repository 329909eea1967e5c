// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is said of an outgoing packet beside what the policies say, for host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/esp/encapsulate_core.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Whether policies can be asked about it: `none`; `not_ip` where they are not about it, and it passes; else why it can
/// not go on.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Reason standing_of(const PacketLayout& layout) noexcept {
  if (!layout.is_ip()) return Reason::not_ip;
  // What it carries would be anybody's guess.
  if (layout.has(PacketLayout::kMalformed)) return Reason::malformed;
  if (layout.has(PacketLayout::kNetworkHeader)) return Reason::none;
  return layout.has(PacketLayout::kTruncated) ? Reason::truncated : Reason::malformed;
}

/// Where only what a policy names may go: of what is not IP, the link's own.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool drops_not_ip(const PacketLayout& layout,
                                                               bool drops_unselected) noexcept {
  return drops_unselected && layout.network != NetworkLayer::arp;
}

/// Links and what to do for them.
struct MtuView {
  std::uint32_t mtu = 0;  // 0: none
  bool cuts = true;       // what is too long and may be cut is cut
};

/// Whether it is too long for the link once it is protected, and not to be cut behind ESP. By the packet itself,
/// whichever IP is outside (RFC 2473 §7, RFC 4301 §8.2): not where DF is set, unless the SA has it clear outside, and
/// not IPv6; but in a tunnel IPv6 that its sender could not make shorter, which is always cut.
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
