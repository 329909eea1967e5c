// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run says about itself, as JSON: docs/control.md and docs/report.md.

#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "config/chain_file.h"
#include "control/reload.h"
#include "report/run_report.h"

namespace penstock::control {

/// ISO 8601, to the second.
[[nodiscard]] std::string utc_text(std::chrono::system_clock::time_point time);

/// The report of a run of this program: the content of report.json, and the result of `stats`.
[[nodiscard]] nlohmann::ordered_json report_json(const report::RunReport& report, const std::string& chain_file,
                                                 const Errors& errors);

/// The result of `reload` and `rollback`.
[[nodiscard]] nlohmann::ordered_json to_json(const ReloadOutcome& outcome);

struct RunState {
  std::string_view name;  // "starting", "running", "ending", "ended"
  const std::string& chain_file;
  std::chrono::system_clock::time_point started;  // the program
  const report::RunReport* report = nullptr;      // null: packets do not flow yet
  bool ports_started = false;
};
/// The result of `status`.
[[nodiscard]] nlohmann::ordered_json status_json(const config::LoadedChain& loaded, const Reloader& reloader,
                                                 const RunState& state);

}  // namespace penstock::control
