// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/thread_placement.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace penstock {

namespace {

/// A mask of kMostCpus; the kernel may have more CPUs than one cpu_set_t.
class CpuMask {
 public:
  void add(unsigned cpu) noexcept { CPU_SET_S(cpu, kBytes, sets_.data()); }
  [[nodiscard]] bool has(unsigned cpu) const noexcept { return CPU_ISSET_S(cpu, kBytes, sets_.data()) != 0; }
  [[nodiscard]] cpu_set_t* get() noexcept { return sets_.data(); }

  static constexpr std::size_t kBytes = kMostCpus / 8;

 private:
  std::array<cpu_set_t, kBytes / sizeof(cpu_set_t)> sets_{};
};

using NodeMask = std::array<unsigned long, 1024 / (8 * sizeof(unsigned long))>;
constexpr unsigned long kNodeBits = 8 * sizeof(NodeMask);

long set_memory_policy(int mode, const NodeMask* nodes) {
  // The kernel reads one bit less than the argument says.
  return ::syscall(SYS_set_mempolicy, mode, nodes == nullptr ? nullptr : nodes->data(),
                   nodes == nullptr ? 0UL : kNodeBits + 1);
}

}  // namespace

int bind_this_thread(const CpuList& cpus) {
  CpuMask mask;
  for (const unsigned cpu : cpus) {
    if (cpu >= kMostCpus) return EINVAL;
    mask.add(cpu);
  }
  return ::sched_setaffinity(0, CpuMask::kBytes, mask.get()) == 0 ? 0 : errno;
}

CpuList cpus_of_this_thread() {
  CpuMask mask;
  CpuList cpus;
  if (::sched_getaffinity(0, CpuMask::kBytes, mask.get()) != 0) return cpus;
  for (unsigned cpu = 0; cpu < kMostCpus; ++cpu) {
    if (mask.has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

ThreadOnCpus::ThreadOnCpus(const CpuList& cpus) {
  if (cpus.empty()) return;
  before_ = cpus_of_this_thread();
  error_ = bind_this_thread(cpus);
  if (error_ != 0) before_.clear();
}

ThreadOnCpus::~ThreadOnCpus() {
  // If that fails, the cpuset has changed meanwhile, and the kernel has chosen where the thread runs.
  if (!before_.empty()) static_cast<void>(bind_this_thread(before_));
}

ThreadMemoryOnNode::ThreadMemoryOnNode(std::optional<unsigned> node) {
  if (!node) return;
  if (*node >= kNodeBits) {
    error_ = EINVAL;
    return;
  }
  int mode = MPOL_DEFAULT;
  if (::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL) != 0) {
    error_ = errno;
    return;
  }
  if (mode != MPOL_DEFAULT) return;
  NodeMask nodes{};
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  nodes[*node / kBits] |= 1UL << (*node % kBits);
  if (set_memory_policy(MPOL_PREFERRED, &nodes) != 0) {
    error_ = errno;
    return;
  }
  changed_ = true;
}

ThreadMemoryOnNode::~ThreadMemoryOnNode() {
  if (changed_) static_cast<void>(set_memory_policy(MPOL_DEFAULT, nullptr));
}

}  // namespace penstock
