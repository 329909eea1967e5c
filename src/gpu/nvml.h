// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The few facts that the CUDA runtime does not tell and NVIDIA's management library does. It comes with the driver and
// is looked for at run time; where it is missing, so are these facts.

#pragma once

#include <optional>
#include <string>

#include "gpu/devices.h"

namespace penstock::gpu {

/// "580.65.06", or empty.
[[nodiscard]] std::string nvidia_driver_version();

[[nodiscard]] std::optional<PcieLink> pcie_link(const std::string& pci_bus_id);

}  // namespace penstock::gpu
