// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/host_address.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(HostAddress, IsNoneOfGroupsLoopbackAndNothing) {
  for (const char* const text : {"1.0.0.0", "10.0.0.1", "126.255.255.255", "128.0.0.0", "223.255.255.255"})
    EXPECT_TRUE(is_of_a_host(*parse_ipv4(text))) << text;
  for (const char* const text : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.255", "224.0.0.1", "255.255.255.255"})
    EXPECT_FALSE(is_of_a_host(*parse_ipv4(text))) << text;
  for (const char* const text : {"::2", "fe80::1", "2001:db8::1", "feff::1"})
    EXPECT_TRUE(is_of_a_host(*parse_ipv6(text))) << text;
  for (const char* const text : {"::", "::1", "ff02::1", "ffff::"})
    EXPECT_FALSE(is_of_a_host(*parse_ipv6(text))) << text;
}

}  // namespace
}  // namespace penstock
