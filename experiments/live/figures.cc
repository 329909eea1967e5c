// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/figures.h"

namespace penstock::experiments {
namespace {

constexpr const char* kWhere5 = "Araujo §5.2, text on figure 5";
constexpr const char* kWhere6 = "Araujo §5.2, text on figure 6";
constexpr const char* kWhere7 = "Araujo §5.2, text on figure 7";

Figure by_rate(const char* id, const char* title, std::vector<std::string> systems, Axis y,
               std::vector<Reference> references) {
  return {.id = id,
          .title = title,
          .where = {{"system", std::move(systems)}},
          .x = {"rate", "Mbit/s sent", AxisKind::logarithmic},
          .y = std::move(y),
          .series = {"system", "processor", "buffer"},
          .limit = std::nullopt,
          .references = std::move(references),
          .bars = std::nullopt,
          .panels = "buffer"};
}

}  // namespace

const std::vector<Figure>& live_figures() {
  static const std::vector<Figure> kFigures{
      by_rate("loss", "Figure 5: packets lost, by rate", {"araujo", "ours", "capture"}, {"lost_percent", "% lost"},
              {{"CPU", 40, 100, kWhere5, "none"}, {"CPU", 95, 1000, kWhere5, "none"}}),
      {.id = "throughput-buffer",
       .title = "Figure 6: throughput at 1 Gbit/s, by buffer (none: CPU, and our arrangement)",
       .where = {{"system", {"araujo", "ours"}}, {"rate", {"1000"}}},
       .x = {"buffer", "buffer"},
       .y = {"mbps", "Mbit/s inspected"},
       .series = {"system", "processor"},
       .limit = std::nullopt,
       .references = {{"CPU", 50, std::nullopt, kWhere6}, {"GPU, 4 MB and more", 900, std::nullopt, kWhere6}}},
      by_rate("throughput", "Throughput by rate, with the limits: veth without a capture, capture without functions",
              {"veth", "capture", "araujo", "ours"}, {"mbps", "Mbit/s inspected"}, {}),
      by_rate("cpu", "Figure 7: use of four cores, by rate", {"araujo", "ours", "capture"},
              {"cpu_percent", "% of the CPU"},
              {{"CPU, least", 65, std::nullopt, kWhere7, "none"}, {"CPU, most", 78, std::nullopt, kWhere7, "none"}}),
      {.id = "gpu",
       .title = "Figure 8: use of the GPU, by rate",
       .where = {{"system", {"araujo", "ours"}}, {"processor", {"gpu"}}},
       .x = {"rate", "Mbit/s sent", AxisKind::logarithmic},
       .y = {"gpu_percent", "% of the time"},
       .series = {"system", "processor", "buffer"},
       .limit = std::nullopt,
       .references = {},
       .bars = std::nullopt,
       .panels = "buffer"},
      by_rate("delay", "Mean delay of inspected packets, by rate (table 2 is made of this)",
              {"araujo", "ours", "capture"}, {"delay_ms", "ms", AxisKind::logarithmic}, {}),
  };
  return kFigures;
}

}  // namespace penstock::experiments
