// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the router on a simulated device.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "nf/router/expanded_for_test.h"
#include "nf/router/recipe.h"
#include "proxy/testing/host_backend.h"

namespace penstock::proxy::testing {

/// What a GPU would do with the tables of a recipe that has been checked.
inline HostTables::Loaded router_of(const function::StageRecipe& recipe) {
  struct Kept {
    explicit Kept(const function::StageRecipe& of)
        : recipe(of), parts(*router::read_recipe(recipe)), tables(parts.tables) {}
    const function::StageRecipe recipe;
    const router::RecipeParts parts;
    const router::ExpandedTables tables;
  };
  auto kept = std::make_shared<const Kept>(recipe);
  const router::TableSpans& tables = kept->tables.spans();
  auto work = std::visit(
      [&]<typename View>(const View& v4) -> HostTables::Work {
        const router::ForwardCore<View, router::Fib6View> core{v4, tables.v6.view(), tables.view(), kept->parts.rules};
        return [kept, core](PacketView packet, std::byte*, const std::byte*) { return core(packet); };
      },
      tables.v4_view());
  return {std::move(work), tables.bytes()};
}

inline std::unique_ptr<function::LoadedTables> load_router(const function::StageRecipe& recipe) {
  HostTables::Loaded loaded = router_of(recipe);
  return std::make_unique<HostTables>(std::move(loaded.work), loaded.bytes, router_of);
}

inline function::RemoteKernel router_kernel() {
  function::RemoteKernel kernel = router::remote_kernel();
  kernel.load = load_router;
  return kernel;
}

}  // namespace penstock::proxy::testing
