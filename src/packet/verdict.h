// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The decision of a network function about a packet.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock {

/// The index of a port in the order of the chain file.
using PortIndex = std::uint16_t;

/// No port was chosen; the wiring at the end of the chain decides.
inline constexpr PortIndex kNoPort = 0xffff;

enum class VerdictKind : std::uint8_t {
  forward,  // to the next function, and out by `value`, a PortIndex or kNoPort
  drop,     // `value` is an index of the function's drop reasons
  punt,     // finish this packet on the CPU path
  consume,  // the function keeps it (such as a fragment that waits for others): neither forwarded nor lost
};

/// The executor sets `nf`, the position in the chain of the function that decided.
struct Verdict {
  VerdictKind kind = VerdictKind::forward;
  std::uint8_t nf = 0;
  std::uint16_t value = kNoPort;

  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr Verdict forward(PortIndex port = kNoPort) noexcept {
    return {VerdictKind::forward, 0, port};
  }
  /// `reason` is an enumerator whose value is an index of NfTraits::drop_reasons.
  template <typename Reason>
  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr Verdict drop(Reason reason) noexcept {
    return {VerdictKind::drop, 0, static_cast<std::uint16_t>(reason)};
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr Verdict punt() noexcept { return {VerdictKind::punt, 0, 0}; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr Verdict consume() noexcept {
    return {VerdictKind::consume, 0, 0};
  }

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool alive() const noexcept { return kind == VerdictKind::forward; }

  friend constexpr bool operator==(const Verdict&, const Verdict&) = default;
};
static_assert(sizeof(Verdict) == 4);

}  // namespace penstock
