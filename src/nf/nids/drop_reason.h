// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The reasons for which `nids` drops a frame.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stack/decoded_packet.h"

namespace penstock::nids {

/// In the order of kDropReasons, which has the names.
enum class DropReason : std::uint16_t {
  rule,
  changed_bytes,
  stream_invalid,
  flow_memory,
  stream_memory,
  fragment_memory,
  undecodable
};
inline constexpr std::array<std::string_view, 7> kDropReasons{
    "rule", "changed_bytes", "stream_invalid", "flow_memory", "stream_memory", "fragment_memory", "undecodable"};

/// The reason for a packet that the stack refuses. `refusal` is not Refusal::none.
[[nodiscard]] constexpr DropReason reason_of(stack::Refusal refusal) noexcept {
  switch (refusal) {
    case stack::Refusal::none:
    case stack::Refusal::fragment: return DropReason::rule;  // a rule dropped another fragment of the datagram
    case stack::Refusal::changed_bytes: return DropReason::changed_bytes;
    case stack::Refusal::invalid: return DropReason::stream_invalid;
    case stack::Refusal::flow_memory: return DropReason::flow_memory;
    case stack::Refusal::stream_memory: return DropReason::stream_memory;
    case stack::Refusal::fragment_memory: return DropReason::fragment_memory;
    case stack::Refusal::undecodable: return DropReason::undecodable;
  }
  return DropReason::rule;
}

}  // namespace penstock::nids
