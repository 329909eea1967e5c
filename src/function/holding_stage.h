// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A CPU stage that cannot decide about some packets yet, because it lacks something that it expects to learn soon, such
// as the MAC address of their next hop. The chain does not drop these packets at once. It holds copies of them, bounded
// in number, bytes and time (run/held_packets.h), and gives them to the stage again at a later batch boundary. Then
// they go on to the functions after it, so a held packet passes each function once.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "packet/packet.h"

namespace penstock::function {

/// Implemented by stages beside CpuStage. In all epochs, either all stages of a function implement it or none. Such a
/// stage consumes no packets, and does not change those that it drops.
class HoldingStage {
 public:
  /// Of the function's drop reasons.
  struct Reasons {
    std::uint16_t lacking;  // the stage lacks something; the packet is dropped for this reason if it cannot be held
    std::uint16_t in_vain;  // the packet was held, but what it needs did not come
  };
  virtual ~HoldingStage() = default;
  [[nodiscard]] virtual Reasons reasons() const noexcept = 0;

  /// What the stage lacks for this packet, which has a parsed layout, and which it, or a device, has dropped as
  /// `lacking`. Packets with the same number wait for the same thing. Makes sure that it is asked for. Empty: nothing
  /// any more, as can happen if a device has decided.
  [[nodiscard]] virtual std::optional<std::uint64_t> lacks(PacketView packet) noexcept = 0;
  /// Whether the stage has learnt something since the last call, or this is the first one. Called after `begin_batch`.
  [[nodiscard]] virtual bool has_news() noexcept = 0;
  /// Like CpuStage::process, for packets that were held. `news`: they were held when `has_news` was last called, and it
  /// returned true. Then the stage may drop them as `in_vain`, if it has learnt that what they need will not come.
  virtual void process_again(std::span<PacketView> packets, bool news) noexcept = 0;
};

}  // namespace penstock::function
