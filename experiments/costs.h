// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rate costs (Gaviss §5.3, figure 8). Prices and power cannot be measured here, so the user states them; each
// point that uses them contains them. A kept record can be rendered with other prices.

#pragma once

#include <optional>
#include <string_view>

#include "experiments/record.h"

namespace penstock::experiments {

/// Cost of one host core (as in Gaviss, a share of the CPU's price) or of one GPU.
struct Cost {
  double dollars = 0;
  double watts = 0;
};

struct Costs {
  std::optional<Cost> core, gpu;
};

/// Parses "2424:145", dollars and watts. Returns nothing for any other text.
[[nodiscard]] std::optional<Cost> parse_cost(std::string_view text);

/// Adds the costs to the record's limits (core_dollars, core_watts, gpu_dollars, gpu_watts), and sets or replaces these
/// values in each point that has `gbps` and `workers` and whose parts have a cost:
///
///   dollars, watts          of the workers' cores, and of the GPUs if it uses them
///   mbps_per_dollar, mbps_per_watt
void add_costs(Record& record, const Costs& costs);

}  // namespace penstock::experiments
