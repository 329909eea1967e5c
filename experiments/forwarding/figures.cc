// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/figures.h"

#include <optional>
#include <string>
#include <utility>

namespace penstock::experiments {
namespace {

Figure by_workers(const char* id, const char* title, std::vector<Condition> where, Axis y) {
  return {.id = id,
          .title = title,
          .where = std::move(where),
          .x = {"workers", "workers (Linux: cores)"},
          .y = std::move(y),
          .series = {"system", "processor", "size"},
          .limit = std::nullopt,
          .references = {},
          .bars = std::nullopt,
          .panels = "size"};
}

Figure by_load(const char* id, const char* title, Axis y) {
  return {.id = id,
          .title = title,
          .where = {{"sweep", {"latency"}}},
          .x = {"load_percent", "% of the system's own rate"},
          .y = std::move(y),
          .series = {"system", "processor"},
          .limit = std::nullopt,
          .references = {}};
}

}  // namespace

const std::vector<Figure>& forwarding_figures() {
  static const std::vector<Condition> kRouter{{"sweep", {"rate"}}, {"chain", {"router"}}};
  static const std::vector<Condition> kFirewall{{"sweep", {"rate"}}, {"chain", {"firewall-router"}}};
  static const Axis kRate{"mpps", "million packets/s delivered"};
  static const std::vector<Figure> kFigures{
      by_workers("rate", "Delivered packets, as many as possible: router", kRouter, kRate),
      by_workers("firewall", "Delivered packets, as many as possible: firewall (1,000 rules), router", kFirewall,
                 kRate),
      by_workers("limits", "What the interfaces allow: sent without a gateway, received without forwarding",
                 {{"sweep", {"limits"}}}, {"mpps", "million packets/s"}),
      by_workers("lost", "Packets lost under that load: router", kRouter, {"lost_percent", "% lost"}),
      by_workers("cores", "Busy cores of the whole machine, with the load: router", kRouter, {"busy_cores", "cores"}),
      by_load("delay", "Delay of single packets, one worker, load of 64-byte frames: 99th percentile",
              {"p99_us", "us", AxisKind::logarithmic}),
      by_load("delay-median", "Delay of single packets, one worker, load of 64-byte frames: median",
              {"p50_us", "us", AxisKind::logarithmic}),
      by_load("delay-longest", "Delay of single packets, one worker, load of 64-byte frames: longest",
              {"max_us", "us", AxisKind::logarithmic}),
      by_load("probes-lost", "Single packets lost, one worker, load of 64-byte frames",
              {"probes_lost_percent", "% lost"}),
  };
  return kFigures;
}

}  // namespace penstock::experiments
