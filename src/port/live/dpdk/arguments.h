// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments with which DPDK's environment (EAL) starts: one environment for all `dpdk` ports of a process.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_list.h"
#include "base/error.h"

namespace penstock::port::dpdk {

/// What a chain file says for one port.
struct PortArguments {
  std::string device;
  Place device_place;
  std::vector<std::string> eal;
  std::vector<Place> eal_places;  // of each
};

/// "0000:81:00.0" for a PCI device, with whatever arguments follow it; "" for others.
[[nodiscard]] std::string pci_address(std::string_view device);
/// The name by which DPDK knows the device: without arguments, a PCI address in full.
[[nodiscard]] std::string device_name(std::string_view device);

/// The mistakes in a port's arguments, alone and together with those of the ports before it.
[[nodiscard]] Errors check_arguments(const PortArguments& port, std::span<const PortArguments* const> before);

/// The whole command line, for ports without mistakes. DPDK's threads run on `cpus`; it uses no others.
[[nodiscard]] std::vector<std::string> eal_arguments(std::span<const PortArguments* const> ports, const CpuList& cpus);

/// Those of the port's options that DPDK, which has been started for `started`, does not have.
[[nodiscard]] Errors check_started(const PortArguments& port, std::span<const std::string> started);

}  // namespace penstock::port::dpdk
