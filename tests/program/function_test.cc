// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Chains whose functions are processes of their own.

#include <gmock/gmock.h>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class FunctionProgram : public Program {
 protected:
  /// `serve NAME` serves NAME.yaml at NAME.sock, in the background, and waits until it listens.
  [[nodiscard]] int script(const std::string& commands) const {
    return shell(
        "serve() { timeout 60 '" PENSTOCK_PROGRAM
        "' function serve $1.sock $1.yaml & SERVED=$!; ALL=\"$ALL $SERVED\"; while [ ! -S $1.sock ] && kill -0 "
        "$SERVED; do sleep 0.01; done; }\n"
        "trap 'kill $ALL 2>/dev/null; wait' EXIT\n" +
        commands);
  }
  /// The functions of the inspected gateway, without ESP. `in_process`: each in one of its own.
  void gateway(const std::string& name, bool in_process) const {
    const std::string inspected = PENSTOCK_SOURCE_DIR "/examples/inspected_gateway/";
    const std::string gateway = PENSTOCK_SOURCE_DIR "/examples/gateway/";
    const std::pair<std::string, std::string> functions[] = {
        {"firewall", "{rules: " + inspected + "rules.txt}"},
        {"nids", "{rules: " + inspected + "nids.rules, vars: {HOME_NET: \"[192.168.1.0/24,192.0.2.0/24]\"}}"},
        {"router", "{routes: [" + gateway + "routes.txt, " + gateway + "local.txt], neighbours: " + gateway +
                       "neighbours.txt, interfaces: {lo: none}}"},
    };
    std::string ports, chain;
    for (const std::string port : {"lan", "wan", "dmz"})
      ports += "  " + port + ": {pcap: {read: " + gateway + port + ".pcap, write: " + name + "-" + port + ".pcap}}\n";
    for (const auto& [function, parameters] : functions) {
      const std::string line = "  - " + function + ": ";
      chain += line + (in_process ? "{process: " + function + ".sock}" : parameters) + "\n";
      const std::string outputs = function == "nids" ? "outputs: {fast_log: " + name + ".log}\n" : "";
      if (in_process) write(function + ".yaml", "chain:\n" + line + parameters + "\n" + outputs);
    }
    write(name + ".yaml", "ports:\n" + ports + "chain:\n" + chain + "outputs: {report: " + name + ".json" +
                              (in_process ? "" : ", fast_log: " + name + ".log") + "}\n");
  }
  void endless(const std::string& function) const {
    write("endless.yaml", "ports:\n  in: {generator: {rate: 20kpps}}\n  out: {\"null\": {}}\nchain:\n  - " + function +
                              "\nrun: {duration: 3s}\noutputs: {report: report.json, control: chain.sock}\n");
  }
  static void expect_none_missing(const nlohmann::json& packets, int least = 40000) {
    EXPECT_GT(packets["in"], least);
    EXPECT_EQ(packets["in"],
              packets["forwarded"].get<int>() + packets["dropped"].get<int>() + packets["consumed"].get<int>());
  }
};

TEST_F(FunctionProgram, DoesInThreeProcessesWhatItDoesInOne) {
  gateway("one", false);
  gateway("three", true);
  ASSERT_EQ(script("penstock run -q one.yaml || exit 1\n"
                   "serve firewall; serve nids; serve router; penstock check three.yaml && penstock run -q three.yaml"),
            0)
      << read("err");
  EXPECT_EQ(json("one.json")["packets"], json("three.json")["packets"]);
  for (const std::string port : {"lan", "wan", "dmz"})
    EXPECT_TRUE(read("one-" + port + ".pcap") == read("three-" + port + ".pcap")) << port;
  EXPECT_FALSE(read("one.log").empty());
  EXPECT_EQ(read("one.log"), read("three.log"));
  for (std::size_t f = 0; f < 3; ++f) {
    const auto one = json("one.json")["functions"][f];
    const auto three = json("three.json")["functions"][f];
    EXPECT_EQ(one["name"], three["name"]);
    EXPECT_EQ(one["in"], three["in"]) << three.dump(2);
    EXPECT_EQ(three["details"]["process"]["lost_packets"], 0) << three.dump(2);
  }
}

