// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares translations by maps with the kernel's: loads rules with nft into a network namespace, reads them back as
// JSON, and sends packets through them. What the kernel makes of each packet, our firewalls must make of it, too. Needs
// root and nft; skipped otherwise.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "conntrack/connections.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/kernel_for_test.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

/// Firewalls before and after the route.
class Gateway {
 public:
  explicit Gateway(const std::string& rules) : connections_(tracking(), 64) {
    for (const Hook hook : {Hook::prerouting, Hook::postrouting}) {
      ReadOptions options;
      options.interfaces.ports.assign(ForwardingKernel::kInterfaces.begin(), ForwardingKernel::kInterfaces.end());
      options.interfaces.out_known = hook == Hook::postrouting;
      options.hook = hook;
      classify::Ruleset filters = rules_of(rules, options);
      options.translates = true;
      auto made =
          Firewall::build(std::move(filters), classify::Engine::bitvector,
                          {.tracking = tracking(), .nat = NatRules{hook, rules_of(rules, options), {{}, {}, {}}}});
      EXPECT_TRUE(made) << to_string(made.error());
      firewalls_.push_back(std::move(*made));
      stages_.push_back(firewalls_.back()->make_cpu_stage());
      stages_.back()->set_connections(connections_);
    }
  }

  /// "SOURCE:PORT > DESTINATION:PORT" of what leaves; "" if it is dropped.
  std::string pass(const Packet& packet) {
    // The kernel's come from a tunnel, without a link header.
    const bool v4 = packet[0] >> 4 == 4;
    Packet frame(12);
    frame.push_back(v4 ? 0x08 : 0x86);
    frame.push_back(v4 ? 0x00 : 0xdd);
    frame.insert(frame.end(), packet.begin(), packet.end());
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.sequence = sequence_++;
    PacketView view{frame.data(), &descriptor};
    parse(view);
    for (const auto& stage : stages_) {
      if (descriptor.verdict.alive()) stage->process({&view, 1});
      if (descriptor.verdict.alive()) descriptor.verdict = Verdict::forward(exit_for(view));
    }
    connections_.settle();
    return descriptor.verdict.alive() ? text_of(frame) : "";
  }

  static std::string text_of(Packet frame) {
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    const PacketView view{frame.data(), &descriptor};
    parse(view);
    const std::string ports =
        view.has_ports() ? fmt::format(" {} > {}", view.udp().source_port.value(), view.udp().destination_port.value())
                         : "";
    if (view.layout().network == NetworkLayer::ipv4)
      return fmt::format("{} > {}{}", to_string(Ipv4Address{view.ipv4().source.value()}),
                         to_string(Ipv4Address{view.ipv4().destination.value()}), ports);
    return fmt::format("{} > {}{}", to_string(view.ipv6().source_address()),
                       to_string(view.ipv6().destination_address()), ports);
  }

 private:
  /// As the kernel routes.
  static PortIndex exit_for(PacketView view) {
    const bool v4 = view.layout().network == NetworkLayer::ipv4;
    return v4 && view.ipv4().destination.value() >> 16 == 0x0a03 ? 2 : 1;
  }
  static conntrack::Options tracking() {
    conntrack::Options options;
    options.checksum = false;  // the packets' numbers make theirs wrong
    return options;
  }

  conntrack::Connections connections_;
  std::vector<std::unique_ptr<Firewall>> firewalls_;
  std::vector<std::unique_ptr<function::CpuStage>> stages_;
  std::uint32_t sequence_ = 0;
};

