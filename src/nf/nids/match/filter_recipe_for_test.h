// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: runs what a GPU would run of a recipe, on the host.

#pragma once

#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "function/testing/recipe_lies.h"
#include "nf/nids/match/filter_recipe.h"
#include "nf/nids/match/hashed_filter_build.h"
#include "nf/nids/match/hashed_filter_core.h"
#include "nf/nids/match/literals_for_test.h"
#include "nf/nids/match/seam_core.h"

namespace penstock::nids {

/// Few bits, so that lies about them are not rare.
inline HashedFilterTables filter_for_recipe() {
  std::vector<Literal> literals;
  for (const std::string_view text : {"a", "ab", "abc", "abcab", "abca", "GET /", "cmd.exe", "cmd.exe /c del"}) {
    literals.push_back(testing::literal(text));
    literals.push_back(testing::literal(text, true));
  }
  auto built = build_hashed_filter(literals, {.quad_words_log2 = 5});
  if (!built) std::abort();
  return std::move(*built);
}

/// A state of a flow with any bits.
inline FlowState state_of(std::uint64_t word) {
  FlowState state;
  static_assert(sizeof(state) == sizeof(word));
  std::memcpy(static_cast<void*>(&state), &word, sizeof(state));
  return state;
}

/// The literals in a text, whose memory ends at its last byte, by a recipe that has been checked; and those that begin
/// in the state, if the recipe is for states.
inline std::set<std::uint32_t> run_on_host(const function::StageRecipe& recipe, const std::vector<std::uint8_t>& text,
                                           FlowState state) {
  const FilterRecipeParts parts = *read_filter_recipe(recipe);
  const HashedFilterView view = parts.filter.view();
  std::set<std::uint32_t> found;
  const auto add = [&](std::uint32_t literal) { found.insert(literal); };
  const std::uint8_t* const end = text.data() + text.size();
  if (view.pairs) {
    scan_filtered<true>(view, text.data(), end, add);
  } else {
    scan_filtered<false>(view, text.data(), end, add);
  }
  if (!parts.with_states) return found;
  PacketLiterals finding;
  finding.flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
  scan_seam(view, state, text.data(), end, finding);
  found.insert(finding.list().begin(), finding.list().end());
  return found;
}

}  // namespace penstock::nids
