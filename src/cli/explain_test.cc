// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_for_test.h"
#include "control/probe_packet.h"
#include "nf/catalog.h"

namespace penstock::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExplainCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    rules_.write(
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 10.9.0.0/16 -j DROP\n"
        "-A FORWARD -p tcp -m tcp --dport 443 -j ACCEPT\nCOMMIT\n");
    // Neither of these files exists, or is made.
    chain_.write(
        "ports:\n  lan: {pcap: {read: /nowhere/in.pcap}}\n  wan: {pcap: {write: /nowhere/out.pcap}}\n"
        "wire: {lan: wan}\nchain:\n  - firewall: {rules: " +
        rules_.path() +
        "}\n"
        "run: {processor: cpu}\noutputs: {report: /nowhere/report.json}\n");
  }

  [[nodiscard]] Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"explain", chain_.path()});
    return outcome_of([&] {
      CLI::App app;
      int exit_code = -1;
      add_explain(app, nf::catalog(), exit_code);
      try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
      } catch (const CLI::ParseError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
      }
      return exit_code;
    });
  }

  /// A classic capture of these packets.
  void write_capture(const std::vector<std::string>& tuples, const std::string& end = "") const {
    std::string bytes;
    const auto number = [&](std::uint32_t value) {
      for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(value >> 8 * i);
    };
    for (const std::uint32_t value : {0xa1b2c3d4U, 0x00040002U, 0U, 0U, 65535U, 1U}) number(value);
    for (const std::string& tuple : tuples) {
      const auto frame = control::make_probe({tuple, ""}).value();
      for (const std::size_t value : {std::size_t{1}, std::size_t{0}, frame.size(), frame.size()})
        number(static_cast<std::uint32_t>(value));
      bytes.append(frame.begin(), frame.end());
    }
    capture_.write(bytes + end);
  }

  const TestFile rules_{"rules"}, chain_{"chain.yaml"}, capture_{"capture.pcap"};
};

TEST_F(ExplainCommand, FollowsAPacketThroughTranslations) {
  const TestFile routes("routes"), neighbours("neighbours");
  routes.write("10.1.0.0/24 dev lan\ndefault via 203.0.113.1 dev wan\n");
  neighbours.write("10.1.0.5 dev lan lladdr 02:00:00:00:01:05\n203.0.113.1 dev wan lladdr 02:00:00:00:02:01\n");
  rules_.write(
      "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -d 10.1.0.5/32 -m conntrack --ctstate DNAT -j ACCEPT\n"
      "-A FORWARD -i lan -j ACCEPT\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
      "-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.0.6\n"
      "-A PREROUTING -p tcp -m tcp --dport 443 -j DNAT --to-destination 10.1.0.5:8443\n"
      "-A POSTROUTING -o wan -j MASQUERADE\nCOMMIT\n");
  chain_.write(
      "ports:\n  lan: {pcap: {read: /nowhere/1.pcap, write: /nowhere/2.pcap}}\n"
      "  wan: {pcap: {read: /nowhere/3.pcap, write: /nowhere/4.pcap}}\nchain:\n  - firewall: {rules: " +
      rules_.path() + ", hook: prerouting}\n  - router: {routes: " + routes.path() +
      ", neighbours: " + neighbours.path() + "}\n  - firewall: {rules: " + rules_.path() +
      ", hook: forward}\n  - firewall: {rules: " + rules_.path() +
      ", hook: postrouting, addresses: {wan: 203.0.113.5}}\nrun: {workers: 1, processor: cpu}\n");
  const Outcome in = run({"--packet", "tcp", "192.0.2.7:4242", "203.0.113.5:443", "--in", "wan"});
  EXPECT_EQ(in.exit_code, 0) << in.err;
  EXPECT_THAT(in.out, HasSubstr("    not NAT rule 0 (line 9): -A PREROUTING -p tcp -m tcp --dport 80 -j DNAT "
                                "--to-destination 10.1.0.6\n"
                                "        the destination port 443 is not in 80\n"
                                "    by policy accept: no rule matches\n"
                                "    NAT rule 1 (line 10): -A PREROUTING -p tcp -m tcp --dport 443 -j DNAT "
                                "--to-destination 10.1.0.5:8443: destination 203.0.113.5:443 to 10.1.0.5:8443\n"));
  EXPECT_THAT(in.out, HasSubstr("    changes ipv4_dst 203.0.113.5 → 10.1.0.5\n"));
  EXPECT_THAT(in.out, HasSubstr("    by 10.1.0.0/24 dev lan\n"));
  EXPECT_THAT(in.out, HasSubstr("--ctstate DNAT -j ACCEPT\n"));
  EXPECT_THAT(in.out, HasSubstr("\nforward to lan\n"));
  const Outcome out = run({"--packet", "tcp", "10.1.0.5:4242", "192.0.2.7:853", "--in", "lan"});
  EXPECT_THAT(out.out,
              HasSubstr("-A POSTROUTING -o wan -j MASQUERADE: source 10.1.0.5:4242 to 203.0.113.5:4242, or, if "
                        "that is in use, to a free port of 1024-65535\n"));
  EXPECT_THAT(out.out, HasSubstr("by which ports are in use\n"));
}

