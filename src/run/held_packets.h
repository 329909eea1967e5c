// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of packets that wait until a function's stage can decide about them (function/holding_stage.h), in the order
// in which they came. Owns their memory, which is bounded and taken when it is made. Each worker has its own for each
// function that holds packets.
//
//     take ─▶ [ held, in order ] ─ Review ─▶ decided: they leave
//                    ▲                └────▶ keep: still lacking
//                    └─────────────────────────┘
//
// Like the kernel's queue of a neighbour, it gives up the oldest of the packets that wait for the same thing if they
// are too many. If packets wait for too many things, it takes no more, as the kernel takes no more neighbours.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "conntrack/connections.h"
#include "function/burst.h"
#include "function/holding_stage.h"
#include "packet/batch.h"
#include "run/chain.h"
#include "run/counters.h"

namespace penstock::run {

/// Whether a function of the chain may hold packets. In a chain that uses a device, only if no function follows: those
/// that follow may keep state on the device, without which their twins would process the packets.
[[nodiscard]] bool may_hold_packets(const Chain& chain, std::size_t function);

class HeldPackets {
  struct Side;

 public:
  using Clock = Batch::Clock;

  // Of one worker: packets, and the bytes of their frames with room.
  static constexpr std::size_t kMost = 1024;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  // Of those that wait for the same thing: packets, and bytes of frames (the kernel's default `unres_qlen_bytes`).
  static constexpr std::size_t kMostOfOne = 100;
  static constexpr std::size_t kMostBytesOfOne = 212'992;
  /// As long as the kernel takes to find out that a neighbour does not answer: three probes, one second each.
  static constexpr std::chrono::seconds kLongest{3};

  /// Counts what it takes and gives up in `counters`, which it borrows.
  HeldPackets(function::HoldingStage::Reasons reasons, FrameRoom room, FunctionCounters& counters);

  [[nodiscard]] function::HoldingStage::Reasons reasons() const noexcept { return reasons_; }
  [[nodiscard]] bool empty() const noexcept { return live_ == 0; }
  /// Whether they are to be reviewed even if nothing was learnt: some have waited for too long, or what they lack is to
  /// be asked for again.
  [[nodiscard]] bool is_due(Clock::time_point now) const noexcept { return live_ > 0 && now >= due_; }

  /// What was said about the connection of a packet.
  using Connection = conntrack::Connections::Kept;
  /// Copies a packet of batch number `batch`; numbers never fall. `lacks`: HoldingStage::lacks. `is_ready`: it is to be
  /// reviewed at once. False: there is no room.
  [[nodiscard]] bool take(PacketView packet, std::uint64_t lacks, bool is_ready, std::uint64_t batch,
                          Clock::time_point now, const Connection& connection = {}) noexcept;

  /// Goes through the packets of batches up to `last_batch`, in order. Those that are not kept have left. `news`: the
  /// stage has learnt something, so those of later batches are to be reviewed at once when it is their turn.
  class Review {
   public:
    Review(HeldPackets& of, std::uint64_t last_batch, bool news, Clock::time_point now) noexcept;
    ~Review();
    Review(const Review&) = delete;
    Review& operator=(const Review&) = delete;

    /// The next ones, with the verdict forward, valid until the end of the review. Empty: there are no more.
    [[nodiscard]] std::span<PacketView> next() noexcept;
    /// Of the packets that `next` has returned last, for each of which one of the following is called.
    [[nodiscard]] bool has_waited_long(std::size_t i) const noexcept;
    void keep(std::size_t i, std::uint64_t lacks) noexcept;
    void let_go(std::size_t i) noexcept;
    [[nodiscard]] const Connection& connection(std::size_t i) const noexcept {
      return from_.entries[at_[i]].connection;
    }
    /// In which the packets are.
    [[nodiscard]] Batch& batch() noexcept;

   private:
    HeldPackets& held_;
    Side& from_;
    const std::uint64_t last_batch_;
    const bool news_;
    const Clock::time_point now_;
    std::size_t next_ = 0;
    std::array<PacketView, function::kBurst> burst_;
    std::array<std::uint32_t, function::kBurst> at_;  // their places
  };

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Entry {
    std::uint64_t lacks;
    std::uint64_t batch;
    Clock::time_point since;
    bool is_ready;  // to be reviewed at once
    Connection connection{};
    bool gone = false;
    std::uint32_t next = kNone;  // that waits for the same
  };
  /// Packets that wait for the same thing.
  struct Queue {
    std::uint64_t lacks = 0;
    std::uint32_t first = kNone, last = kNone;  // both: the slot is free
    std::uint32_t packets = 0;
    std::uint64_t bytes = 0;
  };
  /// Packets that are given up leave holes. Those that stay are moved to the other side then, and in a review.
  struct Side {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::vector<PacketDescriptor> descriptors;
    std::vector<Entry> entries;
    Batch batch;
  };

  [[nodiscard]] Side& side() noexcept { return sides_[in_use_]; }
  [[nodiscard]] std::size_t need(PacketView packet) const noexcept;
  [[nodiscard]] Queue& queue_of(std::uint64_t lacks) noexcept;
  void append(PacketView packet, const Entry& entry) noexcept;
  void give_up_oldest(Queue& queue) noexcept;
  Side& change_sides() noexcept;
  void compact() noexcept;

  const function::HoldingStage::Reasons reasons_;
  const FrameRoom room_;
  FunctionCounters& counters_;
  std::array<Side, 2> sides_;
  std::size_t in_use_ = 0;
  std::vector<Queue> queues_;  // by hash, open addressing
  std::size_t live_ = 0;       // packets that wait
  std::size_t live_bytes_ = 0;
  Clock::time_point due_;
};

}  // namespace penstock::run
