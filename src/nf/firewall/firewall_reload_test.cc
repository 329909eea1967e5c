// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a firewall takes the place of another one, with the counters of the rules that both have.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "nf/firewall/firewall.h"
#include "nf/firewall/firewall_stage.h"
#include "nf/firewall/rule_pairs.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall {
namespace {

using penstock::testing::packet;
using ::testing::ElementsAre;

std::unique_ptr<Firewall> build(classify::Ruleset rules, classify::Engine engine = classify::Engine::bitvector) {
  auto made = Firewall::build(std::move(rules), engine);
  EXPECT_TRUE(made) << to_string(made.error());
  return std::move(*made);
}

std::unique_ptr<Firewall> firewall(std::string_view rules, std::string_view policy = "DROP") {
  return build(rules_of("*filter\n:FORWARD " + std::string(policy) + " [0:0]\n" + std::string(rules) + "COMMIT\n"));
}

constexpr std::string_view kTcp = "-A FORWARD -p tcp -j ACCEPT\n", kUdp = "-A FORWARD -p udp -j ACCEPT\n",
                           kGre = "-A FORWARD -p gre -j ACCEPT\n", kTcpDrop = "-A FORWARD -p tcp -j DROP\n";

std::string join(std::initializer_list<std::string_view> rules) {
  std::string text;
  for (const std::string_view rule : rules) text += rule;
  return text;
}

std::string changes(const Firewall& running, const Firewall& next) {
  const auto changes = next.changes_from(running);
  EXPECT_TRUE(changes) << to_string(changes.error());
  return changes.value_or("");
}

class TestPacket {
 public:
  explicit TestPacket(const penstock::testing::PacketBuilder& builder) : bytes_(builder.bytes()) {
    descriptor_.length = descriptor_.wire_length = static_cast<std::uint32_t>(bytes_.size());
    descriptor_.link_type = LinkType::ethernet;
    parse(view());
  }
  PacketView view() { return {bytes_.data(), &descriptor_}; }

 private:
  penstock::testing::Bytes bytes_;
  PacketDescriptor descriptor_;
};

void send(function::CpuStage& stage, const penstock::testing::PacketBuilder& builder, int times = 1) {
  for (int i = 0; i < times; ++i) {
    TestPacket packet(builder);
    PacketView view = packet.view();
    stage.process({&view, 1});
  }
}
const auto tcp = [] { return packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2); };
const auto udp = [] { return packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2); };
const auto udp6 = [] { return packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(1, 2); };

/// The packets of all rules, then of the IPv4 and the IPv6 policy.
std::vector<std::uint64_t> packets(const Firewall& firewall) {
  std::vector<std::uint64_t> all;
  for (const RuleCounters::Count& count : firewall.counts()) all.push_back(count.packets);
  return all;
}

TEST(FirewallReload, RulesOfNftablesMayHaveOtherHandles) {
  const auto with = [](std::string_view handles) {
    std::string text = R"({"nftables": [{"chain": {"family": "inet", "table": "t", "name": "c", "type": "filter",
                           "hook": "forward", "prio": 0, "policy": "drop"}})";
    std::string_view verdict = "accept";
    for (const char handle : handles) {
      text += R"(, {"rule": {"family": "inet", "table": "t", "chain": "c", "handle": )" + std::string(1, handle) +
              R"(, "expr": [{")" + std::string(verdict) + R"(": null}]}})";
      verdict = "drop";
    }
    return build(rules_of(text + "]}"));
  };
  EXPECT_EQ(changes(*with("12"), *with("34")), "");
  EXPECT_EQ(changes(*with("12"), *with("123")), "1 rule added");
}

