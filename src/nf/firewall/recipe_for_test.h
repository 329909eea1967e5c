// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: runs what a GPU would run of a recipe, on the host.

#pragma once

#include <vector>

#include "function/testing/recipe_lies.h"
#include "nf/firewall/recipe.h"
#include "nf/firewall/translating_core.h"

namespace penstock::firewall {

struct Judged {
  Verdict verdict;
  std::uint32_t counter;
};

/// Runs all packets through the tables of a recipe that has been checked, with states that somebody made up.
template <typename Choices>
std::vector<Judged> run_on_host(const function::StageRecipe& recipe, std::span<testing::LonePacket> packets,
                                Choices& choose) {
  const RecipeParts parts = *read_recipe(recipe);
  std::vector<Judged> judged;
  const auto run = [&]<typename Engine>(const Engine& engine) {
    classify::RulesView rules = parts.tables.rules;
    rules.entries = parts.tables.entries.data();
    const JudgeCore<Engine> judge{engine, rules};
    const TrackedJudgeCore<Engine> tracked{judge};
    const TranslatingCore<Engine> translating{tracked};
    for (testing::LonePacket& packet : packets) {
      Judged& now = judged.emplace_back();
      const auto connection = static_cast<std::uint8_t>(choose.below(256));
      const bool full = choose.below(8) == 0;
      switch (parts.kind) {
        case StageKind::plain: now.verdict = judge(packet.view(), now.counter); break;
        case StageKind::tracked:
          now.verdict = tracked(packet.view(), TrackedState{connection, full}, now.counter);
          break;
        case StageKind::translating: {
          TranslatingState state;
          state.address = {choose.below(1U << 31), choose.below(1U << 31)};
          state.port = static_cast<std::uint16_t>(choose.below(65'536));
          state.sides = static_cast<std::uint8_t>(choose.below(256));
          state.connection = connection;
          state.full = full;
          now.verdict = translating(packet.view(), state, now.counter);
          break;
        }
      }
    }
  };
  using classify::LinearSpans;
  if (const auto* const linear = std::get_if<LinearSpans>(&parts.tables.engine)) {
    run(classify::LinearView{parts.tables.entries.data(), linear->conditions.data(), linear->port_ranges.data(),
                             linear->ranges6.data(), static_cast<std::uint32_t>(parts.tables.entries.size())});
    return judged;
  }
  const auto& vectors = std::get<classify::BitVectorSpans>(parts.tables.engine);
  const auto small = [](const classify::SmallSpans& table) {
    return classify::SmallView{{table.pages.data(), table.records.data()}, table.use};
  };
  const auto view4 = [](const classify::Ipv4Spans& table) {
    return classify::Ipv4View{table.top.data(), table.middle.data(), table.records.data()};
  };
  const auto view6 = [](const classify::Ipv6Spans& table) {
    return classify::Ipv6View{table.first.data(), table.starts.data(), table.records.data()};
  };
  // The host aligns tables of recipes less than a device does.
  const testing::ExactArray<classify::VectorBlock> blocks(
      std::span(reinterpret_cast<const classify::VectorBlock*>(vectors.block_words.data()),
                vectors.block_words.size() / classify::kWordsPerBlock));
  run(classify::BitVectorView{view4(vectors.source4), view4(vectors.destination4), view6(vectors.source6),
                              view6(vectors.destination6), small(vectors.kind), small(vectors.destination_port),
                              small(vectors.source_port), small(vectors.place), small(vectors.connection),
                              vectors.combined.empty() ? nullptr : vectors.combined.data(), vectors.port_count,
                              vectors.summary_words, vectors.words.data(), blocks.data(), parts.tables.entries.data()});
  return judged;
}

}  // namespace penstock::firewall
