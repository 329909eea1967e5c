// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What one worker counts. It alone writes; others read while it runs. Every packet that came in is in exactly one of
// forwarded, dropped and consumed once the worker has stopped.

#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "report/counter.h"
#include "report/latency_histogram.h"
#include "run/chain.h"

namespace penstock::run {

/// Why the chain itself, and no function of it, drops a packet.
enum class ChainDrop : std::uint8_t {
  queue_full,    // the waiting queue had no room (a source that does not wait)
  no_such_exit,  // the function chose a port that does not write
  port_refused,  // the port could not take it
};
inline constexpr std::size_t kChainDropCount = 3;
inline constexpr std::string_view kChainDropNames[kChainDropCount] = {"queue_full", "no_such_exit", "port_refused"};

struct FunctionCounters {
  explicit FunctionCounters(std::size_t drop_reasons) : dropped(drop_reasons) {}
  report::Traffic in;
  report::Traffic forwarded;
  report::Traffic consumed;
  std::deque<report::Traffic> dropped;  // by reason
  report::Counter time_ns;
  report::Counter segments;         // on a device that began with this function and came to their end there
  report::Counter segment_time_ns;  // the sum of theirs, from the start until the end was seen
};

/// Of batches that went over a device.
struct DeviceCounters {
  report::Counter segments;         // that were started
  report::Counter punted;           // packets that GPU stages left to the CPU twins
  report::Counter failures;         // segments that the device failed: the CPU twins did them
  report::Counter lanes_lost;       // that failed too often, and are used no more
  report::Counter bytes_to_device;  // across PCIe, of the segments that the device did not fail
  report::Counter bytes_to_host;    // the same
};

struct WorkerCounters {
  explicit WorkerCounters(const Chain& chain) : port_in(chain.ports.size()), port_out(chain.ports.size()) {
    for (const NamedFunction& f : chain.functions) functions.emplace_back(f.function->traits().drop_reasons.size());
  }
  report::Traffic in;
  report::Traffic forwarded;
  report::Traffic consumed;
  report::Traffic dropped_by_chain[kChainDropCount];
  report::Traffic generated;       // that functions made and that left: in none of the above
  report::Traffic generated_lost;  // the same, but no port took them
  std::deque<FunctionCounters> functions;
  std::deque<report::Traffic> port_in;
  std::deque<report::Traffic> port_out;

  report::Counter batches;
  report::Counter closed_by_size;
  report::Counter closed_by_time;
  report::Counter closed_by_end;
  report::Counter closed_by_idleness;   // a device that had nothing to do took what there was
  report::Counter batch_fill_permille;  // summed over batches
  report::Counter stack_time_ns;        // parsing and hashing
  report::Counter send_time_ns;
  report::Counter cpu_time_ns;  // of the worker's thread, once it has stopped
  DeviceCounters device;
  report::LatencyHistogram latency;  // from the arrival, or the poll where that is unknown, to the send
};

}  // namespace penstock::run
