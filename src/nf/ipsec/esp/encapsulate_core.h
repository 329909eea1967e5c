// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound ESP for one packet, on host and device: plans the layout, moves the headers forward to make room, and writes
// everything but the IV, ciphertext and ICV, which the cipher writes. The protected bytes do not move.
//
//     tunnel      | link | outer IP | UDP | ESP | IV | inner packet, TFC padding | padding, lengths | ICV |
//     transport   | link | IP, its options | UDP | ESP | IV | segment            | padding, lengths | ICV |

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/esp/header_core.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Every IPv6 path carries packets of this size (RFC 8200 §5), so senders need not make packets smaller.
inline constexpr std::uint32_t kLeastIpv6Mtu = 1280;

/// Planned layout of a packet. Offsets refer to the original frame.
struct Encapsulation {
  Reason reason = Reason::none;  // otherwise why it cannot be protected; the other members are then meaningless
  std::uint8_t next_header = 0;  // for the ESP trailer
  std::uint8_t pad_bytes = 0;
  std::uint32_t payload = 0;  // offset of the part to protect: the IP packet, or what follows its headers
  std::uint32_t payload_bytes = 0;
  std::uint32_t tfc_bytes = 0;
  std::uint32_t text_bytes = 0;
  std::uint32_t protocol_at = 0;  // transport mode: offset of the protocol byte, which becomes ESP or UDP
  std::uint32_t ip_bytes = 0;     // length of the resulting IP packet, to compare with the MTU
  std::uint32_t frame_bytes = 0;
};

namespace encapsulate_detail {

[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason find_payload(PacketView view, const SaView& sa,
                                                              Encapsulation& plan) noexcept {
  const PacketLayout& layout = view.layout();
  if (!layout.is_ip()) return Reason::not_ip;
  if (layout.has(PacketLayout::kMalformed)) return Reason::malformed;
  if (layout.has(PacketLayout::kTruncated)) return Reason::truncated;
  if (sa.tunnel) {
    plan.payload = layout.network_offset;
    plan.next_header = layout.network == NetworkLayer::ipv4 ? ip_protocol::kIpv4 : ip_protocol::kIpv6;
    return sa.outer == layout.network || names_any_family(view.packet->link_type) ? Reason::none : Reason::link_type;
  }
  if (sa.outer != layout.network) return Reason::policy_mismatch;
  if (layout.has(PacketLayout::kFragment)) return Reason::fragment;
  plan.payload = layout.transport_offset;
  plan.next_header = layout.transport;
  // The receiver would take it for a dummy packet (RFC 4303 §2.6).
  if (layout.transport == ip_protocol::kNone) return Reason::next_header;
  const ProtocolField field = find_protocol_field(view);
  plan.protocol_at = field.at;
  return field.reason;
}

}  // namespace encapsulate_detail

/// Plans how `sa` protects the packet. Requires a parsed layout. Bytes after the IP packet (Ethernet padding) are cut
/// off. In transport mode, ESP follows IPv4's options and all of IPv6's extension headers. `room` is how much the frame
/// may grow.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Encapsulation plan_encapsulation(PacketView view, const SaView& sa,
                                                                           FrameRoom room) noexcept {
  constexpr std::uint32_t kMostIpBytes = 0xffff;  // IPv4's total length, IPv6's payload length
  const PacketLayout& layout = view.layout();
  Encapsulation plan;
  plan.reason = encapsulate_detail::find_payload(view, sa, plan);
  if (plan.reason != Reason::none) return plan;
  plan.payload_bytes = layout.end - plan.payload;
  if (sa.tunnel && plan.payload_bytes < sa.tfc_bytes) plan.tfc_bytes = sa.tfc_bytes - plan.payload_bytes;
  const std::uint32_t unpadded = plan.payload_bytes + plan.tfc_bytes + kEspTrailerBytes;
  plan.text_bytes = (unpadded + sa.block_bytes - 1U) & ~(sa.block_bytes - 1U);
  plan.pad_bytes = static_cast<std::uint8_t>(plan.text_bytes - unpadded);
  plan.frame_bytes = plan.payload + sa.head_bytes() + plan.text_bytes + sa.icv_bytes;
  plan.ip_bytes = plan.frame_bytes - layout.network_offset;
  const std::uint32_t fixed = sa.outer == NetworkLayer::ipv4 ? 0 : kBytesOf<Ipv6Header>;
  if (plan.ip_bytes - fixed > kMostIpBytes) {
    plan.reason = Reason::too_long;
  } else if (sa.head_bytes() > room.head || plan.frame_bytes > sa.head_bytes() + view.length() + room.tail) {
    plan.reason = Reason::no_room;
  }
  return plan;
}

