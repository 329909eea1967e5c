// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts other bytes into the payload of a TCP segment, which may make it longer or shorter.

#pragma once

#include <cstdint>

#include "conntrack/tuple.h"
#include "packet/packet.h"

namespace penstock::conntrack {

/// Replaces `length` bytes of the payload, from `offset` on, by `with`, and updates lengths and checksums (RFC 1624) by
/// what has changed. The frame then ends with its IP packet: link-layer padding is gone. The packet is no fragment, and
/// not truncated; there is room after its frame. False, with the packet unchanged, if an IP packet cannot be so long.
[[nodiscard]] bool replace_payload(PacketView packet, std::uint32_t offset, std::uint32_t length, Bytes with) noexcept;

}  // namespace penstock::conntrack
