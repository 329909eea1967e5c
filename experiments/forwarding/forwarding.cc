// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/forwarding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_placement.h"
#include "config/chain_file.h"
#include "experiments/busy_cores.h"
#include "experiments/forwarding/arrangement.h"
#include "experiments/forwarding/differences.h"
#include "experiments/forwarding/figures.h"
#include "experiments/forwarding/network.h"
#include "experiments/forwarding/prober.h"
#include "experiments/repeats.h"
#include "run/run.h"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;
using Results = std::map<std::string, std::vector<double>>;

/// A chain that runs in this process until it is finished or destroyed.
class RunningChain {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RunningChain>> start(const std::string& file) {
    auto loaded = config::load_chain(file, {});
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    if (!loaded->unsupported.empty()) return tl::unexpected(std::move(loaded->unsupported));
    std::unique_ptr<RunningChain> chain(new RunningChain(std::move(*loaded)));
    auto run = run::start(chain->loaded_.chain, {}, chain->stop_);
    if (!run) return tl::unexpected(std::move(run.error()));
    chain->run_ = std::move(*run);
    return chain;
  }

  [[nodiscard]] report::RunReport report() const { return run_->report(); }

  [[nodiscard]] Result<report::RunReport> finish() {
    run_->stop();
    run::RunResult result = run_->wait();
    if (!result.errors.empty()) return failure(std::move(result.errors));
    return std::move(result.report);
  }

 private:
  explicit RunningChain(config::LoadedChain loaded) : loaded_(std::move(loaded)) {}

  config::LoadedChain loaded_;
  const std::atomic<bool> stop_{false};
  std::unique_ptr<run::Run> run_;
};

const report::PortReport& port_of(const report::RunReport& report, std::string_view name) {
  return *std::ranges::find(report.ports, name, &report::PortReport::name);
}

std::uint64_t count_of(const report::DropCounts& counts, std::string_view name) {
  const auto there = std::ranges::find(counts, name, &report::DropCounts::value_type::first);
  return there == counts.end() ? 0 : there->second;
}

/// Packets that reached the port: that came in, or that it has counted as lost.
std::uint64_t accounted_for(const report::RunReport& report) {
  const report::PortReport& lan = port_of(report, ForwardingNetwork::kLan);
  std::uint64_t packets = lan.in.packets;
  for (const auto& [reason, lost] : lan.interface->lost) packets += lost;
  return packets;
}

Result<void> expect(bool right, const char* what, const std::string& found, const std::string& expected) {
  if (right) return {};
  return failure({{}, what, found, expected});
}

/// Whether Penstock's report and the interfaces' counters agree, for a run over all of which `counted` grew so much.
Result<void> check(const report::RunReport& report, const ForwardingNetwork::Counters& counted) {
  const std::uint64_t accounted = accounted_for(report);
  if (auto right = expect(accounted == counted.to_gateway,
                          "packets that reached the gateway and were received or counted as lost",
                          std::to_string(accounted), std::to_string(counted.to_gateway));
      !right)
    return right;
  const std::uint64_t left = report.forwarded.packets + report.dropped.packets + report.consumed.packets;
  if (auto right = expect(left == report.in.packets, "packets that left the chain", std::to_string(left),
                          std::to_string(report.in.packets));
      !right)
    return right;
  const std::uint64_t failures = report.gpu ? report.gpu->failures : 0;
  if (auto right = expect(failures == 0, "batches that failed on the GPU", std::to_string(failures), "0"); !right)
    return right;
  const report::PortReport& wan = port_of(report, ForwardingNetwork::kWan);
  if (!wan.interface) return {};
  // A packet that was dropped at the server's full queue may have been sent again.
  const std::uint64_t least = counted.to_server;
  const std::uint64_t most =
      least + counted.dropped_at_server + count_of(wan.interface->events, "refused_after_forwarding");
  return expect(least <= wan.out.packets && wan.out.packets <= most, "packets sent to the server",
                std::to_string(wan.out.packets), fmt::format("{} to {}, as counted there", least, most));
}

ForwardingNetwork::Counters difference(const ForwardingNetwork::Counters& from, const ForwardingNetwork::Counters& to) {
  return {to.to_gateway - from.to_gateway, to.dropped_at_gateway - from.dropped_at_gateway,
          to.to_server - from.to_server, to.dropped_at_server - from.dropped_at_server};
}

struct Snapshot {
  Clock::time_point time;
  ForwardingNetwork::Counters counters;
  std::uint64_t received = 0;  // by a chain in the gateway
  std::optional<double> busy_seconds;
};

