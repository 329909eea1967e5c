// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program on live interfaces between two hosts, in network namespaces that end with each test. The scenarios are in
// live/. Skipped where namespaces, virtual links or the tools are not available.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>

namespace penstock {
namespace {

class Live : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/live_XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    // A process without privileges in this directory is part of a scenario.
    std::filesystem::permissions(directory_, std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_P(Live, Scenario) {
  const auto [kind, scenario] = GetParam();
  std::ostringstream command;
#ifdef PENSTOCK_SANITIZED
  command << "PENSTOCK_SANITIZED=1 ";
#endif
  command << "unshare " << (::geteuid() == 0 ? "-nm" : "-rnm") << " python3 -B " PENSTOCK_SOURCE_DIR
          << "/tests/interop/live/main.py " << scenario << ' ' << kind << " " PENSTOCK_PROGRAM " " << directory_ << " >"
          << directory_ << "/log 2>&1";
  const int status = std::system(command.str().c_str());
  std::stringstream log;
  log << std::ifstream(directory_ + "/log").rdbuf();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  // 1: unshare itself is not permitted; 77: the script lacks a dependency; 127: unshare does not exist.
  if (code == 77 || code == 127 || log.str().starts_with("unshare:")) GTEST_SKIP() << log.str();
  EXPECT_EQ(code, 0) << log.str();
}

constexpr const char* kForAll[] = {"Basics1",
                                   "Basics2",
                                   "Download3",
                                   "Jumbo",
                                   "Fragments2",
                                   "UdpSegments",
                                   "Vlans1",
                                   "Vlans2",
                                   "Segments1",
                                   "Segments2",
                                   "OwnFrames1",
                                   "OwnFrames2",
                                   "Flood1",
                                   "FloodOfAStoppedProgram1",
                                   "FloodOfAStoppedProgram2",
                                   "EndsUnderLoad2",
                                   "Garbage1",
                                   "Garbage2",
                                   "Refusals",
                                   "Detects2",
                                   "Killed1",
                                   "Killed2",
                                   "StartsDown",
                                   "MtuGrows",
                                   "GoesDown1",
                                   "GoesDown2",
                                   "Idle2",
                                   "Capabilities"};
// What a TAP device cannot do, or what needs more capabilities for one.
constexpr const char* kForInterfaces[] = {"Deleted1",    "Deleted2",      "MovedAway",
                                          "LargeFrames", "LongestFrames", "Tunnel"};
constexpr const char* kForPacketSockets[] = {"Unprivileged1", "Unprivileged2"};
constexpr const char* kForTap[] = {"TapDeleted", "TapMoved"};
// What depends little on the kind of port.
constexpr const char* kForOne[] = {"Download1",   "Fragments3", "Flood2",          "EndsUnderLoad1", "Idle1",
                                   "FilterAlone", "Router",     "FirewallRouter2", "Everything",     "Detects1"};

// Frames of several segments from raw sockets, and of UDP, are not for AF_XDP (src/port/README.md).
constexpr const char* kForXdp[] = {"Basics1",  "Basics2", "Download1",  "Jumbo",  "Fragments2",  "Vlans1",
                                   "Flood1",   "Flood2",  "OwnFrames2", "Router", "Everything",  "EndsUnderLoad1",
                                   "Refusals", "Killed1", "GoesDown1",  "Idle1",  "Capabilities"};

std::string name_of(const ::testing::TestParamInfo<Live::ParamType>& test) {
  return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
}

using ::testing::Combine;
using ::testing::Values;
using ::testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(All, Live, Combine(Values("af_packet", "tap"), ValuesIn(kForAll)), name_of);
INSTANTIATE_TEST_SUITE_P(Interfaces, Live, Combine(Values("af_packet"), ValuesIn(kForInterfaces)), name_of);
INSTANTIATE_TEST_SUITE_P(PacketSockets, Live, Combine(Values("af_packet"), ValuesIn(kForPacketSockets)), name_of);
INSTANTIATE_TEST_SUITE_P(Xdp, Live, Combine(Values("af_xdp", "af_xdp_generic"), ValuesIn(kForXdp)), name_of);
INSTANTIATE_TEST_SUITE_P(Once, Live, Combine(Values("af_packet"), ValuesIn(kForOne)), name_of);
INSTANTIATE_TEST_SUITE_P(Tap, Live, Combine(Values("tap"), ValuesIn(kForTap)), name_of);

}  // namespace
}  // namespace penstock
