// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/arrangement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/units.h"
#include "experiments/measured_chain.h"

namespace penstock::experiments {
namespace {

constexpr std::array<const char*, 10> kRates{"10",  "50",   "100",  "200",  "400",
                                             "800", "1000", "2000", "5000", "unlimited"};
constexpr std::array<const char*, 2> kQuickRates{"100", "1000"};
constexpr std::array<const char*, 4> kLimitRates{"1000", "2000", "5000", "unlimited"};
constexpr std::array<const char*, 1> kQuickLimitRates{"unlimited"};
constexpr std::array<const char*, 2> kQuickBuffers{"1MiB", "8MiB"};

/// Batches for frames of 512 bytes on average, so that those of full frames are closed by their bytes.
std::string batch_packets(const std::string& buffer) {
  return std::to_string(std::max<std::uint64_t>(512, parse_size(buffer).value_or(0) / 512));
}

std::string run_section(const Point& point, const std::string& gpus) {
  const bool on_gpu = point.text("processor") == "gpu";
  std::string text = fmt::format("run:\n  processor: {}\n", point.text("processor"));
  if (on_gpu && !gpus.empty()) text += fmt::format("  gpus: \"{}\"\n", gpus);
  if (point.text("system") == "capture") return text + "  workers: 1\n";
  if (point.text("system") == "ours") return text + fmt::format("  workers: {}\n", kLiveThreads);
  text += fmt::format("  queueing: shared\n  workers: {}\n  queue: {{bytes: 128MiB}}\n", kLiveThreads - 1);
  // On the CPU, his threads process each packet when they take it.
  if (!on_gpu) return text + "  batch: {bytes: 64KiB, timeout: 0}\n";
  const std::string buffer = point.text("buffer");
  return text +
         fmt::format("  batch: {{bytes: {}, packets: {}, timeout: 500ms}}\n  streams: 16\n  transfer: streamed\n",
                     buffer, batch_packets(buffer));
}

}  // namespace

std::vector<Point> live_points(bool quick) {
  std::vector<Point> points;
  const auto add = [&](const char* system, const char* processor, const char* buffer,
                       std::span<const char* const> rates) {
    for (const char* const rate : rates) {
      points.push_back(
          Point().set("system", system).set("processor", processor).set("buffer", buffer).set("rate", rate));
    }
  };
  const auto limit_rates = quick ? std::span<const char* const>(kQuickLimitRates) : kLimitRates;
  const auto rates = quick ? std::span<const char* const>(kQuickRates) : kRates;
  add("veth", "cpu", "none", limit_rates);
  add("capture", "cpu", "none", limit_rates);
  add("araujo", "cpu", "none", rates);
  add("ours", "cpu", "none", rates);
  for (const char* const buffer : quick ? std::span<const char* const>(kQuickBuffers) : kLiveBuffers)
    add("araujo", "gpu", buffer, rates);
  add("ours", "gpu", "none", rates);
  return points;
}

std::string live_chain(const Point& point, const std::string& interface, const std::string& netns,
                       const std::string& rules, const std::string& gpus) {
  std::string text = fmt::format("ports:\n  in: {{af_packet: {{interface: {}, direction: read{}}}}}\n", interface,
                                 netns.empty() ? "" : ", netns: " + netns);
  if (point.text("system") == "capture") {
    text += "chain: []\n";
  } else {
    // Packets by themselves, since his workers do not keep flows together.
    text += fmt::format("chain:\n  - nids: {{rules: [{}], tracking: packets{}}}\n", yaml_text(rules),
                        point.text("system") == "araujo" ? ", matcher: aho_corasick" : "");
  }
  return text + run_section(point, gpus);
}

}  // namespace penstock::experiments
