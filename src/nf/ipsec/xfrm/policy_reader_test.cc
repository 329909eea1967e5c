// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/xfrm/policy_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace penstock::ipsec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Texts are printed by iproute2 6.1, including spaces at line ends.

constexpr std::string_view kProtect =
    "src 10.1.0.0/16 dst 10.2.0.0/16 \n"
    "\tdir out priority 371327 ptype main \n"
    "\ttmpl src 192.0.2.1 dst 198.51.100.7\n"
    "\t\tproto esp spi 0xc1a2b3d4 reqid 17 mode tunnel\n";

constexpr std::string_view kSocket =
    "src 0.0.0.0/0 dst 0.0.0.0/0 \n"
    "\tsocket in priority 0 ptype main \n"
    "src ::/0 dst ::/0 \n"
    "\tsocket out priority 0 ptype main \n";

Read<Policies> read(std::string_view text) {
  auto policies = parse_policies(text, "policy.txt");
  EXPECT_TRUE(policies) << to_string(policies.error());
  return policies ? *std::move(policies) : Read<Policies>{};
}

/// Parses a text with one policy and nothing unsupported.
Policy read_one(std::string_view text) {
  Read<Policies> policies = read(text);
  EXPECT_THAT(policies.unsupported, IsEmpty()) << to_string(policies.unsupported);
  EXPECT_THAT(policies.value, SizeIs(1));
  return policies.value.empty() ? Policy{} : std::move(policies.value.front());
}

std::string error_of(std::string_view text) {
  const auto policies = parse_policies(text, "policy.txt");
  return policies ? "" : to_string(policies.error());
}

/// The message for a text whose only policy asks for something unsupported; the policy must block all that it selects.
std::string blocked(std::string_view text) {
  const Read<Policies> policies = read(text);
  EXPECT_THAT(policies.value, SizeIs(1));
  EXPECT_TRUE(std::ranges::all_of(policies.value, [](const Policy& policy) {
    return policy.action == PolicyAction::block && policy.templates.empty();
  }));
  return to_string(policies.unsupported);
}

/// The message for a text whose only policy is skipped.
std::string left_out(std::string_view text) {
  const Read<Policies> policies = read(text);
  EXPECT_THAT(policies.value, IsEmpty());
  EXPECT_TRUE(policies.harmless.empty() || policies.unsupported.empty());
  return to_string(policies.harmless.empty() ? policies.unsupported : policies.harmless);
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string_view::npos) << what;
  return std::string(text.substr(0, at)) + std::string(by) + std::string(text.substr(at + what.size()));
}

Selector selector_of(std::string_view selector) {
  return read_one(fmt::format("{} \n\tdir out priority 0 ptype main \n", selector)).selector;
}

TEST(PolicyReader, ReadsATunnelsPolicy) {
  const Policy policy = read_one(kProtect);
  EXPECT_EQ(policy.direction, Direction::out);
  EXPECT_EQ(policy.action, PolicyAction::allow);
  EXPECT_EQ(to_string(policy.selector.source), "10.1.0.0/16");
  EXPECT_EQ(to_string(policy.selector.destination), "10.2.0.0/16");
  EXPECT_EQ(policy.selector.protocol, 0);
  EXPECT_EQ(policy.priority, 371327U);
  EXPECT_EQ(policy.index, 0U);
  EXPECT_FALSE(policy.icmp);
  EXPECT_EQ(policy.line, 1U);
  EXPECT_THAT(policy.templates, ElementsAre(Template{Ipv4Address{0xc0000201}, Ipv4Address{0xc6336407}, 0xc1a2b3d4, 17,
                                                     Mode::tunnel, false}));
}

TEST(PolicyReader, ReadsTransportOfIpv6ThatMayGoWithout) {
  const Policy policy = read_one(
      "src ::/0 dst 2001:db8::/32 proto tcp sport 80 dport 443 \n"
      "\tdir fwd priority 9 ptype main \n"
      "\ttmpl src :: dst ::\n"
      "\t\tproto esp reqid 0 mode transport\n"
      "\t\tlevel use \n");
  EXPECT_EQ(policy.direction, Direction::forward);
  EXPECT_EQ(policy.selector.source_port, 80);
  EXPECT_EQ(policy.selector.destination_port, 443);
  EXPECT_THAT(policy.templates, ElementsAre(Template{Ipv6Address{}, Ipv6Address{}, 0, 0, Mode::transport, true}));
}

