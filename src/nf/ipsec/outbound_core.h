// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is said of an outgoing packet beside what the policies say, for host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/encapsulate_core.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Whether policies can be asked about it: `none`; `not_ip` where they are not about it, and it passes; else why it can
/// not go on.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Reason standing_of(const PacketLayout& layout) noexcept {
  if (!layout.is_ip()) return Reason::not_ip;
  if (layout.has(PacketLayout::kNetworkHeader)) return Reason::none;
  return layout.has(PacketLayout::kTruncated) ? Reason::truncated : Reason::malformed;
}

/// Links and what to do for them.
struct MtuView {
  std::uint32_t mtu = 0;  // 0: none
  bool cuts = true;       // what is too long and may be cut is cut
};

/// Whether it is too long for the link once it is protected, and not to be cut behind ESP. IPv4 may be cut where DF is
/// not set, and IPv6 by who sends it: that is us in a tunnel.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool exceeds_mtu(PacketView packet, const SaView& sa,
                                                           const Encapsulation& plan, MtuView link) noexcept {
  if (link.mtu == 0 || plan.ip_bytes <= link.mtu) return false;
  if (!link.cuts) return true;
  if (sa.outer == NetworkLayer::ipv6) return !sa.tunnel;
  if (sa.no_pmtu_discovery && sa.tunnel) return false;
  if (packet.layout().network == NetworkLayer::ipv6) return true;
  return (packet.ipv4().fragment.value() & Ipv4Header::kDontFragment) != 0;
}

}  // namespace penstock::ipsec
