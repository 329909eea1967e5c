// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command_for_test.h"

namespace penstock::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    write(
        "ports:\n"
        "  load: {generator: {packets: 10}}\n"
        "  wan: {null: {}}\n"
        "chain: []\n");
  }
  void write(std::string_view text) const { file_.write(text); }

  [[nodiscard]] static Outcome run(std::vector<std::string> arguments) {
    std::vector<const char*> argv{"penstock"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return outcome_of([&] { return run_program(static_cast<int>(argv.size()), argv.data()); });
  }
  /// The message for a command line that is refused.
  static std::string refusal(std::vector<std::string> arguments) {
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }

  const TestFile file_{"chain.yaml"};
  const std::string& chain_ = file_.path();
};

TEST_F(Program, NamesAnUnknownCommand) {
  EXPECT_EQ(refusal({"chekc", "x.yaml"}),
            "penstock: unknown command: found 'chekc', expected check\nSee `penstock --help`.\n");
  EXPECT_THAT(refusal({"frobnicate"}), HasSubstr("expected one of run, check, plan, "));
  EXPECT_THAT(refusal({}), HasSubstr("expected one of run, check, plan, "));
  EXPECT_THAT(refusal({"scna"}), HasSubstr("expected scan"));
}

/// Scripts pass them if a variable is not set.
TEST_F(Program, RefusesEmptyValuesThatWouldMeanSomethingElse) {
  for (const std::string option : {"--unit-rate", "--user-rate"})
    EXPECT_THAT(refusal({"proxy", "serve", "sock", option, ""}), HasSubstr(option + ": wrong value: found ''"))
        << option;
  EXPECT_THAT(refusal({"ctl", "--socket", "", "stop"}), HasSubstr("--socket: wrong value: found ''"));
}

TEST_F(Program, RefusesLimitsOfAProxyThatLetNothingThrough) {
  const std::string rate = ", expected bits per second in 100Mbps..100Tbps, such as 10Gbps\n";
  const std::vector<std::array<std::string, 3>> wrong{{"--rate", "0.0000001bps", rate},
                                                      {"--rate", "10Mpps", rate},
                                                      {"--rate", "101Tbps", rate},
                                                      {"--unit-rate", "99Mbps", rate},
                                                      {"--user-rate", "much", rate},
                                                      {"--on-device", "32", ", expected a size of 64KiB or more\n"},
                                                      {"--host-memory", "1", ", expected a size of 1MiB or more\n"}};
  for (const auto& [option, value, expected] : wrong)
    EXPECT_THAT(refusal({"proxy", "serve", "sock", option, value}),
                HasSubstr(option + ": wrong value: found '" + value + "'" + expected));
  const std::string help = run({"proxy", "serve", "--help"}).out;
  for (const std::string range : {"100Mbps..100Tbps", "64KiB or more", "1MiB or more"})
    EXPECT_THAT(help, HasSubstr(range));
}

TEST_F(Program, ShowsNoHelpForAnUnknownCommand) {
  EXPECT_EQ(refusal({"shape", "--help"}), refusal({"shape"}));
  EXPECT_THAT(refusal({"--help", "bogus"}), HasSubstr("unknown command: found 'bogus'"));
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"--help"}, {"run", "--help"}, {"--version"}}) {
    const Outcome outcome = run(asked);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out, "");
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Program, AcceptsOnlyIntegers) {
  for (const char* wrong : {"-1", "-5", "18446744073709551616", "1.5", "one", ""}) {
    EXPECT_THAT(refusal({"run", chain_, "--trace", wrong}), HasSubstr("expected a whole number")) << wrong;
    EXPECT_THAT(refusal({"run", chain_, "--workers", wrong}), HasSubstr("expected a whole number")) << wrong;
    EXPECT_THAT(refusal({"plan", chain_, "--packet-size", wrong}), HasSubstr("expected a whole number")) << wrong;
  }
  EXPECT_THAT(refusal({"plan", chain_, "--packet-size", "64,59"}), HasSubstr("found '59'"));
  EXPECT_EQ(run({"plan", chain_, "--packet-size", "64,1518"}).exit_code, 0);
}

