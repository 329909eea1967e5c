// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the threads of a run are, as the kernel sees them, and what the commands say about it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <map>
#include <sstream>
#include <string>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A run over generated packets, bound to the last core that the tests may use.
class PlacedProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      first_ = first_.empty() ? std::to_string(cpu) : first_;
      last_ = std::to_string(cpu);
    }
    if (first_ == last_) GTEST_SKIP() << "only one core";
    write("endless.yaml",
          "ports: {lan: {pcap: {read: fifo}}, load: {generator: {rate: 2kpps}}, wan: {null: {}}}\nchain: []\n"
          "run: {workers: 1, cores: [" +
              last_ + "]}\n");
  }
  /// The allowed cores of each thread of a run while packets flow, by the name of the thread.
  [[nodiscard]] std::multimap<std::string, std::string> threads_of(const std::string& options) const {
    EXPECT_EQ(shell("mkfifo fifo; (cat in.pcap; exec sleep 50) >fifo & writer=$!\n"
                    "taskset -c " +
                    first_ + "," + last_ + " '" PENSTOCK_PROGRAM "' run endless.yaml --duration 50s " + options +
                    " --report report.json &\npid=$!\n"
                    "until grep -q worker-0 /proc/$pid/task/*/comm; do kill -0 $pid || exit 99; sleep 0.02; done\n"
                    "kill -USR1 $pid; until [ -s report.json ]; do kill -0 $pid || exit 99; sleep 0.02; done\n"
                    "for task in /proc/$pid/task/*; do\n"
                    "  echo \"$(cat $task/comm) $(sed -n 's/^Cpus_allowed_list:\\t//p' $task/status)\"\n"
                    "done >tasks\n"
                    "kill -INT $pid; kill $writer; wait $pid"),
              0)
        << read("err");
    std::multimap<std::string, std::string> threads;
    std::istringstream tasks(read("tasks"));
    for (std::string name, cores; tasks >> name >> cores;) threads.emplace(name, cores);
    return threads;
  }

  std::string first_, last_;
};

TEST_F(PlacedProgram, BindsWorkersAndKeepsOtherThreadsOffTheirCores) {
  const auto threads = threads_of("");
  ASSERT_GE(threads.size(), 2U);
  for (const auto& [name, cores] : threads) EXPECT_EQ(cores, name == "worker-0" ? last_ : first_) << name;
  EXPECT_EQ(threads.count("worker-0"), 1U);
  const auto placement = json("report.json")["placement"];
  ASSERT_EQ(placement.size(), 1U);
  EXPECT_EQ(placement[0]["cores"], last_);
  EXPECT_EQ(placement[0]["bound"], true);
}

TEST_F(PlacedProgram, TakesTheCoresOfTheCommandLine) {
  const auto threads = threads_of("--cores " + first_);
  ASSERT_EQ(threads.count("worker-0"), 1U);
  EXPECT_EQ(threads.find("worker-0")->second, first_);
}

TEST_F(PlacedProgram, RefusesCoresOutsideItsAffinityMask) {
  EXPECT_EQ(shell("taskset -c " + first_ + " '" PENSTOCK_PROGRAM "' check endless.yaml"), 2);
  EXPECT_THAT(read("err"), HasSubstr("endless.yaml:3:26: cores: outside the CPU affinity mask of this process: found " +
                                     last_ + ", expected cores of " + first_ + "\n"));
}

TEST_F(PlacedProgram, IsShownByPlanDoctorAndDevices) {
  write("chain.yaml", read("chain.yaml") + "run: {cores: [" + last_ + "]}\n");
  ASSERT_EQ(shell("penstock plan chain.yaml --json"), 0) << read("err");
  const auto placement = json("out")["placement"];
  ASSERT_EQ(placement["workers"].size(), 1U);
  EXPECT_EQ(placement["workers"][0]["cores"], last_);
  EXPECT_EQ(placement["workers"][0]["gpu"], nullptr);
  ASSERT_EQ(shell("penstock plan chain.yaml"), 0);
  EXPECT_THAT(read("out"), HasSubstr("Placement on this machine:\n"));
  EXPECT_THAT(read("out"), HasSubstr("core " + last_));
  EXPECT_THAT(read("out"), HasSubstr("All other threads run on cores "));

  ASSERT_EQ(shell("penstock doctor"), 0);
  EXPECT_THAT(read("out"), Not(HasSubstr("worker 0")));
  ASSERT_EQ(shell("penstock doctor chain.yaml"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("worker 0       core " + last_));
  EXPECT_EQ(shell("penstock doctor chain.yaml --set run.workers=2"), 2) << "it has no such option";
  write("chain.yaml", "ports: {}\n");
  EXPECT_EQ(shell("penstock doctor chain.yaml"), 2);

  ASSERT_EQ(shell("penstock devices --no-measure --json"), 0);
  EXPECT_TRUE(json("out")["cpu"]["numa_nodes"].is_array());
}

TEST_F(PlacedProgram, CannotChangeItsCoresInAReload) {
  write("endless.yaml",
        "ports: {load: {generator: {rate: 2kpps}}, wan: {null: {}}}\nchain: []\nrun: {cores: " + last_ + "}\n");
  ASSERT_EQ(
      shell("'" PENSTOCK_PROGRAM "' run endless.yaml --duration 50s &\npid=$!\n"
            "until grep -q worker-0 /proc/$pid/task/*/comm; do kill -0 $pid || exit 99; sleep 0.02; done\n"
            "sed -i 's/cores: .*/cores: " +
            first_ +
            "}/' endless.yaml; kill -USR2 $pid\n"
            "until [ -s err ]; do kill -0 $pid || exit 99; sleep 0.02; done; sleep 0.1; kill -INT $pid; wait $pid"),
      0);
  EXPECT_THAT(read("err"), HasSubstr("run.cores cannot change in a reload: it needs a new run: found '" + first_ +
                                     "', expected '" + last_ + "'"));
}

}  // namespace
}  // namespace penstock
