// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// With a script that stands for NVIDIA's daemon.

#include "gpu/mps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace penstock::gpu {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};

class MpsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-mps-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directory(folder_ / "bin");
    path_ = std::getenv("PATH");
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const char* const name : {"CUDA_MPS_PIPE_DIRECTORY", "PENSTOCK_MPS_DAEMON"}) ::unsetenv(name);
    fs::remove_all(folder_);
  }
  /// `-f`: makes `control`, and ends when asked to. Without: notes the command, and answers with two servers.
  void install(const std::string& daemon =
                   "echo x >\"$D/control\"; echo $$ >>\"$D/started\"; until [ -e \"$D/quit\" ]; do sleep 0.01; done") {
    const fs::path program = folder_ / "bin/nvidia-cuda-mps-control";
    std::ofstream(program)
        << "#!/bin/sh\nD=$CUDA_MPS_PIPE_DIRECTORY\n[ \"$CUDA_MPS_LOG_DIRECTORY\" = \"$D\" ] || exit 9\n"
           "if [ \"$1\" = -f ]; then "
        << daemon
        << "\nelse\n  [ -e \"$D/control\" ] || exit 1\n  read -r word rest\n"
           "  echo \"$word $rest\" >>\"$D/asked\"\n  case $word in\n"
           "    quit) : >\"$D/quit\";;\n    get_server_list) echo 41; echo 42;;\n  esac\nfi\n";
    fs::permissions(program, fs::perms::owner_all);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string pipes() const { return folder_ / "mps"; }

  fs::path folder_;
  std::string path_;
};

TEST_F(MpsTest, SaysThatTheDaemonIsNotInstalled) {
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_FALSE(is_mps_installed());
  const auto mps = Mps::start(pipes(), kNeverStop);
  ASSERT_FALSE(mps);
  EXPECT_THAT(to_string(mps.error()), HasSubstr("nvidia-cuda-mps-control is not installed"));
}

TEST_F(MpsTest, RunsTheDaemonUntilItEnds) {
  install();
  EXPECT_TRUE(is_mps_installed());
  {
    const auto mps = Mps::start(pipes(), kNeverStop);
    ASSERT_TRUE(mps) << to_string(mps.error());
    EXPECT_EQ(mps_environment((*mps)->folder()), "CUDA_MPS_PIPE_DIRECTORY=" + pipes());
    EXPECT_FALSE(fs::exists(folder_ / "mps/quit"));
    EXPECT_TRUE(join_mps(pipes()));
    EXPECT_EQ(std::getenv("CUDA_MPS_PIPE_DIRECTORY"), pipes());
  }
  EXPECT_TRUE(fs::exists(folder_ / "mps/quit"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no process is left";
}

TEST_F(MpsTest, LimitsTheClientsOfEachServer) {
  install();
  const auto mps = Mps::start(pipes(), kNeverStop);
  ASSERT_TRUE(mps) << to_string(mps.error());
  const auto limited = (*mps)->limit_clients(25);
  ASSERT_TRUE(limited) << to_string(limited.error());
  EXPECT_THAT(read("mps/asked"), HasSubstr("set_active_thread_percentage 41 25\n"));
  EXPECT_THAT(read("mps/asked"), HasSubstr("set_active_thread_percentage 42 25\n"));
}

TEST_F(MpsTest, GoesOnWithTheDaemonOfTheProgramBefore) {
  install();
  auto before = Mps::start(pipes(), kNeverStop);
  ASSERT_TRUE(before) << to_string(before.error());
  ASSERT_TRUE(join_mps(pipes()));
  {
    const auto after = Mps::start(pipes(), kNeverStop);
    ASSERT_TRUE(after) << to_string(after.error());
  }
  const std::string started = read("mps/started");
  EXPECT_EQ(std::count(started.begin(), started.end(), '\n'), 1) << "there is one daemon";
}

TEST_F(MpsTest, BelievesNoVariableAboutAForeignProcess) {
  install();
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", pipes().c_str(), 1);
  for (const char* const pid : {"1", "-1", "0", "x", "99999999999"}) {
    fs::remove_all(pipes());
    ::setenv("PENSTOCK_MPS_DAEMON", pid, 1);
    const auto mps = Mps::start(pipes(), kNeverStop);
    ASSERT_TRUE(mps) << pid << ": " << to_string(mps.error());
    EXPECT_NE(read("mps/started"), "") << pid << ": a daemon of its own";
  }
}

TEST_F(MpsTest, SaysWhyTheDaemonEnds) {
  install("echo 'An instance of this daemon is already running'; exit 1");
  const auto mps = Mps::start(pipes(), kNeverStop);
  ASSERT_FALSE(mps);
  EXPECT_THAT(to_string(mps.error()), HasSubstr("ends at once: found An instance of this daemon"));
}

TEST_F(MpsTest, IsNotWaitedForAfterAStop) {
  install("sleep 100");
  const std::atomic<bool> stop{true};
  const auto mps = Mps::start(pipes(), stop);
  ASSERT_FALSE(mps);
  EXPECT_THAT(to_string(mps.error()), HasSubstr("interrupted"));
}

TEST_F(MpsTest, IsJoinedOnlyWhereItIs) {
  EXPECT_THAT(to_string(join_mps(pipes()).error()), HasSubstr("no MPS daemon has its pipes there: found no folder"));
  fs::create_directory(pipes());
  EXPECT_THAT(to_string(join_mps(pipes()).error()), HasSubstr("a folder without `control`"));
  EXPECT_EQ(std::getenv("CUDA_MPS_PIPE_DIRECTORY"), nullptr);
}

}  // namespace
}  // namespace penstock::gpu
