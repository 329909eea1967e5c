// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: runs what a GPU would run of a recipe, on the host.

#pragma once

#include <cstdlib>
#include <set>
#include <string_view>
#include <vector>

#include "function/testing/recipe_lies.h"
#include "nf/nids/match/aho_corasick_build.h"
#include "nf/nids/match/aho_corasick_core.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/literals_for_test.h"

namespace penstock::nids {

inline AhoCorasickTables automaton_for_recipe() {
  std::vector<Literal> literals;
  for (const std::string_view text : {"a", "ab", "abcab", "bca", "GET /", "cmd.exe"}) {
    literals.push_back(testing::literal(text));
    literals.push_back(testing::literal(text, true));
  }
  auto built = build_aho_corasick(literals);
  if (!built) std::abort();
  return std::move(*built);
}

/// The literals in a text, whose memory ends at its last byte, by a recipe that has been checked.
inline std::set<std::uint32_t> run_on_host(const function::StageRecipe& recipe, const std::vector<std::uint8_t>& text) {
  const AutomatonSpans automaton = *read_recipe(recipe);
  std::set<std::uint32_t> found;
  const auto scan = [&](const auto& rows) {
    ac_scan(automaton.view(rows), text.data(), text.data() + text.size(),
            [&](std::uint32_t literal) { found.insert(literal); });
  };
  if (automaton.is_narrow()) {
    scan(automaton.narrow);
  } else {
    scan(automaton.wide);
  }
  return found;
}

}  // namespace penstock::nids
