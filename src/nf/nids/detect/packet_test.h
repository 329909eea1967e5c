// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Evaluates rule options on a packet's headers and flow.

#pragma once

#include "nf/nids/rules/packet_match.h"
#include "nf/nids/rules/rule.h"
#include "stack/tracker.h"

namespace penstock::nids {

/// Tests protocol, addresses and ports; in both directions if the rule has `<>`.
[[nodiscard]] bool header_holds(const Rule& rule, const stack::TrackedPacket& packet) noexcept;
[[nodiscard]] bool protocol_holds(RuleProtocol protocol, const stack::DecodedPacket& packet) noexcept;
/// `in_stream`: the inspected bytes come from the stream (for only_stream and no_stream).
[[nodiscard]] bool flow_holds(const FlowMatch& match, const stack::TrackedPacket& packet, bool in_stream) noexcept;
[[nodiscard]] bool holds(const PacketMatch& match, const stack::TrackedPacket& packet) noexcept;
[[nodiscard]] bool in_range(const NumberRange& range, std::uint64_t value) noexcept;

/// The bytes of a buffer in the packet's headers; empty if the packet does not have it.
[[nodiscard]] stack::Bytes header_buffer(Buffer buffer, const stack::DecodedPacket& packet) noexcept;

}  // namespace penstock::nids
