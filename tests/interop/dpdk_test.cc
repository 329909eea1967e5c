// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `dpdk` on DPDK's virtual devices: captures that it reads and writes, compared with the port `pcap`; a ring
// that returns what is sent; and interfaces of Linux, through which hosts in network namespaces reach each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "golden/capture_file.h"
#include "program/program_for_test.h"

namespace penstock {
namespace {

using golden::Record;
using ::testing::HasSubstr;

const std::string kGateway = PENSTOCK_SOURCE_DIR "/examples/gateway/";

const std::string kRouterAndFirewall = R"(
chain:
  - router:
      routes: [GATEWAY/routes.txt, GATEWAY/local.txt]
      neighbours: GATEWAY/neighbours.txt
      interfaces: {lo: none}
      macs: {lan: "02:00:00:00:01:01", wan: "02:00:00:00:02:02", dmz: "02:00:00:00:03:01"}
  - firewall: {rules: GATEWAY/rules.txt, answers: false}
)";

class Dpdk : public Program {
 protected:
  void write_chain(std::string text) const {
    for (std::size_t at = 0; (at = text.find("GATEWAY/", at)) != std::string::npos;) text.replace(at, 8, kGateway);
    write("chain.yaml", text);
  }
  [[nodiscard]] int run(const std::string& arguments = "") const {
    return shell("penstock run chain.yaml --quiet --report report.json --set run.duration=2s " + arguments);
  }
  [[nodiscard]] std::string log() const { return read("out") + read("err"); }

