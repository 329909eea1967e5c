// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/route_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/testing/packed_text.h"
#include "nf/router/route_format.h"

namespace penstock::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> lines_of(const RouteTable& table, const Devices& devices) {
  std::vector<std::string> lines;
  const auto add = [&](const auto& routes, bool ipv4) {
    for (const auto& route : routes) {
      append_route(lines.emplace_back(), to_string(route.prefix), ipv4, table.next_hops.kind(route.value),
                   table.next_hops.hops(route.value), devices);
    }
  };
  add(table.v4, true);
  add(table.v6, false);
  return lines;
}

/// The routes of a text without errors, as printed again.
std::vector<std::string> read(std::string_view text) {
  Devices devices;
  const auto table = parse_routes(text, "routes.txt", devices);
  if (!table) return {"error: " + to_string(table.error())};
  EXPECT_THAT(table->unsupported, IsEmpty());
  return lines_of(table->value, devices);
}

const std::vector<std::string> kPorts{"lan", "wan"};

std::vector<std::string> errors_of(std::string_view text) {
  Devices devices(kPorts);
  const auto table = parse_routes(text, "routes.txt", devices);
  std::vector<std::string> lines;
  if (!table) {
    for (const Error& error : table.error()) lines.push_back(to_string(error));
  }
  return lines;
}

std::vector<std::string> unsupported_of(std::string_view text) {
  Devices devices(kPorts);
  const auto table = parse_routes(text, "routes.txt", devices);
  EXPECT_TRUE(table) << to_string(table.error());
  std::vector<std::string> lines;
  if (table) {
    for (const Error& error : table->unsupported) lines.push_back(to_string(error));
  }
  return lines;
}

TEST(RouteReader, ReadsGatewaysConnectedRoutesAndHostRoutes) {
  EXPECT_THAT(read("default via 10.1.0.2 dev wan \n"
                   "10.0.0.0/24 dev lan proto kernel scope link src 10.0.0.1 \n"
                   "7.7.7.7 via 5.5.5.5 dev wan onlink mtu lock 1400 \n"
                   "2001:db8::/64 dev lan proto kernel metric 256 pref medium\n"
                   "2001:db8::7 via fe80::1 dev wan metric 1024 expires 99sec pref high\n"),
              ElementsAre("0.0.0.0/0 via 10.1.0.2 dev wan", "7.7.7.7/32 via 5.5.5.5 dev wan", "10.0.0.0/24 dev lan",
                          "2001:db8::/64 dev lan", "2001:db8::7/128 via fe80::1 dev wan"));
}

TEST(RouteReader, ReadsEveryAttributeThatDoesNotAffectForwarding) {
  EXPECT_THAT(read("5.7.0.0/16 via 10.1.0.4 dev wan proto 186 scope global src 10.1.0.1 realms 3/5 advmss 1000 "
                   "hoplimit 9 initcwnd 20 initrwnd 5 features ecn rto_min lock 20ms rtt 30ms rttvar 5ms ssthresh 9 "
                   "cwnd lock 7 window 1000 quickack 1 congctl reno reordering 3 fastopen_no_cookie 1 "
                   "ttl-propagate enabled rt_offload rt_trap offload trap linkdown pervasive notify\n"),
              ElementsAre("5.7.0.0/16 via 10.1.0.4 dev wan"));
}

TEST(RouteReader, ReadsNextHopLinesAndTheirWeights) {
  EXPECT_THAT(read("172.16.0.0/12 metric 5 \n"
                   "\tnexthop via 10.1.0.2 dev wan weight 3 \n"
                   "\tnexthop via 5.5.5.5 dev wan weight 1 onlink \n"
                   "\tnexthop dev lan weight 256 linkdown \n"
                   "9.0.0.0/8 nhid 20 proto static \n"
                   "\tnexthop via inet6 fe80::5 dev lan weight 1 \n"
                   "\tnexthop via 10.0.0.8 dev lan weight 1 \n"),
              ElementsAre("9.0.0.0/8 nexthop via inet6 fe80::5 dev lan weight 1 nexthop via 10.0.0.8 dev lan weight 1",
                          "172.16.0.0/12 nexthop via 10.1.0.2 dev wan weight 3 nexthop via 5.5.5.5 dev wan weight 1 "
                          "nexthop dev lan weight 256"));
}

