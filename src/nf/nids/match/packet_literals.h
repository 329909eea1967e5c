// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the scan of a packet finds: the finding that a GPU stage leaves for the finish stage.

#pragma once

#include <cstdint>
#include <span>

#include "base/host_device.h"

namespace penstock::nids {

struct PacketLiterals {
  static constexpr std::uint16_t kMost = 7;
  static constexpr std::uint32_t kNone = 0xffff'ffff;  // what is behind the `count` literals

  enum Flag : std::uint16_t {
    kScanned = 1,    // the packet was looked at: without it nothing is known
    kTooMany = 2,    // there are more: `literals` are some of them
    kPayload = 4,    // what was looked at is the payload of TCP or UDP, of a packet that is no fragment
    kWithState = 8,  // literals that begin in the packet's flow state (flow_state.h) are among them
  };

  std::uint16_t count = 0;
  std::uint16_t flags = 0;
  std::uint32_t literals[kMost] = {kNone, kNone, kNone, kNone, kNone, kNone, kNone};  // distinct, in no order

  /// Whether `list` is all that there is in the packet.
  [[nodiscard]] bool complete() const noexcept { return (flags & (kScanned | kTooMany)) == kScanned; }
  [[nodiscard]] std::span<const std::uint32_t> list() const noexcept { return {literals, count}; }
  /// By one thread at a time.
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
