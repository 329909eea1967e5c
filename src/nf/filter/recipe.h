// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The filter's device stage as data: programs for the interpreter, made from the filters, and checked and read where
// somebody else made them. Code that is generated from programs never comes from another process.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/filter/filter_core.h"

namespace penstock::filter {

/// `findings_bytes`: as NfTraits.
[[nodiscard]] function::StageRecipe recipe_of(const FilterList& list, std::uint32_t findings_bytes);

/// Borrows the recipe.
struct RecipeParts {
  FilterView tables;  // without the actions
  std::size_t instructions = 0;
  std::vector<Action> actions;
  std::uint32_t findings_bytes = 0;

  [[nodiscard]] FilterView view() const noexcept {
    FilterView view = tables;
    view.actions = actions.data();
    return view;
  }
};
/// Only whether all parts are there.
[[nodiscard]] Result<RecipeParts> read_recipe(const function::StageRecipe& recipe);
/// Whether no program leaves itself, its memory or the findings, or takes long, for any packet.
[[nodiscard]] Result<void> check_recipe(const function::StageRecipe& recipe);

/// What the stage reads and writes.
[[nodiscard]] Access device_access(bool headers_only) noexcept;

/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_kernel() noexcept;

}  // namespace penstock::filter
