// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What Linux says of this machine: the facts behind `penstock devices` and `penstock doctor`, GPUs aside
// (gpu/devices.h). What cannot be read keeps its default; nothing here fails.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct NetworkInterface {
  std::string name;
  std::string driver;  // empty for what has no hardware behind it
  bool up = false;
};

struct Machine {
  std::string cpu_model;
  unsigned cores = 0;             // physical
  unsigned threads = 0;           // that this process may run on
  std::vector<std::string> simd;  // the CPU flags that Penstock's libraries make use of
  std::uint64_t memory_bytes = 0;
  std::uint64_t available_memory_bytes = 0;

  std::string kernel;  // "6.1.0-18-amd64"
  std::uint64_t huge_page_bytes = 0;
  std::uint64_t huge_pages = 0;
  std::uint64_t free_huge_pages = 0;
  std::uint64_t capabilities = 0;                          // effective, a bit each (linux/capability.h)
  std::optional<std::uint64_t> locked_memory_limit_bytes;  // nothing: no limit

  int af_packet_errno = 0;  // of opening such a socket; 0: it opens
  int af_xdp_errno = 0;

  unsigned nvidia_pci_devices = 0;        // GPUs on the bus, whether or not a driver drives them
  std::vector<std::string> nvidia_nodes;  // "/dev/nvidia0", …
  bool nvidia_kernel_module = false;
  std::vector<NetworkInterface> interfaces;  // by name
};

/// `root` stands for "/" where the machine's files are read; the tests put a small tree of their own there.
[[nodiscard]] Machine look_at_machine(const std::filesystem::path& root = "/");

[[nodiscard]] constexpr bool has_capability(const Machine& machine, unsigned capability) noexcept {
  return (machine.capabilities >> capability & 1U) != 0;
}

}  // namespace penstock
