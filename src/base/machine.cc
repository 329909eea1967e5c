// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/cpu_topology.h"
#include "base/system_file.h"
#include "base/text_file.h"
#include "base/thread_placement.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// The files of a folder, sorted by name; empty if it cannot be read.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  return files;
}

std::uint64_t number(std::string_view text, int base = 10) {
  if (base == 16 && text.substr(0, 2) == "0x") text.remove_prefix(2);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

void look_at_cpu(const fs::path& root, Machine& machine) {
  constexpr std::array<std::string_view, 8> kSimd{"sse4_2",      "avx2",       "avx512f", "avx512bw",
                                                  "avx512_vbmi", "vpclmulqdq", "vaes",    "gfni"};
  std::set<std::pair<std::uint64_t, std::uint64_t>> cores;
  std::uint64_t package = 0;
  unsigned processors = 0;
  for_each_pair(system_file(root / "proc/cpuinfo"), [&](std::string_view key, std::string_view value) {
    if (key == "processor") ++processors;
    if (key == "model name" && machine.cpu_model.empty()) machine.cpu_model = value;
    if (key == "physical id") package = number(value);
    if (key == "core id") cores.emplace(package, number(value));
    if (key == "flags" && machine.simd.empty()) {
      for (const Word& flag : split_words(value))
        if (std::find(kSimd.begin(), kSimd.end(), flag.text) != kSimd.end()) machine.simd.emplace_back(flag.text);
    }
  });
  // Virtual machines often report one core id for all CPUs, or none.
  machine.cores = cores.size() > 1 ? static_cast<unsigned>(cores.size()) : processors;

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  machine.threads =
      sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? static_cast<unsigned>(CPU_COUNT(&allowed)) : processors;
}

/// Prefers some node that this process may use, for a moment. Returns 0, or the errno.
int try_memory_policy() {
  const std::vector<unsigned> nodes = read_cpu_topology().allowed_memory;
  return ThreadMemoryOnNode(nodes.empty() ? std::nullopt : std::optional(nodes.front())).error();
}

void look_at_memory(const fs::path& root, Machine& machine) {
  machine.memory_policy_errno = try_memory_policy();
  const std::map<std::string_view, std::pair<std::uint64_t*, std::uint64_t>> facts{
      {"MemTotal", {&machine.memory_bytes, 1024}},        {"MemAvailable", {&machine.available_memory_bytes, 1024}},
      {"Hugepagesize", {&machine.huge_page_bytes, 1024}}, {"HugePages_Total", {&machine.huge_pages, 1}},
      {"HugePages_Free", {&machine.free_huge_pages, 1}},
  };
  for_each_pair(system_file(root / "proc/meminfo"), [&](std::string_view key, std::string_view value) {
    if (const auto fact = facts.find(key); fact != facts.end())
      *fact->second.first = number(value) * fact->second.second;
  });
}

void look_at_process(const fs::path& root, Machine& machine) {
  for_each_pair(system_file(root / "proc/self/status"), [&](std::string_view key, std::string_view value) {
    if (key == "CapEff") machine.capabilities = number(value, 16);
  });
  rlimit limit{};
  machine.locked_memory_limit_bytes = 0;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    machine.locked_memory_limit_bytes = limit.rlim_cur;
    if (limit.rlim_cur == RLIM_INFINITY) machine.locked_memory_limit_bytes.reset();
  }
  utsname kernel{};
  if (uname(&kernel) == 0) machine.kernel = kernel.release;
}

void look_at_gpus(const fs::path& root, Machine& machine) {
  constexpr std::uint64_t kNvidia = 0x10de;
  constexpr std::uint64_t kDisplay = 0x03;  // PCI class of graphics and compute controllers
  for (const fs::path& device : files_of(root / "sys/bus/pci/devices")) {
    const bool is_nvidia = number(system_file(device / "vendor"), 16) == kNvidia;
    if (is_nvidia && number(system_file(device / "class"), 16) >> 16 == kDisplay) ++machine.nvidia_pci_devices;
  }
  for (const fs::path& node : files_of(root / "dev"))
    if (node.filename().string().starts_with("nvidia"))
      machine.nvidia_nodes.push_back("/dev/" + node.filename().string());
  std::error_code ignored;
  machine.nvidia_kernel_module = fs::exists(root / "proc/driver/nvidia/version", ignored);
}

/// Tries to open a raw socket of this family, and closes it at once. Returns 0, or the errno.
int try_socket(int family) {
  const int socket = ::socket(family, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  close(socket);
  return 0;
}

void look_at_sockets(const fs::path& root, Machine& machine) {
  machine.af_packet_errno = try_socket(AF_PACKET);
  machine.af_xdp_errno = try_socket(AF_XDP);
  machine.tap_errno = ::access((root / "dev/net/tun").c_str(), R_OK | W_OK) == 0 ? 0 : errno;
}

}  // namespace

Machine look_at_machine(const fs::path& root) {
  Machine machine;
  look_at_cpu(root, machine);
  look_at_memory(root, machine);
  look_at_process(root, machine);
  look_at_gpus(root, machine);
  look_at_sockets(root, machine);
  return machine;
}

}  // namespace penstock