TEST(FirewallReload, DescribesWhatChanges) {
  const auto running = firewall(join({kTcp, kUdp}));
  EXPECT_EQ(changes(*running, *firewall(join({kTcp, kUdp}))), "");
  EXPECT_EQ(changes(*running, *firewall(join({kTcp, kUdp, kGre, kTcpDrop}))), "2 rules added");
  EXPECT_EQ(changes(*running, *firewall(join({kTcp}))), "1 rule removed");
  EXPECT_EQ(changes(*running, *firewall(join({kGre, kTcp, kTcpDrop}))), "2 rules added, 1 removed");
  EXPECT_EQ(changes(*running, *firewall(join({kUdp, kTcp}))), "rules in another order");
  EXPECT_EQ(changes(*running, *firewall(join({kTcp, kUdp}), "ACCEPT")), "policy drop → accept");
  EXPECT_EQ(changes(*running, *firewall(join({kTcp}), "ACCEPT")), "1 rule removed, policy drop → accept");
  EXPECT_EQ(changes(*running, *firewall(join({kTcp, kTcp, kUdp}))), "1 rule added") << "a rule may occur twice";
  EXPECT_EQ(changes(*firewall(join({kTcp, kTcp})), *firewall(join({kTcp}))), "1 rule removed");
}

TEST(FirewallReload, DescribesChangesThatAreNotInTheTextOfRules) {
  const classify::Ruleset rules = rules_of("@1.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n");
  EXPECT_EQ(changes(*build(rules), *build(rules, classify::Engine::linear)), "engine bitvector → linear");
  EXPECT_EQ(changes(*build(rules), *build(rules, classify::Engine::rfc)), "engine bitvector → rfc");
  classify::Ruleset last = rules;
  let_last_decide(last);
  EXPECT_EQ(changes(*build(rules), *build(last)), "decides first → last");
  ReadOptions denied;
  denied.match = classify::Target::drop;
  EXPECT_EQ(changes(*build(rules), *build(rules_of("@1.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t"
                                                   "0x0000/0x0000\n",
                                                   denied))),
            "1 rule added, 1 removed")
      << "the same text with another target";

  ReadOptions lan, wan;
  lan.interfaces.ports = wan.interfaces.ports = {"lan", "wan"};
  const std::string of_lan = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i lan -j ACCEPT\nCOMMIT\n";
  wan.interfaces.ports = {"wan", "lan"};
  EXPECT_EQ(changes(*build(rules_of(of_lan, lan)), *build(rules_of(of_lan, wan))), "the same rules, for other packets");

  const std::string ipv6 = "# Generated by ip6tables-save\n";
  const std::string table = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp -j ACCEPT\nCOMMIT\n";
  const std::string accepts = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j ACCEPT\nCOMMIT\n";
  EXPECT_EQ(changes(*build(rules_of(table)), *build(rules_of(ipv6 + table))), "1 rule added, 1 removed")
      << "the same text for another address family";
  EXPECT_EQ(changes(*build(rules_of(table + ipv6 + table)), *build(rules_of(table + ipv6 + accepts))),
            "IPv6 policy drop → accept");
}

TEST(FirewallReload, PairsIdenticalRulesInTheirOrderInBothDirections) {
  const auto a = rules_of("*filter\n:FORWARD DROP [0:0]\n" + join({kTcp, kUdp, kTcp}) + "COMMIT\n");
  const auto b = rules_of("*filter\n:FORWARD DROP [0:0]\n" + join({kTcp, kTcp, kTcp, kGre}) + "COMMIT\n");
  EXPECT_THAT(pair_rules(a, b), ElementsAre(0, 2, kNoRule, kNoRule));
  EXPECT_THAT(pair_rules(b, a), ElementsAre(0, kNoRule, 1));
}

TEST(FirewallReload, KeepsCountersOfUnchangedRulesWhereverTheyAre) {
  const auto running = firewall(join({kTcp, kGre, kUdp}));
  auto old_stage = running->make_cpu_stage();
  send(*old_stage, tcp(), 3);
  send(*old_stage, udp(), 5);
  const auto next = firewall(join({kUdp, "-A FORWARD -p esp -j ACCEPT\n", kTcp}));
  ASSERT_TRUE(next->take_over(*running));
  EXPECT_THAT(packets(*next), ElementsAre(5, 0, 3, 0, 0)) << "from the first moment";
  auto new_stage = next->make_cpu_stage();
  send(*old_stage, tcp());
  send(*new_stage, tcp(), 10);
  send(*old_stage, udp());
  EXPECT_THAT(packets(*next), ElementsAre(6, 0, 14, 0, 0)) << "both stages count";
  old_stage.reset();
  next->predecessor_ended();
  EXPECT_THAT(packets(*next), ElementsAre(6, 0, 14, 0, 0));
  send(*new_stage, udp());
  EXPECT_THAT(packets(*next), ElementsAre(7, 0, 14, 0, 0));
  nlohmann::json report;
  next->report(report);
  EXPECT_EQ(report["rules"][0]["packets"], 7);
  EXPECT_EQ(report["rules"][0]["line"], 3);
}

