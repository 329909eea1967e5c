// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The workers' counters as report.json.

#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "run/chain.h"
#include "run/worker.h"

namespace penstock::run {

[[nodiscard]] nlohmann::ordered_json make_report(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers,
                                                 std::chrono::nanoseconds elapsed);

/// The report as tables for the terminal.
[[nodiscard]] std::string report_tables(const nlohmann::ordered_json& report);

}  // namespace penstock::run
