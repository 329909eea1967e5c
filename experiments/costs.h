// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rate costs (Gaviss §5.3, figure 8): prices and power are the user's to say, since they are nobody's to measure
// here, and stand in each point that was reckoned with them. A kept record can be rendered with other ones.

#pragma once

#include <optional>
#include <string_view>

#include "experiments/record.h"

namespace penstock::experiments {

/// Of one core of the host, as Gaviss has it the CPU's price parted among its cores, or of one GPU.
struct Cost {
  double dollars = 0;
  double watts = 0;
};

struct Costs {
  std::optional<Cost> core, gpu;
};

/// "2424:145", dollars and watts; nothing for anything else.
[[nodiscard]] std::optional<Cost> parse_cost(std::string_view text);

/// Puts them beside the record's limits (core_dollars, core_watts, gpu_dollars, gpu_watts), and sets, or sets anew, in
/// each point that has `gbps` and `workers` and whose parts have a cost:
///
///   dollars, watts          of its workers' cores, and of its GPUs where it runs on these
///   mbps_per_dollar, mbps_per_watt
void add_costs(Record& record, const Costs& costs);

}  // namespace penstock::experiments
