// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The queues of one worker at a port `af_xdp`. It receives from all sockets of its own, in turns, and sends by one.

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/counter.h"
#include "port/live/exchange.h"
#include "port/live/intake.h"
#include "port/live/interface.h"
#include "port/live/xdp_receiver.h"
#include "port/live/xdp_sender.h"
#include "port/live/xdp_socket.h"
#include "port/port.h"

namespace penstock::port {

/// How a port's frames are received, the same for all workers.
struct XdpReceiving {
  PortIndex port = 0;
  std::uint32_t tailroom = 0;                  // that a lent frame needs
  std::optional<PacketMemory::Region> region;  // of the memory; empty: frames are copied
  bool completes = false;                      // offloads that the sender has left are found and done
  bool busy_polls = false;
};

class XdpRx final : public RxQueue {
 public:
  /// A socket of the worker, and where its memory is in the region.
  struct Source {
    XdpSocket* socket;
    XdpReceiver receiver;
    std::uint64_t region_offset;
  };
  /// `exchange`: null if there is a single worker. Borrows all.
  XdpRx(unsigned worker, const XdpReceiving& how, Exchange* exchange, const InterfaceWatch& watch,
        std::vector<Source> sources, std::size_t chunks);

  RxStatus poll(Batch& batch) noexcept override;
  void take_back(std::size_t frames) noexcept override;
  bool add_wake_ups(std::vector<pollfd>& to) noexcept override;
  Discarded discard(std::size_t most) noexcept override;

  [[nodiscard]] const Intake::Counts& counts() const noexcept { return intake_.counts(); }
  /// Frames that were left out, because of their length.
  [[nodiscard]] std::uint64_t wrong_length() const noexcept { return counts().too_long.get() + wrong_length_.get(); }

 private:
  struct Lent {
    std::uint32_t source;
    std::uint64_t at;  // in the memory of the source
  };

  [[nodiscard]] RxStatus receive(Batch& batch) noexcept;
  [[nodiscard]] bool open_frame(Source& source) noexcept;
  void close_frame(Source& source, bool lent) noexcept;
  void end_turn(Source& source) noexcept;
  [[nodiscard]] bool starved(bool has_frames) const noexcept;

  const unsigned worker_;
  const XdpReceiving how_;
  Exchange* const exchange_;
  const InterfaceWatch& watch_;
  Intake intake_;
  Counter wrong_length_;
  std::vector<Source> sources_;
  std::size_t current_ = 0;   // the source whose turn it is
  ReceivedFrame frame_;       // of that source, if
  bool is_open_ = false;      // it has not been taken completely
  std::uint64_t at_ = 0;      // where it is in the source's memory
  std::uint64_t now_ns_ = 0;  // of this poll
  std::vector<Lent> lent_;    // a ring buffer, in the order of lending
  std::size_t first_lent_ = 0, lent_count_ = 0;
};

class XdpTx final : public TxQueue {
 public:
  /// `shared`: null, or held while the sender is used, since other workers use it too. Borrows all.
  XdpTx(XdpSender& sender, std::mutex* shared, const InterfaceWatch& watch)
      : sender_(sender), shared_(shared), watch_(watch) {}

  std::size_t send(std::span<const PacketView> packets) noexcept override;
  Lost flush() noexcept override;
  /// Frames were copied, but those that the kernel has not taken are to be offered again.
  Departures departures() noexcept override;

  /// From another thread: the run ends, and frames that the kernel does not take are given up.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }

  struct Refusals {
    Counter down, too_long, ring_full;
    Counter dropped;  // by the driver, after they were accepted
  };
  [[nodiscard]] const Refusals& refusals() const noexcept { return refusals_; }

 private:
  [[nodiscard]] std::unique_lock<std::mutex> lock() const noexcept {
    return shared_ != nullptr ? std::unique_lock(*shared_) : std::unique_lock<std::mutex>();
  }
  [[nodiscard]] bool put(const PacketView& view) noexcept;
  void offer() noexcept;

  XdpSender& sender_;
  std::mutex* const shared_;
  const InterfaceWatch& watch_;
  std::uint64_t accepted_ = 0;
  unsigned tries_ = 0;
  Lost lost_;
  Refusals refusals_;
  std::atomic<bool> stopping_{false};
};

}  // namespace penstock::port
