// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Maps in translations, as `nft -j list ruleset` of nftables 1.0.6 prints them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "classify/classifier.h"
#include "nf/firewall/nat_rules.h"
#include "nf/firewall/nftables/translation.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using ::testing::HasSubstr;

/// Rules in a chain that translates, of a table with these objects.
std::string rule_set(const std::vector<std::string>& rules, const std::string& objects = "",
                     const std::string& hook = "prerouting", const std::string& family = "inet") {
  std::string text = fmt::format(
      R"({{"nftables": [{{"metainfo": {{"json_schema_version": 1}}}}, {{"table": {{"family": "{0}", "name": "t",
      "handle": 1}}}}, {1} {{"chain": {{"family": "{0}", "table": "t", "name": "c", "handle": 1, "type": "nat",
      "hook": "{2}", "prio": -100, "policy": "accept"}}}})",
      family, objects, hook);
  int handle = 2;
  for (const std::string& rule : rules) {
    text += fmt::format(R"(, {{"rule": {{"family": "{}", "table": "t", "chain": "c", "handle": {}, "expr": [{}]}}}})",
                        family, handle++, rule);
  }
  return text + "]}";
}

std::string map(const std::string& type, const std::string& to, const std::string& elements, const char* more = "") {
  return fmt::format(
      R"({{"map": {{"family": "inet", "name": "m", "table": "t", "type": {}, "handle": 3, "map": "{}", {} "elem": [{}]}}}},)",
      type, to, more, elements);
}

std::string with_key(const std::string& statement, const std::string& key, const std::string& data,
                     const std::string& part = "addr", const std::string& more = "") {
  return fmt::format(R"({{"{}": {{"{}": {{"map": {{"key": {}, "data": {}}}}}{}}}}})", statement, part, key, data, more);
}

const std::string kSource = R"({"payload": {"protocol": "ip", "field": "saddr"}})";
const std::string kSource6 = R"({"payload": {"protocol": "ip6", "field": "saddr"}})";
const std::string kDestination = R"({"payload": {"protocol": "ip", "field": "daddr"}})";
const std::string kPort = R"({"payload": {"protocol": "tcp", "field": "dport"}})";
const std::string kBoth = R"({"concat": [)" + kDestination + ", " + kPort + "]}";

ReadOptions options(Hook hook = Hook::prerouting) {
  ReadOptions options;
  options.interfaces.ports = {"lan", "wan"};
  options.hook = hook;
  options.translates = true;
  return options;
}

class Nat {
 public:
  explicit Nat(const std::string& text, Hook hook = Hook::prerouting)
      : nat_{hook, rules_of(text, options(hook)), {{*parse_ipv4("203.0.113.1"), {}}, {}}} {
    nat_.classifier = classify::make_classifier(classify::Engine::bitvector, nat_.rules).value();
  }

  /// What its connection is translated to; "": it is not.
  std::string of(const PacketBuilder& builder) const {
    auto frame = builder.bytes();
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    PacketView view{frame.data(), &descriptor};
    parse(view);
    const auto range = nat_.range_for(view, number_of(classify::Connection{}), nullptr);
    if (!range) return "dropped";
    std::string text = text_of(*range, view.layout().network);
    if (range->has(conntrack::NatRange::kNetmap)) text += " netmap";
    if (range->has(conntrack::NatRange::kRandom)) text += " random";
    return text;
  }
  [[nodiscard]] const classify::Ruleset& rules() const { return nat_.rules; }

 private:
  NatRules nat_;
};

PacketBuilder tcp(const char* from, const char* to, std::uint16_t port) {
  return packet().eth().ipv4(from, to).tcp(1000, port);
}
PacketBuilder udp(const char* from, const char* to, std::uint16_t port) {
  return packet().eth().ipv4(from, to).udp(1000, port);
}

/// The first problem of a rule set, or "".
std::string problem_of(const std::string& text, ReadOptions with = options()) {
  const auto read = read_rules(text, "rules", with);
  return read ? to_string(read->unsupported) : to_string(read.error());
}

TEST(NatMap, TranslatesByAddressesAndGoesOnWithoutAnElement) {
  const Nat nat(rule_set({with_key("dnat", kSource, R"({"set": [["10.0.0.1", "192.168.0.1"],
                          [{"prefix": {"addr": "10.1.0.0", "len": 16}}, "192.168.0.2"],
                          [{"range": ["10.2.0.1", "10.2.0.9"]}, {"range": ["192.168.1.1", "192.168.1.9"]}]]})",
                                   "addr", R"(, "family": "ip", "flags": "random")"),
                          R"({"dnat": {"family": "ip", "addr": "192.168.0.9"}})"}));
  EXPECT_EQ(nat.of(tcp("10.0.0.1", "1.1.1.1", 80)), "192.168.0.1 random");
  EXPECT_EQ(nat.of(udp("10.1.2.3", "1.1.1.1", 80)), "192.168.0.2 random");
  EXPECT_EQ(nat.of(udp("10.2.0.3", "1.1.1.1", 80)), "192.168.1.1-192.168.1.9 random");
  EXPECT_EQ(nat.of(udp("10.3.0.3", "1.1.1.1", 80)), "192.168.0.9") << "no element: the next rule";
  ASSERT_EQ(nat.rules().rules.size(), 4U) << "a rule for each value";
  EXPECT_EQ(nat.rules().rules[1].text,
            "inet t c: dnat ip to ip saddr map { 10.0.0.1 : 192.168.0.1, 10.1.0.0/16 : 192.168.0.2, 10.2.0.1-10.2.0.9 "
            ": 192.168.1.1-192.168.1.9 } random : 192.168.0.2 # handle 2");
  EXPECT_EQ(nat.rules().rules[3].text, "inet t c: dnat ip to 192.168.0.9 # handle 3");
}