TEST_F(Program, PrintsMistakesAsJsonOnRequest) {
  write("ports: {load: {generator: {packets: -1}}, wan: {pcap: {write: none/x}}}\nchain: []\n");
  const Outcome outcome = run({"check", chain_, "--json", "--set", "run.workers=0"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "");
  const auto errors = nlohmann::json::parse(outcome.out)["errors"];
  ASSERT_EQ(errors.size(), 3U) << outcome.out;
  EXPECT_EQ(errors[0]["file"], "--set run.workers=0");
  EXPECT_TRUE(errors[0]["line"].is_null());
  EXPECT_EQ(errors[1]["file"], chain_);
  EXPECT_EQ(errors[1]["line"], 1);
  EXPECT_EQ(errors[1]["column"], 37);
  EXPECT_EQ(errors[1]["message"], "packets: wrong value");
  EXPECT_EQ(errors[1]["found"], "'-1'");
  EXPECT_THAT(errors[1]["expected"], HasSubstr("a whole number"));
  EXPECT_EQ(nlohmann::json::parse(run({"check", chain_, "--json", "--set", "ports.load=generator", "--set",
                                       "ports.wan.pcap.write=/dev/null"})
                                      .out)["errors"]
                .size(),
            0U);
}

TEST_F(Program, PrintsTheParametersAsJson) {
  const auto json = nlohmann::json::parse(run({"check", "--parameters", "--json"}).out);
  const auto named = [](const nlohmann::json& list, const char* name) {
    for (const auto& item : list) {
      if (item["name"] == name) return item;
    }
    return nlohmann::json();
  };
  EXPECT_EQ(named(json["run"], "workers")["range"], "1..256");
  EXPECT_EQ(named(json["run"], "workers")["default"], "1");
  const auto routes = named(named(json["functions"], "router")["parameters"], "routes");
  EXPECT_EQ(routes["required"], true);
  EXPECT_TRUE(routes["default"].is_null());
  EXPECT_FALSE(named(json["ports"], "pcap").is_null());
  EXPECT_FALSE(named(json["outputs"], "report").is_null());
}

TEST_F(Program, NamesAnUnknownOption) {
  EXPECT_EQ(refusal({"run", chain_, "--stric"}),
            "penstock run: unknown option: found '--stric', expected --strict\nSee `penstock run --help`.\n");
  EXPECT_THAT(refusal({"run", "--frobnicate"}), HasSubstr("unknown option: found '--frobnicate'\n"));
  EXPECT_THAT(refusal({"--frobnicate"}), HasSubstr("penstock: unknown option: found '--frobnicate'\n"));
  EXPECT_THAT(refusal({"run", chain_, "other.yaml"}), HasSubstr("unexpected argument: found 'other.yaml'\n"));
  EXPECT_EQ(refusal({"ctl", "stats", "--wach"}),
            "penstock ctl stats: unknown option: found '--wach', expected --watch\nSee `penstock ctl stats --help`.\n");
  EXPECT_THAT(refusal({"ctl", "stat"}), HasSubstr("penstock ctl: unexpected argument: found 'stat', expected stats\n"));
}

TEST_F(Program, SaysWhatIsMissing) {
  EXPECT_EQ(refusal({"run"}), "penstock run: CHAIN.yaml is required\nSee `penstock run --help`.\n");
  EXPECT_THAT(refusal({"check"}), HasSubstr("penstock check: CHAIN.yaml is required\n"));
}

TEST_F(Program, ReportsWrongOptionsInTheUsualForm) {
  EXPECT_THAT(refusal({"run", chain_, "--report"}), StartsWith("penstock run: --report: the value is missing\n"));
  EXPECT_THAT(refusal({"scan", "x", "-S"}),
              StartsWith("penstock scan: --rules: the value is missing: expected FILE\n"));
  EXPECT_THAT(refusal({"classify", "--rules", "a", "--rules", "b"}),
              StartsWith("penstock classify: --rules: given 2 times: expected once\n"));
  EXPECT_THAT(refusal({"scan", "x", "-S", "y", "-k", "z"}),
              StartsWith("penstock scan: -k: wrong value: found 'z', expected one of all, none\n"));
  EXPECT_THAT(refusal({"check", chain_, "--json=x"}), StartsWith("penstock check: --json: "));
}

TEST_F(Program, RefusesEmptyValuesOfOptions) {
  for (const char* option : {"--workers", "--duration", "--processor", "--report"}) {
    EXPECT_THAT(refusal({"run", chain_, option, ""}), HasSubstr(std::string(option) + " '': ")) << option;
  }
  EXPECT_THAT(refusal({"run", chain_, "--workers="}), HasSubstr("--workers"));
  EXPECT_THAT(refusal({"plan", chain_, "--processor", ""}), HasSubstr("--processor '': processor: wrong value"));
  EXPECT_THAT(refusal({"run", ""}), HasSubstr("cannot open"));
}

TEST_F(Program, OptionsOverrideTheFilesValues) {
  const Outcome outcome = run({"run", chain_, "--workers", "2", "--set", "run.workers=3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["workers"], 2);
}

TEST_F(Program, CountsAllSkippedConstructs) {
  const TestFile routes("routes.txt");
  std::string text = "10.0.0.0/8 dev wan\n";
  for (int i = 0; i < 10'003; ++i) text += "192.0.2.0/24 encap mpls 100 dev wan\n";
  routes.write(text);
  write(
      "ports:\n"
      "  load: {generator: {packets: 10}}\n"
      "  wan: {null: {}}\n"
      "chain: [router: {routes: " +
      routes.path() + "}]\n");
  const Outcome outcome = run({"check", chain_});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("incomplete: 10,003 constructs left out\n"));
  EXPECT_THAT(outcome.err, HasSubstr("\nwarning: … and 3 more\n"));
  EXPECT_THAT(outcome.err, HasSubstr(routes.path() + ": 10,000 constructs\n"));
  EXPECT_THAT(outcome.err, HasSubstr("\n  3 more\n"));
  EXPECT_THAT(run({"check", chain_, "--strict"}).err, HasSubstr("refused because of the 10003 constructs above"));
}

TEST_F(Program, ChecksWherePacketsGo) {
  EXPECT_THAT(run({"check", chain_}).out, HasSubstr("port load: reads; packets leave on wan\nport wan: writes\n"));
  write("ports: {load: {generator: {packets: 10}}}\nchain: []\n");
  EXPECT_THAT(run({"check", chain_}).out, HasSubstr("port load: reads; packets are consumed\n"));
}

TEST_F(Program, WarnsAboutSettingsWithoutEffectOnTheCpu) {
  write("ports: {load: {generator: {packets: 10}}}\nchain: []\nrun: {streams: 3, transfer: zero_copy}\n");
  const Outcome outcome = run({"check", chain_});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "warning: " + chain_ + ":3:29: transfer has no effect on the CPU: found 'zero_copy'\n");
}

TEST_F(Program, TracesRulesWithoutTheirControlBytes) {
  const TestFile rules("rules");
  rules.write("*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m comment --comment \"\x1b[31m\" -j ACCEPT\nCOMMIT\n");
  write("ports: {load: {generator: {packets: 10}}}\nchain: [firewall: {rules: " + rules.path() + "}]\n");
  const Outcome outcome = run({"run", chain_, "--trace", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("--comment \"\\x1b[31m\""));
}

TEST_F(Program, PrintsAPlanThatFitsATerminal) {
  const TestFile routes("routes");
  routes.write("default via 10.0.0.1 dev wan\n");
  write("ports: {load: generator, wan: {null: {}}}\nchain: [router: {routes: " + routes.path() + "}]\n");
  for (const char* processor : {"cpu", "gpu"}) {
    const Outcome outcome = run({"plan", chain_, "--processor", processor});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("    reads ipv4 ipv6 "));
    EXPECT_THAT(outcome.out, HasSubstr("    writes "));
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
  EXPECT_THAT(run({"plan", chain_, "--processor", "gpu"}).out,
              AllOf(HasSubstr("the sum of these\nfields' own sizes"),
                    HasSubstr("Transferred with frames: planned and sharing: packets, "),
                    HasSubstr("frames rounded up to 16 bytes, or headers or records; to\nthe device an index of 16 "
                              "bytes per packet in place of the metadata")));
  EXPECT_THAT(run({"plan", chain_, "--processor", "gpu", "--set", "run.frames=whole", "--set", "run.sharing=none"}).out,
              HasSubstr("Transferred with frames: whole and sharing: none, "));
  EXPECT_THAT(run({"plan", chain_, "--processor", "cpu"}).out, HasSubstr("Nothing crosses PCIe."));
}

TEST_F(Program, ShowsWhatFunctionsOnTheCpuCost) {
  const TestFile routes("routes");
  routes.write("default via 10.0.0.1 dev wan\n");
  const TestFile rules("rules");
  rules.write("@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\n");
  const std::string firewall = "firewall: {rules: " + rules.path() + "}";
  write("ports: {load: generator, wan: {null: {}}}\nchain: [" + firewall + ", router: {routes: " + routes.path() +
        ", processor: cpu}, " + firewall + "]\nrun: {processor: gpu}\n");
  const std::string plan = run({"plan", chain_, "--packet-size", "1514"}).out;
  EXPECT_THAT(plan, HasSubstr("\nrouter               cpu\n"));
  // Headers, and a verdict before the second firewall; its verdict and finding come back.
  EXPECT_THAT(plan, HasSubstr("\nThe cost of `processor: cpu` for router\n"
                              "(in brackets: the difference from the same chain without it), for each forwarded "
                              "packet:\n"
                              "frame  bytes to device  bytes to host  round trips  on the path\n"
                              " 1514         116 (+4)        16 (-8)       2 (+1)  all functions\n"));
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  const auto json = nlohmann::json::parse(run({"plan", chain_, "--packet-size", "1514", "--json"}).out);
  EXPECT_EQ(json["cost_of_processors"], nlohmann::json::parse(R"({"on_cpu": ["router"], "round_trips": 1,
                                      "bytes": {"1514": {"to_device": 4, "to_host": -8}}})"));
  EXPECT_THAT(run({"plan", chain_, "--set", "chain.router.processor=auto"}).out, Not(HasSubstr("The cost of")));
  EXPECT_THAT(run({"plan", chain_, "--processor", "cpu"}).out, Not(HasSubstr("The cost of")));
  EXPECT_THAT(run({"check", chain_, "--set", "run.processor=cpu"}).out,
              HasSubstr("\nrouter (processor: cpu): 1 IPv4 route "));
  const auto checked = nlohmann::json::parse(run({"check", chain_, "--set", "run.processor=cpu", "--json"}).out);
  EXPECT_EQ(checked["functions"][1]["processor"], "cpu");
  EXPECT_FALSE(checked["functions"][0].contains("processor"));
}

//   load ─▶ router ─┬ in_port load: firewall ──┬─▶ wan
//                   └ out_port wan: firewall#2 ┘
TEST_F(Program, ShowsTheArmsOfAChainInPlanAndCheck) {
  const TestFile routes("routes");
  routes.write("default via 10.0.0.1 dev wan\n");
  const TestFile rules("rules");
  rules.write("@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\n");
  const std::string firewall = "[firewall: {rules: " + rules.path() + "}]";
  write("ports: {load: generator, wan: {null: {}}}\nchain:\n- router: {routes: " + routes.path() +
        "}\n- fork: [{when: {in_port: load}, chain: " + firewall + "}, {when: {out_port: wan}, chain: " + firewall +
        "}]\n");
  const std::string plan = run({"plan", chain_, "--processor", "gpu", "--packet-size", "64"}).out;
  EXPECT_THAT(plan, HasSubstr("\nfork: in_port load\n  firewall "));
  EXPECT_THAT(plan, HasSubstr("\nfork: out_port wan\n  firewall#2 "));
  EXPECT_THAT(plan, HasSubstr("\njoin\n"));
  EXPECT_THAT(plan, HasSubstr("\nafter router, where the chain forks "));
  EXPECT_THAT(plan, HasSubstr("\nbefore firewall#2 "));
  EXPECT_THAT(plan, HasSubstr("    for packets of the arm: out_port wan\n"));
  for (const char* const path : {" in_port load\n", " out_port wan\n", " no arm\n"})
    EXPECT_THAT(plan, ContainsRegex(std::string("\n +64 +[0-9]+ +[0-9]+ ") + path));
  const auto json = nlohmann::json::parse(run({"plan", chain_, "--processor", "gpu", "--json"}).out);
  EXPECT_EQ(json["stages"][3]["name"], "firewall#2");
  EXPECT_EQ(json["stages"][3]["arm"], "out_port wan");
  EXPECT_EQ(json["on_the_wire"]["paths"].size(), 3U);
  EXPECT_THAT(run({"check", chain_}).out, HasSubstr("\nfirewall#2 (arm: out_port wan): 1 rule, "));
  EXPECT_EQ(nlohmann::json::parse(run({"check", chain_, "--json"}).out)["functions"][2]["arm"], "out_port wan");
}

TEST_F(Program, PrintsTheFunctionsSharesOfTheGpu) {
  const TestFile rules("ids.rules");
  rules.write("alert tcp any any -> any any (content:\"needle\"; sid:1;)\n");
  write("ports: {load: generator, wan: {null: {}}}\nchain: [nids: {rules: " + rules.path() + "}]\n");
  const auto plan = [&](const std::string& shares) {
    return run({"plan", chain_, "--processor", "gpu", "--set", "run.gpu_shares=" + shares});
  };
  EXPECT_THAT(plan("nids=33").out, HasSubstr("multiprocessors: nids 33\n"));
  EXPECT_THAT(plan("auto").out, HasSubstr("multiprocessors: nids auto\n"));
  EXPECT_THAT(plan("whole").out, Not(HasSubstr("multiprocessors")));
}

}  // namespace
}  // namespace penstock::cli