TEST(FirewallReload, CountsBytesAndBothPoliciesOn) {
  const auto running = firewall(kTcp);
  auto old_stage = running->make_cpu_stage();
  send(*old_stage, udp(), 2);
  send(*old_stage, udp6(), 3);
  const auto next = firewall(kGre, "ACCEPT");
  ASSERT_TRUE(next->take_over(*running));
  old_stage.reset();
  next->predecessor_ended();
  EXPECT_THAT(packets(*next), ElementsAre(0, 2, 3));
  EXPECT_EQ(next->counts()[1].bytes, 2 * udp().bytes().size());
}

TEST(FirewallReload, CountsWhatFinishStagesOfBothCount) {
  const auto running = firewall(join({kTcp, kUdp}));
  const auto count = [](Firewall& firewall, function::FinishStage& stage, std::uint32_t rule) {
    TestPacket packet(tcp());
    const PacketView view = packet.view();
    const std::uint32_t counter = rule;
    const auto* const finding = reinterpret_cast<const std::byte*>(&counter);
    stage.finish({&view, 1}, {&finding, 1});
    return packets(firewall);
  };
  auto old_twin = running->make_cpu_stage();
  auto old_finish = running->make_finish_stage(*old_twin);
  count(*running, *old_finish, 1);
  const auto next = firewall(join({kUdp}));
  ASSERT_TRUE(next->take_over(*running));
  auto new_twin = next->make_cpu_stage();
  auto new_finish = next->make_finish_stage(*new_twin);
  EXPECT_THAT(count(*next, *old_finish, 1), ElementsAre(2, 0, 0)) << "a batch in flight, by the old numbers";
  EXPECT_THAT(count(*next, *new_finish, 0), ElementsAre(3, 0, 0));
  old_finish.reset();
  old_twin.reset();
  next->predecessor_ended();
  EXPECT_THAT(packets(*next), ElementsAre(3, 0, 0));
}

TEST(FirewallReload, RollsBackWithoutCountingTwice) {
  const auto first = firewall(join({kTcp, kUdp}));
  auto stage = first->make_cpu_stage();
  send(*stage, tcp(), 3);
  send(*stage, udp(), 4);
  const auto second = firewall(join({kGre, kTcp}));
  ASSERT_TRUE(second->take_over(*first));
  auto second_stage = second->make_cpu_stage();
  send(*second_stage, tcp(), 10);
  send(*second_stage, udp(), 100);
  stage.reset();
  second->predecessor_ended();
  EXPECT_THAT(packets(*second), ElementsAre(0, 13, 100, 0));

  ASSERT_TRUE(first->take_over(*second));
  EXPECT_THAT(packets(*first), ElementsAre(13, 4, 100, 0)) << "the rule that was gone continues where it was";
  stage = first->make_cpu_stage();
  send(*stage, tcp(), 1000);
  send(*second_stage, tcp());
  EXPECT_THAT(packets(*first), ElementsAre(1014, 4, 100, 0));
  second_stage.reset();
  first->predecessor_ended();
  EXPECT_THAT(packets(*first), ElementsAre(1014, 4, 100, 0));
  send(*stage, udp());
  EXPECT_THAT(packets(*first), ElementsAre(1014, 5, 100, 0));

  ASSERT_TRUE(second->take_over(*first));  // and forward again
  stage.reset();
  second->predecessor_ended();
  EXPECT_THAT(packets(*second), ElementsAre(0, 1014, 100, 0));
}