/// Rules that test connections, of a firewall in the chain's process and of one in its own.
class StatefulFunction : public FunctionProgram {
 protected:
  static constexpr std::string_view kRules =
      "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
      "-A FORWARD -p udp -m udp --dport 53 -j DROP\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

  /// `parameters`: of the firewall in its own process, with `is_apart`.
  void write_chain(const std::string& name, const std::string& parameters, bool is_apart) const {
    const std::string gateway = PENSTOCK_SOURCE_DIR "/examples/gateway/";
    std::string ports;
    for (const std::string port : {"lan", "wan", "dmz"})
      ports += "  " + port + ": {pcap: {read: " + gateway + port + ".pcap, write: " + name + "-" + port + ".pcap}}\n";
    write(name + ".yaml", "ports:\n" + ports + "chain:\n  - firewall: {rules: invalid.txt}\n  - firewall: " +
                              (is_apart ? "{process: firewall.sock, patience: 5s}" : parameters) +
                              "\n  - router: {routes: [" + gateway + "routes.txt, " + gateway +
                              "local.txt], neighbours: " + gateway +
                              "neighbours.txt, interfaces: {lo: none}}\noutputs: {report: " + name + ".json}\n");
    if (is_apart) write("firewall.yaml", "chain: [firewall: " + parameters + "]\n");
  }
  void SetUp() override {
    FunctionProgram::SetUp();
    write("rules.txt", std::string(kRules));
    write("invalid.txt",  // Whether an ICMP error is related depends on batches: connections are confirmed after them.
          "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p icmp -j DROP\n-A FORWARD -p 58 -j DROP\n-A FORWARD -m "
          "conntrack --ctstate INVALID -j "
          "DROP\nCOMMIT\n");
  }
};

TEST_F(StatefulFunction, SharesTheConnectionsOfItsChain) {
  write_chain("one", "{rules: rules.txt}", false);
  write_chain("apart", "{rules: rules.txt}", true);
  ASSERT_EQ(script("penstock run -q one.yaml || exit 1\n"
                   "serve firewall; penstock check apart.yaml && penstock run -q apart.yaml"),
            0)
      << read("err");
  EXPECT_EQ(json("one.json")["packets"], json("apart.json")["packets"]);
  for (const std::string port : {"lan", "wan", "dmz"})
    EXPECT_TRUE(read("one-" + port + ".pcap") == read("apart-" + port + ".pcap")) << port;
  const auto one = json("one.json")["functions"][1], apart = json("apart.json")["functions"][1];
  EXPECT_EQ(one["in"], apart["in"]);
  EXPECT_EQ(one["dropped"]["packets"], apart["dropped"]["packets"]) << apart.dump(2);
  EXPECT_GT(apart["dropped"]["packets"], 0);
  EXPECT_GT(apart["details"]["connections"]["packets_of_known"], 100) << apart.dump(2);
  EXPECT_EQ(apart["details"]["process"]["lost_packets"], 0) << apart.dump(2);
}

TEST_F(StatefulFunction, NeedsANewRunIfItBeginsOrCeasesToTestConnections) {
  const std::string with(kRules), without = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j DROP\nCOMMIT\n";
  endless("firewall: {process: firewall.sock, patience: 5s}");
  write("firewall.yaml", "chain: [firewall: {rules: rules.txt}]");
  for (const auto& [first, second] : {std::pair(with, without), std::pair(without, with)}) {
    write("rules.txt", first);
    write("second.txt", second);
    ASSERT_EQ(script("rm -f firewall.sock; serve firewall; penstock run -q endless.yaml & RUN=$!; sleep 1\n"
                     "mv second.txt rules.txt; penstock ctl --socket chain.sock reload && exit 9; wait $RUN"),
              0)
        << read("err");
    EXPECT_THAT(read("err"), HasSubstr("rules that test connections come or go"));
    const auto report = json("report.json");
    expect_none_missing(report["packets"], 1000);
    EXPECT_EQ(report["functions"][0]["details"]["process"]["lost_packets"], 0);
  }
}

