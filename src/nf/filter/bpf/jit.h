// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine `jit`: machine code for x86-64, assembled by AsmJit.

#pragma once

#include <memory>
#include <vector>

#include "nf/filter/bpf/matcher.h"

namespace penstock::filter {

[[nodiscard]] bool has_jit() noexcept;
/// Fails if this build has no AsmJit or is not for x86-64, or if the system grants no executable memory.
[[nodiscard]] Result<std::unique_ptr<Matcher>> make_jit_matcher(const std::vector<Program>& programs);

}  // namespace penstock::filter
