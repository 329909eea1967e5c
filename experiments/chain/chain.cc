// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "experiments/chain/chains.h"
#include "experiments/chain/figures.h"
#include "experiments/measured_chain.h"

namespace penstock::experiments {
namespace {

constexpr std::array kSizes{"64", "128", "256", "512", "1024", "1518", "imix"};
constexpr std::array kQuickSizes{"64", "1518"};
constexpr std::array kHeavySizes{"64", "512", "1518", "imix"};
constexpr std::array kStateSizes{"64", "512", "1518"};
constexpr std::array kTrackings{"packets", "streams"};
constexpr const char* kTrackingOnGpu = "automaton";
constexpr std::array kPaperChains{"C1", "C2", "C3", "C4"};  // Gaviss §5.1
constexpr std::array kOnGpu{"shared", "no-memshare", "unshared"};
constexpr std::array<unsigned, 6> kWorkers{1, 2, 3, 4, 8, 12};
constexpr std::array<unsigned, 5> kPaperWorkers{4, 6, 8, 12, 16};
constexpr std::array<unsigned, 3> kStreams{2, 3, 4};
constexpr std::array<unsigned, 4> kGpus{1, 2, 4, 8};
constexpr std::array kShareSizes{"512", "1518"};
constexpr std::array kShares{"whole", "1/2", "1/4", "1/8", "auto"};  // of the multiprocessors, for each function that
                                                                     // takes a share
constexpr std::array kShareLatencies{"whole", "auto"};
constexpr std::array kSharePercentiles{"50", "99"};
constexpr unsigned kShareLoad = 50;                    // percent of the maximum rate with whole shares
constexpr std::array<unsigned, 3> kLoads{10, 50, 80};  // percent of the maximum rate
constexpr std::array kPercentiles{"1", "10", "25", "50", "75", "90", "95", "99", "99.9"};
constexpr std::size_t kMostGpus = 8;
constexpr unsigned kSameLoad = 50;  // percent of the maximum unshared rate
constexpr const char* kLargeSize = "1518";
constexpr const char* kRouting = "firewall-router";
constexpr unsigned kLatencyWorkers = 4;
constexpr unsigned kLatencyStreams = 2;
constexpr unsigned kSameLoadWorkers = 4;
constexpr unsigned kStateWorkers = 16;
constexpr unsigned kStateStreams = 3;
constexpr std::size_t kConnections = 8'000;
constexpr std::size_t kQuickConnections = 128;  // a slow core repeats them several times in a quick run

/// Workers that keep one GPU busy, from the sweep over workers. With large frames a few are enough, and more only load
/// the memory; small frames are limited by the host's work per packet.
unsigned workers_for(std::string_view size, std::string_view frames) {
  if (frames != "whole") return 12;
  if (size == "1518") return 3;
  return size == "512" || size == "1024" ? 4 : 12;
}

/// How a chain that inspects and encrypts runs on one GPU: each way of sharing with its fastest configuration, from the
/// sweep over workers, streams and batches. Functions with transfers of their own leave a stream idle more often, so
/// they are faster with a third one.
struct PaperSetup {
  unsigned workers;
  unsigned streams;
  const char* batch_bytes;
};
PaperSetup paper_setup(std::string_view size, std::string_view mode) {
  const bool shared = mode == "shared";
  const unsigned streams = shared ? 2 : 3;
  if (size == "1518") return shared ? PaperSetup{4, streams, "8MiB"} : PaperSetup{6, streams, ""};
  if (size == "1024") return {shared ? 6U : 8U, streams, ""};
  if (size == "512") return {shared ? 8U : 10U, streams, ""};
  return {16, streams, ""};
}

/// Workers that carry this share of the load, in percent, at the lowest latency: with more workers, each sends smaller
/// batches to the GPU, more often.
unsigned latency_workers(unsigned load) { return load <= 10 ? 3 : load <= 50 ? 4 : 6; }

const char* sharing_of(std::string_view mode) {
  return mode == "unshared" ? "stack" : mode == "no-memshare" ? "parsing" : "packets";
}

class ChainTrial final : public Trial {
 public:
  explicit ChainTrial(const Setting& setting)
      : setting_(setting), runner_(*setting.stop), chains_(runner_.workplace()) {}

