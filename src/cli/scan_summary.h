// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What `penstock scan` prints at its end, as JSON and as tables.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "report/run_report.h"

namespace penstock::cli {

/// Of a run's report and errors, with the details of `nids` at the top.
[[nodiscard]] nlohmann::ordered_json scan_summary(const std::vector<std::string>& captures,
                                                  const report::RunReport& report, const Errors& errors);

/// The summary as text; `load_table` says what became of the rules.
[[nodiscard]] std::string scan_tables(const nlohmann::ordered_json& summary, const std::string& load_table);

}  // namespace penstock::cli
