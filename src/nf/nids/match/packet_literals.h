// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The result of scanning a packet: the finding that a GPU stage leaves for the finish stage.

#pragma once

#include <cstdint>
#include <span>

#include "base/host_device.h"

namespace penstock::nids {

struct PacketLiterals {
  static constexpr std::uint16_t kMost = 7;
  static constexpr std::uint32_t kNone = 0xffff'ffff;  // marks unused entries of `literals`

  enum Flag : std::uint16_t {
    kScanned = 1,    // the packet was scanned; without it, nothing is known
    kTooMany = 2,    // the packet has more literals than these
    kPayload = 4,    // the scanned bytes are the TCP or UDP payload of an unfragmented packet
    kWithState = 8,  // includes literals that begin in the packet's flow state (flow_state.h)
  };

  std::uint16_t count = 0;
  std::uint16_t flags = 0;
  std::uint32_t literals[kMost] = {kNone, kNone, kNone, kNone, kNone, kNone, kNone};  // distinct, unordered

  /// Whether `list` has all literals of the packet.
  [[nodiscard]] bool complete() const noexcept { return (flags & (kScanned | kTooMany)) == kScanned; }
  [[nodiscard]] std::span<const std::uint32_t> list() const noexcept { return {literals, count}; }
  /// Adds a literal. Only one thread may call it at a time.
  PENSTOCK_HOST_DEVICE void add(std::uint32_t literal) noexcept {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (literals[i] == literal) return;
    }
    if (count == kMost) {
      flags |= kTooMany;
    } else {
      literals[count++] = literal;
    }
  }
};
static_assert(sizeof(PacketLiterals) == 32);

}  // namespace penstock::nids
