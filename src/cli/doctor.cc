// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/capability.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/doctor_interfaces.h"
#include "cli/doctor_placement.h"
#include "cli/doctor_xdp.h"
#include "config/chain_file.h"
#include "gpu/cuda_error.h"
#include "gpu/memory.h"
#include "gpu/mps.h"
#include "port/catalog.h"
#include "port/live/xdp_support.h"

namespace penstock::cli {
namespace {

using State = Finding::State;
using Availability = gpu::Availability;

constexpr std::string_view kOnCpu = "chains run on the CPU only";

Finding examine_program(const gpu::DeviceList& gpus) {
  if (gpus.availability == Availability::kBuiltWithoutCuda)
    return make_finding(kGpuArea, "program", State::missing, "built without CUDA", kOnCpu, "make setup build");
  return make_finding(kGpuArea, "program", State::ok, fmt::format("built with CUDA {}", gpus.runtime_cuda));
}

Finding examine_hardware(const Machine& machine, const gpu::DeviceList& gpus) {
  const std::size_t seen = std::max<std::size_t>(machine.nvidia_pci_devices, gpus.devices.size());
  if (seen == 0)
    return make_finding(kGpuArea, "hardware", State::missing, "no NVIDIA GPU on the PCI bus", kOnCpu,
                        "use a machine with a GPU, or pass one through to this virtual machine");
  return make_finding(kGpuArea, "hardware", State::ok, fmt::format("{} NVIDIA GPU{}", seen, seen == 1 ? "" : "s"));
}

Finding examine_driver(const Machine& machine, const gpu::DeviceList& gpus) {
  constexpr std::string_view kNewer = "install NVIDIA driver 580 or newer (it supports CUDA 13), and restart";
  switch (gpus.availability) {
    case Availability::kBuiltWithoutCuda:
      if (machine.nvidia_kernel_module)
        return make_finding(kGpuArea, "driver", State::ok, "the NVIDIA kernel module is loaded");
      return make_finding(kGpuArea, "driver", State::missing, "the NVIDIA kernel module is not loaded", kOnCpu, kNewer);
    case Availability::kNoDriver:
      if (machine.nvidia_kernel_module || !machine.nvidia_nodes.empty())
        return make_finding(
            kGpuArea, "driver", State::missing, "the kernel module is loaded, but libcuda.so.1 is not found", kOnCpu,
            "in a container, start it with the NVIDIA container toolkit (docker run --gpus all); otherwise reinstall "
            "the driver");
      return make_finding(kGpuArea, "driver", State::missing, gpus.reason, kOnCpu, kNewer);
    case Availability::kDriverTooOld:
      return make_finding(kGpuArea, "driver", State::missing, gpus.reason, kOnCpu, kNewer);
    default:
      return make_finding(kGpuArea, "driver", State::ok,
                          fmt::format("NVIDIA driver {}, CUDA {}",
                                      gpus.driver.empty() ? "of unknown version" : gpus.driver, gpus.driver_cuda));
  }
}

Finding examine_nodes(const Machine& machine) {
  if (machine.nvidia_nodes.empty())
    return make_finding(kGpuArea, "device files", State::missing, "no /dev/nvidia*", kOnCpu,
                        "sudo nvidia-modprobe -u -c 0; in a container, start it with the NVIDIA container toolkit");
  return make_finding(kGpuArea, "device files", State::ok, fmt::format("{}", fmt::join(machine.nvidia_nodes, " ")));
}

Finding examine_mps(bool is_installed) {
  if (is_installed) return make_finding(kGpuArea, "MPS", State::ok, "nvidia-cuda-mps-control is installed");
  return make_finding(kGpuArea, "MPS", State::note, "nvidia-cuda-mps-control is not installed",
                      "no `penstock proxy serve --mps`, so processes take turns on the GPU; it comes with NVIDIA's "
                      "driver (nvidia-compute-utils)");
}

void examine_devices(const gpu::DeviceList& gpus, const std::string& failure, std::vector<Finding>& findings) {
  for (const gpu::Device& device : gpus.devices) {
    const std::string name = fmt::format("gpu {}", device.index);
    const std::string what = fmt::format("{}, compute {}.{}, {}", device.name, device.compute_major,
                                         device.compute_minor, format_size(device.memory_bytes));
    if (!device.supported) {
      findings.push_back(make_finding(kGpuArea, name, State::missing,
                                      fmt::format("{}: this program has no code for such an old GPU", what),
                                      "this GPU is not used", "use a GPU of compute capability 8.0 or newer"));
    } else if (!failure.empty()) {
      findings.push_back(make_finding(kGpuArea, name, State::missing, fmt::format("{}: {}", what, failure), kOnCpu,
                                      "nvidia-smi shows which processes use the GPU and whether it is healthy"));
    } else {
      findings.push_back(
          make_finding(kGpuArea, name, State::ok, fmt::format("{}: a test copy to the GPU and back succeeded", what)));
    }
  }
  // Any other status of the driver; the remaining reasons are covered above.
  if (gpus.availability == Availability::kNoDevice)
    findings.push_back(make_finding(kGpuArea, "devices", State::missing, gpus.reason, kOnCpu,
                                    "check CUDA_VISIBLE_DEVICES, and that nvidia-smi -L lists the GPU"));
  if (gpus.availability == Availability::kFailed)
    findings.push_back(make_finding(kGpuArea, "devices", State::missing, gpus.reason, kOnCpu,
                                    "look for driver errors with nvidia-smi and in the kernel's log (sudo dmesg)"));
}

void examine_gpu(const Machine& machine, const gpu::DeviceList& gpus, const std::string& failure,
                 std::vector<Finding>& findings) {
  findings.push_back(examine_program(gpus));
  findings.push_back(examine_hardware(machine, gpus));
  findings.push_back(examine_driver(machine, gpus));
  // If there is neither a GPU nor a driver, missing device files are expected.
  const bool is_of_interest = machine.nvidia_pci_devices > 0 || machine.nvidia_kernel_module || !gpus.devices.empty();
  if (is_of_interest) findings.push_back(examine_nodes(machine));
  examine_devices(gpus, failure, findings);
  if (is_of_interest) findings.push_back(examine_mps(gpu::is_mps_installed()));
}

void examine_cpu(const Machine& machine, const CpuTopology& topology, std::vector<Finding>& findings) {
  findings.push_back(
      make_finding(kCpuArea, "cores", State::ok,
                   fmt::format("{}, {} for this process: at most {} in parallel", format_count(machine.cores, "core"),
                               format_count(machine.threads, "thread"), format_count(machine.threads, "worker"))));
  examine_cores(machine, topology, findings);
  const bool has_avx2 = std::find(machine.simd.begin(), machine.simd.end(), "avx2") != machine.simd.end();
  if (has_avx2) {
    findings.push_back(make_finding(kCpuArea, "SIMD", State::ok, fmt::format("{}", fmt::join(machine.simd, " "))));
  } else {
    findings.push_back(
        make_finding(kCpuArea, "SIMD", State::note, "no AVX2", "pattern matching and ciphers on the CPU are slower"));
  }
  findings.push_back(make_finding(
      kCpuArea, "memory", State::ok,
      fmt::format("{} free of {}", format_size(machine.available_memory_bytes), format_size(machine.memory_bytes))));
}

void examine_capabilities(const Machine& machine, std::vector<Finding>& findings) {
  struct Need {
    unsigned capability;
    std::string_view name;
    std::string_view for_what;
  };
  constexpr std::array<Need, 3> kNeeds{{
      {CAP_NET_RAW, "CAP_NET_RAW", "AF_PACKET and AF_XDP ports cannot be opened"},
      {CAP_NET_ADMIN, "CAP_NET_ADMIN", "TAP interfaces cannot be created, nor SAs read from the kernel"},
      {CAP_BPF, "CAP_BPF", "programs for AF_XDP ports, and for several workers of other ports, cannot be loaded"},
  }};
  for (const auto& [capability, name, for_what] : kNeeds) {
    // CAP_SYS_ADMIN includes CAP_BPF.
    const bool has =
        has_capability(machine, capability) || (capability == CAP_BPF && has_capability(machine, CAP_SYS_ADMIN));
    findings.push_back(
        has ? make_finding(kLiveArea, name, State::ok, "this process has it")
            : make_finding(kLiveArea, name, State::missing, "this process does not have it", for_what,
                           "run as root, or: sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep PENSTOCK"));
  }
}

Finding examine_ports() {
  constexpr std::array<std::string_view, 4> kLive{"af_packet", "tap", "af_xdp", "dpdk"};
  std::vector<std::string_view> built;
  std::ranges::copy_if(kLive, std::back_inserter(built),
                       [](std::string_view name) { return port::find_kind(name) != nullptr; });
  return make_finding(kLiveArea, "ports", State::note, fmt::format("this build has {}", fmt::join(built, ", ")));
}

Finding examine_tap(int error) {
  if (error == 0) return make_finding(kLiveArea, "TAP", State::ok, "/dev/net/tun can be opened");
  return make_finding(kLiveArea, "TAP", State::missing, fmt::format("/dev/net/tun: {}", std::strerror(error)),
                      "no tap port", error == ENOENT ? "sudo modprobe tun" : "access to this device");
}

Finding examine_socket(std::string_view name, int error) {
  if (error == 0) return make_finding(kLiveArea, name, State::ok, "a socket can be opened");
  const std::string found = fmt::format("cannot open a socket: {}", std::strerror(error));
  const std::string means = fmt::format("no {} port", name);
  if (error == EPERM)
    return make_finding(kLiveArea, name, State::missing, found, means, "it requires CAP_NET_RAW, see above");
  return make_finding(kLiveArea, name, State::missing, found, means,
                      "use a kernel that supports it (AF_XDP: Linux 5.9 or newer)");
}

Finding examine_locked_memory(const Machine& machine) {
  constexpr std::uint64_t kEnough = std::uint64_t{64} << 20;
  if (!machine.locked_memory_limit_bytes || has_capability(machine, CAP_IPC_LOCK))
    return make_finding(kLiveArea, "locked memory", State::ok, "no limit for this process");
  const std::uint64_t limit = *machine.locked_memory_limit_bytes;
  const std::string found = fmt::format("at most {}", format_size(limit));
  if (limit >= kEnough) return make_finding(kLiveArea, "locked memory", State::ok, found);
  return make_finding(kLiveArea, "locked memory", State::missing, found, "an AF_XDP port's packet memory does not fit",
                      "ulimit -l unlimited (as root), or LimitMEMLOCK=infinity in the service");
}

Finding examine_huge_pages(const Machine& machine) {
  const std::string size = format_size(machine.huge_page_bytes);
  if (machine.free_huge_pages > 0)
    return make_finding(kLiveArea, "huge pages", State::ok,
                        fmt::format("{} of {} pages of {} free", machine.free_huge_pages, machine.huge_pages, size));
  const std::string found = machine.huge_pages > 0
                                ? fmt::format("all {} pages of {} are in use", machine.huge_pages, size)
                                : std::string("none are reserved");
  return make_finding(kLiveArea, "huge pages", State::missing, found, "a DPDK port uses small pages and is slower",
                      "sudo sysctl -w vm.nr_hugepages=1024");
}

/// Uses each listed device, and returns why one cannot be used; empty if all can.
std::string try_devices(const gpu::DeviceList& gpus) {
  constexpr std::array<int, 4> kValues{2, 3, 5, 7};
  try {
    for (const gpu::Device& device : gpus.devices) {
      if (!device.supported) continue;
      gpu::use_device(device.index);
      const gpu::DeviceBuffer<int> there{std::span<const int>(kValues)};
      const std::vector<int> back = there.to_host();
      if (!std::equal(back.begin(), back.end(), kValues.begin(), kValues.end()))
        return "a test copy to the GPU and back returned wrong data";
    }
  } catch (const gpu::CudaError& error) {
    return error.what();
  }
  return {};
}

std::string_view name_of(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::missing: return "missing";
    case State::note: return "note";
  }
  return "";
}

void print_text(const std::vector<Finding>& findings) {
  std::string_view area;
  for (const Finding& finding : findings) {
    if (finding.area != area) fmt::print("{}{}\n", area.empty() ? "" : "\n", finding.area);
    area = finding.area;
    fmt::print("  {:<8} {:<14} {}\n", name_of(finding.state), finding.subject, finding.found);
    if (!finding.means.empty()) fmt::print("  {:<8} {:<14} means: {}\n", "", "", finding.means);
    if (!finding.fix.empty()) fmt::print("  {:<8} {:<14} fix:   {}\n", "", "", finding.fix);
  }
}

void print_json(const std::vector<Finding>& findings, const std::vector<port::XdpInterface>& interfaces) {
  auto json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"area", finding.area},
                    {"subject", finding.subject},
                    {"state", name_of(finding.state)},
                    {"found", finding.found},
                    {"means", finding.means},
                    {"fix", finding.fix}});
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"findings", json}, {"interfaces", interfaces_json(interfaces)}}.dump(2));
}

}  // namespace

