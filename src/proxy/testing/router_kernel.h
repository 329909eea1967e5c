// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the router on a simulated device.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "nf/router/recipe.h"
#include "proxy/testing/host_backend.h"

namespace penstock::proxy::testing {

/// What a GPU would do with the tables of a recipe that has been checked.
inline HostTables::Loaded router_of(const function::StageRecipe& recipe) {
  auto kept = std::make_shared<const function::StageRecipe>(recipe);
  const router::RecipeParts parts = *router::read_recipe(*kept);
  std::size_t bytes = 0;
  for (const function::TableBytes& table : kept->tables) bytes += table->size();
  auto work = std::visit(
      [&]<typename View>(const View& v4) -> HostTables::Work {
        const router::ForwardCore<View, router::Fib6View> core{v4, parts.tables.v6.view(), parts.tables.view(),
                                                               parts.rules};
        return [kept, core](PacketView packet, std::byte*, const std::byte*) { return core(packet); };
      },
      parts.tables.v4_view());
  return {std::move(work), bytes};
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