TEST(RouteReader, ReadsTheOneLineForm) {
  EXPECT_THAT(read("172.16.0.0/12 metric 5 \\\tnexthop via 10.1.0.2 dev wan weight 3 \\\tnexthop via 10.0.0.2 dev lan "
                   "weight 1 \n"),
              ElementsAre("172.16.0.0/12 nexthop via 10.1.0.2 dev wan weight 3 nexthop via 10.0.0.2 dev lan weight 1"));
}

TEST(RouteReader, IgnoresTheDetailsOfNextHopObjects) {
  EXPECT_THAT(
      read("unicast 20.0.1.0/24 nhid 10 via 10.0.0.7 dev lan proto boot scope global \n"
           "\tnh_info id 10 via 10.0.0.7 dev lan scope link proto unspec \n"
           "unicast 20.0.2.0/24 nhid 20 proto boot scope global \n"
           "\tnh_info id 20 group 10/11,3 type resilient buckets 8 scope global proto unspec \n"
           "\tnexthop via 10.0.0.7 dev lan weight 1 \n"
           "unicast 20.0.3.0/24 nhid 20 proto boot scope global \n"
           "\tnh_info id 20 group 10/11,3 scope global proto unspec \\\tnexthop dev lan weight 3 \n"),
      ElementsAre("20.0.1.0/24 via 10.0.0.7 dev lan", "20.0.2.0/24 via 10.0.0.7 dev lan", "20.0.3.0/24 dev lan"));
}

TEST(RouteReader, ReadsAllRouteTypes) {
  EXPECT_THAT(
      read("blackhole 192.0.2.0/24 \n"
           "unreachable 192.0.3.0/24 \n"
           "prohibit 192.0.4.0/24 \n"
           "throw 192.0.5.0/24 \n"
           "unicast 192.0.6.0/24 dev lan \n"
           "local 192.0.7.1 dev lan table local proto kernel scope host src 192.0.7.1 \n"
           "broadcast 192.0.7.255 dev lan table local proto kernel scope link src 192.0.7.1 \n"
           "anycast 2001:db8:: dev lan table local proto kernel metric 0 pref medium\n"
           "multicast ff00::/8 dev lan table local proto kernel metric 256 pref medium\n"
           "blackhole 6.6.8.0/24 nhid 30 dev lo \n"),
      ElementsAre("blackhole 6.6.8.0/24", "blackhole 192.0.2.0/24", "unreachable 192.0.3.0/24", "prohibit 192.0.4.0/24",
                  "throw 192.0.5.0/24", "192.0.6.0/24 dev lan", "local 192.0.7.1/32 dev lan",
                  "broadcast 192.0.7.255/32 dev lan", "anycast 2001:db8::/128 dev lan", "multicast ff00::/8 dev lan"));
}

TEST(RouteReader, FindsTheFamilyOfDefaultRoutesByTheFollowingWords) {
  EXPECT_THAT(read("default via fe80::1 dev wan\n"), ElementsAre("::/0 via fe80::1 dev wan"));
  EXPECT_THAT(read("default via inet6 fe80::1 dev wan\n"), ElementsAre("0.0.0.0/0 via inet6 fe80::1 dev wan"));
  EXPECT_THAT(read("default dev wan metric 1024 pref medium\n"), ElementsAre("::/0 dev wan"));
  EXPECT_THAT(read("default dev wan scope link\n"), ElementsAre("0.0.0.0/0 dev wan"));
  EXPECT_THAT(read("unreachable default dev lo metric 4294967295 error -101\n"), ElementsAre("unreachable ::/0"));
  EXPECT_THAT(read("blackhole default\n"), ElementsAre("blackhole 0.0.0.0/0"));
  EXPECT_THAT(
      read("default metric 1024\n\tnexthop via fe80::1 dev wan weight 1\n\tnexthop via fe80::2 dev wan weight 1\n"),
      ElementsAre("::/0 nexthop via fe80::1 dev wan weight 1 nexthop via fe80::2 dev wan weight 1"));
}

