// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/live.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "config/chain_file.h"
#include "experiments/live/arrangement.h"
#include "experiments/live/differences.h"
#include "experiments/live/figures.h"
#include "experiments/live/network.h"
#include "experiments/live/recommend.h"
#include "experiments/repeats.h"
#include "gpu/nvml.h"
#include "run/run.h"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kRules = 147;  // as in `detection`

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

/// Counters of a run at one time.
struct Snapshot {
  Clock::time_point time;
  double cpu = 0;
  double arrived = 0, lost = 0, inspected = 0, bits = 0;  // packets; bits of those that were inspected
};

Snapshot look_at(const run::Run& run) {
  const report::RunReport report = run.report();
  Snapshot now{Clock::now(), cpu_seconds(), 0, 0, 0, 0};
  double before = 0;  // lost before they came in
  for (const report::PortReport& port : report.ports) {
    if (!port.interface) continue;
    for (const auto& [reason, packets] : port.interface->lost) before += static_cast<double>(packets);
  }
  now.arrived = static_cast<double>(report.in.packets) + before;
  now.lost = static_cast<double>(report.chain_drops("queue_full")) + before;
  now.inspected = static_cast<double>(report.consumed.packets);
  now.bits = static_cast<double>(report.consumed.bytes) * 8;
  return now;
}

/// The part of a run in which traffic flows: from the first look that finds packets to the last one in time.
class Window {
 public:
  Window(const run::Run& run, std::chrono::nanoseconds time) : run_(run), time_(time) {}

  void look() {
    constexpr double kAFew = 20;  // more than the connection's set-up
    const Snapshot now = look_at(run_);
    if (!begin_) {
      if (now.arrived >= kAFew) begin_ = now;
    } else if (now.time - begin_->time <= time_) {
      end_ = now;
    }
  }

  [[nodiscard]] bool seen() const noexcept { return begin_ && end_ && end_->arrived > begin_->arrived; }
  void results(std::map<std::string, std::vector<double>>& results) const {
    const double elapsed = seconds(end_->time - begin_->time);
    const double arrived = end_->arrived - begin_->arrived;
    const double lost = end_->lost - begin_->lost;
    const double inspected = end_->inspected - begin_->inspected;
    results["mbps"].push_back((end_->bits - begin_->bits) / elapsed / 1e6);
    results["arrived_kpps"].push_back(arrived / elapsed / 1e3);
    results["lost_percent"].push_back(std::clamp(100 * lost / arrived, 0.0, 100.0));
    results["waiting_percent"].push_back(std::clamp(100 * (arrived - lost - inspected) / arrived, 0.0, 100.0));
    results["cpu_percent"].push_back(100 * (end_->cpu - begin_->cpu) / elapsed / kLiveThreads);
  }

 private:
  const run::Run& run_;
  const std::chrono::nanoseconds time_;
  std::optional<Snapshot> begin_, end_;
};

class LiveTrial final : public Trial {
 public:
  explicit LiveTrial(const Setting& setting) : setting_(setting) {}

  /// Reads the user's rules; the chain reports what is wrong with them.
  Result<void> take_rules() {
    if (setting_.rules.empty()) {
      rules_ = folder_.put("live.rules", live_rules());
      return {};
    }
    auto text = read_input(setting_.rules);
    if (!text) return tl::unexpected(std::move(text.error()));
    rules_ = folder_.put("own.rules", *text);
    return {};
  }

  std::vector<Point> plan() override { return live_points(setting_.quick); }

  Result<void> measure(Point& point, const Point& /*limits*/) override { return with_point(measure_all(point), point); }

 private:
  Result<void> measure_all(Point& point) {
    if (network_ == nullptr) {
      auto network = LiveNetwork::make(folder_);
      if (!network) return tl::unexpected(std::move(network.error()));
      network_ = std::move(*network);
    }
    std::map<std::string, std::vector<double>> results;
    for (unsigned i = 0; i < setting_.repeats; ++i) {
      auto measured = point.text("system") == "veth" ? measure_network(point, results) : measure_chain(point, results);
      if (!measured) return measured;
    }
    for (const auto& [name, values] : results) set_repeats(point, name, values);
    point.set("seconds", seconds(setting_.duration)).set("own_rules", !setting_.rules.empty());
    return {};
  }

