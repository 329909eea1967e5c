// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiment/chain/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/text_file.h"
#include "experiment/chain/figures.h"
#include "experiment/measured_chain.h"
#include "experiment/workload.h"

namespace penstock::experiment {
namespace {

constexpr std::size_t kRules = 1000;
constexpr std::size_t kRoutes = 1'000'000;

constexpr std::array kSizes{"64", "128", "256", "512", "1024", "1518", "imix"};
constexpr std::array kQuickSizes{"64", "1518"};
constexpr std::array<unsigned, 6> kWorkers{1, 2, 3, 4, 8, 12};
constexpr std::array<unsigned, 3> kLoads{10, 50, 80};  // percent of the most that the chain takes in
constexpr std::array kPercentiles{"1", "10", "25", "50", "75", "90", "95", "99", "99.9"};
constexpr const char* kLargeSize = "1518";
constexpr unsigned kLatencyWorkers = 4;

/// Workers that keep one GPU busy: few do where frames are large, and more only press on the memory; small frames are
/// bound by what the host does for each. By the sweep over workers.
unsigned workers_for(std::string_view size, std::string_view frames) {
  if (frames != "whole") return 12;
  if (size == "1518") return 3;
  return size == "512" || size == "1024" ? 4 : 12;
}

class ChainTrial final : public Trial {
 public:
  explicit ChainTrial(const Setting& setting) : setting_(setting), runner_(*setting.stop) {}

  /// The user's files, which must make a chain.
  Result<void> read() {
    const auto rules = file_of(setting_.rules, "rules.txt", [] { return rules_text(kRules); });
    if (!rules) return tl::unexpected(rules.error());
    const auto routes = file_of(setting_.routes, "routes.txt", [] { return routes_text(kRoutes); });
    if (!routes) return tl::unexpected(routes.error());
    routes_ = *routes;
    functions_ =
        fmt::format("[firewall: {{rules: {}}}, router: {{routes: {}}}]", yaml_text(*rules), yaml_text(routes_));
    if (setting_.rules.empty() && setting_.routes.empty()) return {};
    MeasuredChain chain;
    chain.functions = functions_;
    chain.destinations = routes_;
    return runner_.try_out(chain);
  }

  std::vector<Point> plan() override {
    for (const char* size : setting_.quick ? std::span<const char* const>(kQuickSizes) : kSizes) {
      for (const char* frames : {"whole", "planned"}) {
        for (const char* mode : {"shared", "unshared"}) add_gpu("size", size, mode, frames, workers_for(size, frames));
      }
      add_cpu(size);
    }
    if (!setting_.quick) {
      for (const unsigned workers : kWorkers) {
        if (workers > setting_.workers) break;
        for (const char* size : kQuickSizes) {
          add_gpu("workers", size, "shared", "whole", workers);
        }
      }
    }
    for (const unsigned load : kLoads) {
      for (const char* percentile : kPercentiles) {
        add_gpu("latency", kLargeSize, "shared", "whole", kLatencyWorkers);
        points_.back().set("load", load).set("percentile", std::stod(percentile));
      }
    }
    return std::move(points_);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    auto measured = point.text("sweep") == "latency" ? measure_latency(point, limits) : measure_rate(point, limits);
    if (measured) return {};
    for (Error& error : measured.error()) error.message = describe(point) + ": " + error.message;
    return measured;
  }

 private:
  /// The path of what the user names, or of what `make` makes. The standard input is read once, and used more often.
  template <typename Make>
  Result<std::string> file_of(const std::string& given, const std::string& name, Make make) {
    if (given.empty()) return runner_.workplace().put(name, make());
    if (given != "-") return std::filesystem::absolute(given).string();
    const auto text = read_stdin();
    if (!text) return tl::unexpected(text.error());
    return runner_.workplace().put("stdin-" + name, *text);
  }

  void add_gpu(const char* sweep, const char* size, const char* mode, const char* frames, unsigned workers) {
    Point& point = points_.emplace_back();
    point.set("chain", "firewall-router").set("sweep", sweep).set("size", size).set("mode", mode);
    point.set("frames", frames).set("processor", "gpu").set("workers", std::min(workers, setting_.workers));
  }
  void add_cpu(const char* size) {
    Point& point = points_.emplace_back();
    point.set("chain", "firewall-router").set("sweep", "size").set("size", size).set("mode", "cpu");
    point.set("frames", "host").set("processor", "cpu").set("workers", setting_.workers);
  }

