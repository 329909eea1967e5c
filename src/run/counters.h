// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One worker's counters. Only the worker writes them; other threads may read them during the run. Once all workers have
// stopped, every received packet has been counted as exactly one of forwarded, dropped and consumed, by the worker that
// has its connection if it was handed over. Until then, it may also be held.

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "report/counter.h"
#include "report/latency_histogram.h"
#include "run/chain.h"

namespace penstock::run {

/// Reasons for which the chain itself drops a packet, rather than one of its functions.
enum class ChainDrop : std::uint8_t {
  queue_full,      // the waiting queue was full (only for sources that do not wait)
  no_such_exit,    // a function chose a port that does not write
  port_refused,    // the port did not accept the packet
  hand_over_full,  // the ring to the worker that has the packet's connection was full (run/hand_over.h)
};
inline constexpr std::size_t kChainDropCount = 4;
inline constexpr std::string_view kChainDropNames[kChainDropCount] = {"queue_full", "no_such_exit", "port_refused",
                                                                      "hand_over_full"};

/// Packets, and the bytes of their frames, that are somewhere now.
class Level {
 public:
  void add(std::uint64_t length) noexcept { change(1, length); }
  void subtract(std::uint64_t length) noexcept { change(~std::uint64_t{0}, 0 - length); }
  [[nodiscard]] report::TrafficSum get() const noexcept {
    return {packets_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
  }

 private:
  void change(std::uint64_t packets, std::uint64_t bytes) noexcept {  // modulo 2^64
    packets_.store(packets_.load(std::memory_order_relaxed) + packets, std::memory_order_relaxed);
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t> packets_{0}, bytes_{0};
};

struct FunctionCounters {
  explicit FunctionCounters(std::size_t drop_reasons) : dropped(drop_reasons) {}
  report::Traffic in;
  report::Traffic forwarded;
  report::Traffic consumed;
  std::deque<report::Traffic> dropped;  // by reason
  Level held;                           // packets that wait until the function can decide
  report::Counter time_ns;
  report::Counter segments;         // completed segments that began with this function
  report::Counter segment_time_ns;  // sum over these, from launch until completion was noticed
};

/// Counters of batches that were processed on a device.
struct DeviceCounters {
  report::Counter segments;         // started
  report::Counter punted;           // packets that device stages left to the CPU twins
  report::Counter failures;         // segments that failed on the device; the CPU twins processed them
  report::Counter lanes_lost;       // disabled after too many failures
  report::Counter bytes_to_device;  // over PCIe, without failed segments
  report::Counter bytes_to_host;    // ditto
};

struct WorkerCounters {
  explicit WorkerCounters(const Chain& chain) : port_in(chain.ports.size()), port_out(chain.ports.size()) {
    for (const NamedFunction& f : chain.functions) functions.emplace_back(f.function->traits().drop_reasons.size());
  }
  report::Traffic in;
  report::Traffic forwarded;
  report::Traffic consumed;
  report::Traffic dropped_by_chain[kChainDropCount];
  report::Traffic handed_over;     // to the workers that have their connections (run/hand_over.h)
  report::Traffic generated;       // emitted by functions and sent; not included in the counters above
  report::Traffic generated_lost;  // emitted by functions, but not accepted by a port
  std::deque<FunctionCounters> functions;
  std::deque<report::Traffic> port_in;
  std::deque<report::Traffic> port_out;

  report::Counter batches;
  report::Counter closed_by_size;
  report::Counter closed_by_time;
  report::Counter closed_by_end;
  report::Counter closed_by_idleness;   // a device was idle, so the batch was closed early
  report::Counter batch_fill_permille;  // sum over all batches
  report::Counter stack_time_ns;        // parsing, hashing, and finding packets of other workers
  report::Counter send_time_ns;
  report::Counter cpu_time_ns;   // of the worker's thread; set when it stops
  report::Counter idle_time_ns;  // with nothing to do: no packets, and no batch that a device has finished
  std::atomic<std::uint64_t> waiting_bytes{0};  // of closed batches, now
  DeviceCounters device;
  report::LatencyHistogram latency;  // from arrival (or from the poll if that is unknown) to sending
  report::LatencyHistogram gaps;     // in forwarding, by batch: Outlet::count_gap
};

}  // namespace penstock::run
