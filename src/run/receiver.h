// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The receiving thread of `queueing: shared`: it polls all receive queues of all ports, and copies the packets into the
// shared queue. It counts every packet that comes in, and those that the queue has no room for. It does nothing else
// with a packet, and sleeps while there are none.

#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/counter.h"
#include "ring/packet_ring.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/shared_queue.h"

namespace penstock::run {

class Receiver {
 public:
  /// Borrows all arguments: the chain, whose ports may be opened later, and the memory from which they lend.
  Receiver(const Chain& chain, const PacketMemory& memory, SharedQueue& queue);

  /// Takes the ports' queues, once they are open.
  void begin() noexcept;
  /// Returns when all sources have ended, or `stop` is set. Then the shared queue has ended too.
  void run(const std::atomic<bool>& stop) noexcept;

  [[nodiscard]] const WorkerCounters& counters() const noexcept { return counters_; }
  /// See Run::pulses. Any thread may call it.
  [[nodiscard]] std::optional<std::uint64_t> pulse() const noexcept {
    return done_.load() ? std::nullopt : std::optional(pulse_.get());
  }

 private:
  struct Source {
    port::RxQueue* queue;
    PortIndex port;
    unsigned worker;  // whose receive queue of the port it is
    bool lossless;
    bool timed;
    bool ended = false;
  };

  bool receive_from(Source& source) noexcept;
  [[nodiscard]] std::uint64_t others_come_at(const Source& source) const noexcept;
  bool lose(Source& source) noexcept;
  bool hand_over(Source& source) noexcept;
  void count_in(const Source& source, std::uint64_t packets, std::uint64_t bytes) noexcept;
  void count_lost(std::uint64_t packets, std::uint64_t bytes) noexcept;
  void rest() noexcept;

  const Chain& chain_;
  SharedQueue& queue_;
  WorkerCounters counters_;
  ring::PacketRing ring_;  // has the one batch into which queues are polled
  std::vector<Source> sources_;
  std::vector<pollfd> wake_ups_;  // scratch
  Source* holds_ = nullptr;       // a lossless source whose packets wait in the batch for room
  std::size_t handed_over_ = 0;   // packets of the batch
  std::size_t needs_ = 0;         // the length of the last frame without room; 0: there was room
  Counter pulse_;
  std::atomic<bool> done_{false};
};

}  // namespace penstock::run
