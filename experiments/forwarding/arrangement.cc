// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/arrangement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "experiments/measured_chain.h"

namespace penstock::experiments {
namespace {

constexpr unsigned kFlows = 256;
constexpr unsigned kMostGenerators = 8;
constexpr unsigned kThreadsForFour = 8;  // for points with four workers
constexpr std::array<unsigned, 2> kSizes{64, 1518};
constexpr std::array<unsigned, 3> kLoads{0, 50, 80};

struct System {
  const char* name;
  const char* processor;
};
constexpr std::array<System, 5> kSystems{
    {{"linux", "cpu"}, {"af_packet", "cpu"}, {"af_xdp", "cpu"}, {"af_packet", "gpu"}, {"af_xdp", "gpu"}}};
constexpr std::array<const char*, 4> kLimits{"send_af_packet", "send_af_xdp", "receive_af_packet", "receive_af_xdp"};

Point point_of(const char* sweep, const System& system, const char* chain, unsigned size, unsigned workers) {
  return Point()
      .set("sweep", sweep)
      .set("system", system.name)
      .set("processor", system.processor)
      .set("chain", chain)
      .set("size", size)
      .set("workers", workers);
}

/// All systems with one setting, one after the other, so that they meet the machine in the same state.
void add_rates(std::vector<Point>& points, unsigned size, unsigned workers) {
  for (const char* const limit : kLimits) points.push_back(point_of("limits", {limit, "cpu"}, "none", size, workers));
  for (const System& system : kSystems) points.push_back(point_of("rate", system, "router", size, workers));
  if (size != kSizes.front()) return;  // rules cost time for each packet, whatever its size
  for (const System& system : std::span(kSystems).subspan(1))
    points.push_back(point_of("rate", system, "firewall-router", size, workers));
}

void add_latencies(std::vector<Point>& points) {
  for (const unsigned load : kLoads) {
    for (const System& system : kSystems)
      points.push_back(point_of("latency", system, "router", kSizes.front(), 1).set("load_percent", load));
  }
}

std::string port(const std::string& kind, const char* interface, const std::string& netns, const char* more) {
  return fmt::format("{{{}: {{interface: {}, netns: {}{}{}}}}}", kind, interface, netns,
                     kind == "af_xdp" ? ", mode: native" : "", more);
}

std::string workers_text(unsigned workers, const CpuList& cores) {
  std::string text = fmt::format("  workers: {}\n", workers);
  if (!cores.empty()) text += fmt::format("  cores: \"{}\"\n", format_cpu_list(cores));
  return text;
}

}  // namespace

std::vector<Point> forwarding_points(bool quick, unsigned threads) {
  std::vector<unsigned> workers{1, 2};
  if (threads >= kThreadsForFour) workers.push_back(4);
  std::vector<Point> points;
  for (const unsigned count : quick ? std::vector<unsigned>{1} : workers) {
    for (const unsigned size : std::span(kSizes).first(quick ? 1 : kSizes.size())) add_rates(points, size, count);
    if (count == 1) add_latencies(points);
  }
  return points;
}

ForwardingCores forwarding_cores(unsigned workers, const CpuList& usable) {
  const std::span<const unsigned> all(usable);
  if (all.size() <= 3 * workers) {
    const std::size_t some = std::min<std::size_t>(workers, all.size());
    const auto first = all.first(some);
    const auto last = all.last(some);
    return {{{first.begin(), first.end()}, {last.begin(), last.end()}}, {}, {}, 1};
  }
  const auto take = [&](std::size_t from, std::size_t count) {
    const auto part = all.subspan(from, count);
    return CpuList(part.begin(), part.end());
  };
  const unsigned generators = std::min<unsigned>(kMostGenerators, static_cast<unsigned>(all.size()) - 3 * workers);
  return {{take(0, workers), take(2 * workers, workers)},
          take(workers, workers),
          take(3 * workers, generators),
          generators};
}

std::string gateway_chain(const Point& point, const ForwardingCores& cores, const GatewayFiles& files,
                          const std::string& gpus) {
  const std::string system = point.text("system");
  const bool only_receives = system.starts_with("receive_");
  const std::string kind = only_receives ? system.substr(std::string_view("receive_").size()) : system;
  const std::string netns = ForwardingNetwork::gateway();
  std::string text = fmt::format("ports:\n  lan: {}\n  wan: {}\n",
                                 port(kind, ForwardingNetwork::kLan, netns, only_receives ? ", direction: read" : ""),
                                 only_receives ? "{'null': {}}" : port(kind, ForwardingNetwork::kWan, netns, ""));
  if (only_receives) {
    text += "chain: []\n";
  } else {
    text += "chain:\n";
    if (point.text("chain") == "firewall-router")
      text += fmt::format("  - firewall: {{rules: {}}}\n", yaml_text(files.rules));
    text += fmt::format("  - router: {{routes: {}, neighbours: {}, macs: {{lan: \"{}\", wan: \"{}\"}}}}\n",
                        yaml_text(files.routes), yaml_text(files.neighbours), ForwardingNetwork::kLanMac,
                        ForwardingNetwork::kWanMac);
  }
  text += fmt::format("run:\n  processor: {}\n", point.text("processor"));
  if (point.text("processor") == "gpu" && !gpus.empty()) text += fmt::format("  gpus: \"{}\"\n", gpus);
  return text + workers_text(static_cast<unsigned>(point.number("workers").value_or(1)), cores.workers);
}

std::string load_chain(const Point& point, const char* kind, const ForwardingCores& cores, std::optional<double> mpps) {
  return fmt::format(
      "ports:\n  load: {{generator: {{size: {}, flows: {}, source: {}, destination: {}, frames: kept{}}}}}\n"
      "  out: {}\nchain: []\nrun:\n  processor: cpu\n{}",
      point.text("size"), kFlows, ForwardingNetwork::kSources, ForwardingNetwork::kDestinations,
      mpps ? fmt::format(", rate: {:.6f}Mpps", *mpps) : "",
      port(kind, ForwardingNetwork::kHostInterface, ForwardingNetwork::client(), ", direction: write"),
      workers_text(cores.generators, cores.generator));
}

}  // namespace penstock::experiments
