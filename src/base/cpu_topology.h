// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The logical CPUs and NUMA nodes of this machine, and which of them this process may use, from Linux's files below
// /sys and /proc. What cannot be read is empty; nothing here fails. All lists are sorted.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_list.h"

namespace penstock {

struct NumaNode {
  unsigned number = 0;
  CpuList cpus;  // online
  std::uint64_t memory_bytes = 0;
};

struct CpuTopology {
  CpuList present;
  CpuList online;
  CpuList isolated;  // by `isolcpus=`: the scheduler moves no thread to them
  /// Where the calling thread may run: its affinity mask, as set by taskset or inherited, without offline CPUs.
  CpuList allowed;
  std::optional<CpuList> cpuset;         // of the process's cgroup, which bounds every mask; empty: unknown
  std::optional<double> quota;           // CPU time per time that the cgroup grants (cpu.max); empty: no limit
  std::vector<CpuList> physical_cores;   // the online CPUs of each physical core, by their first
  std::vector<NumaNode> nodes;           // nodes with CPUs
  std::vector<unsigned> allowed_memory;  // nodes on which this process may allocate memory

  /// CPUs to which a thread of this process can be bound: the allowed ones and, unless the cpuset excludes them, the
  /// isolated ones, which no process inherits.
  [[nodiscard]] CpuList bindable() const;
  /// Why a thread cannot be bound to this CPU: "offline". Empty if it can.
  [[nodiscard]] std::string why_not_bindable(unsigned cpu) const;
  [[nodiscard]] const NumaNode* node(unsigned number) const noexcept;
  /// The node of all these CPUs; empty if they are on several nodes, or if it is unknown.
  [[nodiscard]] std::optional<unsigned> node_of(const CpuList& cpus) const noexcept;
  /// Whether threads and memory can be on different nodes.
  [[nodiscard]] bool has_several_nodes() const noexcept { return nodes.size() > 1; }
};

/// Reads the files below `root`; tests pass a tree of their own.
[[nodiscard]] CpuTopology read_cpu_topology(const std::filesystem::path& root = "/");

/// The NUMA node of a PCI device ("0000:C1:00.0"); empty if Linux does not know it.
[[nodiscard]] std::optional<unsigned> numa_node_of_pci(const std::string& bus_id,
                                                       const std::filesystem::path& root = "/");

}  // namespace penstock
