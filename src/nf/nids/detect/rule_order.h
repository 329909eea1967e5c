// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In which order rules are looked at: what passes before what drops before what alerts; what sets bits before what asks
// for them; by priority; as the files have them (Suricata's signature ordering).

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/rules/rule.h"

namespace penstock::nids {

/// Indices of `rules`, the first to be looked at first.
[[nodiscard]] std::vector<std::uint32_t> evaluation_order(std::span<const Rule> rules);

}  // namespace penstock::nids
