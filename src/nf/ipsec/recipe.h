// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The inbound device stage as data: made from the tables, and checked and read where somebody else made it. It has the
// keys of its SAs.

#pragma once

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/ipsec/table_spans.h"

namespace penstock::ipsec {

/// Of inbound tables. The table of keys is wiped with its last copy.
[[nodiscard]] function::StageRecipe recipe_of(const TableSpans& tables);

/// Only whether all parts are there. Borrows the recipe.
[[nodiscard]] Result<TableSpans> read_recipe(const function::StageRecipe& recipe);
/// Whether no packet leaves these tables, its frame, or takes long.
[[nodiscard]] Result<void> check_recipe(const function::StageRecipe& recipe);

/// What a stage on a device reads and writes. Reads nearly every field: whatever is read affects each byte that is
/// written.
[[nodiscard]] constexpr Access device_access() noexcept {
  constexpr FieldSet kReads = FieldSet::all() - FieldSet{Field::timestamp, Field::mark, Field::flow_hash};
  return {kReads, kReads - FieldSet{Field::in_port, Field::arp}};
}

/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_kernel() noexcept;

}  // namespace penstock::ipsec