TEST(PolicyReader, ReadsSelectors) {
  const Selector icmp = selector_of("src 10.0.0.0/8 dst 10.0.0.2/32 proto icmp type 8 code 0");
  EXPECT_EQ(icmp.protocol, 1);
  EXPECT_EQ(icmp.source_port, 8);
  EXPECT_EQ(icmp.destination_port, 0);
  const Selector icmp6 = selector_of("src ::/0 dst ::/0 proto ipv6-icmp type 135");
  EXPECT_EQ(icmp6.protocol, 58);
  EXPECT_EQ(icmp6.source_port, 135);
  EXPECT_EQ(icmp6.destination_port, std::nullopt);
  const Selector gre = selector_of("src 10.0.0.0/8 dst 0.0.0.0/0 proto gre key 65538");
  EXPECT_EQ(gre.protocol, 47);
  EXPECT_EQ(gre.source_port, 1);
  EXPECT_EQ(gre.destination_port, 2);
  const Selector mobility = selector_of("src ::/0 dst ::/0 proto mobility-header type 5 (dport) 0x0000");
  EXPECT_EQ(mobility.protocol, 135);
  EXPECT_EQ(mobility.source_port, 5);
  const Selector numbered = selector_of("src 10.0.0.0/8 dst 0.0.0.0/0 proto 200 dport 53 dev eth0");
  EXPECT_EQ(numbered.protocol, 200);
  EXPECT_EQ(numbered.source_port, std::nullopt);
  EXPECT_EQ(numbered.destination_port, 53);
  EXPECT_EQ(numbered.device, "eth0");
  // The kernel compares only the prefix's bits and ignores host bits.
  EXPECT_EQ(to_string(selector_of("src 10.1.2.3/8 dst 0.0.0.0/0").source), "10.0.0.0/8");
  EXPECT_EQ(to_string(selector_of("src 2001:db8::1/32 dst ::/0").source), "2001:db8::/32");
}

TEST(PolicyReader, ReadsWhatIpDashSPrints) {
  const Policy policy = read_one(
      "src 10.0.0.0/8 dst 10.0.0.0/8 uid 0\n"
      "\tdir in action allow index 8 priority 4294967295 ptype main share any flag localok icmp (0x00000011)\n"
      "\tlifetime config:\n"
      "\t  limit: soft (INF)(bytes), hard 77(bytes)\n"
      "\t  limit: soft (INF)(packets), hard (INF)(packets)\n"
      "\t  expire add: soft 0(sec), hard 30(sec)\n"
      "\t  expire use: soft 0(sec), hard 0(sec)\n"
      "\tlifetime current:\n"
      "\t  5(bytes), 6(packets)\n"
      "\t  add 2026-11-21 16:56:05 use 2026-11-21 16:56:06\n"
      "\ttmpl src 10.0.0.1 dst 10.0.0.2\n"
      "\t\tproto esp spi 0x00000000(0) reqid 1(0x00000001) mode tunnel\n"
      "\t\tlevel required share any \n"
      "\t\tenc-mask ffffffff auth-mask ffffffff comp-mask ffffffff\n");
  EXPECT_EQ(policy.direction, Direction::in);
  EXPECT_EQ(policy.index, 8U);
  EXPECT_EQ(policy.priority, 4294967295U);
  EXPECT_TRUE(policy.icmp);
  EXPECT_EQ(policy.lifetimes.hard, (Lifetime{77, kUnlimited, 30, 0}));
  EXPECT_EQ(policy.lifetimes.bytes, 5U);
  ASSERT_TRUE(policy.lifetimes.added && policy.lifetimes.first_used);
  EXPECT_EQ(*policy.lifetimes.first_used - *policy.lifetimes.added, 1);
  ASSERT_THAT(policy.templates, SizeIs(1));
  EXPECT_EQ(policy.templates[0].spi, 0U);
  EXPECT_EQ(policy.templates[0].reqid, 1U);
  EXPECT_FALSE(policy.templates[0].optional);
}

