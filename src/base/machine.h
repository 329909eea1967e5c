// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What Linux reports about this machine, for `penstock devices` and `penstock doctor`. (GPUs: gpu/devices.h.) Values
// that cannot be read keep their defaults; nothing here fails.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct Machine {
  std::string cpu_model;
  unsigned cores = 0;             // physical
  unsigned threads = 0;           // logical CPUs that this process may run on
  std::vector<std::string> simd;  // CPU flags that Penstock's libraries use
  std::uint64_t memory_bytes = 0;
  std::uint64_t available_memory_bytes = 0;

  std::string kernel;  // "6.1.0-18-amd64"
  std::uint64_t huge_page_bytes = 0;
  std::uint64_t huge_pages = 0;
  std::uint64_t free_huge_pages = 0;
  std::uint64_t capabilities = 0;                          // effective capabilities, one bit each (linux/capability.h)
  std::optional<std::uint64_t> locked_memory_limit_bytes;  // empty: no limit

  int memory_policy_errno = 0;  // the error of choosing a NUMA node for memory; 0: success
  int af_packet_errno = 0;      // the error of opening an AF_PACKET socket; 0: success
  int af_xdp_errno = 0;
  int tap_errno = 0;  // the error of opening /dev/net/tun

  unsigned nvidia_pci_devices = 0;        // GPUs on the PCI bus, with or without a driver
  std::vector<std::string> nvidia_nodes;  // "/dev/nvidia0", …
  bool nvidia_kernel_module = false;
};

/// Reads the machine's files below `root`; tests pass a tree of their own.
[[nodiscard]] Machine look_at_machine(const std::filesystem::path& root = "/");

[[nodiscard]] constexpr bool has_capability(const Machine& machine, unsigned capability) noexcept {
  return (machine.capabilities >> capability & 1U) != 0;
}

}  // namespace penstock