  /// Reads the user's files, which must be usable in a chain.
  Result<void> read() {
    if (auto taken = chains_.take(setting_); !taken) return taken;
    if (setting_.rules.empty() && setting_.routes.empty()) return {};
    return runner_.try_out(chains_.chain(kRouting, ""));
  }

  std::vector<Point> plan() override {
    plan_routing();
    if (setting_.quick) {
      plan_modes("C4", "paper", kLargeSize);
      plan_state("C4", kLargeSize);
      return std::move(points_);
    }
    for (const char* chain : kPaperChains) {
      for (const char* size : kSizes) plan_modes(chain, "paper", size);
    }
    for (const char* chain : {"nids", "ipsec", "router", "firewall"}) {
      for (const char* size : kSizes) add("function", chain, "paper", size, "cpu", "host", 1);
    }
    for (const char* chain : kPaperChains) {
      for (const char* size : kStateSizes) plan_state(chain, size);
    }
    plan_connections();
    plan_workers_of_paper();
    plan_latency_of_paper();
    plan_shares();
    plan_lengths();
    for (const char* mode : {"no-memshare", "shared"}) {
      add("timeline", "C4", "paper", kLargeSize, mode, "planned", kSameLoadWorkers, 1).set("streams", kLatencyStreams);
    }
    for (const char* chain : {"C4", "inspect"}) {
      for (const unsigned gpus : kGpus) {
        if (gpus == 1 || gpus <= setting_.gpus.size()) {
          add_paper("gpus", chain, "paper", kLargeSize, "shared", gpus);
        }
      }
    }
    for (const char* chain : kPaperChains) {
      for (const char* size : kHeavySizes) plan_modes(chain, "heavy", size);
    }
    return std::move(points_);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    const std::string sweep = point.text("sweep");
    const bool of_load = sweep == "latency" || sweep == "same-load" || sweep == "share-latency";
    return with_point(of_load               ? measure_latency(point, limits)
                      : sweep == "length"   ? measure_length(point, limits)
                      : sweep == "timeline" ? measure_timeline(point, limits)
                      : sweep == "state"    ? measure_state(point, limits)
                                            : measure_rate(point, limits),
                      point);
  }

 private:
  Point& add(const char* sweep, const char* chain, const char* tables, const char* size, const char* mode,
             const char* frames, unsigned workers, unsigned gpus = 0) {
    const bool on_gpu = std::string_view(frames) != "host";
    Point& point = points_.emplace_back();
    point.set("chain", chain);
    if (*tables != '\0') point.set("tables", tables);
    point.set("sweep", sweep).set("size", size).set("mode", mode).set("frames", frames);
    point.set("processor", on_gpu ? "gpu" : "cpu").set("workers", std::min(workers, setting_.workers));
    if (gpus != 0) point.set("gpus", gpus);
    return point;
  }

  /// One of the paper's chains, in its fastest configuration for so many GPUs.
  Point& add_paper(const char* sweep, const char* chain, const char* tables, const char* size, const char* mode,
                   unsigned gpus = 1) {
    const PaperSetup setup = paper_setup(size, mode);
    Point& point = add(sweep, chain, tables, size, mode, "planned", gpus * setup.workers, gpus);
    point.set("streams", setup.streams);
    if (*setup.batch_bytes != '\0') point.set("batch_bytes", setup.batch_bytes);
    return point;
  }

  void plan_routing() {
    for (const char* size : setting_.quick ? std::span<const char* const>(kQuickSizes) : kSizes) {
      for (const char* frames : {"whole", "planned"}) {
        for (const char* mode : {"shared", "unshared"}) {
          add("size", kRouting, "", size, mode, frames, workers_for(size, frames));
        }
      }
      add("size", kRouting, "", size, "cpu", "host", setting_.workers);
    }
    for (const unsigned workers : kWorkers) {
      if (setting_.quick || workers > setting_.workers) break;
      for (const char* size : kQuickSizes) add("workers", kRouting, "", size, "shared", "whole", workers);
    }
    for (const unsigned load : kLoads) {
      if (setting_.quick && load != kLoads[1]) continue;
      for (const char* percentile : kPercentiles) {
        add("latency", kRouting, "", kLargeSize, "shared", "whole", kLatencyWorkers)
            .set("load", load)
            .set("percentile", std::stod(percentile));
      }
    }
  }

