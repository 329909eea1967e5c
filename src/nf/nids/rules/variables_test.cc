// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/variables.h"

#include <gmock/gmock.h>

#include <random>

#include "base/testing/rounds.h"
#include "nf/nids/rules/ranges.h"
#include "nf/nids/rules/rules_for_test.h"

namespace penstock::nids {
namespace {

using ::testing::HasSubstr;

AddressSet addresses(std::string_view text, const Variables& variables = default_variables()) {
  VariableResolver resolver(variables);
  Complaint why;
  const AddressSet* set = resolver.addresses(text, why);
  if (set != nullptr) return *set;
  ADD_FAILURE() << text << ": " << why.message;
  return {};
}

PortSet ports(std::string_view text, const Variables& variables = default_variables()) {
  VariableResolver resolver(variables);
  Complaint why;
  const PortSet* set = resolver.ports(text, why);
  if (set != nullptr) return *set;
  ADD_FAILURE() << text << ": " << why.message;
  return {};
}

bool has(const AddressSet& set, std::string_view address) {
  if (const auto v4 = parse_ipv4(address)) return set.contains(*v4);
  return set.contains(parse_ipv6(address).value());
}

TEST(Addresses, AnyIsEveryAddressOfBothVersions) {
  EXPECT_TRUE(addresses("any").is_any());
  EXPECT_TRUE(addresses("ANY").is_any());
  EXPECT_TRUE(addresses("[any]").is_any());
  EXPECT_TRUE(addresses("!!any").is_any());
  EXPECT_FALSE(addresses("!10.0.0.1").is_any());
}

TEST(Addresses, ReadsAllForms) {
  EXPECT_TRUE(has(addresses("10.0.0.1"), "10.0.0.1"));
  EXPECT_FALSE(has(addresses("10.0.0.1"), "10.0.0.2"));
  // Host bits are ignored.
  EXPECT_TRUE(has(addresses("10.1.2.3/8"), "10.255.0.0"));
  EXPECT_TRUE(has(addresses("10.1.2.3/255.255.0.0"), "10.1.255.255"));
  EXPECT_FALSE(has(addresses("10.1.2.3/255.255.0.0"), "10.2.0.0"));
  EXPECT_TRUE(addresses("0.0.0.0/0").v6.empty());
  EXPECT_TRUE(has(addresses("10.0.0.5-10.0.0.7"), "10.0.0.7"));
  EXPECT_FALSE(has(addresses("10.0.0.5 - 10.0.0.7"), "10.0.0.8"));
  EXPECT_TRUE(has(addresses("2001:db8::1/32"), "2001:db8:ffff::"));
  EXPECT_FALSE(has(addresses("2001:db8::/32"), "2001:db9::"));
  EXPECT_TRUE(has(addresses("::1-::3"), "::2"));
}

TEST(Addresses, NegationIsTheComplementInBothVersions) {
  const AddressSet set = addresses("!10.0.0.0/8");
  EXPECT_FALSE(has(set, "10.1.1.1"));
  EXPECT_TRUE(has(set, "11.0.0.0"));
  EXPECT_TRUE(has(set, "9.255.255.255"));
  EXPECT_TRUE(has(set, "::1"));
}

TEST(Addresses, ListsAreTheirElementsWithoutNegatedOnes) {
  const AddressSet set = addresses("[192.168.0.0/16,10.0.0.0/8,!10.1.0.0/16,![192.168.1.0/24,192.168.3.0/24]]");
  EXPECT_TRUE(has(set, "10.0.0.1"));
  EXPECT_FALSE(has(set, "10.1.0.1"));
  EXPECT_FALSE(has(set, "192.168.1.9"));
  EXPECT_TRUE(has(set, "192.168.2.9"));
  EXPECT_FALSE(has(set, "::1"));
  const AddressSet only_negated = addresses("[!10.0.0.1,!10.0.0.3]");
  EXPECT_FALSE(has(only_negated, "10.0.0.3"));
  EXPECT_TRUE(has(only_negated, "10.0.0.2"));
  EXPECT_TRUE(has(only_negated, "::"));
  // Neither order nor depth of nesting matters.
  EXPECT_EQ(addresses("[!10.1.0.0/16,[[10.0.0.0/8]]]"), addresses("[10.0.0.0/8,!10.1.0.0/16]"));
}

TEST(Addresses, ListsMayLackTheirOuterBrackets) {
  EXPECT_EQ(addresses("!10.0.0.1,10.0.0.0/8,[::1,fe80::/10]"), addresses("[!10.0.0.1,10.0.0.0/8,[::1,fe80::/10]]"));
  EXPECT_EQ(addresses("[10.0.0.1],[10.0.0.2]"), addresses("[10.0.0.1,10.0.0.2]"));
  EXPECT_EQ(addresses("$V", {{"V", "10.0.0.1,10.0.0.2"}}), addresses("[10.0.0.1,10.0.0.2]"));
  for (const std::string_view text : {"10.0.0.1,", ",", "[10.0.0.1],10.0.0.2]", "10.0.0.1,!10.0.0.0/8"}) {
    EXPECT_NE(complaint_of("alert ip " + std::string(text) + " any -> any any (sid:1;)"), "") << text;
  }
}

TEST(Addresses, VariablesMayBeNegatedAndListed) {
  EXPECT_TRUE(has(addresses("$HOME_NET"), "192.168.3.4"));
  EXPECT_FALSE(has(addresses("$EXTERNAL_NET"), "172.16.0.1"));
  EXPECT_TRUE(has(addresses("$EXTERNAL_NET"), "8.8.8.8"));
  EXPECT_EQ(addresses("!$EXTERNAL_NET"), addresses("$HOME_NET"));
  EXPECT_FALSE(has(addresses("[$HOME_NET,!10.0.0.1]"), "10.0.0.1"));
  EXPECT_TRUE(has(addresses("[$HOME_NET,8.8.8.8]"), "8.8.8.8"));
}

TEST(Addresses, KnowsWhetherAnyAreNegated) {
  const auto negates = [](std::string_view text) {
    return rule_of("alert ip " + std::string(text) + " any -> any any (sid:1;)").negates_addresses;
  };
  EXPECT_FALSE(negates("$HOME_NET"));
  EXPECT_FALSE(negates("[10.0.0.1,10.0.0.2]"));
  EXPECT_TRUE(negates("!10.0.0.1"));
  EXPECT_TRUE(negates("$EXTERNAL_NET"));
  EXPECT_TRUE(negates("[10.0.0.0/8,[!10.0.0.1]]"));
}

TEST(Addresses, RefusesInvalidAddresses) {
  for (const std::string_view text :
       {"10.0.0", "10.0.0.256", "10.0.0.0/33", "10.0.0.0/255.0.255.0", "10.0.0.9-10.0.0.1", "fe80::/129", "[]",
        "[10.0.0.1,]", "!any", "[10.0.0.1,!10.0.0.0/8]", "$NOT_THERE", "[10.0.0.1", "nonsense", "10.0.0.1/", "!", "$",
        "[$HOME_NET,!$HOME_NET]"}) {
    const Variables variables = default_variables();
    VariableResolver resolver(variables);
    Complaint why;
    EXPECT_EQ(resolver.addresses(text, why), nullptr) << text;
    EXPECT_FALSE(why.message.empty()) << text;
  }
}

TEST(Addresses, StopsAtVariablesThatNameEachOther) {
  const auto set = read_rules_text("", "x", {{"A", "$B"}, {"B", "[$A]"}});
  ASSERT_FALSE(set);
  EXPECT_THAT(to_string(set.error()), HasSubstr("variable $A: variable $B: variable refers to itself: found '$A'"));
}

TEST(Addresses, NestedVariablesAreResolvedOnceEach) {
  Variables variables{{"V0", "10.0.0.1"}};
  for (int i = 1; i < 15; ++i) {
    const std::string last = "$V" + std::to_string(i - 1);
    variables["V" + std::to_string(i)] = "[" + last + "," + last + "," + last + "]";
  }
  EXPECT_TRUE(has(addresses("$V14", variables), "10.0.0.1"));
}

TEST(Addresses, NestedListsHaveALimit) {
  const std::string deep = std::string(1000, '[') + "10.0.0.1" + std::string(1000, ']');
  EXPECT_THAT(complaint_of("alert ip " + deep + " any -> any any (sid:1;)"), HasSubstr("too deep"));
}

TEST(Ports, ReadsAllForms) {
  EXPECT_TRUE(ports("any").is_any());
  EXPECT_TRUE(ports("80").contains(80));
  EXPECT_FALSE(ports("80").contains(81));
  EXPECT_TRUE(ports("80:90").contains(90));
  EXPECT_TRUE(ports(":90").contains(0));
  EXPECT_TRUE(ports("1024:").contains(65535));
  EXPECT_FALSE(ports("!80").contains(80));
  EXPECT_TRUE(ports("!80").contains(0));
  const PortSet set = ports("![80,443:445]");
  EXPECT_FALSE(set.contains(444));
  EXPECT_TRUE(set.contains(446));
  EXPECT_FALSE(ports("[1:100,!50]").contains(50));
  EXPECT_TRUE(ports("[1:100,!50]").contains(51));
  EXPECT_TRUE(ports("$ORACLE_PORTS").contains(1521));
  EXPECT_FALSE(ports("$SHELLCODE_PORTS").contains(80));
  EXPECT_TRUE(ports("[$HTTP_PORTS,8080]").contains(8080));
  EXPECT_EQ(ports("[80,81,82]").ranges.size(), 1U);
}

TEST(Ports, RefusesInvalidPorts) {
  for (const std::string_view text :
       {"65536", "90:80", "http", ":", "", "-1", "!any", "[80", "[80,!80]", "80:90:100", "$HOME_NET"}) {
    const Variables variables = default_variables();
    VariableResolver resolver(variables);
    Complaint why;
    EXPECT_EQ(resolver.ports(text, why), nullptr) << text;
  }
}

/// Compares sets as ranges with sets as one bit per port.
TEST(Ports, RandomListsEqualTheSetsOfTheirMembers) {
  std::mt19937 random(20261);
  const auto number = [&](unsigned most) { return std::uniform_int_distribution<unsigned>(0, most)(random); };
  for (std::uint32_t round = 0; round < penstock::testing::rounds(200); ++round) {
    std::string text = "[";
    std::vector<bool> named(65536, false), without(65536, false);
    bool any_named = false;
    for (unsigned i = 0, count = 1 + number(6); i < count; ++i) {
      const unsigned first = number(300), last = first + number(40);
      const bool negated = number(2) == 0;
      text +=
          std::string(i == 0 ? "" : ",") + (negated ? "!" : "") + std::to_string(first) + ':' + std::to_string(last);
      for (unsigned p = first; p <= last; ++p) (negated ? without : named)[p] = true;
      any_named |= !negated;
    }
    text += ']';
    const Variables none;
    VariableResolver resolver(none);
    Complaint why;
    const PortSet* set = resolver.ports(text, why);
    bool is_empty = true;
    for (unsigned p = 0; p < 65536; ++p) {
      const bool expected = (!any_named || named[p]) && !without[p];
      is_empty &= !expected;
      if (set == nullptr) continue;
      ASSERT_EQ(set->contains(static_cast<std::uint16_t>(p)), expected) << text << ' ' << p;
    }
    EXPECT_EQ(set == nullptr, is_empty) << text;
  }
}

TEST(Ranges, TheComplementOfTheComplementIsTheSet) {
  const AddressSet set = addresses("[0.0.0.0/32,255.255.255.255,10.0.0.0/8,::,ffff::/16,1::-2::]");
  EXPECT_EQ(ranges::complement(ranges::complement(set.v4)), set.v4);
  EXPECT_EQ(ranges::complement(ranges::complement(set.v6)), set.v6);
  EXPECT_TRUE(ranges::intersection(set.v6, ranges::complement(set.v6)).empty());
}

TEST(Variables, HaveSuricatasDefaults) {
  for (const char* name :
       {"HOME_NET", "EXTERNAL_NET", "HTTP_SERVERS", "SMTP_SERVERS", "SQL_SERVERS", "DNS_SERVERS", "TELNET_SERVERS",
        "AIM_SERVERS", "DC_SERVERS", "DNP3_SERVER", "DNP3_CLIENT", "MODBUS_CLIENT", "MODBUS_SERVER", "ENIP_CLIENT",
        "ENIP_SERVER", "SIP_SERVERS", "SSH_SERVERS", "FTP_SERVERS"}) {
    EXPECT_FALSE(addresses(std::string("$") + name).v4.empty()) << name;
  }
  for (const char* name :
       {"HTTP_PORTS", "SHELLCODE_PORTS", "ORACLE_PORTS", "SSH_PORTS", "DNP3_PORTS", "MODBUS_PORTS", "FILE_DATA_PORTS",
        "FTP_PORTS", "GENEVE_PORTS", "VXLAN_PORTS", "TEREDO_PORTS", "SIP_PORTS"}) {
    EXPECT_FALSE(ports(std::string("$") + name).ranges.empty()) << name;
  }
}

}  // namespace
}  // namespace penstock::nids
