// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/filter/recipe_for_test.h"

using namespace penstock;

/// Lies about a real recipe. What the check lets pass runs on packets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const function::StageRecipe kRecipe = filter::recipe_of(filter::filters_for_recipe(), 4);
  testing::FuzzChoices choose({data, size});
  const function::StageRecipe lie = testing::lie_about(kRecipe, choose);
  if (!filter::check_recipe(lie)) return 0;
  testing::RandomFrames draw(1 + choose.below(16));
  std::vector<testing::LonePacket> packets;
  for (int i = 0; i < 20; ++i) packets.emplace_back(draw.frame());
  filter::run_on_host(lie, packets);
  return 0;
}
