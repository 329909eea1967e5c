// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The waiting queue of `queueing: shared` (Araujo et al. 2021, §4): one thread puts packets in, and all workers take
// them out, each into its own batches.
//
//    receiver ── push ─▶ [oldest … newest] ── poll, in portions, under a lock ─▶ batch of whichever worker is free
//                 └─ no room: dropped by the receiver, or it waits
//
// Owns copies of the frames, at most `bytes` of them. To a worker, it is its only source. The receiver takes no lock to
// put packets in.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "packet/batch.h"
#include "port/port.h"
#include "port/spsc_byte_ring.h"

namespace penstock::run {

class SharedQueue final : public port::RxQueue {
 public:
  using Clock = Batch::Clock;

  /// `bytes`: of frames, with the room that their descriptions take here.
  explicit SharedQueue(std::size_t bytes);

  // The receiver's side: one thread.

  /// When a packet was polled, and what `RxQueue::arrivals_to_clock` said.
  struct Polled {
    Clock::time_point time;
    std::optional<std::chrono::nanoseconds> to_clock{};
  };
  /// Copies the frame in. False: there is no room now. A frame beyond `bytes` gets in while the queue is empty.
  [[nodiscard]] bool push(std::span<const std::uint8_t> frame, const Arrival& arrival, const Polled& polled) noexcept;
  /// Whether `push` would take a frame of this length, or nearly: where the ring wraps, it may not.
  [[nodiscard]] bool has_room(std::size_t length) const noexcept;
  /// A frame that is longer never gets in.
  [[nodiscard]] std::size_t longest_frame() const noexcept;
  /// Wakes a worker for the packets pushed since the last call.
  void announce() noexcept;
  /// No more packets will be pushed.
  void end() noexcept;

  /// Any thread may ask.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept {
    const std::uint64_t taken = taken_.load();  // first: what is taken was pushed before
    return pushed_.load() - taken;
  }
  [[nodiscard]] std::size_t most_bytes() const noexcept { return most_bytes_; }

  // The workers' side: any number of threads.

  /// Takes a portion of the oldest packets, and marks their arrivals in the batch. Idle: there are none, or the portion
  /// was complete.
  port::RxStatus poll(Batch& batch) noexcept override;
  /// Sleeps until there are packets, no more will come, or it is `until`.
  void wait(Clock::time_point until) noexcept;

 private:
  [[nodiscard]] bool has_packets() const noexcept { return pushed_.load() != taken_.load(); }
  void wake_one() noexcept;

  const std::size_t most_bytes_;
  port::SpscByteRing ring_;  // its consumer is whoever holds `taking_`
  std::mutex taking_;
  // Bytes since the beginning. Sequentially consistent with `sleeping_`, so that no worker falls asleep unseen.
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  std::atomic<bool> ended_{false};
  std::atomic<unsigned> sleeping_{0};  // workers that sleep or are about to
  std::mutex waking_;
  std::condition_variable awake_;
};

}  // namespace penstock::run
