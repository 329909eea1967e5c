// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of a frame may contain a payload, by the shared stack's layout. TCP and UDP: the payload. Other IP
// packets: everything after the network header (including tunnels and fragments). Frames with contradictory headers, or
// without IP: everything.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/packet.h"

namespace penstock::nids {

/// Offsets in the frame, [begin, end).
struct ScanRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool is_payload = false;  // the payload of an unfragmented TCP or UDP packet
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
