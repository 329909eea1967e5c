// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a packet does to its connection, as its protocol decides.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::conntrack {

/// Why a packet is invalid.
enum class Reason : std::uint8_t {
  malformed,      // headers are incomplete, or contradict the length of the packet
  checksum,       // of TCP, UDP, UDP-Lite or ICMP
  tcp_flags,      // a combination that no TCP sends
  tcp_state,      // a segment that does not belong in this state of the connection
  tcp_window,     // outside the window
  tcp_reset,      // a RST whose sequence number cannot be right
  no_connection,  // nothing begins with this packet, and it belongs to no connection
  fragment,       // a later fragment whose first fragment is not known
  full,           // no room for its connection
};
inline constexpr std::size_t kReasons = 9;
/// For reports, by Reason.
inline constexpr std::array<const char*, kReasons> kReasonNames = {
    "malformed", "checksum", "tcp_flags", "tcp_state", "tcp_window", "tcp_reset", "no_connection", "fragment", "full"};

struct Outcome {
  enum class Kind : std::uint8_t {
    refreshed,  // the connection lives for `timeout_s` from now on
    unchanged,  // the packet passes, but the connection keeps its time
    ended,      // the packet passes, and the connection is over
    reopened,   // the connection is over, and the packet begins another one
    invalid,    // for `reason`
    shortened,  // invalid, and the connection lives for `timeout_s` only
  };

  Kind kind = Kind::unchanged;
  Reason reason = Reason::malformed;
  std::uint32_t timeout_s = 0;

  [[nodiscard]] static constexpr Outcome refreshed(std::uint32_t timeout_s) noexcept {
    return {Kind::refreshed, Reason::malformed, timeout_s};
  }
  [[nodiscard]] static constexpr Outcome invalid(Reason reason) noexcept { return {Kind::invalid, reason, 0}; }
};

}  // namespace penstock::conntrack