  Result<void> measure_network(const Point& point, std::map<std::string, std::vector<double>>& results) {
    const auto sent = network_->send(point.text("rate"), setting_.duration, *setting_.stop, [] {});
    if (!sent) return tl::unexpected(sent.error());
    // iPerf3 counts payload, chains count frames: 1,448 of 1,514 bytes, with TCP timestamps.
    constexpr double kFrameOfPayload = 1514.0 / 1448.0;
    results["sent_mbps"].push_back(sent->mbps);
    results["mbps"].push_back(sent->received_mbps * kFrameOfPayload);
    return {};
  }

  Result<void> measure_chain(const Point& point, std::map<std::string, std::vector<double>>& results) {
    std::vector<int> gpus;
    if (point.text("processor") == "gpu") gpus = setting_.gpu_indices();
    const std::string file = folder_.put("chain.yaml", live_chain(point, LiveNetwork::kInterface, network_->server(),
                                                                  rules_, fmt::format("{}", fmt::join(gpus, ","))));
    auto loaded = config::load_chain(file, {});
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    std::atomic<bool> stop_chain{false};
    auto run = run::start(loaded->chain, {}, stop_chain);
    if (!run) return tl::unexpected(std::move(run.error()));
    Window window(**run, setting_.duration);
    std::vector<double> gpu_percents;
    std::optional<gpu::Utilization> gpu;
    if (!gpus.empty()) gpu.emplace(setting_.gpus.front().pci_bus_id);
    const auto sent = network_->send(point.text("rate"), setting_.duration, *setting_.stop, [&] {
      window.look();
      if (!gpu || !window.seen()) return;
      if (const auto percent = gpu->percent()) gpu_percents.push_back(*percent);
    });
    (*run)->stop();
    const run::RunResult result = (*run)->wait();
    if (!sent) return tl::unexpected(sent.error());
    if (!result.errors.empty()) return failure(result.errors);
    if (auto right = check(result.report); !right) return right;
    if (!window.seen()) return failure({{}, "no traffic came", "", "packets while iperf3 sends"});
    window.results(results);
    results["sent_mbps"].push_back(sent->mbps);
    results["delay_ms"].push_back(result.report.latency("mean") / 1e3);
    double percent = 0;
    for (const double one : gpu_percents) percent += one / static_cast<double>(gpu_percents.size());
    if (!gpu_percents.empty()) results["gpu_percent"].push_back(percent);
    return {};
  }

  static Result<void> check(const report::RunReport& report) {
    const std::uint64_t out = report.forwarded.packets + report.dropped.packets + report.consumed.packets;
    if (report.in.packets != out)
      return failure({{}, "packets are not accounted for", std::to_string(out), std::to_string(report.in.packets)});
    if (report.gpu && report.gpu->failures > 0)
      return failure({{}, "batches failed on the GPU", std::to_string(report.gpu->failures), "0"});
    return {};
  }

  const Setting& setting_;
  Workplace folder_;
  std::string rules_;                     // file
  std::unique_ptr<LiveNetwork> network_;  // made when it is first needed
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  auto trial = std::make_unique<LiveTrial>(setting);
  if (auto taken = trial->take_rules(); !taken) return tl::unexpected(std::move(taken.error()));
  return trial;
}

}  // namespace

std::string live_rules() { return detection_rules_text(kRules, true); }

namespace {

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"rate", {"100", "1000"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& live_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "live",
      .summary = "intrusion detection on a copy of live traffic, by rate: one queue for all workers, and one for each",
      .source = "Araujo et al. 2021, §5, figures 5 to 8, tables 2 and 3",
      .repeats = 1,
      .duration = milliseconds{15'000},
      .quick_duration = milliseconds{2'000},
      .most_gpus = 1,
      .takes_rules = true,
      .takes_routes = false,
      .figures = &live_figures,
      .differences = &live_differences,
      .headlines = &headlines,
      .start = &start,
      .further_tables = &live_tables,
      .chain_files = &live_chain_files,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
