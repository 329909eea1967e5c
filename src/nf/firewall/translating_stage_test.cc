// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations through firewalls that translate addresses, before and after the route is chosen.

#include "nf/firewall/translating_stage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
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

using penstock::testing::Bytes;
using penstock::testing::packet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// nft's JSON of one table of family inet, with chains in the order in which they are added.
class Table {
 public:
  Table& chain(const char* name, const char* type, const char* hook, int priority, const char* policy = "accept") {
    text_ += fmt::format(
        R"(, {{"chain": {{"family": "inet", "table": "t", "name": "{0}", "handle": 1, "type": "{1}", "hook": "{2}",
        "prio": {3}, "policy": "{4}"}}}})",
        name, type, hook, priority, policy);
    chain_ = name;
    return *this;
  }
  /// Of the last chain.
  Table& rule(const std::string& statements) {
    text_ +=
        fmt::format(R"(, {{"rule": {{"family": "inet", "table": "t", "chain": "{}", "handle": {}, "expr": [{}]}}}})",
                    chain_, ++handle_, statements);
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_ + "]}"; }

 private:
  std::string text_ =
      R"({"nftables": [{"metainfo": {"json_schema_version": 1}}, {"table": {"family": "inet", "name": "t", "handle": 1}})";
  std::string chain_;
  int handle_ = 1;
};

std::string match(const char* protocol, const char* field, const std::string& value) {
  return fmt::format(
      R"({{"match": {{"op": "==", "left": {{"payload": {{"protocol": "{}", "field": "{}"}}}}, "right": {}}}}})",
      protocol, field, value);
}

constexpr const char* kMasquerade = R"({"masquerade": null})";

/// A gateway: ports lan (0) and wan (1), which has the address 203.0.113.5 and 2001:db8:ff::5.
class Gateway {
 public:
  explicit Gateway(const std::string& rules, conntrack::Options options = {})
      : connections_(options, 64), in_(make(rules, Hook::prerouting)), out_(make(rules, Hook::postrouting)) {
    for (Side* side : {&in_, &out_}) {
      side->stage = side->firewall->make_cpu_stage();
      side->stage->set_connections(connections_);
    }
  }

  /// What leaves, as "SOURCE > DESTINATION", or the reason of the drop. Checksums must be right.
  std::string pass(Bytes frame, bool from_lan = true, bool dropped_between = false) {
    frame_ = std::move(frame);
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame_.size());
    descriptor.timestamp_ns = 1'700'000'000'000'000'000;
    descriptor.sequence = sequence_++;
    descriptor.in_port = from_lan ? 0 : 1;
    PacketView view{frame_.data(), &descriptor};
    parse(view);
    for (Side* side : {&in_, &out_}) {
      if (!descriptor.verdict.alive()) break;
      if (side == &out_) descriptor.verdict = dropped_between ? Verdict::drop(0) : Verdict::forward(from_lan ? 1 : 0);
      if (descriptor.verdict.alive()) side->stage->process({&view, 1});
    }
    const bool passes = descriptor.verdict.alive();
    why = in_.stage->explain(view);
    connections_.settle();
    if (!passes) return std::string(kDropReasons[descriptor.verdict.value]);
    parse(view);
    return text_of(view);
  }
  /// The same for packets that come in one burst.
  std::vector<std::string> pass_together(std::vector<std::pair<Bytes, bool>> frames) {
    std::vector<PacketDescriptor> descriptors(frames.size());
    std::vector<PacketView> views;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      PacketDescriptor& descriptor = descriptors[i];
      descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frames[i].first.size());
      descriptor.timestamp_ns = 1'700'000'000'000'000'000;
      descriptor.sequence = sequence_++;
      descriptor.in_port = frames[i].second ? 0 : 1;
      views.push_back({frames[i].first.data(), &descriptor});
      parse(views.back());
    }
    in_.stage->process(views);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (descriptors[i].verdict.alive()) descriptors[i].verdict = Verdict::forward(frames[i].second ? 1 : 0);
    }
    std::vector<PacketView> alive;
    std::ranges::copy_if(views, std::back_inserter(alive),
                         [](PacketView view) { return view.packet->verdict.alive(); });
    out_.stage->process(alive);
    connections_.settle();
    std::vector<std::string> texts;
    for (const PacketView view : views) {
      const Verdict verdict = view.packet->verdict;
      if (verdict.alive()) parse(view);
      texts.emplace_back(verdict.alive() ? text_of(view) : std::string(kDropReasons[verdict.value]));
    }
    return texts;
  }
  std::vector<std::string> pass_together(std::initializer_list<Bytes> frames, bool from_lan = true) {
    std::vector<std::pair<Bytes, bool>> all;
    for (const Bytes& frame : frames) all.emplace_back(frame, from_lan);
    return pass_together(std::move(all));
  }
  [[nodiscard]] const conntrack::Counters& counters() const { return connections_.counters(); }
  std::string why;

 private:
  struct Side {
    std::unique_ptr<Firewall> firewall;
    std::unique_ptr<function::CpuStage> stage{};
  };
  static Side make(const std::string& rules, Hook hook) {
    ReadOptions options;
    options.interfaces.ports = {"lan", "wan"};
    options.hook = hook;
    Firewall::Setup setup;
    classify::Ruleset filters = rules_of(rules, options);
    options.translates = true;
    setup.nat =
        NatRules{hook, rules_of(rules, options), {{}, {*parse_ipv4("203.0.113.5"), *parse_ipv6("2001:db8:ff::5")}}};
    auto made = Firewall::build(std::move(filters), classify::Engine::bitvector, std::move(setup));
    EXPECT_TRUE(made) << to_string(made.error());
    return {std::move(*made)};
  }
  static std::string text_of(PacketView view) {
    const bool v4 = view.layout().network == NetworkLayer::ipv4;
    const auto end = [&](const auto& address, std::uint16_t port) {
      return v4 ? fmt::format("{}:{}", to_string(address), port) : fmt::format("[{}]:{}", to_string(address), port);
    };
    const bool ports = view.layout().transport == ip_protocol::kUdp || view.layout().transport == ip_protocol::kTcp;
    const std::uint16_t source = ports ? view.udp().source_port.value() : 0;
    const std::uint16_t destination = ports ? view.udp().destination_port.value() : 0;
    if (v4) {
      return end(Ipv4Address{view.ipv4().source.value()}, source) + " > " +
             end(Ipv4Address{view.ipv4().destination.value()}, destination);
    }
    return end(view.ipv6().source_address(), source) + " > " + end(view.ipv6().destination_address(), destination);
  }

  conntrack::Connections connections_;
  Side in_, out_;
  Bytes frame_;
  std::uint32_t sequence_ = 0;
};

