// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Chains in a proxy whose functions are processes of their own: these load their tables into the proxy.

#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "program/proxy_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GrantedFunctions : public ProxyProgram {
 protected:
  /// `serve NAME` serves NAME.yaml at NAME.sock with its tables in the proxy, in the background, until it listens.
  [[nodiscard]] int script_with_functions(const std::string& commands) const {
    return script(
        "serve() { timeout 60 '" + program() +
        "' function serve $1.sock $1.yaml --proxy sock & SERVED=$!; ALL=\"$ALL $SERVED\"; while [ ! -S $1.sock ] && "
        "kill -0 $SERVED; do sleep 0.01; done; }\n"
        "trap 'kill $ALL $PROXY 2>/dev/null; wait' EXIT\n" +
        commands);
  }
  /// A gateway of three functions. `in_process`: each in one of its own.
  void gateway(const std::string& name, bool in_process, const std::string& run) const {
    const std::string gateway = examples() + "gateway/";
    const std::pair<std::string, std::string> functions[] = {
        {"firewall", "{rules: rules.txt}"},
        {"filter", "{expression: \"not udp port 53\"}"},
        {"router", "{routes: [" + gateway + "routes.txt, " + gateway + "local.txt], neighbours: " + gateway +
                       "neighbours.txt, interfaces: {lo: none}}"},
    };
    write("rules.txt",
          "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp --dport 443 -j DROP\n-A FORWARD -p icmp -j DROP\n"
          "COMMIT\n");
    std::string ports, chain;
    for (const std::string port : {"lan", "wan", "dmz"})
      ports += "  " + port + ": {pcap: {read: " + gateway + port + ".pcap, write: " + name + "-" + port + ".pcap}}\n";
    for (const auto& [function, parameters] : functions) {
      const std::string line = "  - " + function + ": ";
      chain += line + (in_process ? "{process: " + function + ".sock, patience: 5s}" : parameters) + "\n";
      if (in_process) write(function + ".yaml", "chain:\n" + line + parameters + "\n");
    }
    write(name + ".yaml",
          "ports:\n" + ports + "chain:\n" + chain + "run: {" + run + "}\noutputs: {report: " + name + ".json}\n");
  }
};

TEST_F(GrantedFunctions, DoOnTheDeviceWhatOneProcessDoes) {
  gateway("one", false, "processor: cpu");
  gateway("apart", true, "processor: gpu, proxy: sock");
  ASSERT_EQ(script_with_functions("proxy; penstock run -q one.yaml || exit 1\n"
                                  "serve firewall; serve filter; serve router\n"
                                  "penstock check apart.yaml && penstock run -q apart.yaml"),
            0)
      << read("err");
  EXPECT_EQ(json("one.json")["packets"], json("apart.json")["packets"]);
  EXPECT_GT(json("one.json")["packets"]["dropped"], 0);
  for (const std::string port : {"lan", "wan", "dmz"})
    EXPECT_TRUE(read("one-" + port + ".pcap") == read("apart-" + port + ".pcap")) << port;
  EXPECT_GT(json("apart.json")["gpu"]["segments"], 0);
  EXPECT_EQ(json("apart.json")["gpu"]["failures"], 0);
  for (std::size_t f = 0; f < 3; ++f) {
    const auto one = json("one.json")["functions"][f];
    const auto apart = json("apart.json")["functions"][f];
    EXPECT_EQ(one["name"], apart["name"]);
    EXPECT_EQ(one["in"], apart["in"]) << apart.dump(2);
    EXPECT_EQ(one["forwarded"], apart["forwarded"]) << apart.dump(2);
    EXPECT_EQ(apart["details"]["process"]["lost_packets"], 0) << apart.dump(2);
  }
}

