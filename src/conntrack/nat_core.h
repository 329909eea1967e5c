// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a translation to a packet, for host and device: addresses, ports or identifier, and what they change in
// checksums (RFC 1624), so that wrong ones stay wrong. ICMP errors: also in the packet that they quote, whose sender
// must recognise it (RFC 5508 §4.2). Nothing is written before everything is decided. rewrite() is at the end.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "conntrack/quoted_core.h"
#include "conntrack/sctp_checksum_core.h"
#include "packet/checksum.h"
#include "packet/packet.h"

namespace penstock::conntrack {

/// What to write: plain, so that a device can have one for each packet.
struct Rewrite {
  static constexpr std::uint8_t kSource = 1, kDestination = 2, kBoth = 3;

  Ipv6Address source, destination;                      // IPv4: {0, address}
  std::uint16_t source_port = 0, destination_port = 0;  // of ICMP: both the identifier
  std::uint8_t sides = 0;                               // which of them to write
  bool is_error = false;                                // the packet is an ICMP error about the connection

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool needed() const noexcept { return sides != 0; }
};

namespace nat_detail {

/// The headers of a frame or of a quoted packet, which may end anywhere.
struct Headers {
  std::uint8_t* bytes;
  std::uint32_t ip;
  std::uint32_t transport;         // beyond `end`, or equal to it, if there is nothing of it
  std::uint32_t end;               // of what there is
  std::uint32_t transport_length;  // on the wire; 0: unknown
  std::uint8_t protocol;
  bool v4;
  bool has_transport;  // not a later fragment
  bool quoted;

