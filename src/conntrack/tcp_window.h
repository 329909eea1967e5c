// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which segments of a connection are plausible, from what was seen of both sides: four bounds, two of the data and two
// of the acknowledgment (Guido van Rooij, "Real Stateful TCP Packet Filtering in IP Filter", 2001, §4), with what Linux
// adds to them.

#pragma once

#include <cstdint>

#include "conntrack/connection.h"
#include "conntrack/tcp_segment.h"

namespace penstock::conntrack {

enum class WindowCheck : std::uint8_t {
  plausible,
  old,      // below a lower bound, or a little more than the window: passes, but changes nothing
  invalid,  // above an upper bound
};

/// Checks a segment of `direction`, and if it is plausible, takes over what it says. `liberal`: implausible segments
/// count as plausible, but nothing is taken over from them.
[[nodiscard]] WindowCheck check_window(TcpTracking& tcp, TcpState state, Direction direction, const TcpSegment& segment,
                                       bool liberal) noexcept;

}  // namespace penstock::conntrack