/// SAs have one state in a process, however many chains come and go.
TEST_F(FunctionProgram, LetsNoChainBeginLifetimesOrNumbersAnew) {
  const std::string addresses = "src 192.0.2.1 dst 192.0.2.2";
  write("state.txt", addresses +
                         "\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 32 \n"
                         "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n"
                         "\tlifetime config:\n\t  limit: soft (INF)(bytes), hard (INF)(bytes)\n"
                         "\t  limit: soft (INF)(packets), hard 100(packets)\n"
                         "\t  expire add: soft 0(sec), hard 0(sec)\n\t  expire use: soft 0(sec), hard 0(sec)\n"
                         "\tlifetime current:\n\t  0(bytes), 0(packets)\n\t  add 2001-01-01 01:00:00 use -\n");
  write("policy.txt", "src 0.0.0.0/0 dst 0.0.0.0/0\n\tdir out priority 1\n\ttmpl " + addresses +
                          "\n\t\tproto esp reqid 1 mode tunnel\n");
  write("ipsec.yaml", "chain: [ipsec: {state: state.txt, policy: policy.txt, state_dir: none}]");
  write("chain.yaml",
        "ports:\n  in: {generator: {packets: 60}}\n  out: {pcap: {write: out.pcap}}\nchain: [ipsec: {process: "
        "ipsec.sock, "
        "patience: 5s}]\noutputs: {report: report.json}\n");
  ASSERT_EQ(
      script("serve ipsec; for run in 1 2 3; do penstock run -q chain.yaml || exit 1; mv report.json $run.json; mv "
             "out.pcap $run.pcap; done"),
      0)
      << read("err");
  for (const auto& [run, forwarded] : {std::pair("1", 60), std::pair("2", 40), std::pair("3", 0)}) {
    const auto report = json(run + std::string(".json"));
    EXPECT_EQ(report["packets"]["forwarded"], forwarded) << read("err");
    EXPECT_EQ(report["functions"][0]["details"]["process"]["lost_packets"], 0);
  }
  const auto number_in_first = [&](const std::string& capture) {
    constexpr std::size_t kAt = 24 + 16 + 14 + 20 + 4;  // after the SPI
    const std::string file = read(capture);
    return file.size() > kAt + 4 ? static_cast<unsigned char>(file[kAt + 3]) : 0;
  };
  EXPECT_EQ(number_in_first("1.pcap"), 1);
  EXPECT_EQ(number_in_first("2.pcap"), 61);
}

TEST_F(StatefulFunction, CannotChangeConnections) {
  write_chain("apart", "{rules: rules.txt, helpers: {ftp: 21}}", true);
  ASSERT_EQ(script("serve firewall; penstock check apart.yaml"), 2) << read("err");
  EXPECT_THAT(read("err"), HasSubstr("its helper changes connections"));
  write(
      "rules.txt",
      "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m connmark --mark 1 -j DROP\n-A FORWARD -m conntrack --ctstate NEW "
      "-j ACCEPT\nCOMMIT\n");
  write_chain("apart", "{rules: rules.txt}", true);
  ASSERT_EQ(script("rm -f firewall.sock; serve firewall; penstock check apart.yaml"), 2) << read("err");
  EXPECT_THAT(read("err"), HasSubstr("by more than their states"));
}

TEST_F(StatefulFunction, CountsConnectionsOnceAfterAReload) {
  write("firewall.yaml", "chain: [firewall: {rules: rules.txt}]");
  endless("firewall: {process: firewall.sock, patience: 5s}");
  ASSERT_EQ(script("serve firewall; penstock run -q endless.yaml & RUN=$!; sleep 1\n"
                   "sed -i 's/dport 53/dport 54/' rules.txt; penstock ctl --socket chain.sock reload; wait $RUN"),
            0)
      << read("err");
  const auto report = json("report.json");
  expect_none_missing(report["packets"], 1000);
  EXPECT_EQ(report["reloads"], 1);
  const auto& function = report["functions"][0];
  const auto& connections = function["details"]["connections"];
  EXPECT_EQ(connections["packets_of_known"].get<int>() + connections["packets_that_begin"].get<int>(),
            function["in"]["packets"])
      << function.dump(2);
  EXPECT_EQ(function["details"]["process"]["lost_packets"], 0);
}

TEST_F(FunctionProgram, ExplainsNothingInAnotherProcess) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  endless("filter: {process: filter.sock}");
  ASSERT_EQ(script("serve filter; penstock explain endless.yaml --packet udp 10.0.0.1:1 10.0.0.2:2"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("by the process at filter.sock"));
  EXPECT_THAT(read("out"),
              HasSubstr("not certain: filter: it also decides by what this process finds; it is not asked, "
                        "and the packet is taken to pass unchanged"));
}

