// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules about bridged frames. What they mean is also compared with the kernel (nftables/ethernet_interop_test.cc).

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::packet;

/// An object of nft's JSON about a chain of table `family t`.
std::string chain(const std::string& family, const std::string& hook, const std::string& policy) {
  return fmt::format(
      R"(,{{"chain": {{"family": "{0}", "table": "t", "name": "{1}", "handle": 1, "type": "filter", "hook": "{1}", "prio": 0, "policy": "{2}"}}}})",
      family, hook, policy);
}
std::string rule(const std::string& family, const std::string& chain, const std::string& statements) {
  return fmt::format(R"(,{{"rule": {{"family": "{}", "table": "t", "chain": "{}", "handle": 2, "expr": [{}]}}}})",
                     family, chain, statements);
}
std::string ruleset(const std::string& objects) {
  return R"({"nftables": [{"metainfo": {"json_schema_version": 1}})" + objects + "]}";
}
std::string match(const std::string& left, const std::string& right, const std::string& op = "==") {
  return fmt::format(R"({{"match": {{"op": "{}", "left": {}, "right": {}}}}})", op, left, right);
}
std::string payload(const std::string& protocol, const std::string& field) {
  return fmt::format(R"({{"payload": {{"protocol": "{}", "field": "{}"}}}})", protocol, field);
}
std::string meta(const std::string& key) { return R"({"meta": {"key": ")" + key + "\"}}"; }
constexpr const char* kAccept = R"({"accept": null})";
constexpr const char* kDrop = R"({"drop": null})";
constexpr const char* kReject = R"({"reject": null})";

ReadOptions bridging(Hook hook = Hook::forward) {
  ReadOptions options;
  options.interfaces.ports = {"left", "right"};
  options.bridges = true;
  options.hook = hook;
  return options;
}

/// A chain at hook forward with these statements of rules.
std::string bridge(const std::string& policy, const std::vector<std::string>& rules) {
  std::string objects = chain("bridge", "forward", policy);
  for (const std::string& statements : rules) objects += rule("bridge", "forward", statements);
  return ruleset(objects);
}

/// A transparent firewall between the ports `left` and `right`.
class Transparent {
 public:
  explicit Transparent(const std::string& rules, Firewall::Setup setup = {}) {
    setup.bridge = Bridge{{1, 0}};
    auto made = Firewall::build(rules_of(rules, bridging()), classify::Engine::bitvector, std::move(setup));
    EXPECT_TRUE(made) << to_string(made.error());
    firewall = std::move(*made);
    stage.emplace(*firewall);
  }

  /// "passes", or why not. `wire_length`: 0: all of it is there.
  std::string verdict(Bytes frame, PortIndex in_port = 0, std::uint32_t wire_length = 0,
                      LinkType link = LinkType::ethernet) {
    PacketDescriptor descriptor;
    descriptor.length = static_cast<std::uint32_t>(frame.size());
    descriptor.wire_length = std::max(descriptor.length, wire_length);
    descriptor.in_port = in_port;
    descriptor.link_type = link;
    PacketView view{frame.data(), &descriptor};
    parse(view);
    descriptor.verdict = Verdict::forward();
    stage->process({&view, 1});
    if (descriptor.verdict.alive()) return "passes";
    return std::string(firewall->traits().drop_reasons[descriptor.verdict.value]);
  }
  bool passes(const Bytes& frame, PortIndex in_port = 0) { return verdict(frame, in_port) == "passes"; }

  std::unique_ptr<Firewall> firewall;
  std::optional<function::testing::AttachedStage> stage;
};

