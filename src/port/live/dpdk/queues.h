// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker's queues at a DPDK device. If the device has fewer queues than there are workers, only the first workers
// receive, and hand frames over (exchange.h); several workers send by one queue, and take turns without waiting.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "port/live/dpdk/module.h"
#include "port/live/exchange.h"
#include "port/live/intake.h"
#include "port/port.h"

namespace penstock::port::dpdk {

/// What the receive queues of a port have in common.
struct ReceiveSide {
  Device* device = nullptr;
  Exchange* exchange = nullptr;  // null: a single worker
  PortIndex port = 0;
  std::optional<PacketMemory::Region> region;  // of `memory`; empty: frames are copied
  std::span<std::uint8_t> memory;              // Device::receive_memory
  FrameRoom room;                              // that lent frames need
  std::size_t most_lent = 0;                   // by each queue
};

class DpdkRx final : public RxQueue {
 public:
  /// `receives`: the worker has a queue of the device.
  DpdkRx(unsigned worker, bool receives, const ReceiveSide& side);

  RxStatus poll(Batch& batch) noexcept override;
  void take_back(std::size_t frames) noexcept override;
  Discarded discard(std::size_t most) noexcept override;

  /// Frames that have been lent. The others were copied. Thread-safe.
  [[nodiscard]] std::uint64_t lent() const noexcept { return intake_.counts().lent.get(); }
  /// Frames that fit in no batch, and were dropped. Thread-safe.
  [[nodiscard]] std::uint64_t too_long() const noexcept { return too_long_.get() + intake_.counts().too_long.get(); }
  /// Once the worker has stopped: gives back all buffers. Returns how many frames it had received, but not taken in.
  std::size_t end() noexcept;

 private:
  RxStatus receive(Batch& batch) noexcept;
  bool next_frame() noexcept;
  void done_with_frame(bool lent) noexcept;
  void give_back() noexcept;
  [[nodiscard]] bool can_be_lent(const Received& received) const noexcept;

  static constexpr std::size_t kBurst = 64;
  static constexpr std::size_t kLongestFrame = 64 << 10;

  const unsigned worker_;
  const bool receives_;
  const ReceiveSide side_;
  Intake intake_;
  std::array<Received, kBurst> burst_;
  std::size_t received_ = 0, next_ = 0;  // frames in `burst_`, and the one to be taken next
  std::uint64_t received_at_ns_ = 0;
  ReceivedFrame frame_;              // that is being taken, if
  bool is_open_ = false;             // it has not been taken completely
  std::array<Buffer, kBurst> free_;  // to be given back with the burst
  std::size_t free_count_ = 0;
  std::vector<Buffer> lent_;  // a ring buffer
  std::size_t first_lent_ = 0, lent_count_ = 0;
  std::vector<std::uint8_t> joined_;  // a frame of several buffers
  Counter too_long_;
};

/// A send queue of the device. Its users take turns.
struct alignas(64) SendQueue {
  std::atomic<bool> busy{false};
};

class DpdkTx final : public TxQueue {
 public:
  /// `turn`: null if no other worker uses the queue. `slots`: frames that can wait for the device.
  DpdkTx(Device& device, unsigned queue, SendQueue* turn, std::size_t slots, std::size_t mtu);

  std::size_t send(std::span<const PacketView> packets) noexcept override;
  Lost flush() noexcept override;
  /// Frames were copied, but those that the device has not taken are to be offered again.
  Departures departures() noexcept override;

  /// From another thread: the run ends, and frames that the device does not take are given up.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }
  /// Once the worker has stopped: gives back all buffers.
  void end() noexcept;

  struct Refusals {
    Counter down, too_long, ring_full;
  };
  [[nodiscard]] const Refusals& refusals() const noexcept { return refusals_; }

 private:
  bool put(const PacketView& view) noexcept;
  void offer() noexcept;
  void give_up(std::size_t from) noexcept;
  [[nodiscard]] std::size_t pending() const noexcept { return waiting_count_ - first_waiting_; }

  Device& device_;
  const unsigned queue_;
  SendQueue* const turn_;
  const std::size_t mtu_;
  struct Waiting {
    std::vector<Buffer> buffers;
    std::vector<std::uint32_t> lengths;
  } waiting_;
  std::size_t first_waiting_ = 0, waiting_count_ = 0;
  std::uint64_t accepted_ = 0;
  bool up_ = false;
  unsigned tries_ = 0;  // in vain, since the run ends
  Lost lost_;
  Refusals refusals_;
  std::atomic<bool> stopping_{false};
};

}  // namespace penstock::port::dpdk
