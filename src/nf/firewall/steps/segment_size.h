// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP's option for the maximum segment size (RFC 9293 §3.7.1).

#pragma once

#include <cstdint>
#include <optional>

#include "packet/packet.h"

namespace penstock::firewall {

/// The value of the option. Empty if the packet has none: it is no TCP packet, it is a later fragment, or its options
/// are malformed before this one.
[[nodiscard]] std::optional<std::uint16_t> segment_size_of(PacketView packet) noexcept;

/// Writes the smaller one of the option's value and `most` to it, and updates the checksum. A packet without the option
/// gets none. False if it is no complete TCP header.
[[nodiscard]] bool lower_segment_size(PacketView packet, std::uint16_t most) noexcept;

}  // namespace penstock::firewall