constexpr const char* kMaps = R"(
  map a2a { type ipv4_addr : ipv4_addr; elements = { 10.1.2.3 : 192.168.0.1, 10.1.2.4 : 192.168.0.2 } }
  map a2i { type ipv4_addr : interval ipv4_addr; flags interval;
    elements = { 10.1.0.0/24 : 192.168.1.0/24, 10.1.2.1-10.1.2.9 : 192.168.2.1-192.168.2.9 } }
  map s2as { type inet_service : ipv4_addr . inet_service; elements = { 80 : 192.168.0.1 . 8080, 443 : 192.168.0.2 . 8443 } }
  map s2a { type inet_service : ipv4_addr; flags interval; elements = { 79-81 : 192.168.0.1, 443 : 192.168.0.2 } }
  map s2s { type inet_service : inet_service; elements = { 80 : 8080, 443 : 8443 } }
  map c2as { type ipv4_addr . inet_service : ipv4_addr . inet_service; flags interval;
    elements = { 10.1.2.3 . 80 : 192.168.0.1 . 8080, 10.2.0.0/16 . 81-443 : 192.168.0.1 . 8081 } }
  map p2as { type inet_proto . inet_service : ipv4_addr . inet_service;
    elements = { tcp . 80 : 192.168.0.1 . 8080, udp . 80 : 192.168.0.2 . 8080 } }
  map t2t { typeof ip saddr : ip daddr; elements = { 10.1.2.3 : 192.168.0.1 } }
  map e { type ipv4_addr : ipv4_addr; }
  map a6 { type ipv6_addr : ipv6_addr; elements = { 2001:db8::1 : 2001:db8:ffff::1 } }
  map a6s { type ipv6_addr : ipv6_addr . inet_service; elements = { 2001:db8::2 : 2001:db8:ffff::2 . 8080 } }
)";

struct Construct {
  const char* name;
  const char* rules;  // separated by "; "
  const char* hook = "prerouting";
};
void PrintTo(const Construct& construct, std::ostream* out) { *out << construct.name; }

const std::vector<Construct> kConstructs{
    {"anonymous", "dnat ip to ip saddr map { 10.1.2.3 : 192.168.0.1, 10.1.2.4 : 192.168.0.2 }"},
    {"wildcard", "dnat ip to ip saddr map { 10.1.2.3 : 192.168.0.1, * : 192.168.0.2 }"},
    {"named", "dnat ip to ip saddr map @a2a; dnat ip to 192.168.0.9"},
    {"type_of", "dnat ip to ip saddr map @t2t persistent"},
    {"empty", "dnat ip to ip saddr map @e; udp dport 80 dnat ip to 192.168.0.9"},
    {"by_port", "dnat ip to tcp dport map @s2a; dnat ip to udp dport map @s2a"},
    {"ports",
     "meta l4proto tcp dnat ip to 192.168.0.7:tcp dport map { 80 : 8080, 443 : 8443 }; "
     "meta l4proto udp dnat ip to 192.168.0.7:udp dport map @s2s"},
    {"address_and_port", "dnat ip to tcp dport map @s2as"},
    {"concatenated_key",
     "dnat ip to ip daddr . tcp dport map @c2as; dnat ip to ip daddr . udp dport map "
     "{ 10.1.2.3 . 80 : 192.168.0.3 . 8083, 10.1.2.4 . 80 : 192.168.0.4 . 8084 }"},
    {"protocol_and_port", "dnat ip to meta l4proto . th dport map @p2as"},
    {"interface", "dnat ip to iifname map { \"d0\" : 192.168.0.1, \"d1\" : 192.168.0.2 }"},
    {"address6", "dnat ip6 to ip6 saddr map @a6; meta l4proto tcp dnat ip6 to ip6 saddr map @a6s"},
    {"after_matches",
     "tcp dport 80 ip daddr 10.1.0.0/16 dnat ip to ip saddr map @a2a; ip saddr 10.1.2.3 accept; "
     "dnat ip to ip saddr map @a2i"},
    {"prefix", "snat ip prefix to ip saddr map { 10.1.2.0/24 : 192.168.2.0/24, 10.2.0.0/16 : 192.168.3.0/24 }",
     "postrouting"},
    {"named_prefix", "snat ip prefix to ip saddr map @a2i", "postrouting"},
    {"ranges", "snat ip to ip saddr map { 10.1.2.0/24 : 192.168.2.0/24, 10.2.0.0/16 : 192.168.3.5-192.168.3.9 }",
     "postrouting"},
    {"named_ranges", "snat ip to ip saddr map @a2i", "postrouting"},
    {"source_and_port", "snat ip to ip saddr . tcp dport map { 10.1.2.3 . 80 : 192.168.2.2 . 4000-65000 }",
     "postrouting"},
    {"by_output", "snat ip to oifname map { \"d1\" : 192.168.0.1, \"d2\" : 192.168.0.2 }", "postrouting"},
};

