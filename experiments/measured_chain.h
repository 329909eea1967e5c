// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole chains as experiments measure them: from a generator whose frames stay in the ring's memory, as where a NIC
// writes them, over a chain's functions to the null port; host memory to host memory. And the proof that what is
// measured is right: the same chain over fewer packets, against the CPU, byte for byte.

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

/// A path as a chain file can hold it, whatever is in it.
[[nodiscard]] std::string yaml_text(const std::string& path);

/// A chain, as the parameters of a chain file say it.
struct MeasuredChain {
  std::string functions;      // the list under `chain`, paths in it as yaml_text
  std::string undone_by;      // functions that undo what differs from run to run in what comes out; empty: nothing does
  std::string undone = "[]";  // functions by which the same then comes out on the CPU; none: what went in
  std::string capture;        // connections that are played again and again; else the generator's packets
  std::string checked_capture;  // some that `check` plays once, in place of `capture`
  std::string payloads;         // capture whose payloads the generator's packets have; zeros where empty
  std::string destinations;     // file with the prefixes that packets go to; the generator's own where empty
  std::string size = "64";      // of frames with check sequence, or imix
  bool tcp = false;             // the generator's packets; else UDP
  bool on_gpu = false;
  std::vector<int> gpus;
  unsigned workers = 1;
  std::string frames = "planned";
  std::string sharing = "packets";
  std::string transfer = "auto";
  unsigned streams = 3;
  std::string batch_bytes;  // of a GPU's batches; empty: as the program chooses
  std::string gpu_shares = "whole";
  std::string latency;                 // the bound; empty: none
  std::optional<double> offered_mpps;  // else as many as the chain takes
  bool timeline = false;               // of its transfers, which transfers_of (transfers.h) then tells of
};

class ChainRunner {
 public:
  /// Borrows `stop`, which ends a run early.
  explicit ChainRunner(const std::atomic<bool>& stop) : stop_(stop) {}

  [[nodiscard]] const Workplace& workplace() const noexcept { return workplace_; }

  /// Whether there can be such a chain: reads all that it names, and runs nothing.
  [[nodiscard]] Result<void> try_out(const MeasuredChain& chain);

  /// Runs the chain as often and as long as the setting says, and adds the medians of what `results_of` tells to the
  /// point; of `mpps`, the spread too; of texts, the last run's. An error where the chain cannot run, or batches fail
  /// on the GPU.
  [[nodiscard]] Result<void> measure(Point& point, const MeasuredChain& chain, const Point& limits,
                                     const Setting& setting);

  /// Whether what comes out of the chain, for some 20,000 packets, is what comes out of it on the CPU, in the same
  /// order; the error tells the first difference. Where two runs differ by right, as encryption does, the chain is
  /// `undone_by` other functions, on the CPU: then the result must be what comes out of the functions `undone` there,
  /// whichever processor it ran on. Each configuration is checked once, however often it is asked for.
  [[nodiscard]] Result<void> check(const MeasuredChain& chain);

 private:
  Result<config::LoadedChain> load(const std::string& yaml, bool only_plan);
  Result<report::RunReport> run_file(const std::string& yaml, std::unique_ptr<ring::Timeline>* timeline = nullptr);
  Result<std::string> output_of(const MeasuredChain& chain, const std::string& name);
  Result<std::string> undo(const MeasuredChain& chain, const std::string& output);

  const std::atomic<bool>& stop_;
  Workplace workplace_;
  std::set<std::string> checked_;                // by their chain files
  std::map<std::string, std::string> expected_;  // captures, by what went in and the functions of the CPU
};

/// Of a run's report. `limits` as of limits.h, `gpus`: how many the chain ran on.
///
///   mpps, gbps                     packets and bits that came in; the bits with check sequence
///   to_device, to_host             GB/s
///   bytes_up, bytes_down           for each packet
///   limit_mpps, limit_gbps         that PCIe sets with so many bytes (limits.h); nothing where none crossed
///   of_limit                       share of it that was reached
///   busy_cores                     processor time of the workers by the time that passed
///   segment_us_FUNCTION            mean time on the GPU, there and back, of the segment that begins with the function
///   share_FUNCTION                 multiprocessors that it may fill, where it was given a share or timed for one
///   lost                           share of the packets that the waiting queue had no room for
///   dropped                        share of the packets that functions dropped
///   flows, tcp_sessions, stream_bytes, stream_gaps, unknown_connections
///                                  of intrusion detection that follows connections: flows, and TCP connections among
///                                  them; bytes in streams, for each packet that came in; holes in them; packets of
///                                  connections that it does not know
[[nodiscard]] Point results_of(const report::RunReport& report, const Point& limits, std::size_t gpus);

}  // namespace penstock::experiments
