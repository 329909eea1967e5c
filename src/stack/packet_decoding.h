// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of one packet while its layers are decoded, from the link layer up, shared by the layers' functions
// (decode_*.cc). Each function takes the bytes from its own header to the end. It returns false where Suricata stops
// decoding; a tunnel's payload is then not treated as a packet.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_order.h"
#include "packet/link_type.h"
#include "stack/decoded_packet.h"
#include "stack/ip_reassembly.h"

namespace penstock::stack {

/// The packet inside a tunnel, and the layer that it begins with.
struct Carried {
  enum class Layer : std::uint8_t { none, ethernet, vlan, ipv4, ipv6, teredo, ppp, nsh, arp, erspan };
  Layer layer = Layer::none;
  Bytes bytes;
  bool guessed = false;  // may not be a packet: inspect the outer payload as well
};

struct PacketDecoding {
  /// Limit on the layers of a frame, as Suricata's `decoder.max-layers`.
  static constexpr unsigned kMostLayers = 16;

  PacketDecoding(DecodedPacket& to, const TunnelPorts& tunnel_ports) noexcept : packet(to), ports(tunnel_ports) {}

  DecodedPacket& packet;
  const TunnelPorts& ports;
  unsigned layers = 0;  // so far, including those of the outer packets
  Carried carried;
  bool is_fragment = false;
  IpFragment fragment;
  bool vj_uncompressed = false;  // PPP: Van Jacobson uncompressed TCP, with IP protocol 0
  bool is_not_ip = false;        // a protocol that carries no IP, such as ARP

  /// Sets an event for an anomaly. The packet stays valid.
  void note(DecodeEvent event) const noexcept { packet.events.set(event.index); }
  /// Sets an event for an error and marks the packet invalid. Always false.
  bool wrong(DecodeEvent event) const noexcept {
    note(event);
    packet.invalid = true;
    return false;
  }
  /// False if the packet has too many layers.
  [[nodiscard]] bool enter_layer() noexcept {
    if (++layers < kMostLayers) return true;
    packet.undecodable = true;
    return wrong(decode_event("too_many_layers"));
  }
};

/// The header at the start of `bytes`, which must be long enough.
template <typename Header>
[[nodiscard]] const Header& header_of(Bytes bytes) noexcept {
  static_assert(alignof(Header) == 1);
  return *reinterpret_cast<const Header*>(bytes.data());
}
[[nodiscard]] inline std::uint16_t be16(Bytes bytes, std::size_t at) noexcept {
  return header_of<Be16>(bytes.subspan(at)).value();
}
[[nodiscard]] inline std::uint32_t be32(Bytes bytes, std::size_t at) noexcept {
  return header_of<Be32>(bytes.subspan(at)).value();
}

// decode_link.cc
bool decode_link(PacketDecoding& decoding, LinkType link, Bytes bytes) noexcept;
bool decode_ethernet(PacketDecoding& decoding, Bytes bytes) noexcept;
bool decode_vlan(PacketDecoding& decoding, Bytes bytes) noexcept;
bool decode_arp(PacketDecoding& decoding, Bytes bytes) noexcept;
bool decode_ppp(PacketDecoding& decoding, Bytes bytes) noexcept;
bool decode_nsh(PacketDecoding& decoding, Bytes bytes) noexcept;
/// False for an unknown EtherType. The result of decoding the payload does not matter.
bool decode_ether_type(PacketDecoding& decoding, std::uint16_t type, Bytes bytes) noexcept;
/// Whether decode_ether_type() looks for IP after further headers of this EtherType.
bool is_encapsulation(std::uint16_t ether_type) noexcept;

// link_protocols.cc: whether a protocol never carries IP to a host, by EtherType, or by LLC and SNAP header.
bool carries_no_ip(std::uint16_t ether_type) noexcept;
bool llc_carries_no_ip(Bytes bytes) noexcept;

// decode_ip.cc
bool decode_ipv4(PacketDecoding& decoding, Bytes bytes) noexcept;
bool decode_ipv6(PacketDecoding& decoding, Bytes bytes) noexcept;

// decode_transport.cc: `bytes` end where the IP packet ends.
void decode_tcp(PacketDecoding& decoding, Bytes bytes) noexcept;
void decode_udp(PacketDecoding& decoding, Bytes bytes) noexcept;
void decode_sctp(PacketDecoding& decoding, Bytes bytes) noexcept;
void decode_esp(PacketDecoding& decoding, Bytes bytes) noexcept;
void decode_icmpv4(PacketDecoding& decoding, Bytes bytes) noexcept;
void decode_icmpv6(PacketDecoding& decoding, Bytes bytes) noexcept;

// decode_tunnel.cc
void decode_gre(PacketDecoding& decoding, Bytes bytes) noexcept;
bool decode_erspan(PacketDecoding& decoding, Bytes bytes) noexcept;
/// Decodes the payload of UDP if its ports are those of a tunnel.
void decode_udp_tunnel(PacketDecoding& decoding) noexcept;
/// Decodes the packet inside a tunnel, starting at its layer.
bool decode_carried(PacketDecoding& decoding, const Carried& carried) noexcept;

}  // namespace penstock::stack
