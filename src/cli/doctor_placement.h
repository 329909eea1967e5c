// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of `penstock doctor` about cores and NUMA nodes: what the machine has, what this process may use of it, and
// where the workers of a chain would be. Pure.

#pragma once

#include <vector>

#include "base/cpu_topology.h"
#include "base/machine.h"
#include "cli/finding.h"
#include "gpu/devices.h"
#include "run/placement.h"

namespace penstock::cli {

/// Whether this process may use cores and memory on the NUMA nodes of GPUs.
void examine_gpu_nodes(const CpuTopology& topology, const gpu::DeviceList& gpus, std::vector<Finding>& findings);
/// Nodes, limits of this process, threads of physical cores, isolated cores.
void examine_cores(const Machine& machine, const CpuTopology& topology, std::vector<Finding>& findings);
/// Where the workers of a chain would be, and what is wrong with that.
void examine_placement(const run::Placement& placement, std::vector<Finding>& findings);

}  // namespace penstock::cli
