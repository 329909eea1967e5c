// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/units.h"

namespace penstock::run {

namespace {

/// "core 4", "cores 4-7,12".
std::string core_list(const CpuList& cores) {
  return fmt::format("core{} {}", cores.size() == 1 ? "" : "s", format_cpu_list(cores));
}

class Placer {
 public:
  Placer(const CpuTopology& topology, unsigned workers, const std::vector<GpuPlace>& gpus)
      : topology_(topology), gpus_(gpus) {
    placement_.workers.resize(workers);
    for (unsigned w = 0; w < workers && !gpus.empty(); ++w) placement_.workers[w].gpu = gpu_of(w).index;
  }

  Placement place(const CpuList& cores) && {
    if (!cores.empty()) {
      pin(cores);
    } else {
      for (const GpuPlace& gpu : gpus_) bind_to_node_of(gpu);
    }
    if (topology_.has_several_nodes()) place_memory();
    return std::move(placement_);
  }

 private:
  [[nodiscard]] const GpuPlace& gpu_of(std::size_t worker) const { return gpus_[worker % gpus_.size()]; }

  void pin(const CpuList& cores) {
    for (std::size_t w = 0; w < placement_.workers.size(); ++w) {
      placement_.workers[w].cores = {cores[w]};
      placement_.workers[w].cores_node = topology_.node_of({cores[w]});
    }
    placement_.other_cores = difference(topology_.allowed, sorted(cores));
    if (placement_.other_cores.empty()) {
      placement_.notes.push_back({{},
                                  "cores: workers have all cores of this process, so its other threads run there too",
                                  core_list(sorted(cores)),
                                  "a core without a worker"});
    }
    note_shared_physical_cores(sorted(cores));
  }

  void note_shared_physical_cores(const CpuList& cores) {
    for (const CpuList& threads : topology_.physical_cores) {
      const CpuList shared = intersection(threads, cores);
      if (shared.size() < 2) continue;
      placement_.notes.push_back({{},
                                  "cores: threads of one physical core, which slow each other down",
                                  core_list(shared),
                                  "one thread of each physical core"});
    }
  }

  /// Workers of all GPUs on one node share its cores.
  void bind_to_node_of(const GpuPlace& gpu) {
    const NumaNode* const node = gpu.node ? topology_.node(*gpu.node) : nullptr;
    if (!topology_.has_several_nodes() || node == nullptr) return;
    std::vector<WorkerPlace*> here;
    for (std::size_t w = 0; w < placement_.workers.size(); ++w) {
      if (gpu_of(w).node == gpu.node) here.push_back(&placement_.workers[w]);
    }
    const CpuList cores = intersection(node->cpus, topology_.allowed);
    if (cores.size() >= here.size()) {
      for (WorkerPlace* const worker : here) {
        worker->cores = cores;
        worker->cores_node = node->number;
      }
    } else {
      warn_once(
          {{},
           fmt::format("workers of GPU {} are not bound to its NUMA node {}: too few cores there for this process",
                       gpu.index, node->number),
           fmt::format("{} for {}", cores.empty() ? "no core" : core_list(cores), format_count(here.size(), "worker")),
           fmt::format("{} of {}", format_count(here.size(), "core"), format_cpu_list(node->cpus))});
    }
  }

  void place_memory() {
    for (std::size_t w = 0; w < placement_.workers.size(); ++w) {
      WorkerPlace& worker = placement_.workers[w];
      const std::optional<unsigned> node = gpus_.empty() ? std::nullopt : gpu_of(w).node;
      worker.memory_node = node ? node : worker.cores_node;
      if (!node) continue;
      if (std::ranges::find(topology_.allowed_memory, *node) == topology_.allowed_memory.end()) {
        worker.memory_node = worker.cores_node;
        warn_once({{},
                   fmt::format("this process may not allocate memory on NUMA node {}, that of GPU {} (cpuset.mems)",
                               *node, *worker.gpu),
                   "",
                   ""});
      }
      if (worker.cores_node && worker.cores_node != node) {
        warn_once({{},
                   fmt::format("a worker runs on another NUMA node than its GPU {}, so it works on distant memory",
                               *worker.gpu),
                   fmt::format("{}, of node {}", core_list(worker.cores), *worker.cores_node),
                   fmt::format("a core of node {}", *node)});
      }
    }
  }

  void warn_once(Error warning) {
    const auto same = [&](const Error& other) { return other.message == warning.message; };
    if (std::ranges::none_of(placement_.warnings, same)) placement_.warnings.push_back(std::move(warning));
  }

  const CpuTopology& topology_;
  const std::vector<GpuPlace>& gpus_;
  Placement placement_;
};

}  // namespace

Placement place_workers(const CpuTopology& topology, unsigned workers, const CpuList& cores,
                        const std::vector<GpuPlace>& gpus) {
  return Placer(topology, workers, gpus).place(cores);
}

std::optional<unsigned> common_memory_node(const Placement& placement) noexcept {
  std::optional<unsigned> node;
  for (const WorkerPlace& worker : placement.workers) {
    if (&worker != placement.workers.data() && worker.memory_node != node) return std::nullopt;
    node = worker.memory_node;
  }
  return node;
}

std::string cores_text(const WorkerPlace& place) {
  if (place.cores.empty()) return "any core";
  return core_list(place.cores) + (place.cores_node ? fmt::format(" (NUMA node {})", *place.cores_node) : "");
}

}  // namespace penstock::run
