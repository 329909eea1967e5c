// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The points of the experiment `chain`. Keys of all points: sweep, chain and tables (chains.h), size, frames (planned
// or whole; host on the CPU), processor, workers, and mode:
//
//   shared        packets stay on the GPU
//   no-memshare   each function transfers them, and uses the layouts that the one before it left (Gaviss §5.4)
//   unshared      each function also parses them again on the GPU
//   own-stacks    each function also has packet buffers and a protocol stack on the host (Gaviss §5.2, figure 6)
//   cpu           on all of the host's cores
//
// Others: gpus, streams, batch_bytes, batch_packets (in each batch); load (percent), percentile; tracking of intrusion
// detection; off (kAblations); functions (in the chain); shares, share_of_nids and share_of_ipsec (of the
// multiprocessors).

#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "experiments/experiment.h"
#include "experiments/point.h"

namespace penstock::experiments {

inline constexpr std::size_t kMostChainGpus = 8;
inline constexpr const char* kRoutingChain = "firewall-router";
inline constexpr unsigned kShareLoad = 50;  // percent of the maximum rate with whole shares
inline constexpr unsigned kSameLoad = 50;   // percent of the maximum rate of the slowest way
inline constexpr unsigned kFullLoad = 90;   // percent of the longest chain's maximum rate without sharing
/// Where transfers are compared, which would otherwise be as large as the load makes batches. Enough for copy engines
/// to transfer whole frames of 1518 bytes, as in the paper.
inline constexpr unsigned kTransferPackets = 2048;
inline constexpr unsigned kBoundMs = 1;  // for each function (Gaviss §5.2)

/// How a chain that inspects and encrypts runs on one GPU: each way of sharing with its fastest configuration, from the
/// sweep over workers, streams and batches. Functions with transfers of their own leave a stream idle more often, so
/// they are faster with a third one.
struct PaperSetup {
  unsigned workers;
  unsigned streams;
  const char* batch_bytes;
};
[[nodiscard]] PaperSetup paper_setup(std::string_view size, std::string_view mode);

/// What is turned off, and how. Without shared packets, parsed headers and the stack can be shared or not.
struct Ablation {
  std::string_view off;  // as in points
  const char* mode = "shared";
  const char* launches = "collected";
  const char* transfer = "auto";
  const char* finish = "deferred";
};
inline constexpr Ablation kAblations[] = {
    {"nothing"},
    {"packets", "no-memshare"},
    {"packets+parsing", "unshared"},
    {"packets+parsing+stack", "own-stacks"},
    {"graphs", "shared", "separate"},
    {"small-batch-kernels", "shared", "collected", "streamed"},
    {"deferred-finish", "shared", "collected", "auto", "immediate"},
    {"all", "own-stacks", "separate", "streamed", "immediate"},
};

/// In the order of measurement: points that are compared with one of mode `shared` follow it.
[[nodiscard]] std::vector<Point> plan_chains(const Setting& setting);

}  // namespace penstock::experiments
