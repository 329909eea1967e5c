// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of a frame a payload can lie in, by the shared stack's layout: those of TCP and UDP; of other IP packets
// all behind the network header (what is in tunnels and fragments too); of a frame whose headers contradict each other,
// or that is no IP, all.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/packet.h"

namespace penstock::nids {

/// Offsets in the frame.
struct ScanRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool is_payload = false;  // of TCP or UDP, and of no fragment
};

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr ScanRange scan_range(const PacketLayout& layout,
                                                                  std::uint32_t length) noexcept {
  if (!layout.is_ip() || !layout.has(PacketLayout::kNetworkHeader) || layout.has(PacketLayout::kMalformed)) {
    return {0, length, false};
  }
  const bool known = layout.has(PacketLayout::kTransportHeader) && !layout.has(PacketLayout::kFragment) &&
                     (layout.transport == ip_protocol::kTcp || layout.transport == ip_protocol::kUdp);
  return {known ? layout.payload_offset : layout.transport_offset, layout.end, known};
}

}  // namespace penstock::nids
