// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the threads and the memory of a run are to be: decided before it, from the machine's topology, and applied by
// run.cc. Cores are logical CPUs.
//
// With `cores`, each worker is bound to one core, and all other threads stay off these cores. Without, workers that use
// a GPU are bound to all cores of its NUMA node, if the machine has several nodes and this one has a core for each of
// them; the scheduler chooses among these. In both cases the memory of a worker that uses a GPU is on the GPU's node.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cpu_topology.h"
#include "base/error.h"

namespace penstock::run {

struct WorkerPlace {
  CpuList cores{};                       // where its thread runs; empty: wherever the process may
  std::optional<unsigned> cores_node{};  // the NUMA node of all its cores
  std::optional<int> gpu{};              // the device that it uses
  /// The node for its memory. Empty: unknown, or that of the core that touches it first.
  std::optional<unsigned> memory_node{};
};

struct Placement {
  std::vector<WorkerPlace> workers;  // empty: nothing is bound
  CpuList other_cores{};             // for all other threads of the run; empty: wherever the process may
  Errors warnings{};                 // what makes packets or workers slower, without places
  Errors notes{};                    // what may be intended
};

/// The node for the memory of all workers; empty if it is not the same.
[[nodiscard]] std::optional<unsigned> common_memory_node(const Placement& placement) noexcept;

/// A GPU that workers use, and its NUMA node if it is known.
struct GpuPlace {
  int index = 0;
  std::optional<unsigned> node;
};

/// `cores`: one for each worker in order, each of which can be bound to; empty: by default. Worker w uses GPU w modulo
/// their number; none: the chain runs on CPUs.
[[nodiscard]] Placement place_workers(const CpuTopology& topology, unsigned workers, const CpuList& cores,
                                      const std::vector<GpuPlace>& gpus);

/// "core 3 (NUMA node 0)", "cores 4-7,12-15 (NUMA node 1)", "any core".
[[nodiscard]] std::string cores_text(const WorkerPlace& place);

}  // namespace penstock::run
