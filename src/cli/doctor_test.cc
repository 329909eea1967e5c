// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;
using gpu::Availability;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = Finding::State;

Finding find(const std::vector<Finding>& findings, std::string_view subject) {
  for (const Finding& finding : findings)
    if (finding.subject == subject) return finding;
  ADD_FAILURE() << "nothing is said of " << subject;
  return {};
}

/// A machine where nothing is missing.
Machine good_machine() {
  Machine machine;
  machine.cpu_model = "A CPU";
  machine.cores = machine.threads = 8;
  machine.simd = {"avx2"};
  machine.huge_page_bytes = 2 << 20;
  machine.huge_pages = machine.free_huge_pages = 1024;
  machine.capabilities = ~std::uint64_t{0};
  machine.nvidia_pci_devices = 1;
  machine.nvidia_nodes = {"/dev/nvidia0", "/dev/nvidiactl"};
  machine.nvidia_kernel_module = true;
  return machine;
}

CpuTopology one_node() {
  CpuTopology topology;
  topology.present = topology.online = topology.allowed = {0, 1, 2, 3};
  topology.physical_cores = {{0}, {1}, {2}, {3}};
  topology.nodes = {{0, topology.online, 1 << 30}};
  topology.allowed_memory = {0};
  return topology;
}

gpu::DeviceList good_gpus() {
  gpu::DeviceList list;
  list.availability = Availability::kUsable;
  list.driver = "580.65.06";
  list.driver_cuda = list.runtime_cuda = "13.0";
  gpu::Device& device = list.devices.emplace_back();
  device.name = "A GPU";
  device.compute_major = 9;
  device.supported = true;
  return list;
}

gpu::DeviceList no_gpus(Availability why) {
  gpu::DeviceList list = good_gpus();
  list.availability = why;
  list.reason = "the reason";
  list.devices.clear();
  return list;
}

TEST(Doctor, FindsNothingMissingOnAGoodMachine) {
  for (const Finding& finding : examine(good_machine(), one_node(), good_gpus(), "")) {
    EXPECT_NE(finding.state, State::missing) << finding.subject;
    EXPECT_THAT(finding.fix, IsEmpty()) << finding.subject;
  }
}

TEST(Doctor, SaysWhetherMpsIsInstalledWhereThereIsAGpu) {
  const Finding mps = find(examine(good_machine(), one_node(), good_gpus(), ""), "MPS");
  EXPECT_THAT(mps.found, HasSubstr("nvidia-cuda-mps-control"));
}

TEST(Doctor, ExplainsTheConsequenceOfEveryMissingThing) {
  for (const Finding& finding : examine(Machine{}, one_node(), no_gpus(Availability::kBuiltWithoutCuda), "")) {
    if (finding.state != State::missing) continue;
    EXPECT_FALSE(finding.found.empty()) << finding.subject;
    EXPECT_FALSE(finding.means.empty()) << finding.subject;
  }
}

TEST(Doctor, DistinguishesABuildWithoutCudaFromAMissingDriver) {
  Machine bare = good_machine();
  bare.nvidia_nodes.clear();
  bare.nvidia_kernel_module = false;
  bare.nvidia_pci_devices = 0;

  const auto without_cuda = examine(bare, one_node(), no_gpus(Availability::kBuiltWithoutCuda), "");
  EXPECT_EQ(find(without_cuda, "program").state, State::missing);

  const auto without_driver = examine(bare, one_node(), no_gpus(Availability::kNoDriver), "");
  EXPECT_EQ(find(without_driver, "program").state, State::ok);
  EXPECT_EQ(find(without_driver, "driver").state, State::missing);
  EXPECT_EQ(find(without_driver, "driver").found, "the reason");
  EXPECT_EQ(find(without_driver, "hardware").state, State::missing);
}

TEST(Doctor, RecognisesAContainerWithDevicesButWithoutTheLibrary) {
  const Finding driver = find(examine(good_machine(), one_node(), no_gpus(Availability::kNoDriver), ""), "driver");
  EXPECT_EQ(driver.state, State::missing);
  EXPECT_THAT(driver.fix, HasSubstr("container"));
}

TEST(Doctor, ReportsWhyADriverShowsNoDevice) {
  for (const Availability why : {Availability::kNoDevice, Availability::kFailed}) {
    const Finding devices = find(examine(good_machine(), one_node(), no_gpus(why), ""), "devices");
    EXPECT_EQ(devices.state, State::missing);
    EXPECT_EQ(devices.found, "the reason");
  }
  EXPECT_EQ(find(examine(good_machine(), one_node(), no_gpus(Availability::kDriverTooOld), ""), "driver").found,
            "the reason");
}

TEST(Doctor, DoesNotCallADeviceGoodThatFailedWhenUsed) {
  const Finding device = find(examine(good_machine(), one_node(), good_gpus(), "out of memory"), "gpu 0");
  EXPECT_EQ(device.state, State::missing);
  EXPECT_THAT(device.found, HasSubstr("out of memory"));

  gpu::DeviceList old = good_gpus();
  old.devices[0].supported = false;
  EXPECT_EQ(find(examine(good_machine(), one_node(), old, ""), "gpu 0").state, State::missing);
}