class NatOnKernel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!kernel) kernel = ForwardingKernel::start(why);
    if (kernel && !ForwardingKernel::trust_checksums()) kernel.reset(), why = "this kernel does not track connections";
  }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static Packet with_link(const Packet& packet) {
    Packet frame(12);
    const bool v4 = packet[0] >> 4 == 4;
    frame.push_back(v4 ? 0x08 : 0x86);
    frame.push_back(v4 ? 0x00 : 0xdd);
    frame.insert(frame.end(), packet.begin(), packet.end());
    return frame;
  }

  /// Each begins a connection of its own.
  static Packet draw() {
    static std::mt19937 random(3);
    static std::uint16_t own = 10'000;
    const auto one_of = [&](const auto& values) { return values[random() % values.size()]; };
    static const std::vector<const char*> kFour{"10.1.2.3", "10.1.2.4", "10.1.0.9", "10.2.0.1", "10.3.0.1"};
    static const std::vector<const char*> kSix{"2001:db8::1", "2001:db8::2", "2001:db8:1::1"};
    static const std::vector<std::uint16_t> kPorts{79, 80, 81, 443, 1000};
    testing::PacketBuilder packet;
    if (random() % 4 == 0) {
      packet.ipv6(one_of(kSix), "2001:db8:2::1");
    } else {
      packet.ipv4(one_of(kFour), one_of(kFour));
    }
    if (random() % 2 == 0) {
      packet.tcp(++own, one_of(kPorts), TcpHeader::kSyn);
    } else {
      packet.udp(++own, one_of(kPorts));
    }
    return packet.payload("01234567").bytes();
  }

  inline static std::unique_ptr<ForwardingKernel> kernel;
  inline static std::string why;
};

class NatMapOnKernel : public NatOnKernel, public ::testing::WithParamInterface<Construct> {};

TEST_P(NatMapOnKernel, TranslatesAsOurFirewallsDo) {
  const Construct& construct = GetParam();
  std::string rules = construct.rules;
  for (std::size_t at = 0; (at = rules.find("; ", at)) != std::string::npos;) rules.replace(at, 2, "\n");
  const std::string table = fmt::format("table inet t {{\n{}\nchain c {{\ntype nat hook {} priority {}\n{}\n}}\n}}\n",
                                        kMaps, construct.hook, construct.hook[1] == 'r' ? "-100" : "100", rules);
  std::string answer;
  if (!ForwardingKernel::load(table, answer)) GTEST_SKIP() << "this kernel or nft refuses the rules: " << answer;
  Gateway ours(ForwardingKernel::rules());
  std::vector<Packet> packets;
  for (int i = 0; i < 200; ++i) packets.push_back(draw());
  const std::vector<Packet> left = kernel->translate(packets);
  std::size_t translated = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    ASSERT_FALSE(left[i].empty()) << i;
    const std::string before = Gateway::text_of(with_link(packets[i])), after = Gateway::text_of(with_link(left[i]));
    ASSERT_EQ(ours.pass(packets[i]), after) << before << '\n' << table;
    translated += before != after ? 1 : 0;
  }
  EXPECT_GT(translated, 0U);
  EXPECT_LT(translated, packets.size());
}

/// Chains of a table of family inet, beside kMaps. Some packets must leave, and not all.
struct Filters {
  const char* name;
  const char* chains;
};

