// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: makes filters, and runs what a GPU would run of a recipe, on the host.

#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "function/testing/recipe_lies.h"
#include "nf/filter/recipe.h"

namespace penstock::filter {

inline FilterList filters_of(const std::vector<std::pair<std::string, Action>>& filters) {
  FilterList list;
  for (const auto& [expression, action] : filters) {
    NamedFilter filter;
    filter.name = std::to_string(list.filters.size());
    filter.text = expression;
    filter.action = action;
    if (!compile_for_all(filter, {})) std::abort();
    list.filters.push_back(std::move(filter));
  }
  return list;
}
inline FilterList filters_for_recipe() {
  return filters_of({{"ip6 and udp", {Action::Kind::to, 1}},
                     {"tcp port 80 or vlan", {Action::Kind::drop, kNoPort}},
                     {"ip[ip[0] & 0xf * 4] / len > 3", {}},
                     {"greater 100", {}}});
}

/// The verdicts of packets with the programs of a recipe that has been checked.
inline std::vector<Verdict> run_on_host(const function::StageRecipe& recipe, std::span<testing::LonePacket> packets) {
  const RecipeParts parts = *read_recipe(recipe);
  std::vector<Verdict> verdicts;
  for (testing::LonePacket& packet : packets) {
    std::vector<std::uint32_t> words(parts.findings_bytes / sizeof(std::uint32_t));
    verdicts.push_back(interpret_all(parts.view(), packet.view(), words.data()));
  }
  return verdicts;
}

}  // namespace penstock::filter