  [[nodiscard]] PENSTOCK_HOST_DEVICE bool has(std::uint32_t length) const noexcept {
    return transport <= end && end - transport >= length;
  }
  template <typename Header>
  [[nodiscard]] PENSTOCK_HOST_DEVICE Header& as(std::uint32_t at) const noexcept {
    return *reinterpret_cast<Header*>(bytes + at);
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE bool is_icmp() const noexcept {
    return protocol == (v4 ? ip_protocol::kIcmp : ip_protocol::kIcmpv6);
  }
};

/// Writes a field. Returns by how much the one's complement sum of what contains it grows: RFC 1624 eq. 3, ~m + m'.
PENSTOCK_HOST_DEVICE inline std::uint32_t put(Be16& field, std::uint16_t value) noexcept {
  const std::uint16_t before = field.value();
  if (before == value) return 0;
  field.set(value);
  return static_cast<std::uint32_t>(static_cast<std::uint16_t>(~before)) + value;
}
PENSTOCK_HOST_DEVICE inline std::uint32_t put(std::uint8_t* bytes, std::uint64_t value, unsigned words) noexcept {
  std::uint32_t change = 0;
  for (unsigned i = 0; i < words; ++i) {
    change += put(reinterpret_cast<Be16*>(bytes)[i], static_cast<std::uint16_t>(value >> 16 * (words - 1 - i)));
  }
  return change;
}

/// The same for the checksum field, by a change of what it covers.
PENSTOCK_HOST_DEVICE inline std::uint32_t update(Be16& checksum, std::uint32_t change) noexcept {
  if (change == 0) return 0;
  return put(checksum, checksum_finish(static_cast<std::uint16_t>(~checksum.value()) + change));
}

PENSTOCK_HOST_DEVICE inline std::uint32_t put_address(const Headers& at, bool source, const Ipv6Address& to) noexcept {
  if (at.v4) {
    auto& ip = at.as<Ipv4Header>(at.ip);
    return put(source ? ip.source.bytes : ip.destination.bytes, to.low, 2);
  }
  auto& ip = at.as<Ipv6Header>(at.ip);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(source ? ip.source : ip.destination);
  return put(bytes, to.high, 4) + put(bytes + 8, to.low, 4);
}

/// Types with an identifier that Linux translates: echo; timestamp, information, address mask.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool has_identifier(std::uint8_t type, bool v4) noexcept {
  return v4 ? type == 0 || type == 8 || (type >= 13 && type <= 18) : type == 128 || type == 129;
}

/// Whether enough of the transport header is there to write to it.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool is_writable(const Headers& at, const Rewrite& to,
                                                           bool captured_whole) noexcept {
  constexpr std::uint32_t kQuotedAtLeast = 8;  // RFC 792
  if (!at.has_transport) return true;
  switch (at.protocol) {
    case ip_protocol::kTcp:
      // The checksum of a quoted header is left out if the quotation ends before it, but not if only the capture does.
      return at.has(sizeof(TcpHeader)) || (at.quoted && at.has(kQuotedAtLeast) && captured_whole);
    case ip_protocol::kGre:  // as Linux, for the call of version 1
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite: return at.has(sizeof(UdpHeader));
    case ip_protocol::kSctp: {
      if (at.quoted) return at.has(kQuotedAtLeast) && (captured_whole || at.has(sizeof(SctpHeader)));
      if (!at.has(sizeof(SctpHeader))) return false;
      if (at.transport_length >= sizeof(SctpHeader)) return true;
      const auto& ports = at.as<UdpHeader>(at.transport);
      return ((to.sides & Rewrite::kSource) == 0 || ports.source_port.value() == to.source_port) &&
             ((to.sides & Rewrite::kDestination) == 0 || ports.destination_port.value() == to.destination_port);
    }
    default: return !at.is_icmp() || at.has(sizeof(IcmpHeader));
  }
}

/// Writes to the transport header. `pseudo_header`: the change of the addresses. `payload`: that of what follows an
/// ICMP header. Returns that of the transport header, checksum included.
PENSTOCK_HOST_DEVICE inline std::uint32_t write_transport(const Headers& at, const Rewrite& to,
                                                          std::uint32_t pseudo_header, std::uint32_t payload) noexcept {
  if (at.is_icmp()) {
    auto& icmp = at.as<IcmpHeader>(at.transport);
    std::uint32_t change = payload;
    if (has_identifier(icmp.type, at.v4)) change += put(reinterpret_cast<Be16&>(icmp.rest), to.source_port);
    return change + update(icmp.checksum, at.v4 ? change : change + pseudo_header);
  }
  if (!begins_with_ports(at.protocol)) return 0;
  auto& ports = at.as<UdpHeader>(at.transport);
  const std::uint32_t ports_before = std::uint32_t{ports.source_port.value()} << 16 | ports.destination_port.value();
  std::uint32_t change = 0;
  if ((to.sides & Rewrite::kSource) != 0) change += put(ports.source_port, to.source_port);
  if ((to.sides & Rewrite::kDestination) != 0) change += put(ports.destination_port, to.destination_port);
  switch (at.protocol) {
    case ip_protocol::kTcp:
      if (!at.has(sizeof(TcpHeader))) return change;
      return change + update(at.as<TcpHeader>(at.transport).checksum, change + pseudo_header);
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite: {
      // RFC 768: 0 means that there is none.
      if (ports.checksum.value() == 0) return change;
      std::uint32_t of_checksum = update(ports.checksum, change + pseudo_header);
      if (ports.checksum.value() == 0) of_checksum += put(ports.checksum, 0xffff);
      return change + of_checksum;
    }
    default: {
      if (!at.has(sizeof(SctpHeader)) || at.transport_length < sizeof(SctpHeader)) return change;
      const std::uint32_t changed =
          ports_before ^ (std::uint32_t{ports.source_port.value()} << 16 | ports.destination_port.value());
      const auto swap_bytes = [](std::uint32_t word) noexcept {
        return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
      };
      const std::uint32_t crc_change = swap_bytes(crc32c_change(swap_bytes(changed), at.transport_length));
      const std::uint32_t crc = at.as<SctpHeader>(at.transport).checksum.value() ^ crc_change;
      return change + put(at.as<SctpHeader>(at.transport).checksum.bytes, crc, 2);
    }
  }
}

/// Writes to all headers. Returns the change of their sum.
PENSTOCK_HOST_DEVICE inline std::uint32_t write(const Headers& at, const Rewrite& to, std::uint32_t payload) noexcept {
  std::uint32_t change = 0;
  if ((to.sides & Rewrite::kSource) != 0) change += put_address(at, true, to.source);
  if ((to.sides & Rewrite::kDestination) != 0) change += put_address(at, false, to.destination);
  const std::uint32_t transport = at.has_transport ? write_transport(at, to, change, payload) : 0;
  if (at.v4) change += update(at.as<Ipv4Header>(at.ip).checksum, change);
  return change + transport;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline Headers headers_of(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  const bool v4 = layout.network == NetworkLayer::ipv4;
  Headers headers{packet.frame,
                  layout.network_offset,
                  layout.transport_offset,
                  layout.end,
                  0,
                  layout.transport,
                  v4,
                  !layout.has(PacketLayout::kLaterFragment),
                  false};
  if (!layout.has(PacketLayout::kFragment)) {
    headers.transport_length = layout.end - layout.transport_offset;
    if (layout.has(PacketLayout::kTruncated)) {
      const std::uint32_t wire_end =
          layout.network_offset + (v4 ? packet.ipv4().total_length.value()
                                      : packet.ipv6().payload_length.value() + std::uint32_t{sizeof(Ipv6Header)});
      headers.transport_length = wire_end > layout.transport_offset ? wire_end - layout.transport_offset : 0;
    }
  }
  return headers;
}

/// The headers of the packet that an ICMP error quotes, which begins at `at`. False if they cannot be those of a packet
/// that was tracked.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool find_quoted(PacketView packet, std::uint32_t at,
                                                           Headers& quoted) noexcept {
  const PacketLayout& layout = packet.layout();
  const bool v4 = layout.network == NetworkLayer::ipv4;
  if (at > layout.end || layout.end - at < (v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header))) return false;
  quoted = {packet.frame, at, at, layout.end, 0, 0, v4, true, true};
  std::uint32_t length = 0;
  if (v4) {
    const auto& ip = packet.at<Ipv4Header>(at);
    if (ip.version() != 4 || ip.header_length() < sizeof(Ipv4Header)) return false;
    quoted.protocol = ip.protocol;
    quoted.transport = at + ip.header_length();
    length = at + ip.total_length.value();
  } else {
    const auto& ip = packet.at<Ipv6Header>(at);
    quoted.protocol = ip.next_header;
    const std::size_t transport = find_quoted_transport(packet.frame + at, layout.end - at, quoted.protocol);
    if (transport == 0) return false;
    quoted.transport = at + static_cast<std::uint32_t>(transport);
    length = at + static_cast<std::uint32_t>(sizeof(Ipv6Header)) + ip.payload_length.value();
  }
  quoted.transport_length = length > quoted.transport ? length - quoted.transport : 0;
  return true;
}

}  // namespace nat_detail

