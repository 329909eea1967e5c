// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/workload.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <set>
#include <vector>

#include "classify/classifier.h"
#include "nf/firewall/rule_reader.h"
#include "nf/firewall/tuple_reader.h"
#include "nf/router/devices.h"
#include "nf/router/route_reader.h"

namespace penstock::experiments {
namespace {

TEST(Workload, GivesRoutesThatTheReaderAccepts) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{1000}, std::size_t{20'000}}) {
    router::Devices devices;
    const auto read = router::parse_routes(routes_text(count, "lan"), "routes", devices);
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
    EXPECT_EQ(read->value.v4.size(), count) << "each prefix once";
    EXPECT_EQ(read->value.v4.front().prefix, Ipv4Prefix{}) << "the default route";
    EXPECT_EQ(devices.list(), "lan");
    EXPECT_EQ(read->value.next_hops.group_count(), std::min<std::size_t>(count, 250));
  }
}

TEST(Workload, GivesAFullTableWithTheLengthsOfARealOne) {
  constexpr std::size_t kFull = 1'000'000;
  const std::vector<Ipv4Prefix> prefixes = route_prefixes(kFull);
  ASSERT_EQ(prefixes.size(), kFull);
  EXPECT_EQ(std::set<Ipv4Prefix>(prefixes.begin(), prefixes.end()).size(), kFull);
  std::array<double, 33> shares{};
  for (const Ipv4Prefix& prefix : prefixes) {
    shares[prefix.length] += 1.0 / kFull;
    if (prefix.length == 0) continue;
    const std::uint32_t first = prefix.address.bits >> 24;
    ASSERT_TRUE(first > 0 && first < 224 && first != 10 && first != 127) << to_string(prefix);
    ASSERT_EQ(prefix.address.bits & ~ipv4_mask(prefix.length), 0U);
  }
  EXPECT_NEAR(shares[24], 0.60, 0.02);
  EXPECT_NEAR(shares[23], 0.11, 0.01);
  EXPECT_NEAR(shares[22], 0.12, 0.01);
  EXPECT_NEAR(shares[16], 0.015, 0.005);
}

TEST(Workload, GivesSmallerTablesOfTheSameKind) {
  std::size_t longest = 0;
  for (const Ipv4Prefix& prefix : route_prefixes(1000)) longest += prefix.length == 24 ? 1 : 0;
  EXPECT_GT(longest, 500U);
  EXPECT_LT(longest, 700U);
}

TEST(Workload, GivesRulesThatTheReaderAccepts) {
  for (const std::size_t count : {1U, 32U, 8192U, 100'000U}) {
    const auto read = firewall::read_rules(rules_text(count), "rules", {});
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_TRUE(read->unsupported.empty());
    EXPECT_EQ(read->value.rules.size(), count);
  }
}

TEST(Workload, HasALastRuleThatAcceptsEverything) {
  const auto rules = firewall::read_rules(rules_text(8192), "rules", {});
  ASSERT_TRUE(rules);
  const auto classifier = classify::make_classifier(classify::Engine::bitvector, rules->value);
  ASSERT_TRUE(classifier);
  const auto keys = firewall::read_tuples(
      "8.8.8.8 9.9.9.9 tcp 1 2\n0.0.0.0 255.255.255.255 udp 0 65535\n1.1.1.1 10.0.0.1 icmp 0 0\n::1 ::2 tcp 1 2\n", "");
  ASSERT_TRUE(keys);
  std::array<std::uint32_t, 4> entries{};
  (*classifier)->classify(*keys, entries.data());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rules->value.target(entries[i], NetworkLayer::ipv4), classify::Target::accept);
    EXPECT_EQ(rules->value.entries[entries[i]].rule, 8191U);
  }
  EXPECT_EQ(entries[3], classify::kNoEntry) << "the rules are of IPv4";
}

TEST(Workload, HasAHundredThousandRulesThatFitIntoBitVectors) {
  const auto rules = firewall::read_rules(rules_text(100'000), "rules", {});
  ASSERT_TRUE(rules);
  const auto classifier = classify::make_classifier(classify::Engine::bitvector, rules->value);
  EXPECT_TRUE(classifier) << to_string(classifier.error());
}

TEST(Workplace, IsDeletedWithItsFiles) {
  std::string path;
  {
    const Workplace place;
    path = place.put("a", "text");
    EXPECT_EQ(path, place.path("a"));
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

}  // namespace
}  // namespace penstock::experiments
