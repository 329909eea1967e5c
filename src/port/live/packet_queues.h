// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker's queues of the port `af_packet`. Frames come in blocks of the receive ring; a frame's VLAN tag, which the
// kernel has removed, is inserted again; the intake takes it; and on the way out it is copied into a slot of the send
// ring. Each queue can change to another ring during the run, from another thread: the receive queue once the frames
// that it has lent from the former one are back.

#pragma once

#include <linux/if_ether.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/nanoseconds.h"
#include "port/live/exchange.h"
#include "port/live/fits_link.h"
#include "port/live/intake.h"
#include "port/live/interface.h"
#include "port/live/packet_rings.h"
#include "port/live/realtime_offset.h"
#include "port/live/rest.h"
#include "port/port.h"

namespace penstock::port {

class PacketRx final : public RxQueue {
 public:
  PacketRx(unsigned worker, PortIndex port, Exchange* exchange, bool promiscuous, ReceiveRing ring,
           std::optional<PacketMemory::Region> region, std::size_t region_offset)
      : worker_(worker),
        port_(port),
        exchange_(exchange),
        promiscuous_(promiscuous),
        intake_(worker, port, exchange),
        ring_(std::move(ring)),
        region_(region),
        region_offset_(region_offset) {}
  ~PacketRx() override { delete next_.load(); }

  RxStatus poll(Batch& batch) noexcept override {
    const RxStatus status = exchange_ == nullptr
                                ? receive(batch)
                                : exchange_->poll_in_turns(worker_, batch, port_, [&] { return receive(batch); });
    rest_.note(!is_open_ && ring_.lent() == 0);
    return status;
  }

  void take_back(std::size_t frames) noexcept override { ring_.take_back(frames); }

  bool add_wake_ups(std::vector<pollfd>& to) noexcept override {
    if (exchange_ != nullptr) to.push_back({exchange_->wait_fd(worker_), POLLIN, 0});
    if (!rest_.add_wake_ups(to)) return false;
    if (rest_.asked()) return true;
    // An interface that goes down leaves an error, which would wake the worker again and again.
    int error = 0;
    socklen_t length = sizeof error;
    static_cast<void>(::getsockopt(ring_.fd(), SOL_SOCKET, SO_ERROR, &error, &length));
    to.push_back({ring_.fd(), POLLIN, 0});
    return true;
  }

  std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept override { return offset_.get(); }

  Discarded discard(std::size_t most) noexcept override {
    Discarded all;
    if (exchange_ != nullptr) all = exchange_->discard(worker_, most);
    while (all.packets < most && open_frame()) {
      const Discarded left = intake_.give_up(frame_);
      all.packets += left.packets;
      all.bytes += left.bytes;
      pop(false);
    }
    all.status = all.packets >= most ? RxStatus::more : RxStatus::idle;
    return all;
  }

  /// From another thread: the ring of the interface that has come back.
  void change_to(std::unique_ptr<ReceiveRing> ring) noexcept { delete next_.exchange(ring.release()); }

  [[nodiscard]] bool start() noexcept { return ring_.start(); }
  void stop() noexcept {
    const std::lock_guard lock(changing_);
    if (!is_handed_) ring_.stop();
  }

  // Another process takes over: see Port. From one thread.

  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  struct Handed {
    FileDescriptor socket;
    ReceiveRing::Position position;
    std::uint64_t waiting = 0;  // frames in the ring
  };
  /// While it rests. From now on, the socket's statistics are the other process's.
  [[nodiscard]] Handed hand_over() noexcept {
    const std::lock_guard lock(changing_);
    count_arrivals();
    is_handed_ = true;
    return {ring_.duplicate(), ring_.position(), arrived_ - dropped_ - popped_.get()};
  }
  /// The other process does not take over.
  void resume() noexcept {
    {
      const std::lock_guard lock(changing_);
      is_handed_ = false;
    }
    rest_.end();
  }
  /// The socket is the other process's.
  void leave() noexcept {
    const std::lock_guard lock(changing_);
    is_handed_ = true;
  }
  /// Before the first poll: a ring that another process has handed over, with `waiting` frames.
  void continue_with(ReceiveRing ring, std::optional<PacketMemory::Region> region, std::uint64_t waiting) noexcept {
    ring_ = std::move(ring);
    region_ = region;
    arrived_ = waiting;
  }

