// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/ipsec/recipe_for_test.h"

using namespace penstock;
using namespace penstock::ipsec;

/// Lies about a real recipe. What the check lets pass runs on packets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<function::StageRecipe> kRecipes{ipsec::testing::recipe_for_test(false),
                                                           ipsec::testing::recipe_for_test(true)};
  static const std::vector<penstock::testing::Frame> kFrames = [] {
    penstock::testing::RandomFrames draw(1);
    return ipsec::testing::frames_for(kRecipes[0], 20, draw);
  }();
  penstock::testing::FuzzChoices choose({data, size});
  const function::StageRecipe lie = penstock::testing::lie_about(kRecipes[choose.below(kRecipes.size())], choose);
  if (!check_recipe(lie)) return 0;
  std::vector<penstock::testing::LonePacket> packets;
  for (const auto& frame : kFrames) packets.emplace_back(frame);
  ipsec::testing::run_on_host(lie, packets);
  return 0;
}
