// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests forks in chain files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/chain_file.h"
#include "config/fork_builder.h"

namespace penstock::config {
namespace {

class ForkInChainFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/penstock_fork_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    put("rules", "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n");
    put("routes", "default via 10.0.0.1 dev wan\n");
    put("iptables", "*filter\n:FORWARD ACCEPT\n-A FORWARD -o wan -j DROP\nCOMMIT\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  /// Loads a chain with two ports that read and write, and one that only writes. The functions begin in line 6.
  Result<LoadedChain> load(const std::string& chain, const std::string& more = "wire: {lan: wan, wan: lan}\n") {
    put("chain.yaml",
        "ports:\n"
        "  lan: {pcap: {read: lan.pcap, write: out-lan.pcap}}\n"
        "  wan: {pcap: {read: wan.pcap, write: out-wan.pcap}}\n"
        "  log: {pcap: {write: out-log.pcap}}\n"
        "chain:\n" +
            chain + more);
    LoadOptions options;
    options.only_plan = true;
    return load_chain(folder_ + "/chain.yaml", options);
  }
  std::string errors_of(const std::string& chain, const std::string& more = "wire: {lan: wan, wan: lan}\n") {
    auto loaded = load(chain, more);
    EXPECT_FALSE(loaded) << chain;
    return loaded ? "" : to_string(loaded.error());
  }

  std::string folder_;
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin: " << text;
}

TEST_F(ForkInChainFile, IsBuiltWithItsArms) {
  auto loaded = load(
      "  - router: {routes: routes}\n"
      "  - fork:\n"
      "      - {when: {in_port: [lan, wan], out_port: wan}, chain: [firewall: {rules: rules}, router: {routes: "
      "routes}]}\n"
      "      - {when: [{in_port: wan}, {out_port: lan}], chain: []}\n"
      "      - {chain: [firewall: {rules: rules}]}\n"
      "  - firewall: {rules: rules}\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const run::Chain& chain = loaded->chain;
  ASSERT_EQ(chain.functions.size(), 5U);
  EXPECT_EQ(chain.functions[3].name, "firewall#2");
  ASSERT_EQ(chain.forks.size(), 1U);
  const plan::Fork& fork = chain.forks[0];
  EXPECT_EQ(fork.first, 1U);
  EXPECT_EQ(fork.last, 4U);
  ASSERT_EQ(fork.arms.size(), 3U);
  EXPECT_EQ(fork.arms[0].last, 3U);
  EXPECT_EQ(fork.arms[0].text, "in_port lan|wan and out_port wan");
  EXPECT_EQ(fork.arms[1].first, fork.arms[1].last);
  EXPECT_EQ(fork.arms[1].conditions.size(), 2U);
  EXPECT_EQ(fork.arms[2].first, 3U);
  EXPECT_EQ(fork.arms[2].text, "otherwise");
  EXPECT_TRUE(fork.exhaustive());
}

TEST_F(ForkInChainFile, SetsValuesInArmsFromTheCommandLine) {
  put("chain.yaml",
      "ports: {lan: {pcap: {read: a.pcap}}}\n"
      "chain: [fork: [{when: {in_port: lan}, chain: [firewall: {rules: missing}]}]]\n");
  LoadOptions options;
  options.only_plan = true;
  options.overrides.push_back(*parse_override("chain.fork.0.chain.firewall.rules=" + folder_ + "/rules"));
  const auto loaded = load_chain(folder_ + "/chain.yaml", options);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
}

TEST_F(ForkInChainFile, IsRefusedIfItIsWrong) {
  const struct {
    const char* fork;
    const char* error;
  } cases[] = {
      {"fork:", "chain.yaml:6:5: fork: wrong value: found nothing"},
      {"fork: []", "fork: wrong value: found an empty list, expected a list of arms"},
      {"fork: {when: {in_port: lan}}", "fork: wrong value: found a mapping"},
      {"fork: [{when: {in_port: lan}, chain: []}, {chain: []}]", "fork: no arm has a function"},
      {"fork: [firewall]", "chain.yaml:6:12: fork: wrong arm: found 'firewall'"},
      {"fork: [{when: {in_port: lan}}]", "fork: an arm without a list of functions: found no `chain`"},
      {"fork: [{chain: firewall}]", "found 'firewall', expected a list"},
      {"fork: [{if: {in_port: lan}, chain: [firewall: {rules: rules}]}]",
       "fork: unknown key in an arm: found 'if', expected one of when, chain"},
      {"fork: [{chain: [fork: [{chain: []}]]}]", "fork: forks cannot be nested"},
      {"fork: [{chain: [firewall: {rule: rules}]}]", "chain.yaml:6:32: unknown parameter: found 'rule'"},
      {"fork: [{when: lan, chain: [firewall: {rules: rules}]}]", "when: wrong value: found 'lan'"},
      {"fork: [{when: {}, chain: [firewall: {rules: rules}]}]", "when: wrong value: found an empty mapping"},
      {"fork: [{when: {inport: lan}, chain: [firewall: {rules: rules}]}]",
       "when: unknown condition: found 'inport', expected in_port"},
      {"fork: [{when: {mark: 7}, chain: [firewall: {rules: rules}]}]",
       "when: unknown condition: found 'mark', expected one of in_port, out_port"},
      {"fork: [{when: {in_port: lna}, chain: [firewall: {rules: rules}]}]",
       "in_port: no such port: found 'lna', expected lan"},
      {"fork: [{when: {in_port: log}, chain: [firewall: {rules: rules}]}]", "in_port: this port does not read"},
      {"fork: [{when: {in_port: []}, chain: [firewall: {rules: rules}]}]", "in_port: wrong value: found an empty list"},
      {"fork: [{when: {out_port: wan}, chain: [firewall: {rules: rules}]}]",
       "chain.yaml:6:20: out_port: no port has been chosen yet for some packets"},
      {"fork: [{when: {in_port: [lan, wan]}, chain: [firewall: {rules: rules}]}, {when: {in_port: wan}, chain: []}]",
       "fork: no packet takes this arm: found in_port wan, expected a condition that no earlier arm covers"},
      {"fork: [{chain: [firewall: {rules: rules}]}, {when: {in_port: wan}, chain: []}]",
       "fork: no packet takes this arm"},
  };
  for (const auto& one : cases) expect_has(errors_of(std::string("  - ") + one.fork + "\n"), one.error);
}

TEST_F(ForkInChainFile, KnowsTheOutputPortOnlyIfEveryPathChoosesIt) {
  const std::string fork =
      "  - fork:\n"
      "      - {when: {in_port: lan}, chain: [router: {routes: routes}]}\n";
  const std::string after = "  - firewall: {rules: iptables}\n";
  EXPECT_TRUE(load(fork + "      - {chain: [router: {routes: routes}]}\n" + after));
  expect_has(errors_of(fork + after), "-o is supported only after a function that chooses the port");
  expect_has(errors_of(fork, ""), "several ports write, and the chain does not choose");
}

TEST(ArmCondition, IsDescribedWithNamesOfPorts) {
  const std::vector<std::string> ports{"lan", "wan"};
  const std::vector<plan::ArmCondition> two{{{1}, {0, 1}}, {{0}, {}}};
  EXPECT_EQ(describe(two, ports), "in_port wan and out_port lan|wan or in_port lan");
  EXPECT_EQ(describe({}, ports), "otherwise");
}

}  // namespace
}  // namespace penstock::config
