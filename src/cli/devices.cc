// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/devices.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_topology.h"
#include "base/machine.h"
#include "base/units.h"
#include "gpu/devices.h"
#include "gpu/pcie.h"
#include "report/text_table.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A GPU and, if measured, its PCIe rates.
struct Gpu {
  gpu::Device device;
  std::optional<gpu::PcieRates> pcie;
};

Json to_json(const Machine& machine, const CpuTopology& topology) {
  Json nodes = Json::array();
  for (const NumaNode& node : topology.nodes) {
    nodes.push_back({{"node", node.number},
                     {"cores", format_cpu_list(node.cpus)},
                     {"allowed_cores", format_cpu_list(intersection(node.cpus, topology.allowed))},
                     {"memory_bytes", node.memory_bytes}});
  }
  return {{"model", machine.cpu_model},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"simd", machine.simd},
          {"memory_bytes", machine.memory_bytes},
          {"numa_nodes", std::move(nodes)},
          {"isolated_cores", format_cpu_list(topology.isolated)}};
}

/// The cores on the GPU's NUMA node; null if it is unknown.
const NumaNode* node_of(const gpu::Device& device, const CpuTopology& topology) {
  return device.numa_node ? topology.node(*device.numa_node) : nullptr;
}

Json to_json(const Gpu& gpu, const CpuTopology& topology) {
  const gpu::Device& device = gpu.device;
  Json json{{"index", device.index},
            {"name", device.name},
            {"compute_capability", fmt::format("{}.{}", device.compute_major, device.compute_minor)},
            {"supported", device.supported},
            {"multiprocessors", device.multiprocessors},
            {"memory_bytes", device.memory_bytes},
            {"l2_bytes", device.l2_bytes},
            {"pci_bus_id", device.pci_bus_id},
            {"numa_node", nullptr},
            {"numa_cores", nullptr},
            {"pcie_link", nullptr},
            {"pcie_gb_per_s", nullptr}};
  if (device.numa_node) json["numa_node"] = *device.numa_node;
  if (const NumaNode* const node = node_of(device, topology)) json["numa_cores"] = format_cpu_list(node->cpus);
  if (device.link) json["pcie_link"] = {{"generation", device.link->generation}, {"width", device.link->width}};
  if (gpu.pcie) {
    json["pcie_gb_per_s"] = {
        {"to_device", gpu.pcie->to_device}, {"to_host", gpu.pcie->to_host}, {"both_each_way", gpu.pcie->both_each_way}};
  }
  return json;
}

void print_json(const Machine& machine, const CpuTopology& topology, const gpu::DeviceList& list,
                const std::vector<Gpu>& gpus) {
  Json devices = Json::array();
  for (const Gpu& gpu : gpus) devices.push_back(to_json(gpu, topology));
  const Json json{{"cpu", to_json(machine, topology)},
                  {"gpu",
                   {{"usable", list.availability == gpu::Availability::kUsable},
                    {"reason", list.reason},
                    {"driver", list.driver},
                    {"driver_cuda", list.driver_cuda},
                    {"runtime_cuda", list.runtime_cuda},
                    {"devices", devices}}}};
  fmt::print("{}\n", json.dump(2));
}

void print_nodes(const CpuTopology& topology) {
  if (topology.nodes.empty()) return;
  report::TextTable table({">NUMA node", ">memory", "cores", "allowed for this process"});
  for (const NumaNode& node : topology.nodes) {
    const CpuList allowed = intersection(node.cpus, topology.allowed);
    table.add_row({std::to_string(node.number), format_size(node.memory_bytes), format_cpu_list(node.cpus),
                   allowed.empty()        ? "none"
                   : allowed == node.cpus ? "all"
                                          : format_cpu_list(allowed)});
  }
  fmt::print("\n{}", table.text());
}

void print_table(const Machine& machine, const CpuTopology& topology, const gpu::DeviceList& list,
                 const std::vector<Gpu>& gpus) {
  constexpr const char* kRow = "{:<10} {:<28} {:>10} {:>10}  {}\n";
  fmt::print(kRow, "processor", "model", "cores", "memory", "also");
  fmt::print(kRow, "cpu", machine.cpu_model, machine.cores, format_size(machine.memory_bytes),
             fmt::format("{}", fmt::join(machine.simd, " ")));
  for (const auto& [device, pcie] : gpus) {
    std::string also = fmt::format("compute {}.{}, L2 {}, {}", device.compute_major, device.compute_minor,
                                   format_size(device.l2_bytes), device.pci_bus_id);
    if (device.link) also += fmt::format(", PCIe {} x{}", device.link->generation, device.link->width);
    if (device.numa_node) also += fmt::format(", NUMA node {}", *device.numa_node);
    if (const NumaNode* const node = node_of(device, topology))
      also += fmt::format(" (cores {})", format_cpu_list(node->cpus));
    if (!device.supported) also += ", too old for this program";
    fmt::print(kRow, fmt::format("gpu {}", device.index), device.name, fmt::format("{} SMs", device.multiprocessors),
               format_size(device.memory_bytes), also);
  }
  print_nodes(topology);
  for (const auto& [device, pcie] : gpus) {
    if (!pcie) continue;
    fmt::print(
        "\nPCIe of gpu {}, measured: {:.1f} GB/s to the device, {:.1f} GB/s to the host, {:.1f} GB/s each way at "
        "once\n",
        device.index, pcie->to_device, pcie->to_host, pcie->both_each_way);
  }
  if (!list.reason.empty()) fmt::print("\nNo GPU: {}. `penstock doctor` has details.\n", list.reason);
}

void devices(bool measure, bool json) {
  const Machine machine = look_at_machine();
  const CpuTopology topology = read_cpu_topology();
  const gpu::DeviceList list = gpu::list_devices();
  std::vector<Gpu> gpus;
  for (const gpu::Device& device : list.devices) {
    gpus.push_back({device, std::nullopt});
    if (measure && device.supported) gpus.back().pcie = gpu::measure_pcie(device.index);
  }
  if (json) {
    print_json(machine, topology, list, gpus);
  } else {
    print_table(machine, topology, list, gpus);
  }
}

}  // namespace

void add_devices(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List processors: memory, cores, NUMA nodes, measured PCIe rates");
  command->add_flag("--no-measure")
      ->description("skip the measurement of PCIe rates, which takes about a second per GPU");
  command->add_flag("--json")->description("print JSON instead of a table");
  command->callback([command, &exit_code] {
    devices(command->count("--no-measure") == 0, command->count("--json") > 0);
    exit_code = 0;
  });
}

}  // namespace penstock::cli
