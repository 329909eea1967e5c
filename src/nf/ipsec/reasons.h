// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Why `ipsec` drops a packet: the drop reasons of its traits, by value.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::ipsec {

enum class Reason : std::uint16_t {
  // By policy.
  no_policy,        // out: only packets that a policy selects may pass, and none selects this one
  blocked,          // a policy blocks it
  not_protected,    // in: received in the clear, though a policy requires protection (RFC 4301 §5.2 step 4)
  policy_mismatch,  // in: it matches neither the SA's selector nor the policy's templates (RFC 4301 §5.2 step 4)
  unsupported,      // the policy or the packet's headers need something that is not implemented

  // By the state of the SA.
  no_sa,               // out: no SA matches the policy's templates
  wrong_spi,           // in: addressed to one of our SAs' destinations, but no SA has this SPI
  lifetime,            // the SA has reached a hard lifetime limit
  sequence_exhausted,  // out: the SA has no sequence numbers left (RFC 4303 §3.3.3)
  not_reserved,        // out: the next numbers were not reserved in time; using them could repeat them after a crash
  replayed,            // in: the sequence number was received before (RFC 4303 §3.4.3)
  too_old,             // in: the sequence number is to the left of the replay window

  // By the packet as it was received.
  not_ip,         // out: only IP may pass
  malformed,      // headers or the lengths of ESP's fields contradict each other
  truncated,      // the capture is shorter than the packet
  fragment,       // a fragment where a whole packet is needed: transport mode, and inbound ESP
  link_type,      // the link header cannot announce the other IP version
  encapsulation,  // UDP-encapsulated though the SA is not, or the other way round
  keepalive,      // NAT keepalive (RFC 3948 §2.3): the receiver discards it

  // By the decapsulated content.
  integrity,    // the ICV is wrong
  padding,      // longer than the payload, or not 1, 2, 3 … (RFC 4303 §2.4)
  next_header,  // not a protocol that the mode can carry
  dummy,        // dummy packet for traffic flow confidentiality (RFC 4303 §2.6): the receiver discards it
  ecn,          // the outer header is marked CE but the inner packet is not ECN-capable (RFC 6040 §4.2)

  // By its size.
  too_big,   // exceeds the MTU and must not be fragmented
  too_long,  // exceeds the length field of the outer IP header
  no_room,   // the frame's head- or tailroom, or the buffer for emitted packets, is full

  none = 0xffff,  // not dropped
};

inline constexpr std::array<std::string_view, 27> kReasons{"no_policy",       "blocked",     "not_protected",
                                                           "policy_mismatch", "unsupported", "no_sa",
                                                           "wrong_spi",       "lifetime",    "sequence_exhausted",
                                                           "not_reserved",    "replayed",    "too_old",
                                                           "not_ip",          "malformed",   "truncated",
                                                           "fragment",        "link_type",   "encapsulation",
                                                           "keepalive",       "integrity",   "padding",
                                                           "next_header",     "dummy",       "ecn",
                                                           "too_big",         "too_long",    "no_room"};

static_assert(kReasons.size() == static_cast<std::size_t>(Reason::no_room) + 1);

}  // namespace penstock::ipsec