TEST(PolicyReader, ReadsWhatIpDashOPrints) {
  std::string text(kProtect);
  std::replace(text.begin(), text.end(), '\n', '\\');
  const auto policies = read(text + "\n" + text + "\n");
  ASSERT_THAT(policies.value, SizeIs(2));
  EXPECT_THAT(policies.value[0].templates, SizeIs(1));
}

/// That the kernel does so is tested in xfrm_interop_test.cc.
TEST(PolicyReader, OrdersPoliciesAsTheKernelTriesThem) {
  std::string text;
  for (const auto& [priority, action] : {std::pair{5, "action block "}, {7, ""}, {5, ""}, {0, ""}, {7, ""}}) {
    text += fmt::format("src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out {}priority {} ptype main \n", action, priority);
  }
  std::vector<std::uint32_t> lines;
  for (const Policy& policy : read(text).value) lines.push_back(policy.line);
  EXPECT_THAT(lines, ElementsAre(7, 5, 1, 9, 3));
}

TEST(PolicyReader, KeepsSeveralTemplatesInTheirOrder) {
  const auto policy = read_one(std::string(kProtect) +
                               "\ttmpl src 0.0.0.0 dst 0.0.0.0\n"
                               "\t\tproto esp reqid 3 mode transport\n");
  ASSERT_THAT(policy.templates, SizeIs(2));
  EXPECT_EQ(policy.templates[1].reqid, 3U);
}

TEST(PolicyReader, BlocksWhatItCannotProtectAsAsked) {
  const auto by = [](std::string_view what, std::string_view with) { return blocked(replaced(kProtect, what, with)); };
  EXPECT_EQ(by("proto esp", "proto ah"),
            "policy.txt:4:9: only ESP is supported: packets that this policy selects are dropped: found "
            "'ah'");
  EXPECT_THAT(by("proto esp", "proto comp"), HasSubstr("'comp'"));
  EXPECT_THAT(by("proto esp", "proto ipsec-any"), HasSubstr("'ipsec-any'"));
  EXPECT_THAT(by("mode tunnel", "mode beet"), HasSubstr("4:42: only transport and tunnel mode"));
  EXPECT_THAT(by("mode tunnel", "mode iptfs"), HasSubstr("'iptfs'"));
  EXPECT_THAT(by("ptype main", "ptype sub"), HasSubstr("only policies of type main"));
  EXPECT_THAT(by("\tdir", "\tsecurity context system_u:object_r:x:s0 \n\tdir"),
              HasSubstr("security labels are not supported"));
  EXPECT_THAT(
      by("10.2.0.0/16", "10.2.0.0/16 new-thing 5"),
      HasSubstr("1:33: unknown word in a policy: packets that this policy selects are dropped: found 'new-thing'"));
  EXPECT_THAT(by("ptype main", "ptype main flag 8"), HasSubstr("unknown word"));
  // Of two reasons, the first is reported.
  EXPECT_THAT(by("esp spi 0xc1a2b3d4 reqid 17 mode tunnel", "ah reqid 17 mode ro"), ::testing::Not(HasSubstr("\n")));
}

TEST(PolicyReader, TriesTheSecondTableFirst) {
  const auto policies = read(
      "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
      "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 9 ptype sub \n");
  ASSERT_THAT(policies.value, SizeIs(2));
  EXPECT_EQ(policies.value[0].action, PolicyAction::block);
  EXPECT_EQ(policies.value[0].priority, 9U);
}

TEST(PolicyReader, LeavesOutSocketsMarksAndInterfaces) {
  EXPECT_EQ(left_out(kSocket), "policy.txt:2:2: socket policies are left out (2): found 'socket'");
  EXPECT_THAT(read(kSocket).unsupported, IsEmpty()) << "forwarded packets belong to no socket";
  EXPECT_THAT(left_out(std::string(kProtect) + "\tmark 0x3/0xff \n"),
              HasSubstr("5:2: marks are not supported: this policy is left out"));
  EXPECT_THAT(left_out(std::string(kProtect) + "\tif_id 0x9\n"), HasSubstr("xfrm interfaces are not supported"));
  read_one(std::string(kProtect) + "\tmark 0/0xff \n");
}

