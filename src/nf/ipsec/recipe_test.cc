// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of real SAs and policies, and of somebody who lies. What a check lets pass runs on the host, where the
// address sanitizer watches.

#include "nf/ipsec/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/recipe_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using function::StageRecipe;
using penstock::testing::RandomFrames;

std::string refusal(const StageRecipe& recipe) {
  const auto checked = check_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}

std::vector<LonePacket> packets_of(const std::vector<Frame>& frames) { return {frames.begin(), frames.end()}; }

/// The same recipe, with other SAs, keys or slots.
struct Changed {
  std::vector<SaView> sas;
  std::vector<SaKeys> keys;
  std::vector<SaSlot> slots;
};
std::string refusal_after(const std::function<void(Changed&)>& change) {
  const StageRecipe recipe = recipe_for_test(true);
  TableSpans tables = *read_recipe(recipe);
  Changed changed{{tables.selection.sas.begin(), tables.selection.sas.end()},
                  {tables.keys.begin(), tables.keys.end()},
                  {tables.inbound.slots.begin(), tables.inbound.slots.end()}};
  change(changed);
  tables.selection.sas = changed.sas;
  tables.keys = changed.keys;
  tables.inbound.slots = changed.slots;
  return refusal(recipe_of(tables));
}

TEST(IpsecRecipe, ForwardsAndDropsAsItsTwinDoes) {
  for (const bool with_policies : {false, true}) {
    End twin = inwards(kStatesForRecipe, with_policies ? std::optional(kPoliciesForRecipe) : std::nullopt);
    const auto recipe = twin.function->stage_recipe(function::Processor::gpu);
    ASSERT_TRUE(recipe);
    EXPECT_EQ(recipe->kernel, remote_kernel().name);
    ASSERT_EQ(refusal(*recipe), "accepted");
    RandomFrames choose(3);
    const std::vector<Frame> frames = frames_for(*recipe, 3000, choose);
    std::vector<LonePacket> packets = packets_of(frames);
    const std::vector<InboundFinding> findings = run_on_host(*recipe, packets);
    // Replays are found by the finish stage of a function that has seen nothing else.
    End tenant = inwards(kStatesForRecipe, with_policies ? std::optional(kPoliciesForRecipe) : std::nullopt);
    const auto finish = tenant.function->make_finish_stage(*tenant.stage);
    std::size_t opened = 0, forwarded = 0, left_to_cpu = 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      PacketDescriptor& packet = packets[i].descriptor();
      if (packet.verdict.kind == VerdictKind::punt) {
        ++left_to_cpu;
        continue;
      }
      const PacketView view = packets[i].view();
      const auto* const finding = reinterpret_cast<const std::byte*>(&findings[i]);
      finish->finish({&view, 1}, {&finding, 1});
      const Done done = twin(Arriving(frames[i].bytes, frames[i].link_type, frames[i].wire_length));
      ASSERT_EQ(fate_of(packet.verdict), done.fate) << i;
      if (done.fate != "forwarded") continue;
      ++forwarded;
      if (findings[i].authentic != 0) ++opened;
      const std::uint8_t* const frame = packets[i].view().frame + packet.offset;
      ASSERT_EQ(Bytes(frame, frame + packet.length), done.bytes) << i;
    }
    EXPECT_GT(forwarded, frames.size() / 8);
    EXPECT_GT(opened, frames.size() / 8);
    EXPECT_LT(left_to_cpu, frames.size() / 8);
  }
}

TEST(IpsecRecipe, DoesNotExistOfOtherProcessors) {
  EXPECT_FALSE(inwards(StateText()()).function->stage_recipe(function::Processor::cpu));
}