Bytes udp(const char* from, std::uint16_t source, const char* to, std::uint16_t destination) {
  return packet().eth().ipv4(from, to).udp(source, destination).payload("?").bytes();
}
Bytes udp6(const char* from, std::uint16_t source, const char* to, std::uint16_t destination) {
  return packet().eth().ipv6(from, to).udp(source, destination).payload("?").bytes();
}

Table masquerading() {
  Table table;
  table.chain("post", "nat", "postrouting", 100)
      .rule(R"({"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "wan"}}, )" +
            std::string(kMasquerade));
  return table;
}

TEST(TranslatingFirewall, MasqueradesAndTranslatesRepliesBack) {
  Gateway gateway(masquerading().text());
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "203.0.113.5:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 53, "203.0.113.5", 4000), false), "192.0.2.7:53 > 10.0.0.1:4000");
  EXPECT_THAT(gateway.why,
              HasSubstr("from 10.0.0.1:4000 to 192.0.2.7:53 goes on from 203.0.113.5:4000 to 192.0.2.7:53"));
  // Another host with the same port gets another one.
  const std::string other = gateway.pass(udp("10.0.0.2", 4000, "192.0.2.7", 53));
  EXPECT_THAT(other, HasSubstr("203.0.113.5:"));
  EXPECT_NE(other, "203.0.113.5:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "203.0.113.5:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.counters().confirmed, 2U);
}

TEST(TranslatingFirewall, DropsAllPacketsOfAHostWithoutAPort) {
  constexpr conntrack::PortBlockOptions kOneBlock{.size = 512, .per_host = 1, .first_port = 65'024};
  Gateway gateway(masquerading().text(), {.port_blocks = kOneBlock});
  EXPECT_THAT(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), HasSubstr("203.0.113.5:65"));
  const Bytes other = udp("10.0.0.2", 4000, "192.0.2.7", 53);
  EXPECT_THAT(gateway.pass_together({other, other, udp("10.0.0.1", 4001, "192.0.2.7", 53)}),
              ElementsAre("untranslated", "untranslated", HasSubstr("203.0.113.5:65")));
  EXPECT_EQ(gateway.counters().no_free_block, 2U);
  EXPECT_EQ(gateway.counters().confirmed, 2U);
}

TEST(TranslatingFirewall, MasqueradesIpv6) {
  Gateway gateway(masquerading().text());
  EXPECT_EQ(gateway.pass(udp6("fd00::1", 4000, "2001:db8::7", 53)), "[2001:db8:ff::5]:4000 > [2001:db8::7]:53");
  EXPECT_EQ(gateway.pass(udp6("2001:db8::7", 53, "2001:db8:ff::5", 4000), false), "[2001:db8::7]:53 > [fd00::1]:4000");
}

TEST(TranslatingFirewall, ErrorsAboutATranslatedConnectionReachItsHost) {
  Gateway gateway(masquerading().text());
  static_cast<void>(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)));
  const auto quoted = packet().ipv4("203.0.113.5", "192.0.2.7").udp(4000, 53).payload("?").bytes();
  const auto error = packet().eth().ipv4("198.51.100.1", "203.0.113.5").icmp(3, 3).raw(quoted).bytes();
  EXPECT_EQ(gateway.pass(error, false), "198.51.100.1:0 > 10.0.0.1:0");
}

TEST(TranslatingFirewall, ForwardsPortsToHostsInside) {
  Table table;
  table.chain("pre", "nat", "prerouting", -100)
      .rule(match("udp", "dport", "80") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.5", "port": 8080}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 999, "203.0.113.5", 80), false), "192.0.2.7:999 > 10.0.0.5:8080");
  EXPECT_EQ(gateway.pass(udp("10.0.0.5", 8080, "192.0.2.7", 999)), "203.0.113.5:80 > 192.0.2.7:999");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 999, "203.0.113.5", 81), false), "192.0.2.7:999 > 203.0.113.5:81");
}