/// What happened between two snapshots.
void add_results(const Snapshot& from, const Snapshot& to, const Point& point, Results& results) {
  constexpr double kMillion = 1e6;
  const double seconds = std::chrono::duration<double>(to.time - from.time).count();
  const auto [to_gateway, dropped_at_gateway, to_server, dropped_at_server] = difference(from.counters, to.counters);
  const std::string system = point.text("system");
  const double delivered = static_cast<double>(system.starts_with("send_")      ? to_gateway
                                               : system.starts_with("receive_") ? to.received - from.received
                                                                                : to_server);
  const double offered = static_cast<double>(to_gateway + dropped_at_gateway);
  results["mpps"].push_back(delivered / seconds / kMillion);
  results["gbps"].push_back(delivered * point.number("size").value_or(0) * 8 / seconds / 1e9);
  results["offered_mpps"].push_back(offered / seconds / kMillion);
  results["gateway_mpps"].push_back(static_cast<double>(to_gateway) / seconds / kMillion);
  if (offered > 0) results["lost_percent"].push_back(std::clamp(100 * (1 - delivered / offered), 0.0, 100.0));
  if (from.busy_seconds && to.busy_seconds)
    results["busy_cores"].push_back((*to.busy_seconds - *from.busy_seconds) / seconds);
}

class ForwardingTrial final : public Trial {
 public:
  explicit ForwardingTrial(const Setting& setting)
      : setting_(setting),
        usable_(cpus_of_this_thread()),
        files_{folder_.put("routes.txt", ForwardingNetwork::routes()),
               folder_.put("neighbours.txt", ForwardingNetwork::neighbours()),
               folder_.put("firewall.rules", rules_text(kForwardingRules))} {}

  std::vector<Point> plan() override { return forwarding_points(setting_.quick, setting_.workers); }

  Result<void> measure(Point& point, const Point& /*limits*/) override { return with_point(measure_all(point), point); }

 private:
  Result<void> measure_all(Point& point) {
    if (auto ready = set_up(static_cast<unsigned>(point.number("workers").value_or(1))); !ready) return ready;
    std::optional<double> offered_mpps;
    if (const auto percent = point.number("load_percent")) {
      const auto most = most_mpps(point);
      if (!most) return tl::unexpected(most.error());
      offered_mpps = *most * *percent / 100;
    }
    Results results;
    for (unsigned i = 0; i < setting_.repeats; ++i) {
      if (auto measured = run(point, offered_mpps, results); !measured) return measured;
    }
    for (const auto& [name, values] : results) {
      if (name == "max_us") {
        point.set(name, std::ranges::max(values));  // the longest of all
      } else {
        set_repeats(point, name, values);
      }
    }
    if (point.text("sweep") == "rate") most_mpps_[key_of(point)] = *point.number("mpps");
    point.set("seconds", std::chrono::duration<double>(setting_.duration).count());
    return {};
  }

  /// The network for so many workers.
  Result<void> set_up(unsigned workers) {
    if (network_ != nullptr && network_->queues() == workers) return {};
    network_.reset();  // frees the names of its namespaces
    cores_ = forwarding_cores(workers, usable_);
    auto network = ForwardingNetwork::make(folder_, workers, cores_.receive);
    if (!network) return tl::unexpected(std::move(network.error()));
    network_ = std::move(*network);
    return {};
  }

  static std::string key_of(const Point& point) {
    std::string key;
    for (const char* const name : {"system", "processor", "chain", "size", "workers"}) key += point.text(name) + ' ';
    return key;
  }

  /// The most that the system of this point delivers: measured now, if its point was not.
  Result<double> most_mpps(const Point& point) {
    const auto [there, is_new] = most_mpps_.try_emplace(key_of(point), 0.0);
    if (is_new) {
      Results results;
      if (auto measured = run(point, std::nullopt, results); !measured) return tl::unexpected(measured.error());
      there->second = results["mpps"].front();
    }
    return there->second;
  }

  /// One run. `offered_mpps`: empty for as many packets as possible; else, also sends probes.
  Result<void> run(const Point& point, std::optional<double> offered_mpps, Results& results) {
    constexpr std::chrono::milliseconds kWarmUp{100};
    const std::string system = point.text("system");
    if (auto done = network_->set_forwarding(system == "linux"); !done) return done;
    const auto before = network_->counters();
    if (!before) return tl::unexpected(before.error());

    std::unique_ptr<RunningChain> gateway, load;
    if (system != "linux" && !system.starts_with("send_")) {
      const std::string gpus = fmt::format("{}", fmt::join(setting_.gpu_indices(), ","));
      if (auto done = start(gateway, "gateway.yaml", gateway_chain(point, cores_, files_, gpus)); !done) return done;
    }
    if (!offered_mpps || *offered_mpps > 0) {
      const char* const port = system == "send_af_xdp" ? "af_xdp" : "af_packet";
      if (auto done = start(load, "load.yaml", load_chain(point, port, cores_, offered_mpps)); !done) return done;
    }
    if (auto done = wait(kWarmUp); !done) return done;
    std::unique_ptr<Prober> prober;
    if (offered_mpps) {
      auto started = Prober::start(probe_path());
      if (!started) return tl::unexpected(std::move(started.error()));
      prober = std::move(*started);
    }
    const auto begin = look(gateway.get());
    if (!begin) return tl::unexpected(begin.error());
    if (auto done = wait(setting_.duration); !done) return done;
    const auto end = look(gateway.get());
    if (!end) return tl::unexpected(end.error());
    if (prober != nullptr) {
      if (auto done = add_delays(prober->finish(), results); !done) return done;
    }
    if (load != nullptr) {
      if (const auto sent = load->finish(); !sent) return tl::unexpected(sent.error());
    }
    if (gateway != nullptr) {
      if (auto right = finish(*gateway, *before); !right) return right;
    }
    add_results(*begin, *end, point, results);
    return {};
  }

