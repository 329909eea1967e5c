// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/neighbour_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "nf/router/next_hop.h"

namespace penstock::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::vector<std::string> kPorts{"lan", "wan"};

std::vector<std::string> to_lines(const Neighbours& neighbours) {
  std::vector<std::string> lines;
  for (const Neighbour& n : neighbours) {
    const std::string address = is_mapped(n.address) ? to_string(unmapped(n.address)) : to_string(n.address);
    lines.push_back(fmt::format("{} {} {}", address, kPorts[n.device], to_string(n.mac)));
  }
  return lines;
}

TEST(NeighbourReader, ReadsEveryStateThatHasAMac) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      "192.0.2.1 dev wan lladdr 02:00:00:00:00:01 REACHABLE\n"
      "192.0.2.2 dev wan lladdr 02:00:00:00:00:0A STALE \n"
      "192.0.2.3 dev lan lladdr 02:00:00:00:00:03 router extern_learn PERMANENT \n"
      "fe80::1 dev lan lladdr 02:00:00:00:00:04 router DELAY\n"
      "fe80::2 dev lan lladdr 02:00:00:00:00:05 proto zebra offload PROBE\n"
      "192.0.2.4 dev wan lladdr 02:00:00:00:00:06  ref 1 used 0/60/0probes 0 PERMANENT \n",
      "neigh.txt", devices);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(read->unsupported, IsEmpty());
  EXPECT_THAT(to_lines(read->value), ElementsAre("192.0.2.1 wan 02:00:00:00:00:01", "192.0.2.2 wan 02:00:00:00:00:0a",
                                                 "192.0.2.3 lan 02:00:00:00:00:03", "fe80::1 lan 02:00:00:00:00:04",
                                                 "fe80::2 lan 02:00:00:00:00:05", "192.0.2.4 wan 02:00:00:00:00:06"));
}

// The output of iproute2 6.1 with -j, -s -j and -6 -j.
TEST(NeighbourReader, ReadsTheJsonOfIproute2) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      R"([{"dst":"10.0.0.3","dev":"lan","state":["FAILED"]},)"
      R"({"dst":"10.0.0.2","dev":"lan","lladdr":"02:00:00:00:00:02","state":["PERMANENT"]},)"
      R"({"dst":"10.0.0.99","dev":"lan","proxy":null},)"
      R"({"dst":"10.0.0.4","dev":"wan","lladdr":"02:00:00:00:00:04","refcnt":1,"used":0,"confirmed":60,"updated":0,)"
      R"("probes":0,"state":["STALE"]}])"
      "\n"
      R"([{"dst":"fe80::1","dev":"lan","lladdr":"02:00:00:00:00:03","router":null,"state":["PERMANENT"]}])",
      "neigh.json", devices);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(read->unsupported, IsEmpty());
  EXPECT_THAT(to_lines(read->value), ElementsAre("10.0.0.2 lan 02:00:00:00:00:02", "10.0.0.4 wan 02:00:00:00:00:04",
                                                 "fe80::1 lan 02:00:00:00:00:03"));
}

TEST(NeighbourReader, ReportsTheJsonEntryOfAnError) {
  const auto errors = [](std::string_view text) {
    Devices devices(kPorts);
    const auto read = parse_neighbours(text, "neigh.json", devices);
    return read ? std::string() : to_string(read.error());
  };
  EXPECT_EQ(errors("[{\"dst\":\"10.0.0.1\",\"dev\":\"lan\",\"state\":[\"FAILED\"]},\n"
                   "{\"dst\":\"10.0.0\",\"dev\":\"lan\",\"state\":[\"FAILED\"]},\n"
                   " {\"dst\":\"10.0.0.1\",\"dev\":\"lan\",\"lladdr\":\"02:00\",\"state\":[\"STALE\"]}]"),
            "neigh.json:2:1: not a neighbour: found '10.0.0', expected an IP address\n"
            "neigh.json:3:2: not a MAC address: found '02:00', expected six bytes such as 02:00:00:00:00:01");
  EXPECT_EQ(errors("[{\"dst\":\"10.0.0.1\",\"dev\":\"lan\",\"state\":\"FAILED\"}]").substr(0, 48),
            "neigh.json:1:2: wrong value of \"state\": found '{");
  const std::string twice =
      R"([{"dst":"10.0.0.1","dev":"lan","lladdr":"02:00:00:00:00:01","lladdr":"02:00:00:00:00:02"}])";
  EXPECT_THAT(errors(twice), StartsWith("neigh.json:1:2: \"lladdr\" is given twice: found '{\"dst\""));
}

TEST(NeighbourReader, SkipsNeighboursThatDidNotAnswer) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      "10.0.0.3 dev lan FAILED \n10.0.0.4 dev lan  INCOMPLETE\n10.0.0.9 dev lan proxy \n"
      "10.0.0.5 dev lan lladdr 02:00:00:00:00:01 FAILED\n",
      "neigh.txt", devices);
  ASSERT_TRUE(read);
  EXPECT_THAT(read->value, IsEmpty());
}

