// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the firewall, the filter and the router on a simulated device: they run what a GPU would run.

#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "classify/host_view_for_test.h"
#include "conntrack/packet_connection.h"
#include "nf/filter/filter_core.h"
#include "nf/filter/recipe.h"
#include "nf/firewall/judge_core.h"
#include "nf/firewall/recipe.h"
#include "proxy/testing/host_backend.h"
#include "proxy/testing/router_kernel.h"

namespace penstock::proxy::testing {

inline std::unique_ptr<function::LoadedTables> tables_of(const function::StageRecipe& recipe,
                                                         ring::testing::SimulatedStage::Work work) {
  std::size_t bytes = 0;
  for (const function::TableBytes& table : recipe.tables) bytes += table->size();
  return std::make_unique<HostTables>(std::move(work), bytes);
}

inline Result<void> check_firewall(const function::StageRecipe& recipe) {
  if (auto checked = firewall::check_recipe(recipe); !checked) return checked;
  if (firewall::read_recipe(recipe)->kind != firewall::StageKind::translating) return {};
  return function::refused(recipe, "translations, on a simulated device");
}
inline std::unique_ptr<function::LoadedTables> load_firewall(const function::StageRecipe& recipe) {
  auto kept = std::make_shared<const function::StageRecipe>(recipe);
  const firewall::RecipeParts parts = *firewall::read_recipe(*kept);
  classify::RulesView rules = parts.tables.rules;
  rules.entries = parts.tables.entries.data();
  using Work = ring::testing::SimulatedStage::Work;
  const auto work_with = [&]<typename Engine>(const Engine& engine, std::shared_ptr<const void> owner) {
    const firewall::JudgeCore<Engine> judge{engine, rules};
    const bool tracks = parts.kind == firewall::StageKind::tracked;
    return Work(
        [kept, owner = std::move(owner), judge, tracks](PacketView packet, std::byte* finding, const std::byte* state) {
          std::uint32_t counter = 0;
          conntrack::PacketConnection connection;
          if (tracks) std::memcpy(&connection, state, sizeof connection);
          const Verdict verdict =
              tracks ? firewall::TrackedJudgeCore<Engine>{judge}(packet, connection, counter) : judge(packet, counter);
          std::memcpy(finding, &counter, sizeof counter);
          return verdict;
        });
  };
  if (const auto* const linear = std::get_if<classify::LinearSpans>(&parts.tables.engine))
    return tables_of(*kept, work_with(classify::host_view(*linear, parts.tables.entries), nullptr));
  const auto vectors = std::make_shared<const classify::HostVectors>(
      std::get<classify::BitVectorSpans>(parts.tables.engine), parts.tables.entries);
  return tables_of(*kept, work_with(vectors->view(), vectors));
}

inline std::unique_ptr<function::LoadedTables> load_filter(const function::StageRecipe& recipe) {
  auto kept = std::make_shared<const function::StageRecipe>(recipe);
  auto parts = std::make_shared<const filter::RecipeParts>(*filter::read_recipe(*kept));
  return tables_of(*kept, [kept, parts](PacketView packet, std::byte* finding, const std::byte*) {
    std::vector<std::uint32_t> words(parts->findings_bytes / sizeof(std::uint32_t));
    const Verdict verdict = filter::interpret_all(parts->view(), packet, words.data());
    if (!words.empty()) std::memcpy(finding, words.data(), parts->findings_bytes);
    return verdict;
  });
}

/// `of_program`: its entry in the list of kernels.
inline function::RemoteKernel simulated(function::RemoteKernel of_program,
                                        decltype(function::RemoteKernel::load) load) {
  of_program.load = load;
  return of_program;
}
inline function::RemoteKernel firewall_kernel() {
  function::RemoteKernel kernel = simulated(firewall::remote_kernel(), load_firewall);
  kernel.check = check_firewall;
  return kernel;
}
inline function::RemoteKernel filter_kernel() { return simulated(filter::remote_kernel(), load_filter); }

}  // namespace penstock::proxy::testing