TEST(FirewallReload, UndoesATakeOverWhoseStagesWereNeverMade) {
  // Another function of the chain has refused, so this one keeps its place.
  const auto running = firewall(join({kTcp, kUdp}));
  const auto stage = running->make_cpu_stage();
  send(*stage, tcp(), 3);
  {
    const auto next = firewall(join({kTcp}));
    ASSERT_TRUE(next->take_over(*running));
    ASSERT_TRUE(running->take_over(*next));
    EXPECT_THAT(packets(*running), ElementsAre(3, 0, 0, 0));
    running->predecessor_ended();
  }
  send(*stage, tcp());
  EXPECT_THAT(packets(*running), ElementsAre(4, 0, 0, 0)) << "its stages go on counting";
}

TEST(FirewallReload, ContinuesOverManyReloads) {
  std::unique_ptr<Firewall> running = firewall(join({kTcp, kUdp}));
  auto stage = running->make_cpu_stage();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    send(*stage, tcp());
    auto next = firewall(i % 2 == 0 ? join({kTcp, kUdp}) : join({kGre, kTcp}));
    ASSERT_TRUE(next->take_over(*running));
    auto next_stage = next->make_cpu_stage();
    stage = std::move(next_stage);
    next->predecessor_ended();
    running = std::move(next);
    EXPECT_EQ(packets(*running)[i % 2 == 0 ? 0 : 1], i);
  }
}

TEST(FirewallReload, CountersAreRightAndNeverDecreaseWhileWorkersCount) {
  std::vector<std::unique_ptr<Firewall>> firewalls;
  firewalls.push_back(firewall(join({kTcp, kUdp})));
  constexpr int kWorkers = 2;
  struct Worker {
    std::unique_ptr<function::CpuStage> current, before;
    std::atomic<function::CpuStage*> next{nullptr};
    std::atomic<bool> alternates{false};
    std::uint64_t sent = 0;
  };
  std::vector<Worker> workers(kWorkers);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Worker& worker : workers) {
    worker.current = firewalls[0]->make_cpu_stage();
    threads.emplace_back([&, first = worker.current.get()] {
      function::CpuStage* old = nullptr;
      function::CpuStage* now = first;
      while (!stop.load()) {
        if (function::CpuStage* const next = worker.next.exchange(nullptr)) old = std::exchange(now, next);
        send(*now, tcp());
        ++worker.sent;
        if (old != nullptr && worker.alternates.load()) {
          send(*old, tcp());
          ++worker.sent;
        } else if (old != nullptr) {
          old = nullptr;
          worker.alternates.store(true);  // acknowledges that the old stage is not used any more
        }
      }
    });
  }
  std::uint64_t last = 0;
  const auto look = [&](const Firewall& firewall, std::size_t rule) {
    const std::uint64_t now = packets(firewall)[rule];
    EXPECT_GE(now, last);
    last = now;
  };
  for (int reload = 1; reload <= 30; ++reload) {
    Firewall& running = *firewalls.back();
    firewalls.push_back(firewall(reload % 2 == 0 ? join({kTcp, kUdp}) : join({kUdp, kGre, kTcp})));
    Firewall& next = *firewalls.back();
    const std::size_t rule = reload % 2 == 0 ? 0 : 2;
    ASSERT_TRUE(next.take_over(running));
    for (Worker& worker : workers) {
      worker.before = std::exchange(worker.current, next.make_cpu_stage());
      worker.alternates.store(true);
      worker.next.store(worker.current.get());
    }
    for (int i = 0; i < 20; ++i) look(next, rule);
    for (Worker& worker : workers) {
      while (worker.next.load() != nullptr) std::this_thread::yield();
      worker.alternates.store(false);
      while (!worker.alternates.load()) look(next, rule);
      worker.before.reset();
    }
    next.predecessor_ended();
    look(next, rule);
    firewalls.erase(firewalls.begin());
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  std::uint64_t sent = 0;
  for (const Worker& worker : workers) sent += worker.sent;
  EXPECT_EQ(packets(*firewalls.back())[0], sent);
}

}  // namespace
}  // namespace penstock::firewall