namespace encapsulate_detail {

/// RFC 6040 §4.1, normal mode: copies the ECN field. `inner` is the packet's IP header.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint8_t outer_traffic_class(const std::uint8_t* inner,
                                                                           NetworkLayer family,
                                                                           const SaView& sa) noexcept {
  std::uint8_t value = traffic_class(inner, family);
  if (sa.dont_encap_dscp) value &= kEcnMask;
  if (sa.no_ecn) value &= static_cast<std::uint8_t>(~kEcnMask);
  return value;
}

/// DF is copied from an inner IPv4 packet (RFC 4301 §5.1.2.1, §8.1). For IPv6, which routers never fragment, DF is set,
/// except for packets that are already as small as their senders can make them (RFC 2473 §7.1). A packet with DF needs
/// no identification (RFC 6864 §4.1).
PENSTOCK_HOST_DEVICE inline void write_outer_ipv4(Ipv4Header& outer, const std::uint8_t* inner, NetworkLayer family,
                                                  const SaView& sa, std::uint32_t ip_bytes,
                                                  std::uint64_t sequence) noexcept {
  constexpr std::uint16_t kDf = Ipv4Header::kDontFragment;
  std::uint16_t inner_df = kDf;
  if (family == NetworkLayer::ipv4) {
    inner_df = reinterpret_cast<const Ipv4Header*>(inner)->fragment.value() & kDf;
  } else if (reinterpret_cast<const Ipv6Header*>(inner)->payload_length.value() + kBytesOf<Ipv6Header> <=
             kLeastIpv6Mtu) {
    inner_df = 0;
  }
  const std::uint16_t df = sa.no_pmtu_discovery ? std::uint16_t{0} : inner_df;
  const auto identification = df != 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(sequence);
  const auto source = static_cast<std::uint32_t>(sa.source.low);
  const auto destination = static_cast<std::uint32_t>(sa.destination.low);
  outer.version_ihl = 0x45;
  outer.tos = outer_traffic_class(inner, family, sa);
  outer.total_length.set(static_cast<std::uint16_t>(ip_bytes));
  outer.id.set(identification);
  outer.fragment.set(df);
  outer.ttl = 64;
  outer.protocol = sa.udp ? ip_protocol::kUdp : ip_protocol::kEsp;
  outer.source.set(source);
  outer.destination.set(destination);
  // Sums the values directly, so that the header need not be read back.
  const std::uint32_t sum = (std::uint32_t{outer.version_ihl} << 8 | outer.tos) + (ip_bytes & 0xffff) + identification +
                            df + (std::uint32_t{outer.ttl} << 8 | outer.protocol) + (source >> 16) + (source & 0xffff) +
                            (destination >> 16) + (destination & 0xffff);
  outer.checksum.set(checksum_finish(sum));
}

/// RFC 4301 §5.1.2.2. The flow label is 0: copying the inner one would reveal inner flows to observers.
PENSTOCK_HOST_DEVICE inline void write_outer_ipv6(Ipv6Header& outer, const std::uint8_t* inner, NetworkLayer family,
                                                  const SaView& sa, std::uint32_t ip_bytes) noexcept {
  const std::uint32_t traffic = outer_traffic_class(inner, family, sa);
  outer.version_class_label.set(std::uint32_t{6} << 28 | traffic << 20);
  outer.payload_length.set(static_cast<std::uint16_t>(ip_bytes - kBytesOf<Ipv6Header>));
  outer.next_header = sa.udp ? ip_protocol::kUdp : ip_protocol::kEsp;
  outer.hop_limit = 64;
  outer.source[0].set(sa.source.high);
  outer.source[1].set(sa.source.low);
  outer.destination[0].set(sa.destination.high);
  outer.destination[1].set(sa.destination.low);
}

/// RFC 3948 §2.1. Over IPv6, `write_udp_checksum` later fills in the checksum.
PENSTOCK_HOST_DEVICE inline void write_udp(UdpHeader& udp, const SaView& sa, std::uint32_t bytes) noexcept {
  udp.source_port.set(sa.udp_source_port);
  udp.destination_port.set(sa.udp_destination_port);
  udp.length.set(static_cast<std::uint16_t>(bytes));
  udp.checksum.set(0);
}

