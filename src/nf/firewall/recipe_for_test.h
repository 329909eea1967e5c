// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: runs what a GPU would run of a recipe, on the host.

#pragma once

#include <vector>

#include "classify/host_view_for_test.h"
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
          now.verdict = tracked(
              packet.view(),
              conntrack::PacketConnection{.number = connection, .full = full ? std::uint8_t{1} : std::uint8_t{0}},
              now.counter);
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
  const std::span<const classify::Entry> entries = parts.tables.entries;
  if (const auto* const linear = std::get_if<classify::LinearSpans>(&parts.tables.engine)) {
    run(classify::host_view(*linear, entries));
  } else {
    run(classify::HostVectors(std::get<classify::BitVectorSpans>(parts.tables.engine), entries).view());
  }
  return judged;
}

}  // namespace penstock::firewall
