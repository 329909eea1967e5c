// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A packet as functions see it that look into traffic: the frame's own IP packet, one that a tunnel carried, or a
// datagram put together from fragments. It borrows all bytes, from the frame or from the decoder, until the next
// frame.

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

/// Outermost first; 0 where there are no more.
using VlanIds = std::array<std::uint16_t, 8>;

/// IPv4 addresses lie in the lower 32 bits of `low`, with `high` 0 (as 0.0.0.0/96): the packet's version tells.
struct Endpoint {
  Ipv6Address address;
  std::uint16_t port = 0;  // 0 where the protocol has none
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// Inline, why a packet must not go on.
enum class Refusal : std::uint8_t {
  none,
  fragment,         // of a datagram of which another part was dropped: the host has the rest
  changed_bytes,    // it has other bytes than those that have passed in their place
  invalid,          // it is not valid in its session, where a less strict host may take it all the same
  flow_memory,      // no room for its flow,
  stream_memory,    // for its session, or for its bytes in the stream,
  fragment_memory,  // for it among the fragments that wait (TrackerOptions::refuse_when_full)
  undecodable,      // what it carries was not reached (TrackerOptions::refuse_undecodable)
};

struct DecodedPacket {
  std::uint64_t timestamp_ns = 0;  // since the epoch
  std::uint64_t number = 0;        // of the frame in the input, from 1
  Bytes frame;                     // it came in this one; empty for what the stack makes itself
  LinkType link_type = LinkType::ethernet;

  std::uint8_t ip_version = 0;  // 4 or 6; 0: no IP packet, there are only events to tell
  std::uint8_t protocol = 0;    // IP's; behind extension headers the last that was reached
  Endpoint source;
  Endpoint destination;
  Bytes ip;          // header with options, or with extension headers
  Bytes ip_payload;  // all behind it, to the IP packet's end
  /// Header with options of TCP, UDP, SCTP, ESP or ICMP (ICMPv4: its 8 bytes, and what more the type's header has);
  /// empty where none is whole and right.
  Bytes transport;
  /// Behind the transport header; empty where there is none. Of ICMP: behind 8 bytes whatever the type, so that what an
  /// error quotes is payload. Of UDP: as long as UDP says.
  Bytes payload;

  VlanIds vlan_ids{};
  std::uint8_t vlan_count = 0;
  std::uint8_t tunnel_depth = 0;   // 0: the frame's own packet
  bool fragment = false;           // not whole: no transport header is looked for in it
  bool reassembled = false;        // put together from fragments
  bool truncated = false;          // the capture ends before the packet does
  bool has_flow = false;           // flows are kept of its kind: whole TCP, UDP, SCTP, ICMP, ESP, IP in IP
  bool carries_packet = false;     // its payload is a packet of its own, which comes next: content is looked for there
  bool wrong_ip_checksum = false;  // IPv4: of its header, or of that of a packet around it
  bool invalid = false;            // an event says so; what is behind the wrong header is not looked at
  bool undecodable = false;        // a packet may lie in it that was not found: see README.md
  Refusal refused = Refusal::none;
  DecodeEvents events;  // what was wrong or odd with it

  [[nodiscard]] bool is_tcp() const noexcept { return protocol == 6 && !transport.empty(); }
  [[nodiscard]] bool is_udp() const noexcept { return protocol == 17 && !transport.empty(); }
};

}  // namespace penstock::stack
