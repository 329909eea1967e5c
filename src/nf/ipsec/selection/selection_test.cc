// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/selection/selection.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/xfrm/policy_reader.h"
#include "nf/ipsec/xfrm/state_reader.h"

namespace penstock::ipsec {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;

std::string tunnel_sa(const std::string& spi, const std::string& reqid, const std::string& rest = "") {
  return "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi " + spi + " reqid " + reqid +
         " mode tunnel\n\treplay-window 32\n\tauth-trunc hmac(sha1) 0x0102030405060708090a0b0c0d0e0f1011121314 96\n"
         "\tenc cbc(aes) 0x000102030405060708090a0b0c0d0e0f\n" +
         rest;
}
std::string transport_sa(const std::string& source, const std::string& destination, const std::string& spi) {
  return "src " + source + " dst " + destination + "\n\tproto esp spi " + spi +
         " reqid 7 mode transport\n\treplay-window 32\n"
         "\taead rfc4106(gcm(aes)) 0x000102030405060708090a0b0c0d0e0f10111213 128\n";
}
std::string policy(const std::string& selector, const std::string& direction, const std::string& templates = "") {
  return selector + "\n\tdir " + direction + " priority 100 ptype main\n" + templates;
}
std::string tunnel_template(const std::string& reqid, const std::string& rest = "") {
  return "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid " + reqid + " mode tunnel\n" + rest;
}
constexpr const char* kTransportTemplate = "\ttmpl src 0.0.0.0 dst 0.0.0.0\n\t\tproto esp reqid 7 mode transport\n";
constexpr const char* kLanToLan = "src 10.1.0.0/16 dst 10.2.0.0/16";

/// Tables built from texts, and their decisions about packets.
class Tables {
 public:
  Tables(const std::string& states, const std::string& policies, bool inbound) {
    auto read_states = parse_states(states, "states");
    auto read_policies = parse_policies(policies, "policies");
    EXPECT_TRUE(read_states && read_policies);
    if (!read_states || !read_policies) return;
    EXPECT_TRUE(read_states->unsupported.empty()) << to_string(read_states->unsupported);
    SelectionSources sources;
    sources.states = read_states->value;
    sources.policies = read_policies->value;
    sources.state_file = "states";
    sources.policy_file = "policies";
    sources.interfaces.ports = {"lan", "wan"};
    auto built = Selection::build(sources, inbound);
    EXPECT_TRUE(built);
    if (!built) return;
    selection = std::move(built->value);
    unsupported = to_string(built->unsupported);
  }

  std::uint32_t policy_of(PacketView view) const {
    classify::Key key;
    make_selector_key(view, key);
    std::uint32_t found = kNoPolicy;
    selection->find_policies({&key, 1}, &found);
    return found;
  }
  /// "sa 0x1000", "as it is", or a reason.
  std::string outwards(const Bytes& frame, PortIndex out = kNoPort) const {
    RoomyFrame roomy(frame);
    roomy.view.packet->verdict = Verdict::forward(out);
    const std::uint32_t found = policy_of(roomy.view);
    if (found == kNoPolicy) return "no policy";
    classify::Key key;
    make_selector_key(roomy.view, key);
    const Selected selected = select_outbound(selection->view(), found, key, [this](std::uint32_t sa) {
      const auto at = status.find(sa);
      return at == status.end() ? SaStatus::valid : at->second;
    });
    if (selected.reason != Reason::none) return std::string(kReasons[static_cast<std::size_t>(selected.reason)]);
    if (selected.sa == kNoSa) return "as it is";
    return "sa " + std::to_string(selection->sas()[selected.sa].spi);
  }
  Reason inwards(const Bytes& frame, std::uint32_t sa = kNoSa) const {
    RoomyFrame roomy(frame);
    classify::Key key;
    make_selector_key(roomy.view, key);
    return check_inbound(selection->view(), policy_of(roomy.view), key, sa);
  }