TEST(TranslatingFirewall, LetsInsideHostsUseThePublicAddress) {
  Table table;
  table.chain("pre", "nat", "prerouting", -100)
      .rule(match("udp", "dport", "80") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.5"}})");
  table.chain("post", "nat", "postrouting", 100)
      .rule(match("ip", "saddr", R"({"prefix": {"addr": "10.0.0.0", "len": 24}})") +
            R"(, {"snat": {"family": "ip", "addr": "10.0.0.254"}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 999, "203.0.113.5", 80)), "10.0.0.254:999 > 10.0.0.5:80");
  EXPECT_EQ(gateway.pass(udp("10.0.0.5", 80, "10.0.0.254", 999)), "203.0.113.5:80 > 10.0.0.1:999");
}

TEST(TranslatingFirewall, ItsFiltersSeeAddressesBeforeTheyAreTranslatedThere) {
  Table table;
  table.chain("raw", "filter", "prerouting", -150).rule(match("udp", "dport", "82") + R"(, {"drop": null})");
  table.chain("pre", "nat", "prerouting", -100)
      .rule(match("udp", "dport", "80") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.5", "port": 82}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 999, "203.0.113.5", 80), false), "192.0.2.7:999 > 10.0.0.5:82");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 998, "203.0.113.5", 82), false), "denied");
  EXPECT_EQ(gateway.counters().confirmed, 1U);
}

TEST(TranslatingFirewall, TheFirstChainThatTranslatesDecidesAndAcceptGoesOn) {
  Table table;
  table.chain("one", "nat", "prerouting", -110)
      .rule(match("udp", "dport", "80") + R"(, {"accept": null})")
      .rule(match("udp", "dport", "81") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.1"}})");
  table.chain("two", "nat", "prerouting", -100).rule(R"({"dnat": {"family": "ip", "addr": "10.0.0.2"}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 80), false), "192.0.2.7:1 > 10.0.0.2:80");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 81), false), "192.0.2.7:1 > 10.0.0.1:81");
}

TEST(TranslatingFirewall, TranslatesByRulesOfIptables) {
  Gateway gateway(
      "# Generated by iptables-save v1.8.9\n*filter\n:FORWARD DROP [0:0]\nCOMMIT\n"
      "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:web - [0:0]\n:whole - [0:0]\n"
      "-A PREROUTING -d 203.0.113.5/32 -p udp -m udp --dport 80 -j web\n"
      "-A PREROUTING -i wan -p udp -m udp --dport 90 -j REDIRECT --to-ports 9090\n"
      "-A web -p udp -j DNAT --to-destination 10.0.0.5:8080\n"
      "-A PREROUTING -p udp -m udp --dport 5000:5009 -j DNAT --to-destination 10.0.0.6:7000-7009/5000\n"
      "-A POSTROUTING -s 10.1.0.0/24 -o wan -j NETMAP --to 198.51.100.0/24\n"
      "-A POSTROUTING -s 10.2.0.0/24 -o wan -j whole\n"
      "-A whole -j NETMAP --to 198.51.101.0/24\n"
      "-A POSTROUTING -s 10.0.0.9/32 -o wan -p udp -j SNAT --to-source 203.0.113.9-203.0.113.9:500-500 --persistent\n"
      "-A POSTROUTING -o wan -j MASQUERADE\nCOMMIT\n"
      "# Generated by ip6tables-save v1.8.9\n*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
      "-A PREROUTING -p udp -m udp --dport 80 -j DNAT --to-destination [fd00::5]:8080\n"
      "-A POSTROUTING -o wan -j SNAT --to-source 2001:db8:ff::9\nCOMMIT\n");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 80), false), "192.0.2.7:1 > 10.0.0.5:8080");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 90), false), "192.0.2.7:1 > 203.0.113.5:9090");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 5003), false), "192.0.2.7:1 > 10.0.0.6:7003");
  EXPECT_EQ(gateway.pass(udp("10.1.0.3", 4000, "192.0.2.7", 53)), "198.51.100.3:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.2.0.3", 4000, "192.0.2.7", 53)), "198.51.101.3:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.0.0.9", 4000, "192.0.2.7", 53)), "203.0.113.9:500 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "203.0.113.5:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp6("2001:db8::7", 1, "2001:db8:ff::9", 80), false), "[2001:db8::7]:1 > [fd00::5]:8080");
  EXPECT_EQ(gateway.pass(udp6("fd00::1", 4000, "2001:db8::7", 53)), "[2001:db8:ff::9]:4000 > [2001:db8::7]:53");
}

TEST(TranslatingFirewall, LeavesTablesOfIptablesToTheFirewallsOfTheirHooks) {
  const std::string text =
      "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n";
  ReadOptions options;
  EXPECT_FALSE(read_rules(text, "rules", options)->unsupported.empty());
  options.hook = Hook::forward;
  const auto forward = read_rules(text, "rules", options);
  EXPECT_TRUE(forward->unsupported.empty());
  EXPECT_EQ(forward->value.ipv4_policy, classify::Target::drop);
  options.hook = Hook::prerouting;
  EXPECT_EQ(read_rules(text, "rules", options)->value.ipv4_policy, classify::Target::accept);
  const auto with_mangle = read_rules(text + "*mangle\n:PREROUTING DROP [0:0]\nCOMMIT\n", "rules", options);
  EXPECT_EQ(with_mangle->value.ipv4_policy, classify::Target::drop);
  const auto with_raw = read_rules(
      text +
          "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s 10.0.0.1/32 -j DROP\n-A PREROUTING -m state --state NEW "
          "-j DROP\n-A PREROUTING -p tcp -j CT --notrack\nCOMMIT\n",
      "rules", options);
  EXPECT_THAT(to_string(with_raw->unsupported), HasSubstr("connections are not known in table raw"));
  EXPECT_THAT(to_string(with_raw->unsupported), Not(HasSubstr("CT")));
  EXPECT_EQ(decide(with_raw->value, tuple("10.0.0.1 192.0.2.7 udp 1 2")), "0 drop");
  options.translates = true;
  for (const char* wrong :
       {"DNAT --to-destination 10.0.0.9-10.0.0.1", "DNAT --to-destination 10.0.0.1:", "NETMAP --to 1/33",
        "SNAT --to-source 10.0.0.1", "DNAT", "REDIRECT --to-ports 9-8", "DNAT --to-destination 10.0.0.1:70000",
        "DNAT --to-destination", "DNAT --to-destination 10.0.0.1:80/8000", "DNAT --to-destination 10.0.0.1:80-90/",
        "DNAT --to-destination 10.0.0.1:80-90/0", "DNAT --to-destination 10.0.0.1:80-90/70000",
        "SNAT --to-source 10.0.0.1:80-90/8000", "REDIRECT --to-ports 80-90/8000"}) {
    EXPECT_FALSE(read_rules(fmt::format("*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j {}\nCOMMIT\n", wrong),
                            "rules", options))
        << wrong;
  }
}

