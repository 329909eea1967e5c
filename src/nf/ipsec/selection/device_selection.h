// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a direction on a device: what all GPU stages of one device share. Owns the device's memory; immutable.

#pragma once

#include <cstdint>
#include <variant>

#include "classify/bitvector_layout.h"
#include "classify/device_tables.h"
#include "gpu/memory.h"
#include "nf/ipsec/selection/selection.h"

namespace penstock::ipsec {

class DeviceSelection {
 public:
  /// Copies them to the current device; throws CudaError.
  explicit DeviceSelection(const Selection& host);

  // To be passed by value to kernels. `deciding_entry` of the engine gives a policy, or kNoPolicy.
  [[nodiscard]] classify::BitVectorView engine() const noexcept {
    return *std::get_if<classify::BitVectorView>(&engine_.engine());
  }
  [[nodiscard]] SelectionView view() const noexcept {
    return {policies_.data(), candidates_.data(), sas_.data(), selectors_.data()};
  }

 private:
  classify::DeviceTables engine_;
  gpu::DeviceBuffer<PolicyView> policies_;
  gpu::DeviceBuffer<std::uint32_t> candidates_;
  gpu::DeviceBuffer<SaView> sas_;
  gpu::DeviceBuffer<SelectorView> selectors_;
};

class DeviceInboundTable {
 public:
  /// Copies it to the current device; throws CudaError.
  explicit DeviceInboundTable(const InboundTable& host);

  // To be passed by value to kernels.
  [[nodiscard]] InboundView view() const noexcept {
    return {slots_.data(), static_cast<std::uint32_t>(slots_.size() - 1)};
  }
  [[nodiscard]] NatTraversalPorts ports() const noexcept { return {other_ports_.data()}; }

 private:
  gpu::DeviceBuffer<SaSlot> slots_;
  gpu::DeviceBuffer<std::uint32_t> other_ports_;
};

}  // namespace penstock::ipsec
