// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/changes.h"

#include <gtest/gtest.h>

namespace penstock::function {
namespace {

TEST(Changes, NameTheThingOnce) {
  EXPECT_EQ(Changes().count("rule", {3, 1, 0}).text(), "3 rules added, 1 removed");
  EXPECT_EQ(Changes().count("route", {0, 1, 1234}).text(), "1 route removed, 1,234 changed");
  EXPECT_EQ(Changes().count("rule", {1, 0, 0}).count("SA", {0, 2, 0}).text(), "1 rule added, 2 SAs removed");
  EXPECT_EQ(Changes().count("policy", {2, 1, 0}, "policies").text(), "2 policies added, 1 removed");
  EXPECT_EQ(Changes().count("policy", {0, 1, 0}, "policies").text(), "1 policy removed");
}

TEST(Changes, LeaveOutWhatIsEqual) {
  EXPECT_TRUE(Changes().count("rule", {}).value("policy", "drop", "drop").empty());
  EXPECT_EQ(Changes().value("policy", "drop", "accept").add("in another order").text(),
            "policy drop → accept, in another order");
  EXPECT_EQ(Changes().text(), "");
}

}  // namespace
}  // namespace penstock::function
