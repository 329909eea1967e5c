// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of the outbound stage, of real SAs and of somebody who lies, with decisions of somebody who lies too. What a
// check lets pass runs on the host, where the address sanitizer watches.

#include "nf/ipsec/outbound_recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "nf/ipsec/recipe.h"
#include "nf/ipsec/remote_end_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using function::StageRecipe;
using penstock::testing::RandomFrames;

std::string refusal(const StageRecipe& recipe) {
  const auto checked = check_outbound_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}
/// With other SAs and keys.
struct Changed {
  std::vector<SaView> sas;
  std::vector<SaKeys> keys;
  FrameRoom growth;
};
std::string refusal_after(const std::function<void(Changed&)>& change) {
  const StageRecipe recipe = outbound_recipe_for_test();
  const SealingSpans tables = *read_outbound_recipe(recipe);
  Changed changed{{tables.sas.begin(), tables.sas.end()}, {tables.keys.begin(), tables.keys.end()}, tables.growth};
  change(changed);
  return refusal(recipe_of(SealingSpans{changed.sas, changed.keys, changed.growth}));
}

TEST(OutboundRecipe, ExistsIfTheDeviceIsAnotherProcesss) {
  const End own = outwards(kOutboundStates, outbound_policies());
  EXPECT_FALSE(own.function->stage_recipe(function::Processor::gpu));
  EXPECT_EQ(own.function->traits().state_bytes, 0U);
  const End remote = outwards(kOutboundStates, outbound_policies(), remote_device());
  EXPECT_FALSE(remote.function->stage_recipe(function::Processor::cpu));
  const auto recipe = remote.function->stage_recipe(function::Processor::gpu);
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->kernel, remote_outbound_kernel().name);
  EXPECT_EQ(refusal(*recipe), "accepted");
}

TEST(OutboundRecipe, NeedsOfItsLaneWhatTheFunctionSays) {
  const End remote = outwards(kOutboundStates, outbound_policies(), remote_device());
  const function::NfTraits& traits = remote.function->traits();
  const auto needs = remote_outbound_kernel().needs(*remote.function->stage_recipe(function::Processor::gpu));
  EXPECT_EQ(needs.findings_bytes, traits.findings_bytes);
  EXPECT_EQ(needs.state_bytes, traits.state_bytes);
  EXPECT_EQ(needs.growth.head, traits.growth.head);
  EXPECT_EQ(needs.growth.tail, traits.growth.tail);
  const Access& access = *traits.access_on(function::Processor::gpu);
  EXPECT_TRUE((needs.access.reads - access.reads).empty() && (access.reads - needs.access.reads).empty());
  EXPECT_TRUE((needs.access.writes - access.writes).empty() && (access.writes - needs.access.writes).empty());
}

TEST(OutboundRecipe, IsRefusedIfLengthsAreNotThoseOfTheAlgorithms) {
  const std::vector<std::function<void(Changed&)>> changes{
      [](Changed& all) { all.sas[0].block_bytes = 0; },
      [](Changed& all) { all.sas[0].iv_bytes = 0; },
      [](Changed& all) { all.sas[0].icv_bytes = 0; },
      [](Changed& all) { all.sas[0].tfc_bytes = 0x1'0000; },
      [](Changed& all) { all.sas[0].tfc_bytes = ~std::uint32_t{0}; },
      [](Changed& all) { all.sas[0].outer = NetworkLayer::none; },
      [](Changed& all) { all.keys[0].rounds = 16; },
      [](Changed& all) { all.keys[0].cipher = static_cast<Cipher>(4); },
      [](Changed& all) { all.keys[0].esn = true; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(refusal_after(changes[i]),
              "recipe of ipsec_outbound: SA 0 has algorithms, lengths or flags that do not fit together")
        << i;
  }
  EXPECT_EQ(refusal_after([](Changed& all) { all.keys.pop_back(); }),
            "recipe of ipsec_outbound: entries for SAs: found 5, expected 6");
  EXPECT_EQ(refusal_after([](Changed& all) { all.growth.tail = ~std::uint32_t{0}; }),
            "recipe of ipsec_outbound: frames that grow by too much");
  EXPECT_EQ(refusal_after([](Changed&) {}), "accepted");
}

TEST(OutboundRecipe, KeepsPacketsInTheirFramesWhateverIsDecided) {
  RandomFrames choose(2);
  const StageRecipe recipe = outbound_recipe_for_test();
  const std::vector<Frame> frames = outbound_frames(100, choose);
  int passed = 0, sealed = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    const StageRecipe lie = round == 0 ? recipe : penstock::testing::lie_about(recipe, choose);
    if (!check_outbound_recipe(lie)) continue;
    ++passed;
    const SealingSpans tables = *read_outbound_recipe(lie);
    if (tables.growth.head > 4096 || tables.growth.tail > 4096) continue;  // its lane would have more room
    sealed += carry_out_lies(tables, frames, choose);
  }
  EXPECT_GT(passed, kRounds / 20);
  EXPECT_LT(passed, kRounds);
  EXPECT_GT(sealed, passed);
}

TEST(OutboundRecipe, LeavesToTheCpuWhatNobodyHasDecided) {
  const StageRecipe recipe = outbound_recipe_for_test();
  const SealingSpans tables = *read_outbound_recipe(recipe);
  for (const Decision& decision :
       {Decision{}, Decision{.sequence = 1, .sa = kOutboundSas, .kind = Decision::Kind::protected_by_sa},
        Decision{.sequence = 1, .sa = kNoSa, .kind = Decision::Kind::protected_by_sa},
        Decision{.kind = static_cast<Decision::Kind>(200)}}) {
    RoomyFrame frame(plain());
    EXPECT_EQ(carry_out_on_host(decision, frame.view, tables).sa, kNoSa);
    EXPECT_EQ(frame.view.packet->verdict, Verdict::punt());
    EXPECT_EQ(frame.bytes(), plain());
  }
}

}  // namespace
}  // namespace penstock::ipsec
