// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The results of a run, added up over its workers: plain values, rendered as report.json and as tables.

#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/counter.h"

namespace penstock::report {

/// Number of packets by drop reason; all possible reasons, in their order.
using DropCounts = std::vector<std::pair<std::string, std::uint64_t>>;

/// The time of a GPU stage for a batch, limited to this many multiprocessors.
struct StageTiming {
  std::uint32_t multiprocessors = 0;
  double us = 0;
};

struct FunctionReport {
  std::string name;
  std::string description;
  TrafficSum in, forwarded, consumed, dropped;
  TrafficSum held;  // now
  DropCounts drop_reasons;
  std::chrono::nanoseconds time{};  // CPU time
  std::uint64_t segments = 0;       // number of GPU segments that begin with this function
  std::chrono::nanoseconds segment_time{};
  std::uint32_t multiprocessors = 0;     // its share of the GPU; 0: all
  std::vector<StageTiming> share_times;  // measurements by which the share was chosen
  nlohmann::ordered_json details;        // the function's own part; null if none

  /// 0 if there were no packets, or no segments.
  [[nodiscard]] double ns_per_packet() const noexcept;
  [[nodiscard]] double us_per_segment() const noexcept;
};

struct PortReport {
  std::string name;
  TrafficSum in, out;
  /// For a source with a rate: how many packets it should have made, and how late it is.
  struct Offered {
    std::uint64_t packets = 0;
    std::chrono::nanoseconds behind{};
  };
  std::optional<Offered> offered;
  /// For a source that distributes packets to workers in software (port::FragmentCounts).
  struct Fragments {
    std::uint64_t packets = 0, waited = 0, not_followed = 0, ambiguous = 0, copied = 0;
  };
  std::optional<Fragments> fragments;
  /// For a port on an interface (port::InterfaceCounts).
  struct Interface {
    DropCounts lost, events;
  };
  std::optional<Interface> interface;
};

struct WorkerPlacement {
  std::string cores;                    // where its thread might run: "4-7,12"
  bool bound = false;                   // to these cores, by the run
  std::optional<int> gpu;               // that it used
  std::optional<unsigned> memory_node;  // the NUMA node chosen for its memory
};

/// The waiting queue of a worker, or of all of them.
struct QueueReport {
  std::uint64_t bytes = 0, capacity_bytes = 0;
};

struct WorkerReport {
  TrafficSum in, forwarded, dropped, consumed, held;
  std::uint64_t batches = 0;
  std::chrono::nanoseconds idle{};
  QueueReport queue;
};

/// How long something took, as a cumulative histogram.
struct TimeHistogram {
  std::vector<std::pair<std::chrono::nanoseconds, std::uint64_t>> at_most;  // the limits rise
  std::uint64_t count = 0;
  double sum_s = 0;
};

struct RunReport {
  std::string processor;  // "cpu", "gpu"
  std::size_t workers = 0;
  std::vector<WorkerPlacement> placement;  // by worker
  std::vector<WorkerReport> by_worker;
  std::optional<QueueReport> shared_queue;  // with `queueing: shared`
  std::chrono::nanoseconds elapsed{};
  std::uint64_t reloads = 0;  // and rollbacks
  /// Each packet that was read and has left the chain is in exactly one of forwarded, dropped and consumed. Those that
  /// functions hold now are in `held`: none at the end.
  TrafficSum in, forwarded, dropped, consumed, held;
  TrafficSum generated, generated_lost;   // packets made by functions
  std::optional<TrafficSum> handed_over;  // from worker to worker, in chains whose connections may need that
  std::vector<FunctionReport> functions;
  DropCounts dropped_by_chain;
  std::vector<PortReport> ports;
  struct Batches {
    std::uint64_t count = 0, closed_by_size = 0, closed_by_time = 0, closed_by_end = 0, closed_by_idleness = 0;
    double mean_fill = 0;  // 0 … 1
  };
  Batches batches;
  std::uint64_t bytes_to_device = 0, bytes_to_host = 0;  // bytes that crossed PCIe
  /// The process that owns the GPU, as seen by a run that is one of its tenants.
  struct Proxy {
    bool connected = true;
    std::uint64_t losses = 0;            // how often it was lost
    std::chrono::nanoseconds without{};  // time on the CPU because it was lost
  };
  struct Gpu {
    std::vector<int> devices;
    std::string shares;  // how the shares were chosen: "whole", "auto", "given"
    std::uint64_t segments = 0, punted = 0, failures = 0, lanes_lost = 0;
    std::uint64_t memory_bytes = 0, most_memory_bytes = 0;  // on all devices: now, and the most so far
    std::optional<Proxy> proxy{};                           // empty: the GPUs are the run's own
  };
  std::optional<Gpu> gpu;  // empty: the run used no GPU
  std::chrono::nanoseconds cpu_time{}, stack_time{}, send_time{};
  /// Microseconds, and how many times are longer.
  using LongTimes = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  std::vector<std::pair<std::string, double>> latency_us;  // "p50", … "max", "mean"
  LongTimes long_latencies;                                // packets
  TimeHistogram latencies;                                 // ditto
  /// Gaps in forwarding: for each batch, the time in which its worker had packets and sent none.
  struct Gaps {
    std::vector<std::pair<std::string, double>> us;  // as of latencies
    LongTimes longer;
    std::vector<double> longest_us;  // by worker
    TimeHistogram times;
  };
  Gaps gaps;

  [[nodiscard]] double elapsed_s() const noexcept { return std::chrono::duration<double>(elapsed).count(); }
  /// Packets per second; bits of frames per second.
  [[nodiscard]] double packets_per_second() const noexcept;
  [[nodiscard]] double bits_per_second() const noexcept;
  /// 0 if the chain has no such reason.
  [[nodiscard]] std::uint64_t chain_drops(std::string_view reason) const noexcept;
  [[nodiscard]] double latency(std::string_view quantile) const noexcept;
};

/// The content of `report.json`: docs/report.md.
[[nodiscard]] nlohmann::ordered_json to_json(const RunReport& report);
[[nodiscard]] nlohmann::ordered_json rate_json(const RunReport& report);
/// For the terminal.
[[nodiscard]] std::string to_tables(const RunReport& report);

}  // namespace penstock::report
