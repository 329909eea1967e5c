// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "experiments/chain/chains.h"
#include "experiments/chain/differences.h"
#include "experiments/chain/fewest_workers.h"
#include "experiments/chain/figures.h"
#include "experiments/chain/points.h"
#include "experiments/measured_chain.h"
#include "experiments/repeats.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kConnections = 8'000;
constexpr std::size_t kQuickConnections = 128;  // a slow core repeats them several times in a quick run

const char* sharing_of(std::string_view mode) {
  return mode == "own-stacks" ? "none" : mode == "unshared" ? "stack" : mode == "no-memshare" ? "parsing" : "packets";
}

const Ablation& ablation_of(const std::string& off) { return *std::ranges::find(kAblations, off, &Ablation::off); }

/// Multiprocessors of a share such as 1/4.
std::uint32_t part_of(std::uint32_t all, const std::string& share) {
  return share == "whole" ? all : std::max(1U, all / static_cast<std::uint32_t>(std::stoul(share.substr(2))));
}

class ChainTrial final : public Trial {
 public:
  explicit ChainTrial(const Setting& setting)
      : setting_(setting), runner_(*setting.stop), chains_(runner_.workplace()) {}

  /// Reads the user's files, which must be usable in a chain.
  Result<void> read() {
    if (auto taken = chains_.take(setting_); !taken) return taken;
    if (setting_.rules.empty() && setting_.routes.empty()) return {};
    return runner_.try_out(chains_.chain(kRoutingChain, ""));
  }

  std::vector<Point> plan() override { return plan_chains(setting_); }

  Result<void> measure(Point& point, const Point& limits) override {
    Result<void> measured = measure_by_sweep(point, limits);
    if (measured) compare(point);
    return with_point(std::move(measured), point);
  }

  void remember(const Point& point) override {
    Point copy = point;
    compare(copy);
  }

 private:
  /// With the point to which others of its kind are compared; or, if it is that point, remembers it for them.
  void compare(Point& point) {
    const std::string sweep = point.text("sweep");
    if (sweep == "size" || sweep == "stateful" || sweep == "branch") compare_with_shared(point);
    if (sweep == "ablation") compare_with_all_on(point, "mpps", "percent_of_all_on");
    if (sweep == "ablation-latency") compare_with_all_on(point, "latency_us", "percent_of_all_on");
    if (sweep == "same-load-size") compare_latency(point);
    if (sweep == "share-grid") compare_with_fewest(point);
    if (sweep == "length") {
      compare_with_alone(point, "segment_us_router", "router_by_alone");
      compare_with_alone(point, "transfer_us_router", "transfer_by_alone");
    }
    if (sweep == "full") {
      compare_with_alone(point, "router_transfer_us", "transfer_by_alone");
      compare_with_alone(point, "router_us_per_mib", "transfer_per_byte_by_alone");
    }
  }

  Result<void> measure_by_sweep(Point& point, const Point& limits) {
    const std::string sweep = point.text("sweep");
    if (point.find("percentile") != nullptr) return measure_latency(point, limits);
    if (sweep == "length") return measure_length(point, limits);
    if (sweep == "full") return measure_full(point, limits);
    if (sweep == "timeline") return measure_timeline(point, limits);
    if (sweep == "transfer-share") return measure_transfer_share(point, limits);
    if (sweep == "share-grid") return measure_share_pair(point, limits);
    if (point.find("tracking") != nullptr) return measure_state(point, limits);
    return measure_rate(point, limits);
  }

