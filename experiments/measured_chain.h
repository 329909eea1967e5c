// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole chains as experiments measure them, from host memory to host memory: from a generator whose frames stay in the
// ring's memory (as if a NIC had written them) through the functions to the null port. The output is verified too: the
// same chain processes fewer packets, and its output is compared with the CPU's, byte for byte.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/chain_file.h"
#include "experiments/experiment.h"
#include "experiments/point.h"
#include "experiments/workload.h"
#include "report/run_report.h"
#include "ring/timeline.h"

namespace penstock::experiments {

/// Quotes a path for a chain file, whatever characters it contains.
[[nodiscard]] std::string yaml_text(const std::string& path);

/// A chain, in terms of a chain file's parameters.
struct MeasuredChain {
  std::string functions;        // the list under `chain`; paths in it as yaml_text
  std::string undone_by;        // functions that undo changes which differ from run to run; empty: none
  std::string undone = "[]";    // functions on the CPU that give the same result as `undone_by`; none: the input
  std::string capture;          // connections that are replayed repeatedly; empty: the generator's packets
  std::string checked_capture;  // connections that `check` plays once instead of `capture`
  std::string payloads;         // capture that provides the generator's payloads; empty: zeros
  std::string destinations;     // file with the destination prefixes; empty: the generator's own
  std::string size = "64";      // of frames with FCS, or imix
  bool tcp = false;             // of the generator's packets; else UDP
  bool to_dmz = false;          // packets leave by a port dmz too, where `check` does not compare them
  bool on_gpu = false;
  std::vector<int> gpus;
  unsigned workers = 1;
  std::string frames = "planned";
  std::string sharing = "packets";
  std::string transfer = "auto";
  unsigned streams = 3;
  std::string batch_bytes;     // of batches on a GPU, at most; empty: the default
  unsigned batch_packets = 0;  // in each batch on a GPU, whatever the load; 0: those that arrive in time
  std::string launches = "collected";
  std::string finish = "deferred";
  std::string gpu_shares = "whole";
  std::string rate;                    // for which shares are chosen; empty: the default
  std::string latency;                 // upper bound; empty: none
  std::optional<double> offered_mpps;  // empty: as many as the chain can process
  bool timeline = false;               // of its transfers, evaluated by transfers_of (transfers.h)
};

class ChainRunner {
 public:
  /// Borrows `stop`, which ends a run early.
  explicit ChainRunner(const std::atomic<bool>& stop) : stop_(stop) {}

  [[nodiscard]] const Workplace& workplace() const noexcept { return workplace_; }

  /// Whether the chain is valid: reads all files that it names, but runs nothing.
  [[nodiscard]] Result<void> try_out(const MeasuredChain& chain);

  /// Runs the chain as often and as long as `setting` says, and adds the medians of `results_of` to the point; for
  /// `mpps`, the spread too; for texts, the last run's. Fails if the chain cannot run, or if batches fail on the GPU.
  [[nodiscard]] Result<void> measure(Point& point, const MeasuredChain& chain, const Point& limits,
                                     const Setting& setting);

  /// Whether the chain's output for some 20,000 packets equals the CPU's, in the same order; the error shows the first
  /// difference. If outputs of two runs differ by design (encryption), the functions `undone_by` are applied to the
  /// output on the CPU; the result must then equal the output of the functions `undone` on the CPU, for any processor.
  /// Each configuration is checked only once.
  [[nodiscard]] Result<void> check(const MeasuredChain& chain);

 private:
  Result<config::LoadedChain> load(const std::string& yaml, bool only_plan);
  Result<report::RunReport> run_file(const std::string& yaml, std::unique_ptr<ring::Timeline>* timeline = nullptr);
  Result<std::string> output_of(const MeasuredChain& chain, const std::string& name);
  Result<std::string> undo(const MeasuredChain& chain, const std::string& output);

  const std::atomic<bool>& stop_;
  Workplace workplace_;
  std::set<std::string> checked_;                // by chain file
  std::map<std::string, std::string> expected_;  // captures, by input and CPU functions
};

/// Results from a run's report. `limits`: see limits.h; `gpus`: the number of GPUs that the chain used.
///
///   mpps, gbps                     received packets and bits; bits include the FCS
///   to_device, to_host             GB/s
///   bytes_up, bytes_down           per packet
///   limit_mpps, limit_gbps         PCIe's limit for so many bytes (limits.h); absent if none crossed
///   of_limit                       share of the limit that was reached
///   busy_cores                     processor time of the workers divided by elapsed time
///   stack_percent                  of this time: parsing, and functions' own stacks and buffers (run/own_stacks.h);
///                                  trackers that functions need themselves count for the functions
///   segment_us_FUNCTION            mean time on the GPU of the segment that begins with the function, with transfers
///   share_FUNCTION                 multiprocessors that it may fill, if it has a share or was timed for one
///   lost                           share of the packets that were dropped because the waiting queue was full
///   dropped                        share of the packets that functions dropped
///   flows, tcp_sessions, stream_bytes, stream_gaps, unknown_connections
///                                  if intrusion detection follows connections: flows, and TCP connections among them;
///                                  stream bytes per received packet; gaps in streams; packets of connections that it
///                                  does not know
[[nodiscard]] Point results_of(const report::RunReport& report, const Point& limits, std::size_t gpus);

}  // namespace penstock::experiments
