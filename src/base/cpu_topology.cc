// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/cpu_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/ascii.h"
#include "base/system_file.h"
#include "base/text_file.h"
#include "base/units.h"

namespace penstock {

namespace {

namespace fs = std::filesystem;

/// Empty if the file is not there, or has no list.
std::optional<CpuList> list_in(const fs::path& path) {
  const std::string text = system_file(path);
  auto list = parse_cpu_list(trimmed(text));
  if (list) std::ranges::sort(*list);
  return list;
}

std::optional<double> number_in(std::string_view text) { return parse_number(trimmed(text)); }

/// The numbers N of the entries PREFIXN of a folder.
std::vector<unsigned> numbers_of(const fs::path& folder, std::string_view prefix) {
  std::vector<unsigned> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    unsigned number = 0;
    const char* const last = name.data() + name.size();
    const auto read = std::from_chars(name.data() + prefix.size(), last, number);
    if (read.ec == std::errc() && read.ptr == last && number < kMostCpus) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::uint64_t memory_of(const fs::path& node) {
  // "Node 0 MemTotal:       16214220 kB"
  const std::string text = system_file(node / "meminfo");
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    const std::vector<Word> words = split_words(line.text);
    if (words.size() >= 4 && words[2].text == "MemTotal:") return parse_integer(words[3].text).value_or(0) * 1024;
  }
  return 0;
}

void read_nodes(const fs::path& root, CpuTopology& topology) {
  const fs::path folder = root / "sys/devices/system/node";
  for (const unsigned number : numbers_of(folder, "node")) {
    const fs::path node = folder / fmt::format("node{}", number);
    CpuList cpus = intersection(list_in(node / "cpulist").value_or(CpuList()), topology.online);
    topology.allowed_memory.push_back(number);
    if (!cpus.empty()) topology.nodes.push_back({number, std::move(cpus), memory_of(node)});
  }
}

void read_physical_cores(const fs::path& cpus, CpuTopology& topology) {
  std::vector<bool> seen(kMostCpus);
  for (const unsigned cpu : topology.online) {
    if (seen[cpu]) continue;
    const fs::path siblings = cpus / fmt::format("cpu{}/topology/thread_siblings_list", cpu);
    CpuList core = intersection(list_in(siblings).value_or(CpuList{cpu}), topology.online);
    if (!contains(core, cpu)) core = {cpu};
    for (const unsigned sibling : core) seen[sibling] = true;
    topology.physical_cores.push_back(std::move(core));
  }
}

void read_process(const fs::path& root, CpuTopology& topology) {
  topology.allowed = topology.online;
  const std::string status = system_file(root / "proc/thread-self/status");
  for_each_pair(status, [&](std::string_view key, std::string_view value) {
    const bool is_cpus = key == "Cpus_allowed_list";
    if (!is_cpus && key != "Mems_allowed_list") return;
    std::vector<unsigned>& allowed = is_cpus ? topology.allowed : topology.allowed_memory;
    if (const auto numbers = parse_cpu_list(value)) allowed = intersection(allowed, sorted(*numbers));
  });
}

/// The process's cgroup in a hierarchy: the path after "0::" (version 2) or "3:cpuset:" (version 1).
std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller) {
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    const std::vector<std::string_view> parts = split(line.text, ':');
    if (parts.size() < 3) continue;
    const auto controllers = split(parts[1], ',');
    if (std::ranges::find(controllers, controller) == controllers.end()) continue;
    return std::string(line.text.substr(parts[0].size() + parts[1].size() + 2));
  }
  return std::nullopt;
}

/// Calls `visit` for the folder of the cgroup and of its ancestors. In a container, the path may be one of the host, of
/// which only the root is there.
template <typename Visit>
void visit_cgroups(const fs::path& mount, const std::string& path, Visit visit) {
  for (fs::path group = fs::path(path).relative_path();; group = group.parent_path()) {
    visit(mount / group);
    if (group.empty()) return;
  }
}