  /// The four ways of sharing. On the GPU, the fields that the transfer plan names cross.
  void plan_modes(const char* chain, const char* tables, const char* size) {
    for (const char* mode : kOnGpu) add_paper("size", chain, tables, size, mode);
    add("size", chain, tables, size, "cpu", "host", setting_.workers);
  }

  /// TCP connections, with intrusion detection that follows them, and without. The host follows them, with all its
  /// cores.
  void plan_state(const char* chain, const char* size) {
    const auto add_on_gpu = [&](const char* tracking) {
      add("state", chain, "paper", size, "shared", "planned", kStateWorkers, 1)
          .set("streams", kStateStreams)
          .set("tracking", tracking);
    };
    for (const char* tracking : kTrackings) {
      add_on_gpu(tracking);
      add("state", chain, "paper", size, "cpu", "host", setting_.workers).set("tracking", tracking);
    }
    add_on_gpu(kTrackingOnGpu);
  }

  /// A firewall that tracks connections beside one that does not. The host looks them up, with all its cores.
  void plan_connections() {
    for (const char* chain : {"C3", "C3-stateful", "C3-stateful-nic", "C4", "C4-stateful", "C4-stateful-nic"}) {
      for (const char* size : kQuickSizes) {
        add_paper("connections", chain, "paper", size, "shared").set("workers", setting_.workers);
        add("connections", chain, "paper", size, "cpu", "host", setting_.workers);
      }
    }
    for (const char* chain : {"firewall", "stateful", "stateful-nic"}) {
      add("connections", chain, "paper", kQuickSizes[0], "cpu", "host", 1);
    }
    // A gateway that translates has one worker.
    for (const char* chain : {"stateful-router", "nat-router", "stateful-router-nic", "nat-router-nic"}) {
      for (const char* size : kQuickSizes) {
        add_paper("connections", chain, "paper", size, "shared").set("workers", 1);
        add("connections", chain, "paper", size, "cpu", "host", 1);
      }
    }
  }

  /// There are as many batches in flight per worker as streams.
  void plan_workers_of_paper() {
    for (const char* size : kQuickSizes) {
      for (const unsigned streams : kStreams) {
        for (const unsigned workers : kPaperWorkers) {
          if (workers > setting_.workers) break;
          add("workers", "C4", "paper", size, "shared", "planned", workers, 1).set("streams", streams);
        }
      }
    }
  }

  void plan_latency_of_paper() {
    for (const char* chain : kPaperChains) {
      for (const unsigned load : kLoads) {
        for (const char* percentile : kPercentiles) {
          add("latency", chain, "paper", kLargeSize, "shared", "planned", latency_workers(load), 1)
              .set("streams", kLatencyStreams)
              .set("load", load)
              .set("percentile", std::stod(percentile));
        }
      }
      for (const char* mode : kOnGpu) {
        for (const char* percentile : kPercentiles) {
          add("same-load", chain, "paper", kLargeSize, mode, "planned", kSameLoadWorkers, 1)
              .set("streams", kLatencyStreams)
              .set("load", kSameLoad)
              .set("percentile", std::stod(percentile));
        }
      }
    }
  }

  /// The gain of dividing the device in space, as G-NET does.
  void plan_shares() {
    for (const char* size : kShareSizes) {
      for (const char* shares : kShares) {
        add_paper("share", "C4", "paper", size, "shared").set("shares", shares);
      }
    }
    for (const char* shares : kShareLatencies) {
      for (const char* percentile : kSharePercentiles) {
        add("share-latency", "C4", "paper", kLargeSize, "shared", "planned", latency_workers(kShareLoad), 1)
            .set("streams", kLatencyStreams)
            .set("shares", shares)
            .set("load", kShareLoad)
            .set("percentile", std::stod(percentile));
      }
    }
  }