/// TFC padding (zeros), padding 1, 2, 3 … (RFC 4303 §2.4), pad length and next header.
PENSTOCK_HOST_DEVICE inline void write_trailer(std::uint8_t* behind_payload, const Encapsulation& plan) noexcept {
  for (std::uint32_t i = 0; i < plan.tfc_bytes; ++i) *behind_payload++ = 0;
  for (std::uint32_t i = 1; i <= plan.pad_bytes; ++i) *behind_payload++ = static_cast<std::uint8_t>(i);
  behind_payload[0] = plan.pad_bytes;
  behind_payload[1] = plan.next_header;
}

}  // namespace encapsulate_detail

/// Carries out a plan whose reason is none: moves the frame's bounds and writes headers and trailer. Returns the job
/// that seals the packet; its offsets have the same base as the packets'. The caller must parse the layout again.
/// `sa_index` is the index of the SA's keys; `sequence` is the full 64-bit number, and the header gets its low half.
PENSTOCK_HOST_DEVICE inline CryptoJob encapsulate(PacketView& view, const SaView& sa, std::uint32_t sa_index,
                                                  const Encapsulation& plan, std::uint64_t sequence) noexcept {
  using namespace encapsulate_detail;
  const std::uint32_t head = sa.head_bytes();
  const std::uint32_t network = view.layout().network_offset;
  const NetworkLayer family = view.layout().network;
  const std::uint32_t behind_ip = plan.payload + head - sa.esp_head_bytes();  // from here on, in the new frame
  move_down(view.frame - head, view.frame, plan.payload);
  move_bounds(view, static_cast<std::int32_t>(head), plan.frame_bytes);
  if (sa.tunnel) {
    const std::uint8_t* const inner = view.frame + plan.payload + head;
    if (sa.outer == NetworkLayer::ipv4) {
      write_outer_ipv4(view.at<Ipv4Header>(network), inner, family, sa, plan.ip_bytes, sequence);
    } else {
      write_outer_ipv6(view.at<Ipv6Header>(network), inner, family, sa, plan.ip_bytes);
    }
    if (sa.outer != family) {
      set_link_family(view.frame, view.packet->link_type, network, view.layout().vlan_count != 0, sa.outer);
    }
  } else {
    set_protocol_and_length(view.frame, family, network, plan.protocol_at,
                            sa.udp ? ip_protocol::kUdp : ip_protocol::kEsp, plan.ip_bytes);
  }
  std::uint32_t esp = behind_ip;
  if (sa.udp) {
    write_udp(view.at<UdpHeader>(behind_ip), sa, plan.frame_bytes - behind_ip);
    esp += kBytesOf<UdpHeader>;
  }
  view.at<EspHeader>(esp).spi.set(sa.spi);
  view.at<EspHeader>(esp).sequence.set(static_cast<std::uint32_t>(sequence));
  write_trailer(view.frame + plan.payload + head + plan.payload_bytes, plan);

  CryptoJob job;
  job.sequence = sequence;
  job.sa = sa_index;
  job.esp = view.packet->offset + esp;
  job.text_bytes = plan.text_bytes;
  job.iv_bytes = sa.iv_bytes;
  job.icv_bytes = sa.icv_bytes;
  return job;
}

/// Whether a checksum must be written after sealing: UDP over IPv6 needs one, and it covers the ciphertext.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool needs_udp_checksum(const SaView& sa) noexcept {
  return sa.udp && sa.outer == NetworkLayer::ipv6;
}

/// For an SA that needs it. RFC 6935 allows a zero checksum for tunnels if both ends agree, but receivers without that
/// configuration, Linux among them, drop such packets (RFC 8200 §8.1).
PENSTOCK_HOST_DEVICE inline void write_udp_checksum(PacketView view, const CryptoJob& job) noexcept {
  const std::uint32_t at = job.esp - view.packet->offset - kBytesOf<UdpHeader>;
  auto& udp = view.at<UdpHeader>(at);
  const std::uint32_t bytes = view.length() - at;
  // The outer header starts where the inner one did, right after the link header.
  const std::uint8_t* const ip = view.frame + view.layout().network_offset;
  udp.checksum.set(0);
  const std::uint32_t pseudo = pseudo_header_sum(ip, NetworkLayer::ipv6, ip_protocol::kUdp, bytes);
  const std::uint16_t sum = checksum_finish(checksum_add(view.frame + at, bytes, pseudo));
  udp.checksum.set(sum == 0 ? std::uint16_t{0xffff} : sum);
}

}  // namespace penstock::ipsec