Bytes ipv4() { return packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 53).payload("0123456789").bytes(); }
Bytes ipv6() { return packet().eth().ipv6("fd00::1", "fd00::2").udp(1, 53).payload("0123456789").bytes(); }
Bytes of_type(std::uint16_t type, std::size_t bytes = 60) {
  Bytes frame(bytes);
  frame[12] = static_cast<std::uint8_t>(type >> 8);
  frame[13] = static_cast<std::uint8_t>(type);
  return frame;
}
Bytes arp(std::uint8_t operation) {
  Bytes frame = of_type(ether_type::kArp);
  frame[21] = operation;
  return frame;
}
Bytes tagged(Bytes frame, std::uint16_t tci, std::uint16_t type = ether_type::kVlan) {
  const Bytes tag{static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type),
                  static_cast<std::uint8_t>(tci >> 8), static_cast<std::uint8_t>(tci)};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TEST(Bridge, JudgesFramesOfAllProtocols) {
  Transparent none(bridge("drop", {}));
  for (const Bytes& frame : {ipv4(), ipv6(), arp(1), of_type(0x88cc), of_type(40), tagged(ipv6(), 5)})
    EXPECT_EQ(none.verdict(frame), "denied");
  Transparent only_arp(bridge("drop", {match(payload("ether", "type"), "\"arp\"") + "," + kAccept}));
  EXPECT_TRUE(only_arp.passes(arp(1)));
  EXPECT_FALSE(only_arp.passes(ipv4()));
  EXPECT_FALSE(only_arp.passes(ipv6()));
  Transparent all(bridge("accept", {match(payload("arp", "operation"), "\"reply\"") + "," + kDrop}));
  for (const Bytes& frame : {ipv4(), ipv6(), arp(1), of_type(0x88cc), of_type(40)}) EXPECT_TRUE(all.passes(frame));
  EXPECT_FALSE(all.passes(arp(2)));
}

/// A negated match on what only IP has must not match other frames.
TEST(Bridge, RulesAboutIpDoNotMatchOtherFrames) {
  for (const std::string& left : {payload("ip", "saddr"), payload("ip6", "daddr")}) {
    const bool is_ipv4 = left.find("saddr") != std::string::npos;
    Transparent gateway(bridge("drop", {match(left, is_ipv4 ? "\"10.9.9.9\"" : "\"fd00::9\"", "!=") + "," + kAccept}));
    EXPECT_EQ(gateway.passes(ipv4()), is_ipv4);
    EXPECT_EQ(gateway.passes(ipv6()), !is_ipv4);
    EXPECT_FALSE(gateway.passes(arp(1)));
    EXPECT_FALSE(gateway.passes(of_type(0x88cc)));
  }
  for (const std::string& statements : {match(meta("l4proto"), "\"tcp\"", "!="), match(meta("l4proto"), "0", ">="),
                                        match(payload("udp", "dport"), "80", "!=")}) {
    Transparent gateway(bridge("drop", {statements + "," + kAccept}));
    EXPECT_TRUE(gateway.passes(ipv4())) << statements;
    EXPECT_TRUE(gateway.passes(ipv6())) << statements;
    EXPECT_FALSE(gateway.passes(arp(1))) << statements;
    EXPECT_FALSE(gateway.passes(of_type(0x88cc))) << statements;
  }
}

TEST(Bridge, SeesPacketsBehindOneTagAsLinuxDoes) {
  Transparent gateway(bridge("drop", {match(payload("udp", "dport"), "53") + "," + kAccept}));
  for (const Bytes& frame : {ipv4(), ipv6()}) {
    EXPECT_TRUE(gateway.passes(frame));
    EXPECT_TRUE(gateway.passes(tagged(frame, 5)));
    EXPECT_TRUE(gateway.passes(tagged(frame, 5, ether_type::kQinQ)));
    EXPECT_FALSE(gateway.passes(tagged(tagged(frame, 5), 6))) << "IP behind two tags";
    EXPECT_FALSE(gateway.passes(tagged(frame, 5, ether_type::kQinQLegacy))) << "no tag to Linux";
  }
  Transparent by_tag(bridge("drop", {match(payload("vlan", "id"), "5") + "," + kAccept}));
  EXPECT_TRUE(by_tag.passes(tagged(arp(1), 0xe005)));
  EXPECT_FALSE(by_tag.passes(tagged(arp(1), 6)));
  EXPECT_FALSE(by_tag.passes(arp(1)));
  EXPECT_FALSE(by_tag.passes(tagged(arp(1), 5, ether_type::kQinQ)));
}