Bytes tcp(const char* from, std::uint16_t source, const char* to, std::uint16_t destination, std::uint8_t flags) {
  return packet().eth().ipv4(from, to).tcp(source, destination, flags).bytes();
}

TEST(TranslatingFirewall, TranslatesAResetThatEndsItsConnectionAlsoIfOthersFollow) {
  Gateway gateway(masquerading().text());
  for (const bool from_lan : {false, true}) {
    EXPECT_EQ(gateway.pass(tcp("10.0.0.1", 4000, "192.0.2.7", 80, TcpHeader::kSyn)), "203.0.113.5:4000 > 192.0.2.7:80");
    const Bytes reset = from_lan ? packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(4000, 80, TcpHeader::kRst).bytes()
                                 : tcp("192.0.2.7", 80, "203.0.113.5", 4000, TcpHeader::kRst | TcpHeader::kAck);
    EXPECT_THAT(gateway.pass_together({{reset, from_lan}, {udp("10.0.0.2", 5000, "192.0.2.7", 53), true}}),
                ElementsAre(from_lan ? "203.0.113.5:4000 > 192.0.2.7:80" : "192.0.2.7:80 > 10.0.0.1:4000",
                            "203.0.113.5:5000 > 192.0.2.7:53"));
  }
  EXPECT_EQ(gateway.counters().ended, 2U);
}

TEST(TranslatingFirewall, TranslatesPacketsOfAConnectionThatMakesRoomInTheSameBurst) {
  conntrack::Options options;
  options.most_connections = 1;
  Gateway gateway(masquerading().text(), options);
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "203.0.113.5:4000 > 192.0.2.7:53");
  EXPECT_THAT(gateway.pass_together({{udp("192.0.2.7", 53, "203.0.113.5", 4000), false},
                                     {udp("10.0.0.1", 4000, "192.0.2.7", 53), true},
                                     {udp("10.0.0.2", 5000, "192.0.2.7", 53), true}}),
              ElementsAre("192.0.2.7:53 > 10.0.0.1:4000", "203.0.113.5:4000 > 192.0.2.7:53",
                          "203.0.113.5:5000 > 192.0.2.7:53"));
  EXPECT_EQ(gateway.counters().early_drops, 1U);
}

TEST(TranslatingFirewall, TranslatesAConnectionThatBeginsAndEndsInOneBurst) {
  Gateway gateway(masquerading().text());
  const Bytes syn = tcp("10.0.0.1", 4000, "192.0.2.7", 80, TcpHeader::kSyn);
  EXPECT_THAT(gateway.pass_together({{syn, true},
                                     {tcp("10.0.0.1", 4000, "192.0.2.7", 80, TcpHeader::kRst), true},
                                     {udp("10.0.0.2", 5000, "192.0.2.7", 53), true}}),
              ElementsAre("203.0.113.5:4000 > 192.0.2.7:80", "203.0.113.5:4000 > 192.0.2.7:80",
                          "203.0.113.5:5000 > 192.0.2.7:53"));
  EXPECT_EQ(gateway.counters().connections, 1U);
  EXPECT_EQ(gateway.pass(syn), "203.0.113.5:4000 > 192.0.2.7:80");
  EXPECT_EQ(gateway.counters().ended, 1U);
}

TEST(TranslatingFirewall, NothingLeavesUntranslatedIfItsConnectionMakesRoomBeforeItIsTranslated) {
  conntrack::Options options;
  options.most_connections = 1;
  Gateway gateway(masquerading().text(), options);
  EXPECT_THAT(gateway.pass_together(
                  {{udp("10.0.0.1", 4000, "192.0.2.7", 53), true}, {udp("10.0.0.2", 5000, "192.0.2.7", 53), true}}),
              ElementsAre("untranslated", "203.0.113.5:5000 > 192.0.2.7:53"));
}

TEST(TranslatingFirewall, AConnectionWhoseFirstPacketIsDroppedLeavesNothing) {
  Gateway gateway(masquerading().text());
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53), true, true), "denied");
  EXPECT_EQ(gateway.counters().connections, 0U);
  EXPECT_EQ(gateway.pass(udp("10.0.0.2", 4000, "192.0.2.7", 53)), "203.0.113.5:4000 > 192.0.2.7:53");
}

