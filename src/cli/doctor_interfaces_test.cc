// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_interfaces.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <optional>
#include <thread>

namespace penstock::cli {
namespace {

using State = Finding::State;

std::vector<Finding> examined(const std::vector<NetworkInterface>& interfaces) {
  std::vector<Finding> findings;
  examine_interfaces(interfaces, findings);
  return findings;
}

TEST(DoctorInterfaces, HasAFixForOneThatIsDown) {
  const auto findings = examined({{"eth0", "ice", false}, {"lo", "", true}, {"eth1", "ice", true}});
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].state, State::missing);
  EXPECT_EQ(findings[0].fix, "sudo ip link set eth0 up");
  EXPECT_EQ(findings[1].state, State::note);
  EXPECT_EQ(findings[2].state, State::ok);
  EXPECT_EQ(findings[2].found, "up, driver ice");
}

TEST(DoctorInterfaces, ReportsThatThereIsNone) {
  const auto findings = examined({});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].state, State::missing);
}

TEST(DoctorInterfaces, ListsThoseOfTheNetworkNamespace) {
  std::optional<std::vector<NetworkInterface>> found;
  // /sys keeps showing the namespace of the test. The new one ends with the thread.
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) found = list_interfaces();
  }).join();
  if (!found) GTEST_SKIP() << "cannot make a network namespace";
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().name, "lo");
  EXPECT_FALSE(found->front().up);
}

}  // namespace
}  // namespace penstock::cli
