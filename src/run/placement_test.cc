// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/made_up_machine.h"

namespace penstock::run {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two nodes with four physical cores each: CPUs 0-3 and 4-7, and their second threads 8-11 and 12-15.
class Placed : public ::testing::Test {
 protected:
  void SetUp() override { machine_.two_nodes(); }
  [[nodiscard]] Placement place(unsigned workers, const CpuList& cores, const std::vector<GpuPlace>& gpus) const {
    return place_workers(read_cpu_topology(machine_.root()), workers, cores, gpus);
  }
  const MadeUpMachine machine_;
};

TEST_F(Placed, BindsEachWorkerToItsCoreInOrder) {
  const Placement placement = place(3, {5, 0, 1}, {});
  EXPECT_EQ(placement.workers[0].cores, CpuList{5});
  EXPECT_EQ(placement.workers[0].cores_node, 1U);
  EXPECT_EQ(placement.workers[0].memory_node, 1U) << "the memory of a worker without a GPU is at its core";
  EXPECT_EQ(placement.workers[1].cores, CpuList{0});
  EXPECT_EQ(placement.workers[1].memory_node, 0U);
  EXPECT_EQ(format_cpu_list(placement.other_cores), "2-4,6-15");
  EXPECT_THAT(placement.warnings, IsEmpty());
  EXPECT_THAT(placement.notes, IsEmpty());
}

TEST_F(Placed, HasANodeInCommonIfAllMemoryIsThere) {
  EXPECT_EQ(common_memory_node(place(2, {4, 5}, {})), 1U);
  EXPECT_EQ(common_memory_node(place(2, {0, 5}, {})), std::nullopt);
  EXPECT_EQ(common_memory_node(place(2, {5, 0}, {{0, 0}})), 0U);
  EXPECT_EQ(common_memory_node(place(2, {}, {})), std::nullopt);
  EXPECT_EQ(common_memory_node({}), std::nullopt);
}

TEST_F(Placed, BindsNothingOnCpusByDefault) {
  const Placement placement = place(2, {}, {});
  for (const WorkerPlace& worker : placement.workers) {
    EXPECT_THAT(worker.cores, IsEmpty());
    EXPECT_EQ(worker.memory_node, std::nullopt);
  }
  EXPECT_THAT(placement.other_cores, IsEmpty());
}

TEST_F(Placed, BindsWorkersToTheNodeOfTheirGpuByDefault) {
  const Placement placement = place(3, {}, {{0, 0}, {1, 1}});
  EXPECT_EQ(format_cpu_list(placement.workers[0].cores), "0-3,8-11");
  EXPECT_EQ(format_cpu_list(placement.workers[1].cores), "4-7,12-15");
  EXPECT_EQ(placement.workers[2].cores, placement.workers[0].cores);
  EXPECT_EQ(placement.workers[1].memory_node, 1U);
  EXPECT_EQ(placement.workers[1].gpu, 1);
  EXPECT_THAT(placement.other_cores, IsEmpty()) << "the scheduler keeps threads apart";
  EXPECT_THAT(placement.warnings, IsEmpty());
}

TEST_F(Placed, DoesNotBindIfTheNodeHasTooFewCores) {
  machine_.process("0-4,8-11", "0-1");
  EXPECT_EQ(place(1, {}, {{0, 1}}).workers[0].cores, CpuList{4});
  // Both GPUs' workers share the node.
  for (const Placement& placement : {place(2, {}, {{0, 1}}), place(2, {}, {{0, 1}, {1, 1}})}) {
    EXPECT_THAT(placement.workers[0].cores, IsEmpty());
    EXPECT_EQ(placement.workers[0].memory_node, 1U) << "memory is independent of that";
    ASSERT_FALSE(placement.warnings.empty());
    EXPECT_EQ(to_string(placement.warnings[0]),
              "workers of GPU 0 are not bound to its NUMA node 1: too few cores there for this process: found core 4 "
              "for 2 workers, expected 2 cores of 4-7,12-15");
  }
}

TEST_F(Placed, BindsNothingIfTheNodeOfTheGpuIsUnknown) {
  const Placement placement = place(2, {}, {{0, std::nullopt}});
  EXPECT_THAT(placement.workers[0].cores, IsEmpty());
  EXPECT_EQ(placement.workers[0].memory_node, std::nullopt);
  EXPECT_EQ(placement.workers[0].gpu, 0);
  EXPECT_THAT(placement.warnings, IsEmpty());
  EXPECT_THAT(place(2, {}, {{0, 7}}).workers[0].cores, IsEmpty()) << "a node without CPUs";
}

TEST_F(Placed, BindsNothingOnAMachineWithOneNode) {
  const MadeUpMachine& machine = machine_;
  std::filesystem::remove_all(machine.root());
  machine.cpus("0-7", "0-7", "");
  machine.node(0, "0-7", 1 << 20);
  machine.process("0-7", "0");
  const Placement placement = place(2, {}, {{0, 0}});
  EXPECT_THAT(placement.workers[0].cores, IsEmpty());
  EXPECT_EQ(placement.workers[0].memory_node, std::nullopt);
}

TEST_F(Placed, WarnsOfAWorkerFarFromItsGpu) {
  const Placement placement = place(2, {0, 4}, {{0, 1}});
  EXPECT_EQ(placement.workers[0].memory_node, 1U) << "at the GPU";
  ASSERT_EQ(placement.warnings.size(), 1U);
  EXPECT_EQ(
      to_string(placement.warnings[0]),
      "a worker runs on another NUMA node than its GPU 0, so it works on distant memory: found core 0, of node 0, "
      "expected a core of node 1");
}

TEST_F(Placed, WarnsIfMemoryOfTheNodeIsForbidden) {
  machine_.process("0-15", "0");
  const Placement placement = place(2, {}, {{0, 1}});
  ASSERT_EQ(placement.warnings.size(), 1U);
  EXPECT_THAT(to_string(placement.warnings[0]), HasSubstr("may not allocate memory on NUMA node 1, that of GPU 0"));
}

TEST_F(Placed, NotesThreadsOfOnePhysicalCore) {
  const Placement placement = place(3, {2, 10, 3}, {});
  ASSERT_EQ(placement.notes.size(), 1U);
  EXPECT_EQ(to_string(placement.notes[0]),
            "cores: threads of one physical core, which slow each other down: found cores 2,10, expected one thread of "
            "each physical core");
}

TEST_F(Placed, NotesThatNoCoreIsLeftForOtherThreads) {
  machine_.process("2-3", "0-1");
  const Placement placement = place(2, {2, 3}, {});
  EXPECT_THAT(placement.other_cores, IsEmpty());
  ASSERT_EQ(placement.notes.size(), 1U);
  EXPECT_THAT(placement.notes[0].message, HasSubstr("other threads run there too"));
}

TEST_F(Placed, KeepsOtherThreadsOffIsolatedCores) {
  machine_.cpus("0-15", "0-15", "4-7");
  machine_.process("0-3,8-15", "0-1");
  EXPECT_EQ(format_cpu_list(place(2, {4, 5}, {}).other_cores), "0-3,8-15");
}

}  // namespace
}  // namespace penstock::run
