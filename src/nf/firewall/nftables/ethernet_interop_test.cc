// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sends frames through this kernel, as a router and as a bridge, with rules of nftables that test link headers, and
// compares what leaves with what our firewall lets through.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "function/arrivals.h"
#include "function/emitter.h"
#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/ethernet_kernel_for_test.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

constexpr MacAddress kHost{{2, 0, 0, 0, 0, 1}}, kOtherHost{{2, 0, 0, 0, 0, 2}};
constexpr MacAddress kWritten{{2, 0, 0, 0, 0, 0xaa}};

Frame framed(testing::PacketBuilder builder, const MacAddress& source, const MacAddress& destination) {
  Frame frame = builder.payload("0123456789abcdef0123").bytes();  // the end is overwritten
  auto& header = *reinterpret_cast<EthernetHeader*>(frame.data());
  header.source = source;
  header.destination = destination;
  return frame;
}

std::string hex(const Frame& frame) {
  std::string text;
  for (const std::uint8_t byte : frame) text += fmt::format("{:02x}", byte);
  return text;
}

ReadOptions options_at(Hook hook) {
  ReadOptions options;
  options.interfaces.ports.assign(EthernetKernel::kInterfaces.begin(), EthernetKernel::kInterfaces.end());
  options.hook = hook;
  return options;
}

class RoutingKernel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { kernel = EthernetKernel::start(EthernetKernel::Way::route, why); }
  static void TearDownTestSuite() { kernel.reset(); }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static inline std::unique_ptr<EthernetKernel> kernel;
  static inline std::string why;
};

/// Whether our firewall passes a frame that arrived, and of which a router has written the link header since.
bool passes(function::testing::AttachedStage& stage, Frame frame, bool is_written, PortIndex out) {
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  PacketView view{frame.data(), &descriptor};
  parse(view);
  function::Arrivals arrivals(1);
  arrivals.add({&view, 1});
  function::Emitter emitter;
  emitter.know_arrivals(&arrivals);
  stage->set_emitter(emitter);
  if (is_written) view.ethernet().source = view.ethernet().destination = kWritten;
  descriptor.verdict = Verdict::forward(out);
  stage.process({&view, 1});
  return descriptor.verdict.alive();
}

TEST_F(RoutingKernel, TestsTheLinkHeadersOfArrivalAsOurFirewallDoes) {
  std::vector<Frame> frames;
  for (const MacAddress& source : {kHost, kOtherHost}) {
    for (const char* destination : {"10.1.2.3", "10.3.2.1"}) {
      frames.push_back(
          framed(testing::packet().eth().ipv4("10.9.0.1", destination).udp(1, 53), source, EthernetKernel::kOwn));
      frames.push_back(
          framed(testing::packet().eth().ipv4("10.9.0.1", destination).tcp(1, 80, 2), source, EthernetKernel::kOwn));
    }
    frames.push_back(
        framed(testing::packet().eth().ipv6("2001:db8::9", "2001:db8::1").udp(1, 53), source, EthernetKernel::kOwn));
    frames.push_back(
        framed(testing::packet().eth().ipv6("2001:db8::9", "2001:db9::1").udp(1, 53), source, EthernetKernel::kOwn));
  }
  std::string answer;
  ASSERT_TRUE(EthernetKernel::load("", answer)) << answer;
  const std::vector<unsigned> ways = kernel->pass(frames);
  const std::string own = "02:00:00:00:00:10", host = "02:00:00:00:00:01";
  const std::vector<std::string> rules = {
      "ether saddr " + host + " accept",
      "ether saddr != " + host + " accept",
      "ether saddr { " + host + ", 02:00:00:00:00:aa } accept",
      "ether saddr 02:00:00:00:00:aa accept\nether saddr 02:00:00:00:00:02 udp dport 53 accept",
      "ether daddr " + own + " tcp dport 80 accept",
      "ether daddr != " + own + " accept\nip daddr 10.3.0.0/16 accept",
      "meta pkttype host udp dport 53 accept",
      "meta pkttype unicast ip6 daddr 2001:db9::/32 accept",
      "meta pkttype != { broadcast, multicast } ether saddr " + host + " accept",
      "meta pkttype multicast accept\ntcp dport 80 accept",
      "ether saddr @known accept",
      "ether saddr != @known accept",
      "ether saddr " + host + " meta mark set 7\nmeta mark 7 accept",
  };
  for (const Hook hook : {Hook::prerouting, Hook::forward, Hook::postrouting}) {
    for (const std::string& rule : rules) {
      const std::string table = fmt::format(
          "table inet t {{\nset known {{ type ether_addr; elements = {{ {} }}; }}\nchain c {{\ntype filter hook {} "
          "priority 0; policy drop;\n{}\n}}\n}}\n",
          host, name_of(hook), rule);
      ASSERT_TRUE(EthernetKernel::load(table, answer)) << answer << table;
      const std::vector<unsigned> left = kernel->pass(frames);
      const bool is_written = hook != Hook::prerouting;
      auto made = Firewall::build(rules_of(EthernetKernel::rules(), options_at(hook)), classify::Engine::bitvector,
                                  {.hook = hook, .link_is_written = is_written});
      ASSERT_TRUE(made) << to_string(made.error());
      function::testing::AttachedStage stage(**made);
      unsigned passed = 0;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        ASSERT_NE(ways[i], 0U) << "without rules, all must pass: " << hex(frames[i]);
        passed += left[i] != 0 ? 1 : 0;
        EXPECT_EQ(passes(stage, frames[i], is_written, ways[i] == 2 ? 1 : 2), left[i] != 0) << hex(frames[i]) << "\n"
                                                                                            << table;
      }
      EXPECT_GT(passed, 0U) << table;
      EXPECT_LT(passed, frames.size()) << table;
    }
  }
}