TEST(RouteReader, PrefersTheLowestMetricAndThenTheFirst) {
  EXPECT_THAT(read("5.7.0.0/16 via 10.1.0.5 dev wan metric 10\n"
                   "5.7.0.0/16 via 10.1.0.4 dev wan\n"
                   "5.8.0.0/16 via 10.1.0.6 dev wan metric 10\n"
                   "5.8.0.0/16 via 10.1.0.7 dev wan metric 10\n"),
              ElementsAre("5.7.0.0/16 via 10.1.0.4 dev wan", "5.8.0.0/16 via 10.1.0.6 dev wan"));
  // IPv6's default metric is 1024.
  EXPECT_THAT(read("2001:db8::/32 via fe80::1 dev wan\n2001:db8::/32 via fe80::2 dev wan metric 1023\n"),
              ElementsAre("2001:db8::/32 via fe80::2 dev wan"));
}

TEST(RouteReader, PrefersTheLocalTableToTheMainAndTheMainToTheDefault) {
  EXPECT_THAT(read("10.0.0.1 via 10.1.0.2 dev wan\n"
                   "local 10.0.0.1 dev lan table local metric 7\n"
                   "10.0.0.2 via 10.1.0.2 dev wan table 253\n"
                   "10.0.0.2 via 10.1.0.3 dev wan table main metric 7\n"),
              ElementsAre("local 10.0.0.1/32 dev lan", "10.0.0.2/32 via 10.1.0.3 dev wan"));
}

TEST(RouteReader, JoinsIpv6RoutesOfOneMetricAsTheKernelDoes) {
  EXPECT_THAT(read("2001:db8::/32 via fe80::1 dev lan metric 9\n2001:db8::/32 via fe80::2 dev wan metric 9\n"
                   "2001:db8::/32 via fe80::2 dev wan metric 9\n2001:db8::/32 via fe80::3 dev wan metric 10\n"),
              ElementsAre("2001:db8::/32 nexthop via fe80::1 dev lan weight 1 nexthop via fe80::2 dev wan weight 1"));
  EXPECT_THAT(read("2001:db8::/32 dev lan metric 9\n2001:db8::/32 dev wan metric 9\n"),
              ElementsAre("2001:db8::/32 dev lan"));
  EXPECT_THAT(read("default via fe80::1 dev lan proto ra metric 9 pref low\n"
                   "default via fe80::2 dev lan proto ra metric 9 pref medium\n"
                   "default via fe80::3 dev lan proto ra metric 9 pref medium\n"),
              ElementsAre("::/0 via fe80::2 dev lan"));
}

TEST(RouteReader, IgnoresDeadNextHopsAsTheKernelDoes) {
  EXPECT_THAT(read("10.0.0.0/8 via 10.1.0.2 dev wan dead linkdown\n"
                   "11.0.0.0/8 \n\tnexthop via 10.1.0.2 dev wan weight 1 dead linkdown\n\tnexthop via 10.0.0.2 dev lan "
                   "weight 1\n"),
              ElementsAre("11.0.0.0/8 via 10.0.0.2 dev lan"));
}

TEST(RouteReader, LeavesOutEmptyLinesAndComments) {
  EXPECT_THAT(read("\n# the way out\r\n  \ndefault via 10.1.0.2 dev wan\r\n"),
              ElementsAre("0.0.0.0/0 via 10.1.0.2 dev wan"));
}