  MeasuredChain chain_of(const Point& point) {
    const std::string name = point.text("chain"), tables = point.text("tables"), size = point.text("size");
    MeasuredChain chain = point.find("tracking") == nullptr
                              ? chains_.chain(name, tables)
                              : chains_.with_connections(name, tables, point.text("tracking"), size,
                                                         setting_.quick ? kQuickConnections : kConnections);
    chain.size = size;
    chain.on_gpu = point.text("processor") == "gpu";
    const auto gpus = static_cast<std::size_t>(point.number("gpus").value_or(kMostChainGpus));
    for (const gpu::Device& gpu : setting_.gpus) {
      if (chain.gpus.size() < gpus) chain.gpus.push_back(gpu.index);
    }
    chain.workers = static_cast<unsigned>(*point.number("workers"));
    if (chain.on_gpu) chain.frames = point.text("frames");
    chain.sharing = sharing_of(point.text("mode"));
    if (const auto streams = point.number("streams")) chain.streams = static_cast<unsigned>(*streams);
    chain.batch_bytes = point.text("batch_bytes");
    chain.batch_packets = static_cast<unsigned>(point.number("batch_packets").value_or(0));
    if (point.find("shares") != nullptr) chain.gpu_shares = shares_text(point.text("shares"), point.text("shares"));
    if (point.find("share_of_nids") != nullptr)
      chain.gpu_shares = shares_text(point.text("share_of_nids"), point.text("share_of_ipsec"));
    if (point.find("off") != nullptr) {
      const Ablation& ablation = ablation_of(point.text("off"));
      chain.launches = ablation.launches;
      chain.transfer = ablation.transfer;
      chain.finish = ablation.finish;
    }
    if (point.text("sweep") == "bounded") chain.latency = bound_of(point);
    return chain;
  }

  /// The bound of the whole chain: that of a function for each of them.
  [[nodiscard]] static std::string bound_of(const Point& point) {
    return fmt::format("{}ms", kBoundMs * static_cast<unsigned>(*point.number("functions")));
  }

  [[nodiscard]] std::uint32_t multiprocessors() const {
    return setting_.gpus.empty() ? 1 : static_cast<std::uint32_t>(setting_.gpus.front().multiprocessors);
  }

  /// Shares for C4, in the form of a chain file.
  [[nodiscard]] std::string shares_text(const std::string& of_nids, const std::string& of_ipsec) const {
    if (of_nids == of_ipsec && !of_nids.starts_with("1/")) return of_nids;
    return fmt::format("nids={},ipsec={}", part_of(multiprocessors(), of_nids), part_of(multiprocessors(), of_ipsec));
  }

  Result<void> measure_rate(Point& point, const Point& limits) {
    const MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    if (auto measured = runner_.measure(point, chain, limits, setting_); !measured) return measured;
    if (chain.on_gpu || !chain.undone_by.empty()) point.set("checked", true);
    if (const Repeats us = times_of_function_us(point); !us.empty() && point.text("sweep") == "bounded")
      set_repeats(point, "function_us", us);
    return {};
  }

  /// Verifies that a point with connections has really followed them.
  Result<void> measure_state(Point& point, const Point& limits) {
    if (auto measured = measure_rate(point, limits); !measured) return measured;
    if (setting_.stop->load()) return {};
    const auto of = [&](const char* name) { return point.number(name).value_or(0); };
    if (of("dropped") > 0) return failure({{}, "functions dropped packets", "", "every packet is forwarded"});
    if (point.text("tracking") == "packets") return {};
    // Connections still open when the run ends are not in its streams completely.
    const double bytes = 0.9 * Chains::stream_bytes_per_packet(point.text("size"));
    if (of("tcp_sessions") > 0 && of("stream_bytes") >= bytes && of("stream_gaps") == 0 &&
        of("unknown_connections") <= of("tcp_sessions") / 1000) {
      return {};
    }
    return failure({{},
                    "connections were not followed",
                    fmt::format("{} TCP sessions, {:.1f} bytes of streams per packet, {} gaps, {} packets of unknown "
                                "connections",
                                of("tcp_sessions"), of("stream_bytes"), of("stream_gaps"), of("unknown_connections")),
                    fmt::format("sessions, {:.1f} bytes or more, no gaps, no unknown connections", bytes)});
  }

  /// The gain of sharing, stored in the point of the other way, which is measured later.
  void compare_with_shared(Point& point) {
    const std::string what =
        point.text("sweep") + ' ' + point.text("chain") + ' ' + point.text("tables") + ' ' + point.text("size") + ' ';
    const std::string mode = point.text("mode");
    const std::string frames = point.text("frames");
    if (mode == "shared") {
      shared_[what + frames] = point;
      return;
    }
    const bool of_paper = point.find("tables") != nullptr;
    const auto shared = shared_.find(what + (of_paper ? "planned" : frames));
    if (shared == shared_.end()) return;
    set_quotient(point, "shared_by_this", repeats_of(shared->second, "mpps"), repeats_of(point, "mpps"));
    const auto up_shared = shared->second.number("bytes_up");
    const auto up = point.number("bytes_up");
    if (up && up_shared) point.set("less_up_shared", 100 * (1 - *up_shared / *up));
  }

