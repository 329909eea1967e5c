// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The firewall's device stage as data: made from the tables, and checked and read where somebody else made it.

#pragma once

#include <cstdint>

#include "base/error.h"
#include "classify/table_spans.h"
#include "function/stage_recipe.h"

namespace penstock::firewall {

/// Which of the stages in device_stage.h.
enum class StageKind : std::uint8_t { plain, tracked, translating };

[[nodiscard]] function::StageRecipe recipe_of(const classify::TableSpans& tables, StageKind kind);

struct RecipeParts {
  classify::TableSpans tables;  // borrows the recipe
  StageKind kind;
};
/// Only whether all parts are there.
[[nodiscard]] Result<RecipeParts> read_recipe(const function::StageRecipe& recipe);
/// Whether no search leaves these tables or takes long, for any packet and any state.
[[nodiscard]] Result<void> check_recipe(const function::StageRecipe& recipe);

/// What a stage on a device reads and writes.
[[nodiscard]] Access device_access(StageKind kind) noexcept;

/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_kernel() noexcept;

}  // namespace penstock::firewall
