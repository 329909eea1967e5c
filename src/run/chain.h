// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A chain that is built and checked: its ports, its functions in order, its wiring and how it is to run. Immutable
// while it runs, but for what the ports and functions keep for themselves. It owns all of them.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "function/network_function.h"
#include "plan/device_plan.h"
#include "plan/fork.h"
#include "plan/gpu_shares.h"
#include "port/port.h"
#include "report/event_log.h"
#include "ring/timeline.h"

namespace penstock::run {

struct NamedPort {
  std::string name;
  std::unique_ptr<port::Port> port;
};

struct NamedFunction {
  std::string name;  // as the report calls it: the NF's name, with #2, #3 … where it stands in the chain again
  std::unique_ptr<function::NetworkFunction> function;
};

/// How batches cross PCIe (Hung & Guo §3.3): one batch at a time by the copy engines, several that overlap, or by
/// kernels that read and write the host's memory. Automatic: streamed, and small batches by kernels.
enum class Transfer : std::uint8_t { automatic, direct, streamed, zero_copy };

struct RunSettings {
  function::Processor processor = function::Processor::cpu;  // what runs the functions that have a GPU stage
  std::vector<int> gpus;  // device numbers, over which workers are spread; not empty for the GPU
  unsigned streams = 3;   // batches in flight, of each worker
  Transfer transfer = Transfer::automatic;
  plan::WholeFrames whole_frames = plan::WholeFrames::where_needed;  // for comparisons, and only for the plan
  plan::Sharing sharing = plan::Sharing::packets;                    // the same
  plan::GpuShares gpu_shares;  // where they are chosen by measurement: once the run has begun
  unsigned workers = 1;
  std::size_t batch_bytes = 512 << 10;
  std::size_t batch_packets = 512;  // with their descriptors they stay in the second-level cache
  std::chrono::nanoseconds batch_timeout = std::chrono::microseconds{500};
  std::size_t queue_bytes = 128 << 20;  // of each worker
  std::chrono::nanoseconds duration{};  // 0: until the sources end
  std::chrono::nanoseconds latency{};   // bound; 0: none
  double bits_per_second = 0;           // that the chain is to reach; 0: what PCIe carries

  [[nodiscard]] double wished_bits_per_second() const noexcept {
    constexpr double kOfPcie = 400e9;  // PCIe 5 with 16 lanes
    return bits_per_second > 0 ? bits_per_second : kOfPcie * static_cast<double>(std::max<std::size_t>(1, gpus.size()));
  }
};

struct Chain {
  std::vector<NamedPort> ports;                         // by PortIndex
  std::vector<std::unique_ptr<report::EventLog>> logs;  // that functions write to, and live longer than these
  std::vector<NamedFunction> functions;                 // those of a fork's arms follow each other
  std::vector<plan::Fork> forks;                        // in order
  /// Where a packet leaves that no function chose a port for, by the port it came in; kNoPort: it is consumed.
  std::vector<PortIndex> wiring;
  RunSettings settings;
  std::unique_ptr<ring::Timeline> timeline;  // of what its GPUs do; null: none is taken

  /// Whether a function makes packets or replaces frames.
  [[nodiscard]] bool emits() const {
    return replaces_frames() ||
           std::ranges::any_of(functions, [](const NamedFunction& f) { return f.function->traits().emits; });
  }
  [[nodiscard]] bool replaces_frames() const {
    return std::ranges::any_of(functions, [](const NamedFunction& f) { return f.function->traits().replaces_frames; });
  }
  /// For one batch.
  [[nodiscard]] function::Emissions make_emissions() const {
    function::Emissions emissions(settings.batch_bytes, settings.batch_packets);
    if (replaces_frames()) emissions.make_room_for_frames(settings.batch_bytes, plan::growth_of(traits()));
    return emissions;
  }
  [[nodiscard]] std::vector<function::NfTraits> traits() const {
    std::vector<function::NfTraits> all;
    for (const NamedFunction& f : functions) all.push_back(f.function->traits());
    return all;
  }
  [[nodiscard]] Result<plan::DevicePlan> device_plan() const {
    return plan::plan_device(traits(), settings.whole_frames, settings.sharing, forks);
  }
};

}  // namespace penstock::run