constexpr auto kFilters = std::to_array<Filters>({
    {"after_destinations",
     "chain c { type nat hook prerouting priority -100; dnat ip to ip saddr map @a2a; }\n"
     "chain late { type filter hook prerouting priority 0; ip daddr 192.168.0.1 drop; ip daddr 10.1.2.3 udp dport 80 "
     "drop; ct status dnat tcp dport 443 drop; }"},
    {"before_destinations",
     "chain c { type nat hook prerouting priority -100; dnat ip to ip saddr map @a2a; }\n"
     "chain early { type filter hook prerouting priority -101; ip daddr 192.168.0.1 drop; ip daddr 10.1.2.3 udp dport "
     "80 drop; }"},
    {"where_the_priority_of_nat_says_otherwise",
     "chain c { type nat hook prerouting priority -50; dnat ip to ip saddr map @a2a; }\n"
     "chain late { type filter hook prerouting priority -60; ip daddr 192.168.0.1 drop; ip daddr 10.1.2.3 drop; }"},
    {"after_sources",
     "chain c { type nat hook postrouting priority 100; ip saddr 10.1.2.3 snat ip to 192.168.9.9; }\n"
     "chain late { type filter hook postrouting priority 150; policy drop; ip saddr 192.168.9.9 tcp dport 80 drop; "
     "ip saddr 10.1.2.3 drop; accept; }"},
    {"several",
     "chain c { type nat hook prerouting priority -100; dnat ip to ip saddr map @a2a; }\n"
     "chain one { type filter hook prerouting priority -150; tcp dport 80 accept; udp dport 80 drop; }\n"
     "chain two { type filter hook prerouting priority 0; ip daddr 192.168.0.1 tcp dport 80 drop; }\n"
     "chain three { type filter hook prerouting priority 5; policy drop; ip daddr 192.168.0.2 accept; tcp dport 80 "
     "accept; }"},
    {"notrack",
     "chain raw { type filter hook prerouting priority -300; udp dport 80 notrack; tcp dport 80 ip saddr 10.1.2.3 "
     "drop; "
     "ip saddr 10.2.0.1 notrack accept; }\n"
     "chain c { type nat hook prerouting priority -100; dnat ip to 192.168.0.9; }\n"
     "chain post { type filter hook postrouting priority 0; ct state untracked ip daddr 10.1.2.4 drop; ct state new "
     "tcp "
     "dport 443 drop; }"},
});

void PrintTo(const Filters& filters, std::ostream* out) { *out << filters.name; }

class FiltersOnKernel : public NatOnKernel, public ::testing::WithParamInterface<Filters> {};

TEST_P(FiltersOnKernel, DecideAsOurFirewallsDo) {
  std::string chains = GetParam().chains, answer;
  for (std::size_t at = 0; (at = chains.find("; ", at)) != std::string::npos;) chains.replace(at, 2, "\n");
  for (std::size_t at = 0; (at = chains.find("{ ", at)) != std::string::npos;) chains.replace(at, 2, "{\n");
  ASSERT_TRUE(ForwardingKernel::load(fmt::format("table inet t {{\n{}\n{}\n}}\n", kMaps, chains), answer)) << answer;
  Gateway ours(ForwardingKernel::rules());
  std::vector<Packet> packets;
  for (int i = 0; i < 300; ++i) packets.push_back(draw());
  const std::vector<Packet> left = kernel->translate(packets);
  std::size_t passed = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const std::string after = left[i].empty() ? "" : Gateway::text_of(with_link(left[i]));
    ASSERT_EQ(ours.pass(packets[i]), after) << Gateway::text_of(with_link(packets[i]));
    passed += left[i].empty() ? 0 : 1;
  }
  EXPECT_GT(passed, 0U);
  EXPECT_LT(passed, packets.size());
}

INSTANTIATE_TEST_SUITE_P(Nftables, FiltersOnKernel, ::testing::ValuesIn(kFilters),
                         [](const auto& filters) { return std::string(filters.param.name); });

INSTANTIATE_TEST_SUITE_P(Nftables, NatMapOnKernel, ::testing::ValuesIn(kConstructs),
                         [](const auto& construct) { return std::string(construct.param.name); });

}  // namespace
}  // namespace penstock::firewall::nftables