TEST_F(FunctionProgram, MayDieAndComeBack) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  endless("filter: {process: filter.sock}");
  ASSERT_EQ(script("serve filter; penstock run -q endless.yaml & RUN=$!; sleep 1; pkill -9 -P $SERVED; sleep 0.3\n"
                   "rm -f filter.sock; serve filter; wait $RUN"),
            0)
      << read("err");
  const auto report = json("report.json");
  expect_none_missing(report["packets"]);
  const auto& process = report["functions"][0]["details"]["process"];
  EXPECT_EQ(process["losses"], 1) << read("err");
  EXPECT_EQ(process["connected"], true);
  EXPECT_GT(process["lost_packets"], 0);
  EXPECT_LT(process["lost_packets"], 40000) << "it was not used again: " << read("err");
  EXPECT_EQ(report["packets"]["dropped"], process["lost_packets"]);
}

/// logrotate(8) sends it.
TEST_F(FunctionProgram, ReopensItsLogsAtSighup) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  write("one.yaml", "ports: {in: {generator: {packets: 10}}, out: 'null'}\nchain: [filter: {process: filter.sock}]\n");
  EXPECT_EQ(script("serve filter; sleep 0.3; kill -HUP $(pgrep -P $SERVED); sleep 0.5; penstock run -q one.yaml"), 0)
      << read("err");
  EXPECT_THAT(read("err"), HasSubstr("the logs are reopened"));
}

TEST_F(FunctionProgram, ThatIsStoppedIsLostAfterThePatience) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  endless("filter: {process: filter.sock, when_lost: pass, patience: 50ms}");
  ASSERT_EQ(script("serve filter; penstock run -q endless.yaml & RUN=$!; sleep 1; CHILD=$(pgrep -P $SERVED)\n"
                   "kill -STOP $CHILD; wait $RUN; CODE=$?; kill -CONT $CHILD; exit $CODE"),
            0)
      << read("err");
  const auto report = json("report.json");
  expect_none_missing(report["packets"]);
  EXPECT_EQ(report["packets"]["dropped"], 0);
  EXPECT_GT(report["functions"][0]["details"]["process"]["lost_packets"], 10000);
  EXPECT_THAT(read("err"), HasSubstr("does not answer in time: its packets are passed until it is back"));
}

TEST_F(FunctionProgram, ChangesItsRulesWithAReloadOfTheChain) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  endless("filter: {process: filter.sock, patience: 5s}");
  ASSERT_EQ(
      script(
          "serve filter; penstock run -q endless.yaml & RUN=$!; sleep 1\n"
          "echo 'chain: [filter: {expression: tcp}]' >filter.yaml; penstock ctl --socket chain.sock reload; wait $RUN"),
      0)
      << read("err");
  const auto report = json("report.json");
  expect_none_missing(report["packets"]);
  EXPECT_EQ(report["reloads"], 1);
  EXPECT_GT(report["packets"]["forwarded"], 10000);
  EXPECT_GT(report["packets"]["dropped"], 10000);
  EXPECT_EQ(report["functions"][0]["details"]["process"]["lost_packets"], 0);
}

TEST_F(FunctionProgram, IsMissedWhenARunBegins) {
  write("chain.yaml",
        "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: out.pcap}}\n"
        "chain: [filter: {process: filter.sock}]\n");
  EXPECT_EQ(script("penstock run -q chain.yaml"), 2);
  EXPECT_THAT(read("err"), HasSubstr("cannot connect to the function's process"));
  EXPECT_THAT(read("err"), HasSubstr("penstock function serve"));
  EXPECT_FALSE(exists("out.pcap"));
}

TEST_F(FunctionProgram, IsNotServedIfTheKernelHasItsTables) {
  write("router.yaml", "chain: [router: {routes: kernel}]");
  write("chain.yaml",
        "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: out.pcap}}\n"
        "chain: [router: {process: router.sock}]\n");
  EXPECT_EQ(script("serve router; penstock run -q chain.yaml"), 2);
  EXPECT_THAT(read("err"), HasSubstr("tables of the kernel"));
}

}  // namespace
}  // namespace penstock