// The output of iproute2 6.1 for the same routes, with and without -j.
TEST(RouteReader, ReadsTheJsonOfIproute2AsItsText) {
  const std::string json =
      R"([{"dst":"default","gateway":"192.0.2.254","dev":"wan","metric":100,"flags":[]},)"
      R"({"dst":"10.0.0.0/24","dev":"lan","protocol":"kernel","scope":"link","prefsrc":"10.0.0.1","flags":[]},)"
      R"({"dst":"10.1.0.0/16","flags":[],"nexthops":[{"gateway":"10.0.0.2","dev":"lan","weight":2,"flags":[]},)"
      R"({"gateway":"192.0.2.9","dev":"wan","weight":1,"flags":[]}]},)"
      R"({"type":"blackhole","dst":"10.2.0.0/16","flags":[]},)"
      R"({"dst":"10.4.0.0/16","via":{"family":"inet6","host":"fe80::5"},"dev":"lan","flags":["onlink"]},)"
      R"({"dst":"10.5.0.0/16","dev":"lan","scope":"link","flags":[],"metrics":[{"mtu":1400}]},)"
      R"({"type":"unicast","dst":"10.7.0.0/16","nhid":5,"gateway":"10.0.0.7","dev":"lan","protocol":"boot",)"
      R"("scope":"global","flags":[],"nh_info":{"id":5,"gateway":"10.0.0.7","dev":"lan","flags":[]}}])"
      "\n"
      R"([{"dst":"2001:db8::/64","dev":"lan","protocol":"kernel","metric":256,"flags":[],"pref":"medium"},)"
      R"({"dst":"2001:db8:2::/48","metric":1024,"flags":[],"pref":"medium","nexthops":[)"
      R"({"gateway":"fe80::1","dev":"lan","weight":1,"flags":[]},{"gateway":"fe80::2","dev":"wan","weight":1,)"
      R"("flags":["dead","linkdown"]}]},)"
      R"({"dst":"default","dev":"wan","metric":1024,"flags":[],"pref":"medium"}])";
  const std::string text =
      "default via 192.0.2.254 dev wan metric 100 \n"
      "10.0.0.0/24 dev lan proto kernel scope link src 10.0.0.1 \n"
      "10.1.0.0/16 \n"
      "\tnexthop via 10.0.0.2 dev lan weight 2 \n"
      "\tnexthop via 192.0.2.9 dev wan weight 1 \n"
      "blackhole 10.2.0.0/16 \n"
      "10.4.0.0/16 via inet6 fe80::5 dev lan onlink \n"
      "10.5.0.0/16 dev lan scope link mtu 1400 \n"
      "10.7.0.0/16 nhid 5 via 10.0.0.7 dev lan \n"
      "2001:db8::/64 dev lan proto kernel metric 256 pref medium\n"
      "2001:db8:2::/48 metric 1024 pref medium\n"
      "\tnexthop via fe80::1 dev lan weight 1 \n"
      "\tnexthop via fe80::2 dev wan weight 1 dead linkdown \n"
      "default dev wan metric 1024 pref medium\n";
  EXPECT_THAT(read(json), SizeIs(10));
  EXPECT_EQ(read(json), read(text));
  EXPECT_THAT(read("[]\n"), IsEmpty());
}

TEST(RouteReader, ReportsTheJsonEntryOfAnError) {
  EXPECT_THAT(
      errors_of("[ {\n  \"dst\": \"10.0.0.1/8\",\n  \"dev\": \"lan\"\n},{\n  \"dev\": \"lan\"\n} ]\n"),
      ElementsAre("routes.txt:1:3: host bits set: found '10.0.0.1/8', expected 10.0.0.0/8",
                  HasSubstr("routes.txt:4:3: an entry without \"dst\": found '{\\x0a  \"dev\": \"lan\"\\x0a}'")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":"nowhere"}])"),
              ElementsAre(HasSubstr("routes.txt:1:2: unknown device: found 'nowhere'")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":7,"metric":{}}])"),
              ElementsAre(HasSubstr("routes.txt:1:2: wrong value of \"metric\"")));
  EXPECT_THAT(errors_of(R"([{"dst":"#","dev":"lan"}])"), ElementsAre(HasSubstr("wrong value of \"dst\"")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":"lan",}])"), ElementsAre(HasSubstr(":1:2: not JSON")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":"lan"})"), ElementsAre(HasSubstr("unterminated array")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":"lan")"), ElementsAre(HasSubstr(":1:2: unterminated entry")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":"lan"} 10.0.0.0/8])"),
              ElementsAre(HasSubstr("routes.txt:1:35: not the start of an `ip -j` entry")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","dev":"lan","x":")" + std::string(kMostLineBytes, 'x') + "\"}]"),
              ElementsAre(HasSubstr("routes.txt:1:2: an entry of more than 1 MiB")));
  EXPECT_THAT(errors_of("[]\n10.0.0.0/8 dev lan\n"),
              ElementsAre(HasSubstr("routes.txt:2:1: not the start of an `ip -j` array")));
}

