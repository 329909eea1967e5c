// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What distinguishes the tables of two epochs, for the user.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nf/ipsec/selection/policy.h"

namespace penstock::ipsec {

class Tables;

/// By SA of `tables`: the index of the SA with the same destination and SPI in `others`, kNoSa if there is none.
[[nodiscard]] std::vector<std::uint32_t> find_sas(const Tables& tables, const Tables& others);

/// The same for policies that select and ask for the same. Where a policy is in its file does not matter, nor how much
/// it has carried.
[[nodiscard]] std::uint64_t hash_of(const Policy& policy);

/// "2 SAs added, 1 removed; 3 policies added, 1 removed". Empty if `after` treats packets as `before` does. How far an
/// SA has got according to its file is no change.
[[nodiscard]] std::string changes(const Tables& before, const Tables& after);

}  // namespace penstock::ipsec
