// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/recipe_for_test.h"
#include "nf/ipsec/sealing_steps_for_test.h"

using namespace penstock;
using namespace penstock::ipsec;

namespace {

/// Lies about a real recipe of an outbound function, and about packets.
void try_outbound(penstock::testing::FuzzChoices& choose) {
  static const function::StageRecipe kRecipe = ipsec::testing::outbound_recipe_for_test();
  static const std::vector<penstock::testing::Frame> kFrames = [] {
    penstock::testing::RandomFrames draw(1);
    return ipsec::testing::outbound_frames(20, draw);
  }();
  const function::StageRecipe lie = penstock::testing::lie_about(kRecipe, choose);
  if (!check_outbound_recipe(lie)) return;
  const SealingSpans tables = *read_outbound_recipe(lie);
  constexpr std::uint32_t kMostRoom = 4096;  // of a lane
  if (tables.growth.head <= kMostRoom && tables.growth.tail <= kMostRoom)
    ipsec::testing::carry_out_lies(tables, kFrames, choose);
}

}  // namespace

/// Lies about a real recipe. What the check lets pass runs on packets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<function::StageRecipe> kRecipes{ipsec::testing::recipe_for_test(false),
                                                           ipsec::testing::recipe_for_test(true)};
  static const std::vector<penstock::testing::Frame> kFrames = [] {
    penstock::testing::RandomFrames draw(1);
    return ipsec::testing::frames_for(kRecipes[0], 20, draw);
  }();
  penstock::testing::FuzzChoices choose({data, size});
  const std::size_t which = choose.below(kRecipes.size() + 1);
  if (which == kRecipes.size()) return try_outbound(choose), 0;
  const function::StageRecipe lie = penstock::testing::lie_about(kRecipes[which], choose);
  if (!check_recipe(lie)) return 0;
  std::vector<penstock::testing::LonePacket> packets;
  for (const auto& frame : kFrames) packets.emplace_back(frame);
  ipsec::testing::run_on_host(lie, packets);
  return 0;
}
