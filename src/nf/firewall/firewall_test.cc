// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the network function with packets whose layout is written out here, so that the result does not depend on the
// parser.

#include "nf/firewall/firewall.h"

#include <gmock/gmock.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/ip.h"

namespace penstock::firewall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A raw IPv4 or IPv6 packet with room for a TCP header.
class Packet {
 public:
  static Packet ipv4(std::string_view source, std::string_view destination, std::uint8_t protocol) {
    Packet packet;
    Ipv4Header& ip = reinterpret_cast<Ipv4Header&>(packet.bytes_[0]);
    ip.source.set(parse_ipv4(source)->bits);
    ip.destination.set(parse_ipv4(destination)->bits);
    packet.lay_out(NetworkLayer::ipv4, sizeof(Ipv4Header), protocol);
    return packet;
  }
  static Packet ipv6(std::string_view source, std::string_view destination, std::uint8_t protocol) {
    Packet packet;
    Ipv6Header& ip = reinterpret_cast<Ipv6Header&>(packet.bytes_[0]);
    set(ip.source, *parse_ipv6(source));
    set(ip.destination, *parse_ipv6(destination));
    packet.lay_out(NetworkLayer::ipv6, sizeof(Ipv6Header), protocol);
    return packet;
  }
  static Packet arp() {
    Packet packet;
    packet.descriptor_.layout.network = NetworkLayer::arp;
    packet.descriptor_.layout.flags = PacketLayout::kNetworkHeader;
    return packet;
  }

  Packet& ports(std::uint16_t source, std::uint16_t destination) {
    view().tcp().source_port.set(source);
    view().tcp().destination_port.set(destination);
    return *this;
  }
  Packet& tcp_flags(std::uint8_t flags) { return view().tcp().flags = flags, *this; }
  Packet& icmp(std::uint8_t type, std::uint8_t code) {
    view().icmp().type = type;
    view().icmp().code = code;
    return *this;
  }
  /// IPv6: adds a fragment header between the IP header and the transport protocol.
  Packet& fragment_header() {
    descriptor_.layout.transport_offset = sizeof(Ipv6Header) + sizeof(Ipv6FragmentHeader);
    return *this;
  }
  /// In bytes; more fragments follow.
  Packet& fragment_offset(std::uint16_t offset) {
    if (descriptor_.layout.network == NetworkLayer::ipv4) {
      view().ipv4().fragment.set(static_cast<std::uint16_t>(offset / 8 | Ipv4Header::kMoreFragments));
    } else {
      view().at<Ipv6FragmentHeader>(sizeof(Ipv6Header)).fragment.set(offset | Ipv6FragmentHeader::kMoreFragments);
    }
    return *this;
  }
  Packet& flags(unsigned flags) { return descriptor_.layout.flags = static_cast<std::uint16_t>(flags), *this; }
  Packet& from(PortIndex port) { return descriptor_.in_port = port, *this; }

  PacketView view() { return {bytes_.data(), &descriptor_}; }
  const Verdict& verdict() const { return descriptor_.verdict; }

 private:
  static void set(Be64 (&to)[2], const Ipv6Address& address) {
    to[0].set(address.high);
    to[1].set(address.low);
  }
  void lay_out(NetworkLayer network, std::uint16_t header, std::uint8_t protocol) {
    PacketLayout& layout = descriptor_.layout;
    layout.network = network;
    layout.transport = protocol;
    layout.transport_offset = header;
    layout.flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
    descriptor_.length = header + 20U;
  }

  std::array<std::uint8_t, 80> bytes_{};
  PacketDescriptor descriptor_;
};

constexpr std::uint8_t kTcp = ip_protocol::kTcp, kUdp = ip_protocol::kUdp;

std::unique_ptr<Firewall> firewall(std::string_view rules, classify::Engine engine = classify::Engine::bitvector) {
  auto made = Firewall::build(rules_of(rules), engine);
  EXPECT_TRUE(made) << to_string(made.error());
  return std::move(*made);
}

std::string forward_table(std::string_view rules) {
  return "*filter\n:FORWARD DROP [0:0]\n" + std::string(rules) + "COMMIT\n";
}

