// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of real automata, and of somebody who lies. What a check lets pass runs on the host, where the address
// sanitizer watches.

#include "nf/nids/match/automaton_recipe.h"

#include <gtest/gtest.h>

#include <string>

#include "nf/nids/match/automaton_recipe_for_test.h"

namespace penstock::nids {
namespace {

std::string refusal(const function::StageRecipe& recipe) {
  const auto checked = check_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}

testing::Bytes random_text(testing::Draw& draw) { return draw.bytes(draw.below(40), "aabbccABCGET /cmd.exe"); }

TEST(AutomatonRecipe, FindsWhatIsThere) {
  testing::Draw draw(1);
  for (const std::uint32_t count : {1U, 20U, 8000U}) {  // with narrow and with wide rows
    std::vector<Literal> literals;
    while (literals.size() < count) {
      literals.push_back({draw.bytes(1 + draw.below(count > 1000 ? 40 : 6), "abAB/ xyzw0123"), draw.one_in(2)});
    }
    const auto tables = *build_aho_corasick(literals);
    const auto recipe = recipe_of(spans_of(tables));
    ASSERT_EQ(refusal(recipe), "accepted") << count;
    if (count > 1000) continue;
    for (int i = 0; i < 200; ++i) {
      const testing::Bytes text = draw.bytes(draw.below(60), "abAB/ xyzw0123");
      EXPECT_EQ(run_on_host(recipe, text), testing::search(literals, text));
    }
  }
}

TEST(AutomatonRecipe, KeepsScansInTheirTablesAndTextsWhateverItSays) {
  const AhoCorasickTables tables = automaton_for_recipe();
  const auto recipe = recipe_of(spans_of(tables));
  penstock::testing::RandomFrames choose(2);
  testing::Draw draw(2);
  constexpr int kRounds = 5000;
  int passed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const function::StageRecipe lie = penstock::testing::lie_about(recipe, choose);
    if (!check_recipe(lie)) continue;
    ++passed;
    for (int i = 0; i < 30; ++i) run_on_host(lie, random_text(draw));
  }
  EXPECT_GT(passed, kRounds / 20);
  EXPECT_LT(passed, kRounds);
}

TEST(AutomatonRecipe, IsRefusedIfItsLiteralsGoRoundOrReachBeforeTheText) {
  AhoCorasickTables tables = automaton_for_recipe();
  AutomatonSpans spans = spans_of(tables);
  std::vector<AcAccepting> accepting = tables.accepting;
  accepting[0].suffix = 0;
  spans.accepting = accepting;
  EXPECT_EQ(refusal(recipe_of(spans)),
            "recipe of nids_automaton: a state's literals lie outside the tables, or take too long");
  spans = spans_of(tables);
  std::vector<AcOutput> outputs = tables.outputs;
  for (AcOutput& output : outputs) output.bytes = 0, output.length = 3;  // some states are one byte from the root
  spans.outputs = outputs;
  EXPECT_EQ(refusal(recipe_of(spans)), "recipe of nids_automaton: a literal is longer than the way to its state");
}

}  // namespace
}  // namespace penstock::nids
