// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/units.h"

namespace penstock::cli {

namespace {

using State = Finding::State;

/// "cores 0-3", "core 2", "no core".
std::string core_list(const CpuList& cores) {
  if (cores.empty()) return "no core";
  return fmt::format("core{} {}", cores.size() == 1 ? "" : "s", format_cpu_list(cores));
}

/// Nodes of the machine, and whether memory can be placed on them.
void examine_nodes_and_memory(const Machine& machine, const CpuTopology& topology, std::vector<Finding>& findings) {
  if (!topology.has_several_nodes()) return;
  std::string nodes;
  for (const NumaNode& node : topology.nodes) {
    nodes += fmt::format("{}{}: {}, {}", nodes.empty() ? "" : "; ", node.number, core_list(node.cpus),
                         format_size(node.memory_bytes));
  }
  findings.push_back(make_finding(kCpuArea, "NUMA nodes", State::ok, nodes));
  if (machine.memory_policy_errno == 0) return;
  findings.push_back(make_finding(
      kCpuArea, "NUMA memory", State::missing,
      fmt::format("cannot choose the node of memory: {}", std::strerror(machine.memory_policy_errno)),
      "memory is on the node of the core that uses it first: that of the GPU, unless `cores` names others",
      machine.memory_policy_errno == EPERM
          ? "allow set_mempolicy and get_mempolicy in the container's seccomp profile: docker run --cap-add SYS_NICE"
          : "use a kernel with NUMA support (CONFIG_NUMA)"));
}

void examine_limits(const CpuTopology& topology, std::vector<Finding>& findings) {
  const CpuList others = difference(topology.online, topology.bindable());
  if (!others.empty()) {
    const bool by_cgroup = topology.cpuset && !difference(others, *topology.cpuset).empty();
    findings.push_back(make_finding(
        kCpuArea, "allowed cores", State::note,
        fmt::format("{} of {}, by {}", core_list(topology.bindable()), format_cpu_list(topology.online),
                    by_cgroup ? "the cpuset of this process's cgroup" : "the CPU affinity mask of this process"),
        "`cores` of a chain can name only these",
        by_cgroup ? "in a container, --cpuset-cpus; in a service, AllowedCPUs="
                  : "start it without taskset, or with more cores"));
  }
  if (topology.quota) {
    findings.push_back(make_finding(
        kCpuArea, "CPU time", State::missing, fmt::format("at most the time of {:.1f} cores (cgroup)", *topology.quota),
        "workers poll all the time; with as many workers or more, the kernel stops them for milliseconds",
        "remove the limit and use a cpuset instead: docker run --cpuset-cpus in place of --cpus; in Kubernetes, the "
        "static CPU manager policy"));
  }
}

void examine_threads(const CpuTopology& topology, std::vector<Finding>& findings) {
  CpuList first;
  std::size_t most = 1;
  for (const CpuList& threads : topology.physical_cores) {
    const CpuList allowed = intersection(threads, topology.bindable());
    if (allowed.empty()) continue;
    first.push_back(allowed.front());
    most = std::max(most, allowed.size());
  }
  if (most > 1) {
    std::ranges::sort(first);
    findings.push_back(
        make_finding(kCpuArea, "SMT", State::note, fmt::format("a physical core has {} threads", most),
                     "workers on threads of one physical core slow each other down",
                     fmt::format("one thread of each: `run: {{cores: \"{}\"}}`", format_cpu_list(first))));
  }
  const CpuList isolated = intersection(topology.isolated, topology.online);
  if (isolated.empty()) return;
  const CpuList usable = intersection(isolated, topology.bindable());
  if (usable.empty()) {
    findings.push_back(make_finding(kCpuArea, "isolated cores", State::missing,
                                    fmt::format("{}, which this process may not use", core_list(isolated)),
                                    "workers share their cores with other programs",
                                    fmt::format("in a container, --cpuset-cpus {}", format_cpu_list(isolated))));
  } else {
    findings.push_back(make_finding(kCpuArea, "isolated cores", State::note, core_list(usable),
                                    "they are not used unless a chain names them",
                                    fmt::format("`run: {{cores: \"{}\"}}`", format_cpu_list(usable))));
  }
}

}  // namespace

void examine_gpu_nodes(const CpuTopology& topology, const gpu::DeviceList& gpus, std::vector<Finding>& findings) {
  if (!topology.has_several_nodes()) return;
  for (const gpu::Device& device : gpus.devices) {
    const std::string name = fmt::format("gpu {} node", device.index);
    const NumaNode* const node = device.numa_node ? topology.node(*device.numa_node) : nullptr;
    if (node == nullptr) {
      findings.push_back(make_finding(
          kGpuArea, name, State::note, "Linux does not know its NUMA node", "workers and memory are not placed near it",
          "in a virtual machine, let the hypervisor pass on the nodes of devices; otherwise name "
          "cores in the chain file: `run: {cores: …}`"));
      continue;
    }
    const CpuList here = intersection(node->cpus, topology.allowed);
    const std::string what = fmt::format("NUMA node {}, {}", node->number, core_list(node->cpus));
    const bool has_memory = contains(topology.allowed_memory, node->number);
    if (here.empty()) {
      const std::string cores = format_cpu_list(node->cpus);
      findings.push_back(
          make_finding(kGpuArea, name, State::missing,
                       fmt::format("{}; this process may use only {}", what, core_list(topology.allowed)),
                       "workers run on another node than the GPU, and work on distant memory",
                       fmt::format("taskset -c {} penstock …; in a container, --cpuset-cpus {}", cores, cores)));
    } else if (!has_memory) {
      findings.push_back(make_finding(kGpuArea, name, State::missing,
                                      fmt::format("{}; this process may not allocate memory there (cpuset.mems)", what),
                                      "packets are copied to the GPU from another node",
                                      fmt::format("in a container, --cpuset-mems {}", node->number)));
    } else {
      findings.push_back(
          make_finding(kGpuArea, name, State::ok,
                       here == node->cpus ? what : fmt::format("{}; this process may use {}", what, core_list(here))));
    }
  }
}

void examine_cores(const Machine& machine, const CpuTopology& topology, std::vector<Finding>& findings) {
  examine_nodes_and_memory(machine, topology, findings);
  examine_limits(topology, findings);
  examine_threads(topology, findings);
}

void examine_placement(const run::Placement& placement, std::vector<Finding>& findings) {
  for (std::size_t w = 0; w < placement.workers.size(); ++w) {
    const run::WorkerPlace& place = placement.workers[w];
    std::string text = cores_text(place);
    if (place.gpu) text += fmt::format(", GPU {}", *place.gpu);
    if (place.memory_node) text += fmt::format(", memory on NUMA node {}", *place.memory_node);
    findings.push_back(make_finding(kChainArea, fmt::format("worker {}", w), State::ok, std::move(text)));
  }
  const auto add = [&](const Errors& remarks, State state) {
    for (const Error& remark : remarks) {
      findings.push_back(
          make_finding(kChainArea, "cores", state,
                       remark.found.empty() ? remark.message : fmt::format("{}: {}", remark.message, remark.found),
                       "packets or workers are slower", remark.expected));
    }
  };
  add(placement.warnings, State::missing);
  add(placement.notes, State::note);
}

}  // namespace penstock::cli
