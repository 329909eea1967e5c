// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a third party in a process of their own: they decide about packets of a chain, and what they do wrong ends
// their process only.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "golden/capture_file.h"
#include "gpu/devices.h"
#include "gpu/third_party_modules.h"
#include "program/program_for_test.h"

namespace penstock::on_gpu {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ThirdParty : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-kernel-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    const int major = gpu::list_devices().devices.at(0).compute_major;
    write("drop.cubin", drop_port_module(major));
    write("faulty.cubin", faulty_module(major));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Serves the function, runs a chain of generated packets, and returns its report; null: it did not run. The exit
  /// status of the function's process is in the file `code`.
  nlohmann::json run(const std::string& parameters, const std::string& more = "") const {
    write("function.yaml", "chain: [kernel: {" + parameters + "}]\n");
    write("chain.yaml",
          "ports:\n  in: {generator: {rate: 200kpps, flows: 64}}\n  out: {\"null\": {}}\n"
          "chain:\n  - kernel: {process: kernel.sock, patience: 5s" +
              more + "}\nrun: {duration: 2s}\noutputs: {report: report.json}\n");
    write("command", fmt::format("P='{}'\n"
                                 "(timeout 60 $P function serve kernel.sock function.yaml 2>served; echo $? >code) &\n"
                                 "while [ ! -S kernel.sock ] && [ ! -f code ]; do sleep 0.05; done\n"
                                 "timeout 60 $P run -q chain.yaml; CODE=$?\n"
                                 "pkill -INT -P $! ; wait; exit $CODE\n",
                                 program()));
    const int status = std::system(("cd '" + folder_.string() + "' && bash command >out 2>err </dev/null").c_str());
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
    return nlohmann::json::parse(read("report.json"));
  }
  [[nodiscard]] std::string messages() const { return read("err") + read("served"); }
  static void expect_none_missing(const nlohmann::json& report) {
    const auto& packets = report["packets"];
    EXPECT_GT(packets["in"], 100'000);
    EXPECT_EQ(packets["in"],
              packets["forwarded"].get<int>() + packets["dropped"].get<int>() + packets["consumed"].get<int>());
  }

  fs::path folder_;
};

TEST_F(ThirdParty, KernelDecidesAboutPackets) {
  const auto passed = run("module: drop.cubin, entry: drop_port, drops: [port], parameters: {port: 1}");
  ASSERT_FALSE(passed.is_null()) << messages();
  expect_none_missing(passed);
  EXPECT_EQ(passed["functions"][0]["details"]["process"]["lost_packets"], 0) << messages();
  EXPECT_EQ(passed["packets"]["dropped"], 0) << passed.dump(1);
}

TEST_F(ThirdParty, KernelDropsWhatItsParameterSays) {
  fs::copy_file(examples() + "gateway/lan.pcap", folder_ / "in.pcap");
  write("function.yaml",
        "chain: [kernel: {module: drop.cubin, entry: drop_port, reads: [l4_dst_port], drops: [port], parameters: "
        "{port: 53}}]\n");
  const std::string ports = "ports: {in: {pcap: {read: in.pcap}}, out: {pcap: {write: OUT.pcap}}}\n";
  const auto chain = [&](const std::string& name, const std::string& function) {
    std::string text = ports;
    text.replace(text.find("OUT"), 3, name);
    write(name + ".yaml", text + "chain: [" + function + "]\n");
  };
  chain("kernel", "kernel: {process: kernel.sock, patience: 5s}");
  chain("filter", "filter: {expression: \"(udp or tcp) and dst port 53\", match: drop}");
  write("command", fmt::format("P='{}'; timeout 60 $P function serve kernel.sock function.yaml & S=$!\n"
                               "while [ ! -S kernel.sock ] && kill -0 $S; do sleep 0.05; done\n"
                               "$P run -q kernel.yaml && $P run -q filter.yaml; CODE=$?\n"
                               "kill -INT $S; wait; exit $CODE\n",
                               program()));
  ASSERT_EQ(std::system(("cd '" + folder_.string() + "' && bash command >out 2>err </dev/null").c_str()), 0)
      << read("err");
  EXPECT_EQ(golden::read_capture_file(folder_ / "kernel.pcap").records.size(),
            golden::read_capture_file(folder_ / "filter.pcap").records.size());
  EXPECT_TRUE(read("kernel.pcap") == read("filter.pcap"));
}

struct Fault {
  const char* entry;
  const char* message;
};

class FaultyThirdParty : public ThirdParty, public ::testing::WithParamInterface<Fault> {};

INSTANTIATE_TEST_SUITE_P(Kernels, FaultyThirdParty,
                         ::testing::Values(Fault{"writes_elsewhere", "the kernel has failed"},
                                           Fault{"never_ends", "the kernel has not ended within 200 ms"},
                                           Fault{"decides_nothing", "has not decided about packet 0"}),
                         [](const auto& fault) { return std::string(fault.param.entry); });

TEST_P(FaultyThirdParty, LosesItsProcessAndTheChainGoesOn) {
  for (const bool passes : {false, true}) {
    const auto report = run(std::string("module: faulty.cubin, limit: 200ms, entry: ") + GetParam().entry,
                            passes ? ", when_lost: pass" : "");
    ASSERT_FALSE(report.is_null()) << messages();
    expect_none_missing(report);
    EXPECT_EQ(report["functions"][0]["details"]["process"]["losses"], 1) << messages();
    EXPECT_EQ(report["packets"][passes ? "dropped" : "forwarded"], 0) << report.dump(1);
    EXPECT_THAT(read("served"), HasSubstr(GetParam().message));
    EXPECT_EQ(read("code"), "1\n");
    for (const char* const file : {"code", "kernel.sock"}) fs::remove(folder_ / file);  // the next run waits for them
  }
}

TEST_F(ThirdParty, KernelHasTheAbisParameters) {
  EXPECT_TRUE(run("module: faulty.cubin, entry: has_other_parameters").is_null());
  EXPECT_THAT(messages(), HasSubstr("has_other_parameters has other parameters than a function's kernel"));
}

TEST_F(ThirdParty, ModuleHasTheVariables) {
  EXPECT_TRUE(run("module: drop.cubin, entry: drop_port, parameters: {ports: 1}").is_null());
  EXPECT_THAT(messages(), HasSubstr("the module has no such variable"));
  fs::remove(folder_ / "code");
  EXPECT_TRUE(run("module: drop.cubin, entry: drop_port, parameters: {port: 65536}").is_null());
  EXPECT_THAT(messages(), HasSubstr("port is too large for the module's variable"));
}

}  // namespace
}  // namespace penstock::on_gpu
