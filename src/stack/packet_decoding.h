// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One packet while its layers are decoded, from the link layer up: what the functions of the layers (decode_*.cc) hand
// on to each other. They take the bytes from their own header to the end, and return whether these are what they should
// be: false where Suricata gives the packet up, so that a tunnel's packet is none.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_order.h"
#include "packet/link_type.h"
#include "stack/decoded_packet.h"
#include "stack/ip_reassembly.h"

namespace penstock::stack {

/// The packet that a tunnel carries, by the layer with which it begins.
struct Carried {
  enum class Layer : std::uint8_t { none, ethernet, vlan, ipv4, ipv6, teredo, ppp, nsh, arp, erspan };
  Layer layer = Layer::none;
  Bytes bytes;
  bool guessed = false;  // it may be none: the payload around it is to be inspected as well
};

struct PacketDecoding {
  /// Layers that a frame may have in all, as Suricata's `decoder.max-layers`.
  static constexpr unsigned kMostLayers = 16;

  PacketDecoding(DecodedPacket& to, const TunnelPorts& tunnel_ports) noexcept : packet(to), ports(tunnel_ports) {}

  DecodedPacket& packet;
  const TunnelPorts& ports;
  unsigned layers = 0;  // so far, in the packets around it too
  Carried carried;
  bool is_fragment = false;
  IpFragment fragment;
  bool vj_uncompressed = false;  // the PPP header said so: TCP behind protocol 0
  bool is_not_ip = false;        // a protocol that carries no IP, such as ARP

  /// Something odd, with which the packet is still what it is.
  void note(DecodeEvent event) const noexcept { packet.events.set(event.index); }
  /// Something wrong. Always false.
  bool wrong(DecodeEvent event) const noexcept {
    note(event);
    packet.invalid = true;
    return false;
  }
  /// False where the packet has too many layers.
  [[nodiscard]] bool enter_layer() noexcept {
    if (++layers < kMostLayers) return true;
    packet.undecodable = true;
    return wrong(decode_event("too_many_layers"));
  }
};

/// The header with which `bytes` begin, which are long enough for it.
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
/// False for an EtherType that is not known, whatever becomes of what it stands for.
bool decode_ether_type(PacketDecoding& decoding, std::uint16_t type, Bytes bytes) noexcept;
/// Whether that looks for IP in it, behind headers of its own.
bool is_encapsulation(std::uint16_t ether_type) noexcept;

// link_protocols.cc: what carries no IP to any host, by the EtherType; by LLC and SNAP header
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
/// What UDP carries, where its ports are a tunnel's.
void decode_udp_tunnel(PacketDecoding& decoding) noexcept;
/// Begins with the packet that `layer` says.
bool decode_carried(PacketDecoding& decoding, const Carried& carried) noexcept;

}  // namespace penstock::stack
