// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of real filters, and of somebody who lies. What a check lets pass runs on the host, where the address
// sanitizer watches.

#include "nf/nids/match/filter_recipe.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "nf/nids/match/filter_recipe_for_test.h"
#include "nf/nids/match/rarity.h"

namespace penstock::nids {
namespace {

using function::StageRecipe;
using testing::Bytes;
using testing::Draw;

std::string refusal(const StageRecipe& recipe) {
  const auto checked = check_filter_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}
std::string refusal_after(const std::function<void(HashedFilterTables&)>& change) {
  HashedFilterTables tables = filter_for_recipe();
  change(tables);
  return refusal(recipe_of(tables.spans(), false));
}

Bytes random_text(Draw& draw) { return draw.bytes(draw.below(60), "aabbccABCGET /cmd.exe"); }

TEST(FilterRecipe, FindsWhatIsThere) {
  Draw draw(1);
  for (const std::uint32_t count : {1U, 20U, 500U}) {
    for (const std::uint32_t longest : {3U, 6U, 40U}) {
      std::vector<Literal> literals;
      while (literals.size() < count)
        literals.push_back({draw.bytes(1 + draw.below(longest), "abAB/ xyzw0123"), draw.one_in(2)});
      const auto tables = *build_hashed_filter(literals);
      const auto recipe = recipe_of(tables.spans(), false);
      ASSERT_EQ(refusal(recipe), "accepted") << count;
      for (int i = 0; i < 100; ++i) {
        Bytes text = draw.bytes(draw.below(80), "abAB/ xyzw0123");
        draw.plant(literals[draw.below(count)], text);
        EXPECT_EQ(run_on_host(recipe, text, {}), testing::search(literals, text));
      }
    }
  }
}

TEST(FilterRecipe, FindsWhatBeginsInTheStateOfTheFlow) {
  const std::vector<Literal> literals{testing::literal("needle"), testing::literal("ed"), testing::literal("zz")};
  const auto recipe = recipe_of(build_hashed_filter(literals)->spans(), true);
  ASSERT_EQ(refusal(recipe), "accepted");
  FlowState state;
  state.append(testing::bytes_of("a nee"));
  EXPECT_EQ(run_on_host(recipe, testing::bytes_of("dles"), state), (std::set<std::uint32_t>{0, 1}));
  EXPECT_EQ(run_on_host(recipe, testing::bytes_of("dles"), {}), (std::set<std::uint32_t>{}));
}

TEST(FilterRecipe, LeavesOutStatesThatNoFlowCanHave) {
  const auto tables = filter_for_recipe();
  const auto recipe = recipe_of(tables.spans(), true);
  for (std::uint64_t count = 8; count < 256; ++count) {
    EXPECT_EQ(run_on_host(recipe, testing::bytes_of("b"), state_of(count << 56 | 0x61'6161'6161'6161)),
              (std::set<std::uint32_t>{}))
        << count;
  }
}

TEST(FilterRecipe, OfThirtyThousandLiteralsIsAccepted) {
  Draw draw(7);
  std::vector<Literal> literals;
  for (int i = 0; i < 30'000; ++i) literals.push_back(draw.rule_literal());
  EXPECT_EQ(refusal(recipe_of(build_hashed_filter(literals)->spans(), false)), "accepted");
  EXPECT_EQ(refusal(recipe_of(build_hashed_filter(cut_literals(literals))->spans(), true)), "accepted");
}

TEST(FilterRecipe, KeepsScansInTheirTablesAndTextsWhateverItSays) {
  const HashedFilterTables tables = filter_for_recipe();
  const auto recipe = recipe_of(tables.spans(), true);
  penstock::testing::RandomFrames choose(2);
  Draw draw(2);
  constexpr int kRounds = 5000;
  int passed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const StageRecipe lie = penstock::testing::lie_about(recipe, choose);
    if (!check_filter_recipe(lie)) continue;
    ++passed;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t count = draw.below(draw.one_in(2) ? 8 : 256);
      const std::uint64_t bytes = std::uint64_t{draw.below(1U << 31)} << 24 | draw.below(1U << 31);
      run_on_host(lie, random_text(draw), state_of(count << 56 | bytes));
    }
  }
  EXPECT_GT(passed, kRounds / 20);
  EXPECT_LT(passed, kRounds);
}

TEST(FilterRecipe, IsRefusedIfASearchLeavesItsTablesOrTakesTooLong) {
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) { tables.quad_bits.resize(48); }),
            "recipe of nids_filter: number of bits");
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) { tables.key_bits.resize(1 << 15); }),
            "recipe of nids_filter: number of bits");
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) { tables.entries.back().last = 0; }),
            "recipe of nids_filter: a literal leads out of its table");
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) { tables.rests.pop_back(); }),
            "recipe of nids_filter: a literal leads out of its table");
  // It would be taken for a place in a finding that is free.
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) { tables.entries[0].literal = PacketLiterals::kNone; }),
            "recipe of nids_filter: a literal leads out of its table");
  constexpr std::string_view kWindow =
      "recipe of nids_filter: a window leads out of its table, or to a search that takes too long";
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) {
              for (FilterSlot& slot : tables.quad_slots) slot.first = 0;
            }),
            kWindow);
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) { tables.quad_slots.pop_back(); }), kWindow);
  EXPECT_EQ(refusal_after([](HashedFilterTables& tables) {
              for (FilterSlot& slot : tables.pair_slots) {
                if (slot.first != FilterSlot::kEmpty) slot.first = static_cast<std::uint32_t>(tables.entries.size());
              }
            }),
            kWindow);
  EXPECT_EQ(refusal_after(
                [](HashedFilterTables& tables) { tables.entries.insert(tables.entries.begin(), 5000, FilterEntry{}); }),
            kWindow);
}

}  // namespace
}  // namespace penstock::nids
