// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of real rules, and of somebody who lies. What a check lets pass runs on the host, where the address sanitizer
// watches.

#include "nf/firewall/recipe.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/testing/rounds.h"
#include "classify/random_rules_for_test.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/recipe_for_test.h"
#include "nf/firewall/rules_for_test.h"

namespace penstock::firewall {
namespace {

using classify::Engine;
using testing::LonePacket;
using testing::RandomFrames;

classify::Ruleset random_rules(std::uint32_t entries) {
  classify::Draw draw(entries);
  return draw.rules(entries);
}

function::StageRecipe recipe_with(Engine engine, StageKind kind, std::uint32_t entries) {
  const classify::Ruleset rules = random_rules(entries);
  const auto classifier = *classify::make_classifier(engine, rules);
  return recipe_of(*classify::spans_of(rules, *classifier), kind);
}

std::string refusal(const function::StageRecipe& recipe) {
  const auto checked = check_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}

std::vector<LonePacket> random_packets(std::size_t count, RandomFrames& draw) {
  std::vector<LonePacket> packets;
  for (std::size_t i = 0; i < count; ++i) {
    LonePacket packet(draw.frame());
    packet.descriptor().in_port = static_cast<PortIndex>(draw.below(80));
    packet.descriptor().verdict.value = static_cast<PortIndex>(draw.below(4) == 0 ? kNoPort : draw.below(80));
    packets.push_back(std::move(packet));
  }
  return packets;
}

using Case = std::tuple<Engine, StageKind>;
class FirewallRecipe : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Stages, FirewallRecipe,
                         ::testing::Combine(::testing::Values(Engine::linear, Engine::bitvector),
                                            ::testing::Values(StageKind::plain, StageKind::tracked,
                                                              StageKind::translating)));

TEST_P(FirewallRecipe, OfRealRulesIsAccepted) {
  const auto [engine, kind] = GetParam();
  for (const std::uint32_t entries : {0U, 1U, 64U, 512U, 513U, penstock::testing::rounds(1500)}) {
    EXPECT_EQ(refusal(recipe_with(engine, kind, entries)), "accepted") << entries;
  }
}

TEST_P(FirewallRecipe, KeepsSearchesInItsTablesWhateverItSays) {
  const auto [engine, kind] = GetParam();
  RandomFrames draw(2);
  const auto packets = random_packets(60, draw);
  int passed = 0, rounds = 0;
  for (const std::uint32_t entries : {3U, 70U, 513U}) {
    const auto recipe = recipe_with(engine, kind, entries);
    for (int round = 0; round < 80; ++round, ++rounds) {
      const function::StageRecipe lie = testing::lie_about(recipe, draw);
      if (!check_recipe(lie)) continue;
      ++passed;
      auto own = packets;
      run_on_host(lie, own, draw);
    }
  }
  EXPECT_GT(passed, rounds / 20);
  EXPECT_LT(passed, rounds);
}

TEST(FirewallRecipeAlone, DecidesAsItsTwinDoes) {
  for (const Engine engine : {Engine::linear, Engine::bitvector}) {
    classify::Draw draw_rules(7);
    draw_rules.without_connections();
    const auto firewall = *Firewall::build(draw_rules.rules(700), engine);
    const auto recipe = firewall->stage_recipe(function::Processor::gpu);
    ASSERT_TRUE(recipe);
    EXPECT_EQ(recipe->kernel, remote_kernel().name);
    ASSERT_EQ(refusal(*recipe), "accepted");
    RandomFrames draw(1);
    auto packets = random_packets(2000, draw);
    auto on_twin = packets;
    const auto judged = run_on_host(*recipe, packets, draw);
    const auto twin = firewall->make_cpu_stage();
    twin->begin_batch();
    for (std::size_t i = 0; i < on_twin.size(); ++i) {
      PacketView packet = on_twin[i].view();
      twin->process({&packet, 1});
      ASSERT_EQ(judged[i].verdict, packet.packet->verdict) << i;
    }
  }
}

TEST(FirewallRecipeAlone, DoesNotExistForTheTablesOfRfc) {
  classify::Draw draw(7);
  draw.without_connections();
  EXPECT_FALSE((*Firewall::build(draw.rules(50), Engine::rfc))->stage_recipe(function::Processor::gpu));
}

TEST(FirewallRecipeAlone, IsRefusedIfASearchGoesBackOrTakesTooLong) {
  classify::Ruleset rules = random_rules(10);
  for (classify::Entry& entry : rules.entries) entry.action = classify::Action::skip;
  const auto classifier = *classify::make_classifier(Engine::linear, rules);
  rules.entries[5].skip_to = 5;
  EXPECT_EQ(refusal(recipe_of(*classify::spans_of(rules, *classifier), StageKind::plain)),
            "recipe of firewall: an entry skips back");
  rules.entries.assign(1 << 20, classify::Entry{});
  EXPECT_EQ(refusal(recipe_of(*classify::spans_of(rules, *classifier), StageKind::plain)), "accepted");
  rules.entries.emplace_back();
  EXPECT_EQ(refusal(recipe_of(*classify::spans_of(rules, *classifier), StageKind::plain)),
            "recipe of firewall: a search takes too long: found 1048577 steps, expected at most 1048576");
}

}  // namespace
}  // namespace penstock::firewall
