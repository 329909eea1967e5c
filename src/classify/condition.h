// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What engines can test of a packet. Plain data, for host and device.

#pragma once

#include <cstdint>

namespace penstock::classify {

/// What a condition tests. A condition that does not apply to a packet (a port of a packet without ports, an IPv6
/// address of an IPv4 packet) does not hold, negated or not.
enum class Subject : std::uint8_t {
  source4,           // low..high
  destination4,      // low..high
  source6,           // ranges6[index]
  destination6,      // ranges6[index]
  source_port,       // port_ranges[index, index + count)
  destination_port,  // port_ranges[index, index + count)
  protocol,          // (protocol ^ low) & high == 0
  detail,            // of protocol `index`: (detail ^ low) & high == 0; see Key::detail
  transport,         // the packet has a transport header: it is not a later fragment
  later_fragment,    // a fragment that is not the first
  in_port,           // bit min(port, kOtherPort) of high:low
  out_port,          // bit min(port, kOtherPort) of high:low
  connection,        // bit Key::connection of high:low; see connection.h
};

/// Interfaces are sets of ports, as 64 bits. The last bit stands for no port, or one that rules cannot name.
inline constexpr std::uint32_t kOtherPort = 63;

struct Condition {
  Subject subject = Subject::protocol;
  bool negated = false;
  std::uint16_t count = 0;
  std::uint32_t index = 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};
static_assert(sizeof(Condition) == 16);

}  // namespace penstock::classify
