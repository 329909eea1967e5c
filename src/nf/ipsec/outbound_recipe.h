// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The outbound device stage as data, where the host decides about packets (esp/decision_core.h): SAs and their keys.
// Policies, statuses and sequence numbers stay with the function.

#pragma once

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/ipsec/table_spans.h"

namespace penstock::ipsec {

/// The table of keys is wiped with its last copy.
[[nodiscard]] function::StageRecipe recipe_of(const SealingSpans& tables);

/// Only whether all parts are there. Borrows the recipe.
[[nodiscard]] Result<SealingSpans> read_outbound_recipe(const function::StageRecipe& recipe);
/// Whether no packet leaves these tables or its frame, whatever is decided about it.
[[nodiscard]] Result<void> check_outbound_recipe(const function::StageRecipe& recipe);
/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_outbound_kernel() noexcept;

}  // namespace penstock::ipsec
