// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/points.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "experiments/chain/chains.h"

namespace penstock::experiments {
namespace {

constexpr std::array kSizes{"64", "128", "256", "512", "1024", "1518", "imix"};
constexpr std::array kQuickSizes{"64", "1518"};
constexpr std::array kHeavySizes{"64", "512", "1518", "imix"};
constexpr std::array kCaptureSizes{"64", "128", "256", "512", "1024", "1518"};  // of connections
constexpr std::array kStateSizes{"64", "512", "1518"};
constexpr std::array kTrackings{"packets", "streams"};
constexpr const char* kTrackingOnGpu = "automaton";
constexpr std::array kPaperChains{"C1", "C2", "C3", "C4"};  // Gaviss §5.1
constexpr std::array kStatefulChains{"C1", "C2", "C3-stateful-nic", "C4-stateful-nic"};
constexpr std::array kFunctions{"router", "firewall", "ipsec", "nids"};
constexpr std::array kRouterChains{"router", "router-ipsec", "C2", "C4"};  // of one to four functions
constexpr std::array kOnGpu{"shared", "no-memshare", "unshared", "own-stacks"};
constexpr std::array kSameLoadModes{"shared", "no-memshare", "unshared"};
constexpr std::array<unsigned, 6> kWorkers{1, 2, 3, 4, 8, 12};
constexpr std::array<unsigned, 5> kPaperWorkers{4, 6, 8, 12, 16};
constexpr std::array<unsigned, 3> kSweptStreams{2, 3, 4};
constexpr std::array<unsigned, 4> kGpus{1, 2, 4, 8};
constexpr std::array<unsigned, 6> kWorkersOfEachGpu{1, 2, 3, 4, 6, 8};
constexpr std::array kShareSizes{"512", "1518"};
constexpr std::array kShares{"whole", "1/2", "1/4", "1/8", "auto"};  // of the multiprocessors, for each function that
                                                                     // takes a share
constexpr std::array kGridShares{"whole", "1/2", "1/4", "1/8"};
constexpr std::array kShareLatencies{"whole", "auto"};
constexpr std::array kSharePercentiles{"50", "99"};
constexpr std::array<unsigned, 3> kLoads{10, 50, 80};  // percent of the maximum rate
constexpr std::array kFewPercentiles{"50", "95"};
constexpr std::array kPercentiles{"1", "10", "25", "50", "75", "90", "95", "99", "99.9"};
constexpr const char* kLargeSize = "1518";
constexpr unsigned kLatencyWorkers = 4;
constexpr unsigned kLatencyStreams = 2;
constexpr unsigned kSameLoadWorkers = 4;
constexpr unsigned kStateWorkers = 16;
constexpr unsigned kStateStreams = 3;

/// Workers that keep one GPU busy, from the sweep over workers. With large frames a few are enough, and more only load
/// the memory; small frames are limited by the host's work per packet.
unsigned workers_for(std::string_view size, std::string_view frames) {
  if (frames != "whole") return 12;
  if (size == "1518") return 3;
  return size == "512" || size == "1024" ? 4 : 12;
}

/// Workers that carry this share of the load, in percent, at the lowest latency: with more workers, each sends smaller
/// batches to the GPU, more often.
unsigned latency_workers(unsigned load) { return load <= 10 ? 3 : load <= 50 ? 4 : 6; }

std::size_t functions_in(std::string_view chain) {
  return std::ranges::find(kChains, chain, &NamedChain::name)->functions.size();
}

class ChainPoints {
 public:
  explicit ChainPoints(const Setting& setting) : setting_(setting) {}

