// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations through a firewall whose rules test connections.

#include "nf/firewall/tracked_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conntrack/connections.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kReplies = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n";
constexpr std::string_view kFromInside = "-A FORWARD -s 10.0.0.0/8 -m conntrack --ctstate NEW -j ACCEPT\n";
constexpr std::uint64_t kSecond = 1'000'000'000;

std::unique_ptr<Firewall> firewall(const std::string& rules, const conntrack::Options& tracking = {}) {
  auto made = Firewall::build(rules_of("*filter\n:FORWARD DROP [0:0]\n" + rules + "COMMIT\n"),
                              classify::Engine::bitvector, {.tracking = tracking});
  EXPECT_TRUE(made) << to_string(made.error());
  return std::move(*made);
}
std::unique_ptr<Firewall> from_inside(const conntrack::Options& tracking = {}) {
  return firewall(std::string(kReplies) + std::string(kFromInside), tracking);
}

/// Frames with their descriptors, as they come to a stage.
class Burst {
 public:
  Burst(std::span<const PacketBuilder> builders, std::uint64_t now_ns, std::uint32_t first_sequence)
      : descriptors_(builders.size()) {
    frames_.reserve(builders.size());
    for (const PacketBuilder& builder : builders) {
      const std::size_t i = views.size();
      frames_.push_back(builder.bytes());
      descriptors_[i].length = descriptors_[i].wire_length = static_cast<std::uint32_t>(frames_[i].size());
      descriptors_[i].timestamp_ns = now_ns;
      descriptors_[i].sequence = first_sequence + static_cast<std::uint32_t>(i);
      views.push_back({frames_[i].data(), &descriptors_[i]});
      parse(views[i]);
    }
  }
  /// "+" for each packet that passes, or the reason of its drop.
  [[nodiscard]] std::vector<std::string> verdicts() const {
    std::vector<std::string> verdicts;
    for (const PacketDescriptor& one : descriptors_)
      verdicts.emplace_back(one.verdict.alive() ? "+" : kDropReasons[one.verdict.value]);
    return verdicts;
  }

  std::vector<PacketView> views;

 private:
  std::vector<penstock::testing::Bytes> frames_;
  std::vector<PacketDescriptor> descriptors_;
};

/// A worker's stage with its connections, and what becomes of packets that it gets together.
class Worker {
 public:
  explicit Worker(Firewall& firewall, const conntrack::Options& tracking = {})
      : Worker(firewall, std::make_shared<conntrack::Connections>(tracking, kMostPackets)) {}
  /// The same worker in the next epoch.
  Worker(Firewall& firewall, const Worker& before) : Worker(firewall, before.connections_) {}

  void process(Burst& burst) {
    stage_->process(burst.views);
    why_ = stage_->explain(burst.views.back());
    connections_->settle();
    stage_->begin_batch();
  }
  std::vector<std::string> send(std::initializer_list<PacketBuilder> builders) {
    Burst burst({builders.begin(), builders.size()}, now_ns, sequence_);
    sequence_ += static_cast<std::uint32_t>(builders.size());
    process(burst);
    return burst.verdicts();
  }
  std::string send_one(const PacketBuilder& builder) { return send({builder}).front(); }
  [[nodiscard]] const std::string& why() const { return why_; }  // of the last packet

  std::uint64_t now_ns = 1'700'000'000 * kSecond;

 private:
  static constexpr std::size_t kMostPackets = 64;

  Worker(Firewall& firewall, std::shared_ptr<conntrack::Connections> connections)
      : connections_(std::move(connections)), stage_(firewall.make_cpu_stage()) {
    stage_->set_connections(*connections_);
  }

  std::shared_ptr<conntrack::Connections> connections_;
  std::unique_ptr<function::CpuStage> stage_;
  inline static std::uint32_t sequence_ = 0;
  std::string why_;
};

