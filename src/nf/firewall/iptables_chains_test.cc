// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_chains.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/firewall/rules_for_test.h"

namespace penstock::firewall {
namespace {

using ::testing::HasSubstr;

std::string table(const std::string& chains, const std::string& rules) {
  return "*filter\n:FORWARD DROP [0:0]\n" + chains + rules + "COMMIT\n";
}

ReadOptions with_most_rules(std::size_t most) {
  ReadOptions options;
  options.most_rules = most;
  return options;
}

/// FORWARD calls c0, c0 calls c1 …; the last chain accepts. `match(i)` is the condition of each call.
template <typename Match>
std::string deep_table(int depth, Match match) {
  std::string chains, rules = "-A FORWARD -j c0\n";
  for (int i = 0; i < depth; ++i) {
    chains += fmt::format(":c{} - [0:0]\n", i);
    rules +=
        i + 1 < depth ? fmt::format("-A c{} {} -j c{}\n", i, match(i), i + 1) : fmt::format("-A c{} -j ACCEPT\n", i);
  }
  return table(chains, rules);
}

TEST(IptablesChains, MayBeNestedToAnyDepth) {
  const classify::Ruleset rules = rules_of(deep_table(50'000, [](int) { return "-p tcp"; }));
  EXPECT_EQ(rules.entries.size(), 1U);
  EXPECT_EQ(rules.conditions.size(), 1U) << "equal conditions are kept once";
  EXPECT_EQ(decide(rules, tuple("1.1.1.1 2.2.2.2 tcp 1 1")), "50000 accept");
  EXPECT_EQ(decide(rules, tuple("1.1.1.1 2.2.2.2 udp 1 1")), "- drop");
}

TEST(IptablesChains, WithTooManyConditionsAlongTheCallsAreRefused) {
  const auto rules_with = [](int conditions) {
    return deep_table(conditions + 1, [](int i) { return fmt::format("! -s 10.0.{}.{}/32", i / 256, i % 256); });
  };
  EXPECT_EQ(decide(rules_of(rules_with(1024)), tuple("1.1.1.1 2.2.2.2 tcp 1 1")), "1025 accept");
  EXPECT_EQ(errors_of(rules_with(1025)),
            "rules:2054: too many conditions along a chain of calls: found more than 1,024, expected at most 1,024");
}

/// `depth` chains, each of which calls the next one twice: 2^depth paths. None of them has an entry.
std::string doubling_table(int depth) {
  std::string chains, rules = "-A FORWARD -j c0\n";
  for (int i = 0; i < depth; ++i) {
    chains += fmt::format(":c{} - [0:0]\n", i);
    for (int twice = 0; twice < 2; ++twice) rules += fmt::format("-A c{} -j c{}\n", i, i + 1);
  }
  return table(chains + fmt::format(":c{} - [0:0]\n", depth), rules);
}

TEST(IptablesChains, ThatMultiplyAreRefusedAtTheFirstRuleOverTheLimit) {
  EXPECT_EQ(
      errors_of(doubling_table(40)),
      "rules:121: too many rules after expanding the chains called here: found more than 1,000,000, expected at most "
      "1,000,000 (most_rules raises it)");
  // FORWARD's rule and 2 + 4 + … + 2^9 calls.
  EXPECT_EQ(errors_of(doubling_table(9), with_most_rules(1023)), "read without an error");
  EXPECT_THAT(errors_of(doubling_table(9), with_most_rules(1022)), HasSubstr("found more than 1,022"));
}

TEST(IptablesChains, CountRulesThatAreLeftOutForEachCall) {
  std::string rules = "-A c -m unknown -j DROP\n";
  for (int i = 0; i < 100; ++i) rules += "-A FORWARD -j c\n";
  EXPECT_EQ(errors_of(table(":c - [0:0]\n", rules), with_most_rules(200)), "read without an error");
  EXPECT_THAT(errors_of(table(":c - [0:0]\n", rules), with_most_rules(199)), HasSubstr("too many rules"));
}

TEST(IptablesChains, CalledFromManyPlacesAreExpandedAtEach) {
  std::string chains = ":logdrop - [0:0]\n", rules = "-A logdrop -p tcp -j REJECT\n-A logdrop -j DROP\n";
  for (int i = 0; i < 20'000; ++i) {
    rules += fmt::format("-A FORWARD -s 10.{}.{}.0/24 -j logdrop\n", i / 256, i % 256);
  }
  const classify::Ruleset read = rules_of(table(chains, rules));
  EXPECT_EQ(read.entries.size(), 40'000U);
  EXPECT_EQ(decide(read, tuple("10.78.31.1 2.2.2.2 tcp 1 1")), "0 reject");
  EXPECT_EQ(decide(read, tuple("10.78.31.1 2.2.2.2 udp 1 1")), "1 drop");
  EXPECT_EQ(decide(read, tuple("10.78.32.1 2.2.2.2 udp 1 1")), "- drop");
}

TEST(IptablesReader, RefusesAFileWithTooManyLines) {
  std::string rules;
  for (int i = 0; i < 10; ++i) rules += "-A FORWARD -p tcp -j ACCEPT\n";
  // The table, its chain and COMMIT count as lines; the comment does not.
  EXPECT_EQ(errors_of("# a comment\n" + table("", rules), with_most_rules(13)), "read without an error");
  EXPECT_EQ(errors_of("# a comment\n" + table("", rules), with_most_rules(12)),
            "rules:14: too many rules: found more than 12, expected at most 12 (most_rules raises it)");
}

TEST(IptablesReader, CountsARuleWithListsAsTheRulesItExpandsTo) {
  const std::string rules = "-A FORWARD -s 1.1.1.1,2.2.2.2 -d 3.3.3.3,4.4.4.4,5.5.5.5 -j ACCEPT\n";
  EXPECT_EQ(errors_of(table("", rules), with_most_rules(9)), "read without an error");
  EXPECT_THAT(errors_of(table("", rules), with_most_rules(8)), HasSubstr("too many rules"));
}

TEST(IptablesReader, BoundsTheConditionsOfARule) {
  std::string rule = "-A FORWARD -p tcp";  // each `-m tcp` is a condition
  for (int i = 0; i < 1023; ++i) rule += " -m tcp";
  EXPECT_EQ(errors_of(table("", rule + " -j ACCEPT\n")), "read without an error");
  EXPECT_THAT(errors_of(table("", rule + " -m tcp -j ACCEPT\n")),
              HasSubstr("too many conditions in a rule: found 'tcp', expected at most 1024"));
  EXPECT_EQ(errors_of(table("", rule + " -j ACCEPT\n"), with_most_rules(131)), "read without an error");
  EXPECT_THAT(errors_of(table("", rule + " -j ACCEPT\n"), with_most_rules(130)), HasSubstr("too many rules"))
      << "it counts as 1024 / 8 rules, beside the table, its chain and COMMIT";
}

TEST(ClassBenchReader, RefusesAFileWithTooManyRules) {
  const std::string rule = "@1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 0x06/0xFF\n";
  EXPECT_EQ(errors_of(rule + rule, with_most_rules(2)), "read without an error");
  EXPECT_EQ(errors_of(rule + rule + rule, with_most_rules(2)),
            "rules:3: too many rules: found more than 2, expected at most 2 (most_rules raises it)");
}

/// Evaluates chains as iptables(8) describes, recursively on the rules themselves.
struct Walk {
  struct OwnRule {
    std::uint32_t index = 0;
    int source = -1;    // the packet's source; -1: any
    int protocol = -1;  // the packet's protocol; -1: any
    enum class Jump { accept, drop, reject, give_back, call, go } jump = Jump::accept;
    std::size_t chain = 0;
  };
  std::vector<std::vector<OwnRule>> chains;

  /// The rule that decides; empty if the chain ends without one.
  [[nodiscard]] std::optional<std::uint32_t> decide(std::size_t chain, int source, int protocol) const {
    for (const OwnRule& rule : chains[chain]) {
      if ((rule.source >= 0 && rule.source != source) || (rule.protocol >= 0 && rule.protocol != protocol)) continue;
      using Jump = OwnRule::Jump;
      if (rule.jump < Jump::give_back) return rule.index;
      if (rule.jump == Jump::give_back) return std::nullopt;
      const auto inner = decide(rule.chain, source, protocol);
      if (inner || rule.jump == Jump::go) return inner;
    }
    return std::nullopt;
  }
};

TEST(IptablesChains, DecideAsAWalkThroughThemDoes) {
  constexpr const char* kTargets[] = {"-j ACCEPT", "-j DROP", "-j REJECT", "-j RETURN", "-j", "-g"};
  for (unsigned seed = 0; seed < penstock::testing::rounds(100); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    Walk walk;
    walk.chains.resize(6);  // the first is FORWARD; each calls only later ones
    std::string chains, rules;
    for (std::size_t c = 1; c < walk.chains.size(); ++c) chains += fmt::format(":c{} - [0:0]\n", c);
    std::uint32_t index = 0;
    for (std::size_t c = 0; c < walk.chains.size(); ++c) {
      for (std::uint32_t n = below(6); n > 0; --n) {
        const bool is_last = c + 1 == walk.chains.size();
        Walk::OwnRule rule{index++, static_cast<int>(below(5)) - 1, static_cast<int>(below(3)) - 1,
                           static_cast<Walk::OwnRule::Jump>(below(is_last ? 4 : 6)), 0};
        rules += c == 0 ? "-A FORWARD" : fmt::format("-A c{}", c);
        if (rule.source >= 0) rules += fmt::format(" -s 10.0.0.{}", rule.source);
        if (rule.protocol >= 0) rules += rule.protocol == 0 ? " -p tcp" : " -p udp";
        rules += fmt::format(" {}", kTargets[static_cast<int>(rule.jump)]);
        if (rule.jump >= Walk::OwnRule::Jump::call) {
          rule.chain = c + 1 + below(static_cast<std::uint32_t>(walk.chains.size() - c - 1));
          rules += fmt::format(" c{}", rule.chain);
        }
        rules += '\n';
        walk.chains[c].push_back(rule);
      }
    }
    const classify::Ruleset read = rules_of(table(chains, rules));
    for (int packet = 0; packet < 8; ++packet) {
      const auto expected = walk.decide(0, packet / 2, packet % 2);
      const std::string got =
          decide(read, tuple(fmt::format("10.0.0.{} 2.2.2.2 {} 1 1", packet / 2, packet % 2 == 0 ? "tcp" : "udp")));
      EXPECT_EQ(got.substr(0, got.find(' ')), expected ? std::to_string(*expected) : "-") << rules << packet;
    }
  }
}

}  // namespace
}  // namespace penstock::firewall
