// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/classbench_reader.h"

#include <gmock/gmock.h>

#include "nf/firewall/rules_for_test.h"

namespace penstock::firewall {
namespace {

using ::testing::HasSubstr;

TEST(ClassBenchReader, FirstOfTwoMatchingRulesDecides) {
  const classify::Ruleset rules = rules_of(
      "@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t80 : 90\t0x06/0xFF\t0x0000/0x0000\t\n"
      "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\t\n");
  EXPECT_EQ(decide(rules, tuple("10.1.1.1 192.0.2.1 tcp 1 90")), "0 accept");
  EXPECT_EQ(decide(rules, tuple("10.1.1.1 192.0.2.1 tcp 1 91")), "1 accept");
  EXPECT_EQ(decide(rules, tuple("10.1.1.1 192.0.2.2 tcp 1 90")), "1 accept");
  EXPECT_EQ(decide(rules, tuple("10.1.1.1 192.0.2.1 udp 1 90")), "1 accept");
  EXPECT_EQ(decide(rules, tuple("11.1.1.1 192.0.2.1 tcp 1 90")), "1 accept");
}

TEST(ClassBenchReader, DropsUnmatchedPacketsByDefault) {
  const classify::Ruleset rules = rules_of("@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n");
  EXPECT_EQ(decide(rules, tuple("11.0.0.1 1.1.1.1 tcp 1 1")), "- drop");
}

TEST(ClassBenchReader, TargetAndPolicyAreTheUsersChoice) {
  ReadOptions options;
  options.match = classify::Target::drop;
  options.policy = classify::Target::accept;
  const classify::Ruleset rules =
      rules_of("@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n", options);
  EXPECT_EQ(decide(rules, tuple("10.0.0.1 1.1.1.1 tcp 1 1")), "0 drop");
  EXPECT_EQ(decide(rules, tuple("11.0.0.1 1.1.1.1 tcp 1 1")), "- accept");
}

TEST(ClassBenchReader, ReadsIpv6Prefixes) {
  const classify::Ruleset rules = rules_of("@2001:db8::/33 ff00::/8 0 : 65535 53 : 53 0x11/0xFF 0x0000/0x0000\n");
  EXPECT_EQ(decide(rules, tuple("2001:db8:7fff:ffff:ffff:ffff:ffff:ffff ff02::1 udp 9 53")), "0 accept");
  EXPECT_EQ(decide(rules, tuple("2001:db8:8000:: ff02::1 udp 9 53")), "- drop");
}

TEST(ClassBenchReader, PacketsOfTheOtherFamilyDoNotMatchAWildcard) {
  const classify::Ruleset rules = rules_of("@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n");
  EXPECT_EQ(decide(rules, tuple("::1 ::2 tcp 1 1")), "- drop");
}

TEST(ClassBenchReader, HighByteOfTheFlagsColumnIsTheTcpFlagsByte) {
  // SYN without ACK.
  const classify::Ruleset rules = rules_of("@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0200/0x1200\n");
  const classify::Key key = tuple("1.1.1.1 2.2.2.2 tcp 1 1");
  EXPECT_EQ(decide(rules, with_detail(key, 0x02)), "0 accept");
  EXPECT_EQ(decide(rules, with_detail(key, 0xc2)), "0 accept");
  EXPECT_EQ(decide(rules, with_detail(key, 0x12)), "- drop");
  EXPECT_EQ(decide(rules, with_detail(key, 0x10)), "- drop");
  EXPECT_EQ(decide(rules, key), "0 accept") << "a tuple does not tell its flags";
}

TEST(ClassBenchReader, FlagsColumnOfIcmpIsTypeAndCode) {
  const classify::Ruleset rules = rules_of("@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x01/0xFF 0x0800/0xff00\n");
  EXPECT_EQ(decide(rules, with_detail(tuple("1.1.1.1 2.2.2.2 icmp 0 0"), 0x0800)), "0 accept");
  EXPECT_EQ(decide(rules, with_detail(tuple("1.1.1.1 2.2.2.2 icmp 0 0"), 0x0000)), "- drop");
}

TEST(ClassBenchReader, LaterFragmentsMatchWildcardPortsOnly) {
  const classify::Ruleset rules = rules_of(
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65534 0x06/0xFF 0x0000/0x0000\n"
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0200/0x0200\n"
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0000/0x0000\n");
  EXPECT_EQ(decide(rules, later_fragment(tuple("1.1.1.1 2.2.2.2 tcp 1 1"))), "2 accept");
}

TEST(ClassBenchReader, FlagsColumnMayBeAbsent) {
  const classify::Ruleset rules = rules_of("@0.0.0.0/0 0.0.0.0/0 0 : 65535 22 : 22 0x06/0xFF\n");
  EXPECT_EQ(decide(rules, tuple("1.1.1.1 2.2.2.2 tcp 1 22")), "0 accept");
}

TEST(ClassBenchReader, LeavesOutARuleWithFlagsForAProtocolWithoutFlags) {
  const auto read = read_rules("@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x11/0xFF 0x0200/0x0200\n", "rules", {});
  ASSERT_TRUE(read);
  ASSERT_EQ(read->unsupported.size(), 1U);
  EXPECT_THAT(to_string(read->unsupported), HasSubstr("rules:1:"));
  EXPECT_TRUE(read->value.entries.empty());
  EXPECT_TRUE(read->value.rules[0].left_out);
}

TEST(ClassBenchReader, EveryErrorIsReportedWithItsPlace) {
  const std::string errors = errors_of(
      "@10.0.0.0/33 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0000/0x0000\n"
      "@10.0.0.0/8 ::/0 0 : 65535 0 : 65535 0x06/0xFF 0x0000/0x0000\n"
      "@10.0.0.0/8 0.0.0.0/0 0 : 65536 0 : 65535 0x06/0xFF 0x0000/0x0000\n"
      "@10.0.0.0/8 0.0.0.0/0 9 : 8 0 : 65535 0x06/0xFF 0x0000/0x0000\n"
      "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x106/0xFF 0x0000/0x0000\n"
      "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0000\n"
      "@10.0.0.0/8 0.0.0.0/0 0 65535 0 : 65535 0x06/0xFF 0x0000/0x0000\n");
  EXPECT_THAT(errors, HasSubstr("rules:1:2: wrong address: found '10.0.0.0/33', expected an IPv4 or IPv6 prefix"));
  EXPECT_THAT(errors, HasSubstr("rules:2:13: source and destination are of different address families"));
  EXPECT_THAT(errors, HasSubstr("rules:3:27: wrong port: found '65536', expected a number up to 65535"));
  EXPECT_THAT(errors, HasSubstr("rules:4:27: a port range that ends before it begins"));
  EXPECT_THAT(errors, HasSubstr("rules:5:43: wrong protocol: found '0x106/0xFF'"));
  EXPECT_THAT(errors, HasSubstr("rules:6:53: wrong flags: found '0x0000'"));
  EXPECT_THAT(errors, HasSubstr("rules:7:1: not a ClassBench rule"));
}

TEST(ClassBenchReader, ReportsAHundredErrorsAndTheNumberOfOthers) {
  std::string text = "@\n";
  for (int i = 0; i < 250; ++i) text += "nonsense\n";
  const auto read = read_rules(text, "rules", {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().size(), 101U);
  EXPECT_EQ(read.error().back().message, "… and 151 more");
}

TEST(RuleReader, RefusesAFileOfAnUnknownFormat) {
  EXPECT_THAT(errors_of("# comment\n\nallow all\n"),
              HasSubstr("rules:3: unknown rule format: found 'allow all', expected output of iptables-save"));
  EXPECT_THAT(errors_of("\n"), HasSubstr("no rules in the file"));
}

TEST(ClassBenchReader, HasNoChains) {
  ReadOptions options;
  options.chain = "FORWARD";
  EXPECT_EQ(errors_of("@1.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF\n", options),
            "rules: `chain` is set, but ClassBench rules have no chains: found 'FORWARD', expected "
            "iptables rules, or no `chain`");
}

}  // namespace
}  // namespace penstock::firewall
