// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a network function decides about a packet.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock {

/// Index of a port in the chain file's order.
using PortIndex = std::uint16_t;

/// No port chosen yet: the chain's wiring decides at its end.
inline constexpr PortIndex kNoPort = 0xffff;

enum class VerdictKind : std::uint8_t {
  forward,  // go on to the next NF; out by `value`, a PortIndex, or kNoPort
  drop,     // `value` indexes the NF's list of drop reasons
  punt,     // finish this packet on the CPU path
  consume,  // the NF keeps it (a fragment that waits for its others): neither forwarded nor lost
};

/// `nf` is filled in by the executor: the position in the chain of the NF that decided.
struct Verdict {
  VerdictKind kind = VerdictKind::forward;
  std::uint8_t nf = 0;
  std::uint16_t value = kNoPort;

  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr Verdict forward(PortIndex port = kNoPort) noexcept {
    return {VerdictKind::forward, 0, port};
  }
  /// `reason`: an enumerator whose value indexes NfTraits::drop_reasons.
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
