// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "experiments/summary.h"

namespace penstock::experiments {
namespace {

bool concerns(const Difference& difference, const Record& record) {
  return difference.where.empty() ||
         std::ranges::any_of(record.points, [&](const Point& point) { return satisfies(point, difference.where); });
}

std::string with_machine(std::string text, const Record& record) {
  constexpr std::string_view kMachine = "{machine}";
  const std::size_t at = text.find(kMachine);
  return at == text.npos ? text : text.replace(at, kMachine.size(), printable(machine_text(record.machine)));
}

}  // namespace

std::string differences_table(const Differences& differences, const Record& record) {
  std::string text = fmt::format("| | {} | here | why |\n| --- | --- | --- | --- |\n", differences.paper);
  for (const Difference& difference : differences.rows) {
    if (!concerns(difference, record)) continue;
    text += fmt::format("| {} | {} | {} | {} |\n", difference.what, difference.paper,
                        with_machine(difference.ours, record), difference.why);
  }
  return text;
}

}  // namespace penstock::experiments