TEST(RouteReader, RefusesKeysThatAreGivenTwiceInJson) {
  EXPECT_THAT(
      errors_of(
          "[{\"dst\":\"10.0.0.0/8\",\"dev\":\"lan\"},\n{\"dst\":\"10.0.0.0/8\",\"dev\":\"lan\",\"dev\":\"wan\"}]"),
      ElementsAre(HasSubstr("routes.txt:2:1: \"dev\" is given twice: found '{\"dst\"")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","nexthops":[{"gateway":"10.0.0.3","dev":"lan","dev":"wan"}]}])"),
              ElementsAre(HasSubstr("\"dev\" is given twice")));
  EXPECT_THAT(errors_of(R"([{"dst":"10.0.0.0/8","nexthops":[{"dev":"lan"},{"dev":"wan"}]}])"), IsEmpty())
      << "once in each object";
}

TEST(RouteReader, ReportsUnsupportedRoutesInJson) {
  EXPECT_THAT(unsupported_of(R"([{"dst":"10.6.0.0/16","encap":"mpls","dst":"100","via":"10.0.0.3","dev":"lan"},)"
                             R"({"dst":"10.7.0.0/16","dev":"lan","frobnicated":{"a":1}}])"),
              ElementsAre("routes.txt:1:2: route attribute is not supported: this route is left out: found 'encap'",
                          HasSubstr("unknown word in a route: this route is left out: found 'frobnicated'")));
}