PacketBuilder query(std::uint16_t port = 4000) {
  return packet().eth().ipv4("10.0.0.1", "192.0.2.7").udp(port, 53).payload("?");
}
PacketBuilder answer(std::uint16_t port = 4000) {
  return packet().eth().ipv4("192.0.2.7", "10.0.0.1").udp(53, port).payload("!");
}
PacketBuilder query6() { return packet().eth().ipv6("fd00::1", "2001:db8::7").udp(4000, 53).payload("?"); }

TEST(TrackedFirewall, LetsRepliesInAndNothingElse) {
  const auto rules = from_inside();
  Worker worker(*rules);
  EXPECT_EQ(worker.send_one(answer()), "denied");
  EXPECT_EQ(worker.send_one(query()), "+");
  EXPECT_EQ(worker.send_one(answer()), "+");
  EXPECT_EQ(worker.send_one(answer(4001)), "denied");
  EXPECT_EQ(worker.send_one(packet().eth().ipv4("192.0.2.8", "10.0.0.1").udp(53, 4000)), "denied");
}

TEST(TrackedFirewall, DecidesAboutPacketsOfOneBurstInTheirOrder) {
  const auto rules = from_inside();
  Worker worker(*rules);
  EXPECT_THAT(worker.send({answer(), query(), answer(), query(), answer(9)}),
              ElementsAre("denied", "+", "+", "+", "denied"));
}

TEST(TrackedFirewall, APacketThatIsDroppedBeginsNoConnection) {
  const auto rules =
      firewall(std::string(kReplies) + "-A FORWARD -p udp -m udp --dport 53 -j DROP\n" + std::string(kFromInside));
  Worker worker(*rules);
  EXPECT_EQ(worker.send_one(query()), "denied");
  EXPECT_EQ(worker.send_one(answer()), "denied");
  EXPECT_EQ(rules->connection_counters().connections, 0U);
}

TEST(TrackedFirewall, FollowsIpv6BesideIpv4) {
  const std::string text = "# Generated by ip6tables-save v1.8.9\n*filter\n:FORWARD DROP [0:0]\n" +
                           std::string(kReplies) +
                           "-A FORWARD -s fd00::/8 -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";
  auto made = Firewall::build(rules_of(text), classify::Engine::bitvector);
  ASSERT_TRUE(made);
  Worker worker(**made);
  const auto answer6 = packet().eth().ipv6("2001:db8::7", "fd00::1").udp(53, 4000).payload("!");
  EXPECT_THAT(worker.send({answer6, query6(), answer6}), ElementsAre("denied", "+", "+"));
}

TEST(TrackedFirewall, ErrorsAboutAConnectionAreRelated) {
  const auto rules = from_inside();
  Worker worker(*rules);
  const auto quoted = packet().ipv4("10.0.0.1", "192.0.2.7").udp(4000, 53).payload("?").bytes();
  const auto error = packet().eth().ipv4("198.51.100.1", "10.0.0.1").icmp(3, 3).raw(quoted);
  EXPECT_THAT(worker.send({error, query(), error}), ElementsAre("denied", "+", "+"));
  EXPECT_THAT(worker.why(), HasSubstr("; connection: related, reply"));
}

TEST(TrackedFirewall, ConnectionsEndByThemselves) {
  conntrack::Options options;
  options.timeouts.udp = 10;
  const auto rules = from_inside(options);
  Worker worker(*rules, options);
  EXPECT_EQ(worker.send_one(query()), "+");
  worker.now_ns += 9 * kSecond;
  EXPECT_EQ(worker.send_one(answer()), "+");
  worker.now_ns += 11 * kSecond;
  EXPECT_EQ(worker.send_one(answer()), "denied");
}

