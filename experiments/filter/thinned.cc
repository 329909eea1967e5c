// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/thinned.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace penstock::experiments {
namespace {

constexpr const char* kSize = "1518";
constexpr double kKept[] = {50, 25, 6.25};
constexpr double kKeptQuick[] = {25};
constexpr unsigned kGpuWorkers = 4;

/// The filter and its comma. It keeps the packets whose last `bits` bits of the source address are 0.
std::string filter_text(double kept, bool on_cpu) {
  unsigned mask = 0;
  while (100.0 / (mask + 1) > kept) mask = mask * 2 + 1;
  return fmt::format("filter: {{expression: \"ip[15] & {} = 0\"{}}}, ", mask, on_cpu ? ", processor: cpu" : "");
}

}  // namespace

void Thinned::plan(std::vector<Point>& points) const {
  const auto add = [&](const char* processor, const char* mode, double kept, unsigned workers) {
    points.emplace_back()
        .set("sweep", "thinned")
        .set("mode", mode)
        .set("kept", kept)
        .set("size", kSize)
        .set("processor", processor)
        .set("workers", std::min(workers, setting_.workers));
  };
  const auto add_all = [&](const char* processor, std::initializer_list<const char*> modes, unsigned workers) {
    add(processor, "nids", 100, workers);
    for (const char* mode : modes) {
      for (const double kept : setting_.quick ? std::span<const double>(kKeptQuick) : kKept) {
        add(processor, mode, kept, workers);
      }
    }
  };
  add_all("cpu", {"filter"}, 1);
  if (setting_.workers > 1) add_all("cpu", {"filter"}, setting_.workers);
  add_all("gpu", {"filter", "filter-on-cpu"}, kGpuWorkers);
}

Result<void> Thinned::measure(Point& point, const Point& limits) {
  MeasuredChain chain = chains_.chain("nids", "paper");
  const std::string mode = point.text("mode");
  if (mode != "nids") chain.functions.insert(1, filter_text(*point.number("kept"), mode == "filter-on-cpu"));
  chain.size = kSize;
  chain.on_gpu = point.text("processor") == "gpu";
  if (chain.on_gpu && !setting_.gpus.empty()) chain.gpus = {setting_.gpus.front().index};
  chain.workers = static_cast<unsigned>(*point.number("workers"));
  if (auto checked = runner_.check(chain); !checked) return checked;
  return runner_.measure(point, chain, limits, setting_);
}

}  // namespace penstock::experiments
