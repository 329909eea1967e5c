// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Firewalls with the helper of FTP: data connections are related, alone and in a gateway with NAT.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conntrack/connections.h"
#include "conntrack/ftp.h"
#include "conntrack/testing/packets.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"

namespace penstock::firewall {
namespace {

using conntrack::Ends;
using conntrack::Packet;
using conntrack::tcp_packet;

constexpr const char* kRules =
    "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
    "-A FORWARD -i lan -p tcp --dport 21 -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n"
    "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o wan -j MASQUERADE\nCOMMIT\n";

conntrack::Options with_helper() {
  conntrack::Options options;
  options.ftp.offered = true;
  options.ftp.ports = {21};
  return options;
}

/// A chain of firewalls between ports lan (0) and wan (1), which has the address 203.0.113.5.
class Chain {
 public:
  explicit Chain(const std::vector<std::optional<Hook>>& hooks, const conntrack::Options& options = with_helper())
      : connections_(options, 64) {
    for (const std::optional<Hook> hook : hooks) add(hook, options);
  }

  /// The payload of what leaves, after its addresses; or the reason of the drop. `dropped`: after all firewalls.
  std::string pass(const Packet& packet, bool from_lan, bool dropped = false) {
    PacketDescriptor descriptor;
    Packet frame = packet;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    frame.resize(frame.size() + conntrack::kMostFtpGrowth);
    descriptor.link_type = LinkType::raw_ip;
    descriptor.timestamp_ns = 1'700'000'000'000'000'000;
    descriptor.sequence = sequence_++;
    descriptor.in_port = from_lan ? 0 : 1;
    descriptor.verdict = Verdict::forward(from_lan ? 1 : 0);
    PacketView view{frame.data(), &descriptor};
    parse(view);
    for (const auto& stage : stages_) {
      if (!descriptor.verdict.alive()) break;
      stage->process({&view, 1});
      parse(view);
    }
    const Verdict verdict = descriptor.verdict;
    if (verdict.alive() && dropped) descriptor.verdict = Verdict::drop(0);
    connections_.settle();
    for (const auto& stage : stages_) stage->begin_batch();
    if (!verdict.alive()) return std::string(kDropReasons[verdict.value]);
    return fmt::format("{}:{} > {}:{} {}", to_string(Ipv4Address{view.ipv4().source.value()}),
                       view.tcp().source_port.value(), to_string(Ipv4Address{view.ipv4().destination.value()}),
                       view.tcp().destination_port.value(),
                       std::string(frame.begin() + view.layout().payload_offset, frame.begin() + view.layout().end));
  }
  /// Opens a control connection to 192.0.2.7. `seen_from`: the client's address, for the server.
  void open(const std::string& seen_from) {
    client = {"10.0.0.1", "192.0.2.7", 3000, 21};
    server = {"192.0.2.7", seen_from, 21, 3000};
    pass(tcp_packet(client, {.flags = TcpHeader::kSyn, .sequence = 999}), true);
    pass(tcp_packet(server, {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 4999, .ack = 1000}), false);
    pass(tcp_packet(client, {.sequence = 1000, .ack = 5000}), true);
    pass(tcp_packet(client, {.sequence = 1000, .ack = 5000, .text = "USER x\r\n"}), true);
  }
  std::string announce(const std::string& line, bool dropped = false) {
    return pass(tcp_packet(client, {.sequence = 1008, .ack = 5000, .text = line}), true, dropped);
  }
  std::string connect(const std::string& to, std::uint16_t port) {
    return pass(tcp_packet({"192.0.2.7", to, 20, port}, {.flags = TcpHeader::kSyn}), false);
  }
  [[nodiscard]] Firewall& firewall(std::size_t index) { return *firewalls_[index]; }

  Ends client, server;

 private:
  void add(std::optional<Hook> hook, const conntrack::Options& options) {
    ReadOptions read;
    read.interfaces.ports = {"lan", "wan"};
    read.interfaces.out_known = true;
    read.hook = hook.value_or(Hook::forward);
    classify::Ruleset filters = rules_of(kRules, read);
    Firewall::Setup setup{.tracking = options};
    if (hook.value_or(Hook::forward) != Hook::forward) {
      read.translates = true;
      setup.nat = NatRules{*hook, rules_of(kRules, read), {{}, {*parse_ipv4("203.0.113.5"), std::nullopt}}};
    }
    auto made = Firewall::build(std::move(filters), classify::Engine::bitvector, std::move(setup));
    ASSERT_TRUE(made) << to_string(made.error());
    firewalls_.push_back(std::move(*made));
    stages_.push_back(firewalls_.back()->make_cpu_stage());
    stages_.back()->set_connections(connections_);
  }