  /// The router's transfers in chains of increasing length (figure 2).
  void plan_lengths() {
    for (const char* mode : {"no-memshare", "unshared"}) {
      double functions = 1;
      for (const char* chain : {"router", "router-ipsec", "C2", "C4"}) {
        add_paper("length", chain, "paper", kLargeSize, mode).set("functions", functions++);
      }
    }
  }

  MeasuredChain chain_of(const Point& point) {
    const std::string name = point.text("chain"), tables = point.text("tables"), size = point.text("size");
    MeasuredChain chain = point.find("tracking") == nullptr
                              ? chains_.chain(name, tables)
                              : chains_.with_connections(name, tables, point.text("tracking"), size,
                                                         setting_.quick ? kQuickConnections : kConnections);
    chain.size = size;
    chain.on_gpu = point.text("processor") == "gpu";
    const auto gpus = static_cast<std::size_t>(point.number("gpus").value_or(kMostGpus));
    for (const gpu::Device& gpu : setting_.gpus) {
      if (chain.gpus.size() < gpus) chain.gpus.push_back(gpu.index);
    }
    chain.workers = static_cast<unsigned>(*point.number("workers"));
    if (chain.on_gpu) chain.frames = point.text("frames");
    chain.sharing = sharing_of(point.text("mode"));
    if (const auto streams = point.number("streams")) chain.streams = static_cast<unsigned>(*streams);
    chain.batch_bytes = point.text("batch_bytes");
    if (point.find("shares") != nullptr) chain.gpu_shares = shares_text(point.text("shares"));
    return chain;
  }

  /// Shares for C4, in the form of a chain file.
  [[nodiscard]] std::string shares_text(const std::string& shares) const {
    if (!shares.starts_with("1/")) return shares;
    const int all = setting_.gpus.empty() ? 1 : setting_.gpus.front().multiprocessors;
    const int each = std::max(1, all / std::stoi(shares.substr(2)));
    return fmt::format("nids={},ipsec={}", each, each);
  }

