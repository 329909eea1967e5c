// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The summary that `penstock scan` prints at the end, as JSON and as tables.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "report/run_report.h"

namespace penstock::cli {

/// Makes the summary from the report and the errors of a run. The details of `nids` are at the top level.
[[nodiscard]] nlohmann::ordered_json scan_summary(const std::vector<std::string>& captures,
                                                  const report::RunReport& report, const Errors& errors);

/// The summary as text. `load_table` describes how the rules were loaded.
[[nodiscard]] std::string scan_tables(const nlohmann::ordered_json& summary, const std::string& load_table);

}  // namespace penstock::cli
