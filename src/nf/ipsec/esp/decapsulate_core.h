// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Inbound ESP for one packet, on host and device: finds ESP, locates its fields and, once the packet has been opened,
// extracts the payload. The sender is never trusted: every length is checked before it is used, even after
// authentication.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/esp/header_core.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// UDP ports on which ESP and IKE arrive (RFC 3948 §2): 4500, and those of SAs that use other ports. `others` is a
/// borrowed bitmap with one bit per port (2,048 words), null if there are no other ports.
struct NatTraversalPorts {
  static constexpr std::uint16_t kWellKnown = 4500;
  static constexpr std::uint32_t kWords = 65536 / 32;

  const std::uint32_t* others = nullptr;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool has(std::uint16_t port) const noexcept {
    return port == kWellKnown || (others != nullptr && (others[port / 32] >> port % 32 & 1) != 0);
  }
};

/// What a packet is to IPsec, regardless of whose it is.
struct EspPacket {
  enum class Kind : std::uint8_t {
    none,      // neither ESP nor anything else that concerns IPsec here; IKE, also on port 4500, is one of these
    esp,       // ESP with a complete header
    fragment,  // a fragment of ESP, or, with `udp`, of a UDP datagram that may carry ESP
    refused,   // to be dropped for `reason` if it is for us (the SPI is 0): truncated or malformed ESP, NAT keepalive
  };
  Kind kind = Kind::none;
  bool udp = false;
  Reason reason = Reason::none;
  std::uint32_t spi = 0;
  std::uint32_t sequence = 0;     // the low 32 bits, as in the header
  std::uint32_t behind_ip = 0;    // offset in the frame of the ESP or UDP header
  std::uint32_t esp = 0;          // offset of the ESP header
  std::uint32_t end = 0;          // offset just past the ICV
  std::uint32_t protocol_at = 0;  // offset of the byte that names the protocol, ESP or UDP

  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr EspPacket fragment_of(bool udp) noexcept {
    EspPacket packet;
    packet.kind = Kind::fragment;
    packet.udp = udp;
    return packet;
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr EspPacket refuse(Reason why) noexcept {
    EspPacket packet;
    packet.kind = Kind::refused;
    packet.reason = why;
    return packet;
  }
};

/// Whether a UDP datagram may carry ESP, judged by its first fragment: it is for one of the ports, and it is not IKE.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool may_carry_esp(PacketView first,
                                                             const NatTraversalPorts& ports) noexcept {
  const PacketLayout& layout = first.layout();
  const std::uint32_t at = layout.payload_offset;
  constexpr std::uint32_t kMarkerBytes = 4;
  return ports.has(first.udp().destination_port.value()) &&
         (at + kMarkerBytes > layout.end || first.at<EspHeader>(at).spi.value() != 0);
}

namespace decapsulate_detail {

/// Classifies UDP datagrams for one of the ports (RFC 3948 §2.2, §2.3). A packet too short to classify passes, as in
/// Linux.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline EspPacket find_in_udp(PacketView view,
                                                                const NatTraversalPorts& ports) noexcept {
  const PacketLayout& layout = view.layout();
  if (layout.has(PacketLayout::kFragment)) return EspPacket::fragment_of(true);
  if (!layout.has(PacketLayout::kTransportHeader) || !ports.has(view.udp().destination_port.value())) return {};
  const std::uint32_t at = layout.payload_offset;
  const std::uint32_t bytes = view.udp().length.value();
  if (bytes < kBytesOf<UdpHeader>) return {};
  const std::uint32_t end = layout.transport_offset + bytes;
  constexpr std::uint32_t kMarkerBytes = 4;
  if (bytes == kBytesOf<UdpHeader> + 1 && at < layout.end && view.frame[at] == 0xff) {
    return EspPacket::refuse(Reason::keepalive);
  }
  if (bytes <= kBytesOf<UdpHeader> + kBytesOf<EspHeader>) return {};
  const Reason cut = layout.has(PacketLayout::kTruncated) ? Reason::truncated : Reason::malformed;
  if (at + kMarkerBytes > layout.end) return EspPacket::refuse(cut);
  if (view.at<EspHeader>(at).spi.value() == 0) return {};  // the non-ESP marker: IKE
  if (end > layout.end) return EspPacket::refuse(cut);
  EspPacket packet;
  packet.kind = EspPacket::Kind::esp;
  packet.udp = true;
  packet.esp = at;
  packet.end = end;
  return packet;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline EspPacket find_in_ip(PacketView view) noexcept {
  const PacketLayout& layout = view.layout();
  if (layout.has(PacketLayout::kFragment)) return EspPacket::fragment_of(false);
  if (layout.has(PacketLayout::kTruncated)) return EspPacket::refuse(Reason::truncated);
  if (layout.transport_offset + kBytesOf < EspHeader >> layout.end) return EspPacket::refuse(Reason::malformed);
  EspPacket packet;
  packet.kind = EspPacket::Kind::esp;
  packet.esp = layout.transport_offset;
  packet.end = layout.end;
  return packet;
}

}  // namespace decapsulate_detail

/// Requires a parsed layout. Does not check whether the destination and SPI are ours.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline EspPacket find_esp(PacketView view, const NatTraversalPorts& ports) noexcept {
  using namespace decapsulate_detail;
  const PacketLayout& layout = view.layout();
  if (!layout.is_ip() || !layout.has(PacketLayout::kNetworkHeader) || layout.has(PacketLayout::kMalformed)) return {};
  EspPacket packet;
  if (layout.transport == ip_protocol::kEsp) {
    packet = find_in_ip(view);
  } else if (layout.transport == ip_protocol::kUdp) {
    packet = find_in_udp(view, ports);
  }
  if (packet.kind != EspPacket::Kind::esp) return packet;
  const ProtocolField field = find_protocol_field(view);
  if (field.reason != Reason::none) return EspPacket::refuse(field.reason);
  packet.protocol_at = field.at;
  packet.behind_ip = layout.transport_offset;
  packet.spi = view.at<EspHeader>(packet.esp).spi.value();
  packet.sequence = view.at<EspHeader>(packet.esp).sequence.value();
  return packet;
}

/// The job that opens a packet, or the reason why there is none.
struct Opening {
  Reason reason = Reason::none;
  CryptoJob job;
};

/// Locates the fields of an ESP packet of this SA and returns the job that opens it. `sequence` is the full 64-bit
/// sequence number, of which the header has the low half.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Opening plan_decapsulation(PacketView view, const EspPacket& packet,
                                                                     const SaView& sa, std::uint32_t sa_index,
                                                                     std::uint64_t sequence) noexcept {
  Opening opening;
  const std::uint32_t around = kBytesOf<EspHeader> + sa.iv_bytes + sa.icv_bytes;
  const std::uint32_t bytes = packet.end - packet.esp;
  if (packet.udp != sa.udp) {
    opening.reason = Reason::encapsulation;
  } else if (bytes > 0xffff || bytes < around + sa.block_bytes || ((bytes - around) & (sa.block_bytes - 1U)) != 0) {
    opening.reason = Reason::malformed;
  } else {
    opening.job.sequence = sequence;
    opening.job.sa = sa_index;
    opening.job.esp = view.packet->offset + packet.esp;
    opening.job.text_bytes = bytes - around;
    opening.job.iv_bytes = sa.iv_bytes;
    opening.job.icv_bytes = sa.icv_bytes;
  }
  return opening;
}

namespace decapsulate_detail {

/// An opened packet's payload, as its ESP trailer describes it.
struct Text {
  Reason reason;
  std::uint8_t next_header;
  std::uint32_t payload_bytes;  // including TFC padding
};

/// The receiver should check the padding (RFC 4303 §2.4).
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Text read_trailer(const std::uint8_t* text, std::uint32_t bytes) noexcept {
  const std::uint32_t pad_bytes = text[bytes - 2];
  if (pad_bytes + kEspTrailerBytes > bytes) return {Reason::padding, 0, 0};
  const std::uint32_t payload_bytes = bytes - kEspTrailerBytes - pad_bytes;
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < pad_bytes; ++i) wrong |= text[payload_bytes + i] ^ (i + 1);
  return {wrong == 0 ? Reason::none : Reason::padding, text[bytes - 1], payload_bytes};
}

/// Length of the IP packet at `ip`, from its own header; bytes after it are TFC padding (RFC 4303 §2.7). 0 if the
/// header is inconsistent, or contradicts `family` or the bytes available.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t inner_packet_bytes(const std::uint8_t* ip, std::uint32_t bytes,
                                                                           NetworkLayer family) noexcept {
  if (family == NetworkLayer::ipv4) {
    if (bytes < kBytesOf<Ipv4Header>) return 0;
    const auto& header = *reinterpret_cast<const Ipv4Header*>(ip);
    const std::uint32_t total = header.total_length.value();
    const std::uint32_t header_bytes = header.header_length();
    if (header.version() != 4 || header_bytes < kBytesOf<Ipv4Header> || total < header_bytes || total > bytes) return 0;
    return total;
  }
  if (bytes < kBytesOf<Ipv6Header>) return 0;
  const auto& header = *reinterpret_cast<const Ipv6Header*>(ip);
  const std::uint32_t payload = header.payload_length.value();
  const bool jumbo = payload == 0 && header.next_header == ip_protocol::kHopByHop;  // RFC 2675: too long for ESP
  if (header.version_class_label.value() >> 28 != 6 || jumbo || payload > bytes - kBytesOf<Ipv6Header>) return 0;
  return kBytesOf<Ipv6Header> + payload;
}