TEST(TrackedFirewall, DropsPacketsThatBeginMoreConnectionsThanThereIsRoomFor) {
  conntrack::Options options;
  options.most_connections = 1;
  const auto rules = from_inside(options);
  Worker worker(*rules, options);
  // Of a stream that both sides have sent for more than two seconds, the connection is kept.
  EXPECT_THAT(worker.send({query(), answer()}), ElementsAre("+", "+"));
  worker.now_ns += 3 * kSecond;
  EXPECT_EQ(worker.send_one(query()), "+");
  EXPECT_EQ(worker.send_one(query(4001)), "connections_full");
  EXPECT_EQ(worker.why(), "there is no room for another connection");
  EXPECT_EQ(worker.send_one(answer()), "+");
}

TEST(TrackedFirewall, SaysWhichConnectionARuleSaw) {
  const auto rules = from_inside();
  Worker worker(*rules);
  static_cast<void>(worker.send_one(query()));
  EXPECT_EQ(worker.why(),
            "rule 1 (line 4): -A FORWARD -s 10.0.0.0/8 -m conntrack --ctstate NEW -j ACCEPT; connection: new");
  static_cast<void>(worker.send_one(answer()));
  EXPECT_THAT(worker.why(), HasSubstr("RELATED,ESTABLISHED -j ACCEPT; connection: established, reply"));
  static_cast<void>(worker.send_one(packet().eth().ipv4("192.0.2.7", "10.0.0.1").tcp(53, 4000, 0)));
  EXPECT_EQ(worker.why(), "default policy: drop; connection: invalid");
}

TEST(TrackedFirewall, ReportsItsConnections) {
  const auto rules = from_inside();
  Worker one(*rules), other(*rules);
  static_cast<void>(one.send({query(), answer(), answer(9)}));
  static_cast<void>(other.send({query(1), packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(1, 2, 0)}));
  nlohmann::json report;
  rules->report(report);
  EXPECT_EQ(report["connections"]["now"], 2);
  EXPECT_EQ(report["connections"]["packets_that_begin"], 3);
  EXPECT_EQ(report["connections"]["packets_of_known"], 1);
  EXPECT_EQ(report["connections"]["invalid"], nlohmann::json({{"tcp_flags", 1}}));
  EXPECT_EQ(rules->state_of_run(), "connections");
}

TEST(TrackedFirewall, ReloadsKeepConnections) {
  const auto before = from_inside(), after = firewall(std::string(kReplies));
  Worker first(*before);
  EXPECT_EQ(first.send_one(query()), "+");
  Worker next(*after, first);
  EXPECT_EQ(after->connection_counters().connections, 1U);
  EXPECT_EQ(next.send_one(answer()), "+");
  EXPECT_EQ(next.send_one(query(4001)), "denied");
  EXPECT_EQ(first.send_one(query(4002)), "+") << "of a batch that began before";
  EXPECT_EQ(next.send_one(answer(4002)), "+");
}

TEST(TrackedFirewall, CannotReplaceOneThatDoesNotTrackSinceTheChainIsNotPlannedForIt) {
  const auto before = firewall("-A FORWARD -j ACCEPT\n"), after = from_inside();
  const auto changes = after->changes_from(*before);
  ASSERT_FALSE(changes);
  EXPECT_EQ(to_string(changes.error()),
            "rules that test connections: it needs a new run: expected the parameter `connections` from the start, for "
            "reloads that bring such rules");
  EXPECT_TRUE(before->changes_from(*after));
  EXPECT_EQ(from_inside({.most_connections = 5})->changes_from(*after).value(),
            "other limits of connections, from the next run on");
}

TEST(TrackedFirewall, ExplainsAPacketByItself) {
  const auto rules = from_inside();
  const auto explained = [&](const PacketBuilder& builder) {
    auto frame = builder.bytes();
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    const PacketView packet{frame.data(), &descriptor};
    parse(packet);
    const auto explanation = rules->explain(packet);
    return explanation->decided_by + " | " + explanation->depends_on;
  };
  EXPECT_EQ(explained(query()),
            "rule 1 (line 4): -A FORWARD -s 10.0.0.0/8 -m conntrack --ctstate NEW -j ACCEPT | its connection; here, it "
            "belongs to none that is known: new");
  EXPECT_EQ(explained(packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(1, 2, TcpHeader::kRst)),
            "policy drop: no rule matches | its connection; here, it belongs to none that is known: invalid");
}

