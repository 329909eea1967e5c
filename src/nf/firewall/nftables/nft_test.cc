// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Files in the syntax of nft. Skipped where nft or network namespaces are not available.

#include "nf/firewall/nftables/nft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/capabilities.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/digest.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::firewall::nftables {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(NftSyntax, IsKnownByItsFirstWords) {
  EXPECT_TRUE(is_nft_syntax("#!/usr/sbin/nft -f\n"));
  EXPECT_TRUE(is_nft_syntax("# rules\n\nflush ruleset\n"));
  EXPECT_TRUE(is_nft_syntax("define LAN = eth0\n"));
  EXPECT_TRUE(is_nft_syntax("\ttable inet filter {\n}\n"));
  EXPECT_TRUE(is_nft_syntax("include \"/etc/nftables.d/*.nft\"\n"));
  EXPECT_FALSE(is_nft_syntax(""));
  EXPECT_FALSE(is_nft_syntax("# only a comment\n"));
  EXPECT_FALSE(is_nft_syntax("#!/bin/sh\niptables -A FORWARD\n"));
  EXPECT_FALSE(is_nft_syntax("{\"nftables\": []}"));
  EXPECT_FALSE(is_nft_syntax("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"));
  EXPECT_FALSE(is_nft_syntax("@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\t0x0000/0x0000\n"));
  EXPECT_FALSE(is_nft_syntax("tables of rules\n"));
}

class NftFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto works = translate("add table inet penstock_probe\n", "probe");
    if (!works) GTEST_SKIP() << to_string(works.error());
    ASSERT_THAT(*works, HasSubstr("penstock_probe"));
  }
};

TEST_F(NftFile, HasDefinesAndMayBeginWithAFlush) {
  const auto rules = translate(
      "#!/usr/sbin/nft -f\nflush ruleset\ndefine web = { 80, 443 }\n"
      "table inet filter {\n chain forward {\n  type filter hook forward priority filter; policy drop;\n"
      "  tcp dport $web counter accept\n }\n}\n",
      "nftables.conf");
  ASSERT_TRUE(rules) << to_string(rules.error());
  const auto read = read_rules(*rules, "nftables.conf", {});
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->value.rules.size(), 1U);
  EXPECT_THAT(read->value.rules.front().text, HasSubstr("tcp dport { 80, 443 } counter accept"));
  EXPECT_EQ(read->value.ipv4_policy, classify::Target::drop);
}

TEST_F(NftFile, LeavesTheRulesOfTheHostAlone) {
  ASSERT_TRUE(translate("add table inet penstock_left_behind\n", "rules"));
  const auto again = translate("add table inet other\n", "rules");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_THAT(*again, Not(HasSubstr("penstock_left_behind")));
  if (!has_capability(Capability::net_admin)) return;
  const auto host = list_rules_of("");
  ASSERT_TRUE(host) << to_string(host.error());
  EXPECT_THAT(*host, Not(HasSubstr("penstock_left_behind")));
}

TEST_F(NftFile, IsTranslatedWithoutCapabilitiesToo) {
  Result<std::string> rules;
  std::thread([&] {
    ASSERT_EQ(keep_only({}), 0);
    rules = translate("add table inet t\n", "rules");
  }).join();
  if (!rules && to_string(rules.error()).find("namespace") != std::string::npos)
    GTEST_SKIP() << to_string(rules.error());
  ASSERT_TRUE(rules) << to_string(rules.error());
  EXPECT_THAT(*rules, HasSubstr("\"inet\""));
}

TEST_F(NftFile, HasMistakesWhereNftSeesThem) {
  const auto rules = translate("table inet t {\n chain c {\n  tcp dport no_such_port accept\n }\n}\n", "my.conf");
  ASSERT_FALSE(rules);
  EXPECT_THAT(to_string(rules.error()), StartsWith("my.conf:3:13: nft: Could not resolve service"));
}

TEST_F(NftFile, HasMistakesOfTheFilesThatItIncludes) {
  std::string folder = ::testing::TempDir() + "nft-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string more = folder + "/more: 1.nft";
  std::ofstream(more) << "table inet t {\n chain c {\n  bogus\n }\n}\n";
  const auto rules = translate("include \"" + more + "\"\n", "my.conf");
  ASSERT_FALSE(rules);
  EXPECT_THAT(to_string(rules.error()), AllOf(StartsWith(more + ":3:8: nft: syntax error"), Not(HasSubstr("stdin"))));
  static_cast<void>(::unlink(more.c_str()));
  static_cast<void>(::rmdir(folder.c_str()));
}

