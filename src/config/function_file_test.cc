// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/function_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/chain_file.h"
#include "process/server.h"
#include "run/run.h"

namespace penstock::config {
namespace {

using ::testing::HasSubstr;

class FunctionFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string refused(const std::string& text) {
    const auto file = FunctionFile::load(write("function.yaml", text), nf::catalog());
    return file ? "" : to_string(file.error());
  }
  static process::Surroundings surroundings() {
    process::Surroundings surroundings;
    surroundings.ports = {{.name = "lan", .reads = true}, {.name = "wan", .writes = true}};
    return surroundings;
  }
  /// Serves the file, as `penstock function serve` does.
  void serve() {
    server_.reset();
    auto file = FunctionFile::load(folder_ / "function.yaml", nf::catalog());
    ASSERT_TRUE(file) << to_string(file.error());
    file_ = std::move(*file);
    auto server = process::Server::start(
        {socket()},
        [this](std::string_view kind,
               const process::Surroundings& of_chain) -> Result<std::unique_ptr<function::NetworkFunction>> {
          auto made = file_->make(kind, of_chain);
          if (!made) return failure(made.error());
          return std::move(made->function);
        });
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }
  [[nodiscard]] std::string socket() const { return folder_ / "function.sock"; }
  Result<LoadedChain> load_chain_with(const std::string& functions) {
    LoadOptions options;
    options.only_plan = true;  // the capture does not exist
    return load_chain_text(
        fmt::format("ports: {{in: {{pcap: {{read: no.pcap}}}}, wan: {{null: {{}}}}}}\nchain: {}\n", functions),
        "chain.yaml", options);
  }
  std::string refused_chain(const std::string& functions) {
    const auto loaded = load_chain_with(functions);
    return loaded ? "" : to_string(loaded.error());
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                        fmt::format("penstock-function-{}-{}", ::getpid(),
                                                    ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::unique_ptr<FunctionFile> file_;
  std::unique_ptr<process::Server> server_;
};

TEST_F(FunctionFileTest, HasOneFunction) {
  EXPECT_EQ(refused("chain: [filter: {expression: udp}]"), "");
  EXPECT_THAT(refused("chain: [filter: {expression: udp}, filter: {expression: tcp}]"), HasSubstr("one function"));
  EXPECT_THAT(refused("chain: []"), HasSubstr("0 functions"));
  EXPECT_THAT(refused("outputs: {}"), HasSubstr("`chain` is missing"));
  EXPECT_THAT(refused("chain: [fork: [{functions: [filter: {expression: udp}]}]]"), HasSubstr("chain"));
  EXPECT_THAT(refused("ports: {}\nchain: [filter: {expression: udp}]"), HasSubstr("unknown section"));
  EXPECT_THAT(refused("chain: [filter: {process: /tmp/a.sock}]"), HasSubstr("runs in its own process"));
  EXPECT_THAT(refused("chain: [filter: {expressions: udp}]"), HasSubstr("expressions"));
}

TEST_F(FunctionFileTest, MayNameLogsOfItsFunctionOnly) {
  const std::string nids = "chain: [nids: {rules: rules.txt}]\noutputs: {" + std::string("eve: ") + "eve.json";
  EXPECT_EQ(refused(nids + "}"), "");
  EXPECT_THAT(refused(nids + ", report: report.json}"), HasSubstr("report: not written"));
  EXPECT_THAT(refused(nids + ", control: /tmp/a.sock}"), HasSubstr("control: not written"));
  EXPECT_THAT(refused("chain: [filter: {expression: udp}]\noutputs: {eve: eve.json}"), HasSubstr("eve: not written"));
}

TEST_F(FunctionFileTest, ReopensItsLogsWhereTheyAreNamed) {
  const std::string eve = folder_ / "eve.json";
  write("rules.txt", "");
  const auto file = FunctionFile::load(
      write("function.yaml", "chain: [nids: {rules: rules.txt}]\noutputs: {eve: " + eve + "}"), nf::catalog());
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_TRUE((*file)->open_logs());
  std::filesystem::rename(eve, eve + ".1");
  EXPECT_TRUE((*file)->reopen_logs().empty());
  EXPECT_TRUE(std::filesystem::exists(eve));
  std::filesystem::rename(eve, eve + ".2");
  std::filesystem::create_directories(eve);
  EXPECT_THAT(to_string((*file)->reopen_logs()), HasSubstr("eve.json")) << "a folder is there now";
  EXPECT_TRUE((*file)->close_logs().empty());
}

TEST_F(FunctionFileTest, MakesTheFunctionForTheChainsPorts) {
  write("routes.txt", "0.0.0.0/0 via 192.0.2.1 dev wan\n");
  const auto file = FunctionFile::load(write("function.yaml", "chain: [router: {routes: routes.txt}]"), nf::catalog());
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ((*file)->function(), "router");
  EXPECT_TRUE((*file)->make("router", surroundings()));
  EXPECT_THAT(to_string((*file)->make("filter", surroundings()).error()), HasSubstr("another function"));
  process::Surroundings others = surroundings();
  others.ports[1].name = "dmz";
  EXPECT_FALSE((*file)->make("router", others));
  // It is read anew.
  write("function.yaml", "chain: [filter: {expression: udp}]");
  EXPECT_THAT(to_string((*file)->make("router", surroundings()).error()), HasSubstr("another function by now"));
}

TEST_F(FunctionFileTest, IsTheOnlyPlaceForAKernelOfSomebodyElse) {
  const std::string module = write("drop.ptx", ".version 9.0\n.visible .entry drop(\n");
  const std::string kernel = fmt::format("[kernel: {{module: {}, entry: drop}}]", module);
  EXPECT_THAT(refused_chain(kernel), HasSubstr("kernel: it needs a process of its own"));
  EXPECT_THAT(refused_chain(kernel), HasSubstr("chain.yaml:2:"));
  const auto file = FunctionFile::load(write("function.yaml", "chain: " + kernel), nf::catalog());
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_TRUE((*file)->make("kernel", surroundings()));
  // What it runs on is found out when a chain begins: here there is no GPU, or no such code for it.
  serve();
  EXPECT_THAT(refused_chain(fmt::format("[kernel: {{process: {}}}]", socket())),
              HasSubstr("the function's process refuses"));
}

TEST_F(FunctionFileTest, IsNamedByAChain) {
  write("function.yaml", "chain: [filter: {expression: udp}]");
  serve();
  const auto loaded = load_chain_with(fmt::format("[filter: {{process: {}}}]", socket()));
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  ASSERT_EQ(loaded->chain.functions.size(), 1U);
  EXPECT_EQ(loaded->chain.functions[0].name, "filter");
  EXPECT_THAT(loaded->chain.functions[0].function->description(), HasSubstr("in the process at"));
}

/// Some packets leave by the port that the filter names, and others by that of the wiring.
TEST_F(FunctionFileTest, LeavesByTheSamePortsAsInOneProcess) {
  const std::string filter = "filter: {expression: \"udp or icmp\", match: {to: dmz}}";
  write("function.yaml", "chain: [" + filter + "]");
  serve();
  const auto run = [&](const std::string& name, const std::string& function) {
    const auto port = [&](const std::string& to) {
      return fmt::format("{}: {{pcap: {{write: {}}}}}", to, (folder_ / (name + "-" + to)).string());
    };
    auto loaded = load_chain_text(
        fmt::format("ports: {{in: {{pcap: {{read: {}}}}}, {}, {}}}\nwire: {{in: wan}}\nchain: [{}]\n",
                    PENSTOCK_SOURCE_DIR "/examples/gateway/lan.pcap", port("wan"), port("dmz"), function),
        "chain.yaml", {});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    const std::atomic<bool> stop{false};
    const auto result = run::run(loaded->chain, {}, stop);
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_EQ(result->report.forwarded.packets, result->report.in.packets);
  };
  run("one", filter);
  run("two", fmt::format("filter: {{process: {}}}", socket()));
  constexpr std::uintmax_t kHeader = 24;
  for (const std::string port : {"wan", "dmz"}) {
    const auto read = [&](const std::string& name) {
      std::ifstream file(folder_ / (name + "-" + port), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    EXPECT_GT(read("one").size(), kHeader) << port;
    EXPECT_EQ(read("one"), read("two")) << port;
  }
}

TEST_F(FunctionFileTest, IsRefusedByAChainWithItsPlace) {
  write("function.yaml", "chain: [filter: {expression: udp}]");
  serve();
  EXPECT_THAT(refused_chain(fmt::format("[firewall: {{process: {}}}]", socket())), HasSubstr("chain.yaml:2:"));
  EXPECT_THAT(refused_chain(fmt::format("[firewall: {{process: {}}}]", socket())), HasSubstr("another function"));
  EXPECT_THAT(refused_chain("[filter: {process: /nowhere.sock}]"), HasSubstr("cannot connect"));
  EXPECT_THAT(refused_chain("[filter: {process: ''}]"), HasSubstr("process: wrong value"));
  EXPECT_THAT(refused_chain(fmt::format("[filter: {{process: {}, expression: udp}}]", socket())),
              HasSubstr("expression"));
  EXPECT_THAT(refused_chain(fmt::format("[filter: {{process: {}, patience: 1us}}]", socket())),
              HasSubstr("patience: out of range"));
  EXPECT_THAT(refused_chain(fmt::format("[filter: {{process: {}, when_lost: ignore}}]", socket())),
              HasSubstr("when_lost"));
  EXPECT_THAT(refused_chain(fmt::format("[filter: {{process: {}, processor: gpu}}]", socket())),
              HasSubstr("processor"));
}

TEST_F(FunctionFileTest, IsRefusedIfItFollowsFlowsThatGoToDifferentWorkers) {
  write("rules.txt", "alert tcp any any -> any 23 (msg:\"Telnet\"; sid:1;)\n");
  write("function.yaml", "chain: [nids: {rules: rules.txt}]");
  serve();
  const std::string functions = fmt::format("[nids: {{process: {}}}]\nrun: {{workers: 2, queueing: shared}}", socket());
  EXPECT_THAT(refused_chain(functions), HasSubstr("queueing: nids follows flows"));
}

TEST_F(FunctionFileTest, IsRefusedIfItsFunctionNeedsItsChain) {
  write("rules.txt", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\nCOMMIT\n");
  write("function.yaml", "chain: [firewall: {rules: rules.txt, helpers: {ftp: 21}}]");
  serve();
  EXPECT_THAT(refused_chain(fmt::format("[firewall: {{process: {}}}]", socket())),
              HasSubstr("its helper changes connections"));
}

}  // namespace
}  // namespace penstock::config