TEST(TranslatingFirewall, HostsLearnThatTheirConnectionWasRefused) {
  Gateway gateway(masquerading().text());
  const auto syn = [](std::uint16_t port) {
    return packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(port, 80, TcpHeader::kSyn).bytes();
  };
  const auto refused = [](std::uint16_t port) {
    return packet()
        .eth()
        .ipv4("192.0.2.7", "203.0.113.5")
        .tcp(80, port, static_cast<std::uint8_t>(TcpHeader::kRst | TcpHeader::kAck))
        .bytes();
  };
  static_cast<void>(gateway.pass_together({syn(4000), syn(4001)}));
  EXPECT_THAT(gateway.pass_together({refused(4000), refused(4001)}, false),
              ::testing::ElementsAre("192.0.2.7:80 > 10.0.0.1:4000", "192.0.2.7:80 > 10.0.0.1:4001"));
}

TEST(TranslatingFirewall, DropsWhatCannotBeTranslated) {
  Table table;
  table.chain("post", "nat", "postrouting", 100)
      .rule(match("udp", "dport", "53") + R"(, {"masquerade": {"port": 1000}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "203.0.113.5:1000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.0.0.2", 4000, "192.0.2.7", 53)), "untranslated");
  EXPECT_EQ(gateway.counters().no_free_port, 1U);
  EXPECT_EQ(gateway.counters().connections, 1U);
  EXPECT_EQ(gateway.pass(udp("10.0.0.9", 4000, "192.0.2.7", 53), false), "untranslated") << "lan has no address";
}

constexpr const char* kDrop = R"({"drop": null})";

TEST(TranslatingFirewall, FiltersAfterNatSeeTranslatedAddresses) {
  Table table;
  table.chain("late", "filter", "prerouting", 10)
      .rule(match("udp", "dport", "8080") + ", " + kDrop)
      .rule(match("ip", "daddr", R"("10.0.0.1")") + ", " + match("udp", "sport", "54") + ", " + kDrop);
  table.chain("early", "filter", "prerouting", -150).rule(match("udp", "dport", "8081") + ", " + kDrop);
  table.chain("pre", "nat", "prerouting", -100)
      .rule(match("udp", "dport", "80") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.5", "port": 8080}})")
      .rule(match("udp", "dport", "81") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.5", "port": 8081}})");
  table.chain("post", "nat", "postrouting", 100).rule(match("ip", "saddr", R"("10.0.0.1")") + ", " + kMasquerade);
  table.chain("last", "filter", "postrouting", 110)
      .rule(match("ip", "saddr", R"("203.0.113.5")") + ", " + match("udp", "dport", "55") + ", " + kDrop);
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 80), false), "denied");
  EXPECT_THAT(gateway.why, HasSubstr("inet t late"));
  EXPECT_EQ(gateway.counters().connections, 0U);
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 81), false), "192.0.2.7:1 > 10.0.0.5:8081");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 8081), false), "denied");
  for (const std::uint16_t port : {std::uint16_t{53}, std::uint16_t{54}})
    EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", port)),
              fmt::format("203.0.113.5:4000 > 192.0.2.7:{}", port));
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 53, "203.0.113.5", 4000), false), "192.0.2.7:53 > 10.0.0.1:4000");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 54, "203.0.113.5", 4000), false), "denied") << "a reply, as translated back";
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 55)), "denied");
  EXPECT_EQ(gateway.pass(udp("10.0.0.2", 4000, "192.0.2.7", 55)), "10.0.0.2:4000 > 192.0.2.7:55");
}

TEST(TranslatingFirewall, AFilterInThePlaceOfNatIsRefused) {
  Table table;
  table.chain("pre", "nat", "prerouting", -50).rule(R"({"redirect": {"port": 8080}})");
  table.chain("through", "filter", "forward", 0);
  table.chain("same", "filter", "prerouting", -100).rule(match("udp", "dport", "82") + ", " + kDrop);
  ReadOptions options;
  options.hook = Hook::prerouting;
  const auto read = read_rules(table.text(), "rules", options);
  ASSERT_TRUE(read);
  EXPECT_THAT(to_string(read->unsupported), HasSubstr("a filter in the place of the translation of addresses"));
  options.hook = Hook::forward;
  EXPECT_TRUE(read_rules(table.text(), "rules", options)->unsupported.empty());
  options.hook.reset();
  EXPECT_FALSE(read_rules(table.text(), "rules", options)->unsupported.empty());
}

TEST(TranslatingFirewall, PacketsThatAreLeftUntrackedOrDroppedBeforeNeitherBeginNorChangeConnections) {
  Table table;
  table.chain("raw", "filter", "prerouting", -300)
      .rule(match("udp", "dport", "53") + R"(, {"notrack": null})")
      .rule(match("udp", "dport", "82") + ", " + kDrop)
      .rule(match("udp", "sport", "83") + ", " + kDrop);
  table.chain("post", "nat", "postrouting", 100).rule(kMasquerade);
  table.chain("filter", "filter", "postrouting", 0)
      .rule(R"({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "untracked"}}, )" +
            match("udp", "sport", "9") + ", " + kDrop);
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "10.0.0.1:4000 > 192.0.2.7:53") << "not translated";
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 9, "192.0.2.7", 53)), "denied") << "as untracked";
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 82)), "denied");
  EXPECT_EQ(gateway.counters().connections, 0U);
  EXPECT_EQ(gateway.counters().untracked, 2U);
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 83)), "203.0.113.5:4000 > 192.0.2.7:83");
  const auto found = gateway.counters().found;
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 83, "203.0.113.5", 4000), false), "denied");
  EXPECT_EQ(gateway.counters().found, found);
  EXPECT_EQ(gateway.counters().connections, 1U);
  const auto fragment = [](std::uint16_t field) {
    return packet().eth().ipv4("10.0.0.1", "192.0.2.7", 64, {}, field).udp(4000, 53).payload("01234567").bytes();
  };
  EXPECT_EQ(gateway.pass(fragment(0x2000)), "10.0.0.1:4000 > 192.0.2.7:53");
  EXPECT_NE(gateway.pass(fragment(2)), "denied");
  EXPECT_EQ(gateway.counters().untracked, 4U) << "a later fragment follows the first";
}

