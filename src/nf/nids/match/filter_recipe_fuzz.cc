// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/nids/match/filter_recipe_for_test.h"

using namespace penstock;

/// Lies about a real recipe. What the check lets pass scans texts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const function::StageRecipe kRecipe = nids::recipe_of(nids::filter_for_recipe().spans(), true);
  testing::FuzzChoices choose({data, size});
  const function::StageRecipe lie = testing::lie_about(kRecipe, choose);
  if (!nids::check_filter_recipe(lie)) return 0;
  nids::testing::Draw draw(1 + choose.below(16));
  for (int i = 0; i < 20; ++i) {
    const auto text = draw.bytes(draw.below(60), "aabbccABCGET /cmd.exe");
    const std::uint64_t word = std::uint64_t{choose.below(256)} << 56 | draw.below(1U << 31);
    nids::run_on_host(lie, text, nids::state_of(word));
  }
  return 0;
}