// With ESN, the upper half of the number is inferred from what has arrived; the recipe does not know what arrives
// later.
TEST(IpsecRecipe, LeavesPacketsToTheCpuWhoseNumberItCannotInfer) {
  const StageRecipe recipe = recipe_for_test(true);
  const TableSpans tables = *read_recipe(recipe);
  constexpr std::uint32_t kWithEsn = 1;
  ASSERT_TRUE(tables.selection.sas[kWithEsn].esn);
  const Frame inner{plain(), static_cast<std::uint32_t>(plain().size()), LinkType::ethernet};
  constexpr std::uint64_t kMuchLater = std::uint64_t{1} << 32;
  std::vector<LonePacket> packets =
      packets_of({sealed(inner, tables, kWithEsn, 5 + kMuchLater), sealed(inner, tables, kWithEsn, 5)});
  const Bytes before(packets[0].view().frame, packets[0].view().frame + packets[0].view().length());
  const auto findings = run_on_host(recipe, packets);
  EXPECT_EQ(packets[0].descriptor().verdict, Verdict::punt());
  EXPECT_EQ(findings[0].sa, kNoSa);
  EXPECT_EQ(Bytes(packets[0].view().frame, packets[0].view().frame + packets[0].view().length()), before);
  EXPECT_EQ(packets[1].descriptor().verdict, Verdict::forward());
  EXPECT_EQ(findings[1].authentic, 1U);
}

TEST(IpsecRecipe, KeepsPacketsInTheirFramesAndSearchesInItsTablesWhateverItSays) {
  RandomFrames choose(2);
  int passed = 0, rounds = 0;
  for (const bool with_policies : {false, true}) {
    const StageRecipe recipe = recipe_for_test(with_policies);
    const std::vector<Frame> frames = frames_for(recipe, 100, choose);
    for (int round = 0; round < 300; ++round, ++rounds) {
      const StageRecipe lie = penstock::testing::lie_about(recipe, choose);
      if (!check_recipe(lie)) continue;
      ++passed;
      std::vector<LonePacket> packets = packets_of(frames);
      run_on_host(lie, packets);
    }
  }
  EXPECT_GT(passed, rounds / 20);
  EXPECT_LT(passed, rounds);
}

TEST(IpsecRecipe, IsRefusedIfLengthsAreNotThoseOfTheAlgorithms) {
  const std::vector<std::function<void(Changed&)>> changes{
      [](Changed& all) { all.sas[0].block_bytes = 0; },
      [](Changed& all) { all.sas[0].iv_bytes = 0; },
      [](Changed& all) { all.sas[0].icv_bytes = 0; },
      [](Changed& all) { all.keys[0].icv_bytes = all.sas[0].icv_bytes = 4; },
      [](Changed& all) { all.keys[0].rounds = 16; },
      [](Changed& all) { all.keys[0].integrity = Integrity::hmac_sha1_96; },
      [](Changed& all) { all.keys[0].cipher = static_cast<Cipher>(4); },
      [](Changed& all) { all.keys[0].esn = true; },
      [](Changed& all) { all.sas[0].outer = NetworkLayer::none; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(refusal_after(changes[i]),
              "recipe of ipsec_inbound: SA 0 has algorithms, lengths or flags that do not fit together")
        << i;
  }
}

TEST(IpsecRecipe, IsRefusedIfASearchEndsNowhereOrAtNoSa) {
  EXPECT_EQ(refusal_after([](Changed& all) { all.sas.pop_back(); }),
            "recipe of ipsec_inbound: entries for SAs: found 5, expected 4");
  EXPECT_EQ(refusal_after([](Changed& all) {
              for (SaSlot& slot : all.slots) slot.sa = 5;
            }),
            "recipe of ipsec_inbound: a slot leads to no SA");
  EXPECT_EQ(refusal_after([](Changed& all) {
              for (SaSlot& slot : all.slots) slot = all.slots[0], slot.family = NetworkLayer::ipv4, slot.sa = 0;
            }),
            "recipe of ipsec_inbound: too many SAs without a gap");
  EXPECT_EQ(refusal_after([](Changed& all) { all.slots.pop_back(); }),
            "recipe of ipsec_inbound: number of slots for SAs: found 31, expected a power of two");
}

}  // namespace
}  // namespace penstock::ipsec
