// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/process_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace penstock {
namespace {

TEST(ProcessUse, IsThatOfThisProcess) {
  const ProcessUse use = process_use();
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_GT(use.started_s, now - 3600);
  EXPECT_LT(use.started_s, now + 2);
  EXPECT_GT(use.resident_bytes, 1U << 20);
  EXPECT_LT(use.cpu_s, 3600);
}

TEST(ProcessUse, IsReadAfterAnyProgramName) {
  const std::filesystem::path proc = ::testing::TempDir() + "/penstock-proc-" + std::to_string(::getpid());
  std::filesystem::create_directories(proc / "self");
  std::ofstream(proc / "stat") << "cpu  1 2 3\nbtime 1700000000\nprocesses 5\n";
  std::ofstream(proc / "self/stat") << "7 (a) 1 2) S 1 7 7 0 -1 0 1 2 3 4 100 50 0 0 20 0 9 0 1000 4096 321 0\n";
  const ProcessUse use = process_use(proc);
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_EQ(use.cpu_s, 150 / ticks);
  EXPECT_EQ(use.started_s, 1.7e9 + 1000 / ticks);
  EXPECT_EQ(use.resident_bytes, 321U * static_cast<unsigned>(::sysconf(_SC_PAGESIZE)));
  std::filesystem::remove_all(proc);
  EXPECT_EQ(process_use(proc).started_s, 0) << "no such files";
}

}  // namespace
}  // namespace penstock
