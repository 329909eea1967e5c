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
  penstock::testing::FuzzChoices choose({data, size});
  const function::StageRecipe& real = kRecipes[choose.below(kRecipes.size())];
  const function::StageRecipe lie = penstock::testing::lie_about(real, choose);
  if (!check_recipe(lie)) return 0;
  std::vector<penstock::testing::LonePacket> packets;
  for (const auto& frame : ipsec::testing::frames_for(real, 20, choose)) packets.emplace_back(frame);
  ipsec::testing::run_on_host(lie, packets);
  return 0;
}