TEST(PolicyReader, PassesOverWhatIsOfTheKernelAlone) {
  read_one(replaced(kProtect, "ptype main ", "ptype main flag localok 4") +
           "\tcrypto offload parameters: dev eth0 dir out mode packet\n");
}

TEST(PolicyReader, TellsAllMistakesWithTheirPlaces) {
  EXPECT_EQ(error_of("src 10.0.0.0/33 dst 10.0.0.0/8 \n"
                     "src 10.0.0.0 dst 10.0.0.0/8 \n"
                     "src 10.0.0.0/8 dst ::/0 \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 proto tpc \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 proto udp sport 65536 \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 \n\tdir up \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 \n\tdir out dir in \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 \n\tdir out action drop \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 \n\tdir out priority -1 \n"
                     "src 10.0.0.0/8 dst 10.0.0.0/8 \n\tdir out priority 1 \n\ttmpl src 10.0.0.1 dst ::1\n"),
            "policy.txt:1:5: not a prefix: found '10.0.0.0/33', expected ADDRESS/LENGTH\n"
            "policy.txt:2:5: not a prefix: found '10.0.0.0', expected ADDRESS/LENGTH\n"
            "policy.txt:3:20: source and destination are of different address families: found '::/0', expected "
            "prefixes of one family\n"
            "policy.txt:4:37: unknown protocol: found 'tpc', expected a name such as tcp, or 0 to 255\n"
            "policy.txt:5:47: not a port or type: found '65536', expected 0 to 65535\n"
            "policy.txt:6: a policy without a direction: expected dir out, in or fwd\n"
            "policy.txt:8:6: not a direction: found 'up', expected out, in or fwd\n"
            "policy.txt:10:14: a second direction: found 'in', expected one per policy\n"
            "policy.txt:12:17: not an action: found 'drop', expected allow or block\n"
            "policy.txt:14:19: not a priority: found '-1', expected 0 to 4294967295\n"
            "policy.txt:17:24: source and destination are of different address families: found '::1', expected "
            "addresses of one family");
  EXPECT_THAT(error_of(replaced(kProtect, "reqid 17 mode tunnel", "reqid 17")), HasSubstr("the policy is incomplete"));
  EXPECT_THAT(error_of(std::string(kProtect) + "\t\tlevel maybe \n"), HasSubstr("not a template level"));
  EXPECT_THAT(error_of("hello\n" + std::string(kProtect)), HasSubstr("not the start of an `ip xfrm` policy"));
}

TEST(PolicyReader, RefusesAFileWithoutPolicies) {
  const std::string path = ::testing::TempDir() + "/policy_reader_test_" + std::to_string(::getpid());
  const auto read_file = [&](std::string_view text) {
    std::ofstream(path) << text;
    const auto policies = read_policies(path);
    return policies ? "" : to_string(policies.error());
  };
  EXPECT_EQ(read_file("# none\n"), path + ": no policies in this file: expected output of `ip xfrm policy`");
  EXPECT_EQ(read_file(kSocket), "");
  EXPECT_EQ(read_file(kProtect), "");
  std::filesystem::remove(path);
  EXPECT_THAT(to_string(read_policies(path).error()), HasSubstr(path));
}

TEST(PolicyReader, ReadsTenThousandPolicies) {
  std::string text;
  for (unsigned i = 0; i < 10'000; ++i) {
    text += replaced(kProtect, "priority 371327", fmt::format("priority {}", 10'000 - i));
  }
  const auto policies = read(text);
  ASSERT_THAT(policies.value, SizeIs(10'000));
  EXPECT_EQ(policies.value.front().priority, 1U);
}

TEST(PolicyReader, RefusesMorePoliciesThanTheBound) {
  const std::string text(kSocket);
  EXPECT_TRUE(parse_policies(text, "policy.txt", 2));
  const auto refused = parse_policies(text, "policy.txt", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "policy.txt:3: too many policy entries: found more than 1, expected at most 1 (most_entries raises it)");
}

}  // namespace
}  // namespace penstock::ipsec
