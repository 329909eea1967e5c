// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/reload.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>

#include "config/outputs.h"
#include "config/reload.h"

namespace penstock::cli {

namespace {

/// The time distinguishes the messages of several reloads.
std::string heading() {
  return fmt::format("Reload at {:%Y-%m-%d %H:%M:%S} UTC (SIGUSR2)", fmt::gmtime(std::time(nullptr)));
}

void refuse_reload(const Errors& errors) {
  print_errors(errors);
  fmt::print(stderr, "{}: refused, see above; nothing has changed\n", heading());
}

}  // namespace

void reload(run::Run& run, config::LoadedChain& loaded, const ChainArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  auto planned = arguments.plan_reload(loaded);
  if (!planned) return refuse_reload(planned.error());
  if (planned->changes.empty()) {
    fmt::print(stderr, "{}: nothing has changed; the run continues\n", heading());
    return;
  }
  if (auto applied = run.apply(std::move(planned->functions)); !applied) return refuse_reload(applied.error());
  loaded.unsupported = std::move(planned->unsupported);
  loaded.without_effect = std::move(planned->without_effect);
  loaded.cautions = std::move(planned->cautions);
  print_warnings(loaded);
  if (const auto written = config::write_text_outputs(planned->texts); !written) print_errors(written.error());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  fmt::print(stderr, "{}: in use after {:.1f} s; the run continues\n", heading(), elapsed.count());
  for (const config::Reload::Change& change : planned->changes)
    fmt::print(stderr, "  {}: {}\n", change.function, change.what);
}

}  // namespace penstock::cli