TEST(Bridge, KnowsByWhichPortFramesLeave) {
  Transparent gateway(bridge("drop", {match(meta("oifname"), "\"right\"") + "," + kAccept}));
  for (const Bytes& frame : {ipv4(), ipv6(), arp(1)}) {
    EXPECT_TRUE(gateway.passes(frame, 0));
    EXPECT_FALSE(gateway.passes(frame, 1));
  }
}

TEST(Bridge, DropsWhatCouldEvadeRules) {
  Transparent gateway(bridge("accept", {match(payload("arp", "operation"), "\"reply\"") + "," + kDrop}));
  EXPECT_EQ(gateway.verdict(Bytes(13)), "malformed");
  EXPECT_EQ(gateway.verdict(Bytes(13), 0, 60), "truncated");
  EXPECT_EQ(gateway.verdict(of_type(ether_type::kVlan, 16)), "malformed");
  EXPECT_EQ(gateway.verdict(of_type(ether_type::kArp, 40)), "malformed");
  EXPECT_EQ(gateway.verdict(of_type(ether_type::kArp, 40), 0, 60), "truncated");
  EXPECT_EQ(gateway.verdict(of_type(ether_type::kIpv4)), "malformed") << "no IPv4 header";
  EXPECT_EQ(gateway.verdict(of_type(ether_type::kIpv6)), "malformed");
  EXPECT_EQ(gateway.verdict(ipv4(), 0, 0, LinkType::raw_ip), "malformed") << "a link without frames";
}

TEST(Bridge, ReportsItsPolicyAndRules) {
  Transparent gateway(bridge("drop", {match(payload("ether", "type"), "\"arp\"") + "," + kAccept}));
  for (const Bytes& frame : {ipv4(), ipv6(), of_type(0x88cc), arp(1)}) static_cast<void>(gateway.passes(frame));
  nlohmann::json report;
  gateway.firewall->report(report);
  EXPECT_EQ(report["policy"]["bridge"]["packets"], 3);
  EXPECT_EQ(report["policy"]["bridge"]["target"], "drop");
  EXPECT_FALSE(report["policy"].contains("ipv4"));
  EXPECT_EQ(report["rules"][0]["packets"], 1);
  EXPECT_TRUE(gateway.firewall->traits().devices[function::Processor::gpu] == std::nullopt);
}

TEST(Bridge, RejectsOtherFramesWithoutAnAnswer) {
  Firewall::Setup setup;
  setup.answering.ports = {true, true};
  Transparent gateway(bridge("accept", {std::string(kReject)}), std::move(setup));
  for (const Bytes& frame : {ipv4(), ipv6(), arp(1), of_type(0x88cc), tagged(tagged(ipv4(), 1), 2)})
    EXPECT_EQ(gateway.verdict(frame), "rejected");
}