  std::vector<Point> plan() && {
    plan_routing();
    if (setting_.quick) {
      plan_stateful("C4-stateful-nic", kLargeSize);
      plan_modes("size", "C4", "paper", kLargeSize);
      plan_state("C4", kLargeSize);
      return std::move(points_);
    }
    for (const char* chain : kStatefulChains) {
      for (const char* size : kCaptureSizes) plan_stateful(chain, size);
    }
    for (const char* chain : kPaperChains) {
      for (const char* size : kSizes) plan_modes("size", chain, "paper", size);
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
    plan_same_load_of_sizes();
    plan_bounded();
    plan_ablation();
    plan_shares();
    plan_share_grid();
    plan_lengths();
    plan_transfer_shares();
    for (const char* size : kStateSizes) plan_modes("branch", "C4-branch", "paper", size);
    for (const char* mode : {"no-memshare", "shared"}) {
      add("timeline", "C4", "paper", kLargeSize, mode, "planned", kSameLoadWorkers, 1)
          .set("streams", kLatencyStreams)
          .set("batch_packets", kTransferPackets);
    }
    plan_gpus();
    for (const char* chain : kPaperChains) {
      for (const char* size : kHeavySizes) plan_modes("size", chain, "heavy", size);
    }
    return std::move(points_);
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
          add("size", kRoutingChain, "", size, mode, frames, workers_for(size, frames));
        }
      }
      add("size", kRoutingChain, "", size, "cpu", "host", setting_.workers);
    }
    for (const unsigned workers : kWorkers) {
      if (setting_.quick || workers > setting_.workers) break;
      for (const char* size : kQuickSizes) add("workers", kRoutingChain, "", size, "shared", "whole", workers);
    }
    for (const unsigned load : kLoads) {
      if (setting_.quick && load != kLoads[1]) continue;
      for (const char* percentile : kPercentiles) {
        add("latency", kRoutingChain, "", kLargeSize, "shared", "whole", kLatencyWorkers)
            .set("load", load)
            .set("percentile", std::stod(percentile));
      }
    }
  }

  /// The ways of sharing. On the GPU, the fields that the transfer plan names cross.
  void plan_modes(const char* sweep, const char* chain, const char* tables, const char* size) {
    for (const char* mode : kOnGpu) add_paper(sweep, chain, tables, size, mode);
    add(sweep, chain, tables, size, "cpu", "host", setting_.workers);
  }

  /// The same with functions that keep state of flows, over TCP connections. On the GPU, the state of the search goes
  /// along with the packets.
  void plan_stateful(const char* chain, const char* size) {
    for (const char* mode : kOnGpu) {
      add("stateful", chain, "paper", size, mode, "planned", kStateWorkers, 1)
          .set("streams", kStateStreams)
          .set("tracking", kTrackingOnGpu);
    }
    add("stateful", chain, "paper", size, "cpu", "host", setting_.workers).set("tracking", kTrackings[1]);
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
      for (const unsigned streams : kSweptStreams) {
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
      for (const char* mode : kSameLoadModes) {
        for (const char* percentile : kPercentiles) {
          add("same-load", chain, "paper", kLargeSize, mode, "planned", kSameLoadWorkers, 1)
              .set("streams", kLatencyStreams)
              .set("load", kSameLoad)
              .set("percentile", std::stod(percentile));
        }
      }
    }
  }

  /// Figure 12 at all sizes, with as many workers for all ways of sharing.
  void plan_same_load_of_sizes() {
    for (const char* chain : kPaperChains) {
      for (const char* size : kCaptureSizes) {
        for (const char* mode : kOnGpu) {
          for (const char* percentile : kFewPercentiles) {
            add("same-load-size", chain, "paper", size, mode, "planned", paper_setup(size, "own-stacks").workers, 1)
                .set("streams", kLatencyStreams)
                .set("load", kSameLoad)
                .set("percentile", std::stod(percentile));
          }
        }
      }
    }
  }

  /// Figure 5 with its bound, which batches keep.
  void plan_bounded() {
    for (const char* chain : kPaperChains) {
      for (const char* size : kCaptureSizes) {
        for (const char* mode : {"shared", "own-stacks"}) {
          const PaperSetup setup = paper_setup(size, mode);
          add("bounded", chain, "paper", size, mode, "planned", setup.workers, 1)
              .set("streams", setup.streams)
              .set("functions", functions_in(chain));
        }
      }
    }
  }

