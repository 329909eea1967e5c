// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/esp/mtu.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "function/answer.h"
#include "nf/ipsec/esp/encapsulate_core.h"
#include "packet/checksum.h"

namespace penstock::ipsec {

namespace {

constexpr std::uint32_t kMostIpv4Header = 60;

/// Copies the options that every fragment must have (RFC 791 §3.1), padded to words. Returns their length in bytes.
std::uint32_t copied_options(const std::uint8_t* options, std::uint32_t bytes, std::uint8_t* to) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t at = 0; at < bytes && options[at] != 0;) {
    const bool single = options[at] == 1;
    const std::uint32_t length = single ? 1U : at + 1 < bytes ? options[at + 1] : 0U;
    if (length == 0 || (!single && length < 2) || length > bytes - at) break;
    if ((options[at] & 0x80) != 0) {
      std::memcpy(to + count, options + at, length);
      count += length;
    }
    at += length;
  }
  while (count % 4 != 0) to[count++] = 0;
  return count;
}

/// Value of the IPv4 and IPv6 fragment fields.
std::uint32_t fragment_at(std::uint32_t offset, bool more) noexcept {
  return offset / 8 | (more ? Ipv4Header::kMoreFragments : 0U);
}

void finish_ipv4(std::uint8_t* ip, std::uint32_t header, std::uint32_t payload, std::uint32_t fragment) noexcept {
  auto& head = *reinterpret_cast<Ipv4Header*>(ip);
  head.version_ihl = static_cast<std::uint8_t>(0x40 | header / 4);
  head.total_length.set(static_cast<std::uint16_t>(header + payload));
  head.fragment.set(static_cast<std::uint16_t>(fragment));
  head.checksum.set(0);
  head.checksum.set(checksum(ip, header));
}

bool cut_ipv4(PacketView packet, std::uint32_t mtu, function::Emitter& emitter) noexcept {
  const std::uint32_t link = packet.layout().network_offset;
  const std::uint32_t header = packet.ipv4().header_length();
  const std::uint32_t payload = packet.layout().ip_bytes() - header;
  const std::uint8_t* const data = packet.frame + link + header;

  std::array<std::uint8_t, kMostIpv4Header> later;  // header of the second and later fragments
  std::memcpy(later.data(), packet.frame + link, sizeof(Ipv4Header));
  const std::uint32_t later_header =
      static_cast<std::uint32_t>(sizeof(Ipv4Header)) +
      copied_options(packet.frame + link + sizeof(Ipv4Header), header - static_cast<std::uint32_t>(sizeof(Ipv4Header)),
                     later.data() + sizeof(Ipv4Header));

  const std::uint32_t first = (mtu - header) / 8 * 8;
  const std::uint32_t most = (mtu - later_header) / 8 * 8;
  for (std::uint32_t at = first; at < payload;) {
    const std::uint32_t bytes = std::min(most, payload - at);
    std::uint8_t* const frame = emitter.emit_unwritten(link + later_header + bytes, packet);
    if (frame == nullptr) return false;
    std::memcpy(frame, packet.frame, link);
    std::memcpy(frame + link, later.data(), later_header);
    std::memcpy(frame + link + later_header, data + at, bytes);
    finish_ipv4(frame + link, later_header, bytes, fragment_at(at, at + bytes < payload));
    at += bytes;
  }
  finish_ipv4(packet.frame + link, header, first, fragment_at(0, true));
  packet.packet->length = link + header + first;
  packet.packet->wire_length = packet.packet->length;
  return true;
}

/// Fragments a tunnel packet, whose outer header has no extensions (RFC 8200 §4.5).
bool cut_ipv6(PacketView packet, std::uint32_t mtu, function::Emitter& emitter) noexcept {
  constexpr std::uint32_t kHeaders = kBytesOf<Ipv6Header> + kBytesOf<Ipv6FragmentHeader>;
  const std::uint32_t link = packet.layout().network_offset;
  const std::uint32_t payload = packet.layout().ip_bytes() - kBytesOf<Ipv6Header>;
  std::uint8_t* const data = packet.frame + link + kBytesOf<Ipv6Header>;
  const std::uint8_t protocol = packet.ipv6().next_header;
  const std::uint32_t esp = protocol == ip_protocol::kUdp ? kBytesOf<UdpHeader> : 0;
  // The numbers of one SA do not repeat for a long time.
  const auto& header = *reinterpret_cast<const EspHeader*>(data + esp);
  const std::uint32_t id = header.sequence.value() ^ header.spi.value() * 0x9e37'79b9U;

  const std::uint32_t most = (mtu - kHeaders) / 8 * 8;
  const auto finish = [&](std::uint8_t* ip, std::uint32_t at, std::uint32_t bytes) {
    auto& head = *reinterpret_cast<Ipv6Header*>(ip);
    head.payload_length.set(static_cast<std::uint16_t>(kBytesOf<Ipv6FragmentHeader> + bytes));
    head.next_header = ip_protocol::kFragment;
    auto& fragment = *reinterpret_cast<Ipv6FragmentHeader*>(ip + kBytesOf<Ipv6Header>);
    fragment.next_header = protocol;
    fragment.reserved = 0;
    const bool more = at + bytes < payload;
    fragment.fragment.set(static_cast<std::uint16_t>(at | (more ? Ipv6FragmentHeader::kMoreFragments : 0U)));
    fragment.id.set(id);
  };
  for (std::uint32_t at = most; at < payload;) {
    const std::uint32_t bytes = std::min(most, payload - at);
    std::uint8_t* const frame = emitter.emit_unwritten(link + kHeaders + bytes, packet);
    if (frame == nullptr) return false;
    std::memcpy(frame, packet.frame, link + kBytesOf<Ipv6Header>);
    std::memcpy(frame + link + kHeaders, data + at, bytes);
    finish(frame + link, at, bytes);
    at += bytes;
  }
  std::memmove(data + kBytesOf<Ipv6FragmentHeader>, data, most);
  finish(packet.frame + link, 0, most);
  packet.packet->length = link + kHeaders + most;
  packet.packet->wire_length = packet.packet->length;
  return true;
}

}  // namespace

bool cut_into_fragments(PacketView packet, std::uint32_t mtu, function::Emitter& emitter) noexcept {
  return packet.layout().network == NetworkLayer::ipv4 ? cut_ipv4(packet, mtu, emitter)
                                                       : cut_ipv6(packet, mtu, emitter);
}

void answer_too_big(PacketView packet, const SaView& sa, std::uint32_t mtu, function::Emitter& emitter) noexcept {
  constexpr std::uint8_t kUnreachable = 3, kFragmentationNeeded = 4, kPacketTooBig = 2;
  if (!function::may_be_answered(packet)) return;
  const std::uint32_t fits = inner_mtu(sa, mtu);
  std::optional<Ipv6Address> from;
  if (sa.outer == packet.layout().network && sa.tunnel) from = sa.source;
  const function::IcmpError error = packet.layout().network == NetworkLayer::ipv4
                                        ? function::IcmpError{kUnreachable, kFragmentationNeeded, fits}
                                        : function::IcmpError{kPacketTooBig, 0, std::max(fits, kLeastIpv6Mtu)};
  function::answer_with_error(packet, error, from, packet, emitter);
}

}  // namespace penstock::ipsec