TEST(Bridge, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const std::string& statements) {
    const auto read = read_rules(bridge("accept", {statements + "," + kDrop}), "rules", bridging());
    EXPECT_TRUE(read) << to_string(read.error());
    return read ? to_string(read->unsupported) : "";
  };
  EXPECT_THAT(refused(match(R"({"ct": {"key": "state"}})", "\"invalid\"")),
              HasSubstr("(table bridge t, chain forward, rule handle 2): ct is not supported in a table of family"));
  EXPECT_THAT(refused(match(R"({"ct": {"key": "status"}})", "\"dnat\"")), HasSubstr("ct is not supported"));
  EXPECT_THAT(refused(R"({"notrack": null})"), HasSubstr("notrack is not supported"));
  EXPECT_THAT(refused(R"({"mangle": {"key": {"ct": {"key": "mark"}}, "value": 1}})"), HasSubstr("mangle is not"));
  EXPECT_THAT(refused(match(meta("nfproto"), "\"ipv4\"")), HasSubstr("it is the same for all frames"));
  EXPECT_THAT(refused(match(meta("ibrname"), "\"br0\"")), HasSubstr("meta ibrname is not supported"));
  EXPECT_THAT(refused(match(meta("pkttype"), "\"host\"")), HasSubstr("pkttype of frames to one host"));
  EXPECT_THAT(refused(match(meta("pkttype"), "\"other\"", "!=")), HasSubstr("pkttype of frames to one host"));
  EXPECT_EQ(refused(match(meta("pkttype"), "\"broadcast\"", "!=")), "");
  EXPECT_THAT(refused(match(payload("vlan", "id"), "5") + "," + match(payload("ether", "type"), "\"8021ad\"")),
              HasSubstr("a match with tags of 802.1ad"));
  EXPECT_THAT(refused(match(payload("ether", "type"), "\"arp\"", "!=") + "," + match(payload("vlan", "id"), "5")),
              HasSubstr("a match with tags of 802.1ad"));
}

TEST(Bridge, OtherFamiliesDoNotApply) {
  const std::string rules = ruleset(chain("bridge", "forward", "accept") + chain("inet", "forward", "drop"));
  const auto read = read_rules(rules, "rules", bridging());
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(to_string(read->unsupported), "");
  EXPECT_THAT(to_string(read->harmless), HasSubstr("(table inet t, chain forward): it does not apply: only routed"));
  EXPECT_EQ(read->value.ipv4_policy, classify::Target::accept);
  EXPECT_THAT(
      errors_of(ruleset(chain("inet", "forward", "drop")), bridging()),
      HasSubstr("no chain that filters bridged frames: expected a base chain of type filter at hook forward, in "
                "a table of family bridge"));
  EXPECT_THAT(errors_of("*filter\n:FORWARD DROP [0:0]\nCOMMIT\n", bridging()),
              HasSubstr("rules of this format are not about bridged frames"));
}

/// Frames that a bridge forwards are not routed; but those to and from its own address pass its other hooks.
TEST(Bridge, ItsTablesMatterToRoutersAtSomeHooks) {
  const auto read_at = [](const std::string& hook, std::optional<Hook> at, bool after_router) {
    ReadOptions options;
    options.hook = at;
    options.interfaces.out_known = after_router;
    return *read_rules(ruleset(chain("inet", "forward", "drop") + chain("bridge", hook, "drop")), "rules", options);
  };
  for (const std::optional<Hook> at :
       {std::optional<Hook>(), std::optional(Hook::forward), std::optional(Hook::prerouting)}) {
    const auto read = read_at("forward", at, true);
    EXPECT_EQ(to_string(read.unsupported), "");
    EXPECT_THAT(to_string(read.harmless), HasSubstr("(table bridge t, chain forward): it does not apply: only frames"));
  }
  EXPECT_THAT(to_string(read_at("forward", std::nullopt, false).unsupported),
              HasSubstr("expected `family: bridge`, if the chain bridges frames"));
  for (const char* hook : {"prerouting", "postrouting", "input", "output"}) {
    EXPECT_THAT(to_string(read_at(hook, Hook::forward, true).unsupported), HasSubstr("is not supported")) << hook;
  }
}

TEST(Bridge, WithoutHookRefusesRulesAtOtherHooks) {
  ReadOptions options = bridging();
  options.hook.reset();
  const auto read = read_rules(ruleset(chain("bridge", "forward", "accept") + chain("bridge", "prerouting", "drop")),
                               "rules", options);
  ASSERT_TRUE(read);
  EXPECT_THAT(to_string(read->unsupported), HasSubstr("chain prerouting of type filter at hook prerouting"));
  const auto at_input =
      read_rules(ruleset(chain("bridge", "forward", "accept") + chain("bridge", "input", "drop")), "rules", options);
  EXPECT_EQ(to_string(at_input->unsupported), "") << "of the host's own frames";
}

}  // namespace
}  // namespace penstock::firewall
