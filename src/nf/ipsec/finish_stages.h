// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is left to the host of a packet that a GPU stage has protected or opened, in the order of the packets: what the
// SA has carried and may carry, whether it is too long for the link, and inwards whether its number was received
// before.

#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "function/burst.h"
#include "function/network_function.h"
#include "nf/ipsec/esp/mtu.h"
#include "nf/ipsec/ipsec.h"

namespace penstock::ipsec {

class OutboundFinishStage final : public function::FinishStage {
 public:
  /// Borrows it.
  explicit OutboundFinishStage(Ipsec& ipsec) : ipsec_(ipsec), carried_(ipsec.make_counts()) {}
  void set_emitter(function::Emitter& emitter) noexcept override { emitter_ = &emitter; }
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;
  void take_back(std::span<PacketView> packets) noexcept override;

 private:
  Ipsec& ipsec_;
  const std::span<report::Traffic> carried_;
  function::Emitter* emitter_ = nullptr;                             // where there is an MTU
  std::array<const PacketDescriptor*, function::kBurst> protected_;  // of the burst that `finish` had last
  std::size_t protected_count_ = 0;
};

class InboundFinishStage final : public function::FinishStage {
 public:
  /// Borrows it.
  explicit InboundFinishStage(Ipsec& ipsec) : ipsec_(ipsec), carried_(ipsec.make_counts()) {}
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  Ipsec& ipsec_;
  const std::span<report::Traffic> carried_;
};

}  // namespace penstock::ipsec