TEST(TranslatingFirewall, TheTableRawOfIptablesLeavesPacketsUntracked) {
  Gateway gateway(
      "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 53 -j CT --notrack\n"
      "-A PREROUTING -p udp -m udp --dport 54 -j NOTRACK\nCOMMIT\n"
      "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n"
      "*mangle\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
      "-A PREROUTING -m conntrack --ctstate UNTRACKED -p udp --sport 9 -j DROP\nCOMMIT\n");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 53)), "10.0.0.1:4000 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 54)), "10.0.0.1:4000 > 192.0.2.7:54");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 9, "192.0.2.7", 54)), "denied");
  EXPECT_EQ(gateway.counters().connections, 0U);
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 4000, "192.0.2.7", 55)), "203.0.113.5:4000 > 192.0.2.7:55");
}

TEST(TranslatingFirewall, RulesAndPoliciesOfNatThatDropAreObeyed) {
  Table table;
  table.chain("pre", "nat", "prerouting", -100).rule(match("udp", "dport", "70") + R"(, {"drop": null})");
  table.chain("post", "nat", "postrouting", 100, "drop")
      .rule(match("udp", "dport", "53") + ", " + kMasquerade)
      .rule(match("udp", "dport", "54") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.1"}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 1, "192.0.2.7", 70)), "denied");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 1, "192.0.2.7", 71)), "denied") << "by the policy";
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 1, "192.0.2.7", 53)), "203.0.113.5:1 > 192.0.2.7:53");
  EXPECT_EQ(gateway.pass(udp("10.0.0.1", 1, "192.0.2.7", 54)), "untranslated") << "a destination, after the route";
  EXPECT_EQ(gateway.counters().connections, 1U);
}

TEST(TranslatingFirewall, FiltersBeforeConnectionsAreKnownMustNotTestThem) {
  Table table;
  table.chain("raw", "filter", "prerouting", -300)
      .rule(match("udp", "dport", "82") + R"(, {"drop": null})")
      .rule(R"({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "established"}}, {"drop": null})");
  ReadOptions options;
  options.hook = Hook::prerouting;
  const auto read = read_rules(table.text(), "rules", options);
  EXPECT_THAT(to_string(read->unsupported), HasSubstr("connections are not known before priority -200"));
  EXPECT_EQ(read->unsupported.size(), 1U);
  EXPECT_EQ(decide(read->value, tuple("10.0.0.1 192.0.2.7 udp 1 82")), "0 drop");
}

TEST(TranslatingFirewall, AReloadNoticesWhatOnlyNatSees) {
  const auto with = [](const char* element, const char* address) {
    Table table;
    table.chain("post", "nat", "postrouting", 100)
        .rule(match("ip", "saddr", fmt::format(R"({{"set": ["{}"]}})", element)) + ", " + kMasquerade);
    ReadOptions options;
    options.interfaces.ports = {"lan", "wan"};
    options.hook = Hook::postrouting;
    Firewall::Setup setup;
    classify::Ruleset filters = rules_of(table.text(), options);
    options.translates = true;
    NatRules nat{Hook::postrouting, rules_of(table.text(), options), {{}, {*parse_ipv4(address), {}}}};
    for (classify::Rule& rule : nat.rules.rules) rule.text = "masquerade @set";  // as of a named one
    for (classify::Rule& rule : filters.rules) rule.text = "masquerade @set";
    setup.nat = std::move(nat);
    return std::move(Firewall::build(std::move(filters), classify::Engine::bitvector, std::move(setup)).value());
  };
  const auto before = with("10.0.0.1", "203.0.113.5");
  EXPECT_EQ(with("10.0.0.1", "203.0.113.5")->changes_from(*before).value(), "");
  EXPECT_NE(with("10.0.0.2", "203.0.113.5")->changes_from(*before).value(), "");
  EXPECT_NE(with("10.0.0.1", "203.0.113.6")->changes_from(*before).value(), "");
}

TEST(TranslatingFirewall, MissingFiltersAtAHookPassAllUnlessTheFileHasNoChains) {
  Table table;
  const std::string no_chains = table.text();
  table.chain("post", "nat", "postrouting", 100).rule(kMasquerade);
  for (const Hook hook : {Hook::prerouting, Hook::forward, Hook::postrouting}) {
    ReadOptions options;
    options.hook = hook;
    for (const std::string& text :
         {table.text(), std::string("*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j ACCEPT\nCOMMIT\n"),
          std::string("*mangle\n:INPUT DROP [0:0]\nCOMMIT\n")}) {
      const auto read = read_rules(text, "rules", options);
      ASSERT_TRUE(read.has_value()) << name_of(hook) << to_string(read.error());
      EXPECT_EQ(read->value.ipv4_policy, classify::Target::accept);
      EXPECT_EQ(read->value.ipv6_policy, classify::Target::accept);
      EXPECT_TRUE(read->value.entries.empty());
    }
    const auto empty = read_rules(no_chains, "rules", options);
    EXPECT_EQ(empty.has_value(), hook != Hook::forward) << name_of(hook);
    if (!empty) {
      EXPECT_THAT(to_string(empty.error()), HasSubstr("no chain that filters forwarded packets"));
    }
  }
  ReadOptions without_hook;
  EXPECT_THAT(to_string(read_rules(table.text(), "rules", without_hook).error()),
              HasSubstr("no chain that filters forwarded packets"));
  table.chain("in", "filter", "ingress", 0, "drop");
  ReadOptions options;
  options.hook = Hook::prerouting;
  EXPECT_THAT(to_string(read_rules(table.text(), "rules", options)->unsupported), HasSubstr("at hook ingress"));
}

