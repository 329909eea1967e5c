// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is left to the host of a packet that a GPU stage has protected or opened, in the order of the packets: what the
// SA has carried and may carry, and inwards whether its number was received before.

#pragma once

#include <cstddef>
#include <span>

#include "chain/network_function.h"
#include "nf/ipsec/ipsec.h"

namespace penstock::ipsec {

class OutboundFinishStage final : public chain::FinishStage {
 public:
  /// Borrows it.
  explicit OutboundFinishStage(Ipsec& ipsec) noexcept : ipsec_(ipsec) {}
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  Ipsec& ipsec_;
};

class InboundFinishStage final : public chain::FinishStage {
 public:
  /// Borrows it.
  explicit InboundFinishStage(Ipsec& ipsec) noexcept : ipsec_(ipsec) {}
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  Ipsec& ipsec_;
};

}  // namespace penstock::ipsec