  /// Their times are those of the runs.
  [[nodiscard]] static std::vector<std::string> bytes_of(const std::vector<Record>& records) {
    std::vector<std::string> bytes;
    for (const Record& record : records) bytes.push_back(record.bytes);
    return bytes;
  }
  [[nodiscard]] std::vector<std::string> sorted_frames(const std::string& capture) const {
    std::vector<std::string> bytes = bytes_of(records(capture));
    std::ranges::sort(bytes);
    return bytes;
  }
};

class DpdkWorkers : public Dpdk, public ::testing::WithParamInterface<int> {};

TEST_P(DpdkWorkers, ForwardTheSamePacketsFromCapturesAsThePortPcap) {
  const std::string workers = "--workers " + std::to_string(GetParam());
  write_chain(
      "ports:\n"
      "  lan: {pcap: {read: GATEWAY/lan.pcap, write: pcap-lan.pcap}}\n"
      "  wan: {pcap: {read: GATEWAY/wan.pcap, write: pcap-wan.pcap}}\n"
      "  dmz: {pcap: {read: GATEWAY/dmz.pcap, write: pcap-dmz.pcap}}\n" +
      kRouterAndFirewall);
  ASSERT_EQ(run(workers), 0) << log();
  write_chain(
      "ports:\n"
      "  lan: {dpdk: {device: \"net_pcap0,rx_pcap=GATEWAY/lan.pcap,tx_pcap=dpdk-lan.pcap\", eal: [--no-huge]}}\n"
      "  wan: {dpdk: {device: \"net_pcap1,rx_pcap=GATEWAY/wan.pcap,tx_pcap=dpdk-wan.pcap\"}}\n"
      "  dmz: {dpdk: {device: \"net_pcap2,rx_pcap=GATEWAY/dmz.pcap,tx_pcap=dpdk-dmz.pcap\", lent_frames: 0}}\n" +
      kRouterAndFirewall);
  ASSERT_EQ(run(workers), 0) << log();
  for (const std::string port : {"lan", "wan", "dmz"}) {
    const auto expected = sorted_frames("pcap-" + port + ".pcap");
    EXPECT_GT(expected.size(), 30U);
    EXPECT_EQ(sorted_frames("dpdk-" + port + ".pcap"), expected) << port;
  }
  const nlohmann::json ports = json("report.json")["ports"];
  const nlohmann::json& lan = ports["lan"];
  EXPECT_GE(lan["events"]["frames_lent"].get<int>(),
            lan["in"]["packets"].get<int>() - lan["events"].value("handed_over", 0) - 5)
      << "frames are lent where DPDK received them, except for other workers and in partial pages";
  EXPECT_EQ(ports["dmz"]["events"]["frames_lent"], 0);
  for (const std::string port : {"lan", "wan", "dmz"}) {
    for (const auto& [reason, count] : ports[port]["lost"].items()) EXPECT_EQ(count, 0) << reason;
  }
  if (GetParam() > 1) {
    EXPECT_GT(ports["lan"]["events"]["handed_over"], 0);
  }
}

TEST_P(DpdkWorkers, KeepTheOrderOfEachFlow) {
  write_chain(
      "ports:\n"
      "  lan: {dpdk: {device: \"net_pcap0,rx_pcap=GATEWAY/lan.pcap\", eal: [--no-huge], direction: read}}\n"
      "  out: {dpdk: {device: \"net_pcap1,tx_pcap=out.pcap\", direction: write}}\n"
      "chain: []\n");
  ASSERT_EQ(run("--workers " + std::to_string(GetParam())), 0) << log();
  const auto sent = golden::flows_of(golden::read_capture_file(kGateway + "lan.pcap"));
  const auto received = golden::flows_of(golden::read_capture_file(folder_ / "out.pcap"));
  ASSERT_EQ(received.size(), sent.size());
  for (const auto& [flow, records] : sent) {
    ASSERT_TRUE(received.contains(flow)) << flow;
    EXPECT_EQ(bytes_of(received.at(flow)), bytes_of(records)) << flow;
  }
}

TEST_P(DpdkWorkers, GetBackFromARingWhatTheySent) {
  write_chain(
      "ports:\n"
      "  load: {generator: {packets: 900, flows: 30, size: 200, rate: 100kpps}}\n"
      "  loop: {dpdk: {device: net_ring0, eal: [--no-huge, -m, 256]}}\n"
      "  out: {pcap: {write: out.pcap}}\n"
      "wire: {load: loop, loop: out}\n"
      "chain: []\n");
  ASSERT_EQ(run("--workers " + std::to_string(GetParam())), 0) << log();
  EXPECT_EQ(records("out.pcap").size(), 900U) << log();
  const nlohmann::json ports = json("report.json")["ports"];
  EXPECT_EQ(ports["loop"]["out"]["packets"], 900);
  EXPECT_EQ(ports["loop"]["in"]["packets"], 900);
}

INSTANTIATE_TEST_SUITE_P(Dpdk, DpdkWorkers, ::testing::Values(1, 2));

TEST_F(Dpdk, JoinsFramesOfSeveralBuffers) {
  // 9,000 bytes: more than a buffer for an MTU of 1,500 holds.
  write_chain(
      "ports:\n"
      "  load: {generator: {packets: 50, size: 9000, payload: random}}\n"
      "  big: {pcap: {write: big.pcap}}\n"
      "chain: []\n");
  ASSERT_EQ(run(), 0) << log();
  write_chain(
      "ports:\n"
      "  lan: {dpdk: {device: \"net_pcap0,rx_pcap=big.pcap\", eal: [--no-huge], direction: read}}\n"
      "  out: {pcap: {write: out.pcap}}\n"
      "chain: []\n");
  ASSERT_EQ(run(), 0) << log();
  EXPECT_EQ(bytes_of(records("out.pcap")), bytes_of(records("big.pcap")));
  EXPECT_EQ(records("out.pcap").size(), 50U);
}

TEST_F(Dpdk, RefusesFramesThatAreLongerThanTheMtu) {
  write_chain(
      "ports:\n"
      "  load: {generator: {packets: 50, size: 9000}}\n"
      "  out: {dpdk: {device: \"net_pcap0,tx_pcap=out.pcap\", eal: [--no-huge], direction: write}}\n"
      "chain: []\n");
  ASSERT_EQ(run(), 0) << log();
  EXPECT_EQ(json("report.json")["ports"]["out"]["events"]["refused_too_long"], 50);
  EXPECT_TRUE(records("out.pcap").empty());
}

TEST_F(Dpdk, RefusesArgumentsThatItCannotUse) {
  const auto error_of = [this](const std::string& lan, const std::string& wan) {
    write_chain("ports:\n  lan: {dpdk: {" + lan + "}}\n  wan: {dpdk: {" + wan + "}}\n" +
                "wire: {lan: wan, wan: lan}\nchain: []\n");
    EXPECT_EQ(shell("penstock check chain.yaml"), 2);
    return log();
  };
  EXPECT_THAT(error_of("device: net_ring0, eal: [-m, 512]", "device: net_ring1, eal: [-m, 256]"),
              HasSubstr("chain.yaml:3:41: eal: all ports share one environment of DPDK's: found '-m 256', expected "
                        "'-m 512', as in "));
  EXPECT_THAT(error_of("device: net_ring0", "device: \"net_ring0,nodeaction=x\""),
              HasSubstr("device: another port uses it: found 'net_ring0'"));
  EXPECT_THAT(error_of("device: net_ring0, eal: [--no-pci]", "device: \"81:00.0\""),
              HasSubstr("chain.yaml:3:24: device: a PCI device, but another port has --no-pci: found '81:00.0'"));
  EXPECT_THAT(error_of("device: net_ring0, eal: [-l, 0-3]", "device: net_ring1"),
              HasSubstr("eal: the port decides about this option: found '-l 0-3'"));
  EXPECT_THAT(error_of("device: net_ring0, eal: --no-hug", "device: net_ring1"), HasSubstr("expected --no-huge"));
}

TEST_F(Dpdk, ReportsErrorsInItsOwnWords) {
  write_chain(
      "ports:\n"
      "  lan: {dpdk: {device: \"net_pcap0,rx_pcap=missing.pcap\", eal: [--no-huge]}}\n"
      "chain: []\n");
  EXPECT_NE(run(), 0);
  EXPECT_THAT(log(), HasSubstr("chain.yaml:2:24: port lan: device: DPDK refuses"));
  EXPECT_THAT(log(), HasSubstr("missing.pcap: No such file or directory"));
}

TEST_F(Dpdk, RefusesADeviceWithQueuesThatNoWorkerWouldPoll) {
  write_chain(
      "ports:\n"
      "  lan: {dpdk: {device: \"net_pcap0,rx_pcap=in.pcap,rx_pcap=in.pcap\", eal: [--no-huge], direction: read}}\n"
      "chain: []\n");
  EXPECT_NE(run("--workers 1"), 0);
  EXPECT_THAT(log(), HasSubstr("it has 2 receive queues, more than there are workers (1)"));
}

TEST_F(Dpdk, SaysWhatIsMissingWithoutItsLibrary) {
  write_chain("ports:\n  lan: {dpdk: {device: net_ring0}}\nchain: []\n");
  // A copy of the program elsewhere does not find the library of the build folder.
  EXPECT_EQ(shell("cp '" PENSTOCK_PROGRAM "' copy && ./copy check chain.yaml"), 2);
  EXPECT_THAT(log(), HasSubstr("chain.yaml:2:24: DPDK cannot be used: found libpenstock_dpdk.so"));
  EXPECT_THAT(log(), HasSubstr("expected the package penstock-dpdk (apt install penstock-dpdk)"));
}

/// Two network namespaces with a link between them. `here` runs a chain.
class DpdkOnInterfaces : public Dpdk {
 protected:
  void SetUp() override {
    Dpdk::SetUp();
    const std::string id = std::to_string(::getpid());
    here_ = "ptd" + id + "a";
    there_ = "ptd" + id + "b";
    exists_ = shell("ip netns add " + here_ + " && ip netns add " + there_ + " && ip -n " + here_ +
                    " link add out0 type veth peer name in0 netns " + there_ + " && ip -n " + here_ +
                    " link set out0 up && ip -n " + there_ + " link set in0 up && ip -n " + there_ +
                    " addr add 10.99.1.2/24 dev in0 && test -w /dev/net/tun") == 0;
    if (!exists_) GTEST_SKIP() << "no network namespaces with virtual links and TAP devices here: " << log();
  }
  void TearDown() override {
    static_cast<void>(shell("ip netns del " + here_ + "; ip netns del " + there_));
    Dpdk::TearDown();
  }