  /// In percent of the value with everything on, which is measured first.
  void compare_with_all_on(Point& point, const char* key, const char* percent) {
    const Repeats values = repeats_of(point, key);
    if (values.empty()) return;
    Repeats& all_on = all_on_[point.text("size") + ' ' + key + ' ' + point.text("percentile")];
    if (point.text("off") == kAblations[0].off) all_on = values;
    if (!all_on.empty() && median_of(all_on) > 0) set_quotient(point, percent, values, all_on, 100);
  }

  /// All percentiles of a load come from the same runs.
  Result<void> measure_latency(Point& point, const Point& limits) {
    const std::string sweep = point.text("sweep");
    std::string key;
    for (const char* name : {"chain", "sweep", "mode", "shares", "off", "size", "load"}) key += point.text(name) + ' ';
    auto [measured, is_new] = latencies_.try_emplace(key);
    if (is_new) {
      MeasuredChain chain = chain_of(point);
      if (auto checked = runner_.check(chain); !checked) return checked;
      const char* const slowest = sweep == "same-load" ? "unshared" : "own-stacks";
      const auto most = most_mpps(point, sweep.starts_with("same-load") ? slowest : "shared", limits);
      if (!most) return tl::unexpected(most.error());
      chain.offered_mpps = *most * *point.number("load") / 100;
      chain.latency = "1ms";
      if (auto ran = runner_.measure(measured->second, chain, limits, setting_); !ran) return ran;
      measured->second.set("offered_mpps", *chain.offered_mpps);
    }
    const Point& results = measured->second;
    for (const char* name :
         {"offered_mpps", "mpps", "lost", "packets_in_batch", "busy_cores", "share_nids", "share_ipsec"}) {
      take(results, name, point, name);
    }
    take(results, "latency_p" + point.text("percentile"), point, "latency_us");
    point.set("checked", true);
    return {};
  }

  /// What sharing saves, stored in the point of the other way, which is measured later.
  void compare_latency(Point& point) {
    const Repeats latency = repeats_of(point, "latency_us");
    if (latency.empty()) return;
    Repeats& shared = shared_us_[point.text("chain") + ' ' + point.text("size") + ' ' + point.text("percentile")];
    if (point.text("mode") == "shared") {
      shared = latency;
    } else if (!shared.empty() && median_of(latency) > 0) {
      set_percent_less(point, "less_latency_shared", shared, latency);
    }
  }

  /// Checked, and loaded as the longest chain is at this percentage of its highest rate without sharing.
  Result<MeasuredChain> at_load_of_longest(const Point& point, const Point& limits, unsigned percent) {
    MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return tl::unexpected(std::move(checked.error()));
    Point longest = point;
    longest.set("chain", "C4");
    const auto most = most_mpps(longest, "unshared", limits);
    if (!most) return tl::unexpected(most.error());
    chain.offered_mpps = *most * percent / 100;
    return chain;
  }

  /// At the same load for all lengths: what the longest chain can carry.
  Result<void> measure_length(Point& point, const Point& limits) {
    auto chain = at_load_of_longest(point, limits, kSameLoad);
    if (!chain) return tl::unexpected(std::move(chain.error()));
    if (auto ran = runner_.measure(point, *chain, limits, setting_); !ran) return ran;
    point.set("offered_mpps", *chain->offered_mpps).set("load", kSameLoad).set("checked", true);
    // The times of the copies come from separate runs, because a timeline changes the cost of a batch.
    chain->transfer = "streamed";
    chain->timeline = true;
    Point copies;
    if (auto ran = runner_.measure(copies, *chain, limits, setting_); !ran) return ran;
    take(copies, "transfer_us_router", point, "transfer_us_router");
    return {};
  }

