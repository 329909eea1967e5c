// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the page of a run shows, as JSON: docs/metrics.md, "/api/status". Bounded in size, whatever the rules and
// however many of them matched.

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/metrics.h"
#include "report/run_report.h"
#include "run/chain.h"

namespace penstock::control {

/// How many rules and warnings are shown.
inline constexpr std::size_t kMostShown = 10;

/// The functions and forks. Reloads do not change them. Must not be called while packets flow.
[[nodiscard]] nlohmann::ordered_json plan_json(const run::Chain& chain);

/// `plan`: of plan_json. `status`: the result of `status` (status.h). `report`: null before packets flow.
[[nodiscard]] nlohmann::ordered_json live_json(const nlohmann::ordered_json& plan, const nlohmann::ordered_json& status,
                                               const report::RunReport* report, const report::RunFacts& facts);

}  // namespace penstock::control
