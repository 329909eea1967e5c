// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker owns everything it touches: its receive and send queues, packet ring, stages and counters (the life of a
// packet). It takes packets in, closes batches by size or by time, and executes the oldest waiting one. It waits
// for nothing but an output that has no room (`TxQueue::send`), and for that no longer once the run is to end.

#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "ring/packet_ring.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/executor.h"
#include "run/trace.h"

namespace penstock::run {

class Worker {
 public:
  /// Borrows the chain, whose ports are open, and `trace`, which may be null. Throws gpu::CudaError where the chain is
  /// to run on a GPU and cannot.
  Worker(const Chain& chain, unsigned index, Trace* trace);

  /// First, in the thread that then runs: makes the executor ready for packets.
  void begin() noexcept;

  /// Returns when all sources have ended and all their packets are done, or, once `stop` is set, when what has been
  /// taken in is done.
  void run(const std::atomic<bool>& stop) noexcept;

  [[nodiscard]] const WorkerCounters& counters() const noexcept { return counters_; }
  /// When all packets were done; once `run` has returned.
  [[nodiscard]] Batch::Clock::time_point ended_at() const noexcept { return ended_at_; }

 private:
  using Clock = Batch::Clock;
  struct Source {
    port::RxQueue* queue;
    PortIndex port;
    bool lossless;
    bool timed;  // its packets carry times to merge it with others by
    bool ended = false;
  };

  void run_until(const std::atomic<bool>& stop) noexcept;
  bool receive() noexcept;
  bool receive_from(Source& source) noexcept;
  void count_arrivals(const Source& source, std::uint64_t packets, std::uint64_t bytes) noexcept;
  /// Into the batch that is being filled, or, where the waiting queue is full, to be dropped and counted.
  port::RxStatus take_in(Source& source) noexcept;
  [[nodiscard]] std::uint64_t others_come_at(const Source& source) noexcept;
  port::RxStatus lose(Source& source) noexcept;
  void close(report::Counter& cause) noexcept;
  bool observe_copy() noexcept;
  bool execute() noexcept;
  bool retire() noexcept;
  [[nodiscard]] bool all_ended() const noexcept;
  /// Batches that are closed and not worked on yet.
  [[nodiscard]] bool any_waits() const noexcept { return next_ != nullptr || ring_.waiting() > 0; }

  const Chain& chain_;
  WorkerCounters counters_;
  ring::PacketRing ring_;
  std::unique_ptr<Executor> executor_;
  Batch* next_ = nullptr;      // the oldest that waits, once it is out of the ring's queue
  std::size_t in_flight_ = 0;  // batches that the executor has
  std::vector<Source> sources_;
  bool all_lossless_ = true;
  std::size_t next_source_ = 0;
  Batch* filling_ = nullptr;
  bool copy_waits_ = false;  // alone in the batch that is filled, until all packets before it are done
  Clock::time_point ended_at_;
};

}  // namespace penstock::run
