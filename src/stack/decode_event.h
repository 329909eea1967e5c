// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong or odd with a packet's headers, by Suricata's names (decode-events.rules).

#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::stack {

/// Index into the list of names in decode_event.cc.
struct DecodeEvent {
  std::uint16_t index = 0;
};
inline constexpr std::size_t kMostDecodeEvents = 256;
using DecodeEvents = std::bitset<kMostDecodeEvents>;

/// "ipv4.pkt_too_small"; all that Suricata has, those too that the decoder never sets.
[[nodiscard]] std::optional<DecodeEvent> decode_event_of(std::string_view name) noexcept;

}  // namespace penstock::stack