  conntrack::Connections connections_;
  std::vector<std::unique_ptr<Firewall>> firewalls_;
  std::vector<std::unique_ptr<function::CpuStage>> stages_;
  std::uint32_t sequence_ = 0;
};

TEST(FirewallWithHelper, PassesDataConnectionsAsRelated) {
  Chain chain({std::nullopt});
  chain.open("10.0.0.1");
  EXPECT_EQ(chain.connect("10.0.0.1", 1029), "denied");
  EXPECT_EQ(chain.announce("PORT 10,0,0,1,4,5\r\n"), "10.0.0.1:3000 > 192.0.2.7:21 PORT 10,0,0,1,4,5\r\n");
  EXPECT_EQ(chain.connect("10.0.0.1", 1029), "192.0.2.7:20 > 10.0.0.1:1029 ");
  const auto counters = chain.firewall(0).connection_counters();
  EXPECT_EQ(counters.announced, 1);
  EXPECT_EQ(counters.arrived, 1);
  nlohmann::json report;
  chain.firewall(0).report(report);
  EXPECT_EQ(report["connections"]["expected"].dump(),
            R"({"announced":1,"arrived":1,"expired":0,"incomplete":0,"now":0,"refused":0})");
}

TEST(FirewallWithHelper, SaysWhyItDropsAnnouncements) {
  conntrack::Options options = with_helper();
  options.most_expectations = 0;
  Chain chain({std::nullopt}, options);
  chain.open("10.0.0.1");
  EXPECT_EQ(chain.announce("PORT 10,0,0,1"), "ftp_incomplete");
  EXPECT_EQ(chain.announce("PORT 10,0,0,1,4,5\r\n"), "ftp_unexpected");
}

TEST(FirewallWithHelper, ExpectsNothingThatALaterFunctionHasDropped) {
  Chain chain({std::nullopt});
  chain.open("10.0.0.1");
  chain.announce("PORT 10,0,0,1,4,5\r\n", true);
  EXPECT_EQ(chain.connect("10.0.0.1", 1029), "denied");
  chain.announce("PORT 10,0,0,1,4,5\r\n");
  EXPECT_EQ(chain.connect("10.0.0.1", 1029), "192.0.2.7:20 > 10.0.0.1:1029 ");
}

TEST(FirewallWithHelper, TranslatesAnnouncementsOnceInAGateway) {
  for (const std::vector<std::optional<Hook>>& hooks :
       {std::vector<std::optional<Hook>>{Hook::prerouting, Hook::forward, Hook::postrouting},
        std::vector<std::optional<Hook>>{Hook::forward, Hook::prerouting, Hook::postrouting}}) {
    Chain chain(hooks);
    chain.open("203.0.113.5");
    EXPECT_EQ(chain.announce("PORT 10,0,0,1,4,5\r\n"), "203.0.113.5:3000 > 192.0.2.7:21 PORT 203,0,113,5,4,5\r\n");
    // Two bytes more than the client has sent.
    EXPECT_EQ(chain.pass(tcp_packet(chain.server, {.sequence = 5000, .ack = 1029}), false),
              "192.0.2.7:21 > 10.0.0.1:3000 ");
    if (hooks[0] == Hook::forward) continue;  // its rules see what comes for the public address
    EXPECT_EQ(chain.connect("203.0.113.5", 1029), "192.0.2.7:20 > 10.0.0.1:1029 ");
  }
}

TEST(FirewallWithHelper, RunsOnTheCpuAndMakesPacketsLongerOnlyIfItTranslates) {
  Chain chain({Hook::forward, Hook::postrouting}), without({Hook::forward, Hook::postrouting}, {});
  for (const std::size_t i : {0U, 1U}) {
    const function::NfTraits& traits = chain.firewall(i).traits();
    EXPECT_TRUE(traits.shares_connections);
    EXPECT_EQ(traits.access_on(function::Processor::gpu), nullptr);
    EXPECT_EQ(traits.cpu.writes.has(Field::frame_shape), i == 1);
    EXPECT_EQ(traits.growth.tail, i == 1 ? conntrack::kMostFtpGrowth : 0);
    EXPECT_FALSE(without.firewall(i).traits().cpu.writes.has(Field::frame_shape));
    EXPECT_EQ(without.firewall(i).traits().growth.tail, 0);
  }
  EXPECT_FALSE(without.firewall(0).traits().shares_connections);
  EXPECT_THAT(chain.firewall(0).description(), ::testing::HasSubstr(" a worker, helper ftp 21"));
}

TEST(FirewallWithHelper, CannotChangeItsHelpersInAReload) {
  Chain before({std::nullopt}), after({std::nullopt}, {});
  const auto changes = after.firewall(0).changes_from(before.firewall(0));
  ASSERT_FALSE(changes);
  EXPECT_THAT(to_string(changes.error()), ::testing::HasSubstr("other helpers: it needs a new run"));
}

}  // namespace
}  // namespace penstock::firewall
