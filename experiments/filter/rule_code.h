// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules as code: a kernel in CUDA C++ in which every rule is a comparison with immediates, one after the other, without
// a loop. It is what the paper's "rules in registers" become if there are more rules than registers.

#pragma once

#include <span>
#include <string>

#include "experiments/filter/word_rules.h"

namespace penstock::experiments {

/// The kernel's name: (KeysAt, std::uint32_t count, ResultsAt), a thread for each key (key_filter.h).
inline constexpr const char* kRuleKernel = "filter_keys";

/// Fields that are wildcards are left out: the compiler would remove them anyway.
[[nodiscard]] std::string rule_code(std::span<const WordRule<kKeyWords>> rules, Deciding deciding);

}  // namespace penstock::experiments
