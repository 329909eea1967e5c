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
  no_policy,        // out, where only what a policy names may go: none does
  blocked,          // by a policy
  not_protected,    // in, in the clear, though a policy wants it protected (RFC 4301 §5.2 step 4)
  policy_mismatch,  // in, by an SA whose selector, or for whose policy, it is not (RFC 4301 §5.2 step 4)
  unsupported,      // by a policy, or with headers, that this code does not carry out

  // By the state of the SA.
  no_sa,               // out: no SA of those that the policy asks for is there
  wrong_spi,           // in, to one of our addresses: no SA with its SPI is there
  lifetime,            // the SA has reached a hard limit
  sequence_exhausted,  // out: the SA has no sequence numbers left (RFC 4303 §3.3.3)
  not_reserved,        // out: its next numbers could not be reserved in time, and so might be used again after a crash
  replayed,            // in: the sequence number was received before (RFC 4303 §3.4.3)
  too_old,             // in: the sequence number lies before the window

  // By the packet, as it came.
  not_ip,         // out, where only IP may go
  malformed,      // headers, or the lengths of ESP's parts, contradict each other
  truncated,      // the capture ends before the packet does
  fragment,       // what only a whole packet can pass through: transport mode, and ESP on its way in
  link_type,      // the frame's link header cannot say that it carries the other version of IP
  encapsulation,  // in UDP, though the SA is not, or the other way round
  keepalive,      // keeps a NAT's mapping alive (RFC 3948 §2.3): is dropped by who gets it

  // By what came out of ESP.
  integrity,    // the ICV is wrong
  padding,      // longer than the text, or not 1, 2, 3 … (RFC 4303 §2.4)
  next_header,  // not one that the mode can carry
  dummy,        // without content, to hide how much there is (RFC 4303 §2.6): is dropped by who gets it
  ecn,          // congestion was experienced by what cannot tell its sender (RFC 6040 §4.2)

  // By its size.
  too_big,   // for the MTU, and may not be cut
  too_long,  // for the length field of the outer IP header
  no_room,   // the frame's head- and tailroom, or what holds further packets, is full

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
