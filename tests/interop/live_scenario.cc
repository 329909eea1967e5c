// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "interop/live_scenario.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bundle.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct Places {
  fs::path scripts, program;
};

Places places() {
  if (const auto here = bundle()) return {*here / "tests/interop/live", *here / "bin/penstock"};
  return {fs::path(PENSTOCK_SOURCE_DIR) / "tests/interop/live", PENSTOCK_PROGRAM};
}

}  // namespace

void LiveScenario::SetUp() {
  directory_ = ::testing::TempDir() + "/live_XXXXXX";
  ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  // A process without privileges in this directory is part of a scenario.
  fs::permissions(directory_, fs::perms::others_exec, fs::perm_options::add);
}

void LiveScenario::TearDown() { fs::remove_all(directory_); }

void LiveScenario::run(const char* processor) const {
  const auto [kind, scenario] = GetParam();
  const auto [scripts, program] = places();
  std::ostringstream command;
#ifdef PENSTOCK_SANITIZED
  command << "PENSTOCK_SANITIZED=1 ";
#endif
  command << "PENSTOCK_PROXY_PROGRAM=" << PENSTOCK_PROXY_PROGRAM << " PENSTOCK_PROCESSOR=" << processor << " unshare "
          << (::geteuid() == 0 ? "-nm" : "-rnm") << " python3 -B " << scripts / "main.py" << ' ' << scenario << ' '
          << kind << ' ' << program << ' ' << directory_ << " >" << directory_ << "/log 2>&1";
  const int status = std::system(command.str().c_str());
  std::stringstream log;
  log << std::ifstream(directory_ + "/log").rdbuf();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  // 1: unshare itself is not permitted; 77: the script lacks a dependency; 127: unshare does not exist.
  if (code == 77 || code == 127 || log.str().starts_with("unshare:")) GTEST_SKIP() << log.str();
  EXPECT_EQ(code, 0) << log.str();
}

std::string name_of_scenario(const ::testing::TestParamInfo<LiveScenario::ParamType>& test) {
  return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
}

}  // namespace penstock
