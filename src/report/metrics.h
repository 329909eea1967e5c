// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The metrics of a run, for Prometheus (docs/metrics.md): what its report has, and a few facts about the process.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/run_report.h"

namespace penstock::report {

/// What metrics say beside the report.
struct RunFacts {
  std::string_view version, commit;
  std::string_view state;  // one of kRunStates
  double started_s = 0;    // Unix time of the process's start
  double cpu_s = 0;        // of the process
  std::uint64_t resident_bytes = 0;
  struct Reload {
    bool successful = false;
    double at_s = 0;  // Unix time
  };
  std::optional<Reload> last_reload;
  std::vector<std::pair<std::string, bool>> links;  // by port: whether frames can be sent
  std::vector<std::pair<int, double>> gpu_use;      // by GPU: the part of the time in which a kernel was running
};

inline constexpr std::string_view kRunStates[] = {"starting", "running", "ending", "ended"};

/// `report`: null before packets flow.
[[nodiscard]] std::string metrics_text(const RunReport* report, const RunFacts& facts);

}  // namespace penstock::report
