// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/ip_address.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(IpAddress, ReadsWhatItWrites) {
  for (const char* text : {"0.0.0.0", "192.0.2.1", "255.255.255.255"}) EXPECT_EQ(to_string(*parse_ipv4(text)), text);
  for (const char* text : {"::", "::1", "2001:db8::1", "fe80::1:2:3", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}) {
    EXPECT_EQ(to_string(*parse_ipv6(text)), text);
  }
}

TEST(IpAddress, RefusesInvalidAddresses) {
  for (const char* text : {"", "1.2.3", "1.2.3.4.5", "256.1.1.1", " 1.2.3.4", "1.2.3.4 ", "a", "1.2.3.4/8"}) {
    EXPECT_FALSE(parse_ipv4(text)) << text;
  }
  for (const char* text : {"", ":::", "2001:db8::1%eth0", "1.2.3.4", "12345::", "2001:db8::/32"}) {
    EXPECT_FALSE(parse_ipv6(text)) << text;
  }
}

TEST(IpPrefix, ABareAddressIsAHostPrefix) {
  EXPECT_EQ(parse_ipv4_prefix("192.0.2.1")->length, 32);
  EXPECT_EQ(parse_ipv6_prefix("2001:db8::1")->length, 128);
}

TEST(IpPrefix, RefusesHostBits) {
  EXPECT_TRUE(parse_ipv4_prefix("10.0.0.0/8"));
  EXPECT_FALSE(parse_ipv4_prefix("10.0.0.1/8"));
  EXPECT_TRUE(parse_ipv6_prefix("2001:db8::/32"));
  EXPECT_FALSE(parse_ipv6_prefix("2001:db8::1/32"));
  EXPECT_TRUE(parse_ipv6_prefix("2001:db8:0:0:8000::/65"));
  EXPECT_FALSE(parse_ipv6_prefix("2001:db8:0:0:4000::/65"));
  for (const char* text : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "/8"}) {
    EXPECT_FALSE(parse_ipv4_prefix(text)) << text;
  }
}

TEST(IpPrefix, ContainsTheAddressesOfItsNetwork) {
  EXPECT_TRUE(contains(*parse_ipv4_prefix("10.0.0.0/8"), *parse_ipv4("10.255.0.1")));
  EXPECT_FALSE(contains(*parse_ipv4_prefix("10.0.0.0/8"), *parse_ipv4("11.0.0.0")));
  EXPECT_TRUE(contains(Ipv4Prefix{}, *parse_ipv4("255.255.255.255")));
  EXPECT_TRUE(contains(*parse_ipv6_prefix("2001:db8::/127"), *parse_ipv6("2001:db8::1")));
  EXPECT_FALSE(contains(*parse_ipv6_prefix("2001:db8::/127"), *parse_ipv6("2001:db8::2")));
  EXPECT_TRUE(contains(Ipv6Prefix{}, *parse_ipv6("ffff::")));
}

}  // namespace
}  // namespace penstock
