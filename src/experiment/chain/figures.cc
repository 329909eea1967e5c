// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiment/chain/figures.h"

namespace penstock::experiment {
namespace {

const LimitLine kPcie{.label = "PCIe limit", .key = "limit_mpps"};
const Axis kSize{"size", "bytes of a frame with check sequence"};

Figure by_size(const char* id, const char* title, const char* frames, Axis y, std::optional<LimitLine> limit) {
  return {.id = std::string(id) + '-' + frames,
          .title = title,
          .where = {{"sweep", {"size"}}, {"frames", {frames, "host"}}},
          .x = kSize,
          .y = std::move(y),
          .series = {"mode"},
          .limit = std::move(limit),
          .references = {}};
}

}  // namespace

const std::vector<Figure>& chain_figures() {
  const Axis mpps{"mpps", "million packets/s", true};
  static const std::vector<Figure> kFigures{
      by_size("rate", "Whole frames there and back (Gaviss, figures 5 and 7)", "whole", mpps, kPcie),
      by_size("rate", "What the transfer plan names: headers there, changes back", "planned", mpps, kPcie),
      by_size("bits", "Whole frames there and back", "whole", {"gbps", "Gbit/s"}, std::nullopt),
      {.id = "ratio",
       .title = "Rate with packets shared on the GPU by the rate without (Gaviss, figure 6)",
       .where = {{"sweep", {"size"}}, {"mode", {"unshared"}}},
       .x = kSize,
       .y = {"shared_by_unshared", "times"},
       .series = {"frames"},
       .limit = std::nullopt,
       .references = {{"paper, least of chains of up to four functions", 2.6, std::nullopt,
                       "Gaviss §5.2: \"2.6-13.2x higher throughput compared with the baseline system\""}}},
      {.id = "bytes-up",
       .title = "Bytes across PCIe to the device, for each packet (Gaviss, figure 9)",
       .where = {{"sweep", {"size"}}, {"processor", {"gpu"}}},
       .x = kSize,
       .y = {"bytes_up", "bytes"},
       .series = {"frames", "mode"},
       .limit = std::nullopt,
       .references = {}},
      {.id = "bytes-down",
       .title = "Bytes across PCIe to the host, for each packet (Gaviss, figure 9)",
       .where = {{"sweep", {"size"}}, {"processor", {"gpu"}}},
       .x = kSize,
       .y = {"bytes_down", "bytes"},
       .series = {"frames", "mode"},
       .limit = std::nullopt,
       .references = {}},
      {.id = "workers",
       .title = "Rate of whole frames by workers",
       .where = {{"sweep", {"workers"}}},
       .x = {"workers", "workers, a core each"},
       .y = mpps,
       .series = {"size"},
       .limit = kPcie,
       .references = {}},
      {.id = "busy-cores",
       .title = "Host cores kept busy (processor time by time)",
       .where = {{"sweep", {"size"}}},
       .x = kSize,
       .y = {"busy_cores", "cores"},
       .series = {"frames", "mode"},
       .limit = std::nullopt,
       .references = {}},
      {.id = "latency",
       .title = "Latency of whole 1518-byte frames by load, in percent of the most (Gaviss, figure 11)",
       .where = {{"sweep", {"latency"}}},
       .x = {"percentile", "percent of packets"},
       .y = {"latency_us", "microseconds", true},
       .series = {"load"},
       .limit = std::nullopt,
       .references = {{"paper, p95 of chain C4", 4500, 95, "Gaviss §5.5, figure 11"}}},
  };
  return kFigures;
}

}  // namespace penstock::experiment