Verdict decide(Firewall& firewall, Packet packet) {
  PacketView view = packet.view();
  firewall.make_cpu_stage()->process({&view, 1});
  return packet.verdict();
}

class FirewallOnEngine : public ::testing::TestWithParam<classify::Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, FirewallOnEngine, ::testing::ValuesIn(kEngines), [](const auto& engine) {
  return std::string((*classify::make_classifier(engine.param, {}))->name());
});

TEST_P(FirewallOnEngine, ForwardsDeniesAndRejectsByTheFirstMatch) {
  const auto nf = firewall(forward_table("-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT\n"
                                         "-A FORWARD -s 10.0.0.0/8 -p tcp -j REJECT\n"),
                           GetParam());
  EXPECT_EQ(decide(*nf, Packet::ipv4("10.0.0.1", "1.1.1.1", kTcp).ports(1, 80)), Verdict::forward());
  EXPECT_EQ(decide(*nf, Packet::ipv4("10.0.0.1", "1.1.1.1", kTcp).ports(80, 1)), Verdict::drop(DropReason::rejected));
  EXPECT_EQ(decide(*nf, Packet::ipv4("11.0.0.1", "1.1.1.1", kTcp).ports(80, 1)), Verdict::drop(DropReason::denied));
}

TEST_P(FirewallOnEngine, LetsTheLastMatchDecideIfAsked) {
  ReadOptions options;
  options.decides = classify::Match::last;
  auto nf = Firewall::build(rules_of(forward_table("-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT\n"
                                                   "-A FORWARD -s 10.0.0.0/8 -p tcp -j REJECT\n"
                                                   "-A FORWARD -p udp -m multiport --ports 53,54 -j ACCEPT\n"),
                                     options),
                            GetParam());
  ASSERT_TRUE(nf);
  EXPECT_EQ(decide(**nf, Packet::ipv4("10.0.0.1", "1.1.1.1", kTcp).ports(1, 80)), Verdict::drop(DropReason::rejected));
  EXPECT_EQ(decide(**nf, Packet::ipv4("11.0.0.1", "1.1.1.1", kTcp).ports(1, 80)), Verdict::forward());
  EXPECT_EQ(decide(**nf, Packet::ipv4("11.0.0.1", "1.1.1.1", kTcp).ports(1, 81)), Verdict::drop(DropReason::denied));
  const auto counts = (*nf)->counts();
  EXPECT_EQ(counts[0].packets, 1U) << "rules keep their indices";
  EXPECT_EQ(counts[1].packets, 1U);
  EXPECT_THAT((*nf)->description(), HasSubstr("3 rules, the last match decides, "));
}

