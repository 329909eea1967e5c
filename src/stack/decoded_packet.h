// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A decoded packet, as seen by functions that inspect traffic: the frame's outermost IP packet, a packet from a tunnel,
// or a reassembled datagram. It does not own its bytes. They belong to the frame or the decoder and stay valid until
// the next frame.

#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>

#include "base/ip_address.h"
#include "packet/link_type.h"
#include "packet/packet.h"
#include "stack/decode_event.h"

namespace penstock::stack {

using Bytes = std::span<const std::uint8_t>;

/// Outermost first; unused entries are 0.
using VlanIds = std::array<std::uint16_t, 8>;

/// An IPv4 address is in the lower 32 bits of `low`, and the other bits are 0. The packet's IP version tells it apart
/// from an IPv6 address.
struct Endpoint {
  Ipv6Address address;
  std::uint16_t port = 0;  // 0 if the protocol has no ports
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// Inline: why a packet must be dropped.
enum class Refusal : std::uint8_t {
  none,
  fragment,         // another part of its datagram was dropped: the host may hold the rest
  changed_bytes,    // overlaps data that has already passed, with different content
  invalid,          // not valid in its session, but a less strict host may accept it
  flow_memory,      // no memory for its flow,
  stream_memory,    // for its session, or for its bytes in the stream,
  fragment_memory,  // or to store the fragment (TrackerOptions::refuse_when_full)
  undecodable,      // its payload could not be decoded (TrackerOptions::refuse_undecodable)
};

struct DecodedPacket {
  std::uint64_t timestamp_ns = 0;  // since the epoch
  std::uint64_t number = 0;        // of the frame in the input, from 1
  Bytes frame;                     // the frame that carried it; empty for packets that the stack generates
  LinkType link_type = LinkType::ethernet;

  std::uint8_t ip_version = 0;  // 4 or 6; 0: not IP, only the events are set
  std::uint8_t protocol = 0;    // IP protocol; IPv6: the last Next Header reached
  Endpoint source;
  Endpoint destination;
  Bytes ip;          // IP header with options or extension headers
  Bytes ip_payload;  // everything after it, up to the end of the IP packet
  /// TCP, UDP, SCTP, ESP or ICMP header with options (ICMPv4: 8 bytes, plus any fields specific to the type). Empty if
  /// there is none that is complete and valid.
  Bytes transport;
  /// The bytes after the transport header; empty if there is no transport header. ICMP: the bytes after the first 8
  /// whatever the type, so that the packet quoted by an error is payload. UDP: limited by the UDP length field.
  Bytes payload;

  VlanIds vlan_ids{};
  std::uint8_t vlan_count = 0;
  std::uint8_t tunnel_depth = 0;   // 0: the frame's own packet
  bool fragment = false;           // a fragment: its transport header is not decoded
  bool reassembled = false;        // reassembled from fragments
  bool truncated = false;          // the capture ends before the packet does
  bool has_flow = false;           // of a kind that has flows: complete TCP, UDP, SCTP, ICMP, ESP, IP in IP
  bool carries_packet = false;     // its payload is a packet, which follows and is inspected itself
  bool wrong_ip_checksum = false;  // IPv4: in its header or in an outer one
  bool invalid = false;            // an event says why; data after the invalid header is not decoded
  bool undecodable = false;        // may contain a packet that was not found: see README.md
  Refusal refused = Refusal::none;
  DecodeEvents events;  // errors and anomalies

  [[nodiscard]] bool is_tcp() const noexcept { return protocol == 6 && !transport.empty(); }
  [[nodiscard]] bool is_udp() const noexcept { return protocol == 17 && !transport.empty(); }
};

}  // namespace penstock::stack
