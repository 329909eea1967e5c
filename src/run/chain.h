// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A complete, validated chain: its ports, its functions in order, its wiring and its run settings. The chain owns all
// of them. It does not change during a run, except for the internal state of its ports and functions.

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
#include "run/placement.h"

namespace penstock::run {

struct NamedPort {
  std::string name;
  std::unique_ptr<port::Port> port;
};

struct NamedFunction {
  std::string name;  // name in the report: the function's name, with a suffix #2, #3 … if it occurs more than once
  std::unique_ptr<function::NetworkFunction> function;
  std::optional<function::Processor> processor{};  // as given for it; empty: as for the whole chain
};

/// How batches cross PCIe (Hung & Guo §3.3). direct: one batch at a time, moved by the copy engines; streamed: several
/// batches that overlap; zero_copy: kernels read and write host memory. automatic: streamed, but with small batches
/// moved by kernels.
enum class Transfer : std::uint8_t { automatic, direct, streamed, zero_copy };

/// What a worker does while no packets come. busy: polls all the time; adaptive: sleeps until there are some, if all of
/// its sources can wake it (port::RxQueue::add_wake_ups).
enum class Polling : std::uint8_t { adaptive, busy };

/// Where received packets wait. per_worker: each worker receives the packets of its own flows. shared: one thread
/// receives all packets into one queue, from which the workers take them (run/shared_queue.h).
enum class Queueing : std::uint8_t { per_worker, shared };

class RemoteDevice;

/// What a run may use of the device of another process, if that is less than what that process allows. 0: no less.
struct RemoteLimits {
  std::uint64_t memory = 0;            // there, in bytes
  std::uint64_t bytes_per_second = 0;  // to and from it
  unsigned batches = 0;                // there at a time
};

struct RunSettings {
  function::Processor processor = function::Processor::cpu;  // of functions that have a stage for it, and no own one
  std::vector<int> gpus;      // device numbers; workers are spread over them; not empty on a GPU of this process
  std::string proxy;          // socket of the process whose device runs the lanes; empty: this process's own devices do
  std::string proxy_profile;  // share of that device to ask for; empty: what the proxy gives
  std::chrono::nanoseconds proxy_latency{};  // bound to ask for, of a batch's time there; 0: none
  RemoteLimits proxy_limits;                 // ditto
  bool needs_proxy = false;              // a GPU is demanded, so the run does not begin while that process is not there
  std::shared_ptr<RemoteDevice> remote;  // of that process; set before the run begins if there is a `proxy`
  unsigned streams = 3;                  // batches in flight per worker; with shared queueing, of all workers together
  Transfer transfer = Transfer::automatic;
  plan::WholeFrames whole_frames = plan::WholeFrames::where_needed;  // for comparisons only
  plan::Sharing sharing = plan::Sharing::packets;                    // ditto
  bool collects_launches = true;  // of small batches, into CUDA graphs; false for comparisons only
  bool defers_finish = true;      // of finish stages that may wait; ditto
  plan::GpuShares gpu_shares;     // with automatic choice, set when the run begins
  unsigned workers = 1;
  std::size_t batch_bytes = 512 << 10;
  std::size_t batch_packets = 512;  // with their descriptors, they fit into the second-level cache
  std::chrono::nanoseconds batch_timeout = std::chrono::microseconds{500};
  bool closes_early = true;             // a batch, once it would be executed at once; ignored by shared queueing
  std::size_t queue_bytes = 128 << 20;  // per worker, unless it is shared
  Queueing queueing = Queueing::per_worker;
  Polling polling = Polling::adaptive;
  std::chrono::nanoseconds duration{};  // 0: until the sources end
  std::chrono::nanoseconds latency{};   // upper bound; 0: none
  double bits_per_second = 0;           // target rate; 0: what PCIe carries
  Placement placement{};                // with an entry for each worker, or for none

  /// The most workers that use the same device.
  [[nodiscard]] std::size_t workers_of_device() const noexcept {
    const std::size_t devices = std::max<std::size_t>(1, gpus.size());
    return (workers + devices - 1) / devices;
  }
  [[nodiscard]] double wished_bits_per_second() const noexcept {
    constexpr double kOfPcie = 400e9;  // PCIe 5.0, 16 lanes
    return bits_per_second > 0 ? bits_per_second : kOfPcie * static_cast<double>(std::max<std::size_t>(1, gpus.size()));
  }
};

struct Chain {
  std::vector<NamedPort> ports;                         // by PortIndex
  std::vector<std::unique_ptr<report::EventLog>> logs;  // written by functions, and outlive them
  std::vector<NamedFunction> functions;                 // the functions of a fork's arms are adjacent
  std::vector<plan::Fork> forks;                        // in chain order
  /// By input port: where a packet leaves if no function has chosen a port. kNoPort: the packet is consumed.
  std::vector<PortIndex> wiring;
  RunSettings settings;
  std::unique_ptr<ring::Timeline> timeline;  // of activity on devices; null: not recorded

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
  /// The processor of each function.
  [[nodiscard]] plan::Processors processors() const {
    plan::Processors processors = plan::prefer(settings.processor, traits());
    for (std::size_t f = 0; f < functions.size(); ++f) processors[f] = functions[f].processor.value_or(processors[f]);
    return processors;
  }
  [[nodiscard]] Result<plan::DevicePlan> device_plan() const {
    return plan::plan_device(traits(), processors(), settings.whole_frames, settings.sharing, forks);
  }
};

}  // namespace penstock::run