/// Writes the translation of a packet that has a connection, whose layout stays as it is. False if that is impossible:
/// the packet, which is unchanged, must be dropped. Linux drops these too: ICMP redirects about translated connections,
/// and errors that quote too little. Beyond that, first fragments of SCTP with another port, and quotations that a
/// capture has truncated within the transport header.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool rewrite(PacketView packet, const Rewrite& to) noexcept {
  using namespace nat_detail;
  if (!to.needed()) return true;
  const Headers outer = headers_of(packet);
  const bool captured_whole = !packet.layout().has(PacketLayout::kTruncated);
  if (!is_writable(outer, to, captured_whole)) return false;
  std::uint32_t payload = 0;
  if (to.is_error && outer.has_transport) {
    constexpr std::uint8_t kRedirect = 5, kRedirectV6 = 137;
    Headers quoted;
    if (!outer.is_icmp() || packet.icmp().type == (outer.v4 ? kRedirect : kRedirectV6) ||
        !find_quoted(packet, outer.transport + static_cast<std::uint32_t>(sizeof(IcmpHeader)), quoted)) {
      return false;
    }
    // It was sent in the other direction.
    const Rewrite inverse{
        to.destination,
        to.source,
        to.destination_port,
        to.source_port,
        static_cast<std::uint8_t>((to.sides & Rewrite::kSource) << 1 | (to.sides & Rewrite::kDestination) >> 1),
        false};
    if (!is_writable(quoted, inverse, captured_whole)) return false;
    payload = write(quoted, inverse, 0);
  }
  write(outer, to, payload);
  return true;
}

}  // namespace penstock::conntrack