  MeasuredChain chain_of(const Point& point) const {
    MeasuredChain chain;
    chain.functions = functions_;
    chain.destinations = routes_;
    chain.size = point.text("size");
    chain.on_gpu = point.text("processor") == "gpu";
    for (const gpu::Device& gpu : setting_.gpus) chain.gpus.push_back(gpu.index);
    chain.workers = static_cast<unsigned>(*point.number("workers"));
    if (chain.on_gpu) chain.frames = point.text("frames");
    chain.sharing = point.text("mode") == "unshared" ? "none" : "packets";
    return chain;
  }

  Result<void> measure_rate(Point& point, const Point& limits) {
    const MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    if (auto measured = runner_.measure(point, chain, limits, setting_); !measured) return measured;
    if (chain.on_gpu) point.set("checked", true);
    if (point.text("sweep") == "size") compare(point);
    return {};
  }

  /// What sharing gives, told with the point that is measured later.
  void compare(Point& point) {
    const std::string what = point.text("size") + " " + point.text("frames");
    const double mpps = *point.number("mpps");
    if (point.text("mode") == "shared") shared_mpps_[what] = mpps;
    const auto shared = shared_mpps_.find(what);
    if (point.text("mode") == "unshared" && shared != shared_mpps_.end()) {
      point.set("shared_by_unshared", shared->second / mpps);
    }
  }

  /// One run, or some, give all percentiles of a load.
  Result<void> measure_latency(Point& point, const Point& limits) {
    const std::string load = point.text("load");
    auto [measured, is_new] = latencies_.try_emplace(load);
    if (is_new) {
      MeasuredChain chain = chain_of(point);
      if (auto checked = runner_.check(chain); !checked) return checked;
      const auto most = most_mpps(chain, limits);
      if (!most) return tl::unexpected(most.error());
      chain.offered_mpps = *most * *point.number("load") / 100;
      chain.latency = "1ms";
      if (auto ran = runner_.measure(measured->second, chain, limits, setting_); !ran) return ran;
      measured->second.set("offered_mpps", *chain.offered_mpps);
    }
    const Point& results = measured->second;
    for (const char* name : {"offered_mpps", "mpps", "lost", "packets_in_batch", "busy_cores"}) {
      if (const auto value = results.number(name)) point.set(name, *value);
    }
    if (const auto latency = results.number("latency_p" + point.text("percentile"))) point.set("latency_us", *latency);
    point.set("checked", true);
    return {};
  }

  /// What the loads are shares of, by the workers that carry them: whichever other points are measured.
  Result<double> most_mpps(const MeasuredChain& chain, const Point& limits) {
    if (!most_mpps_) {
      Point medians;
      if (const auto ran = runner_.measure(medians, chain, limits, setting_); !ran) return tl::unexpected(ran.error());
      most_mpps_ = medians.number("mpps");
    }
    return *most_mpps_;
  }

  const Setting& setting_;
  ChainRunner runner_;
  std::string routes_, functions_;
  std::vector<Point> points_;
  std::map<std::string, double> shared_mpps_;  // by size and frames
  std::map<std::string, Point> latencies_;     // by load
  std::optional<double> most_mpps_;            // of the chain whose latency is measured
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  auto trial = std::make_unique<ChainTrial>(setting);
  if (const auto read = trial->read(); !read) return tl::unexpected(read.error());
  return trial;
}

}  // namespace

const Experiment& chain_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "chain",
      .summary = "firewall and router with packets shared on the GPU, not shared, and on the CPU's cores",
      .source = "Gaviss (Guo et al., TPDS 2022), §5.2 to §5.5, for the chain firewall, router",
      .repeats = 3,
      .duration = milliseconds{500},
      .quick_duration = milliseconds{200},
      .most_gpus = 8,
      .takes_rules = true,
      .takes_routes = true,
      .figures = &chain_figures,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiment
