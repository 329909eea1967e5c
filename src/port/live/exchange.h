// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes each frame to the worker of its flow, whichever queue of an interface it came by. The hardware or the kernel
// spreads frames by a hash of its own, and fragments by addresses only. Frames that came to the right worker stay where
// they are; others are copied to a ring for their worker:
//
//    queue of worker 0 ──▶ own frames ──▶ batch                        ┌────▶ inbox of worker 1
//                     └──▶ others ─────────────────────────────────────┤
//    queue of worker 1 ──▶ fragments ──▶ worker 0: fragment_table.h ───┴────▶ inbox of worker 0, …
//
// Fragments all go to worker 0, because one table has to know them all. A full ring drops frames and counts them.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/counter.h"
#include "packet/batch.h"
#include "port/capture_format.h"
#include "port/fragment_table.h"
#include "port/port.h"
#include "port/worker_key.h"
#include "port/worker_rings.h"

namespace penstock::port {

class Exchange {
 public:
  /// `workers`: at least 2; with a single worker, there is nothing to exchange.
  explicit Exchange(unsigned workers);

  /// Called by worker `here` for each frame that its queue has received. True: the frame is its own, and not a
  /// fragment. False: the frame has been copied for its worker, or dropped and counted.
  [[nodiscard]] bool keeps(unsigned here, const CapturedFrame& frame) noexcept;
  /// Wakes the workers for which `keeps` has copied frames.
  void wake_others(unsigned here) noexcept { rings_.wake_others(here); }
  /// Appends frames that came to other queues, until the batch is full or there are none. Called by worker `here`. The
  /// other workers' rings have their turns.
  RxStatus poll(unsigned here, Batch& batch, PortIndex in_port) noexcept;
  /// A whole poll of worker `here`: appends frames that came to other queues, and those of its own queue, by `receive`,
  /// which returns an RxStatus. In turns, so that full batches of one kind do not keep out the other.
  template <typename Receive>
  [[nodiscard]] RxStatus poll_in_turns(unsigned here, Batch& batch, PortIndex in_port,
                                       const Receive& receive) noexcept {
    bool& own_first = parts_[here]->own_first;
    own_first = !own_first;
    const auto take = [&](bool own) { return own ? receive() : poll(here, batch, in_port); };
    RxStatus status = take(own_first);
    // A queue without memory to lend does not keep out frames that are copied.
    if (status == RxStatus::idle || status == RxStatus::starved) {
      const RxStatus second = take(!own_first);
      if (second != RxStatus::idle) status = second;
    }
    wake_others(here);
    return status;
  }
  /// Discards at most `most` of these frames.
  RxQueue::Discarded discard(unsigned here, std::size_t most) noexcept;
  /// Readable when there may be frames for worker `here`, which calls this before it waits.
  [[nodiscard]] int wait_fd(unsigned here) noexcept { return rings_.wait_fd(here); }

  struct Counts {
    std::uint64_t handed_over = 0;  // frames that reached their worker
    std::uint64_t ring_full = 0;    // frames that were dropped
    std::uint64_t too_long = 0;     // frames that fit in no ring or batch, and were dropped
    std::uint64_t left = 0;         // frames still in rings, or waiting for their datagram
    FragmentCounts fragments;
    /// Adds all of these but `left` and `fragments`, under the names that all ports use.
    void add_to(InterfaceCounts& counts) const;
  };
  /// Thread-safe. `left` is exact once the workers have stopped.
  [[nodiscard]] Counts counts() const noexcept;
  /// Whether no frames are on their way from one worker to another. Thread-safe; stays so while no queue receives.
  [[nodiscard]] bool is_empty() const noexcept;

 private:
  /// What worker `index` has done. Frames that are copies (RxStatus::copy) do not count.
  struct alignas(64) Part {
    Counter entered;      // frames that it has given away
    Counter received;     // frames that it has taken from its inbox
    Counter put, popped;  // records of the rings to others, and of its inbox, copies included
    Counter ring_full, too_long;
    unsigned next = 0;       // the worker whose ring is looked at first
    bool own_first = false;  // its last poll began with its own queue
    Fragment scratch;
  };

  void send(unsigned from, unsigned to, const CapturedFrame& frame, bool to_table) noexcept;
  void take_fragment(const WorkerKey& key, const CapturedFrame& frame) noexcept;
  static void pop(Part& part, SpscByteRing& ring) noexcept;

  const unsigned workers_;
  WorkerRings rings_;
  std::vector<std::unique_ptr<Part>> parts_;
  FragmentTable fragments_;  // used by worker 0 only
};

}  // namespace penstock::port