TEST_F(NftFile, IsReadByItsFormatOrItsContent) {
  std::string file = ::testing::TempDir() + "rules-XXXXXX";
  const int fd = ::mkstemp(file.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  std::ofstream(file)
      << "table ip t {\n chain c {\n  type filter hook forward priority 0\n  ip saddr 10.0.0.1 drop\n }\n}\n";
  const auto read = read_rule_file(file, {});
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->value.rules.size(), 1U);
  // A format that the text does not have.
  ReadOptions as_json;
  as_json.format = RuleFormat::nftables;
  EXPECT_FALSE(read_rule_file(file, as_json));
  std::ofstream(file) << "{\"nftables\": []}";
  ReadOptions as_nft;
  as_nft.format = RuleFormat::nft;
  const auto json = read_rule_file(file, as_nft);
  ASSERT_FALSE(json);
  EXPECT_THAT(to_string(json.error()), StartsWith(file + ":1:1: nft: syntax error"));
  static_cast<void>(::unlink(file.c_str()));
}

/// What is wrong with a firewall of these parameters, which could take the place of `running`.
std::string mistakes_of(const std::vector<std::pair<std::string, std::string>>& given,
                        const Firewall* running = nullptr) {
  std::vector<RawParameter> raw;
  for (const auto& [name, value] : given) {
    RawParameter& parameter = raw.emplace_back();
    parameter.name = name;
    parameter.items = {value};
  }
  const auto parameters = Parameters::read(firewall_kind().parameters, raw, {});
  if (!parameters) return to_string(parameters.error());
  function::NfContext context;
  context.running = running;
  const auto made = firewall_kind().make(*parameters, context);
  return made ? "" : to_string(made.error());
}

TEST(KernelRules, HaveNoFormatButTheirs) {
  EXPECT_THAT(mistakes_of({{"rules", "kernel"}, {"format", "iptables"}}),
              HasSubstr("the kernel's rules have one already: found 'iptables'"));
  EXPECT_THAT(mistakes_of({{"rules", "x.rules"}, {"netns", "gate"}}),
              HasSubstr("a network namespace, but the rules come from a file: found 'gate'"));
  EXPECT_THAT(mistakes_of({{"rules", "kernel"}, {"netns", "no-such-namespace"}}), HasSubstr("no-such-namespace"));
}

TEST(KernelRules, DoNotBecomeThoseOfAFileInAReload) {
  const auto running = [](std::optional<FromKernel> from) {
    return std::move(Firewall::build({}, classify::Engine::linear, {.from = std::move(from)}).value());
  };
  const auto of_file = running(std::nullopt), of_kernel = running(FromKernel{"gate", 0});
  const std::string other = "whether rules are the kernel's cannot change in a reload";
  EXPECT_THAT(mistakes_of({{"rules", "kernel"}}, of_file.get()), StartsWith(other));
  EXPECT_THAT(mistakes_of({{"rules", "x.rules"}}, of_kernel.get()), StartsWith(other));
  EXPECT_THAT(
      mistakes_of({{"rules", "kernel"}}, of_kernel.get()),
      StartsWith("the network namespace of `rules: kernel` cannot change in a reload: found '', expected 'gate'"));
}

/// Rules that somebody else reads.
class GivenRules final : public RuleSource {
 public:
  Result<std::string> read() override {
    return std::string(
        R"({"nftables": [{"table": {"family": "ip", "name": "t"}}, {"chain": {"family": "ip", "table": "t", )"
        R"("name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}]})");
  }
  void report(nlohmann::json& into) const override { into = {{"in_use", true}}; }
};

TEST(KernelRules, ComeFromTheSourceOfTheRunningFirewall) {
  GivenRules source;
  const auto running = std::move(Firewall::build({}, classify::Engine::linear, {.from = FromKernel{}}).value());
  running->set_source(&source);
  RawParameter rules;
  rules.name = "rules";
  rules.items = {"kernel"};
  function::NfContext context;
  context.running = running.get();
  const auto made = firewall_kind().make(Parameters::read(firewall_kind().parameters, {rules}, {}).value(), context);
  ASSERT_TRUE(made) << to_string(made.error());
  auto& next = static_cast<Firewall&>(**made);
  EXPECT_EQ(next.rules().ipv4_policy, classify::Target::drop);
  EXPECT_EQ(next.from_kernel()->digest, digest_of(source.read().value()));
  EXPECT_EQ(next.source(), nullptr);
  ASSERT_TRUE(next.take_over(*running));
  EXPECT_EQ(next.source(), &source);
  nlohmann::json report;
  next.report(report);
  EXPECT_EQ(report["kernel"]["in_use"], true);
  EXPECT_THAT(next.description(), StartsWith("0 rules of the kernel"));
}

TEST(KernelRules, NeedACapability) {
  std::thread([] {
    ASSERT_EQ(keep_only({}), 0);
    const auto rules = list_rules();
    ASSERT_FALSE(rules);
    EXPECT_THAT(to_string(rules.error()),
                AllOf(StartsWith("cannot read the kernel's rules: expected the capability CAP_NET_ADMIN"),
                      HasSubstr("setcap")));
  }).join();
}

TEST(KernelRules, AreThoseOfAnExistingNamespace) {
  const auto rules = list_rules_of("no-such-namespace");
  ASSERT_FALSE(rules);
  EXPECT_THAT(to_string(rules.error()), HasSubstr("/run/netns/no-such-namespace"));
}

}  // namespace
}  // namespace penstock::firewall::nftables