  Result<void> measure_rate(Point& point, const Point& limits) {
    const MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    if (auto measured = runner_.measure(point, chain, limits, setting_); !measured) return measured;
    if (chain.on_gpu || !chain.undone_by.empty()) point.set("checked", true);
    if (point.text("sweep") == "size") compare(point);
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
  void compare(Point& point) {
    const std::string what = point.text("chain") + ' ' + point.text("tables") + ' ' + point.text("size") + ' ';
    const std::string mode = point.text("mode");
    const std::string frames = point.text("frames");
    if (mode == "shared") {
      shared_[what + frames] = point;
      return;
    }
    const bool of_paper = point.find("tables") != nullptr;
    const auto shared = shared_.find(what + (of_paper ? "planned" : frames));
    if (shared == shared_.end()) return;
    point.set("shared_by_this", *shared->second.number("mpps") / *point.number("mpps"));
    const auto up_shared = shared->second.number("bytes_up");
    const auto up = point.number("bytes_up");
    if (up && up_shared) point.set("less_up_shared", 100 * (1 - *up_shared / *up));
  }

  /// All percentiles of a load come from the same runs.
  Result<void> measure_latency(Point& point, const Point& limits) {
    const std::string sweep = point.text("sweep");
    auto [measured, is_new] = latencies_.try_emplace(point.text("chain") + ' ' + sweep + ' ' + point.text("mode") +
                                                     ' ' + point.text("shares") + ' ' + point.text("load"));
    if (is_new) {
      MeasuredChain chain = chain_of(point);
      if (auto checked = runner_.check(chain); !checked) return checked;
      const auto most = most_mpps(point, sweep == "same-load" ? "unshared" : "shared", limits);
      if (!most) return tl::unexpected(most.error());
      chain.offered_mpps = *most * *point.number("load") / 100;
      chain.latency = "1ms";
      if (auto ran = runner_.measure(measured->second, chain, limits, setting_); !ran) return ran;
      measured->second.set("offered_mpps", *chain.offered_mpps);
    }
    const Point& results = measured->second;
    for (const char* name :
         {"offered_mpps", "mpps", "lost", "packets_in_batch", "busy_cores", "share_nids", "share_ipsec"}) {
      if (const auto value = results.number(name)) point.set(name, *value);
    }
    if (const auto latency = results.number("latency_p" + point.text("percentile"))) point.set("latency_us", *latency);
    point.set("checked", true);
    return {};
  }

  /// At the same load for all lengths: what the longest chain can carry.
  Result<void> measure_length(Point& point, const Point& limits) {
    MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    Point longest = point;
    longest.set("chain", "C4");
    const auto most = most_mpps(longest, "unshared", limits);
    if (!most) return tl::unexpected(most.error());
    chain.offered_mpps = *most * kSameLoad / 100;
    if (auto ran = runner_.measure(point, chain, limits, setting_); !ran) return ran;
    point.set("offered_mpps", *chain.offered_mpps).set("load", kSameLoad).set("checked", true);
    // The times of the copies come from separate runs, because a timeline changes the cost of a batch.
    chain.transfer = "streamed";
    chain.timeline = true;
    Point copies;
    if (auto ran = runner_.measure(copies, chain, limits, setting_); !ran) return ran;
    if (const auto time = copies.number("transfer_us_router")) point.set("transfer_us_router", *time);
    compare_with_alone(point, "segment_us_router", "router_by_alone");
    compare_with_alone(point, "transfer_us_router", "transfer_by_alone");
    return {};
  }

  /// Compares with the router alone in the same mode, which is measured first.
  void compare_with_alone(Point& point, const char* key, const char* by_alone) {
    const auto time = point.number(key);
    if (!time) return;
    double& alone = router_alone_us_[point.text("mode") + ' ' + key];
    if (point.text("chain") == "router") alone = *time;
    if (alone > 0) point.set(by_alone, *time / alone);
  }

  /// The transfers of one way of sharing, at the same load for all. The copy engines make them, as in the paper, even
  /// small ones.
  Result<void> measure_timeline(Point& point, const Point& limits) {
    MeasuredChain chain = chain_of(point);
    if (auto checked = runner_.check(chain); !checked) return checked;
    const auto most = most_mpps(point, "unshared", limits);
    if (!most) return tl::unexpected(most.error());
    chain.offered_mpps = *most * kSameLoad / 100;
    chain.latency = "1ms";
    chain.transfer = "streamed";
    chain.timeline = true;
    if (auto ran = runner_.measure(point, chain, limits, setting_); !ran) return ran;
    point.set("offered_mpps", *chain.offered_mpps).set("load", kSameLoad).set("checked", true);
    return {};
  }

  /// The rate to which loads refer: that of the point's chain in this mode, in its fastest configuration.
  Result<double> most_mpps(const Point& point, const char* mode, const Point& limits) {
    const auto [most, is_new] = most_mpps_.try_emplace(point.text("chain") + ' ' + mode);
    if (is_new) {
      MeasuredChain chain = chain_of(point);
      chain.sharing = sharing_of(mode);
      if (point.find("tables") != nullptr) {
        const PaperSetup setup = paper_setup(point.text("size"), mode);
        chain.workers = std::min(setup.workers, setting_.workers);
        chain.streams = setup.streams;
        chain.batch_bytes = setup.batch_bytes;
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
  std::map<std::string, Point> shared_;            // by chain, tables, size and frames
  std::map<std::string, Point> latencies_;         // by chain, sweep, mode, shares and load
  std::map<std::string, double> most_mpps_;        // by chain and mode
  std::map<std::string, double> router_alone_us_;  // by mode and key
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
      .summary = "chains on GPUs, with packets shared and not, and on CPU cores: rates, bytes, latency",
      .source = "Gaviss (Guo et al., TPDS 2022), §5.2 to §5.5: C1 to C4, and the chain firewall, router",
      .repeats = 3,
      .duration = milliseconds{500},
      .quick_duration = milliseconds{200},
      .most_gpus = kMostGpus,
      .takes_rules = true,
      .takes_routes = true,
      .figures = &chain_figures,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