/// What a device decides with the states that its state stage provides, by the same core.
template <typename Engine>
std::vector<std::string> decide_as_device(Burst& burst, const std::vector<conntrack::PacketConnection>& states,
                                          Engine engine, const classify::Ruleset& rules) {
  const TrackedJudgeCore<Engine> core{{engine, classify::view_of(rules)}};
  for (std::size_t i = 0; i < states.size(); ++i) {
    std::uint32_t counter = 0;
    burst.views[i].packet->verdict = core(burst.views[i], states[i], counter);
  }
  return burst.verdicts();
}

TEST(TrackedFirewall, ADeviceDecidesTheSameWithTheStatesThatItIsGiven) {
  const auto rules =
      firewall("-A FORWARD -p udp -m udp --sport 4002 -j REJECT\n" + std::string(kReplies) + std::string(kFromInside));
  conntrack::Options options;
  options.most_connections = 2;
  Worker worker(*rules, options);
  conntrack::Connections connections(options, 1024);
  const auto twin = rules->make_cpu_stage();
  twin->set_connections(connections);
  const auto stage = rules->make_state_stage(*twin);
  std::mt19937 random(7);
  const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
  std::map<std::string, int> seen;
  std::uint32_t sequence = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<PacketBuilder> builders;
    for (unsigned n = 1 + below(8); n-- > 0;) {
      const auto port = static_cast<std::uint16_t>(4000 + (below(8) == 0 ? below(6) : below(3)));
      const auto cut = packet().eth().ipv4("10.0.0.1", "192.0.2.7").protocol(ip_protocol::kUdp).payload("1234");
      builders.push_back(below(10) == 0 ? cut : below(2) == 0 ? query(port) : answer(port));
    }
    worker.now_ns += (below(16) == 0 ? 40 : below(3)) * kSecond;
    Burst expected(builders, worker.now_ns, sequence), burst(builders, worker.now_ns, sequence);
    sequence += static_cast<std::uint32_t>(builders.size());
    worker.process(expected);
    std::vector<conntrack::PacketConnection> states(builders.size());
    std::vector<std::byte*> to_fill;
    for (conntrack::PacketConnection& state : states) to_fill.push_back(reinterpret_cast<std::byte*>(&state));
    stage->fill(burst.views, to_fill);
    const classify::Ruleset& all = rules->rules();
    const classify::LinearView engine{all.entries.data(), all.conditions.data(), all.port_ranges.data(),
                                      all.ranges6.data(), static_cast<std::uint32_t>(all.entries.size())};
    const auto verdicts = decide_as_device(burst, states, engine, all);
    ASSERT_EQ(verdicts, expected.verdicts()) << "round " << round;
    // What the CPU finishes later, it decides by what was said before.
    if (below(4) == 0) {
      for (PacketView packet : burst.views) packet.packet->verdict = Verdict::forward();
      twin->process(burst.views);
      ASSERT_EQ(burst.verdicts(), expected.verdicts()) << "round " << round;
    }
    connections.settle();
    for (const std::string& verdict : verdicts) ++seen[verdict];
  }
  for (const char* each : {"+", "denied", "rejected", "malformed", "connections_full"})
    EXPECT_GT(seen[each], 10) << each;
}

TEST(TrackedFirewall, CutAndMalformedPacketsChangeNoConnection) {
  const auto rules = from_inside();
  Worker worker(*rules);
  auto cut = packet().eth().ipv4("10.0.0.1", "192.0.2.7").protocol(ip_protocol::kUdp).payload("1234");
  EXPECT_EQ(worker.send_one(cut), "malformed");
  EXPECT_EQ(rules->connection_counters().begun, 0U);
}

}  // namespace
}  // namespace penstock::firewall