TEST(Doctor, NamesEachCapabilityThatIsMissing) {
  Machine machine = good_machine();
  machine.capabilities = std::uint64_t{1} << CAP_NET_ADMIN;
  const auto findings = examine(machine, one_node(), good_gpus(), "");
  EXPECT_EQ(find(findings, "CAP_NET_RAW").state, State::missing);
  EXPECT_EQ(find(findings, "CAP_NET_ADMIN").state, State::ok);
  EXPECT_EQ(find(findings, "CAP_BPF").state, State::missing);

  machine.capabilities |= std::uint64_t{1} << CAP_SYS_ADMIN;
  EXPECT_EQ(find(examine(machine, one_node(), good_gpus(), ""), "CAP_BPF").state, State::ok);
}

TEST(Doctor, DistinguishesAForbiddenSocketFromAnUnsupportedOne) {
  Machine machine = good_machine();
  machine.af_packet_errno = EPERM;
  machine.af_xdp_errno = EAFNOSUPPORT;
  const auto findings = examine(machine, one_node(), good_gpus(), "");
  EXPECT_THAT(find(findings, "AF_PACKET").fix, HasSubstr("CAP_NET_RAW"));
  EXPECT_THAT(find(findings, "AF_XDP").fix, HasSubstr("kernel"));
}

TEST(Doctor, SuggestsMoreLockedMemoryOnlyIfItIsLimited) {
  Machine machine = good_machine();
  machine.locked_memory_limit_bytes = 8 << 20;
  EXPECT_EQ(find(examine(machine, one_node(), good_gpus(), ""), "locked memory").state, State::ok);
  machine.capabilities = 0;
  EXPECT_EQ(find(examine(machine, one_node(), good_gpus(), ""), "locked memory").state, State::missing);
  machine.locked_memory_limit_bytes.reset();
  EXPECT_EQ(find(examine(machine, one_node(), good_gpus(), ""), "locked memory").state, State::ok);
}

TEST(Doctor, DistinguishesUsedHugePagesFromNone) {
  Machine machine = good_machine();
  machine.free_huge_pages = 0;
  EXPECT_THAT(find(examine(machine, one_node(), good_gpus(), ""), "huge pages").found, HasSubstr("in use"));
  machine.huge_pages = 0;
  EXPECT_THAT(find(examine(machine, one_node(), good_gpus(), ""), "huge pages").found, HasSubstr("none"));
}

/// Provides a small /proc, /sys and /dev in a temporary folder.
class MachineTest : public testing::Test {
 protected:
  MachineTest() { fs::remove_all(root); }
  ~MachineTest() override { fs::remove_all(root); }
  MachineTest(const MachineTest&) = delete;
  MachineTest& operator=(const MachineTest&) = delete;

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }

  const fs::path root = fs::path(testing::TempDir()) /
                        ("machine_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(MachineTest, CountsCoresNotThreads) {
  std::string cpuinfo;
  for (int thread = 0; thread < 8; ++thread)
    cpuinfo += "processor\t: " + std::to_string(thread) +
               "\nmodel name\t: Some CPU @ 2.0GHz\nphysical id\t: " + std::to_string(thread / 4) +
               "\ncore id\t\t: " + std::to_string(thread % 2) + "\nflags\t\t: fpu avx2 vaes\n\n";
  write("proc/cpuinfo", cpuinfo);
  const Machine machine = look_at_machine(root);
  EXPECT_EQ(machine.cpu_model, "Some CPU @ 2.0GHz");
  EXPECT_EQ(machine.cores, 4U);
  EXPECT_THAT(machine.simd, ElementsAre("avx2", "vaes"));
}

TEST_F(MachineTest, ReadsMemoryHugePagesAndCapabilities) {
  write("proc/meminfo",
        "MemTotal:       1024 kB\nMemAvailable:    512 kB\nHugePages_Total:      4\nHugePages_Free:       3\n"
        "Hugepagesize:       2048 kB\n");
  write("proc/self/status", "Name:\tx\nCapEff:\t0000000000003000\n");
  const Machine machine = look_at_machine(root);
  EXPECT_EQ(machine.memory_bytes, 1U << 20);
  EXPECT_EQ(machine.available_memory_bytes, 1U << 19);
  EXPECT_EQ(machine.huge_pages, 4U);
  EXPECT_EQ(machine.free_huge_pages, 3U);
  EXPECT_EQ(machine.huge_page_bytes, 2U << 20);
  EXPECT_TRUE(has_capability(machine, CAP_NET_RAW));
  EXPECT_TRUE(has_capability(machine, CAP_NET_ADMIN));
  EXPECT_FALSE(has_capability(machine, CAP_BPF));
}

TEST_F(MachineTest, FindsGpusOnTheBusWithoutADriver) {
  write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");  // the GPU's audio device
  write("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
  write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
  write("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  write("dev/nvidia0", "");
  const Machine machine = look_at_machine(root);
  EXPECT_EQ(machine.nvidia_pci_devices, 1U);
  EXPECT_THAT(machine.nvidia_nodes, ElementsAre("/dev/nvidia0"));
  EXPECT_FALSE(machine.nvidia_kernel_module);
}

TEST_F(MachineTest, KeepsDefaultsIfNothingCanBeRead) {
  const Machine machine = look_at_machine(root);
  EXPECT_TRUE(machine.cpu_model.empty());
  EXPECT_EQ(machine.memory_bytes, 0U);
}

}  // namespace
}  // namespace penstock::cli