TEST_P(FirewallOnEngine, TestsTcpFlagsAndIcmpTypesOfPackets) {
  const auto nf = firewall(forward_table("-A FORWARD -p tcp -m tcp --tcp-flags SYN,ACK SYN -j ACCEPT\n"
                                         "-A FORWARD -p icmp -m icmp --icmp-type 3/4 -j ACCEPT\n"),
                           GetParam());
  EXPECT_TRUE(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", kTcp).tcp_flags(TcpHeader::kSyn)).alive());
  EXPECT_FALSE(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", kTcp).tcp_flags(TcpHeader::kAck)).alive());
  EXPECT_TRUE(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", ip_protocol::kIcmp).icmp(3, 4)).alive());
  EXPECT_FALSE(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", ip_protocol::kIcmp).icmp(3, 3)).alive());
}

TEST_P(FirewallOnEngine, TestsIpv6PacketsAgainstIpv6Rules) {
  const auto nf =
      firewall("# Generated by ip6tables-save\n" +
                   forward_table("-A FORWARD -s 2001:db8::/32 -d fe80::1 -p udp -m udp --dport 53 -j ACCEPT\n"),
               GetParam());
  EXPECT_TRUE(decide(*nf, Packet::ipv6("2001:db8::9", "fe80::1", kUdp).ports(9, 53)).alive());
  EXPECT_FALSE(decide(*nf, Packet::ipv6("2001:db9::9", "fe80::1", kUdp).ports(9, 53)).alive());
  EXPECT_FALSE(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", kUdp).ports(9, 53)).alive());
}

TEST(Firewall, PassesPacketsOtherThanIp) {
  const auto nf = firewall(forward_table(""));
  EXPECT_EQ(decide(*nf, Packet::arp()), Verdict::forward());
}

TEST(Firewall, DropsBrokenHeadersWhateverTheRulesSay) {
  const auto nf = firewall(forward_table("-A FORWARD -j ACCEPT\n"));
  Packet packet = Packet::ipv4("1.1.1.1", "1.1.1.1", kTcp);
  EXPECT_EQ(decide(*nf, packet), Verdict::forward());
  EXPECT_EQ(decide(*nf, packet.flags(PacketLayout::kMalformed)), Verdict::drop(DropReason::malformed));
  EXPECT_EQ(decide(*nf, packet.flags(PacketLayout::kNetworkHeader | PacketLayout::kMalformed)),
            Verdict::drop(DropReason::malformed));
  EXPECT_EQ(decide(*nf, packet.flags(PacketLayout::kNetworkHeader | PacketLayout::kMalformedTransport)),
            Verdict::drop(DropReason::malformed));
  EXPECT_EQ(decide(*nf, packet.flags(PacketLayout::kTruncated)), Verdict::drop(DropReason::truncated));
}

constexpr unsigned kCut = PacketLayout::kNetworkHeader | PacketLayout::kTruncated;
constexpr unsigned kLater = PacketLayout::kNetworkHeader | PacketLayout::kFragment | PacketLayout::kLaterFragment;

TEST(Firewall, DropsPacketsTruncatedInAHeaderThatRulesTest) {
  const auto nf = firewall("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n");
  using namespace ip_protocol;
  for (const std::uint8_t protocol : {kTcp, kUdp, kUdpLite, kSctp, kIcmp}) {
    Packet packet = Packet::ipv4("1.1.1.1", "1.1.1.1", protocol);
    EXPECT_EQ(decide(*nf, packet), Verdict::forward()) << +protocol;
    EXPECT_EQ(decide(*nf, packet.flags(kCut)), Verdict::drop(DropReason::truncated)) << +protocol;
  }
  for (const std::uint8_t protocol : {kTcp, kUdp, kUdpLite, kSctp, kIcmpv6}) {
    Packet packet = Packet::ipv6("::1", "::1", protocol);
    EXPECT_EQ(decide(*nf, packet.flags(kCut)), Verdict::drop(DropReason::truncated)) << +protocol;
  }
}

TEST(Firewall, DropsIpv6PacketsTruncatedInTheirExtensionHeaders) {
  const auto nf =
      firewall("# Generated by ip6tables-save\n*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j DROP\nCOMMIT\n");
  using namespace ip_protocol;
  for (const std::uint8_t protocol : {kHopByHop, kRouting, kFragment, kAh, kDestinationOptions}) {
    Packet packet = Packet::ipv6("::1", "::1", protocol);
    EXPECT_EQ(decide(*nf, packet.flags(kCut | PacketLayout::kOptions)), Verdict::drop(DropReason::truncated))
        << +protocol;
    EXPECT_EQ(decide(*nf, packet.flags(kCut | PacketLayout::kOptions | PacketLayout::kMalformed)),
              Verdict::drop(DropReason::malformed));
    // A later fragment has no further headers that could be cut off.
    EXPECT_EQ(decide(*nf, packet.flags(kLater | PacketLayout::kTruncated)), Verdict::forward()) << +protocol;
  }
}

TEST(Firewall, AppliesRulesToTruncatedPacketsWhoseHeadersTheyDoNotTest) {
  const auto nf = firewall(forward_table("-A FORWARD -p gre -j ACCEPT\n-A FORWARD -p ah -j ACCEPT\n"));
  EXPECT_EQ(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", ip_protocol::kGre).flags(kCut)), Verdict::forward());
  EXPECT_EQ(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", ip_protocol::kAh).flags(kCut)), Verdict::forward());
  EXPECT_EQ(decide(*nf, Packet::ipv4("1.1.1.1", "1.1.1.1", ip_protocol::kIcmpv6).flags(kCut)),
            Verdict::drop(DropReason::denied));
}

TEST(Firewall, LaterFragmentsHaveNoPorts) {
  const auto nf =
      firewall(forward_table("-A FORWARD -p udp -m udp --dport 0:65535 -j REJECT\n-A FORWARD -f -j ACCEPT\n"));
  Packet packet = Packet::ipv4("1.1.1.1", "1.1.1.1", kUdp);
  EXPECT_FALSE(decide(*nf, packet).alive());
  EXPECT_TRUE(decide(*nf, packet.flags(kLater)).alive());
}

TEST(Firewall, CountsPacketsAndBytesOfEachRuleOverAllWorkers) {
  const auto nf = firewall(forward_table("-A FORWARD -p tcp -j ACCEPT\n-A FORWARD -p gre -j ACCEPT\n"));
  std::vector<Packet> packets(70, Packet::ipv4("1.1.1.1", "2.2.2.2", kTcp));
  packets.push_back(Packet::ipv4("1.1.1.1", "2.2.2.2", kUdp));
  packets.push_back(Packet::arp());
  std::vector<PacketView> views;
  for (Packet& packet : packets) views.push_back(packet.view());
  const auto one = nf->make_cpu_stage(), other = nf->make_cpu_stage();
  one->process(std::span(views).first(50));
  other->process(std::span(views).subspan(50));

  const std::vector<RuleCounters::Count> counts = nf->counts();
  EXPECT_EQ(counts[0].packets, 70U);
  EXPECT_EQ(counts[0].bytes, 70U * 40);
  EXPECT_EQ(counts[1].packets, 0U);
  nlohmann::json report;
  nf->report(report);
  EXPECT_EQ(report, nlohmann::json::parse(R"({
    "rules": [{"index": 0, "line": 3, "target": "accept", "packets": 70, "bytes": 2800,
               "text": "-A FORWARD -p tcp -j ACCEPT"}],
    "policy": {"ipv4": {"target": "drop", "packets": 1, "bytes": 40},
               "ipv6": {"target": "drop", "packets": 0, "bytes": 0}}})"));
}

TEST(Firewall, ReportsThePolicyOfEachFamilyWithItsOwnCounts) {
  const auto nf = firewall(forward_table("-A FORWARD -p gre -j ACCEPT\n") +
                           "# Generated by ip6tables-save\n*filter\n:FORWARD ACCEPT [0:0]\n"
                           "-A FORWARD -p gre -j ACCEPT\nCOMMIT\n");
  EXPECT_FALSE(decide(*nf, Packet::ipv4("1.1.1.1", "2.2.2.2", kTcp)).alive());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(decide(*nf, Packet::ipv6("::1", "::2", kTcp)).alive());
  nlohmann::json report;
  nf->report(report);
  EXPECT_EQ(report, nlohmann::json::parse(R"({
    "rules": [],
    "policy": {"ipv4": {"target": "drop", "packets": 1, "bytes": 40},
               "ipv6": {"target": "accept", "packets": 2, "bytes": 120}}})"));
}

TEST(Firewall, ExplainsWhichRuleDecides) {
  const auto nf = firewall(forward_table("-A FORWARD -p tcp -j ACCEPT\n"));
  const auto stage = nf->make_cpu_stage();
  EXPECT_EQ(stage->explain(Packet::ipv4("1.1.1.1", "1.1.1.1", kTcp).view()),
            "rule 0 (line 3): -A FORWARD -p tcp -j ACCEPT");
  EXPECT_EQ(stage->explain(Packet::ipv4("1.1.1.1", "1.1.1.1", kUdp).view()), "default policy: drop");
  EXPECT_EQ(stage->explain(Packet::arp().view()), "not IP: passes");
  EXPECT_EQ(stage->explain(Packet::ipv4("1.1.1.1", "1.1.1.1", kTcp).flags(PacketLayout::kMalformed).view()),
            "malformed header");
  EXPECT_EQ(stage->explain(Packet::ipv4("1.1.1.1", "1.1.1.1", kTcp).flags(kCut).view()), "truncated header");
}

TEST(Firewall, DescribesTheLoadedRules) {
  EXPECT_THAT(firewall(forward_table("-A FORWARD -p tcp -j ACCEPT\n"))->description(),
              HasSubstr("1 rule, bitvector, "));
  EXPECT_THAT(firewall(forward_table(""), classify::Engine::linear)->description(), HasSubstr("; policy drop"));
}

TEST(Firewall, ReadsAllFieldsThatRulesMayTest) {
  const function::NfTraits few = firewall(forward_table(""))->traits();
  const function::NfTraits many =
      Firewall::build(rules_about_random_frames(), classify::Engine::linear).value()->traits();
  EXPECT_EQ(few.cpu.reads, many.cpu.reads) << "so that a reload may bring any rules";
  EXPECT_EQ(few.access_on(function::Processor::gpu)->reads, many.access_on(function::Processor::gpu)->reads);
  for (const Field field : {Field::ipv4_src, Field::ipv4_dst, Field::ipv6_src, Field::ipv6_dst, Field::l4_src_port,
                            Field::l4_dst_port, Field::tcp_flags, Field::icmp_type_code, Field::in_port})
    EXPECT_TRUE(few.cpu.reads.has(field)) << name(field);
  EXPECT_FALSE(few.cpu.reads.has(Field::payload));
  EXPECT_EQ(few.cpu.writes, FieldSet{Field::verdict});
}

/// Makes a firewall from parameters, like a chain file does.
class FromParameters : public ::testing::Test {
 protected:
  Result<std::unique_ptr<function::NetworkFunction>> make(std::vector<std::pair<std::string, std::string>> values) {
    std::vector<RawParameter> raw;
    for (auto& [name, value] : values) {
      RawParameter parameter;
      parameter.name = name;
      parameter.items = {value};
      parameter.place = {"chain.yaml", 4, 7};
      if (name == "interfaces" || name == "timeouts" || name == "helpers" || name == "mtus" || name == "addresses")
        parameter.shape = RawParameter::Shape::mapping;
      raw.push_back(std::move(parameter));
    }
    auto parameters = Parameters::read(firewall_kind().parameters, std::move(raw), {"chain.yaml", 3, 1});
    if (!parameters) return failure(parameters.error());
    context_.ports = ports_;
    return firewall_kind().make(*parameters, context_);
  }

  std::string errors(std::vector<std::pair<std::string, std::string>> values) {
    const auto made = make(std::move(values));
    return made ? "made without an error" : to_string(made.error());
  }

  static constexpr const char* kGateway = PENSTOCK_SOURCE_DIR "/src/nf/firewall/testdata/gateway.iptables";
  std::vector<std::string> ports_{"lan", "guest0", "wan0"};
  function::NfContext context_;
};

TEST_F(FromParameters, SkipsUnsupportedRulesOnlyOnRequest) {
  const auto made = make({{"rules", kGateway}, {"unsupported", "skip"}});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT((*made)->description(), HasSubstr("14 rules (1 left out), bitvector"));
  EXPECT_EQ(context_.unsupported.size(), 3U);
}

TEST_F(FromParameters, WarnsIfDestinationsAreTranslatedAfterTheRouter) {
  const std::string path = ::testing::TempDir() + "firewall_translates.rules";
  ASSERT_TRUE(write_text_file(path,
                              "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp --dport 80 -j DNAT "
                              "--to-destination 10.0.0.1\nCOMMIT\n"));
  const auto cautions = [&](bool behind_router) {
    context_ = {};
    context_.out_port_known = behind_router;
    const auto made = make({{"rules", path}, {"hook", "prerouting"}});
    EXPECT_TRUE(made) << to_string(made.error());
    return to_string(context_.cautions);
  };
  EXPECT_EQ(cautions(false), "");
  EXPECT_THAT(cautions(true), HasSubstr("destinations are translated after the function that chooses where packets "
                                        "leave: expected this firewall before it"));
}

TEST_F(FromParameters, WarnsOfMtusThatNothingIsClampedTo) {
  const std::string path = ::testing::TempDir() + "firewall_clamps.rules";
  const auto without_effect = [&](const std::string& rule) {
    context_ = {};
    EXPECT_TRUE(write_text_file(path,
                                "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p "
                                "tcp --tcp-flags SYN,RST SYN -j " +
                                    rule + "\nCOMMIT\n"));
    const auto made = make({{"rules", path}, {"hook", "forward"}, {"mtus", ports_.front() + "=1400"}});
    EXPECT_TRUE(made) << to_string(made.error());
    return to_string(context_.without_effect);
  };
  EXPECT_EQ(without_effect("TCPMSS --clamp-mss-to-pmtu"), "");
  EXPECT_THAT(without_effect("TCPMSS --set-mss 1300"), HasSubstr("mtus has no effect: expected a rule that clamps"));
}

TEST_F(FromParameters, WarnsOfSetsThatNoRuleUses) {
  const std::string path = ::testing::TempDir() + "firewall_sets.rules", sets = ::testing::TempDir() + "firewall.sets";
  ASSERT_TRUE(write_text_file(sets, "create s hash:ip\nadd s 192.0.2.7\n"));
  const auto without_effect = [&](const std::string& rule) {
    context_ = {};
    EXPECT_TRUE(write_text_file(path, "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD " + rule + "\nCOMMIT\n"));
    const auto made = make({{"rules", path}, {"ipsets", sets}});
    EXPECT_TRUE(made) << to_string(made.error());
    return to_string(context_.without_effect);
  };
  EXPECT_EQ(without_effect("-m set --match-set s src -j DROP"), "");
  EXPECT_EQ(without_effect("-p udp -j SET --add-set s src"), "");
  EXPECT_THAT(without_effect("-p udp -j DROP"), HasSubstr("ipsets has no effect: expected a rule with a set"));
}

TEST_F(FromParameters, WarnsOfPortsThatMasqueradeWithoutAnAddress) {
  const std::string path = ::testing::TempDir() + "firewall_masquerades.rules";
  const auto cautions = [&](const std::string& head, const std::string& rule, const std::string& addresses) {
    context_ = {};
    context_.out_port_known = true;
    EXPECT_TRUE(write_text_file(
        path, head + "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING " + rule + " -j MASQUERADE\nCOMMIT\n"));
    const auto made = make({{"rules", path}, {"hook", "postrouting"}, {"addresses", addresses}});
    EXPECT_TRUE(made) << to_string(made.error());
    return to_string(context_.cautions);
  };
  const std::string &lan = ports_[0], &guest = ports_[1], &wan = ports_[2];
  const std::string v6 = "# Generated by ip6tables-save v1.8.9\n";
  EXPECT_EQ(cautions("", "-o " + wan, wan + "=203.0.113.5"), "");
  EXPECT_EQ(cautions(v6, "-o " + wan, wan + "=2001:db8::5"), "");
  EXPECT_THAT(cautions("", "! -o " + lan, wan + "=203.0.113.5"),
              AllOf(HasSubstr("found " + guest), Not(HasSubstr(lan))));
  EXPECT_THAT(
      cautions("", "-o " + wan, lan + "=203.0.113.5"),
      HasSubstr("packets that leave by a port without an address are dropped where rules masquerade: found " + wan));
  EXPECT_THAT(cautions(v6, "-o " + wan, wan + "=203.0.113.5"), HasSubstr("found " + wan)) << "none of IPv6";
  EXPECT_THAT(cautions("", "-s 10.0.0.0/8", wan + "=203.0.113.5"), HasSubstr("found " + lan)) << "any port";
}

TEST_F(FromParameters, WarnsOfAHookWithoutRules) {
  const std::string path = ::testing::TempDir() + "firewall_nat_only.rules";
  ASSERT_TRUE(write_text_file(path, "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"));
  const auto made = make({{"rules", path}, {"hook", "forward"}});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT(
      to_string(context_.cautions),
      HasSubstr("all packets pass: the policy is accept, and there are no rules to apply: expected rules at hook "
                "forward"));
}

TEST_F(FromParameters, AnswersWhereverItStands) {
  const std::string path = ::testing::TempDir() + "firewall_rejects.rules";
  ASSERT_TRUE(write_text_file(path, "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j REJECT\nCOMMIT\n"));
  const auto traits = [&](std::vector<std::pair<std::string, std::string>> values, bool behind_router, bool on_links) {
    context_ = {};
    context_.out_port_known = behind_router;
    context_.ports_write = context_.ports_answer = std::vector<bool>(ports_.size(), on_links);
    const auto made = make(std::move(values));
    EXPECT_TRUE(made) << to_string(made.error());
    EXPECT_EQ(to_string(context_.cautions), "");
    return std::pair((*made)->traits().emits, (*made)->traits().asks_for_arrivals);
  };
  using Answers = std::pair<bool, bool>;
  EXPECT_EQ(traits({{"rules", path}}, false, true), Answers(true, false));
  EXPECT_EQ(traits({{"rules", path}}, true, true), Answers(true, true)) << "the router has written link addresses";
  EXPECT_EQ(traits({{"rules", path}, {"hook", "forward"}}, false, true), Answers(true, true)) << "may be translated";
  EXPECT_EQ(traits({{"rules", path}, {"answers", "false"}}, true, true), Answers(false, false));
  EXPECT_EQ(traits({{"rules", path}}, true, false), Answers(false, false)) << "captures are not answered";
}

TEST_F(FromParameters, BridgesFramesWhereNoFunctionRoutesThem) {
  const std::string path = ::testing::TempDir() + "firewall_bridge.json";
  ASSERT_TRUE(write_text_file(path, R"({"nftables": [{"metainfo": {"json_schema_version": 1}},
    {"chain": {"family": "bridge", "table": "t", "name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
    {"rule": {"family": "bridge", "table": "t", "chain": "c", "expr": [
      {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "wan0"}}, {"accept": null}]}}]})"));
  const auto with = [&](std::vector<std::pair<std::string, std::string>> values) {
    values.emplace_back("rules", path);
    values.emplace_back("family", "bridge");
    return errors(std::move(values));
  };
  context_.exits = {2, kNoPort, 0};
  EXPECT_EQ(with({}), "made without an error");
  EXPECT_EQ(with({{"hook", "forward"}}), "made without an error");
  EXPECT_EQ(with({{"engine", "rfc"}}), "made without an error");
  EXPECT_THAT(to_string(context_.without_effect), HasSubstr("engine has no effect: expected no `family: bridge`"));
  EXPECT_THAT(with({{"hook", "input"}}), HasSubstr("only frames of the host itself pass this hook of a bridge"));
  EXPECT_THAT(with({{"connections", "5"}}), HasSubstr("connections is not supported for bridged frames"));
  EXPECT_THAT(with({{"host", "lan"}, {"hook", "forward"}}), HasSubstr("host is not supported for bridged frames"));
  EXPECT_THAT(errors({{"rules", kGateway}, {"family", "bridge"}}), HasSubstr("are not about bridged frames"));
  EXPECT_THAT(errors({{"rules", "kernel"}, {"family", "bridge"}}), HasSubstr("expected a rule file"));
  context_.out_port_known = true;
  EXPECT_THAT(with({}), HasSubstr("an earlier function chooses where packets leave"));
  context_ = {};
  EXPECT_THAT(with({{"unsupported", "refuse"}}), HasSubstr("oifname is supported only if")) << "it is not known here";
}

TEST_F(FromParameters, TracksConnectionsIfARuleTestsThemOrIfAsked) {
  const std::string with = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m state --state NEW -j ACCEPT\nCOMMIT\n";
  const std::string without = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j ACCEPT\nCOMMIT\n";
  const auto tracks = [&](const std::string& rules, std::vector<std::pair<std::string, std::string>> more) {
    const std::string path = ::testing::TempDir() + "firewall_connections.rules";
    EXPECT_TRUE(write_text_file(path, rules));
    more.emplace_back("rules", path);
    const auto made = make(more);
    EXPECT_TRUE(made) << to_string(made.error());
    return (*made)->state_of_run() == "connections";
  };
  EXPECT_TRUE(tracks(with, {}));
  EXPECT_FALSE(tracks(without, {}));
  EXPECT_TRUE(context_.without_effect.empty());
  EXPECT_TRUE(tracks(without, {{"connections", "1000"}, {"timeouts", "udp=1m"}}));
  EXPECT_TRUE(context_.without_effect.empty());
  EXPECT_FALSE(tracks(without, {{"tcp_loose", "false"}}));
  EXPECT_EQ(to_string(context_.without_effect),
            "chain.yaml:4:7: tcp_loose has no effect: expected a rule that tests connections, or `connections`");
}

TEST_F(FromParameters, RefusesWrongTimeouts) {
  EXPECT_THAT(errors({{"rules", kGateway}, {"unsupported", "skip"}, {"timeouts", "udp_flood=1m"}}),
              HasSubstr("unknown timeout: found 'udp_flood', expected tcp_syn_sent, "));
  for (const char* wrong : {"udp=1", "udp=0s", "udp=10000h", "udp="}) {
    EXPECT_THAT(errors({{"rules", kGateway}, {"unsupported", "skip"}, {"timeouts", wrong}}),
                HasSubstr("expected a time from 1s to 8760h"));
  }
}

TEST_F(FromParameters, TracksConnectionsIfItHasHelpers) {
  const auto made = make({{"rules", kGateway}, {"unsupported", "skip"}, {"helpers", "ftp=2121 21"}});
  ASSERT_TRUE(made) << to_string(made.error());
  const auto& options = (*made)->traits().connections;
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->ftp.offered);
  EXPECT_EQ(options->ftp.ports, (decltype(options->ftp.ports){21, 2121}));
  const auto without = make({{"rules", kGateway}, {"unsupported", "skip"}, {"connections", "1000"}});
  EXPECT_FALSE((*without)->traits().connections->ftp.offered);
}

TEST_F(FromParameters, RefusesWrongHelpers) {
  const auto refusal = [&](const char* value) {
    return errors({{"rules", kGateway}, {"unsupported", "skip"}, {"helpers", value}});
  };
  EXPECT_THAT(refusal("sip=5060"), HasSubstr("chain.yaml:4:7: unknown helper: found 'sip', expected ftp"));
  for (const char* wrong : {"ftp=0", "ftp=65536", "ftp=x", "ftp=", "ftp=21,22", "ftp=-1"})
    EXPECT_THAT(refusal(wrong), HasSubstr("expected ports from 1 to 65535, with spaces between them"));
  EXPECT_THAT(refusal("ftp=21 21"), HasSubstr("a port of a helper twice: found '21', expected each port once"));
  EXPECT_THAT(refusal("ftp=1 2 3 4 5 6 7 8 9"), HasSubstr("too many ports of a helper: found '9', expected at most 8"));
}

TEST_F(FromParameters, RefusesAFileWithUnsupportedRules) {
  const std::string refused = errors({{"rules", kGateway}});
  EXPECT_THAT(refused, HasSubstr("table mangle is not supported"));
  EXPECT_THAT(refused, HasSubstr("chain.yaml:4:7: refused because of 2 unsupported constructs, listed above: expected "
                                 "`unsupported: skip` to apply the rest"));
}

TEST_F(FromParameters, WarnsOfAnInterfaceThatNoRuleNames) {
  ASSERT_TRUE(make({{"rules", kGateway}, {"unsupported", "skip"}, {"interfaces", "wan1=wan0"}}));
  EXPECT_THAT(to_string(context_.without_effect),
              HasSubstr("interfaces: no rule names this interface: found 'wan1', expected one of guest0, lo"));
}

TEST_F(FromParameters, ChoosesChainPolicyAndEngine) {
  const auto made = make(
      {{"rules", kGateway}, {"chain", "guests"}, {"policy", "reject"}, {"engine", "linear"}, {"unsupported", "skip"}});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT((*made)->description(), HasSubstr("linear"));
  EXPECT_THAT((*made)->description(), HasSubstr("policy reject"));
}

TEST_F(FromParameters, MapsInterfacesAtTheirPlace) {
  EXPECT_THAT(errors({{"rules", kGateway}, {"interfaces", "eth0=lam"}}),
              HasSubstr("chain.yaml:4:7: interface mapped to an unknown port: found 'eth0=lam', expected one of lan"));
  ports_ = {"a", "b"};
  EXPECT_THAT(errors({{"rules", kGateway}}),
              HasSubstr("unknown interface: found 'guest0', expected a port of the chain"));
  EXPECT_TRUE(make({{"rules", kGateway}, {"interfaces", "guest0=b"}, {"unsupported", "skip"}}));
}

TEST_F(FromParameters, AMissingFileIsAnErrorThatNamesIt) {
  EXPECT_THAT(errors({{"rules", "/nowhere/rules"}}), HasSubstr("/nowhere/rules"));
}

}  // namespace
}  // namespace penstock::firewall
