// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a tenant has done, by its report, and what tenants did in a time in which all of them ran. Pure.

#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace penstock::experiments {

/// Counters of a run since its start.
struct Usage {
  double elapsed_s = 0;
  double packets = 0, bytes = 0;                  // received
  double left = 0, dropped = 0;                   // packets that have left the chain, dropped ones included
  double to_device = 0, to_host = 0;              // bytes
  double segments = 0, failures = 0;              // on the GPU
  std::vector<std::pair<double, double>> longer;  // latency in us, and how many packets had a longer one; rising
  double longest_us = 0;
};

/// From a report (docs/report.md). Fails if it lacks a value.
[[nodiscard]] Result<Usage> usage_of(const nlohmann::json& report);

/// The part of a run between two looks.
struct Window {
  double mpps = 0, gbps = 0;          // received; bits include the FCS
  double to_device = 0, to_host = 0;  // bytes per second
  double p99_us = 0;                  // interpolated between the limits of the report
};

/// Fails if the tenant did nothing, dropped packets, or did not use the GPU for all of them.
[[nodiscard]] Result<Window> between(const Usage& begin, const Usage& end);

/// The latency that 99 percent of the packets between the looks did not exceed. `longest_us` bounds it; 0 if there are
/// no packets.
[[nodiscard]] double p99_between(const Usage& begin, const Usage& end);

/// The largest deviation of a tenant's part of the sum from the promised one, in percent of the latter. `rates` and
/// `promised` are equally long; 0 if nobody got anything.
[[nodiscard]] double share_error_percent(std::span<const double> rates, std::span<const double> promised);

}  // namespace penstock::experiments
