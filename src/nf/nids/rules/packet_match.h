// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule options that test a packet's headers, its flow or the stack's findings, but not the bytes of a buffer.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "nf/nids/rules/buffer_match.h"
#include "stack/decode_event.h"
#include "stack/stream_event.h"

namespace penstock::nids {

/// `flow:`; a member that is false is not tested.
struct FlowMatch {
  bool to_server = false, to_client = false;
  bool established = false, not_established = false, stateless = false;
  bool only_stream = false, no_stream = false;
  bool only_frag = false, no_frag = false;
};

struct Dsize {
  NumberRange range;
};

/// `flags:` tests the TCP flags, without the `ignored` ones.
struct TcpFlags {
  enum class How : std::uint8_t { exactly, all_of /* + */, any_of /* * */, not_these /* ! */ };
  How how = How::exactly;
  std::uint8_t flags = 0;
  std::uint8_t ignored = 0;
};

/// Tests a number in a header.
struct HeaderNumber {
  enum class Header : std::uint8_t {
    tcp_ack,
    tcp_sequence,
    tcp_window,
    tcp_mss,
    ttl,    // IPv4 TTL or IPv6 hop limit
    tos,    // IPv4 TOS byte or IPv6 traffic class
    ip_id,  // IPv4
    ip_protocol,
    icmp_type,
    icmp_code,
    icmp_id,
    icmp_sequence,
    icmpv6_mtu,
  };
  Header header;
  NumberRange range;
};

struct IpOption {
  std::uint8_t option = 0;  // the option's number; not used if `any`
  bool any = false;
};

struct FragmentBits {
  enum class How : std::uint8_t { exactly, all_of /* + */, any_of /* * */, not_these /* ! */ };
  How how = How::exactly;
  bool reserved = false, dont_fragment = false, more_fragments = false;
};

struct FragmentOffset {
  NumberRange range;  // in units of 8 bytes
};

struct SameIp {};

/// `tcpv4-csum: valid` and similar options.
struct ChecksumMatch {
  enum class Of : std::uint8_t { ipv4, tcpv4, tcpv6, udpv4, udpv6, icmpv4, icmpv6 };
  Of of = Of::ipv4;
  bool valid = true;
};

struct StreamSize {
  enum class Side : std::uint8_t { server, client, both, either };
  Side side = Side::server;
  NumberRange range;
};

struct StreamEventMatch {
  stack::StreamEvent event;
};
struct DecodeEventMatch {
  stack::DecodeEvent event;
};

using PacketMatch = std::variant<Dsize, TcpFlags, HeaderNumber, IpOption, FragmentBits, FragmentOffset, SameIp,
                                 ChecksumMatch, StreamSize, StreamEventMatch, DecodeEventMatch>;

}  // namespace penstock::nids
