// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong or odd with a TCP session, by Suricata's names (stream-events.rules).

#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::stack {

/// Index into the list of names in stream_event.cc.
struct StreamEvent {
  std::uint16_t index = 0;
};
inline constexpr std::size_t kMostStreamEvents = 128;
using StreamEvents = std::bitset<kMostStreamEvents>;

/// "3whs_synack_with_wrong_ack"; all that Suricata has.
[[nodiscard]] std::optional<StreamEvent> stream_event_of(std::string_view name) noexcept;

}  // namespace penstock::stack
