// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace penstock::port::dpdk {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

PortArguments port(std::string device, std::vector<std::string> eal = {}) {
  return {std::move(device), {"chain.yaml", 1, 1}, std::move(eal), {}};
}

TEST(DpdkArguments, KnowPciAddresses) {
  EXPECT_EQ(pci_address("0000:81:00.0"), "0000:81:00.0");
  EXPECT_EQ(pci_address("81:00.1"), "0000:81:00.1");
  EXPECT_EQ(pci_address("pci:0000:0f:1a.7,representor=[0]"), "0000:0f:1a.7,representor=[0]");
  for (const char* other : {"net_pcap0,rx_pcap=81:00.1", "net_tap0", "81:00", "0000-81:00.0", "", "zz:00.0"})
    EXPECT_EQ(pci_address(other), "") << other;
  EXPECT_EQ(device_name("81:00.1,x=y"), "0000:81:00.1");
  EXPECT_EQ(device_name("net_tap0,iface=a"), "net_tap0");
}

TEST(DpdkArguments, JoinTheOptionsOfAllPortsOnce) {
  const PortArguments a = port("net_ring0", {"--no-huge", "-m", "256"});
  const PortArguments b = port("net_ring1", {"-m256", "--log-level=lib.eal:debug", "--no-huge"});
  const std::array<const PortArguments*, 2> both{&a, &b};
  EXPECT_THAT(check_arguments(b, std::array{&a}), IsEmpty());
  EXPECT_THAT(eal_arguments(both, {2, 3, 7}),
              ElementsAre("penstock", "--lcores", "0@(2,3,7)", "--no-telemetry", "--log-level=*:warning", "--no-shconf",
                          "--no-pci", "--no-huge", "-m", "256", "--log-level=lib.eal:debug"));
}

TEST(DpdkArguments, AllowOnlyTheDevicesOfThePorts) {
  const PortArguments a = port("81:00.1");
  const PortArguments b = port("net_ring0");
  const std::array<const PortArguments*, 2> both{&a, &b};
  const auto arguments = eal_arguments(both, {0});
  EXPECT_THAT(arguments, Contains("-a"));
  EXPECT_THAT(arguments, Contains("0000:81:00.1"));
  EXPECT_THAT(arguments, Not(Contains("--no-pci")));
  EXPECT_THAT(arguments, Contains("--in-memory"));
}

TEST(DpdkArguments, OnceStartedTakeNoOthers) {
  const PortArguments a = port("net_ring0", {"--no-huge"});
  const auto started = eal_arguments(std::array{&a}, {0});
  EXPECT_THAT(check_started(port("net_ring1"), started), IsEmpty());
  EXPECT_THAT(check_started(port("net_ring1", {"--no-huge", "-m", "512"}), started), IsEmpty());
  EXPECT_EQ(check_started(port("net_ring1", {"-m", "1024"}), started).size(), 1U);
  EXPECT_EQ(check_started(port("net_ring1", {"--huge-dir=/x"}), started).size(), 1U);
}

}  // namespace
}  // namespace penstock::port::dpdk
