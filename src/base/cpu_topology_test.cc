// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/testing/made_up_machine.h"
#include "base/thread_placement.h"

namespace penstock {
namespace {

using ::testing::IsEmpty;

class Topology : public ::testing::Test {
 protected:
  [[nodiscard]] CpuTopology read() const { return read_cpu_topology(machine_.root()); }
  const MadeUpMachine machine_;
};

TEST_F(Topology, KnowsNodesAndThreadsOfPhysicalCores) {
  machine_.two_nodes();
  const CpuTopology topology = read();
  EXPECT_EQ(format_cpu_list(topology.present), "0-15");
  EXPECT_EQ(format_cpu_list(topology.allowed), "0-15");
  ASSERT_EQ(topology.nodes.size(), 2U);
  EXPECT_EQ(format_cpu_list(topology.nodes[1].cpus), "4-7,12-15");
  EXPECT_EQ(topology.nodes[1].memory_bytes, std::uint64_t{64} << 30);
  ASSERT_EQ(topology.physical_cores.size(), 8U);
  EXPECT_EQ(topology.physical_cores[3], (CpuList{3, 11}));
  EXPECT_EQ(topology.node_of({4, 15}), 1U);
  EXPECT_EQ(topology.node_of({3, 4}), std::nullopt);
  EXPECT_EQ(topology.node_of({}), std::nullopt);
  EXPECT_EQ(topology.node(2), nullptr);
}

TEST_F(Topology, LeavesOutOfflineCpus) {
  machine_.two_nodes();
  machine_.cpus("0-15", "0-10,12-15", "");
  const CpuTopology topology = read();
  EXPECT_EQ(format_cpu_list(topology.allowed), "0-10,12-15") << "the mask of a process may have offline CPUs";
  EXPECT_EQ(topology.physical_cores[3], CpuList{3});
  EXPECT_EQ(topology.why_not_bindable(11), "offline");
  EXPECT_EQ(topology.why_not_bindable(16), "no such core");
  EXPECT_EQ(topology.why_not_bindable(12), "");
}

TEST_F(Topology, DistinguishesTheCpusetFromTheAffinityMask) {
  machine_.two_nodes();
  machine_.process("0-3", "0");
  machine_.write("proc/thread-self/cgroup", "0::/penstock.slice/run.scope\n");
  machine_.write("sys/fs/cgroup/penstock.slice/cpuset.cpus.effective", "0-7\n");
  machine_.write("sys/fs/cgroup/cpuset.cpus.effective", "0-15\n");
  const CpuTopology topology = read();
  EXPECT_EQ(topology.cpuset, (CpuList{0, 1, 2, 3, 4, 5, 6, 7})) << "that of the nearest group";
  EXPECT_EQ(topology.why_not_bindable(5), "outside the CPU affinity mask of this process");
  EXPECT_EQ(topology.why_not_bindable(9), "outside the cpuset of this process's cgroup");
  EXPECT_EQ(topology.allowed_memory, std::vector<unsigned>{0});
}

TEST_F(Topology, ReadsCgroupsOfVersionOneFromInsideAContainer) {
  machine_.two_nodes();
  machine_.write("proc/thread-self/cgroup", "9:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n");
  machine_.write("sys/fs/cgroup/cpuset/cpuset.cpus", "2-3\n");
  machine_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  machine_.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CpuTopology topology = read();
  EXPECT_EQ(topology.cpuset, (CpuList{2, 3}));
  EXPECT_EQ(topology.quota, 1.5);
}

TEST_F(Topology, TakesTheSmallestQuotaOfAllGroups) {
  machine_.write("proc/thread-self/cgroup", "0::/a/b\n");
  machine_.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(read().quota, std::nullopt);
  machine_.write("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
  machine_.write("sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(read().quota, 4.0);
  machine_.write("sys/fs/cgroup/a/b/cpu.max", "-1 100000\n");
  EXPECT_EQ(read().quota, 4.0);
}

TEST_F(Topology, CanBindToIsolatedCpusThatNoProcessInherits) {
  machine_.two_nodes();
  machine_.cpus("0-15", "0-15", "4-7");
  machine_.process("0-3,8-15", "0-1");
  EXPECT_EQ(format_cpu_list(read().allowed), "0-3,8-15");
  EXPECT_EQ(format_cpu_list(read().bindable()), "0-15");
  EXPECT_EQ(read().why_not_bindable(4), "");
  machine_.write("proc/thread-self/cgroup", "0::/\n");
  machine_.write("sys/fs/cgroup/cpuset.cpus.effective", "0-5\n");
  EXPECT_EQ(read().why_not_bindable(4), "");
  EXPECT_EQ(read().why_not_bindable(6), "outside the cpuset of this process's cgroup");
}

TEST_F(Topology, KnowsTheNodeOfAPciDevice) {
  machine_.write("sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n");
  machine_.write("sys/bus/pci/devices/0000:01:00.0/numa_node", "-1\n");
  EXPECT_EQ(numa_node_of_pci("0000:C1:00.0", machine_.root()), 1U) << "CUDA writes capital letters";
  EXPECT_EQ(numa_node_of_pci("0000:01:00.0", machine_.root()), std::nullopt);
  EXPECT_EQ(numa_node_of_pci("0000:02:00.0", machine_.root()), std::nullopt);
}

TEST_F(Topology, IsEmptyIfNothingCanBeRead) {
  const CpuTopology topology = read();
  EXPECT_THAT(topology.present, IsEmpty());
  EXPECT_THAT(topology.nodes, IsEmpty());
  EXPECT_THAT(topology.bindable(), IsEmpty());
  EXPECT_EQ(topology.cpuset, std::nullopt);
}

TEST_F(Topology, SurvivesFilesWithAnyContent) {
  std::mt19937 random(3);
  const std::string letters = "0123456789,-:/ \nNodeMaxCpus_allowed_list\t";
  const auto text = [&] {
    std::string result(random() % 60, ' ');
    for (char& c : result) c = letters[random() % letters.size()];
    return result;
  };
  machine_.two_nodes();
  for (int i = 0; i < 300; ++i) {
    machine_.write("proc/thread-self/cgroup", "0::" + text() + "\n3:cpuset,cpu:" + text());
    for (const char* const file :
         {"proc/thread-self/status", "sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpuset.cpus.effective",
          "sys/devices/system/cpu/online", "sys/devices/system/cpu/isolated", "sys/devices/system/node/node1/cpulist",
          "sys/devices/system/node/node0/meminfo", "sys/devices/system/cpu/cpu3/topology/thread_siblings_list"}) {
      if (random() % 2 == 0) machine_.write(file, text());
    }
    const CpuTopology topology = read();
    EXPECT_EQ(difference(topology.allowed, topology.online), CpuList());
    EXPECT_EQ(difference(topology.bindable(), topology.online), CpuList());
    std::size_t threads = 0;
    for (const CpuList& core : topology.physical_cores) threads += core.size();
    EXPECT_GE(threads, topology.online.size());
  }
}

TEST(ThisMachine, AllowsWhatTheKernelSays) {
  const CpuTopology topology = read_cpu_topology();
  EXPECT_EQ(topology.allowed, cpus_of_this_thread());
  EXPECT_FALSE(topology.physical_cores.empty());
}

}  // namespace
}  // namespace penstock
