// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A few facts that the CUDA runtime does not report, from NVIDIA's management library. The library comes with the
// driver and is loaded at run time; without it, these facts are unknown.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gpu/devices.h"

namespace penstock::gpu {

/// "580.65.06", or empty if unknown.
[[nodiscard]] std::string nvidia_driver_version();

[[nodiscard]] std::optional<PcieLink> pcie_link(const std::string& pci_bus_id);

/// How busy a GPU is.
class Utilization {
 public:
  explicit Utilization(const std::string& pci_bus_id);
  Utilization(const Utilization&) = delete;
  Utilization& operator=(const Utilization&) = delete;
  ~Utilization();

  /// The percentage of the last sampling period, of up to a second, in which a kernel was running; empty if unknown.
  [[nodiscard]] std::optional<unsigned> percent() const noexcept;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace penstock::gpu
