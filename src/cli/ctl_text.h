// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of the control protocol as text for the terminal. All functions throw nlohmann::json::exception if a result
// lacks what this version of the program expects.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace penstock::cli {

[[nodiscard]] std::string status_text(const nlohmann::ordered_json& status);
/// Of `explain`.
[[nodiscard]] std::string explanation_text(const nlohmann::ordered_json& explanation);
/// Of `trace` and `capture`, when they have ended.
[[nodiscard]] std::string observation_text(const nlohmann::ordered_json& result);
/// A text of several lines, without control characters.
[[nodiscard]] std::string printable_lines(const nlohmann::ordered_json& text);
/// Of a reload, a dry run or a rollback.
[[nodiscard]] std::string reload_text(const nlohmann::ordered_json& outcome);
/// Counts since the run began.
[[nodiscard]] std::string stats_text(const nlohmann::ordered_json& now);
/// Rates between two results of `stats`.
[[nodiscard]] std::string rates_text(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now);

}  // namespace penstock::cli
