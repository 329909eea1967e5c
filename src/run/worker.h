// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker owns everything that it touches: receive and send queues, packet ring, stages and counters (ARCHITECTURE.md,
// "The life of a packet"). It receives packets, closes batches when they are full or too old, and executes the oldest
// waiting batch. It blocks only on an output without room (`TxQueue::send`), and not even there once the run is ending,
// and for a bounded time on functions in other processes.
// With `queueing: shared`, a shared queue is its only source, and batches are closed by size and time only.

#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counter.h"
#include "base/yielder.h"
#include "ring/packet_ring.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/epoch.h"
#include "run/executor.h"
#include "run/hand_over.h"
#include "run/lending.h"
#include "run/shared_queue.h"
#include "run/succession.h"
#include "run/taps.h"

namespace penstock::run {

class Worker {
 public:
  /// Borrows the chain, whose ports may be opened later, the memory from which they lend, `taps`, which may be null,
  /// `shared`, the queue from which it takes its packets, and `hand_over`. Null: it has receive queues of its own, and
  /// all packets of its connections come to these. Throws gpu::CudaError if the chain cannot run on its device.
  Worker(const Chain& chain, const PacketMemory& memory, unsigned index, Taps* taps, SharedQueue* shared = nullptr,
         HandOver* hand_over = nullptr);
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Takes the ports' queues, and makes the executor ready for packets. Called first, in the thread that will call
  /// `run`, once the ports are open.
  void begin() noexcept;

  /// Returns when all sources have ended and all packets are done. If `stop` is set, it stops receiving, and returns
  /// when the packets received so far are done. With a shared queue, only the queue's end ends it, so that no packet
  /// stays there.
  void run(const std::atomic<bool>& stop) noexcept;

  // The next epoch, from another thread.

  /// Makes stages for it. `plan`: that of the chain when the run began; null on the CPU. Throws gpu::CudaError. Another
  /// device may be current in the calling thread afterwards.
  [[nodiscard]] std::unique_ptr<StageSet> make_stages(std::span<const NamedFunction> functions,
                                                      const plan::DevicePlan* plan) const;
  /// The next batch and all later ones are to use these stages. Call it again only once `take_ended` has returned some.
  void begin_epoch(std::unique_ptr<StageSet> next) noexcept { epochs_.offer(std::move(next)); }
  /// The stages that no batch uses any more, for the caller to destroy: the former ones or, if the worker ended before
  /// it began with them, the next ones. Null: there are none yet.
  [[nodiscard]] std::unique_ptr<StageSet> take_ended() noexcept { return epochs_.take_ended(done_.load()); }

  // Lanes in another process that is connected again, from another thread, while no epoch changes. As above.

  [[nodiscard]] std::unique_ptr<LaneSet> make_lanes() const { return executor_->make_lanes(); }
  void begin_lanes(std::unique_ptr<LaneSet> next) noexcept { lane_sets_.offer(std::move(next)); }
  [[nodiscard]] std::unique_ptr<LaneSet> take_ended_lanes() noexcept { return lane_sets_.take_ended(done_.load()); }

  /// False: packets that functions hold are given up, now and from here on. Any thread may call it.
  void let_hold(bool may) noexcept { may_hold_.store(may); }

  /// See Run::pulses. Any thread may call it.
  [[nodiscard]] std::optional<std::uint64_t> pulse() const noexcept {
    return done_.load() ? std::nullopt : std::optional(pulse_.get());
  }

  [[nodiscard]] const ring::RingShape& ring_shape() const noexcept { return ring_.shape(); }
  [[nodiscard]] const WorkerCounters& counters() const noexcept { return counters_; }
  /// The time when all packets were done; valid after `run` has returned.
  [[nodiscard]] Batch::Clock::time_point ended_at() const noexcept { return ended_at_; }

 private:
  using Clock = Batch::Clock;
  struct Source {
    port::RxQueue* queue;
    PortIndex port;
    bool lossless;
    bool timed;             // its packets have timestamps by which sources are merged
    bool is_inbox = false;  // its packets have been counted where they arrived; it ends with those of all workers
    bool ended = false;
  };

  void run_until(const std::atomic<bool>& stop) noexcept;
  bool receive(bool only_inbox) noexcept;
  bool receive_from(Source& source) noexcept;
  void count_arrivals(const Source& source, std::uint64_t packets, std::uint64_t bytes) noexcept;
  /// Polls into the open batch.
  port::RxStatus take_in(Source& source) noexcept;
  [[nodiscard]] std::uint64_t others_come_at(const Source& source) noexcept;
  port::RxStatus pass_starved(Source& source) noexcept;
  port::RxStatus lose(Source& source) noexcept;
  void close(report::Counter& cause) noexcept;
  bool observe_copy() noexcept;
  bool execute() noexcept;
  bool retire() noexcept;
  [[nodiscard]] bool all_ended() const noexcept;
  [[nodiscard]] std::optional<std::chrono::nanoseconds> arrivals_to_clock(const Source& source) const noexcept;
  void count_idle_round() noexcept;
  void rest(unsigned idle_rounds) noexcept;
  void rest_at_shared_queue() noexcept;
  [[nodiscard]] Clock::duration longest_rest() const noexcept;
  [[nodiscard]] bool closes_early() const noexcept { return shared_ == nullptr && chain_.settings.closes_early; }
  [[nodiscard]] Clock::time_point batch_due() const noexcept { return opened_ + chain_.settings.batch_timeout; }
  bool collect_wake_ups() noexcept;
  /// Whether closed batches wait for the executor.
  [[nodiscard]] bool any_waits() const noexcept { return next_ != nullptr || ring_.waiting() > 0; }
  void change_epoch() noexcept;
  void change_lanes() noexcept;

  const Chain& chain_;
  const unsigned index_;
  SharedQueue* const shared_;
  HandOver* const hand_over_;
  WorkerCounters counters_;
  ring::PacketRing ring_;
  std::unique_ptr<Executor> executor_;
  Lending lending_;
  Batch* next_ = nullptr;      // the oldest waiting batch, already taken from the ring's queue
  std::size_t in_flight_ = 0;  // batches that the executor holds
  std::vector<Source> sources_;
  bool all_lossless_ = true;
  bool can_sleep_ = false;        // all sources can wake the worker
  std::vector<pollfd> wake_ups_;  // scratch
  std::size_t next_source_ = 0;
  Batch* filling_ = nullptr;
  Clock::time_point opened_;       // when its first packet was taken
  bool copy_waits_ = false;        // a copy is alone in the open batch until all packets before it are done
  Clock::time_point round_began_;  // of `run_until`
  Yielder yielder_;
  Clock::time_point ended_at_;
  Succession<StageSet> epochs_;
  Succession<LaneSet> lane_sets_;
  std::atomic<bool> may_hold_{true};
  std::atomic<bool> done_{false};  // begins with no epoch any more
  Counter pulse_;
};

}  // namespace penstock::run
