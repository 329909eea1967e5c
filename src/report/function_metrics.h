// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The metrics of what functions add to the report themselves (docs/report.md, "Details of functions"): hits of rules,
// alerts, SAs. One table says which member of the details becomes which metric. Members that it does not name, such as
// those of functions from outside this tree, become none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "report/exposition.h"
#include "report/run_report.h"

namespace penstock::report {

/// Of a function's rules, or SAs, those with the most hits have series of their own, at most this many: what Prometheus
/// stores must not grow with the rule set.
inline constexpr std::size_t kMostSeries = 1000;

/// A member of details that is a count; empty: there is none.
[[nodiscard]] std::optional<std::uint64_t> count_in(const nlohmann::ordered_json& object, std::string_view member);

void add_function_details(Exposition& out, std::span<const FunctionReport> functions);

}  // namespace penstock::report