TEST(TranslatingFirewall, SpreadsConnectionsOverServers) {
  Table table;
  table.chain("pre", "nat", "prerouting", -100)
      .rule(match("udp", "dport", "80") +
            R"(, {"dnat": {"family": "ip", "addr": {"map": {"key": {"numgen": {"mode": "inc", "mod": 2, "offset": 0}},
             "data": {"set": [[0, "10.0.0.5"], [1, "10.0.0.6"]]}}}, "port": 8080}})");
  Gateway gateway(table.text());
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 80), false), "192.0.2.7:1 > 10.0.0.5:8080");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 2, "203.0.113.5", 80), false), "192.0.2.7:2 > 10.0.0.6:8080");
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 1, "203.0.113.5", 80), false), "192.0.2.7:1 > 10.0.0.5:8080") << "as before";
  EXPECT_EQ(gateway.pass(udp("192.0.2.7", 3, "203.0.113.5", 80), false), "192.0.2.7:3 > 10.0.0.5:8080");
}

TEST(TranslatingFirewall, ReportsTranslationsThatItDoesNotKnow) {
  for (const auto& [statement, message] : std::vector<std::pair<std::string, std::string>>{
           {R"({"dnat": {"addr": {"map": {"key": {"jhash": {"mod": 2, "expr": 1}}, "data":
               {"set": [[0, "10.0.0.1"]]}}}}})",
            "an expression of this form is not supported"},
           {R"({"dnat": {"addr": {"range": ["10.0.0.9", "10.0.0.1"]}}})", "this address is not supported"},
           {R"({"dnat": {"addr": "10.0.0.1", "port": 70000}})", "this port is not supported"},
           {R"({"snat": {"addr": "10.0.0.1", "flags": "sticky"}})", "this flag is not supported"},
           {R"({"snat": null})", "a translation to nothing"},
           {R"({"snat": {"addr": "10.0.0.1", "timeout": 1}})", "this part of a translation is not supported"}}) {
    Table table;
    table.chain("pre", "nat", "prerouting", -100).rule(statement);
    ReadOptions options;
    options.hook = Hook::prerouting;
    options.translates = true;
    const auto read = read_rules(table.text(), "rules", options);
    ASSERT_TRUE(read) << statement;
    EXPECT_THAT(to_string(read->unsupported), HasSubstr(message)) << statement;
  }
}

/// A gateway that is a host too: ports lan (0), wan (1) and host (2), with firewalls at all hooks and a router that
/// knows 203.0.113.5 as the host's.
class HostGateway {
 public:
  explicit HostGateway(const std::string& rules) : connections_(conntrack::Options(), 64) {
    for (const Hook hook : kOrder) {
      ReadOptions options;
      options.interfaces.ports = {"lan", "wan", "host"};
      options.interfaces.out_known = hook != Hook::prerouting && hook != Hook::output;
      options.hook = hook;
      options.host_has_port = true;
      Firewall::Setup setup;
      setup.hook = hook;
      setup.host = kHost;
      setup.tracks_in_any_case = true;
      classify::Ruleset filters = rules_of(rules, options);
      options.translates = true;
      const std::vector<function::PortAddresses> addresses{{}, {*parse_ipv4("203.0.113.5"), {}}, {}};
      if (hook != Hook::forward) setup.nat = NatRules{hook, rules_of(rules, options), addresses};
      auto made = Firewall::build(std::move(filters), classify::Engine::bitvector, std::move(setup));
      EXPECT_TRUE(made) << to_string(made.error());
      firewalls_.push_back(std::move(*made));
      EXPECT_EQ(firewalls_.back()->traits().access_on(function::Processor::gpu), nullptr);
      stages_.push_back(firewalls_.back()->make_cpu_stage());
      stages_.back()->set_connections(connections_);
    }
  }

  static constexpr PortIndex kLan = 0, kWan = 1, kHost = 2;

  /// "PORT: SOURCE > DESTINATION", or the reason of the drop and the hook.
  std::string pass(Bytes frame, PortIndex from) {
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.timestamp_ns = 1'700'000'000'000'000'000;
    descriptor.sequence = sequence_++;
    descriptor.in_port = from;
    PacketView view{frame.data(), &descriptor};
    parse(view);
    std::string text;
    for (std::size_t i = 0; i < stages_.size() && text.empty(); ++i) {
      if (kOrder[i] == Hook::forward) descriptor.verdict = Verdict::forward(route(view));
      stages_[i]->process({&view, 1});
      if (!descriptor.verdict.alive())
        text = fmt::format("{} at {}", kDropReasons[descriptor.verdict.value], name_of(kOrder[i]));
    }
    connections_.settle();
    if (!text.empty()) return text;
    return fmt::format("{}: {}:{} > {}:{}", descriptor.verdict.value,
                       to_string(Ipv4Address{view.ipv4().source.value()}), view.udp().source_port.value(),
                       to_string(Ipv4Address{view.ipv4().destination.value()}), view.udp().destination_port.value());
  }

 private:
  static constexpr std::array kOrder{Hook::prerouting, Hook::output, Hook::forward, Hook::input, Hook::postrouting};