TEST(NatMap, TranslatesByNamedMapsToAddressesAndPorts) {
  const Nat nat(rule_set({with_key("dnat", kBoth, R"("@m")", "addr", R"(, "family": "ip")")},
                         map(R"(["ipv4_addr", "inet_service"])", "ipv4_addr . inet_service",
                             R"([{"concat": ["1.2.3.4", 80]}, {"concat": ["10.0.0.1", 8080]}],
             [{"concat": [{"prefix": {"addr": "1.2.3.0", "len": 28}}, {"range": [81, 82]}]},
              {"concat": ["10.0.0.1", {"range": [8081, 8089]}]}],
             [{"elem": {"val": {"concat": ["1.2.3.5", 80]}, "comment": "web"}}, {"concat": ["10.0.0.1", 8080]}])",
                             R"("flags": ["interval"],)")));
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.4", 80)), "10.0.0.1:8080");
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.5", 80)), "10.0.0.1:8080");
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.15", 82)), "10.0.0.1:8081-8089");
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.16", 82)), "");
  EXPECT_EQ(nat.of(udp("10.0.0.9", "1.2.3.4", 80)), "") << "the key is of TCP";
  EXPECT_EQ(nat.rules().rules[0].text, "inet t c: dnat ip to ip daddr . tcp dport map @m : 10.0.0.1:8080 # handle 2");
}

TEST(NatMap, TranslatesToPortsOnly) {
  const std::string ports = R"({"set": [[80, 8080], [{"range": [90, 99]}, {"range": [9000, 9009]}]]})";
  const Nat nat(rule_set({with_key("dnat", kPort, ports, "port", R"(, "family": "ip", "addr": "10.0.0.1")")}));
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.4", 80)), "10.0.0.1:8080");
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.4", 95)), "10.0.0.1:9000-9009");
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.4", 100)), "");
  const Nat redirect(rule_set({with_key("redirect", kPort, R"("@m")", "port")},
                              map(R"("inet_service")", "inet_service", "[80, 8080]")));
  EXPECT_EQ(redirect.of(tcp("10.0.0.9", "1.2.3.4", 80)), "203.0.113.1:8080");
}

TEST(NatMap, TranslatesPrefixesBitByBit) {
  const Nat nat(
      rule_set({with_key("snat", kSource, R"({"set": [[{"prefix": {"addr": "10.1.0.0", "len": 24}}, {"prefix": {"addr":
                         "192.168.2.0", "len": 24}}], ["10.2.0.1", "192.168.3.1"]]})",
                         "addr", R"(, "family": "ip", "flags": "netmap", "type_flags": "prefix")")},
               "", "postrouting"),
      Hook::postrouting);
  EXPECT_EQ(nat.of(udp("10.1.0.7", "1.1.1.1", 1)), "192.168.2.0-192.168.2.255 netmap");
  EXPECT_EQ(nat.of(udp("10.2.0.1", "1.1.1.1", 1)), "192.168.3.1 netmap") << "nft prints /32 as an address";
  EXPECT_THAT(nat.rules().rules[0].text, HasSubstr("snat ip prefix to ip saddr map { 10.1.0.0/24 : 192.168.2.0/24, "));
}

TEST(NatMap, TranslatesIpv6AndTheRest) {
  const Nat nat(rule_set(
      {with_key("dnat", kSource6, R"("@m")", "addr", R"(, "family": "ip6")"),
       with_key("dnat", R"({"meta": {"key": "iifname"}})", R"({"set": [["lan", "10.0.0.1"], ["*", "10.0.0.2"]]})")},
      map(R"("ipv6_addr")", "ipv6_addr . inet_service", R"(["fd00::1", {"concat": ["2001:db8::1", 80]}])")));
  EXPECT_EQ(nat.of(packet().eth().ipv6("fd00::1", "fd00::2").tcp(1, 2)), "[2001:db8::1]:80");
  EXPECT_EQ(nat.of(packet().eth().ipv6("fd00::3", "fd00::2").tcp(1, 2)), "") << "IPv4 addresses are for IPv4";
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.4", 80)), "10.0.0.1");
}

TEST(NatMap, AnEmptyMapTranslatesNothing) {
  const Nat nat(rule_set({with_key("dnat", kSource, R"("@m")")}, map(R"("ipv4_addr")", "ipv4_addr", "")));
  EXPECT_EQ(nat.of(tcp("10.0.0.9", "1.2.3.4", 80)), "");
}