TEST_F(ExplainCommand, SaysWhichRuleDecidesAndWhyNotThoseBefore) {
  const Outcome outcome = run({"--packet", "tcp", "10.1.0.5:4242", "192.0.2.7:443"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "IPv4 10.1.0.5:4242 > 192.0.2.7:443 TCP, from lan\n"
            "firewall: forward\n"
            "    not rule 0 (line 3): -A FORWARD -s 10.9.0.0/16 -j DROP\n"
            "        the source address 10.1.0.5 is not in 10.9.0.0-10.9.255.255\n"
            "    by rule 1 (line 4): -A FORWARD -p tcp -m tcp --dport 443 -j ACCEPT\n"
            "forward to wan\n");
}

TEST_F(ExplainCommand, TakesATupleAsOneArgumentToo) {
  const Outcome outcome = run({"--packet", "tcp [2001:db8::1]:1 [2001:db8::2]:80", "--flags", "ack", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["verdict"], "drop");
  EXPECT_EQ(json["reason"], "denied");
  EXPECT_EQ(json["steps"][0]["function"], "firewall");
}

TEST_F(ExplainCommand, ExplainsThePacketsOfACapture) {
  write_capture({"tcp 10.1.0.5:1 192.0.2.7:443", "udp 10.1.0.5:1 192.0.2.7:53", "tcp 10.9.0.5:1 192.0.2.7:443"});
  const Outcome text = run({"-r", capture_.path()});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(StartsWith("packet 1: IPv4 10.1.0.5:1 > 192.0.2.7:443 TCP, from lan\nfirewall: forward\n"),
                    HasSubstr("\n\npacket 2: IPv4 10.1.0.5:1 > 192.0.2.7:53 UDP, from lan\n"),
                    HasSubstr("by rule 0 (line 3): -A FORWARD -s 10.9.0.0/16 -j DROP")));
  const Outcome json = run({"-r", capture_.path(), "--json", "--filter", "tcp"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const std::size_t line = json.out.find('\n');
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json.out.substr(0, line))["number"], 1);
  EXPECT_EQ(nlohmann::json::parse(json.out.substr(line))["number"], 3);
}

TEST_F(ExplainCommand, SaysWhenItLeavesPacketsOut) {
  write_capture({"udp 10.1.0.5:1 192.0.2.7:1", "udp 10.1.0.5:1 192.0.2.7:2", "udp 10.1.0.5:1 192.0.2.7:3"});
  const Outcome two = run({"-r", capture_.path(), "--count", "2"});
  EXPECT_EQ(two.exit_code, 0);
  EXPECT_THAT(two.err, HasSubstr("ends here, after 2 packets; --count explains more"));
  EXPECT_EQ(two.out.find("packet 3"), std::string::npos);
  EXPECT_EQ(run({"-r", capture_.path(), "--count", "3"}).err, "");
  EXPECT_THAT(run({"-r", capture_.path(), "--filter", "tcp"}).err, HasSubstr("no packet that matches the filter"));
}

TEST_F(ExplainCommand, SaysWhereACaptureIsDamaged) {
  write_capture({"udp 10.1.0.5:1 192.0.2.7:1"}, "cut");
  const Outcome outcome = run({"-r", capture_.path()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("packet 1: "));
  EXPECT_THAT(outcome.err, HasSubstr(capture_.path()));
}

TEST_F(ExplainCommand, DoesNotKnowTheLinksOfPorts) {
  rules_.write("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
  chain_.write(
      "ports:\n  lan: {af_packet: {interface: nowhere0}}\n  wan: {af_packet: {interface: nowhere1}}\n"
      "wire: {lan: wan, wan: lan}\nchain:\n  - firewall: {rules: " +
      rules_.path() + "}\n");
  EXPECT_THAT(run({"--packet", "icmp 10.1.0.5 192.0.2.7", "--in", "lan"}).out,
              HasSubstr("\nforward to wan\nnot certain: port wan is not open: it may be down, or its MTU too small\n"));
}

TEST_F(ExplainCommand, NamesMistakes) {
  EXPECT_THAT(run({"--packet", "tcp 10.1.0.5 192.0.2.7:443"}).err, HasSubstr("10.1.0.5"));
  EXPECT_EQ(run({"--packet", "tcp 10.1.0.5 192.0.2.7:443"}).exit_code, 2);
  EXPECT_THAT(run({"--packet", "icmp 10.1.0.5 192.0.2.7", "--in", "wan"}).err,
              HasSubstr("in: no such port: found 'wan', expected a port that reads: lan"));
  EXPECT_THAT(run({"-r", capture_.path(), "--filter", "host example.org"}).err, HasSubstr("example.org"));
  EXPECT_EQ(run({"-r", "/nowhere/at.pcap"}).exit_code, 2);
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"-r", capture_.path(), "--packet", "icmp 10.1.0.5 192.0.2.7"}).exit_code, 2);
  EXPECT_EQ(run({"--packet", "icmp 10.1.0.5 192.0.2.7", "--count", "3"}).exit_code, 2);
  rules_.write("-A FORWARD\n");
  const Outcome wrong = run({"--packet", "icmp 10.1.0.5 192.0.2.7"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr(rules_.path()));
}

}  // namespace
}  // namespace penstock::cli