  /// In frames as the kernel hands them over, each of which may be several packets.
  struct Counts {
    std::uint64_t dropped = 0;  // by the kernel
    std::uint64_t waiting = 0;  // in the ring, not taken yet: by the kernel's count, since blocks may still be its own
    std::uint64_t other_hosts = 0;
  };
  [[nodiscard]] Counts counts() noexcept {
    const std::lock_guard lock(changing_);
    count_arrivals();
    const std::uint64_t taken = popped_.get();
    if (is_handed_) return {dropped_, 0, other_hosts_.get()};
    return {dropped_, arrived_ > dropped_ + taken ? arrived_ - dropped_ - taken : 0, other_hosts_.get()};
  }
  [[nodiscard]] const Intake::Counts& intake() const noexcept { return intake_.counts(); }

 private:
  RxStatus receive(Batch& batch) noexcept {
    while (open_frame()) {
      const Intake::Taken taken = intake_.take(batch, frame_);
      if (taken == Intake::Taken::full) return RxStatus::more;
      pop(taken == Intake::Taken::lent);
    }
    return ring_.starved() ? RxStatus::starved : RxStatus::idle;
  }

  /// Makes `frame_` the next frame, unless it is one that has not been taken completely. False: there is none.
  bool open_frame() noexcept {
    if (is_open_) return true;
    while (tpacket3_hdr* const header = rest_.asked() ? nullptr : next_frame()) {
      if (!is_ignored(*header)) {
        frame_ = frame_of(*header);
        is_open_ = true;
        return true;
      }
      other_hosts_.add(1);
      pop(false);
    }
    return false;
  }
  void pop(bool lent) noexcept {
    is_open_ = false;
    ring_.pop(lent);
    popped_.add(1);
  }

  /// With `changing_` held.
  void count_arrivals() noexcept {
    if (is_handed_) return;
    const ReceiveRing::Arrivals arrivals = ring_.arrivals();
    arrived_ += arrivals.frames;
    dropped_ += arrivals.dropped;
  }

  tpacket3_hdr* next_frame() noexcept {
    tpacket3_hdr* const header = ring_.front();
    if (header != nullptr || next_.load(std::memory_order_relaxed) == nullptr || ring_.lent() > 0) return header;
    const std::lock_guard lock(changing_);
    count_arrivals();
    const std::unique_ptr<ReceiveRing> next(next_.exchange(nullptr));
    ring_ = std::move(*next);
    region_.reset();  // the chain's devices do not know the new memory
    return ring_.front();
  }

  [[nodiscard]] bool is_ignored(const tpacket3_hdr& header) const noexcept {
    if (promiscuous_) return false;
    const auto& address = *reinterpret_cast<const sockaddr_ll*>(reinterpret_cast<const std::uint8_t*>(&header) +
                                                                TPACKET_ALIGN(sizeof(tpacket3_hdr)));
    return address.sll_pkttype == PACKET_OTHERHOST;
  }

  /// The frame as it was on the wire, but for what is left for the NIC. Moves its MAC addresses if it has a tag.
  [[nodiscard]] ReceivedFrame frame_of(tpacket3_hdr& header) const noexcept {
    constexpr std::size_t kMacs = 12;
    std::uint8_t* start = reinterpret_cast<std::uint8_t*>(&header) + header.tp_mac;
    std::size_t length = header.tp_snaplen;
    ReceivedFrame frame;
    std::memcpy(&frame.offload, start - sizeof frame.offload, sizeof frame.offload);
    frame.wire_length = header.tp_len;
    if ((header.tp_status & TP_STATUS_VLAN_VALID) != 0 && length >= kMacs) {
      start -= sizeof(VlanTag);
      std::memmove(start, start + sizeof(VlanTag), kMacs);
      auto& type = *reinterpret_cast<Be16*>(start + kMacs);
      type.set((header.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? header.hv1.tp_vlan_tpid : ETH_P_8021Q);
      reinterpret_cast<Be16*>(start + kMacs + 2)->set(static_cast<std::uint16_t>(header.hv1.tp_vlan_tci));
      length += sizeof(VlanTag);
      frame.wire_length += sizeof(VlanTag);
      frame.offload_shift = sizeof(VlanTag);
    }
    frame.bytes = {start, length};
    frame.timestamp_ns = std::uint64_t{header.tp_sec} * kNsPerSecond + header.tp_nsec;
    if (region_) {
      frame.can_be_lent = true;
      frame.region = *region_;
      frame.offset = static_cast<std::uint32_t>(region_offset_ + static_cast<std::size_t>(start - ring_.memory()));
    }
    return frame;
  }

  const unsigned worker_;
  const PortIndex port_;
  Exchange* const exchange_;
  const bool promiscuous_;
  Intake intake_;
  ReceiveRing ring_;
  std::optional<PacketMemory::Region> region_;  // of the ring's memory; empty: frames are copied
  std::size_t region_offset_;
  ReceivedFrame frame_;   // that is being taken, if
  bool is_open_ = false;  // it has not been taken completely
  RealtimeOffset offset_;
  Counter other_hosts_, popped_;
  std::atomic<ReceiveRing*> next_{nullptr};
  Rest rest_;
  std::mutex changing_;        // guards the change of the ring, and the next members
  std::uint64_t arrived_ = 0;  // frames, at this ring and former ones
  std::uint64_t dropped_ = 0;
  bool is_handed_ = false;  // to another process
};

class PacketTx final : public TxQueue {
 public:
  PacketTx(SendRing ring, const InterfaceWatch& watch) : ring_(std::move(ring)), watch_(watch) {}
  ~PacketTx() override { delete next_.load(); }

