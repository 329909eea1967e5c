// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of packets that only steps of rules read or write. All packets have a whole IP header.

#pragma once

#include <cstdint>
#include <optional>

#include "classify/step.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// Of IPv6's first routing header (RFC 8200 §4.4), if the packet has one in its first fragment.
[[nodiscard]] std::optional<std::uint8_t> routing_type_of(PacketView packet) noexcept;
/// The headers after the IPv6 header, as bits of classify::ExtensionHeader. Nothing for IPv4.
[[nodiscard]] std::optional<std::uint8_t> extension_headers_of(PacketView packet) noexcept;
/// The 16 bits of flags and offset: of the IPv4 header, or of IPv6's fragment header, if there is one.
[[nodiscard]] std::optional<std::uint16_t> fragment_field_of(PacketView packet) noexcept;

void set_field(PacketView packet, const classify::SetField& set) noexcept;

/// As xt_string: offsets are from the IP header on.
[[nodiscard]] bool has_text(PacketView packet, const classify::FindText& find) noexcept;

/// As xt_time.
[[nodiscard]] bool is_at(const classify::AtTime& at, std::uint64_t now_ns) noexcept;

}  // namespace penstock::firewall