TEST(NatMap, NamesWhatIsNotSupported) {
  const std::string address = R"({"set": [["10.0.0.1", "192.168.0.1"]]})";
  for (const auto& [rule, objects, message] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {with_key("dnat", R"({"jhash": {"mod": 2, "expr": 1}})", R"({"set": [[0, "10.0.0.1"]]})"), "",
            ".dnat.addr.map.key.expr (table inet t, chain c, rule handle 2): an expression of this form"},
           {with_key("dnat", kSource, R"("@n")"), "", "unknown set: found '@n'"},
           {with_key("dnat", kPort, R"("@m")"), map(R"("ipv4_addr")", "ipv4_addr", R"(["10.0.0.1", "10.0.0.2"])"),
            "not a map to addresses or ports by this key: found '@m'"},
           {with_key("dnat", kSource, R"("@m")"), map(R"("ipv4_addr")", "verdict", R"(["10.0.0.1", {"drop": null}])"),
            "not a map to addresses or ports by this key"},
           {R"({"vmap": {"key": )" + kSource + R"(, "data": "@m"}})",
            map(R"("ipv4_addr")", "ipv4_addr", R"(["10.0.0.1", "10.0.0.2"])"), "not a map for verdicts by this key"},
           {with_key("dnat", kSource, R"("@m")"), map(R"("ipv4_addr")", "mark", R"(["10.0.0.1", 7])"),
            "set @m is not supported: it is a map to values, not to verdicts"},
           {with_key("dnat", kSource, R"("@m")"),
            map(R"("ipv4_addr")", "ipv4_addr", R"(["10.0.0.1", "10.0.0.2"])", R"("flags": ["timeout"],)"),
            "a map whose elements can change"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", "host.example"]]})"), "",
            ".map.data.set[0][1] (table inet t, chain c, rule handle 2): this address is not supported"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", {"concat": ["10.0.0.2", 80, 81]}]]})"), "",
            "this value of a map is not supported"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", {"concat": ["10.0.0.2", 70000]}]]})"), "",
            "[1].concat[1] (table inet t, chain c, rule handle 2): this port is not supported"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", 80]]})"), "",
            "a value of the map that is not supported"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", "10.0.0.2"]]})", "port"), "",
            "a value of the map that is not supported here, expected ports"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", {"concat": ["10.0.0.2", 80]}]]})", "addr",
                     R"(, "port": 81)"),
            "", "a value of the map that is not supported here"},
           {with_key("dnat", kSource, address, "addr",
                     R"(, "port": {"map": {"key": )" + kPort + R"(, "data": {"set": [[80, 81]]}}})"),
            "", "two maps in a translation are not supported"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1"]]})"), "", "a list of a key and a value"},
           {with_key("dnat", kSource, R"({"set": [["10.0.0.1", "10.0.0.2"], [{"prefix": {"addr": "10.0.0.0",
                     "len": 8}}, "10.0.0.3"]]})"),
            "", "elements that overlap and have different verdicts or values"},
           {with_key("dnat", kSource, "7"), "", "wrong map"},
           {with_key("dnat", kSource, address) + R"(, {"accept": null})", "", "second verdict in a rule"},
           {with_key("dnat", R"({"meta": {"key": "oifname"}})", R"({"set": [["wan", "10.0.0.2"]]})"), "",
            "oifname is supported only if an earlier function chooses the port"},
       }) {
    ReadOptions with = options();
    with.interfaces.out_known = false;
    EXPECT_THAT(problem_of(rule_set({rule}, objects), with), HasSubstr(message)) << rule;
  }
}

TEST(NatMap, OfFiltersMapsToValuesAreNotRead) {
  ReadOptions with = options();
  with.translates = false;
  EXPECT_EQ(
      problem_of(rule_set({with_key("dnat", kSource, R"("@m")")}, map(R"("ipv4_addr")", "ipv4_addr", R"("?")")), with),
      "");
}

TEST(NatMap, ManyValuesAreCountedAndTheirTextsStayShort) {
  std::string elements;
  for (int i = 0; i < 5'000; ++i)
    elements +=
        fmt::format(R"({}["10.0.{}.{}", "192.168.{}.{}"])", i == 0 ? "" : ", ", i / 256, i % 256, i / 256, i % 256);
  const std::string text = rule_set({with_key("dnat", kSource, R"({"set": [)" + elements + "]}")});
  const Nat nat(text);
  ASSERT_EQ(nat.rules().rules.size(), 5'000U);
  EXPECT_LT(nat.rules().rules[7].text.size(), 250U);
  EXPECT_EQ(nat.of(tcp("10.0.7.7", "1.2.3.4", 80)), "192.168.7.7");
  ReadOptions few = options();
  few.most_rules = 4'000;
  EXPECT_THAT(problem_of(text, few), HasSubstr("too many rules"));
}

}  // namespace
}  // namespace penstock::firewall::nftables
