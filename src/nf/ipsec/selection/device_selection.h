// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One direction's lookup tables on a device, shared by all of the device's GPU stages. Owns the device memory;
// immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "classify/bitvector_layout.h"
#include "classify/device_tables.h"
#include "gpu/memory.h"
#include "nf/ipsec/selection/selection.h"

namespace penstock::ipsec {

class DeviceSelection {
 public:
  /// Copies the tables to the current device. Throws CudaError.
  explicit DeviceSelection(const SelectionSpans& host);

  // For kernels, passed by value. The engine's `deciding_entry` returns a policy, or kNoPolicy.
  [[nodiscard]] classify::BitVectorView engine() const noexcept {
    return *std::get_if<classify::BitVectorView>(&engine_.engine());
  }
  [[nodiscard]] SelectionView view() const noexcept {
    return {policies_.data(), candidates_.data(), sas_.data(), selectors_.data()};
  }
  [[nodiscard]] std::uint32_t sas() const noexcept { return static_cast<std::uint32_t>(sas_.size()); }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  classify::DeviceTables engine_;
  gpu::DeviceBuffer<PolicyView> policies_;
  gpu::DeviceBuffer<std::uint32_t> candidates_;
  gpu::DeviceBuffer<SaView> sas_;
  gpu::DeviceBuffer<SelectorView> selectors_;
};

class DeviceInboundTable {
 public:
  /// Copies the table to the current device. Throws CudaError.
  explicit DeviceInboundTable(const InboundSpans& host);

  // For kernels, passed by value.
  [[nodiscard]] InboundView view() const noexcept {
    return {slots_.data(), static_cast<std::uint32_t>(slots_.size() - 1)};
  }
  [[nodiscard]] NatTraversalPorts ports() const noexcept { return {other_ports_.data()}; }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.size_bytes() + other_ports_.size_bytes(); }

 private:
  gpu::DeviceBuffer<SaSlot> slots_;
  gpu::DeviceBuffer<std::uint32_t> other_ports_;
};

}  // namespace penstock::ipsec
