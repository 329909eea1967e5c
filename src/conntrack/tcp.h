// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The states of a TCP connection, by the segments of both sides (RFC 9293 §3.3.2, as seen from between the two hosts).

#pragma once

#include <cstdint>

#include "conntrack/connection.h"
#include "conntrack/options.h"
#include "conntrack/outcome.h"
#include "conntrack/tcp_segment.h"

namespace penstock::conntrack {

/// Whether a connection may begin with this segment.
[[nodiscard]] bool begins_tcp(const TcpSegment& segment, const Options& options) noexcept;
/// Prepares a new connection for its first segment, which track_tcp() then takes as any other.
void begin_tcp(Connection& connection, const TcpSegment& segment) noexcept;

/// `remaining_s`: until the connection expires.
[[nodiscard]] Outcome track_tcp(Connection& connection, Direction direction, const TcpSegment& segment,
                                const Options& options, std::uint64_t remaining_s) noexcept;

}  // namespace penstock::conntrack
