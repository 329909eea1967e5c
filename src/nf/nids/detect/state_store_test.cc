// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/state_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "stack/testing/flow_with_slot.h"

namespace penstock::nids {
namespace {

using Flow = stack::testing::FlowWithSlot;
using stack::TrackedPacket;

TrackedPacket packet_of(std::uint32_t source, std::uint32_t destination, double seconds = 0, Flow* flow = nullptr) {
  static const std::array<std::uint8_t, 100> frame{};
  TrackedPacket packet;
  packet.packet.ip_version = 4;
  packet.packet.source.address = {0, source};
  packet.packet.destination.address = {0, destination};
  packet.packet.timestamp_ns = static_cast<std::uint64_t>(seconds * 1e9);
  packet.packet.frame = frame;
  packet.flow = flow;
  return packet;
}

struct Store {
  RuleSet rules;
  HostMemory hosts;
  StateStore store{rules, hosts};
};

FlowbitsMatch isset(std::vector<std::uint32_t> bits) { return {std::move(bits), false}; }
FlowbitsMatch isnotset(std::vector<std::uint32_t> bits) { return {std::move(bits), true}; }

TEST(StateStore, FlowbitsBelongToTheirFlow) {
  Store s;
  Flow one, other;
  const TrackedPacket in_one = packet_of(1, 2, 0, &one), in_other = packet_of(1, 2, 0, &other);
  EXPECT_TRUE(s.store.holds(isnotset({5}), in_one));
  s.store.change(FlowbitsChange{FlowbitsChange::How::set, 5}, in_one);
  EXPECT_TRUE(s.store.holds(isset({5}), in_one));
  EXPECT_FALSE(s.store.holds(isset({5 + 32}), in_one));
  EXPECT_FALSE(s.store.holds(isset({5}), in_other));
  EXPECT_TRUE(s.store.holds(isset({1, 5}), in_one));
  EXPECT_TRUE(s.store.holds(isnotset({1, 5}), in_one));  // one of them is not set
  EXPECT_FALSE(s.store.holds(isnotset({5}), in_one));
  s.store.flow_ended(one);
  EXPECT_EQ(one.slot, 0U);
  EXPECT_FALSE(s.store.holds(isset({5}), in_one));
}

TEST(StateStore, FlowStateDoesNotMatchWithoutAFlow) {
  Store s;
  const TrackedPacket packet = packet_of(1, 2);
  s.store.change(FlowbitsChange{FlowbitsChange::How::set, 5}, packet);
  s.store.change(FlowintChange{FlowintChange::How::set, 5, 1, {}}, packet);
  EXPECT_FALSE(s.store.holds(isset({5}), packet));
  EXPECT_FALSE(s.store.holds(isnotset({5}), packet));
  EXPECT_FALSE(s.store.holds(FlowintMatch{FlowintMatch::Operator::is_not_set, 5, 0, {}}, packet));
}

TEST(StateStore, FlowintsCompareOnlyWhenSet) {
  Store s;
  Flow flow;
  const TrackedPacket packet = packet_of(1, 2, 0, &flow);
  using Is = FlowintMatch::Operator;
  using How = FlowintChange::How;
  const auto holds = [&](Is is, std::uint32_t name, std::uint32_t value, std::optional<std::uint32_t> other = {}) {
    return s.store.holds(FlowintMatch{is, name, value, other}, packet);
  };
  const auto change = [&](How how, std::uint32_t name, std::uint32_t value, std::optional<std::uint32_t> other = {}) {
    s.store.change(FlowintChange{how, name, value, other}, packet);
  };
  for (const Is is : {Is::less, Is::less_equal, Is::equal, Is::not_equal, Is::greater_equal, Is::greater}) {
    EXPECT_FALSE(holds(is, 0, 0));
  }
  change(How::subtract, 0, 1);
  EXPECT_TRUE(holds(Is::is_not_set, 0, 0));
  change(How::add, 0, 3);  // from unset
  EXPECT_TRUE(holds(Is::is_set, 0, 0));
  EXPECT_TRUE(holds(Is::equal, 0, 3));
  EXPECT_TRUE(holds(Is::less, 0, 4));
  EXPECT_TRUE(holds(Is::less_equal, 0, 3));
  EXPECT_TRUE(holds(Is::greater, 0, 2));
  EXPECT_TRUE(holds(Is::greater_equal, 0, 3));
  EXPECT_TRUE(holds(Is::not_equal, 0, 2));
  EXPECT_TRUE(holds(Is::greater, 0, 9, 1));  // the other one is not set, so it counts as 0
  change(How::set, 1, 0, 0);
  EXPECT_TRUE(holds(Is::equal, 1, 3));
  change(How::subtract, 1, 4);
  EXPECT_TRUE(holds(Is::equal, 1, 0xffffffff));
  change(How::add, 1, 0, 0);
  EXPECT_TRUE(holds(Is::equal, 1, 2));
}

TEST(StateStore, XbitsOfPairsIgnoreDirectionAndThoseOfHostsDoNot) {
  Store s;
  const auto set = [&](TrackBy track, const TrackedPacket& packet) {
    s.store.change(XbitsChange{XbitsChange::How::set, 4, track, 10}, packet);
  };
  const auto is = [&](TrackBy track, const TrackedPacket& packet) {
    const bool set_there = s.store.holds(XbitsMatch{4, track, false}, packet);
    EXPECT_NE(set_there, s.store.holds(XbitsMatch{4, track, true}, packet));
    return set_there;
  };
  set(TrackBy::ip_pair, packet_of(1, 2));
  EXPECT_TRUE(is(TrackBy::ip_pair, packet_of(2, 1)));
  EXPECT_FALSE(is(TrackBy::ip_pair, packet_of(1, 3)));
  EXPECT_FALSE(is(TrackBy::source, packet_of(1, 2)));
  set(TrackBy::source, packet_of(1, 2));
  EXPECT_TRUE(is(TrackBy::source, packet_of(1, 9)));
  EXPECT_TRUE(is(TrackBy::destination, packet_of(9, 1)));
  EXPECT_FALSE(is(TrackBy::source, packet_of(2, 1)));
  EXPECT_TRUE(is(TrackBy::source, packet_of(1, 9, 10.0)));
  EXPECT_FALSE(is(TrackBy::source, packet_of(1, 9, 10.000001)));
  TrackedPacket v6 = packet_of(1, 2);
  v6.packet.ip_version = 6;
  EXPECT_FALSE(is(TrackBy::ip_pair, v6));
}

/// Compares everything with maps, with time that jumps both ways.
TEST(StateStore, AgreesWithPlainMapsOnRandomChanges) {
  Store s;
  auto random = [engine = std::mt19937(7)]() mutable { return static_cast<std::uint32_t>(engine()); };
  std::vector<Flow> flows(20);
  std::vector<std::set<std::uint32_t>> bits(flows.size());
  std::vector<std::map<std::uint32_t, std::uint32_t>> ints(flows.size());
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> xbits;  // to its expiry time
  std::uint64_t now_s = 1000;
  for (int step = 0; step < 300'000; ++step) {
    now_s += random() % 5;
    now_s -= random() % 4;
    const std::size_t f = random() % flows.size();
    const TrackedPacket packet = packet_of(random() % 4, random() % 4, static_cast<double>(now_s), &flows[f]);
    const std::uint32_t name = random() % 40, other = random() % 40, value = random() % 3;
    const auto of = [&](std::uint32_t n) { return ints[f].count(n) != 0 ? ints[f][n] : 0; };
    const auto source = static_cast<std::uint32_t>(packet.packet.source.address.low);
    const auto destination = static_cast<std::uint32_t>(packet.packet.destination.address.low);
    const TrackBy track = std::array{TrackBy::source, TrackBy::destination, TrackBy::ip_pair}[random() % 3];
    const auto whose = track == TrackBy::source ? std::tuple(source, 99U, name)
                       : track == TrackBy::destination
                           ? std::tuple(destination, 99U, name)
                           : std::tuple(std::min(source, destination), std::max(source, destination), name);
    switch (random() % 12) {
      case 0:
        s.store.change(FlowbitsChange{FlowbitsChange::How::set, name}, packet);
        bits[f].insert(name);
        break;
      case 1:
        s.store.change(FlowbitsChange{FlowbitsChange::How::unset, name}, packet);
        bits[f].erase(name);
        break;
      case 2:
        s.store.change(FlowbitsChange{FlowbitsChange::How::toggle, name}, packet);
        if (!bits[f].insert(name).second) bits[f].erase(name);
        break;
      case 3:
        ASSERT_EQ(s.store.holds(isset({name, other}), packet), bits[f].count(name) + bits[f].count(other) > 0);
        ASSERT_EQ(s.store.holds(isnotset({name, other}), packet),
                  (name == other ? 2 * bits[f].count(name) : bits[f].count(name) + bits[f].count(other)) < 2);
        break;
      case 4: {
        s.store.change(FlowintChange{FlowintChange::How::set, name, 0, other}, packet);
        ints[f][name] = of(other);
        break;
      }
      case 5: {
        s.store.change(FlowintChange{FlowintChange::How::add, name, value, {}}, packet);
        ints[f][name] = of(name) + value;
        break;
      }
      case 6:
        s.store.change(FlowintChange{FlowintChange::How::subtract, name, value, {}}, packet);
        if (ints[f].count(name) != 0) ints[f][name] -= value;
        break;
      case 7:
        ASSERT_EQ(s.store.holds(FlowintMatch{FlowintMatch::Operator::less_equal, name, 0, other}, packet),
                  ints[f].count(name) != 0 && of(name) <= of(other));
        ASSERT_EQ(s.store.holds(FlowintMatch{FlowintMatch::Operator::is_set, name, 0, {}}, packet),
                  ints[f].count(name) != 0);
        break;
      case 8:
        s.store.change(XbitsChange{XbitsChange::How::set, name, track, value + 1}, packet);
        xbits.emplace(whose, now_s + value + 1);
        break;
      case 9:
        s.store.change(XbitsChange{XbitsChange::How::toggle, name, track, value + 1}, packet);
        if (!xbits.emplace(whose, now_s + value + 1).second) xbits.erase(whose);
        break;
      case 10: {
        const auto there = xbits.find(whose);
        if (there != xbits.end() && there->second < now_s) xbits.erase(there);
        ASSERT_EQ(s.store.holds(XbitsMatch{name, track, false}, packet), xbits.count(whose) != 0);
        break;
      }
      default:
        if (random() % 20 == 0) {
          s.store.flow_ended(flows[f]);
          bits[f].clear();
          ints[f].clear();
        }
        break;
    }
  }
  for (Flow& flow : flows) s.store.flow_ended(flow);
  EXPECT_EQ(s.store.counters().flows, 0U);
}

Rule rule_with(Threshold threshold) {
  Rule rule;
  rule.threshold = threshold;
  return rule;
}

unsigned alerts(Store& s, const Rule& rule, std::uint32_t index, const std::vector<TrackedPacket>& packets) {
  unsigned alerts = 0;
  for (const TrackedPacket& packet : packets) alerts += s.store.count(rule, index, packet).alerts ? 1 : 0;
  return alerts;
}

TEST(StateStore, CountsPerTrackedHostPairRuleOrFlow) {
  Flow flow_a, flow_b;
  const std::vector<TrackedPacket> packets{packet_of(1, 2, 0, &flow_a), packet_of(2, 1, 1, &flow_a),
                                           packet_of(1, 3, 2, &flow_b), packet_of(1, 2, 3, &flow_a),
                                           packet_of(3, 1, 4, &flow_b), packet_of(4, 5, 5, nullptr)};
  const auto limited_to_one = [&](TrackBy track) {
    Store s;
    const unsigned found =
        alerts(s, rule_with({.type = Threshold::Type::limit, .track = track, .count = 1, .seconds = 60}), 0, packets);
    s.store.flow_ended(flow_a);
    s.store.flow_ended(flow_b);
    return found;
  };
  EXPECT_EQ(limited_to_one(TrackBy::source), 4U);       // 1 2 3 4
  EXPECT_EQ(limited_to_one(TrackBy::destination), 4U);  // 2 1 3 5
  EXPECT_EQ(limited_to_one(TrackBy::both), 3U);         // 1-2 1-3 4-5
  EXPECT_EQ(limited_to_one(TrackBy::rule), 1U);
  EXPECT_EQ(limited_to_one(TrackBy::flow), 2U);  // a packet without a flow does not match at all
}

TEST(StateStore, CountsEachRuleSeparately) {
  Store s;
  const Rule rule = rule_with({.type = Threshold::Type::limit, .track = TrackBy::rule, .count = 1, .seconds = 60});
  EXPECT_EQ(alerts(s, rule, 0, {packet_of(1, 2), packet_of(1, 2)}), 1U);
  EXPECT_EQ(alerts(s, rule, 1, {packet_of(1, 2), packet_of(1, 2)}), 1U);
}

TEST(StateStore, AThresholdOfOneAlwaysAlerts) {
  Store s;
  const Rule rule = rule_with({.type = Threshold::Type::threshold, .track = TrackBy::source, .count = 1, .seconds = 1});
  EXPECT_EQ(alerts(s, rule, 0, {packet_of(1, 2, 0), packet_of(1, 2, 1), packet_of(1, 2, 5), packet_of(1, 2, 9)}), 4U);
  EXPECT_EQ(s.hosts.counters().records, 0U);
}

TEST(StateStore, ActsOnLimitedAlertsButNotBeforeADetectionFilter) {
  Store s;
  const TrackedPacket packet = packet_of(1, 2);
  const Rule limit = rule_with({.type = Threshold::Type::limit, .track = TrackBy::source, .count = 1, .seconds = 60});
  static_cast<void>(s.store.count(limit, 0, packet));
  StateStore::Decision decision = s.store.count(limit, 0, packet);
  EXPECT_FALSE(decision.alerts);
  EXPECT_TRUE(decision.acts);
  const Rule filter =
      rule_with({.type = Threshold::Type::detection_filter, .track = TrackBy::source, .count = 1, .seconds = 60});
  decision = s.store.count(filter, 1, packet);
  EXPECT_FALSE(decision.alerts);
  EXPECT_FALSE(decision.acts);
  decision = s.store.count(filter, 1, packet);
  EXPECT_TRUE(decision.alerts);
  EXPECT_TRUE(decision.acts);
}

TEST(StateStore, ARateFilterReplacesTheRulesAction) {
  Store s;
  Rule rule = rule_with({.type = Threshold::Type::rate_filter, .track = TrackBy::both, .count = 1, .seconds = 60});
  rule.threshold->new_action = Action::drop;
  rule.threshold->timeout_s = 10;
  EXPECT_FALSE(s.store.count(rule, 0, packet_of(1, 2, 1)).new_action);
  StateStore::Decision decision = s.store.count(rule, 0, packet_of(2, 1, 2));
  EXPECT_EQ(decision.new_action, Action::drop);
  EXPECT_TRUE(decision.alerts);
  rule.threshold->new_action = Action::pass;
  decision = s.store.count(rule, 0, packet_of(2, 1, 3));
  EXPECT_EQ(decision.new_action, Action::pass);
  EXPECT_FALSE(decision.alerts);
}

TEST(StateStore, DoesNotCountPacketsOtherThanIp) {
  Store s;
  TrackedPacket packet = packet_of(1, 2);
  packet.packet.ip_version = 0;
  const Rule rule = rule_with({.type = Threshold::Type::limit, .track = TrackBy::rule, .count = 1, .seconds = 60});
  EXPECT_EQ(alerts(s, rule, 0, {packet, packet, packet}), 3U);
}

TEST(StateStore, SuppressesByRuleGroupAndAddress) {
  RuleSet rules;
  rules.rules.resize(3);
  for (std::uint32_t i = 0; i < 3; ++i) rules.rules[i].sid = 10 + i;
  rules.rules[2].gid = 7;
  const auto addresses = [](std::uint32_t first, std::uint32_t last) {
    AddressSet set;
    set.v4 = {{Ipv4Address{first}, Ipv4Address{last}}};
    return set;
  };
  rules.suppressions = {
      {.gid = 1, .sid = 10, .always = false, .track = TrackBy::source, .addresses = addresses(5, 6)},
      {.gid = 1, .sid = 10, .always = false, .track = TrackBy::destination, .addresses = addresses(8, 8)},
      {.gid = 7, .sid = 0, .always = false, .track = TrackBy::both, .addresses = addresses(1, 1)},
      {.gid = 0, .sid = 0, .always = false, .track = TrackBy::source, .addresses = addresses(77, 77)},
      {.gid = 1, .sid = 11, .always = true, .track = TrackBy::source, .addresses = {}}};
  HostMemory hosts;
  const StateStore store(rules, hosts);
  EXPECT_TRUE(store.suppressed(0, packet_of(5, 1)));
  EXPECT_TRUE(store.suppressed(0, packet_of(6, 1)));
  EXPECT_FALSE(store.suppressed(0, packet_of(7, 5)));
  EXPECT_TRUE(store.suppressed(0, packet_of(7, 8)));
  EXPECT_TRUE(store.suppressed(1, packet_of(100, 101)));
  EXPECT_TRUE(store.suppressed(2, packet_of(1, 2)));
  EXPECT_TRUE(store.suppressed(2, packet_of(2, 1)));
  EXPECT_FALSE(store.suppressed(2, packet_of(5, 8)));
  for (std::uint32_t rule = 0; rule < 3; ++rule) EXPECT_TRUE(store.suppressed(rule, packet_of(77, 101)));
}

TEST(StateStore, TagsLogThePacketsAfterTheAlert) {
  Store s;
  Flow flow;
  Rule rule;
  rule.tags = {{.of = Tag::Of::session, .count = 4, .unit = Tag::Unit::packets}};
  const TrackedPacket packet = packet_of(1, 2, 0, &flow);
  EXPECT_FALSE(s.store.tagged(packet));
  s.store.tag(rule, 0, packet);
  std::vector<bool> logged;
  for (int i = 0; i < 6; ++i) logged.push_back(s.store.tagged(packet));
  EXPECT_EQ(logged, (std::vector{false, true, true, true, false, false}));
}

TEST(StateStore, TagsCountBytesAndSeconds) {
  Store s;
  Rule bytes, seconds;
  bytes.tags = {{.of = Tag::Of::host, .count = 250, .unit = Tag::Unit::bytes, .by_source = true}};
  seconds.tags = {{.of = Tag::Of::host, .count = 3, .unit = Tag::Unit::seconds, .by_source = false}};
  s.store.tag(bytes, 0, packet_of(1, 2));
  std::vector<bool> logged;
  for (int i = 0; i < 4; ++i) logged.push_back(s.store.tagged(packet_of(9, 1)));  // 100 bytes each
  EXPECT_EQ(logged, (std::vector{false, true, false, false}));
  s.store.tag(seconds, 1, packet_of(1, 2, 10));
  logged.clear();
  for (const double at : {10.0, 10.5, 13.9, 14.0, 13.0}) logged.push_back(s.store.tagged(packet_of(2, 9, at)));
  EXPECT_EQ(logged, (std::vector{false, true, true, false, false}));
}

TEST(StateStore, TagsAreRenewedByTheirRuleNineTimes) {
  Store s;
  Flow flow;
  Rule rule;
  rule.tags = {{.of = Tag::Of::session, .count = 2, .unit = Tag::Unit::packets}};
  const TrackedPacket packet = packet_of(1, 2, 0, &flow);
  unsigned logged = 0;
  for (int i = 0; i < 30; ++i) {  // each packet alerts
    s.store.tag(rule, 0, packet);
    if (s.store.tagged(packet)) ++logged;
    if (i == 12) break;
  }
  // The first packet raised the alert, nine restart the tag, and one more fits into the two packets of the last
  // restart.
  EXPECT_EQ(logged, 9U + 1U);
}

TEST(StateStore, TheFirstFateStays) {
  Store s;
  Flow flow;
  using Fate = StateStore::FlowFate;
  EXPECT_EQ(s.store.fate(flow), Fate::inspected);
  s.store.set_fate(flow, Fate::passed);
  s.store.set_fate(flow, Fate::dropped);
  EXPECT_EQ(s.store.fate(flow), Fate::passed);
  s.store.flow_ended(flow);
  EXPECT_EQ(s.store.fate(flow), Fate::inspected);
}

TEST(StateStore, EvictsTheLeastRecentlyUsedFlowWhenFull) {
  RuleSet rules;
  HostMemory hosts;
  StateStore store(rules, hosts, 48 * 100);  // a hundred cells
  std::deque<Flow> flows(60);
  store.set_fate(flows[0], StateStore::FlowFate::dropped);
  for (std::size_t i = 1; i < flows.size(); ++i) {  // two cells each
    EXPECT_EQ(store.fate(flows[0]), StateStore::FlowFate::dropped) << i;
    store.change(FlowbitsChange{FlowbitsChange::How::set, 3}, packet_of(1, 2, 0, &flows[i]));
    EXPECT_TRUE(store.holds(isset({3}), packet_of(1, 2, 0, &flows[i])));
  }
  EXPECT_EQ(store.counters().flows, 50U);
  EXPECT_EQ(store.counters().flows_evicted, 10U);
  EXPECT_FALSE(store.holds(isset({3}), packet_of(1, 2, 0, &flows[1])));
  EXPECT_TRUE(store.holds(isset({3}), packet_of(1, 2, 0, &flows[12])));
  // A single flow that asks for all memory gets what there is, and nothing breaks.
  for (std::uint32_t bit = 0; bit < 200; ++bit) {
    store.change(FlowbitsChange{FlowbitsChange::How::set, bit}, packet_of(1, 2, 0, &flows[59]));
  }
  EXPECT_EQ(store.counters().flows, 1U);
  EXPECT_TRUE(store.holds(isset({98}), packet_of(1, 2, 0, &flows[59])));
  EXPECT_FALSE(store.holds(isset({199}), packet_of(1, 2, 0, &flows[59])));
  for (Flow& flow : flows) store.flow_ended(flow);
  EXPECT_EQ(store.counters().flows, 0U);
}

TEST(StateStore, KeepsAnyNumberOfRecordsPerFlow) {
  RuleSet rules;
  HostMemory hosts;
  StateStore store(rules, hosts);
  std::array<Flow, 3> flows;
  constexpr std::uint32_t kNames = 20'000;  // with a linear list this would take minutes
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t name = 0; name < kNames; ++name) {
      for (std::uint32_t i = 0; i < flows.size(); ++i) {
        const TrackedPacket packet = packet_of(1, 2, 0, &flows[i]);
        store.change(FlowintChange{FlowintChange::How::add, name, i + 1, {}}, packet);
        store.change(FlowbitsChange{FlowbitsChange::How::toggle, name + i}, packet);
      }
    }
  }
  for (std::uint32_t name = 0; name < kNames; ++name) {
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      const TrackedPacket packet = packet_of(1, 2, 0, &flows[i]);
      ASSERT_TRUE(store.holds(FlowintMatch{FlowintMatch::Operator::equal, name, 3 * (i + 1), {}}, packet));
      ASSERT_EQ(store.holds(isset({name}), packet), name >= i);
    }
  }
  for (Flow& flow : flows) store.flow_ended(flow);
  EXPECT_EQ(store.counters().flows, 0U);
  EXPECT_FALSE(store.holds(isset({5}), packet_of(1, 2, 0, &flows[0])));
}

TEST(StateStore, FreesTheStateOfEndedFlows) {
  RuleSet rules;
  HostMemory hosts;
  StateStore store(rules, hosts, 48 * 1000);
  const Rule filter =
      rule_with({.type = Threshold::Type::detection_filter, .track = TrackBy::flow, .count = 1, .seconds = 60});
  Rule tags;
  tags.tags = {{.of = Tag::Of::session}};
  for (int i = 0; i < 1'000'000; ++i) {
    Flow flow;
    const TrackedPacket packet = packet_of(1, 2, 0, &flow);
    store.change(FlowbitsChange{FlowbitsChange::How::set, 3}, packet);
    store.change(FlowintChange{FlowintChange::How::add, 3, 1, {}}, packet);
    static_cast<void>(store.count(filter, 0, packet));
    store.tag(tags, 0, packet);
    ASSERT_TRUE(store.holds(isset({3}), packet));
    store.flow_ended(flow);
    ASSERT_FALSE(store.tagged(packet));
  }
  EXPECT_EQ(store.counters().flows, 0U);
  EXPECT_EQ(store.counters().flows_evicted, 0U);
}

}  // namespace
}  // namespace penstock::nids
