// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of real programs, and of somebody who lies. What a check lets pass runs on the host, where the address
// sanitizer watches.

#include "nf/filter/recipe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/filter.h"
#include "nf/filter/recipe_for_test.h"

namespace penstock::filter {
namespace {

using testing::LonePacket;
using testing::RandomFrames;

std::string refusal(const function::StageRecipe& recipe) {
  const auto checked = check_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}

std::vector<LonePacket> random_packets(std::size_t count, RandomFrames& draw) {
  std::vector<LonePacket> packets;
  for (std::size_t i = 0; i < count; ++i) packets.emplace_back(draw.frame());
  return packets;
}

TEST(FilterRecipe, DecidesAsItsTwinDoes) {
  const auto filter = *Filter::build(filters_for_recipe(), {});
  const auto recipe = filter->stage_recipe(function::Processor::gpu);
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->kernel, remote_kernel().name);
  ASSERT_EQ(refusal(*recipe), "accepted");
  const function::StageNeeds needs = remote_kernel().needs(*recipe);
  EXPECT_EQ(needs.findings_bytes, filter->traits().findings_bytes);
  EXPECT_EQ(needs.access.reads, filter->traits().access_on(function::Processor::gpu)->reads);
  RandomFrames draw(1);
  auto packets = random_packets(2000, draw);
  auto on_twin = packets;
  const std::vector<Verdict> verdicts = run_on_host(*recipe, packets);
  const auto twin = filter->make_cpu_stage();
  twin->begin_batch();
  for (std::size_t i = 0; i < on_twin.size(); ++i) {
    PacketView packet = on_twin[i].view();
    twin->process({&packet, 1});
    ASSERT_EQ(verdicts[i], packet.packet->verdict) << i;
  }
}

TEST(FilterRecipe, DoesNotExistIfTheUserHasChosenGeneratedCode) {
  FilterOptions options;
  options.gpu_engine = GpuEngine::generated;
  EXPECT_FALSE((*Filter::build(filters_for_recipe(), options))->stage_recipe(function::Processor::gpu));
}

TEST(FilterRecipe, OfAThousandFiltersOrNoneIsAccepted) {
  EXPECT_EQ(refusal(recipe_of(filters_of({}), 4)), "accepted");
  std::vector<std::pair<std::string, Action>> many;
  for (std::size_t i = 0; i < kMostFilters; ++i) many.emplace_back("tcp port " + std::to_string(i + 1), Action{});
  EXPECT_EQ(refusal(recipe_of(filters_of(many), kMostFilters / 8)), "accepted");
  EXPECT_EQ(refusal(recipe_of(filters_of(many), kMostFilters / 8 - 4)),
            "recipe of filter: findings of each packet: found 124 bytes, expected 128");
}

TEST(FilterRecipe, KeepsProgramsInTheirTablesWhateverItSays) {
  RandomFrames draw(2);
  const auto packets = random_packets(100, draw);
  const auto recipe = recipe_of(filters_for_recipe(), 4);
  constexpr int kRounds = 3000;
  int passed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const function::StageRecipe lie = testing::lie_about(recipe, draw);
    if (!check_recipe(lie)) continue;
    ++passed;
    auto own = packets;
    run_on_host(lie, own);
  }
  EXPECT_GT(passed, kRounds / 20);
  EXPECT_LT(passed, kRounds);
}

/// A recipe of this one program, for all link types.
function::StageRecipe recipe_with(const std::vector<Instruction>& program) {
  function::StageRecipe recipe = recipe_of(filters_of({{"ip", {}}}), 4);
  const auto bytes = std::as_bytes(std::span(program));
  recipe.tables[0] = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  recipe.tables[1] = std::make_shared<const std::vector<std::byte>>(kLinkTypes * sizeof(std::uint32_t));
  return recipe;
}

TEST(FilterRecipe, IsRefusedIfAnInstructionLeavesItsProgramOrItsMemory) {
  constexpr Instruction kEnd{kReturnK, 0, 0, 0};
  EXPECT_EQ(refusal(recipe_with({{kJump, 0, 0, 0}, kEnd})), "accepted");
  for (const Instruction& bad : std::vector<Instruction>{{kJump, 0, 0, 1},
                                                         {kJump, 0, 0, ~0U},
                                                         {kJumpEqualK, 1, 0, 0},
                                                         {kJumpSetX, 0, 1, 0},
                                                         {kStore, 0, 0, kScratchWords},
                                                         {kLoadXScratch, 0, 0, ~0U},
                                                         {kDivideK, 0, 0, 0},
                                                         {kModuloK, 0, 0, 0},
                                                         {kShiftLeftK, 0, 0, 32}}) {
    EXPECT_EQ(refusal(recipe_with({bad, kEnd})), "recipe of filter: an instruction leaves its program or its memory")
        << bad.code;
  }
  EXPECT_EQ(refusal(recipe_with({kEnd, {kAddX, 0, 0, 0}})),
            "recipe of filter: an instruction leaves its program or its memory");
  EXPECT_EQ(refusal(recipe_with({})), "recipe of filter: a program begins beyond the instructions");
}

TEST(FilterRecipe, IsRefusedIfProgramsTakeTooLong) {
  std::vector<Instruction> program((1 << 20) + 1, Instruction{kLoadByteAbs, 0, 0, 0});
  program.back() = {kReturnA, 0, 0, 0};
  EXPECT_EQ(refusal(recipe_with(program)),
            "recipe of filter: programs take too long: found 1048577 instructions, expected at most 1048576");
}

}  // namespace
}  // namespace penstock::filter
