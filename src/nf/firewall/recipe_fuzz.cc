// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "classify/random_rules_for_test.h"
#include "nf/firewall/recipe_for_test.h"

using namespace penstock;

namespace {

std::vector<function::StageRecipe> real_recipes() {
  std::vector<function::StageRecipe> recipes;
  for (const classify::Engine engine : {classify::Engine::linear, classify::Engine::bitvector}) {
    for (const auto kind :
         {firewall::StageKind::plain, firewall::StageKind::tracked, firewall::StageKind::translating}) {
      const classify::Ruleset rules = classify::Draw(3).rules(40);
      const auto classifier = *classify::make_classifier(engine, rules);
      recipes.push_back(firewall::recipe_of(*classify::spans_of(rules, *classifier), kind));
    }
  }
  return recipes;
}

}  // namespace

/// Lies about a real recipe. What the check lets pass runs on packets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<function::StageRecipe> kRecipes = real_recipes();
  testing::FuzzChoices choose({data, size});
  const function::StageRecipe lie = testing::lie_about(kRecipes[choose.below(kRecipes.size())], choose);
  if (!firewall::check_recipe(lie)) return 0;
  testing::RandomFrames draw(1 + choose.below(16));
  std::vector<testing::LonePacket> packets;
  for (int i = 0; i < 20; ++i) packets.emplace_back(draw.frame());
  firewall::run_on_host(lie, packets, choose);
  return 0;
}