void read_cgroups(const fs::path& root, CpuTopology& topology) {
  const std::string text = system_file(root / "proc/thread-self/cgroup");
  const fs::path mount = root / "sys/fs/cgroup";
  const auto take_cpuset = [&](const fs::path& file) {
    if (!topology.cpuset) topology.cpuset = list_in(file);
  };
  const auto take_quota = [&](std::optional<double> time, std::optional<double> period) {
    if (!time || !period || *time <= 0 || *period <= 0) return;
    topology.quota = std::min(topology.quota.value_or(*time / *period), *time / *period);
  };
  if (const auto path = cgroup_path(text, "cpuset")) {
    visit_cgroups(mount / "cpuset", *path, [&](const fs::path& group) {
      take_cpuset(group / "cpuset.effective_cpus");
      take_cpuset(group / "cpuset.cpus");
    });
  }
  if (const auto path = cgroup_path(text, "cpu")) {
    visit_cgroups(mount / "cpu", *path, [&](const fs::path& group) {
      take_quota(number_in(system_file(group / "cpu.cfs_quota_us")),
                 number_in(system_file(group / "cpu.cfs_period_us")));
    });
  }
  if (const auto path = cgroup_path(text, "")) {
    visit_cgroups(mount, *path, [&](const fs::path& group) {
      take_cpuset(group / "cpuset.cpus.effective");
      const std::string max = system_file(group / "cpu.max");  // "200000 100000", "max 100000"
      const std::vector<Word> words = split_words(trimmed(max));
      if (words.size() == 2) take_quota(number_in(words[0].text), number_in(words[1].text));
    });
  }
}

}  // namespace

CpuList CpuTopology::bindable() const {
  CpuList further = intersection(isolated, online);
  if (cpuset) further = intersection(further, *cpuset);
  CpuList cpus;
  std::ranges::set_union(allowed, further, std::back_inserter(cpus));
  return cpus;
}

std::string CpuTopology::why_not_bindable(unsigned cpu) const {
  if (!contains(present, cpu)) return "no such core";
  if (!contains(online, cpu)) return "offline";
  if (contains(bindable(), cpu)) return "";
  if (cpuset && !contains(*cpuset, cpu)) return "outside the cpuset of this process's cgroup";
  return "outside the CPU affinity mask of this process";
}

const NumaNode* CpuTopology::node(unsigned number) const noexcept {
  const auto found = std::ranges::find(nodes, number, &NumaNode::number);
  return found == nodes.end() ? nullptr : &*found;
}

std::optional<unsigned> CpuTopology::node_of(const CpuList& cpus) const noexcept {
  if (cpus.empty()) return std::nullopt;
  for (const NumaNode& node : nodes) {
    if (std::ranges::all_of(cpus, [&](unsigned cpu) { return contains(node.cpus, cpu); })) return node.number;
  }
  return std::nullopt;
}

CpuTopology read_cpu_topology(const fs::path& root) {
  CpuTopology topology;
  const fs::path cpus = root / "sys/devices/system/cpu";
  topology.present = list_in(cpus / "present").value_or(CpuList());
  topology.online = list_in(cpus / "online").value_or(topology.present);
  topology.isolated = list_in(cpus / "isolated").value_or(CpuList());
  read_nodes(root, topology);
  read_physical_cores(cpus, topology);
  read_process(root, topology);
  read_cgroups(root, topology);
  return topology;
}

std::optional<unsigned> numa_node_of_pci(const std::string& bus_id, const fs::path& root) {
  std::string name = bus_id;
  for (char& c : name) c = ascii_lower(c);
  // -1: unknown
  const std::string text = system_file(root / "sys/bus/pci/devices" / name / "numa_node");
  const auto number = parse_integer(trimmed(text));
  if (!number || *number >= kMostCpus) return std::nullopt;
  return static_cast<unsigned>(*number);
}

}  // namespace penstock