/// Derives the inner DSCP and ECN from the outer header (RFC 4301 §5.1.2.1, RFC 6040 §4.2). False: drop the packet.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool tell_traffic_class(std::uint8_t* inner, NetworkLayer family,
                                                                  std::uint8_t outer, const SaView& sa) noexcept {
  const std::uint8_t before = traffic_class(inner, family);
  std::uint8_t after = before;
  if (!sa.no_ecn) {
    const Decongested told = decapsulated_ecn(before & kEcnMask, outer & kEcnMask);
    if (told.drop) return false;
    after = static_cast<std::uint8_t>((after & ~kEcnMask) | told.ecn);
  }
  if (sa.decap_dscp) after = static_cast<std::uint8_t>((outer & ~kEcnMask) | (after & kEcnMask));
  if (after != before) set_traffic_class(inner, family, after);
  return true;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason leave_tunnel(PacketView& view, const SaView& sa, std::uint32_t payload,
                                                              const Text& text) noexcept {
  const PacketLayout& layout = view.layout();
  const std::uint32_t link_bytes = layout.network_offset;
  if (text.next_header != ip_protocol::kIpv4 && text.next_header != ip_protocol::kIpv6) return Reason::next_header;
  const NetworkLayer family = text.next_header == ip_protocol::kIpv4 ? NetworkLayer::ipv4 : NetworkLayer::ipv6;
  std::uint8_t* const inner = view.frame + payload;
  const std::uint32_t inner_bytes = inner_packet_bytes(inner, text.payload_bytes, family);
  if (inner_bytes == 0) return Reason::malformed;
  if (family != layout.network && !names_any_family(view.packet->link_type)) return Reason::link_type;
  const std::uint8_t outer = traffic_class(view.frame + link_bytes, layout.network);
  if (!tell_traffic_class(inner, family, outer, sa)) return Reason::ecn;

  const std::uint32_t later = payload - link_bytes;
  move_up(view.frame + later, view.frame, link_bytes);
  move_bounds(view, -static_cast<std::int32_t>(later), link_bytes + inner_bytes);
  if (family != layout.network) {
    set_link_family(view.frame, view.packet->link_type, link_bytes, layout.vlan_count != 0, family);
  }
  return Reason::none;
}

/// A NAT has changed addresses that the checksum covers (RFC 3948 §3.1.2). The ICV already authenticates the segment,
/// so the checksum is recomputed. A UDP checksum of zero (unused) stays zero. `segment` starts after the IP header.
PENSTOCK_HOST_DEVICE inline void renew_transport_checksum(std::uint8_t* segment, std::uint32_t bytes,
                                                          const std::uint8_t* ip, NetworkLayer family,
                                                          std::uint8_t protocol) noexcept {
  Be16* field = nullptr;
  if (protocol == ip_protocol::kTcp && bytes >= kBytesOf<TcpHeader>) {
    field = &reinterpret_cast<TcpHeader*>(segment)->checksum;
  } else if (protocol == ip_protocol::kUdp && bytes >= kBytesOf<UdpHeader>) {
    auto& udp = *reinterpret_cast<UdpHeader*>(segment);
    if (udp.length.value() != bytes || udp.checksum.value() == 0) return;
    field = &udp.checksum;
  } else {
    return;
  }
  field->set(0);
  const std::uint16_t sum =
      checksum_finish(checksum_add(segment, bytes, pseudo_header_sum(ip, family, protocol, bytes)));
  field->set(sum == 0 && protocol == ip_protocol::kUdp ? std::uint16_t{0xffff} : sum);
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason leave_transport(PacketView& view, const SaView& sa,
                                                                 const EspPacket& packet, std::uint32_t payload,
                                                                 const Text& text) noexcept {
  const PacketLayout& layout = view.layout();
  if (layout.network != sa.outer) return Reason::malformed;
  const std::uint32_t headers = packet.behind_ip;  // link and IP header, including options and extension headers
  const std::uint32_t later = payload - headers;
  move_up(view.frame + later, view.frame, headers);
  move_bounds(view, -static_cast<std::int32_t>(later), headers + text.payload_bytes);
  set_protocol_and_length(view.frame, layout.network, layout.network_offset, packet.protocol_at, text.next_header,
                          headers - layout.network_offset + text.payload_bytes);
  if (sa.udp) {
    renew_transport_checksum(view.frame + headers, text.payload_bytes, view.frame + layout.network_offset,
                             layout.network, text.next_header);
  }
  return Reason::none;
}

}  // namespace decapsulate_detail

/// Extracts the payload of an opened packet. `job` is the job that opened it. Returns Reason::none, or a drop reason;
/// the frame's bounds are then unchanged. The caller must parse the layout again, and then check the policies.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason decapsulate(PacketView& view, const SaView& sa,
                                                             const EspPacket& packet, const CryptoJob& job) noexcept {
  using namespace decapsulate_detail;
  const std::uint32_t payload = job.text() - view.packet->offset;
  const Text text = read_trailer(view.frame + payload, job.text_bytes);
  if (text.reason != Reason::none) return text.reason;
  if (text.next_header == ip_protocol::kNone) return Reason::dummy;
  return sa.tunnel ? leave_tunnel(view, sa, payload, text) : leave_transport(view, sa, packet, payload, text);
}

}  // namespace penstock::ipsec
