// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/reload.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "cli/chain_arguments.h"

namespace penstock::cli {

void print_reload(const control::ReloadOutcome& outcome, const config::LoadedChain& loaded, std::string_view asked_by) {
  using Result = control::ReloadOutcome::Result;
  // The time distinguishes the messages of several reloads.
  const std::string heading =
      fmt::format("{} at {:%Y-%m-%d %H:%M:%S} UTC ({})",
                  outcome.what == control::ReloadOutcome::What::rollback ? "Rollback" : "Reload",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(outcome.at)), asked_by);
  if (outcome.result == Result::in_use) print_warnings(loaded);
  print_errors(outcome.errors);
  switch (outcome.result) {
    case Result::refused:
    case Result::failed: fmt::print(stderr, "{}: refused, see above; nothing has changed\n", heading); break;
    case Result::unchanged: fmt::print(stderr, "{}: nothing has changed; the run continues\n", heading); break;
    case Result::in_use:
      fmt::print(stderr, "{}: in use after {:.1f} s; the run continues\n", heading, outcome.elapsed.count());
      for (const config::Reload::Change& change : outcome.changes)
        fmt::print(stderr, "  {}: {}\n", change.function, change.what);
  }
}

}  // namespace penstock::cli
