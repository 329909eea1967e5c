// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/thread_placement.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/cpu_topology.h"

namespace penstock {
namespace {

int memory_policy() {
  int mode = -1;
  return ::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL) == 0 ? mode : -1;
}

TEST(ThreadOnCpus, BindsThisThreadAndThoseThatItStartsUntilItsEnd) {
  const CpuList before = cpus_of_this_thread();
  ASSERT_FALSE(before.empty());
  const CpuList one{before.back()};
  {
    const ThreadOnCpus bound(one);
    EXPECT_EQ(bound.error(), 0);
    EXPECT_EQ(cpus_of_this_thread(), one);
    CpuList inherited;
    std::thread([&] { inherited = cpus_of_this_thread(); }).join();
    EXPECT_EQ(inherited, one);
  }
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST(ThreadOnCpus, ChangesNothingIfItCannotBind) {
  const CpuList before = cpus_of_this_thread();
  EXPECT_EQ(ThreadOnCpus({kMostCpus - 1}).error(), EINVAL) << "no machine has that many";
  EXPECT_EQ(ThreadOnCpus({kMostCpus}).error(), EINVAL);
  EXPECT_EQ(ThreadOnCpus({}).error(), 0);
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST(ThreadMemoryOnNode, PrefersTheNodeUntilItsEnd) {
  const CpuTopology topology = read_cpu_topology();
  if (topology.allowed_memory.empty() || memory_policy() != MPOL_DEFAULT) GTEST_SKIP() << "no NUMA policies here";
  {
    const ThreadMemoryOnNode on_node(topology.allowed_memory.front());
    ASSERT_EQ(on_node.error(), 0);
    EXPECT_EQ(memory_policy(), MPOL_PREFERRED);
    const ThreadMemoryOnNode nested(topology.allowed_memory.front());
    EXPECT_EQ(nested.error(), 0);
  }
  EXPECT_EQ(memory_policy(), MPOL_DEFAULT);
  const ThreadMemoryOnNode none(std::nullopt);
  EXPECT_EQ(memory_policy(), MPOL_DEFAULT);
}

TEST(ThreadMemoryOnNode, SaysWhyItCannot) {
  EXPECT_NE(ThreadMemoryOnNode(1023).error(), 0) << "no machine has that many nodes";
  EXPECT_EQ(ThreadMemoryOnNode(5000).error(), EINVAL);
}

TEST(ThreadMemoryOnNode, LeavesAPolicyOfTheUserAlone) {
  const CpuTopology topology = read_cpu_topology();
  const unsigned long nodes = 1;
  if (topology.allowed_memory.empty() || topology.allowed_memory.front() != 0 ||
      ::syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 8 * sizeof nodes) != 0) {
    GTEST_SKIP() << "no NUMA policies here";
  }
  { EXPECT_EQ(ThreadMemoryOnNode(0).error(), 0); }
  EXPECT_EQ(memory_policy(), MPOL_BIND);
  ASSERT_EQ(::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL), 0);
}

}  // namespace
}  // namespace penstock
