// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/fewest_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "experiments/text_rows.h"

namespace penstock::experiments {
namespace {

constexpr double kNearly = 0.95;

double rate_of(const Point* point) { return point->number("gbps").value_or(0); }
double workers_of(const Point* point) { return point->number("workers").value_or(0); }

/// "none" if no point reaches the rate.
std::string fewest(const std::vector<const Point*>& points, double gbps) {
  const Point* best = nullptr;
  for (const Point* point : points) {
    if (rate_of(point) >= gbps && (best == nullptr || workers_of(point) < workers_of(best))) best = point;
  }
  return gbps <= 0 || best == nullptr ? "none" : best->text("workers");
}

}  // namespace

std::string fewest_workers(const Record& record, Style style) {
  std::map<std::pair<std::string, double>, std::vector<const Point*>> groups;  // by chain and number of GPUs
  for (const Point& point : record.points) {
    const auto gpus = point.number("gpus");
    if (point.text("sweep") == "gpus" && gpus && point.number("gbps")) {
      groups[{point.text("chain"), *gpus}].push_back(&point);
    }
  }
  if (groups.empty()) return {};
  TableRows rows;
  for (const auto& [group, points] : groups) {
    const Point* const best = *std::ranges::max_element(points, {}, rate_of);
    const double limit = best->number("limit_gbps").value_or(0);
    rows.push_back({group.first, fmt::format("{:.0f}", group.second),
                    fmt::format("{:.0f} ({} workers)", rate_of(best), best->text("workers")),
                    limit > 0 ? fmt::format("{:.0f} %", 100 * rate_of(best) / limit) : "",
                    fewest(points, kNearly * limit), fewest(points, kNearly * rate_of(best))});
  }
  return table_of_texts("Fewest workers, 1518-byte frames",
                        {">chain", ">GPUs", ">highest Gbit/s", ">of PCIe's limit", ">workers for 95 % of PCIe's limit",
                         ">workers for 95 % of the highest rate"},
                        rows, style);
}

}  // namespace penstock::experiments