class BridgingKernel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { kernel = EthernetKernel::start(EthernetKernel::Way::bridge, why); }
  static void TearDownTestSuite() { kernel.reset(); }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static ReadOptions options(Hook hook) {
    ReadOptions options = options_at(hook);
    options.bridges = true;
    return options;
  }

  static inline std::unique_ptr<EthernetKernel> kernel;
  static inline std::string why;
};

/// As it leaves by d1.
bool bridges(function::testing::AttachedStage& stage, Frame frame) {
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  PacketView view{frame.data(), &descriptor};
  parse(view);
  descriptor.verdict = Verdict::forward();
  stage.process({&view, 1});
  return descriptor.verdict.alive();
}

Frame tagged(const Frame& frame, std::uint16_t tci, std::uint16_t type = ether_type::kVlan) {
  Frame with = frame;
  const std::array<std::uint8_t, 4> tag{static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type),
                                        static_cast<std::uint8_t>(tci >> 8), static_cast<std::uint8_t>(tci)};
  with.insert(with.begin() + 12, tag.begin(), tag.end());
  return with;
}

Frame arp(std::uint16_t operation, const MacAddress& source, const MacAddress& destination, std::uint32_t sender,
          std::uint32_t target) {
  Frame frame(60);
  auto& header = *reinterpret_cast<EthernetHeader*>(frame.data());
  header.source = source;
  header.destination = destination;
  header.type.set(ether_type::kArp);
  auto& body = *reinterpret_cast<ArpHeader*>(frame.data() + sizeof(EthernetHeader));
  body.hardware_type.set(1);
  body.protocol_type.set(ether_type::kIpv4);
  body.hardware_length = 6;
  body.protocol_length = 4;
  body.operation.set(operation);
  body.sender_mac = source;
  body.sender_ip.set(sender);
  body.target_mac = operation == 1 ? MacAddress{} : destination;
  body.target_ip.set(target);
  return frame;
}

Frame of_type(std::uint16_t type, const MacAddress& source, const MacAddress& destination) {
  Frame frame(64, 0x42);
  auto& header = *reinterpret_cast<EthernetHeader*>(frame.data());
  header.source = source;
  header.destination = destination;
  header.type.set(type);
  return frame;
}

