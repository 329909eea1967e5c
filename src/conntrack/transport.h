// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What tracking reads of a packet, and which packets are invalid whatever their connection is.

#pragma once

#include <cstdint>
#include <optional>

#include "conntrack/outcome.h"
#include "conntrack/tuple.h"
#include "packet/packet.h"

namespace penstock::conntrack {

struct Transport {
  Tuple tuple;
  Bytes bytes;               // transport header and what follows, as far as it was captured
  std::uint32_t length = 0;  // of that on the wire
};

/// The addresses of an IP packet, whose header is present.
void read_addresses(PacketView packet, Tuple& tuple) noexcept;

/// `packet` is an IP packet with a valid IP header, and not a later fragment; `transport` is default-constructed. False
/// if its transport header is too short to be tracked.
[[nodiscard]] bool read_transport(PacketView packet, Transport& transport) noexcept;

/// Why the packet is invalid, if it is. Checksums are checked where all bytes are there: not of truncated packets, and
/// not of fragments.
[[nodiscard]] std::optional<Reason> find_error(PacketView packet, const Transport& transport,
                                               bool check_checksum) noexcept;

}  // namespace penstock::conntrack
