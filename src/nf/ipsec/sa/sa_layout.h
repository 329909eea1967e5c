// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What packet processing needs of an SA besides its keys, in one layout for host and device: outer header fields and
// the lengths of ESP's fields. The same for both directions. Arrays of it are copied to devices as they are.

#pragma once

#include <cstdint>
#include <type_traits>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "packet/batch.h"
#include "packet/ip.h"
#include "packet/layout.h"
#include "packet/transport.h"

namespace penstock::ipsec {

struct SecurityAssociation;

template <typename Header>
inline constexpr std::uint32_t kBytesOf = sizeof(Header);

struct SaView {
  Ipv6Address source;  // IPv4: in the low 32 bits
  Ipv6Address destination;
  std::uint32_t spi = 0;
  std::uint32_t reqid = 0;
  std::uint32_t tfc_bytes = 0;        // tunnel mode: the inner packet is padded to this length (RFC 4303 §2.7)
  std::uint16_t udp_source_port = 0;  // RFC 3948
  std::uint16_t udp_destination_port = 0;
  std::uint8_t iv_bytes = 0;     // after the ESP header: 0, 8 or 16
  std::uint8_t block_bytes = 4;  // the text is a multiple of it: cipher block size, at least 4, a power of 2
  std::uint8_t icv_bytes = 0;
  NetworkLayer outer = NetworkLayer::ipv4;  // ipv4 or ipv6; in transport mode the packet's own
  bool tunnel = true;                       // else transport mode
  bool udp = false;
  bool esn = false;
  bool no_ecn = false;             // the outer ECN field is 0, and is ignored inbound
  bool decap_dscp = false;         // inbound, the outer DSCP replaces the inner one
  bool dont_encap_dscp = false;    // outbound, the outer DSCP is 0
  bool no_pmtu_discovery = false;  // the outer DF bit stays clear
  std::uint8_t reserved[5] = {};   // no padding, since arrays of it may go to another process

  /// From the end of the outer IP header to the text: UDP header, ESP header, IV.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t esp_head_bytes() const noexcept {
    return (udp ? kBytesOf<UdpHeader> : 0U) + kBytesOf<EspHeader> + iv_bytes;
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t outer_header_bytes() const noexcept {
    return outer == NetworkLayer::ipv4 ? kBytesOf<Ipv4Header> : kBytesOf<Ipv6Header>;
  }
  /// Bytes added at the head of a frame.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t head_bytes() const noexcept {
    return esp_head_bytes() + (tunnel ? outer_header_bytes() : 0);
  }
};
static_assert(std::has_unique_object_representations_v<SaView>);

/// Pad length and next header, the last two bytes of the text.
inline constexpr std::uint32_t kEspTrailerBytes = 2;

/// Length, IP header included, of the longest packet that does not exceed `mtu` once it is protected; 0 if there is
/// none. Assumes an outer header (in transport mode, the packet's own) without options.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t inner_mtu(const SaView& sa, std::uint32_t mtu) noexcept {
  const std::uint32_t around = sa.outer_header_bytes() + sa.esp_head_bytes() + sa.icv_bytes;
  if (mtu < around + sa.block_bytes) return 0;
  const std::uint32_t text = (mtu - around) / sa.block_bytes * sa.block_bytes;
  return text - kEspTrailerBytes + (sa.tunnel ? 0 : sa.outer_header_bytes());
}

/// The most bytes that protecting a packet adds to its frame.
[[nodiscard]] constexpr FrameRoom growth_of(const SaView& sa) noexcept {
  return {sa.head_bytes(), sa.tfc_bytes + sa.block_bytes - 1U + kEspTrailerBytes + sa.icv_bytes};
}

/// The same for any SA without TFC padding: AES-CBC with the longest ICV, in a tunnel over UDP and IPv6.
[[nodiscard]] constexpr FrameRoom most_growth() noexcept {
  SaView sa;
  sa.iv_bytes = sa.block_bytes = sa.icv_bytes = 16;
  sa.outer = NetworkLayer::ipv6;
  sa.udp = true;
  return growth_of(sa);
}

/// TFC padding never makes a packet longer than `mtu` of the path or link, as in Linux. With `mtu` 0 the limit is the
/// longest IPv4 packet.
[[nodiscard]] SaView sa_view(const SecurityAssociation& sa, std::uint32_t mtu);

}  // namespace penstock::ipsec
