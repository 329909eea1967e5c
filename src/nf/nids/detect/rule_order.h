// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The order in which rules are evaluated (Suricata's signature ordering): pass before drop before alert rules; then
// rules that set bits before rules that test them; then by priority; then in file order.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/rules/rule.h"

namespace penstock::nids {

/// Indices of `rules` in the order of evaluation.
[[nodiscard]] std::vector<std::uint32_t> evaluation_order(std::span<const Rule> rules);

}  // namespace penstock::nids