TEST_F(GrantedFunctions, DecideByTheConnectionsOfTheChain) {
  gateway("one", false, "processor: cpu");
  gateway("apart", true, "processor: gpu, proxy: sock");
  write("rules.txt",
        // Whether an ICMP error is related depends on batches: connections are confirmed after them.
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p icmp -j DROP\n-A FORWARD -p 58 -j DROP\n"
        "-A FORWARD -m conntrack --ctstate INVALID -j DROP\n"
        "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A FORWARD -p tcp --dport 443 -j DROP\n"
        "-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n");
  ASSERT_EQ(script_with_functions("proxy; penstock run -q one.yaml || exit 1\n"
                                  "serve firewall; serve filter; serve router\n"
                                  "penstock check apart.yaml && penstock run -q apart.yaml"),
            0)
      << read("err");
  EXPECT_EQ(json("one.json")["packets"], json("apart.json")["packets"]);
  for (const std::string port : {"lan", "wan", "dmz"})
    EXPECT_TRUE(read("one-" + port + ".pcap") == read("apart-" + port + ".pcap")) << port;
  EXPECT_GT(json("apart.json")["gpu"]["segments"], 0);
  EXPECT_EQ(json("apart.json")["gpu"]["failures"], 0);
  const auto one = json("one.json")["functions"][0], apart = json("apart.json")["functions"][0];
  EXPECT_EQ(one["dropped"]["packets"], apart["dropped"]["packets"]) << apart.dump(2);
  EXPECT_GT(apart["dropped"]["packets"], 0) << apart.dump(2);
  EXPECT_GT(apart["details"]["connections"]["packets_of_known"], 100) << apart.dump(2);
  EXPECT_EQ(apart["details"]["process"]["lost_packets"], 0) << apart.dump(2);
  EXPECT_THAT(read("err"), Not(HasSubstr("stays on the CPU")));
}

/// An inspected gateway, of three functions in processes of their own or in one.
class GrantedInspection : public GrantedFunctions {
 protected:
  /// `nids`: more of its parameters. `rules`: in place of those of the example.
  void write_chains(const std::string& nids, const std::string& when_lost, const std::string& rules = "") const {
    write("other.rules", rules);
    const std::string gateway = examples() + "gateway/";
    const std::pair<std::string, std::string> functions[] = {
        {"firewall", "{rules: " + examples() + "inspected_gateway/rules.txt}"},
        {"nids", "{rules: [" + (rules.empty() ? examples() + "inspected_gateway/nids.rules" : "other.rules") +
                     "], vars: {HOME_NET: "
                     "\"[192.168.1.0/24,192.0.2.0/24,2001:db8:1::/64,2001:db8:2::/64]\"}" +
                     nids + "}"},
        {"router", "{routes: [" + gateway + "routes.txt, " + gateway + "local.txt], neighbours: " + gateway +
                       "neighbours.txt, interfaces: {lo: none}}"},
    };
    for (const std::string chain : {"one", "apart"}) {
      std::string text = "ports:\n";
      for (const std::string port : {"lan", "wan", "dmz"})
        text += "  " + port + ": {pcap: {read: " + gateway + port + ".pcap, write: " + chain + "-" + port + ".pcap}}\n";
      text += "chain:\n";
      const bool is_apart = chain == "apart";
      for (const auto& [function, parameters] : functions) {
        // The firewall rejects some packets, and its answers leave with those of the chain.
        const bool is_served = is_apart && function != "firewall";
        const std::string line = "  - " + function + ": ";
        text += line + (is_served ? "{process: " + function + ".sock, patience: 5s" : parameters);
        text += !is_served ? "\n" : function == "nids" ? ", when_lost: " + when_lost + "}\n" : "}\n";
        const std::string outputs = function == "nids" ? "outputs: {eve: apart-eve.json, append: false}\n" : "";
        if (is_served) write(function + ".yaml", "chain:\n" + line + parameters + "\n" + outputs);
      }
      text += "run: {workers: 1, processor: " + std::string(is_apart ? "auto, proxy: sock" : "cpu") +
              "}\noutputs: {report: " + chain + ".json, append: false" + (is_apart ? "" : ", eve: one-eve.json") +
              "}\n";
      write(chain + ".yaml", text);
    }
  }
  /// Of a log, in its order. Ids of flows differ between runs, and `stats` if packets need not be tracked.
  [[nodiscard]] std::vector<nlohmann::json> records(const std::string& file, bool with_stats) const {
    std::vector<nlohmann::json> all;
    std::istringstream lines(read(file));
    for (std::string line; std::getline(lines, line);) {
      auto record = nlohmann::json::parse(line);
      record.erase("flow_id");
      const bool is_stats = record["event_type"] == "stats";
      if (is_stats) record["stats"].erase("uptime");
      if (with_stats || !is_stats) all.push_back(std::move(record));
    }
    return all;
  }
  void expect_same_inspection(bool same_stats = true) const {
    ASSERT_EQ(script_with_functions("proxy; penstock run -q one.yaml || exit 1\n"
                                    "serve nids; serve router\n"
                                    "penstock run -q apart.yaml || exit 2\n"
                                    "kill $ALL; wait $ALL; true"),
              0)
        << read("err");
    EXPECT_EQ(json("one.json")["packets"], json("apart.json")["packets"]);
    for (const std::string port : {"lan", "wan", "dmz"})
      EXPECT_TRUE(read("one-" + port + ".pcap") == read("apart-" + port + ".pcap")) << port;
    EXPECT_GT(json("apart.json")["gpu"]["segments"], 0);
    EXPECT_EQ(json("apart.json")["gpu"]["failures"], 0);
    const auto nids = json("apart.json")["functions"][1];
    EXPECT_EQ(nids["details"]["process"]["lost_packets"], 0) << nids.dump(2) << read("err");
    EXPECT_GT(nids["details"]["process"]["confirmed_packets"], 0) << nids.dump(2);
    const auto one = records("one-eve.json", same_stats), apart = records("apart-eve.json", same_stats);
    EXPECT_GT(one.size(), 5U);
    ASSERT_EQ(one.size(), apart.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i], apart[i]);
  }
};

