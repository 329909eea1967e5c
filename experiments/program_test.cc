// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(Programs, SayWhyTheyFail) {
  const Workplace folder;
  const auto failed = run_program({"sh", "-c", "echo no such thing; exit 3"}, folder.path("out"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(to_string(failed.error()), HasSubstr("failed: found no such thing"));
  EXPECT_FALSE(run_program({"penstock-no-such-program"}, folder.path("out")));
  EXPECT_FALSE(is_installed("penstock-no-such-program"));
  auto endless = Program::start({"sleep", "1000"}, folder.path("out"));
  ASSERT_TRUE(endless);
  EXPECT_FALSE(endless->ended_within(milliseconds{20}));
}

TEST(Programs, EndIfTheProcessThatStartedThemIsKilled) {
  const Workplace folder;
  const std::string file = folder.path("pid");
  const pid_t middle = ::fork();
  if (middle == 0) {
    auto program = Program::start({"sh", "-c", "echo $$; exec sleep 1000"}, file);
    for (;;) ::pause();
  }
  ASSERT_GT(middle, 0);
  pid_t pid = 0;
  for (int i = 0; i < 500 && pid == 0; ++i) {
    std::this_thread::sleep_for(milliseconds{10});
    std::ifstream(file) >> pid;
  }
  EXPECT_GT(pid, 0);
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  ASSERT_GT(pid, 0);
  const std::string stat = "/proc/" + std::to_string(pid) + "/cmdline";
  const auto runs = [&] {
    std::string words;
    std::getline(std::ifstream(stat) >> std::ws, words);
    return !words.empty();  // a process that has ended has none
  };
  for (int i = 0; i < 500 && runs(); ++i) std::this_thread::sleep_for(milliseconds{10});
  EXPECT_FALSE(runs());
}

}  // namespace
}  // namespace penstock::experiments
