// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What every send queue of an interface checks of a packet.

#pragma once

#include <cstddef>

#include "packet/ethernet.h"
#include "packet/packet.h"

namespace penstock::port {

/// Whether the packet is a whole Ethernet frame that a link of this MTU carries. The MTU does not count the header and
/// a VLAN tag.
[[nodiscard]] inline bool fits_link(const PacketView& view, std::size_t mtu) noexcept {
  const std::size_t length = view.length();
  if (view.packet->link_type != LinkType::ethernet || length < sizeof(EthernetHeader)) return false;
  const bool tagged = view.ethernet().type.value() == ether_type::kVlan;
  return length <= mtu + sizeof(EthernetHeader) + (tagged ? sizeof(VlanTag) : 0);
}

}  // namespace penstock::port
