// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network functions that a chain file can name: the one hand-written list. A new function is one folder beside this
// file, and one line in catalog.cc; or it is somebody else's, and comes with a program of theirs (cli/program_main.h).

#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "function/stage_recipe.h"

namespace penstock::nf {

[[nodiscard]] function::NfKinds catalog();
/// The same list with `further` functions behind it. An error names those whose name is taken, or would be no name in a
/// chain file.
[[nodiscard]] Result<std::vector<const function::NfKind*>> catalog_with(function::NfKinds further);
/// Null for an unknown name.
[[nodiscard]] const function::NfKind* find_kind(std::string_view name, function::NfKinds kinds = catalog());

/// The kernels that stages of these functions are made from (NetworkFunction::stage_recipe), for processes that run
/// them for others.
[[nodiscard]] std::span<const function::RemoteKernel> remote_kernels();

}  // namespace penstock::nf
