// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A run whose metrics are looked at while packets flow, also by clients that mean harm. `curl` is the client of good
// will.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/testing/free_port.h"
#include "program/program_for_test.h"
#include "report/exposition_for_test.h"

namespace penstock {
namespace {

using report::ReadMetrics;
using ::testing::HasSubstr;
using ::testing::Not;

int connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

class MonitoredProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    port_ = testing::free_port();
    write("rules.txt", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.0/9 -j DROP\nCOMMIT\n");
    write("endless.yaml",
          "ports: {lan: {generator: {rate: 2kpps, flows: 64, source: 10.0.0.0/8}}, wan: {null: {}}}\n"
          "chain: [firewall: {rules: rules.txt}]\n"
          "run: {workers: 2}\n"
          "outputs: {report: report.json, metrics: {listen: \"" +
              address() + "\"}}\n");
  }
  void TearDown() override {
    static_cast<void>(shell("[ ! -e pid ] || kill -9 $(cat pid)"));
    Program::TearDown();
  }
  void start() const {
    ASSERT_EQ(shell("'" PENSTOCK_PROGRAM "' run endless.yaml -q --duration 100s >run.out 2>run.err & echo $! >pid\n"
                    "until curl -sf http://" +
                    address() +
                    "/metrics | grep -q '^penstock_state{state=\"running\"} 1'; "
                    "do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
              0)
        << read("run.err");
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string get(const std::string& path, const std::string& options = "") const {
    EXPECT_EQ(shell("curl -sS -m 20 " + options + " 'http://" + address() + path + "'"), 0) << read("err");
    return read("out");
  }
  [[nodiscard]] ReadMetrics metrics() const {
    ReadMetrics metrics(get("/metrics"));
    EXPECT_EQ(metrics.complaints, "");
    return metrics;
  }
  /// The run's report, after a clean end.
  [[nodiscard]] nlohmann::json end() const {
    EXPECT_EQ(shell("kill -INT $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done; rm pid"), 0);
    return json("report.json");
  }

  std::uint16_t port_ = 0;
};

TEST_F(MonitoredProgram, ServesMetricsThatAgreeWithEachOtherAndWithTheReport) {
  start();
  const ReadMetrics first = metrics();
  ReadMetrics second = metrics();
  while (second.sum("penstock_received_packets_total") < 500) second = metrics();
  for (const auto& [name, family] : first.families) {
    if (family.type != "counter") continue;
    for (const auto& [key, value] : family.samples)
      EXPECT_LE(value, second.value(name, key.second, key.first).value_or(-1)) << name;
  }
  EXPECT_EQ(second.sum("penstock_port_received_packets_total"), second.value("penstock_received_packets_total"));
  EXPECT_EQ(second.sum("penstock_worker_received_packets_total"), second.value("penstock_received_packets_total"));
  EXPECT_GT(second.value("penstock_firewall_rule_packets_total",
                         {{"function", "firewall"}, {"line", "3"}, {"index", "0"}, {"target", "drop"}}),
            0);
  EXPECT_GT(second.value("penstock_latency_seconds", {}, "_count"), 0);
  EXPECT_EQ(second.value("penstock_workers"), 2);
  EXPECT_GT(second.sum("penstock_worker_idle_seconds_total"), 0) << "2,000 packets per second are little work";
  EXPECT_LT(second.value("process_start_time_seconds").value_or(0), static_cast<double>(std::time(nullptr) + 2));
  EXPECT_GT(second.value("process_start_time_seconds").value_or(0), static_cast<double>(std::time(nullptr) - 600));
  const nlohmann::json report = end();
  EXPECT_GE(report["packets"]["in"], second.value("penstock_received_packets_total"));
  EXPECT_GE(report["functions"][0]["dropped"]["reasons"]["denied"],
            second.value("penstock_function_dropped_packets_total", {{"function", "firewall"}, {"reason", "denied"}}));
  EXPECT_THAT(read("run.err"), Not(HasSubstr("metrics")));
}

TEST_F(MonitoredProgram, ShowsHowBusyWorkersAre) {
  const auto idle_part = [this](const std::string& options) {
    EXPECT_EQ(shell("penstock run endless.yaml -q --duration 1s --workers 1 " + options), 0) << read("err");
    const nlohmann::json report = json("report.json");
    return report["by_worker"][0]["idle_s"].get<double>() / report["elapsed_s"].get<double>();
  };
  EXPECT_GT(idle_part(""), 0.5) << "2,000 packets per second are little work";
  EXPECT_LT(idle_part("--set ports.lan.generator.rate=1Tbps"), 0.5) << "there are always more packets";
}

TEST_F(MonitoredProgram, ServesNoOtherHostsAndMethodsAndPages) {
  start();
  const std::string status = "-o /dev/null -w '%{http_code}' ";
  EXPECT_EQ(get("/metrics", status), "200");
  EXPECT_EQ(get("/metrics", status + "-I"), "200");
  EXPECT_EQ(get("/metrics", status + "-H 'Host: evil.example'"), "403");
  EXPECT_EQ(get("/metrics", status + "-d x"), "405");
  EXPECT_EQ(get("/chain.yaml", status), "404");
  EXPECT_THAT(get("/metrics", "-i -H 'Origin: http://evil.example'"), Not(HasSubstr("Access-Control")));
}

TEST_F(MonitoredProgram, LosesNoPacketsToClientsThatMeanHarm) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  start();
  std::vector<int> sockets;
  for (int i = 0; i < 1000; ++i) {
    const int socket = sockets.emplace_back(connect_to(port_));
    constexpr int kLittle = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kLittle, sizeof kLittle);
    const std::string_view texts[] = {"GET /metrics HTT", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                      "\x16\x03\x01\x02\xff", ""};
    const std::string_view text = texts[i % 4];
    if (!text.empty()) static_cast<void>(::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
  }
  const ReadMetrics served = metrics();
  for (const int socket : sockets) ::close(socket);
  EXPECT_EQ(served.sum("penstock_chain_dropped_packets_total"), 0);
  EXPECT_EQ(
      shell("grep -q CapEff:.0000000000000000 $(grep -l monitor /proc/$(cat pid)/task/*/comm | xargs dirname)/status"),
      0)
      << "the thread that talks with clients has capabilities";
  const nlohmann::json report = end();
  EXPECT_EQ(report["packets"]["in"], report["packets"]["forwarded"].get<std::uint64_t>() +
                                         report["packets"]["dropped"].get<std::uint64_t>() +
                                         report["packets"]["consumed"].get<std::uint64_t>());
  EXPECT_EQ(report["dropped_by_chain"]["queue_full"], 0);
  // A generator with a rate is late when something keeps its worker from work.
  EXPECT_LT(report["ports"]["lan"]["offered"]["behind_s"], 0.5);
  EXPECT_TRUE(report["errors"].empty());
}

TEST_F(MonitoredProgram, WarnsOfAddressesThatOthersReach) {
  EXPECT_EQ(shell("penstock check endless.yaml"), 0);
  EXPECT_THAT(read("err") + read("out"), Not(HasSubstr("authentication")));
  EXPECT_EQ(shell("penstock check endless.yaml --set outputs.metrics.listen=0.0.0.0:9474"), 0);
  EXPECT_THAT(read("err") + read("out"),
              HasSubstr("whoever reaches this address can see the run, without authentication"));
}

TEST_F(MonitoredProgram, TakesAnIpv6AddressFromTheCommandLine) {
  if (shell("ping -6 -c 1 -W 1 ::1") != 0) GTEST_SKIP() << "this machine has no IPv6";
  const std::string address = "[::1]:" + std::to_string(port_);
  EXPECT_EQ(shell("(sleep 0.1; until curl -gsf http://" + address +
                  "/metrics >metrics; do sleep 0.1; done) &\n"
                  "penstock run endless.yaml -q --duration 2s --metrics '" +
                  address + "'"),
            0)
      << read("err");
  EXPECT_EQ(ReadMetrics(read("metrics")).complaints, "");
}

TEST_F(MonitoredProgram, RefusesAddressesThatAreNone) {
  EXPECT_EQ(shell("penstock run endless.yaml --metrics localhost:9474"), 2);
  EXPECT_THAT(read("err"), HasSubstr("--metrics localhost:9474: metrics.listen: not an address to listen at: found "
                                     "'localhost:9474', expected an IP address and a port, such as 127.0.0.1:9474"));
  for (const char* const odd : {"\"\"", "\"[1, 2]\"", "\"it's\"", "\"a: b\""})
    EXPECT_EQ(shell(std::string("penstock run endless.yaml --metrics ") + odd), 2) << odd;
  EXPECT_EQ(shell("penstock run endless.yaml --metrics 127.0.0.1:0"), 2);
  EXPECT_THAT(read("err"), HasSubstr("port 0 cannot be listened at"));
  start();
  EXPECT_EQ(shell("penstock run endless.yaml --report other.json"), 2);
  EXPECT_THAT(read("err"), HasSubstr(address() + ": cannot listen for HTTP: found Address already in use"));
}

}  // namespace
}  // namespace penstock