  static PortIndex route(PacketView view) {
    const Ipv4Address to{view.ipv4().destination.value()};
    if (to == *parse_ipv4("203.0.113.5")) return kHost;
    return to.bits >> 24 == 10 ? kLan : kWan;
  }

  conntrack::Connections connections_;
  std::vector<std::unique_ptr<Firewall>> firewalls_;
  std::vector<std::unique_ptr<function::CpuStage>> stages_;
  std::uint32_t sequence_ = 0;
};

/// Of a gateway with one public address, which is also the host's.
std::string rules_of_host_gateway() {
  const std::string by_wan = R"({"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "wan"}}, )";
  const std::string known =
      R"({"match": {"op": "==", "left": {"ct": {"key": "state"}}, "right": "established"}}, {"accept": null})";
  return Table()
      .chain("pre", "nat", "prerouting", -100)
      .rule(match("udp", "dport", "8080") + R"(, {"dnat": {"family": "ip", "addr": "10.0.0.8", "port": 80}})")
      .chain("mine", "filter", "input", 0, "drop")
      .rule(known)
      .rule(match("udp", "dport", "22") + R"(, {"accept": null})")
      .chain("own_nat", "nat", "output", -100)
      .rule(match("ip", "daddr", R"("192.0.2.9")") + R"(, {"dnat": {"family": "ip", "addr": "192.0.2.1", "port": 53}})")
      .chain("own", "filter", "output", 0)
      .rule(match("udp", "dport", "25") + R"(, {"drop": null})")
      .rule(match("ip", "daddr", R"("192.0.2.9")") + R"(, {"drop": null})")
      .chain("through", "filter", "forward", 0, "drop")
      .rule(known)
      .rule(R"({"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lan"}}, {"accept": null})")
      .rule(match("udp", "dport", "80") + R"(, {"accept": null})")
      .chain("post", "nat", "postrouting", 100)
      .rule(by_wan + kMasquerade)
      .text();
}

TEST(HostGateway, SharesItsAddressWithTheHomeBehindIt) {
  HostGateway gateway(rules_of_host_gateway());
  constexpr PortIndex kLan = HostGateway::kLan, kWan = HostGateway::kWan, kHost = HostGateway::kHost;
  EXPECT_EQ(gateway.pass(udp("10.0.0.7", 4000, "192.0.2.1", 53), kLan), "1: 203.0.113.5:4000 > 192.0.2.1:53");
  EXPECT_EQ(gateway.pass(udp("192.0.2.1", 53, "203.0.113.5", 4000), kWan), "0: 192.0.2.1:53 > 10.0.0.7:4000");
  EXPECT_EQ(gateway.pass(udp("192.0.2.1", 53, "203.0.113.5", 4001), kWan), "denied at input");
  EXPECT_EQ(gateway.pass(udp("192.0.2.1", 999, "203.0.113.5", 22), kWan), "2: 192.0.2.1:999 > 203.0.113.5:22");
  EXPECT_EQ(gateway.pass(udp("203.0.113.5", 22, "192.0.2.1", 999), kHost), "1: 203.0.113.5:22 > 192.0.2.1:999");
  EXPECT_EQ(gateway.pass(udp("192.0.2.1", 999, "203.0.113.5", 8080), kWan), "0: 192.0.2.1:999 > 10.0.0.8:80");
  EXPECT_EQ(gateway.pass(udp("10.0.0.8", 80, "192.0.2.1", 999), kLan), "1: 203.0.113.5:8080 > 192.0.2.1:999");
}

TEST(HostGateway, TakesAnotherPortForAHostsConnectionThatTheHomeHasTaken) {
  HostGateway gateway(rules_of_host_gateway());
  constexpr PortIndex kLan = HostGateway::kLan, kWan = HostGateway::kWan, kHost = HostGateway::kHost;
  EXPECT_EQ(gateway.pass(udp("10.0.0.7", 4000, "192.0.2.1", 53), kLan), "1: 203.0.113.5:4000 > 192.0.2.1:53");
  const std::string out = gateway.pass(udp("203.0.113.5", 4000, "192.0.2.1", 53), kHost);
  std::uint16_t port = 0;
  ASSERT_EQ(std::sscanf(out.c_str(), "1: 203.0.113.5:%hu > 192.0.2.1:53", &port), 1) << out;
  EXPECT_NE(port, 4000);
  EXPECT_EQ(gateway.pass(udp("192.0.2.1", 53, "203.0.113.5", port), kWan), "2: 192.0.2.1:53 > 203.0.113.5:4000");
}

TEST(HostGateway, FiltersWhatTheHostSendsAfterItsTranslation) {
  HostGateway gateway(rules_of_host_gateway());
  constexpr PortIndex kWan = HostGateway::kWan, kHost = HostGateway::kHost;
  EXPECT_EQ(gateway.pass(udp("203.0.113.5", 500, "192.0.2.1", 25), kHost), "denied at output");
  EXPECT_EQ(gateway.pass(udp("203.0.113.5", 500, "192.0.2.1", 25), kHost), "denied at output")
      << "it has no connection";
  EXPECT_EQ(gateway.pass(udp("203.0.113.5", 501, "192.0.2.9", 5555), kHost), "1: 203.0.113.5:501 > 192.0.2.1:53");
  EXPECT_EQ(gateway.pass(udp("192.0.2.1", 53, "203.0.113.5", 501), kWan), "2: 192.0.2.9:5555 > 203.0.113.5:501");
}

}  // namespace
}  // namespace penstock::firewall
