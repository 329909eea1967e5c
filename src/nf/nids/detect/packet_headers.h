// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What packet_test reads of a packet's headers that takes more than a load.

#pragma once

#include <cstdint>
#include <optional>

#include "nf/nids/rules/packet_match.h"
#include "stack/decoded_packet.h"

namespace penstock::nids {

/// Whether the IPv4 header has the option. Options are walked as Suricata's decoder does: to their end, or to the first
/// that is not well-formed.
[[nodiscard]] bool has_ip_option(const IpOption& option, stack::Bytes ipv4_header) noexcept;

/// Of the first well-formed MSS option (RFC 9293 §3.2).
[[nodiscard]] std::optional<std::uint16_t> tcp_mss(stack::Bytes tcp_header) noexcept;

/// Whether the checksum is right, computed from the bytes; none where the packet has no such checksum, or is not whole.
[[nodiscard]] std::optional<bool> checksum_valid(ChecksumMatch::Of of, const stack::DecodedPacket& packet) noexcept;

}  // namespace penstock::nids
