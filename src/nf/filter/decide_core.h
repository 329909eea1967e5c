// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// From the bitmap of the filters that match a packet to its verdict. For host and device.

#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/host_device.h"
#include "nf/filter/bpf/packet_bytes.h"
#include "packet/packet.h"

namespace penstock::filter {

/// The value of Verdict::drop.
enum class DropReason : std::uint16_t {
  filtered,   // by the first filter that matches, or because none does
  link_type,  // there is no program for frames of this link type
};
inline constexpr std::array<std::string_view, 2> kDropReasons{"filtered", "link_type"};

/// What happens to a packet that a filter decides. `pass` keeps the verdict, and so the port that was chosen before.
struct Action {
  enum class Kind : std::uint8_t { pass, drop, to } kind = Kind::pass;
  PortIndex port = kNoPort;  // for `to`
  friend bool operator==(const Action&, const Action&) = default;
};

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Verdict verdict_of(Action action, Verdict so_far) noexcept {
  switch (action.kind) {
    case Action::Kind::pass: break;
    case Action::Kind::drop: return Verdict::drop(DropReason::filtered);
    case Action::Kind::to: return Verdict::forward(action.port);
  }
  return so_far;
}

inline constexpr std::uint32_t kNoFilter = 0xffffffff;

/// The first filter that matches, by its bit in `words`; kNoFilter if none does.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t first_filter(const std::uint32_t* words,
                                                                     std::uint32_t count) noexcept {
  for (std::uint32_t w = 0; w < count; ++w) {
    if (words[w] == 0) continue;
#ifdef __CUDA_ARCH__
    return w * 32 + static_cast<std::uint32_t>(__ffs(static_cast<int>(words[w])) - 1);
#else
    return w * 32 + static_cast<std::uint32_t>(std::countr_zero(words[w]));
#endif
  }
  return kNoFilter;
}

/// What the programs see of a packet. With `headers_only`, it ends where the payload begins, like a capture that was
/// cut off there.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline PacketBytes bytes_of(PacketView packet, bool headers_only) noexcept {
  const std::uint32_t length = packet.length();
  const std::uint32_t headers = packet.layout().payload_offset;
  return {packet.frame, headers_only && headers < length ? headers : length, packet.packet->wire_length};
}

}  // namespace penstock::filter
