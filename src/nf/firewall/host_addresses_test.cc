// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/host_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::firewall {
namespace {

bool has(const std::optional<classify::IntervalSet>& set, const char* address) {
  const auto ipv4 = parse_ipv4(address);
  const auto ipv6 = ipv4 ? Ipv6Address{0, ipv4->bits} : *parse_ipv6(address);
  const classify::Number number{ipv6.high, ipv6.low};
  return set &&
         std::ranges::any_of(*set, [&](const auto& range) { return range.low <= number && number <= range.high; });
}

TEST(HostAddresses, HaveTheTypesOfTheirSubnets) {
  std::vector<function::PortAddresses> ports(3);
  ports[0] = {parse_ipv4("10.1.2.3"), parse_ipv6("2001:db8::2:3"), std::uint8_t{20}, std::uint8_t{112}};
  ports[2] = {parse_ipv4("192.0.2.0"), parse_ipv6("2001:db8:7::"), std::uint8_t{31}, std::uint8_t{127}};
  const HostAddresses host = make_host_addresses(ports);
  const auto ipv4 = [&](const char* type, const char* address) {
    return has(host.of_type(NetworkLayer::ipv4, type), address);
  };
  const auto ipv6 = [&](const char* type, const char* address) {
    return has(host.of_type(NetworkLayer::ipv6, type), address);
  };
  for (const char* address : {"10.1.15.255", "0.0.0.0", "255.255.255.255", "127.255.255.255"})
    EXPECT_TRUE(ipv4("broadcast", address)) << address;
  for (const char* address : {"10.1.2.3", "10.1.0.0", "192.0.2.1", "10.1.2.255"})
    EXPECT_FALSE(ipv4("broadcast", address)) << address;
  for (const char* address : {"10.1.2.3", "192.0.2.0", "127.0.0.1", "127.9.9.9"})
    EXPECT_TRUE(ipv4("local", address)) << address;
  EXPECT_FALSE(ipv4("local", "127.255.255.255"));
  EXPECT_FALSE(ipv4("anycast", "10.1.0.0"));
  EXPECT_TRUE(ipv4("multicast", "239.255.255.255"));
  EXPECT_TRUE(ipv6("anycast", "2001:db8::2:0"));
  EXPECT_TRUE(ipv6("anycast", "fe80::"));
  EXPECT_FALSE(ipv6("anycast", "2001:db8:7::"));
  EXPECT_TRUE(ipv6("local", "::1"));
  EXPECT_TRUE(ipv6("local", "2001:db8:7::"));
  EXPECT_FALSE(ipv6("broadcast", "ff02::1"));
  EXPECT_TRUE(ipv6("multicast", "ff02::1"));
  EXPECT_EQ(host.of_type(NetworkLayer::ipv4, "unicast"), std::nullopt);
  for (const char* type : {"", "local", "broadcast", "anycast", "multicast"}) EXPECT_EQ(host.lacks(type), "") << type;
}

TEST(HostAddresses, SayWhatTheyLack) {
  std::vector<function::PortAddresses> ports(2);
  EXPECT_EQ(make_host_addresses(ports).lacks("local"), "needs the addresses of this host: the parameter `addresses`");
  EXPECT_EQ(make_host_addresses(ports).lacks("multicast"), "");
  ports[0] = {parse_ipv4("10.1.2.3"), std::nullopt, std::uint8_t{20}, std::nullopt};
  ports[1] = {std::nullopt, parse_ipv6("2001:db8::5"), std::nullopt, std::nullopt};
  const HostAddresses host = make_host_addresses(ports);
  EXPECT_EQ(host.lacks("local"), "");
  for (const char* type : {"", "broadcast", "anycast"})
    EXPECT_EQ(host.lacks(type), "needs the prefix lengths of all `addresses`, such as {wan: 203.0.113.5/24}") << type;
}

}  // namespace
}  // namespace penstock::firewall
