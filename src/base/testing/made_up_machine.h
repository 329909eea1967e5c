// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder with the files of /sys and /proc of a machine that is not there, for tests. Removed by the destructor.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock {

class MadeUpMachine {
 public:
  MadeUpMachine() { std::filesystem::remove_all(root_); }
  MadeUpMachine(const MadeUpMachine&) = delete;
  MadeUpMachine& operator=(const MadeUpMachine&) = delete;
  ~MadeUpMachine() { std::filesystem::remove_all(root_); }

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  /// Two nodes with four physical cores each: CPUs 0-3 and 4-7, and their second threads 8-11 and 12-15.
  void two_nodes() const {
    cpus("0-15", "0-15", "");
    for (int cpu = 0; cpu < 16; ++cpu) {
      write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            std::to_string(cpu % 8) + "," + std::to_string(cpu % 8 + 8) + "\n");
    }
    node(0, "0-3,8-11", 32 << 20);
    node(1, "4-7,12-15", 64 << 20);
    process("0-15", "0-1");
  }
  void cpus(const std::string& present, const std::string& online, const std::string& isolated) const {
    write("sys/devices/system/cpu/present", present + "\n");
    write("sys/devices/system/cpu/online", online + "\n");
    write("sys/devices/system/cpu/isolated", isolated + "\n");
  }
  void node(int number, const std::string& cpus, int kib) const {
    const std::string name = std::to_string(number);
    write("sys/devices/system/node/node" + name + "/cpulist", cpus + "\n");
    write("sys/devices/system/node/node" + name + "/meminfo",
          "Node " + name + " MemTotal:       " + std::to_string(kib) + " kB\nNode " + name + " MemFree:  1 kB\n");
  }
  /// What the process may use.
  void process(const std::string& cpus, const std::string& nodes) const {
    write("proc/thread-self/status", "Name:\tpenstock\nCpus_allowed:\tffff\nCpus_allowed_list:\t" + cpus +
                                         "\nMems_allowed_list:\t" + nodes + "\n");
  }

 private:
  const std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) /
                                      (std::to_string(::getpid()) + "_machine_" +
                                       std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

}  // namespace penstock