std::vector<Finding> examine(const Machine& machine, const CpuTopology& topology, const gpu::DeviceList& gpus,
                             const std::string& gpu_failure) {
  std::vector<Finding> findings;
  examine_gpu(machine, gpus, gpu_failure, findings);
  examine_gpu_nodes(topology, gpus, findings);
  examine_cpu(machine, topology, findings);
  findings.push_back(examine_ports());
  examine_capabilities(machine, findings);
  findings.push_back(examine_socket("AF_PACKET", machine.af_packet_errno));
  findings.push_back(examine_socket("AF_XDP", machine.af_xdp_errno));
  findings.push_back(examine_tap(machine.tap_errno));
  findings.push_back(examine_locked_memory(machine));
  findings.push_back(examine_huge_pages(machine));
  return findings;
}

namespace {

struct DoctorArguments {
  std::string chain;
  function::NfKinds functions;
  bool json = false;
};

int examine_all(const DoctorArguments& arguments) {
  std::optional<config::LoadedChain> loaded;
  if (!arguments.chain.empty()) {
    config::LoadOptions options;
    options.functions = arguments.functions;
    auto chain = config::load_chain(arguments.chain, options);
    if (!chain) return refuse(chain.error());
    loaded = std::move(*chain);
  }
  const gpu::DeviceList gpus = gpu::list_devices();
  const Machine machine = look_at_machine();
  const std::vector<port::XdpInterface> interfaces = port::list_xdp_interfaces();
  std::vector<Finding> findings = examine(machine, read_cpu_topology(), gpus, try_devices(gpus));
  examine_interfaces(list_interfaces(), findings);
  examine_xdp(interfaces, machine.kernel, findings);
  if (loaded) examine_placement(loaded->chain.settings.placement, findings);
  arguments.json ? print_json(findings, interfaces) : print_text(findings);
  return kDone;
}

}  // namespace

void add_doctor(CLI::App& app, function::NfKinds functions, int& exit_code) {
  auto arguments = std::make_shared<DoctorArguments>();
  arguments->functions = functions;
  CLI::App* command =
      app.add_subcommand("doctor", "Report what Penstock cannot use on this machine, why, and how to fix it");
  command->add_option("CHAIN.yaml", arguments->chain, "also report where the workers of this chain would run");
  command->add_flag("--json", arguments->json, "print JSON instead of text");
  command->callback([arguments, &exit_code] { exit_code = examine_all(*arguments); });
}

}  // namespace penstock::cli
