// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Host work that remains, in packet order, after a GPU stage has protected or opened a packet: SA lifetimes and
// counters, the MTU check, and inbound the replay check.

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
  /// Borrows `ipsec`.
  explicit OutboundFinishStage(Ipsec& ipsec) : ipsec_(ipsec), carried_(ipsec.make_counts()) {}
  void set_emitter(function::Emitter& emitter) noexcept override { emitter_ = &emitter; }
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;
  void take_back(std::span<PacketView> packets) noexcept override;

 private:
  Ipsec& ipsec_;
  const std::span<report::Traffic> carried_;
  function::Emitter* emitter_ = nullptr;                             // set only if there is an MTU
  std::array<const PacketDescriptor*, function::kBurst> protected_;  // of the last burst given to `finish`
  std::size_t protected_count_ = 0;
};

class InboundFinishStage final : public function::FinishStage {
 public:
  /// Borrows `ipsec`.
  explicit InboundFinishStage(Ipsec& ipsec) : ipsec_(ipsec), carried_(ipsec.make_counts()) {}
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  Ipsec& ipsec_;
  const std::span<report::Traffic> carried_;
};

}  // namespace penstock::ipsec