  Result<void> start(std::unique_ptr<RunningChain>& chain, const char* name, const std::string& text) {
    auto started = RunningChain::start(folder_.put(name, text));
    if (!started) return tl::unexpected(std::move(started.error()));
    chain = std::move(*started);
    return {};
  }

  /// Waits until the gateway has all packets, ends it, and checks its report.
  Result<void> finish(RunningChain& gateway, const ForwardingNetwork::Counters& before) const {
    constexpr std::chrono::seconds kPatience{2};
    constexpr std::chrono::milliseconds kLook{10};
    const auto latest = Clock::now() + kPatience;
    while (Clock::now() < latest) {
      const auto now = network_->counters();
      if (!now) return tl::unexpected(now.error());
      if (accounted_for(gateway.report()) == now->to_gateway - before.to_gateway) break;
      std::this_thread::sleep_for(kLook);
    }
    const auto report = gateway.finish();
    if (!report) return tl::unexpected(report.error());
    const auto after = network_->counters();
    if (!after) return tl::unexpected(after.error());
    return check(*report, difference(before, *after));
  }

  static Result<void> add_delays(const Prober::Delays& delays, Results& results) {
    constexpr double kHigh = 0.99;
    if (delays.us.empty())
      return failure({{}, "no probe has arrived", std::to_string(delays.sent) + " sent", "some at the server"});
    results["p50_us"].push_back(delays.quantile(0.5));
    results["p99_us"].push_back(delays.quantile(kHigh));
    results["max_us"].push_back(delays.us.back());
    results["probes"].push_back(static_cast<double>(delays.sent));
    results["probes_lost_percent"].push_back(100 * static_cast<double>(delays.lost()) /
                                             static_cast<double>(delays.sent));
    return {};
  }

  Result<Snapshot> look(const RunningChain* gateway) const {
    const auto counters = network_->counters();
    if (!counters) return tl::unexpected(counters.error());
    const std::uint64_t received = gateway == nullptr ? 0 : gateway->report().in.packets;
    return Snapshot{Clock::now(), *counters, received, busy_core_seconds()};
  }

  [[nodiscard]] Result<void> wait(std::chrono::nanoseconds time) const {
    constexpr std::chrono::milliseconds kLook{20};
    const auto end = Clock::now() + time;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
      if (setting_.stop->load()) return failure({{}, "stopped", "", ""});
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLook, end - now));
    }
    return {};
  }

  static Prober::Path probe_path() {
    return {{ForwardingNetwork::client(), ForwardingNetwork::kHostInterface},
            {ForwardingNetwork::server(), ForwardingNetwork::kHostInterface},
            ForwardingNetwork::kGatewayMac,
            *parse_ipv4("10.0.1.2"),
            *parse_ipv4("203.0.113.1")};
  }

  const Setting& setting_;
  const CpuList usable_;
  Workplace folder_;
  const GatewayFiles files_;
  std::unique_ptr<ForwardingNetwork> network_;  // for the workers of the latest point
  ForwardingCores cores_;
  std::map<std::string, double> most_mpps_;  // by key_of
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) { return std::make_unique<ForwardingTrial>(setting); }

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"sweep", {"rate", "limits"}}, {"size", {"64"}}},
      {{"sweep", {"latency"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& forwarding_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "forwarding",
      .summary = "packets between two interfaces, by Penstock's ports and by Linux: rate, losses, cores, delay",
      .source = "RFC 2544, §26.1 to §26.3: rate, delay and losses of forwarding, over veth",
      .repeats = 3,
      .duration = milliseconds{1'000},
      .quick_duration = milliseconds{300},
      .most_gpus = 1,
      .takes_rules = false,
      .takes_routes = false,
      .figures = &forwarding_figures,
      .differences = &forwarding_differences,
      .headlines = &headlines,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