TEST_F(GrantedInspection, RaisesTheAlertsOfOneProcess) {
  for (const std::string when_lost : {"pass", "drop"}) {
    write_chains("", when_lost);
    expect_same_inspection();
  }
}

TEST_F(GrantedInspection, RaisesTheAlertsOfOneProcessWithStatesOfFlows) {
  write_chains(", flow_state: automaton", "pass");
  expect_same_inspection();
}

TEST_F(GrantedInspection, RaisesTheAlertsOfOneProcessForPacketsByThemselves) {
  for (const std::string when_lost : {"pass", "drop"}) {
    write_chains(", tracking: packets", when_lost,
                 "alert udp any any -> any 53 (msg:\"a query\"; content:\"example\"; sid:1;)\n"
                 "alert tcp any any -> any 80 (msg:\"a request\"; content:\"GET \"; sid:2;)\n");
    expect_same_inspection(/*same_stats=*/false);
    EXPECT_GT(json("apart.json")["functions"][1]["details"]["process"]["clear_packets"], 100);
  }
}

TEST_F(GrantedInspection, DropsWhatOneProcessDrops) {
  write_chains(", action: drop", "drop",
               "drop udp any any -> any 53 (msg:\"a query\"; content:\"shop\"; sid:1;)\n"
               "drop tcp any any -> any 80 (msg:\"a request\"; flow:established; content:\"GET \"; sid:2;)\n");
  expect_same_inspection();
  EXPECT_GT(json("apart.json")["functions"][1]["dropped"]["packets"], 0) << json("apart.json").dump(2);
}

TEST_F(GrantedFunctions, MayDieAndComeBack) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  write("endless.yaml",
        "ports:\n  in: {generator: {rate: 20kpps}}\n  out: {\"null\": {}}\nchain:\n  - filter: {process: filter.sock, "
        "when_lost: pass}\nrun: {proxy: sock, duration: 6s}\noutputs: {report: report.json}\n");
  ASSERT_EQ(script_with_functions("proxy; serve filter; penstock run endless.yaml & RUN=$!; sleep 1.5\n"
                                  "pkill -9 -P $SERVED; sleep 0.3; rm -f filter.sock; serve filter; wait $RUN"),
            0)
      << read("err");
  const auto report = json("report.json");
  const auto& packets = report["packets"];
  EXPECT_GT(packets["in"], 40000);
  EXPECT_EQ(packets["in"], packets["forwarded"]) << read("err");
  EXPECT_EQ(report["gpu"]["proxy"]["losses"], 1) << read("err");
  EXPECT_EQ(report["gpu"]["proxy"]["connected"], true) << read("err");
  EXPECT_THAT(read("err"), HasSubstr("tables that another process had granted have gone from the proxy at sock"));
  EXPECT_THAT(read("err"), Not(HasSubstr("the proxy at sock has gone")));
}

TEST_F(GrantedFunctions, AreMissedIfTheirProcessHasNoProxy) {
  write("filter.yaml", "chain: [filter: {expression: udp}]");
  write("chain.yaml",
        "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: out.pcap}}\n"
        "chain: [filter: {process: filter.sock}]\nrun: {processor: gpu, proxy: other}\n");
  ASSERT_EQ(script_with_functions("proxy; serve filter; mv sock other; penstock run -q chain.yaml && exit 9; true"), 0)
      << read("err");
  EXPECT_THAT(read("err"), HasSubstr("has no tables at the proxy"));
}

}  // namespace
}  // namespace penstock
