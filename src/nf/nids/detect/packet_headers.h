// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads of packet headers for packet_test that take more than a load.

#pragma once

#include <cstdint>
#include <optional>

#include "nf/nids/rules/packet_match.h"
#include "stack/decoded_packet.h"

namespace penstock::nids {

/// Whether the IPv4 header has the option. Walks the options as Suricata's decoder does: up to their end or the first
/// malformed one.
[[nodiscard]] bool has_ip_option(const IpOption& option, stack::Bytes ipv4_header) noexcept;

/// The value of the first well-formed MSS option (RFC 9293 §3.2).
[[nodiscard]] std::optional<std::uint16_t> tcp_mss(stack::Bytes tcp_header) noexcept;

/// Whether the checksum is correct, computed from the bytes. Empty if the packet has no such checksum or is truncated.
[[nodiscard]] std::optional<bool> checksum_valid(ChecksumMatch::Of of, const stack::DecodedPacket& packet) noexcept;

}  // namespace penstock::nids