TEST(NeighbourReader, ReportsEveryErrorWithItsPlace) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      "10.0.0 dev lan FAILED\n"
      "10.0.0.1 dev lan lladdr 02:00:00:00:00 STALE\n"
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:0g STALE\n"
      "10.0.0.1 lladdr 02:00:00:00:00:01 STALE\n"
      "10.0.0.1 dev\n",
      "neigh.txt", devices);
  ASSERT_FALSE(read);
  EXPECT_EQ(to_string(read.error()),
            "neigh.txt:1:1: not a neighbour: found '10.0.0', expected an IP address\n"
            "neigh.txt:2:25: not a MAC address: found '02:00:00:00:00', expected six bytes such as 02:00:00:00:00:01\n"
            "neigh.txt:3:25: not a MAC address: found '02:00:00:00:00:0g', expected six bytes such as "
            "02:00:00:00:00:01\n"
            "neigh.txt:4:40: neighbour without a device: expected dev DEVICE\n"
            "neigh.txt:5:13: the line ends after 'dev': expected a value");
}

TEST(NeighbourReader, SkipsMulticastBroadcastAndLoopback) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      "ff02::16 dev wan lladdr 33:33:00:00:00:16 NOARP\n"
      "224.0.0.22 dev wan lladdr 01:00:5e:00:00:16 NOARP\n"
      "10.0.0.255 dev wan lladdr ff:ff:ff:ff:ff:ff NOARP\n"
      "127.0.0.1 dev lan lladdr 00:00:00:00:00:00 NOARP\n"
      "10.0.0.7 dev lan lladdr 02:00:00:00:00:07 NOARP\n",
      "neigh.txt", devices);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(to_lines(read->value), ElementsAre("10.0.0.7 lan 02:00:00:00:00:07"));
}

TEST(NeighbourReader, RefusesNonUnicastMacs) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      "10.0.0.1 dev lan lladdr 01:00:5e:00:00:01 PERMANENT\n"
      "10.0.0.2 dev lan lladdr ff:ff:ff:ff:ff:ff STALE\n"
      "10.0.0.3 dev lan lladdr 00:00:00:00:00:00 REACHABLE\n"
      "10.0.0.4 dev lan lladdr 00:00:00:00:00:00 FAILED\n",
      "neigh.txt", devices);
  ASSERT_FALSE(read);
  EXPECT_EQ(to_string(read.error()),
            "neigh.txt:1:25: not a unicast MAC address: found '01:00:5e:00:00:01', expected a unicast address "
            "such as 02:00:00:00:00:01\n"
            "neigh.txt:2:25: not a unicast MAC address: found 'ff:ff:ff:ff:ff:ff', expected a unicast address "
            "such as 02:00:00:00:00:01\n"
            "neigh.txt:3:25: not a unicast MAC address: found '00:00:00:00:00:00', expected a unicast address "
            "such as 02:00:00:00:00:01");
}

TEST(NeighbourReader, RefusesASecondMacOfANeighbour) {
  Devices devices(kPorts);
  const auto read = parse_neighbours(
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:01 STALE\n"
      "10.0.0.1 dev wan lladdr 02:00:00:00:00:02 STALE\n"
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:01 REACHABLE\n"
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:09 FAILED\n"
      "10.0.0.1 dev lan lladdr 02:00:00:00:00:03 STALE\n",
      "neigh.txt", devices);
  ASSERT_FALSE(read);
  EXPECT_EQ(to_string(read.error()),
            "neigh.txt:5:25: second MAC address for the same neighbour: found '02:00:00:00:00:03', expected "
            "02:00:00:00:00:01, as in "
            "neigh.txt:1");
}

TEST(NeighbourReader, ReportsNeighboursOnOtherDevices) {
  Devices devices(kPorts);
  const auto read = parse_neighbours("10.0.0.1 dev docker0 lladdr 02:00:00:00:00:01 STALE\n", "neigh.txt", devices);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_string(read->unsupported),
            "neigh.txt:1:14: neighbour on a device that is not a port is left out: found 'docker0'");
}

TEST(NeighbourTable, AgreesWithAMapUnderRandomChanges) {
  std::mt19937_64 random(7);
  NeighbourTable table;
  std::map<std::pair<Ipv6Address, PortIndex>, MacAddress> oracle;
  for (int i = 0; i < 20'000; ++i) {
    // Few addresses, so that erases often succeed and slots form long runs.
    const Ipv6Address address{random() % 2, random() % 300};
    const auto device = static_cast<PortIndex>(random() % 3);
    if (random() % 3 == 0) {
      EXPECT_EQ(table.erase(address, device), oracle.erase({address, device}) == 1);
    } else {
      const MacAddress mac{{2, 0, 0, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)}};
      table.assign({address, device, mac});
      oracle[{address, device}] = mac;
    }
    ASSERT_EQ(table.size(), oracle.size());
  }
  for (std::uint64_t high = 0; high < 2; ++high) {
    for (std::uint64_t low = 0; low < 300; ++low) {
      for (PortIndex device = 0; device < 3; ++device) {
        const MacAddress* const mac = table.view().find({high, low}, device);
        const auto want = oracle.find({{high, low}, device});
        ASSERT_EQ(mac != nullptr, want != oracle.end());
        if (mac != nullptr) {
          EXPECT_EQ(*mac, want->second);
        }
      }
    }
  }
}

TEST(NeighbourReader, RefusesMoreNeighboursThanTheBound) {
  Devices devices(kPorts);
  const std::string text =
      "192.0.2.1 dev wan FAILED\n\n192.0.2.2 dev wan FAILED\n192.0.2.3 dev wan lladdr 02:00:00:00:00:03 STALE\n";
  EXPECT_TRUE(parse_neighbours(text, "neigh.txt", devices, 3));
  const auto refused = parse_neighbours(text, "neigh.txt", devices, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "neigh.txt:4: too many neighbours: found more than 2, expected at most 2 (most_routes raises it)");
}

}  // namespace
}  // namespace penstock::router