  /// The transfers that bring the router its packets, at the highest load that the longest chain carries without
  /// sharing. If packets are shared, the first function's segment transfers them.
  Result<void> measure_full(Point& point, const Point& limits) {
    auto chain = at_load_of_longest(point, limits, kFullLoad);
    if (!chain) return tl::unexpected(std::move(chain.error()));
    chain->transfer = "streamed";
    chain->timeline = true;
    if (auto ran = runner_.measure(point, *chain, limits, setting_); !ran) return ran;
    point.set("offered_mpps", *chain->offered_mpps).set("load", kFullLoad).set("checked", true);
    const bool is_own = point.find("transfer_us_router") != nullptr;
    const auto of = [&](const char* name) {
      return repeats_of(point, is_own ? std::string(name) + "_router" : std::string(name));
    };
    const Repeats us = of("transfer_us");
    const Repeats waited_us = of("waited_us");
    const Repeats bytes = of("transfer_bytes");
    if (us.empty() || waited_us.size() != us.size() || bytes.size() != us.size()) return {};
    Repeats us_per_mib, waiting_percent;
    for (std::size_t i = 0; i < us.size(); ++i) {
      if (us[i] <= 0 || bytes[i] <= 0) return {};
      us_per_mib.push_back(us[i] / bytes[i] * (1 << 20));
      waiting_percent.push_back(100 * waited_us[i] / us[i]);
    }
    set_repeats(point, "router_transfer_us", us);
    set_repeats(point, "router_transfer_bytes", bytes);
    set_repeats(point, "router_us_per_mib", us_per_mib);
    set_repeats(point, "router_waiting_percent", waiting_percent);
    return {};
  }

  /// Transfers in percent of all time on the device, one batch at a time.
  Result<void> measure_transfer_share(Point& point, const Point& limits) {
    MeasuredChain chain = chain_of(point);
    chain.transfer = "direct";
    if (auto checked = runner_.check(chain); !checked) return checked;
    chain.timeline = true;
    if (auto ran = runner_.measure(point, chain, limits, setting_); !ran) return ran;
    point.set("checked", true);
    return {};
  }

  /// G-NET's model chooses shares with which batches return in time; a pair of shares does if it keeps the bound and
  /// loses nothing. The choice is compared with the pair that needs the fewest multiprocessors.
  Result<void> measure_share_pair(Point& point, const Point& limits) {
    MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    const auto most = most_mpps(point, "shared", limits);
    if (!most) return tl::unexpected(most.error());
    chain.offered_mpps = *most * *point.number("load") / 100;
    chain.latency = bound_of(point);
    chain.rate = fmt::format("{:.3f}Gbps", *chain.offered_mpps * std::stod(chain.size) * 8 / 1000);
    if (auto ran = runner_.measure(point, chain, limits, setting_); !ran) return ran;
    point.set("offered_mpps", *chain.offered_mpps).set("checked", true);
    double needed = 0;
    for (const char* function : {"nids", "ipsec"}) {
      const std::string share = point.text(std::string("share_of_") + function);
      needed += is_choice(point) ? point.number(std::string("share_") + function).value_or(multiprocessors())
                                 : part_of(multiprocessors(), share);
    }
    point.set("multiprocessors", needed);
    return {};
  }

  /// Whether the model has chosen the shares.
  [[nodiscard]] static bool is_choice(const Point& point) { return point.text("share_of_nids") == "auto"; }

  void compare_with_fewest(Point& point) {
    const double needed = point.number("multiprocessors").value_or(0);
    const double bound_us = 1000.0 * kBoundMs * *point.number("functions");
    double& fewest = fewest_[point.text("size")];
    if (is_choice(point)) {
      if (fewest > 0) point.set("times_fewest", needed / fewest);
    } else if (point.number("latency_p99").value_or(bound_us) < bound_us && point.number("lost").value_or(1) == 0) {
      fewest = fewest > 0 ? std::min(fewest, needed) : needed;
    }
  }

  /// Compares with the router alone in the same mode, which is measured first.
  void compare_with_alone(Point& point, const char* key, const char* by_alone) {
    const Repeats times = repeats_of(point, key);
    if (times.empty()) return;
    Repeats& alone = router_alone_[point.text("sweep") + ' ' + point.text("mode") + ' ' + key];
    if (point.text("chain") == "router") alone = times;
    if (!alone.empty() && median_of(alone) > 0) set_quotient(point, by_alone, times, alone);
  }

  /// Sets a value of `into` to one of `from`, with its repeats, if there is one.
  static void take(const Point& from, std::string_view name, Point& into, std::string_view as) {
    if (const Repeats values = repeats_of(from, name); !values.empty()) set_repeats(into, as, values);
  }

