// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string_view>

#include "base/testing/made_up_machine.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = Finding::State;

/// Two nodes with four physical cores each: CPUs 0-3 and 4-7, and their second threads 8-11 and 12-15. One GPU on node
/// 1.
class DoctorOfCores : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_.two_nodes();
    gpu::Device& device = gpus_.devices.emplace_back();
    device.supported = true;
    device.numa_node = 1;
  }
  /// What is said about one subject; empty: nothing.
  [[nodiscard]] Finding find(std::string_view subject) const {
    std::vector<Finding> findings;
    const CpuTopology topology = read_cpu_topology(machine_.root());
    examine_gpu_nodes(topology, gpus_, findings);
    examine_cores(facts_, topology, findings);
    for (const Finding& finding : findings) {
      if (finding.subject == subject) return finding;
    }
    return {};
  }

  const MadeUpMachine machine_;
  Machine facts_;
  gpu::DeviceList gpus_;
};

TEST_F(DoctorOfCores, FindsNothingWrongIfAllMayBeUsed) {
  EXPECT_EQ(find("gpu 0 node").state, State::ok);
  EXPECT_EQ(find("gpu 0 node").found, "NUMA node 1, cores 4-7,12-15");
  EXPECT_EQ(find("NUMA nodes").found, "0: cores 0-3,8-11, 32.0 GiB; 1: cores 4-7,12-15, 64.0 GiB");
  for (const char* const subject : {"NUMA memory", "allowed cores", "CPU time", "isolated cores"})
    EXPECT_THAT(find(subject).found, IsEmpty()) << subject;
}

TEST_F(DoctorOfCores, ReportsAGpuOnAnotherNodeThanTheAllowedCores) {
  machine_.process("0-3", "0-1");
  const Finding node = find("gpu 0 node");
  EXPECT_EQ(node.state, State::missing);
  EXPECT_EQ(node.found, "NUMA node 1, cores 4-7,12-15; this process may use only cores 0-3");
  EXPECT_THAT(node.fix, HasSubstr("taskset -c 4-7,12-15"));
}

TEST_F(DoctorOfCores, ReportsAGpuWhoseNodesMemoryIsForbidden) {
  machine_.process("0-15", "0");
  EXPECT_EQ(find("gpu 0 node").state, State::missing);
  EXPECT_THAT(find("gpu 0 node").fix, HasSubstr("--cpuset-mems 1"));
}

TEST_F(DoctorOfCores, NotesThatTheNodeOfAGpuIsUnknown) {
  gpus_.devices[0].numa_node.reset();
  EXPECT_EQ(find("gpu 0 node").state, State::note);
}

TEST_F(DoctorOfCores, SaysWhatLimitsTheAllowedCores) {
  machine_.process("0-3", "0-1");
  EXPECT_EQ(find("allowed cores").found, "cores 0-3 of 0-15, by the CPU affinity mask of this process");
  machine_.write("proc/thread-self/cgroup", "0::/\n");
  machine_.write("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
  EXPECT_EQ(find("allowed cores").found, "cores 0-3 of 0-15, by the cpuset of this process's cgroup");
  EXPECT_THAT(find("allowed cores").fix, HasSubstr("--cpuset-cpus"));
}

TEST_F(DoctorOfCores, WarnsOfALimitOfCpuTime) {
  machine_.write("proc/thread-self/cgroup", "0::/\n");
  machine_.write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(find("CPU time").state, State::missing);
  EXPECT_EQ(find("CPU time").found, "at most the time of 2.5 cores (cgroup)");
}

TEST_F(DoctorOfCores, SuggestsOneThreadOfEachPhysicalCore) {
  EXPECT_EQ(find("SMT").state, State::note);
  EXPECT_THAT(find("SMT").fix, HasSubstr("cores: \"0-7\""));
  machine_.process("2-3,8-11", "0-1");
  EXPECT_THAT(find("SMT").fix, HasSubstr("cores: \"2-3,8-9\"")) << "the threads that this process may use";
}

TEST_F(DoctorOfCores, NamesIsolatedCoresThatAChainCouldUse) {
  machine_.cpus("0-15", "0-15", "4-5");
  machine_.process("0-3,6-15", "0-1");
  EXPECT_EQ(find("isolated cores").state, State::note);
  EXPECT_THAT(find("isolated cores").fix, HasSubstr("cores: \"4-5\""));
  machine_.write("proc/thread-self/cgroup", "0::/\n");
  machine_.write("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
  EXPECT_EQ(find("isolated cores").state, State::missing);
}

TEST_F(DoctorOfCores, ExplainsAForbiddenMemoryPolicy) {
  facts_.memory_policy_errno = EPERM;
  EXPECT_EQ(find("NUMA memory").state, State::missing);
  EXPECT_THAT(find("NUMA memory").fix, HasSubstr("seccomp"));
  facts_.memory_policy_errno = ENOSYS;
  EXPECT_THAT(find("NUMA memory").fix, HasSubstr("kernel"));
}

TEST_F(DoctorOfCores, SaysNothingOfNodesOnAMachineWithOne) {
  std::filesystem::remove_all(machine_.root());
  machine_.cpus("0-3", "0-3", "");
  machine_.node(0, "0-3", 1 << 20);
  machine_.process("0-3", "0");
  facts_.memory_policy_errno = EPERM;
  for (const char* const subject : {"gpu 0 node", "NUMA nodes", "NUMA memory", "SMT"})
    EXPECT_THAT(find(subject).found, IsEmpty()) << subject;
}

TEST_F(DoctorOfCores, ShowsWhereTheWorkersOfAChainWouldRun) {
  const CpuTopology topology = read_cpu_topology(machine_.root());
  std::vector<Finding> findings;
  examine_placement(run::place_workers(topology, 2, {2, 10}, {{0, 1}}), findings);
  ASSERT_EQ(findings.size(), 4U);
  EXPECT_EQ(findings[0].subject, "worker 0");
  EXPECT_EQ(findings[0].found, "core 2 (NUMA node 0), GPU 0, memory on NUMA node 1");
  EXPECT_EQ(findings[2].state, State::missing);
  EXPECT_THAT(findings[2].found, HasSubstr("another NUMA node than its GPU"));
  EXPECT_EQ(findings[3].state, State::note);
  EXPECT_THAT(findings[3].found, HasSubstr("threads of one physical core"));
}

}  // namespace
}  // namespace penstock::cli
