// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/nids/match/automaton_recipe_for_test.h"

using namespace penstock;

/// Lies about a real recipe. What the check lets pass scans texts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const nids::AhoCorasickTables kTables = nids::automaton_for_recipe();
  static const function::StageRecipe kRecipe = nids::recipe_of(nids::spans_of(kTables));
  testing::FuzzChoices choose({data, size});
  const function::StageRecipe lie = testing::lie_about(kRecipe, choose);
  if (!nids::check_recipe(lie)) return 0;
  nids::testing::Draw draw(1 + choose.below(16));
  for (int i = 0; i < 20; ++i) nids::run_on_host(lie, draw.bytes(draw.below(40), "aabbccABCGET /cmd.exe"));
  return 0;
}