  std::size_t send(std::span<const PacketView> packets) noexcept override {
    take_next();
    std::size_t accepted = 0;
    for (const PacketView& view : packets) {
      if (!put(view)) {
        view.packet->verdict = Verdict::drop(0);
        continue;
      }
      ++accepted;
      accepted_bytes_ += view.length();
    }
    accepted_ += accepted;
    return accepted;
  }

  Lost flush() noexcept override {
    offer();
    // Frames of earlier batches have been counted as sent.
    Lost lost = std::exchange(lost_, {});
    if (lost.packets > accepted_ - flushed_) {
      refusals_.after_flush.add(lost.packets - (accepted_ - flushed_));
      lost = {accepted_ - flushed_, accepted_bytes_};
    }
    flushed_ = accepted_;
    accepted_bytes_ = 0;
    return lost;
  }

  /// Frames were copied, but those that the kernel has not taken are to be offered again.
  Departures departures() noexcept override {
    if (ring_.pending() > 0) offer();
    return {accepted_, accepted_ - ring_.pending()};
  }

  /// From another thread: the ring of the interface that has come back.
  void change_to(std::unique_ptr<SendRing> ring) noexcept { delete next_.exchange(ring.release()); }
  /// From another thread: the run ends, and frames that the kernel does not take are given up.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }

  struct Refusals {
    Counter down, too_long, ring_full;
    Counter after_flush;  // of these, frames that had been counted as sent
  };
  [[nodiscard]] const Refusals& refusals() const noexcept { return refusals_; }

 private:
  bool put(const PacketView& view) noexcept {
    if (!watch_.can_send()) {
      refusals_.down.add(1);
      return false;
    }
    const std::span<const std::uint8_t> frame(view.frame, view.length());
    if (!fits_link(view, watch_.mtu()) || frame.size() > ring_.longest_frame()) {
      refusals_.too_long.add(1);
      return false;
    }
    if (ring_.put(frame)) return true;
    offer();
    if (ring_.put(frame)) return true;
    refusals_.ring_full.add(1);
    return false;
  }

  void offer() noexcept {
    SendRing::Sent sent;
    if (ring_.pending() > 0 && !watch_.can_send()) {
      sent = ring_.discard(SendRing::Refused::down);
    } else {
      sent = ring_.send();
      constexpr unsigned kMostTries = 1000;
      if (ring_.pending() > 0 && stopping_.load(std::memory_order_relaxed) && ++tries_ > kMostTries)
        sent = ring_.discard(SendRing::Refused::down);
    }
    lost_.packets += sent.lost;
    lost_.bytes += sent.lost_bytes;
    if (sent.lost > 0)
      (sent.reason == SendRing::Refused::too_long ? refusals_.too_long : refusals_.down).add(sent.lost);
  }

  void take_next() noexcept {
    if (next_.load(std::memory_order_relaxed) == nullptr) return;
    const std::unique_ptr<SendRing> next(next_.exchange(nullptr));
    const SendRing::Sent sent = ring_.discard(SendRing::Refused::down);
    lost_.packets += sent.lost;
    lost_.bytes += sent.lost_bytes;
    refusals_.down.add(sent.lost);
    ring_ = std::move(*next);
  }

  SendRing ring_;
  const InterfaceWatch& watch_;
  std::uint64_t accepted_ = 0, flushed_ = 0;  // frames; up to the last flush
  std::uint64_t accepted_bytes_ = 0;          // since then
  unsigned tries_ = 0;
  Lost lost_;
  Refusals refusals_;
  std::atomic<SendRing*> next_{nullptr};
  std::atomic<bool> stopping_{false};
};

}  // namespace penstock::port
