// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/units.h"

namespace penstock::cli {

bool shows_progress() noexcept { return ::isatty(STDERR_FILENO) == 1; }

void print_progress(const run::Progress& progress) {
  const double seconds = static_cast<double>(progress.elapsed.count()) / 1e9;
  const std::string part = progress.part ? fmt::format("{:3.0f} %, ", *progress.part * 100) : "";
  const std::string line =
      fmt::format("\r\033[K{:.1f} s: {}{}, {}pps", seconds, part, format_count(progress.packets_in, "packet"),
                  format_si(static_cast<double>(progress.packets_in) / seconds));
  std::fputs(line.c_str(), stderr);  // a closed terminal must not end a run
}

void end_progress() { std::fputs("\r\033[K", stderr); }

}  // namespace penstock::cli
