// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One packet of a batch: its descriptor (metadata, one cache line), and the view of it that functions get.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/layout.h"
#include "packet/link_type.h"
#include "packet/transport.h"
#include "packet/verdict.h"

namespace penstock {

/// The metadata of a frame: everything except its bytes. Owned by the batch.
struct alignas(64) PacketDescriptor {
  std::uint64_t timestamp_ns = 0;  // since the epoch, as captured
  std::uint32_t offset = 0;        // of the frame in its memory: `region`
  std::uint32_t length = 0;        // captured bytes of the frame
  std::uint32_t wire_length = 0;   // bytes on the wire: more than `length` if the capture truncated the frame
  std::uint32_t flow_hash = 0;     // symmetric; the same for all fragments of a packet
  std::uint32_t mark = 0;          // for communication between functions (like the mark of nftables and iptables)
  std::uint32_t sequence = 0;      // position in the worker's input, modulo 2^32
  Verdict verdict;
  PacketLayout layout;
  PortIndex in_port = 0;
  LinkType link_type = LinkType::ethernet;
  std::uint8_t region = 0;   // of the packet memory (packet/packet_memory.h); 0: the memory of the batch
  std::uint32_t number = 0;  // position of the frame in its port's captures, from 1, modulo 2^32; 0: not from a capture
};
static_assert(sizeof(PacketDescriptor) == 64);

/// Borrows a frame and its descriptor; passed by value on host and device. A typed accessor may only be used if the
/// layout's flags say that its header is present.
struct PacketView {
  std::uint8_t* frame;
  PacketDescriptor* packet;

  [[nodiscard]] PENSTOCK_HOST_DEVICE const PacketLayout& layout() const noexcept { return packet->layout; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t length() const noexcept { return packet->length; }

  template <typename Header>
  [[nodiscard]] PENSTOCK_HOST_DEVICE Header& at(std::uint32_t offset) const noexcept {
    static_assert(alignof(Header) == 1);
    return *reinterpret_cast<Header*>(frame + offset);
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE EthernetHeader& ethernet() const noexcept { return at<EthernetHeader>(0); }
  [[nodiscard]] PENSTOCK_HOST_DEVICE Ipv4Header& ipv4() const noexcept {
    return at<Ipv4Header>(layout().network_offset);
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE Ipv6Header& ipv6() const noexcept {
    return at<Ipv6Header>(layout().network_offset);
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE TcpHeader& tcp() const noexcept {
    return at<TcpHeader>(layout().transport_offset);
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE UdpHeader& udp() const noexcept {
    return at<UdpHeader>(layout().transport_offset);
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE IcmpHeader& icmp() const noexcept {
    return at<IcmpHeader>(layout().transport_offset);
  }
  /// Whether the transport header is complete and begins with two ports. `udp()` then reads them for all protocols with
  /// ports.
  [[nodiscard]] PENSTOCK_HOST_DEVICE bool has_ports() const noexcept {
    return layout().has(PacketLayout::kTransportHeader) && begins_with_ports(layout().transport);
  }
};

}  // namespace penstock
