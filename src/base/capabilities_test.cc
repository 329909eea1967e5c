// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <thread>

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// In a process of its own, since capabilities do not come back. True if `claim` is.
bool holds_in_child(const std::function<bool()>& claim) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(claim() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Capabilities, AreNamed) {
  EXPECT_EQ(name(Capability::net_raw), "CAP_NET_RAW");
  EXPECT_THAT(how_to_get(Capability::net_admin), HasSubstr("CAP_NET_ADMIN"));
  EXPECT_THAT(how_to_get(Capability::net_admin), HasSubstr("setcap cap_net_admin+ep"));
}

TEST(Capabilities, KeepOnlyThoseThatAreNeeded) {
  if (!has_capability(Capability::net_raw) || !has_capability(Capability::net_admin))
    GTEST_SKIP() << "without capabilities";
  EXPECT_TRUE(holds_in_child([] {
    if (keep_only({Capability::net_raw}) != 0) return false;
    bool in_thread = false;
    std::thread([&] {
      in_thread = has_capability(Capability::net_raw) && !has_capability(Capability::net_admin);
    }).join();
    return in_thread && has_capability(Capability::net_raw) && !has_capability(Capability::net_admin) &&
           !has_capability(Capability::sys_admin) && !has_capability(Capability::bpf) &&
           !has_capability(Capability::dac_override);
  }));
}

TEST(Capabilities, DoNotComeBack) {
  EXPECT_TRUE(holds_in_child([] {
    if (keep_only({}) != 0) return false;
    // Root would get all capabilities again by executing a program.
    return std::system("test $(sed -n 's/CapEff:.//p' /proc/self/status) = 0000000000000000") == 0;
  }));
  EXPECT_TRUE(holds_in_child([] {
    return keep_only({}) == 0 && keep_only({Capability::net_raw}) == 0 && !has_capability(Capability::net_raw) &&
           ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  }));
}

TEST(Capabilities, PassOnToProgramsOfAnotherUser) {
  if (::geteuid() != 0 || !has_capability(Capability::net_admin)) GTEST_SKIP() << "not root";
  const auto programs_have = [](const char* capabilities) {
    const std::string command = std::string("test $(sed -n 's/CapEff:.//p' /proc/self/status) = ") + capabilities;
    return std::system(command.c_str()) == 0;
  };
  // Root's programs get capabilities in any case, others only those that are passed on.
  const auto become_nobody = [] {
    return ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && ::setresuid(65534, 65534, 65534) == 0 &&
           keep_only({Capability::net_admin}) == 0;
  };
  EXPECT_TRUE(holds_in_child([&] { return become_nobody() && programs_have("0000000000000000"); }));
  EXPECT_TRUE(holds_in_child(
      [&] { return become_nobody() && pass_on({Capability::net_admin}) == 0 && programs_have("0000000000001000"); }));
  EXPECT_TRUE(holds_in_child([&] { return become_nobody() && pass_on({Capability::net_raw}) != 0; }));
}

TEST(Capabilities, AreNotAddedByKeeping) {
  EXPECT_TRUE(holds_in_child([] {
    return keep_only({Capability::net_raw}) == 0 && keep_only({Capability::net_raw, Capability::net_admin}) == 0 &&
           !has_capability(Capability::net_admin);
  }));
}

}  // namespace
}  // namespace penstock