  /// The transfers of one way of sharing, at the same load and in batches of the same size for all.
  Result<void> measure_timeline(Point& point, const Point& limits) {
    MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    const auto most = most_mpps(point, "unshared", limits);
    if (!most) return tl::unexpected(most.error());
    chain.offered_mpps = *most * kSameLoad / 100;
    chain.transfer = "streamed";
    chain.timeline = true;
    if (auto ran = runner_.measure(point, chain, limits, setting_); !ran) return ran;
    point.set("offered_mpps", *chain.offered_mpps).set("load", kSameLoad).set("checked", true);
    return {};
  }

  /// The rate to which loads refer: that of the point's chain in this mode, in its fastest configuration.
  Result<double> most_mpps(const Point& point, const char* mode, const Point& limits) {
    const auto [most, is_new] = most_mpps_.try_emplace(point.text("chain") + ' ' + point.text("size") + ' ' +
                                                       point.text("frames") + ' ' + mode);
    if (is_new) {
      Point of_reference = point;
      if (point.find("off") != nullptr) of_reference.set("off", kAblations[0].off);
      MeasuredChain chain = chain_of(of_reference);
      chain.sharing = sharing_of(mode);
      if (point.find("tables") != nullptr) {
        const PaperSetup setup = paper_setup(point.text("size"), mode);
        chain.workers = std::min(setup.workers, setting_.workers);
        chain.streams = setup.streams;
        chain.batch_bytes = setup.batch_bytes;
        chain.batch_packets = 0;
      }
      chain.gpu_shares = "whole";
      Point medians;
      if (const auto ran = runner_.measure(medians, chain, limits, setting_); !ran) return tl::unexpected(ran.error());
      most->second = *medians.number("mpps");
    }
    return most->second;
  }

  const Setting& setting_;
  ChainRunner runner_;
  Chains chains_;
  std::vector<Point> points_;
  std::map<std::string, Point> shared_;          // by sweep, chain, tables, size and frames
  std::map<std::string, Point> latencies_;       // by chain, sweep, mode and other keys
  std::map<std::string, double> most_mpps_;      // by chain, size, frames and mode
  std::map<std::string, Repeats> router_alone_;  // by sweep, mode and key
  std::map<std::string, Repeats> shared_us_;     // by chain, size and percentile
  std::map<std::string, Repeats> all_on_;        // by size, key and percentile
  std::map<std::string, double> fewest_;         // multiprocessors, by size
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  auto trial = std::make_unique<ChainTrial>(setting);
  if (const auto read = trial->read(); !read) return tl::unexpected(read.error());
  return trial;
}

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"chain", {"firewall-router"}}, {"sweep", {"size"}}, {"size", {"64", "512", "1024", "1518"}}},
      {{"sweep", {"stateful", "size"}}, {"tables", {"paper"}}, {"size", {"64", "512", "1518"}}},
      {{"chain", {"C4"}}, {"tables", {"heavy"}}, {"sweep", {"size"}}, {"size", {"1518"}}},
      {{"sweep", {"latency"}}, {"chain", {"C4", "firewall-router"}}},
      {{"sweep", {"gpus", "length"}}},
  };
  return kHeadlines;
}

}  // namespace

Repeats times_of_function_us(const Point& point) {
  const auto functions = point.number("functions");
  if (!functions) return {};
  Repeats most, sum;
  for (const auto& [name, value] : point) {
    if (std::get_if<double>(&value) == nullptr || !name.starts_with("segment_us_")) continue;  // or a list of repeats
    const Repeats us = repeats_of(point, name);
    most.resize(std::max(most.size(), us.size()));
    sum.resize(most.size());
    for (std::size_t i = 0; i < us.size(); ++i) {
      most[i] = std::max(most[i], us[i]);
      sum[i] += us[i];
    }
  }
  return point.text("mode") == "shared" ? divided(std::move(sum), *functions) : most;
}

const Experiment& chain_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "chain",
      .summary = "chains on GPUs, with packets shared and not, and on CPU cores: rates, bytes, latency",
      .source = "Gaviss (Guo et al., TPDS 2022), §5.2 to §5.5: C1 to C4, and the chain firewall, router",
      .repeats = 3,
      .duration = milliseconds{500},
      .quick_duration = milliseconds{200},
      .most_gpus = kMostChainGpus,
      .takes_rules = true,
      .takes_routes = true,
      .figures = &chain_figures,
      .differences = &chain_differences,
      .headlines = &headlines,
      .start = &start,
      .further_tables = &fewest_workers,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
