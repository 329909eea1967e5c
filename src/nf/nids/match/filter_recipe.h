// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The device stage of the hashed filter, as data: made from its tables, and checked and read where somebody else made
// them.

#pragma once

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/nids/match/hashed_filter_layout.h"

namespace penstock::nids {

/// `with_states`: whether packets come with a FlowState each.
[[nodiscard]] function::StageRecipe recipe_of(const FilterSpans& filter, bool with_states);

struct FilterRecipeParts {
  FilterSpans filter;  // borrows the recipe
  bool with_states = false;
};
/// Only whether all parts are there.
[[nodiscard]] Result<FilterRecipeParts> read_filter_recipe(const function::StageRecipe& recipe);
/// Whether no scan leaves these tables or its packet, or takes long, for any packet and any state.
[[nodiscard]] Result<void> check_filter_recipe(const function::StageRecipe& recipe);

/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_filter_kernel() noexcept;

}  // namespace penstock::nids
