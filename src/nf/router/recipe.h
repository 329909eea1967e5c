// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's device stage as data: made from the tables, and checked and read where somebody else made it.

#pragma once

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/router/forward_core.h"
#include "nf/router/table_spans.h"

namespace penstock::router {

[[nodiscard]] function::StageRecipe recipe_of(const TableSpans& tables, CheckRules rules);

struct RecipeParts {
  TableRuns tables;  // borrows the recipe
  CheckRules rules;
};
/// Only whether all parts are there, and each run has entries.
[[nodiscard]] Result<RecipeParts> read_recipe(const function::StageRecipe& recipe);
/// Whether no lookup leaves these tables or takes long, for any packet.
[[nodiscard]] Result<void> check_recipe(const function::StageRecipe& recipe);

/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_kernel() noexcept;

}  // namespace penstock::router