TEST(RouteReader, ReadsALongLineOfJson) {
  std::string json = "[";
  for (int i = 0; i < 30'000; ++i) {
    json += fmt::format(R"({}{{"dst":"10.{}.{}.0/24","gateway":"10.0.0.1","dev":"lan","flags":[]}})", i == 0 ? "" : ",",
                        i / 250, i % 250);
  }
  json += "]\n";
  ASSERT_GT(json.size(), kMostLineBytes);
  const std::string path = ::testing::TempDir() + "/routes.json";
  std::ofstream(path) << json;
  Devices devices(kPorts);
  const auto table = read_routes(std::vector{path}, devices);
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_THAT(table->value.v4, SizeIs(30'000));
  std::remove(path.c_str());
}

TEST(RouteReader, ReadsACompressedFile) {
  const std::string path = ::testing::TempDir() + "/routes.gz";
  std::ofstream(path, std::ios::binary) << penstock::testing::gzip("10.0.0.0/8 dev lan\n10.1.0.0 dev nowhere\n");
  Devices devices(kPorts);
  const auto table = read_routes(std::vector{path}, devices);
  ASSERT_FALSE(table);
  EXPECT_THAT(to_string(table.error()), HasSubstr("routes.gz:2:14: unknown device")) << "the line of the text";
  std::remove(path.c_str());
}

TEST(RouteReader, MapsDevicesToPorts) {
  Devices devices(kPorts);
  ASSERT_TRUE(devices.add_alias("eth0", "wan"));
  ASSERT_TRUE(devices.add_alias("docker0", "none"));
  ASSERT_TRUE(devices.add_alias("lo", "none"));
  EXPECT_FALSE(devices.add_alias("eth1", "dmz"));
  EXPECT_FALSE(devices.add_alias("eth0", "lan"));
  const auto table = parse_routes("10.0.0.0/8 dev eth0\n11.0.0.0/8 dev lan\n::1 dev lo\n172.17.0.0/16 dev docker0\n",
                                  "routes.txt", devices);
  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_THAT(lines_of(table->value, devices),
              ElementsAre("10.0.0.0/8 dev wan", "11.0.0.0/8 dev lan", "unreachable 172.17.0.0/16", "local ::1/128"));
}

TEST(RouteReader, ReportsEveryErrorWithItsPlace) {
  EXPECT_THAT(
      errors_of("10.0.0.0/33 dev lan\n"
                "10.0.0.1/8 dev lan\n"
                "10.0.0.0/8 via 10.0.0 dev lan\n"
                "10.0.0.0/8 via fe80::1 dev lan\n"
                "2001:db8::/32 via 10.0.0.1 dev lan\n"
                "10.0.0.0/8 via 10.0.0.1 dev eth9\n"
                "10.0.0.0/8 via 10.0.0.1\n"
                "10.0.0.0/8 dev lan metric many\n"
                "10.0.0.0/8 dev\n"
                "blackhole\n"
                "frob 10.0.0.0/8 dev lan\n"
                "10.0.0.0/8 proto bgp\n"
                "12.0.0.0/8\n\tnexthop via 10.0.0.1 dev lan weight 257\n\tnexthop dev wan weight 1\n"
                "13.0.0.0/8 dev lan\n\tnexthop dev wan weight 1\n"
                "14.0.0.0/8\n\tnexthop via 10.0.0.1 weight 1\n"),
      ElementsAre(
          "routes.txt:1:1: not a prefix: found '10.0.0.0/33', expected ADDRESS/LENGTH, an address, default or a "
          "route type",
          "routes.txt:2:1: host bits set: found '10.0.0.1/8', expected 10.0.0.0/8",
          "routes.txt:3:16: not a gateway: found '10.0.0', expected an IP address",
          "routes.txt:4:16: wrong gateway of an IPv4 route: found 'fe80::1', expected an IPv4 address, or inet6 "
          "and an IPv6 address",
          "routes.txt:5:19: wrong gateway of an IPv6 route: found '10.0.0.1', expected an IPv6 address",
          "routes.txt:6:29: unknown device: found 'eth9', expected lan, wan, or an entry in `interfaces` "
          "(a port or none)",
          "routes.txt:7:24: next hop without a device: expected dev DEVICE",
          "routes.txt:8:27: not a metric: found 'many', expected 0 to 4294967295",
          "routes.txt:9:15: the line ends early: found nothing after 'dev', expected a device",
          "routes.txt:10:10: the line ends early: found nothing after 'blackhole', expected a prefix",
          "routes.txt:11:1: not a prefix: found 'frob', expected ADDRESS/LENGTH, an address, default or a route "
          "type",
          "routes.txt:12: route without a next hop: expected via, dev, or nexthop lines",
          "routes.txt:14:38: not a weight: found '257', expected 1 to 256",
          "routes.txt:17:2: `nexthop` in a route that already has a next hop: found 'nexthop'",
          "routes.txt:19:31: next hop without a device: expected dev DEVICE"));
  EXPECT_THAT(
      errors_of("\tnexthop dev lan weight 1\n"),
      ElementsAre("routes.txt:1:2: next hop without a route: found 'nexthop', expected a route on a line before it"));
}

TEST(RouteReader, RefusesARepeatedWord) {
  EXPECT_THAT(
      errors_of("10.0.0.0/8 via 10.0.0.1 via 10.0.0.2 dev lan\n"
                "11.0.0.0/8 via 10.0.0.1 dev lan dev wan\n"
                "12.0.0.0/8 dev lan metric 1 metric 1\n"
                "13.0.0.0/8\n\tnexthop via 10.0.0.1 dev lan weight 1\n\tnexthop dev wan weight 1 via 10.0.0.1 dev lan\n"
                "14.0.0.0/8\n\tnexthop dev wan weight 1 weight 2\n"
                "blackhole 15.0.0.0/8 dev lo dev lan\n"),
      ElementsAre("routes.txt:1:25: second gateway: found 'via', expected one per next hop; `nexthop` starts another",
                  "routes.txt:2:33: second device: found 'dev', expected one per next hop; `nexthop` starts another",
                  "routes.txt:3:29: second metric: found 'metric', expected one per route",
                  "routes.txt:6:40: second device: found 'dev', expected one per next hop; `nexthop` starts another",
                  "routes.txt:8:27: second weight: found 'weight', expected one per next hop",
                  "routes.txt:9:29: second device: found 'dev', expected one per next hop; `nexthop` starts another"));
}

TEST(RouteReader, CountsTheErrorsAfterTheHundredth) {
  std::string text;
  for (int i = 0; i < 1234; ++i) text += "10.0.0.0/8 dev eth9\n";
  const auto errors = errors_of(text);
  ASSERT_THAT(errors, SizeIs(101));
  EXPECT_EQ(errors.back(), "… and 1,134 more");
}

TEST(RouteReader, CountsAllRoutesThatItLeavesOut) {
  std::string text;
  for (int i = 0; i < 1234; ++i) text += "10.0.0.0/8 tos 0x10 dev wan\n";
  EXPECT_THAT(unsupported_of(text), SizeIs(1234));
}

TEST(RouteReader, ReportsAndLeavesOutUnsupportedRoutes) {
  EXPECT_THAT(
      unsupported_of("10.0.0.0/8 encap mpls 100 via 10.0.0.1 dev wan\n"
                     "5.7.0.0/16 tos 0x10 via 10.1.0.3 dev wan\n"
                     "2001:db8:3::/48 from 2001:db8::/32 via fe80::1 dev lan metric 1024 pref medium\n"
                     "10.0.0.0/8 dev lan table 100\n"
                     "nat 10.0.0.0/8 via 10.0.0.1\n"
                     "10.0.0.0/8 via 10.0.0.1 dev wan shiny\n"
                     "11.0.0.0/8 dev lan tos 0\n"),
      ElementsAre("routes.txt:1:12: route attribute is not supported: this route is left out: found 'encap'",
                  "routes.txt:2:12: routes by type of service are not supported: this route is left out: found 'tos'",
                  "routes.txt:3:17: route attribute is not supported: this route is left out: found 'from'",
                  "routes.txt:4:26: only the tables local, main and default are supported: this route is "
                  "left out: found '100'",
                  "routes.txt:5:1: route type is not supported: this route is left out: found 'nat'",
                  "routes.txt:6:33: unknown word in a route: this route is left out: found 'shiny'"));
}

TEST(RouteReader, StoresEqualNextHopsOnce) {
  std::string text;
  for (int i = 0; i < 256; ++i) {
    text += fmt::format("10.{}.0.0/16 via 10.0.0.{} dev wan\n", i, i % 4 + 1);
  }
  Devices devices;
  const auto table = parse_routes(text, "routes.txt", devices);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->value.v4.size(), 256U);
  EXPECT_EQ(table->value.next_hops.group_count(), 4U);
  EXPECT_EQ(table->value.next_hops.routes_by_kind()[0], 256U);
}

TEST(RouteReader, ReadsWhatItPrints) {
  const auto once = read(
      "default via 10.1.0.2 dev wan\n9.0.0.0/8 via inet6 fe80::5 dev wan\n10.0.0.0/24 dev lan\n"
      "blackhole 192.0.2.0/24\n::/0 via fe80::1 dev wan\n2001:db8::/32 via ::ffff:1.2.3.4 dev wan\n"
      "172.16.0.0/12\n\tnexthop via 10.1.0.2 dev wan weight 3\n\tnexthop dev lan weight 1\n");
  std::string text;
  for (const std::string& line : once) text += line + "\n";
  EXPECT_THAT(once, SizeIs(7));
  EXPECT_EQ(read(text), once);
}

TEST(RouteReader, ReportsAMissingFileTogetherWithErrorsInOthers) {
  const std::string path = ::testing::TempDir() + "/route_reader_test.txt";
  std::ofstream(path) << "10.0.0.0/8\n";
  Devices devices;
  const std::vector<std::string> paths{"/no/such/file", path};
  const auto table = read_routes(paths, devices);
  ASSERT_FALSE(table);
  ASSERT_THAT(table.error(), SizeIs(2));
  EXPECT_THAT(to_string(table.error()[0]), HasSubstr("/no/such/file: cannot open"));
  EXPECT_EQ(table.error()[1].place.line, 1U);
}

TEST(RouteReader, RefusesMoreRoutesThanTheBoundUsedOrNot) {
  Devices devices;
  const std::string text = "# two prefixes\ndefault dev a metric 1\ndefault dev a metric 2\n10.0.0.0/8 dev a\n";
  EXPECT_TRUE(parse_routes(text, "routes.txt", devices, 3));
  const auto refused = parse_routes(text, "routes.txt", devices, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "routes.txt:4: too many routes: found more than 2, expected at most 2 (most_routes raises it)");
}

TEST(RouteReader, RefusesRoutesOfOnePrefixThatHaveTooManyNextHopsTogether) {
  const auto with_routes = [](int count) {
    std::string text;
    for (int i = 1; i <= count; ++i) text += fmt::format("2001:db8::/32 via fe80::{:x} dev a metric 1\n", i);
    return text;
  };
  Devices devices;
  const auto most = parse_routes(with_routes(1024), "routes.txt", devices);
  ASSERT_TRUE(most) << to_string(most.error());
  EXPECT_THAT(most->value.next_hops.hops(most->value.v6.at(0).value), SizeIs(1024));
  const auto refused = parse_routes(with_routes(1025), "routes.txt", devices);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "too many next hops in the routes for 2001:db8::/32: found more than 1024, expected at most 1024");
}

}  // namespace
}  // namespace penstock::router