std::vector<Frame> bridged_frames() {
  using testing::packet;
  constexpr MacAddress kAll{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, kGroup{{0x33, 0x33, 0, 0, 0, 1}};
  constexpr std::uint16_t kLoopbackTest = 0x9000, kLldp = 0x88cc, kLength = 40;
  std::vector<Frame> frames;
  for (const MacAddress& source : {kHost, kOtherHost}) {
    for (const MacAddress& destination : {EthernetKernel::kNeighbour, kAll, kGroup}) {
      const auto add = [&](const testing::PacketBuilder& builder) {
        const Frame frame = framed(builder, source, destination);
        frames.push_back(frame);
        frames.push_back(tagged(frame, 5));
        frames.push_back(tagged(frame, 0x6007));
        frames.push_back(tagged(tagged(frame, 9), 5));
        frames.push_back(tagged(tagged(frame, 9), 5, ether_type::kQinQ));
      };
      add(packet().eth().ipv4("10.1.2.3", "10.1.2.4").udp(1, 53));
      add(packet().eth().ipv4("10.1.2.4", "10.1.2.3").tcp(80, 1, 0x12));
      add(packet().eth().ipv4("10.1.2.3", "10.1.2.4").tcp(1, 80, 2));
      add(packet().eth().ipv4("10.1.2.3", "10.1.2.4").icmp(8, 0));
      add(packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(1, 53));
      add(packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(1, 80, 2));
      add(packet().eth().ipv6("fe80::1", "2001:db8::2").icmp(135, 0));
      for (const std::uint16_t operation : {std::uint16_t{1}, std::uint16_t{2}}) {
        const Frame one = arp(operation, source, destination, 0x0a010203, 0x0a010204);
        const Frame other = arp(operation, source, destination, 0x0a010204, 0x0a010203);
        frames.insert(frames.end(), {one, other, tagged(one, 5), tagged(other, 7)});
      }
      for (const std::uint16_t type : {kLoopbackTest, kLldp, kLength}) {
        frames.push_back(of_type(type, source, destination));
        frames.push_back(tagged(of_type(type, source, destination), 5));
      }
    }
  }
  return frames;
}

/// Rules of a chain whose policy is drop. They must accept some frames and not all.
struct BridgeConstruct {
  const char* name;
  const char* rules;
};
constexpr auto kBridgeConstructs = std::to_array<BridgeConstruct>({
    {"ether_saddr", "ether saddr 02:00:00:00:00:01 accept"},
    {"ether_saddr_not", "ether saddr != 02:00:00:00:00:01 accept"},
    {"ether_daddr", "ether daddr { 02:00:00:00:01:01, 33:33:00:00:00:01 } accept"},
    {"ether_named_set", "ether saddr @known accept"},
    {"ether_type_arp", "ether type arp accept"},
    {"ether_type_ip", "ether type ip accept"},
    {"ether_type_not", "ether type != { ip, ip6 } accept"},
    {"ether_type_vlan", "ether type vlan accept"},
    {"ether_type_8021ad", "ether type 8021ad accept"},
    {"ether_type_number", "ether type 0x88cc accept; ether type 0x9000 accept"},
    {"ether_type_map", "ether type vmap { arp : accept, ip6 : accept, vlan : jump one }"},
    {"meta_protocol", "meta protocol arp accept; meta protocol ip6 udp dport 53 accept"},
    {"meta_protocol_not", "meta protocol != ip accept"},
    {"meta_protocol_vlan", "meta protocol vlan accept"},
    {"meta_protocol_length", "meta protocol 4 accept"},
    {"vlan_id", "vlan id 5 accept"},
    {"vlan_id_range", "vlan id 6-9 accept"},
    {"vlan_id_not", "vlan id != 5 accept"},
    {"vlan_id_map", "vlan id vmap { 5 : accept, 7 : jump one }"},
    {"vlan_pcp", "vlan pcp 3 accept"},
    {"vlan_and_ip", "vlan id 5 ip saddr 10.1.2.3 accept; vlan id 7 ip6 saddr 2001:db8::1 accept"},
    {"vlan_type", "vlan type arp accept"},
    {"arp_operation", "arp operation request accept"},
    {"arp_in_vlan", "vlan id 5 arp operation request accept"},
    {"arp_in_any_vlan", "ether type 8021q arp operation reply accept"},
    {"icmp_in_vlan", "vlan id 5 icmp type echo-request accept"},
    {"icmp_after_ip", "ip saddr 10.1.2.3 icmp type echo-request accept"},
    {"icmp_map", "icmp type vmap { echo-request : accept, echo-reply : drop }"},
    {"icmpv6_set", "icmpv6 type { nd-neighbor-solicit, echo-request } accept"},
    {"type_and_port", "ether type ip tcp dport 80 accept"},
    {"ports_in_vlan", "vlan id 7 udp dport 53 accept"},
    {"arp_operation_not", "arp operation != request accept"},
    {"arp_operations", "arp operation { reply, rreply } accept"},
    {"arp_saddr_ip", "arp saddr ip 10.1.2.3 accept"},
    {"arp_daddr_ip", "arp daddr ip 10.1.2.0/30 accept"},
    {"arp_saddr_ether", "arp saddr ether 02:00:00:00:00:01 accept"},
    {"arp_daddr_ether", "arp daddr ether 00:00:00:00:00:00 accept"},
    {"arp_types", "arp htype 1 arp ptype ip arp hlen 6 arp plen 4 accept"},
    {"ip_saddr", "ip saddr 10.1.2.3 accept"},
    {"ip_saddr_not", "ip saddr != 10.1.2.3 accept"},
    {"ip6_saddr", "ip6 saddr 2001:db8::/32 accept"},
    {"ip_protocol", "ip protocol udp accept"},
    {"l4proto", "meta l4proto tcp accept"},
    {"l4proto_not", "meta l4proto != tcp accept"},
    {"l4proto_all", "meta l4proto >= 0 accept"},
    {"ports", "tcp dport 80 accept; udp dport != 53 accept"},
    {"port_not", "tcp dport != 80 accept"},
    {"th", "meta l4proto { tcp, udp } th dport { 53, 80 } accept"},
    {"icmp", "icmp type echo-request accept; icmpv6 type nd-neighbor-solicit accept"},
    {"tcp_flags", "tcp flags & (syn | ack) == syn accept"},
    {"pair", "ip saddr . tcp dport { 10.1.2.3 . 80, 10.1.2.4 . 1 } accept"},
    {"map", "ip saddr vmap { 10.1.2.3 : accept, 10.1.2.4 : jump one }"},
    {"iifname", "iifname \"d0\" ether type arp accept"},
    {"oifname", "oifname \"d1\" ether type arp accept; oifname \"d2\" accept"},
    {"iifname_other", "iifname \"d1\" accept; ether type ip6 accept"},
    {"pkttype", "meta pkttype broadcast accept"},
    {"pkttype_not", "meta pkttype != multicast accept"},
    {"length", "meta length 46-60 accept"},
    {"mark", "ether saddr 02:00:00:00:00:01 meta mark set 7; meta mark 7 accept"},
    {"limit", "ether type arp limit rate 1/day burst 3 packets accept"},
    {"limit_of_all", "limit rate over 1/day burst 9 packets drop; accept"},
    {"quota", "ether type arp quota until 200 bytes accept"},
    {"chains", "ether type arp jump one; ether type ip goto two; accept"},
    {"ttl", "ip ttl 64 accept; ip6 hoplimit 64 udp dport 53 accept"},
    {"dscp", "ip dscp cs0 udp dport 53 accept"},
});

class BridgeConstructOnKernel : public BridgingKernel, public ::testing::WithParamInterface<BridgeConstruct> {};

TEST_P(BridgeConstructOnKernel, DecidesAsOurFirewallDoes) {
  static const std::vector<Frame> kFrames = bridged_frames();
  std::string answer;
  ASSERT_TRUE(EthernetKernel::load("", answer)) << answer;
  static const std::vector<unsigned> kWays = kernel->pass(kFrames);
  std::string rules = GetParam().rules;
  for (std::size_t at = 0; (at = rules.find("; ", at)) != std::string::npos;) rules.replace(at, 2, "\n");
  for (const Hook hook : {Hook::prerouting, Hook::forward, Hook::postrouting}) {
    const std::string table = fmt::format(
        "table bridge t {{\nset known {{ type ether_addr; elements = {{ 02:00:00:00:00:02 }}; }}\nchain one {{\narp "
        "operation reply accept\ntcp dport 80 accept\n}}\nchain two {{\nudp dport 53 accept\n}}\nchain c {{\ntype "
        "filter hook {} priority 0; policy drop;\n{}\n}}\n}}\n",
        name_of(hook), rules);
    if (!EthernetKernel::load(table, answer)) GTEST_SKIP() << "this kernel or nft refuses the rules: " << answer;
    const std::string listed = EthernetKernel::rules();  // before quotas are used
    const std::vector<unsigned> left = kernel->pass(kFrames);
    // Unsupported, since no rule matches there.
    if (hook == Hook::postrouting && rules.find("iifname") != std::string::npos) continue;
    if (hook == Hook::prerouting && rules.find("oifname") != std::string::npos) continue;
    auto made = Firewall::build(rules_of(listed, options(hook)), classify::Engine::linear,
                                {.hook = hook, .bridge = Bridge{{1, 0, 0}}});
    ASSERT_TRUE(made) << to_string(made.error());
    function::testing::AttachedStage stage(**made);
    std::size_t passed = 0, differences = 0;
    for (std::size_t i = 0; i < kFrames.size(); ++i) {
      ASSERT_NE(kWays[i] & 2, 0U) << "without rules, all must pass: " << hex(kFrames[i]);
      const bool expected = (left[i] & 2) != 0;
      passed += expected ? 1 : 0;
      if (bridges(stage, kFrames[i]) == expected || ++differences > 5) continue;
      ADD_FAILURE() << "the kernel " << (expected ? "forwards " : "drops ") << hex(kFrames[i]) << "\n" << table;
    }
    EXPECT_GT(passed, 0U) << table;
    EXPECT_LT(passed, kFrames.size()) << table;
  }
}

INSTANTIATE_TEST_SUITE_P(Nftables, BridgeConstructOnKernel, ::testing::ValuesIn(kBridgeConstructs),
                         [](const auto& construct) { return std::string(construct.param.name); });

}  // namespace
}  // namespace penstock::firewall::nftables