  std::unique_ptr<const Selection> selection;
  std::string unsupported;
  std::map<std::uint32_t, SaStatus> status;
};

Bytes lan_to_lan() { return packet().eth().ipv4("10.1.0.1", "10.2.0.2").tcp(1000, 80).bytes(); }

TEST(Selection, FirstPolicyThatSelectsAPacketDecides) {
  const Tables tables(tunnel_sa("0x100", "1") + tunnel_sa("0x200", "2"),
                      "src 10.1.0.0/16 dst 10.2.0.0/16 proto tcp dport 80\n\tdir out priority 10\n" +
                          tunnel_template("2") + "src 10.1.0.0/16 dst 10.2.0.0/16\n\tdir out priority 20\n" +
                          tunnel_template("1") + "src 10.1.0.9/32 dst 0.0.0.0/0\n\tdir out action block priority 5\n" +
                          "src 10.1.0.0/16 dst 10.3.0.0/16\n\tdir out priority 30\n",
                      false);
  const auto from = [](std::string_view source, std::string_view destination) {
    return packet().eth().ipv4(source, destination);
  };
  EXPECT_EQ(tables.outwards(from("10.1.0.1", "10.2.0.2").tcp(1000, 80).bytes()), "sa 512");
  EXPECT_EQ(tables.outwards(from("10.1.0.1", "10.2.0.2").udp(1000, 80).bytes()), "sa 256");
  EXPECT_EQ(tables.outwards(from("10.1.0.9", "10.2.0.2").tcp(1000, 80).bytes()), "blocked");
  EXPECT_EQ(tables.outwards(from("10.1.0.1", "10.3.0.2").tcp(1000, 80).bytes()), "as it is");
  EXPECT_EQ(tables.outwards(from("10.2.0.2", "10.1.0.1").tcp(80, 1000).bytes()), "no policy");
  EXPECT_EQ(tables.outwards(packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(1, 80).bytes()), "no policy");
}

TEST(Selection, EachFamilyHasItsOwnPolicies) {
  const Tables tables(tunnel_sa("0x100", "1"), policy("src ::/0 dst 2001:db8:2::/48", "out", tunnel_template("1")),
                      false);
  EXPECT_EQ(tables.outwards(packet().eth().ipv6("2001:db8:1::1", "2001:db8:2::2").tcp(1, 80).bytes()), "sa 256");
  EXPECT_EQ(tables.outwards(packet().eth().ipv6("2001:db8:1::1", "2001:db8:3::2").tcp(1, 80).bytes()), "no policy");
  EXPECT_EQ(tables.outwards(lan_to_lan()), "no policy");
}

TEST(Selection, TypeAndCodeAreThoseOfIcmp) {
  const Tables tables(tunnel_sa("0x100", "1"),
                      policy("src 0.0.0.0/0 dst 0.0.0.0/0 proto icmp type 8 code 0", "out", tunnel_template("1")),
                      false);
  const auto icmp = [](std::uint8_t type, std::uint8_t code) {
    return packet().eth().ipv4("10.1.0.1", "10.2.0.2").icmp(type, code).bytes();
  };
  EXPECT_EQ(tables.outwards(icmp(8, 0)), "sa 256");
  EXPECT_EQ(tables.outwards(icmp(8, 1)), "no policy");
  EXPECT_EQ(tables.outwards(icmp(0, 0)), "no policy");
}

TEST(Selection, FragmentsHaveNoPortsNotEvenTheFirst) {
  const Tables tables(tunnel_sa("0x100", "1") + tunnel_sa("0x200", "2"),
                      "src 10.1.0.0/16 dst 10.2.0.0/16 proto udp dport 53\n\tdir out priority 1\n" +
                          tunnel_template("1") + "src 10.1.0.0/16 dst 10.2.0.0/16 proto udp\n\tdir out priority 2\n" +
                          tunnel_template("2"),
                      false);
  const auto udp = [](std::uint16_t fragment) {
    return packet().eth().ipv4("10.1.0.1", "10.2.0.2", 64, {}, fragment).udp(1000, 53).payload("12345678").bytes();
  };
  EXPECT_EQ(tables.outwards(udp(0)), "sa 256");
  EXPECT_EQ(tables.outwards(udp(0x2000)), "sa 512");
  EXPECT_EQ(tables.outwards(udp(0x0001)), "sa 512");
}

TEST(Selection, FragmentsOfIcmpHaveTypeAndCodeZero) {
  //   | IPv4, MF | ICMP echo 8/0 |   and   | IPv4, offset 8 | the rest |
  const Tables tables(tunnel_sa("0x100", "1"),
                      policy("src 0.0.0.0/0 dst 0.0.0.0/0 proto icmp type 0 code 0", "out", tunnel_template("1")) +
                          policy("src 0.0.0.0/0 dst 0.0.0.0/0 proto icmp type 8", "out"),
                      false);
  const auto echo = [](std::uint16_t fragment) {
    return packet().eth().ipv4("10.1.0.1", "10.2.0.2", 64, {}, fragment).icmp(8, 0).payload("12345678").bytes();
  };
  EXPECT_EQ(tables.outwards(echo(0)), "as it is");
  EXPECT_EQ(tables.outwards(echo(0x2000)), "sa 256");
  EXPECT_EQ(tables.outwards(echo(0x0001)), "sa 256");
}

TEST(Selection, SuccessorTakesOverAndThePredecessorServesUntilThereIsOne) {
  Tables tables(tunnel_sa("0x100", "1",
                          "\tlifetime current:\n\t  0(bytes), 0(packets)\n"
                          "\t  add 2026-01-01 00:00:00 use -\n") +
                    tunnel_sa("0x200", "1",
                              "\tlifetime current:\n\t  0(bytes), 0(packets)\n"
                              "\t  add 2026-01-01 01:00:00 use -\n") +
                    tunnel_sa("0x300", "9"),
                policy(kLanToLan, "out", tunnel_template("1")), false);
  EXPECT_EQ(tables.outwards(lan_to_lan()), "sa 512") << "the newer";
  tables.status = {{1, SaStatus::dying}};
  EXPECT_EQ(tables.outwards(lan_to_lan()), "sa 256");
  tables.status = {{0, SaStatus::dying}, {1, SaStatus::dying}};
  EXPECT_EQ(tables.outwards(lan_to_lan()), "sa 512");
  tables.status = {{0, SaStatus::dying}, {1, SaStatus::dead}};
  EXPECT_EQ(tables.outwards(lan_to_lan()), "sa 256");
  tables.status = {{0, SaStatus::dead}, {1, SaStatus::dead}};
  EXPECT_EQ(tables.outwards(lan_to_lan()), "lifetime");
}

TEST(Selection, OfSasWithoutATimeTheFilesFirstIsTheNewest) {
  const Tables tables(tunnel_sa("0x100", "1") + tunnel_sa("0x200", "1"), policy(kLanToLan, "out", tunnel_template("1")),
                      false);
  EXPECT_EQ(tables.outwards(lan_to_lan()), "sa 256");
}

TEST(Selection, TemplateTakesSasByAllThatItSays) {
  const std::string other_end = "src 192.0.2.1 dst 198.51.100.3" + tunnel_sa("0x300", "1").substr(30);
  const auto with = [&](const std::string& templates, const std::string& states) {
    return Tables(states, policy(kLanToLan, "out", templates), false).outwards(lan_to_lan());
  };
  EXPECT_EQ(with(tunnel_template("1"), other_end + tunnel_sa("0x100", "1")), "sa 256");
  EXPECT_EQ(with(tunnel_template("1"), other_end), "no_sa");
  EXPECT_EQ(with(tunnel_template("1"), tunnel_sa("0x100", "2")), "no_sa");
  EXPECT_EQ(with("\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp spi 0x00000200 reqid 1 mode tunnel\n",
                 tunnel_sa("0x100", "1") + tunnel_sa("0x200", "1")),
            "sa 512");
  EXPECT_EQ(with("\ttmpl src 192.0.2.9 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n", tunnel_sa("0x100", "1")),
            "no_sa");
  EXPECT_EQ(with("\ttmpl src 0.0.0.0 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n", tunnel_sa("0x100", "1")),
            "sa 256");
  EXPECT_EQ(
      with("\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid 1 mode transport\n", tunnel_sa("0x100", "1")),
      "no_sa");
}

TEST(Selection, OptionalTemplateLetsPacketsGoWithoutAnSa) {
  const std::string optional = tunnel_template("1", "\t\tlevel use\n");
  EXPECT_EQ(Tables("", policy(kLanToLan, "out", optional), false).outwards(lan_to_lan()), "as it is");
  EXPECT_EQ(Tables(tunnel_sa("0x100", "1"), policy(kLanToLan, "out", optional), false).outwards(lan_to_lan()),
            "sa 256");
}

TEST(Selection, TransportModeTakesTheSaOfThePacketsOwnAddresses) {
  // The first one's addresses have the same bits in the other family.
  const Tables tables(transport_sa("::a01:1", "::a02:2", "0x400") + transport_sa("10.1.0.1", "10.2.0.2", "0x100") +
                          transport_sa("10.1.0.1", "10.2.0.3", "0x200") + transport_sa("10.1.0.4", "10.2.0.3", "0x300"),
                      policy(kLanToLan, "out", kTransportTemplate), false);
  const auto between = [](std::string_view source, std::string_view destination) {
    return packet().eth().ipv4(source, destination).udp(1, 2).bytes();
  };
  EXPECT_EQ(tables.outwards(between("10.1.0.1", "10.2.0.2")), "sa 256");
  EXPECT_EQ(tables.outwards(between("10.1.0.1", "10.2.0.3")), "sa 512");
  EXPECT_EQ(tables.outwards(between("10.1.0.4", "10.2.0.3")), "sa 768");
  EXPECT_EQ(tables.outwards(between("10.1.0.4", "10.2.0.2")), "no_sa");
}

TEST(Selection, TransportModePrefersAnSaOfThePacketsSourceToOneOfAny) {
  //   10.1.0.1 > 10.2.0.2 UDP: 0x100 of any source, the file's first; 0x200 of 10.1.0.1
  Tables tables(transport_sa("0.0.0.0", "10.2.0.2", "0x100") + transport_sa("10.1.0.1", "10.2.0.2", "0x200"),
                policy(kLanToLan, "out", kTransportTemplate), false);
  const auto from = [](std::string_view source) { return packet().eth().ipv4(source, "10.2.0.2").udp(1, 2).bytes(); };
  EXPECT_EQ(tables.outwards(from("10.1.0.1")), "sa 512");
  EXPECT_EQ(tables.outwards(from("10.1.0.4")), "sa 256");
  tables.status[1] = SaStatus::dying;
  EXPECT_EQ(tables.outwards(from("10.1.0.1")), "sa 512") << "until it ends";
  tables.status[1] = SaStatus::dead;
  EXPECT_EQ(tables.outwards(from("10.1.0.1")), "sa 256");
}

TEST(Selection, SaCarriesWhatItsSelectorSays) {
  const Tables tables(tunnel_sa("0x100", "1", "\tsel src 10.1.0.0/24 dst 10.2.0.0/16 proto tcp dport 80\n") +
                          tunnel_sa("0x200", "1", "\tsel src 10.1.0.0/16 dst 10.2.0.0/16\n"),
                      policy(kLanToLan, "out", tunnel_template("1")) + policy(kLanToLan, "fwd", tunnel_template("1")),
                      false);
  EXPECT_EQ(tables.outwards(lan_to_lan()), "sa 256");
  EXPECT_EQ(tables.outwards(packet().eth().ipv4("10.1.1.1", "10.2.0.2").tcp(1000, 80).bytes()), "sa 512");
  EXPECT_EQ(tables.outwards(packet().eth().ipv4("10.1.0.1", "10.2.0.2").tcp(1000, 81).bytes()), "sa 512");
}

TEST(Selection, DevicesAreThePorts) {
  const std::string states = tunnel_sa("0x100", "1");
  const Tables tables(states, policy(std::string(kLanToLan) + " dev wan", "out", tunnel_template("1")), false);
  EXPECT_EQ(tables.outwards(lan_to_lan(), 1), "sa 256");
  EXPECT_EQ(tables.outwards(lan_to_lan(), 0), "no policy");
  EXPECT_EQ(tables.unsupported, "");
  const Tables unknown(states, policy(std::string(kLanToLan) + " dev eth7", "out", tunnel_template("1")), false);
  EXPECT_EQ(unknown.outwards(lan_to_lan(), 1), "unsupported");
  EXPECT_EQ(unknown.unsupported,
            "policies:1: a policy for a device that is not a port of the chain: found 'eth7', expected lan, wan: "
            "packets that this policy selects are dropped");
}

TEST(Selection, WhatIsNotSupportedIsToldAndLetsNothingThrough) {
  const Tables nested(tunnel_sa("0x100", "1"), policy(kLanToLan, "out", tunnel_template("1") + kTransportTemplate),
                      false);
  EXPECT_EQ(nested.outwards(lan_to_lan()), "unsupported");
  EXPECT_EQ(nested.unsupported,
            "policies:1: several templates in a policy (nested SAs) are not supported: found 2 templates, "
            "expected one: packets that this policy selects are dropped");
  const Tables keyed(tunnel_sa("0x100", "1"),
                     policy("src 0.0.0.0/0 dst 0.0.0.0/0 proto gre key 7", "out", tunnel_template("1")), false);
  EXPECT_EQ(keyed.outwards(packet().eth().ipv4("10.1.0.1", "10.2.0.2").protocol(47).raw(Bytes(20)).bytes()),
            "unsupported");
  EXPECT_EQ(keyed.outwards(lan_to_lan()), "no policy");
  EXPECT_NE(keyed.unsupported.find("found protocol 47"), std::string::npos);
}

TEST(InboundPolicy, LetsInWhatTheTemplatesSaHasCarried) {
  const Tables tables(
      tunnel_sa("0x100", "1") + tunnel_sa("0x200", "2") + transport_sa("10.1.0.1", "10.2.0.2", "0x300") +
          tunnel_sa("0x400", "1", "\tsel src 10.9.0.0/16 dst 10.2.0.0/16\n"),
      policy(kLanToLan, "fwd", tunnel_template("1")) + policy("src 10.3.0.0/16 dst 10.2.0.0/16", "fwd") +
          policy("src 10.4.0.0/16 dst 10.2.0.0/16", "in", tunnel_template("1", "\t\tlevel use\n")) +
          "src 10.5.0.0/16 dst 10.2.0.0/16\n\tdir fwd action block priority 1\n" +
          policy("src 10.6.0.0/16 dst 10.2.0.0/16", "fwd", tunnel_template("0")) +
          policy("src 10.8.0.0/16 dst 10.2.0.0/16", "out", tunnel_template("1")),
      true);
  const auto from = [](int net) {
    return packet().eth().ipv4("10." + std::to_string(net) + ".0.1", "10.2.0.2").tcp(1000, 80).bytes();
  };
  constexpr std::uint32_t kTunnel = 0, kOtherTunnel = 1, kTransport = 2, kNarrow = 3;
  EXPECT_EQ(tables.inwards(from(1), kTunnel), Reason::none);
  EXPECT_EQ(tables.inwards(from(1), kOtherTunnel), Reason::policy_mismatch);
  EXPECT_EQ(tables.inwards(from(1), kTransport), Reason::policy_mismatch);
  EXPECT_EQ(tables.inwards(from(1), kNarrow), Reason::policy_mismatch) << "not for its selector";
  EXPECT_EQ(tables.inwards(from(1)), Reason::not_protected);
  EXPECT_EQ(tables.inwards(from(3)), Reason::none);
  EXPECT_EQ(tables.inwards(from(3), kTunnel), Reason::policy_mismatch);
  EXPECT_EQ(tables.inwards(from(3), kTransport), Reason::none);
  EXPECT_EQ(tables.inwards(from(4)), Reason::none) << "level use";
  EXPECT_EQ(tables.inwards(from(4), kTunnel), Reason::none);
  EXPECT_EQ(tables.inwards(from(4), kOtherTunnel), Reason::policy_mismatch);
  EXPECT_EQ(tables.inwards(from(5)), Reason::blocked);
  EXPECT_EQ(tables.inwards(from(5), kTunnel), Reason::blocked);
  EXPECT_EQ(tables.inwards(from(6), kTunnel), Reason::none) << "any reqid";
  EXPECT_EQ(tables.inwards(from(8)), Reason::none) << "policies outwards say nothing inwards";
  EXPECT_EQ(tables.inwards(from(8), kTunnel), Reason::no_policy);
}

TEST(InboundPolicy, ZerosInATemplateStandForAnyEndPoint) {
  //   192.0.2.1 ──ESP, SA 0x100──▶ 198.51.100.2 ─▶ | 10.1.0.1 > 10.2.0.2 TCP |
  //   2001:db8::1 ──ESP, SA 0x500──▶ 2001:db8::2 ─▶ the same
  const std::string six =
      "src 2001:db8::1 dst 2001:db8::2\n\tproto esp spi 0x500 reqid 1 mode tunnel\n\treplay-window 32\n"
      "\taead rfc4106(gcm(aes)) 0x100102030405060708090a0b0c0d0e0f10111213 128\n";
  const std::string states = tunnel_sa("0x100", "1") + six + transport_sa("10.1.0.1", "10.2.0.2", "0x300");
  constexpr std::uint32_t kIpv4 = 0, kIpv6 = 1, kTransport = 2;
  struct Case {
    const char* addresses;
    Reason ipv4, ipv6;
  };
  constexpr Reason kNone = Reason::none, kMismatch = Reason::policy_mismatch;
  for (const char* const level : {"", "\t\tlevel use\n"}) {
    for (const Case& one : {Case{"src 0.0.0.0 dst 0.0.0.0", kNone, kNone},
                            {"src :: dst ::", kNone, kNone},
                            {"src 192.0.2.1 dst 0.0.0.0", kNone, kMismatch},
                            {"src 192.0.2.9 dst 0.0.0.0", kMismatch, kMismatch},
                            {"src 0.0.0.0 dst 198.51.100.2", kNone, kNone},
                            {"src 0.0.0.0 dst 198.51.100.9", kNone, kNone},
                            {"src 2001:db8::1 dst ::", kMismatch, kNone},
                            {"src :: dst 2001:db8::2", kNone, kNone},
                            // The same bits in the other family.
                            {"src ::192.0.2.1 dst ::", kMismatch, kMismatch},
                            // Linux does not look at the destination.
                            {"src 192.0.2.1 dst 198.51.100.9", kNone, kMismatch},
                            {"src 192.0.2.9 dst 198.51.100.2", kMismatch, kMismatch}}) {
      const std::string wanted = std::string("\ttmpl ") + one.addresses + "\n\t\tproto esp reqid 0 mode tunnel\n";
      for (const char* const direction : {"fwd", "in"}) {
        const Tables tables(states, policy(kLanToLan, direction, wanted + level), true);
        EXPECT_EQ(tables.inwards(lan_to_lan(), kIpv4), one.ipv4) << one.addresses << level;
        EXPECT_EQ(tables.inwards(lan_to_lan(), kIpv6), one.ipv6) << one.addresses << level;
        const bool optional = *level != 0;
        EXPECT_EQ(tables.inwards(lan_to_lan(), kTransport), optional ? kNone : kMismatch) << "no tunnel";
        EXPECT_EQ(tables.inwards(lan_to_lan()), optional ? kNone : Reason::not_protected);
        EXPECT_EQ(tables.unsupported, "");
      }
    }
  }
}

TEST(InboundPolicy, ZerosInATemplateLeaveSpiAndReqidToBeTested) {
  const auto with = [](const std::string& rest) {
    const Tables tables(tunnel_sa("0x100", "1"),
                        policy(kLanToLan, "fwd", "\ttmpl src 0.0.0.0 dst 0.0.0.0\n\t\tproto esp " + rest), true);
    return tables.inwards(lan_to_lan(), 0);
  };
  EXPECT_EQ(with("reqid 1 mode tunnel\n"), Reason::none);
  EXPECT_EQ(with("spi 0x100 reqid 1 mode tunnel\n"), Reason::none);
  EXPECT_EQ(with("reqid 2 mode tunnel\n"), Reason::policy_mismatch);
  EXPECT_EQ(with("spi 0x200 reqid 1 mode tunnel\n"), Reason::policy_mismatch);
  EXPECT_EQ(with("reqid 1 mode transport\n"), Reason::policy_mismatch);
}

TEST(Selection, RefusesATemplateOutThatDoesNotNameTheTunnelsEndPoint) {
  for (const char* const addresses : {"src 0.0.0.0 dst 0.0.0.0", "src 192.0.2.1 dst 0.0.0.0", "src :: dst ::"}) {
    for (const char* const level : {"", "\t\tlevel use\n"}) {
      const Tables tables(tunnel_sa("0x100", "1"),
                          policy(kLanToLan, "out",
                                 std::string("\ttmpl ") + addresses + "\n\t\tproto esp reqid 1 mode tunnel\n" + level),
                          false);
      EXPECT_EQ(tables.outwards(lan_to_lan()), "unsupported") << addresses << level;
      EXPECT_EQ(tables.unsupported,
                std::string("policies:1: an outbound template without the address of the tunnel's remote end is not "
                            "supported: found dst ") +
                    (addresses[4] == ':' ? "::" : "0.0.0.0") +
                    ", expected the address of the remote gateway: packets that this policy selects are dropped");
    }
  }
}

TEST(InboundPolicy, TellsThatIcmpErrorsGoByTheirOwnHeaders) {
  const std::string flagged = std::string(kLanToLan) + "\n\tdir fwd priority 100 ptype main flag icmp\n";
  EXPECT_EQ(Tables("", flagged, true).unsupported,
            "policies:1: a policy that matches ICMP errors by the packet that they quote is not supported: found "
            "flag icmp, expected no such flag: ICMP errors are matched by their own header only");
  EXPECT_EQ(Tables("", flagged, false).unsupported, "");
}

TEST(InboundPolicy, ForwardedPacketsAreTriedOnForwardPoliciesFirst) {
  const Tables tables(
      "", "src 0.0.0.0/0 dst 10.2.0.0/16\n\tdir in action block priority 1\n" + policy(kLanToLan, "fwd"), true);
  EXPECT_EQ(tables.inwards(lan_to_lan()), Reason::none);
  EXPECT_EQ(tables.inwards(packet().eth().ipv4("10.9.0.1", "10.2.0.2").tcp(1, 2).bytes()), Reason::blocked);
}

TEST(InboundTable, FindsSasByDestinationAndSpi) {
  const auto states = parse_states(tunnel_sa("0x100", "1") + tunnel_sa("0x200", "2") +
                                       transport_sa("2001:db8::1", "2001:db8::2", "0x100") +
                                       transport_sa("2001:db8::1", "::c633:6402", "0x300"),
                                   "states");
  ASSERT_TRUE(states);
  const auto table = InboundTable::build(states->value, "states");
  ASSERT_TRUE(table);
  const auto found = [&](const Bytes& frame, std::uint32_t spi) {
    RoomyFrame roomy(frame);
    const Found result = find_sa(table->view(), roomy.view, spi);
    if (result.kind == Found::Kind::not_ours) return std::string("not ours");
    return result.kind == Found::Kind::sa ? std::to_string(result.sa) : std::string("none");
  };
  const Bytes ours = packet().eth().ipv4("192.0.2.1", "198.51.100.2").protocol(50).raw(Bytes(8)).bytes();
  const Bytes others = packet().eth().ipv4("192.0.2.1", "198.51.100.3").protocol(50).raw(Bytes(8)).bytes();
  const Bytes ours6 = packet().eth().ipv6("2001:db8::1", "2001:db8::2").protocol(50).raw(Bytes(8)).bytes();
  const Bytes mapped = packet().eth().ipv6("2001:db8::1", "::c633:6402").protocol(50).raw(Bytes(8)).bytes();
  EXPECT_EQ(found(ours, 0x100), "0");
  EXPECT_EQ(found(ours, 0x200), "1");
  EXPECT_EQ(found(ours6, 0x100), "2");
  EXPECT_EQ(found(mapped, 0x300), "3");
  EXPECT_EQ(found(mapped, 0x100), "none") << "the same number is another address in the other family";
  EXPECT_EQ(found(ours, 0x300), "none");
  EXPECT_EQ(found(ours, 0), "none");
  EXPECT_EQ(found(others, 0x100), "not ours");
  EXPECT_EQ(found(others, 0), "not ours");
}

TEST(InboundTable, RefusesTwoSasThatNoPacketCanTell) {
  auto states = parse_states(tunnel_sa("0x100", "1") + tunnel_sa("0x200", "2"), "states");
  ASSERT_TRUE(states);
  states->value[1].spi = 0x100;
  const auto table = InboundTable::build(states->value, "states");
  ASSERT_FALSE(table);
  EXPECT_EQ(to_string(table.error()),
            "states:6: two SAs have the same destination and SPI: found 198.51.100.2 spi 0x00000100, as in line "
            "1, expected one of them");
}

TEST(InboundTable, KnowsTheUdpPortsOfItsSas) {
  const auto none =
      parse_states(tunnel_sa("0x100", "1", "\tencap type espinudp sport 4500 dport 4500 addr 0.0.0.0\n"), "states");
  const auto some =
      parse_states(tunnel_sa("0x100", "1", "\tencap type espinudp sport 4500 dport 61234 addr 0.0.0.0\n"), "states");
  ASSERT_TRUE(none && some);
  const auto without = InboundTable::build(none->value, "states");
  const auto with = InboundTable::build(some->value, "states");
  EXPECT_TRUE(without->other_ports().empty());
  EXPECT_TRUE(without->ports().has(4500));
  EXPECT_FALSE(without->ports().has(61234));
  EXPECT_TRUE(with->ports().has(4500) && with->ports().has(61234));
  EXPECT_FALSE(with->ports().has(61235));
}

}  // namespace
}  // namespace penstock::ipsec
