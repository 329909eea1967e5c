// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/costs.h"

#include <charconv>
#include <cmath>

#include "experiments/repeats.h"

namespace penstock::experiments {
namespace {

std::optional<double> positive(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const bool right = error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) && value > 0;
  return right ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<Cost> parse_cost(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto dollars = positive(text.substr(0, colon));
  const auto watts = positive(text.substr(colon + 1));
  if (!dollars || !watts) return std::nullopt;
  return Cost{*dollars, *watts};
}

void add_costs(Record& record, const Costs& costs) {
  if (costs.core) record.limits.set("core_dollars", costs.core->dollars).set("core_watts", costs.core->watts);
  if (costs.gpu) record.limits.set("gpu_dollars", costs.gpu->dollars).set("gpu_watts", costs.gpu->watts);
  for (Point& point : record.points) {
    const auto gbps = point.number("gbps");
    const auto cores = point.number("workers");
    const bool on_gpu = point.text("processor") == "gpu";
    if (!gbps || !cores || !costs.core || (on_gpu && !costs.gpu)) continue;
    const double gpus = on_gpu ? point.number("gpus").value_or(static_cast<double>(record.machine.gpus.size())) : 0;
    const Cost gpu = costs.gpu.value_or(Cost{});
    const double dollars = *cores * costs.core->dollars + gpus * gpu.dollars;
    const double watts = *cores * costs.core->watts + gpus * gpu.watts;
    point.set("dollars", dollars).set("watts", watts);
    const Repeats repeats = repeats_of(point, "gbps");
    set_repeats(point, "mbps_per_dollar", divided(repeats, dollars / 1e3));
    set_repeats(point, "mbps_per_watt", divided(repeats, watts / 1e3));
  }
}

}  // namespace penstock::experiments