  std::string here_, there_;
  bool exists_ = false;
};

TEST_F(DpdkOnInterfaces, ConnectHostsByTapAndAfPacket) {
  for (const std::string workers : {"1", "2"}) {
    write_chain(
        "ports:\n"
        "  lan: {dpdk: {device: \"net_tap0,iface=tap0\", eal: [--no-huge]}}\n"
        "  wan: {dpdk: {device: \"net_af_packet0,iface=out0\"}}\n"
        "wire: {lan: wan, wan: lan}\n"
        "chain: []\n");
    const std::string exec = "ip netns exec " + here_ + " ";
    EXPECT_EQ(shell(exec + "timeout 60 '" PENSTOCK_PROGRAM "' run chain.yaml --quiet --report report.json --workers " +
                    workers + " >run.log 2>&1 & chain=$!\n" + "for i in $(seq 100); do " + exec +
                    "ip link show tap0 up 2>&1 | grep -q LOWER_UP && break; sleep 0.1; done; " + exec +
                    "ip addr add 10.99.1.1/24 dev tap0; " + exec +
                    "ping -c 20 -i 0.05 -W 2 10.99.1.2; result=$?; kill -INT $chain; wait $chain; exit $result"),
              0)
        << log() << read("run.log");
    EXPECT_THAT(read("out"), HasSubstr("20 received"));
    const nlohmann::json ports = json("report.json")["ports"];
    EXPECT_GE(ports["lan"]["in"]["packets"], 20);
    EXPECT_GE(ports["wan"]["out"]["packets"], 20);
    EXPECT_GE(ports["wan"]["in"]["packets"], 20);
  }
}

}  // namespace
}  // namespace penstock