  /// Everything turned off on its own, and all of it: at the highest rate, and at a tenth of it, where batches are
  /// small.
  void plan_ablation() {
    for (const char* size : kQuickSizes) {
      for (const Ablation& ablation : kAblations) {
        add_paper("ablation", "C4", "paper", size, "shared").set("mode", ablation.mode).set("off", ablation.off);
      }
      for (const Ablation& ablation : kAblations) {
        for (const char* percentile : kSharePercentiles) {
          add("ablation-latency", "C4", "paper", size, ablation.mode, "planned", paper_setup(size, "shared").workers, 1)
              .set("streams", kLatencyStreams)
              .set("off", ablation.off)
              .set("load", kLoads[0])
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

  /// Each pair of shares at the same load, and those that the model chooses for it.
  void plan_share_grid() {
    const auto add_pair = [&](const char* size, const char* of_nids, const char* of_ipsec) {
      add("share-grid", "C4", "paper", size, "shared", "planned", latency_workers(kShareLoad), 1)
          .set("streams", kLatencyStreams)
          .set("load", kShareLoad)
          .set("functions", functions_in("C4"))
          .set("share_of_nids", of_nids)
          .set("share_of_ipsec", of_ipsec);
    };
    for (const char* size : kShareSizes) {
      for (const char* of_nids : kGridShares) {
        for (const char* of_ipsec : kGridShares) add_pair(size, of_nids, of_ipsec);
      }
      add_pair(size, "auto", "auto");
    }
  }

  /// One batch at a time, so that no transfer waits (Gaviss §2.2).
  void plan_transfer_shares() {
    for (const char* function : kFunctions) {
      for (const char* size : kStateSizes) {
        add("transfer-share", function, "paper", size, "shared", "planned", 1, 1).set("streams", 1);
      }
    }
  }

  /// As many workers for each GPU, up to all cores.
  void plan_gpus() {
    for (const char* chain : {"C4", "inspect"}) {
      for (const unsigned gpus : kGpus) {
        if (gpus > std::max<std::size_t>(1, setting_.gpus.size())) break;
        for (const unsigned of_each : kWorkersOfEachGpu) {
          if (gpus * of_each > std::max(gpus, setting_.workers)) break;
          add_paper("gpus", chain, "paper", kLargeSize, "shared", gpus)
              .set("workers", std::min(gpus * of_each, setting_.workers));
        }
      }
    }
  }

  /// The router's transfers in chains of increasing length (figure 2).
  void plan_lengths() {
    for (const char* mode : {"no-memshare", "unshared"}) {
      double functions = 1;
      for (const char* chain : kRouterChains) {
        add_paper("length", chain, "paper", kLargeSize, mode)
            .set("batch_packets", kTransferPackets)
            .set("functions", functions++);
      }
    }
    // With whole frames, which load PCIe most: four functions without sharing carry each packet across four times.
    for (const char* mode : kSameLoadModes) {
      double functions = 1;
      for (const char* chain : kRouterChains) {
        add_paper("full", chain, "paper", kLargeSize, mode)
            .set("frames", "whole")
            .set("batch_packets", kTransferPackets)
            .set("functions", functions++);
      }
    }
  }

  const Setting& setting_;
  std::vector<Point> points_;
};

}  // namespace

PaperSetup paper_setup(std::string_view size, std::string_view mode) {
  const bool shared = mode == "shared";
  const unsigned streams = shared ? 2 : 3;
  if (size == "1518") return shared ? PaperSetup{4, streams, "8MiB"} : PaperSetup{6, streams, ""};
  if (size == "1024") return {shared ? 6U : 8U, streams, ""};
  if (size == "512") return {shared ? 8U : 10U, streams, ""};
  return {16, streams, ""};
}

std::vector<Point> plan_chains(const Setting& setting) { return ChainPoints(setting).plan(); }

}  // namespace penstock::experiments
