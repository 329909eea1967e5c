// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One worker's queue of the port `generator`. To make a packet, it copies a prebuilt frame, writes the flow's addresses
// and ports, and folds two checksums. Owns its flows; the port owns the frames.
//
// With `frames: kept`, the queue lends frames from memory where they were written once, and only writes their headers
// again. So the worker spends its time on the chain, as if a NIC had written the frames.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "port/frame_pool.h"
#include "port/generator.h"
#include "port/generator_flows.h"
#include "port/generator_frames.h"

namespace penstock::port {

struct Pace {
  bool limited = false;
  bool by_bits = false;
  double units_per_ns = 0;  // bits or packets; the worker's part of the port's rate
};

/// Memory with prebuilt frames that a queue lends. The port owns it.
struct LentFrames {
  std::uint8_t* memory = nullptr;  // of the queue's slots
  std::uint32_t offset = 0;        // of `memory` in its region
  PacketMemory::Region region = 0;
  std::uint32_t stride = 0;  // bytes per slot
  std::uint32_t head = 0;    // from the start of a slot to its frame
  std::uint32_t chunks = 0;
  std::uint32_t chunk_slots = 0;  // a multiple of the number of turns, so that the mix of frames is exact
  bool payload_changes = false;   // whole frames must be written each time
};

/// `packets` is the total number of packets that the queue makes.
class GeneratorRx final : public RxQueue {
 public:
  GeneratorRx(const FrameSet& frames, std::vector<Flow> flows, std::uint64_t packets, Pace pace, NanosecondClock clock,
              PortIndex port, bool ipv6, bool tcp, const std::optional<LentFrames>& lent)
      : frames_(&frames),
        flows_(std::move(flows)),
        left_(packets),
        packets_(packets),
        pace_(pace),
        clock_(clock),
        port_(port),
        ipv6_(ipv6),
        tcp_(tcp),
        lent_(lent),
        pool_(lent ? lent->chunks : 1, lent ? lent->chunk_slots : 1) {
    // Each pass over the flows shifts their turns, so that each flow gets every turn after enough passes.
    while (std::gcd(flows_.size() + skip_, frames_->turns.size()) != 1) ++skip_;
    for (std::uint32_t slot = 0; lent_ && slot < pool_.slots(); ++slot) {
      const std::vector<std::uint8_t>& frame = template_of(slot).bytes;
      std::memcpy(lent_->memory + std::size_t{slot} * lent_->stride + lent_->head, frame.data(), frame.size());
    }
  }

  RxStatus poll(Batch& batch) noexcept override {
    if (flows_.empty() || oversized_ != 0) return RxStatus::end;
    const std::uint64_t now = clock_();
    if (start_ns_ == 0) {
      start_ns_ = now;
      to_clock_ = Batch::Clock::now().time_since_epoch() - std::chrono::nanoseconds{static_cast<std::int64_t>(now)};
    }
    const RxStatus status = ipv6_ ? (tcp_ ? fill<32, true>(batch, now) : fill<32, false>(batch, now))
                                  : (tcp_ ? fill<8, true>(batch, now) : fill<8, false>(batch, now));
    made_.store(packets_ - left_, std::memory_order_relaxed);
    if (pace_.limited) note_lateness(now);
    return status;
  }

  void take_back(std::size_t frames) noexcept override { pool_.take_back(frames); }

  /// A packet's arrival time is the time at which it was due, even if it was made later.
  std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept override {
    return pace_.limited ? std::optional(to_clock_) : std::nullopt;
  }

  Discarded discard(std::size_t most) noexcept override {
    Discarded discarded;
    if (flows_.empty() || oversized_ != 0) return {RxStatus::end};
    const std::uint64_t now = clock_();
    while (left_ != 0 && discarded.packets < most && (!pace_.limited || next_due_ns() <= now)) {
      const FrameTemplate& frame = frames_->templates[frames_->turns[turn_]];
      const auto length = static_cast<std::uint32_t>(frame.bytes.size());
      flows_[flow_].tcp_sequence += frame.payload_bytes;
      ++discarded.packets;
      discarded.bytes += length;
      pass(length);
    }
    discarded.status = left_ == 0 ? RxStatus::end : discarded.packets == most ? RxStatus::more : RxStatus::idle;
    made_.store(packets_ - left_, std::memory_order_relaxed);
    if (pace_.limited) note_lateness(now);
    return discarded;
  }

  /// Thread-safe.
  [[nodiscard]] std::uint64_t made() const noexcept { return made_.load(std::memory_order_relaxed); }
  /// How many packets were due at the last poll but not made, and how late the next one was at that time.
  [[nodiscard]] std::uint64_t missing() const noexcept { return missing_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::chrono::nanoseconds behind() const noexcept {
    return std::chrono::nanoseconds{behind_ns_.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] std::size_t oversized() const noexcept { return oversized_; }

 private:
  template <std::size_t AddressBytes, bool Tcp>
  RxStatus fill(Batch& batch, std::uint64_t now) noexcept {
    while (left_ != 0) {
      std::uint64_t timestamp = now;
      if (pace_.limited) {
        timestamp = next_due_ns();
        if (timestamp > now) return RxStatus::idle;
      }
      if (lent_ && !pool_.available()) return RxStatus::starved;
      const std::uint32_t slot = lent_ ? pool_.next() : 0;
      const FrameTemplate& frame = lent_ ? template_of(slot) : frames_->templates[frames_->turns[turn_]];
      const auto length = static_cast<std::uint32_t>(frame.bytes.size());
      const Arrival arrival{timestamp, length, port_, LinkType::ethernet};
      std::uint8_t* const to = lent_ ? lend(batch, slot, length, arrival) : batch.append_unwritten(length, arrival);
      if (to == nullptr) {
        if (!batch.empty()) return RxStatus::more;
        oversized_ = length;
        return RxStatus::end;
      }
      if (lent_ && !lent_->payload_changes) {
        copy_headers<AddressBytes, Tcp>(to, frame.bytes.data());
      } else {
        std::memcpy(to, frame.bytes.data(), length);
      }
      put_flow<AddressBytes, Tcp>(to, frame, flows_[flow_]);
      pass(length);
    }
    return RxStatus::end;
  }

  /// Each slot always has the same frame.
  [[nodiscard]] const FrameTemplate& template_of(std::uint32_t slot) const noexcept {
    const std::size_t turns = frames_->turns.size();
    return frames_->templates[frames_->turns[turns == 1 ? 0 : slot % turns]];
  }

  /// Lends the frame of the slot. Functions may have changed its headers, so they must be written again. Null if it
  /// does not fit.
  std::uint8_t* lend(Batch& batch, std::uint32_t slot, std::uint32_t length, const Arrival& arrival) noexcept {
    const std::uint32_t at = slot * lent_->stride + lent_->head;
    if (!batch.lend(lent_->region, lent_->offset + at, length, arrival)) return nullptr;
    pool_.lend();
    // Frames are too far apart for the hardware to prefetch them. Beyond the last slot, this does nothing.
    constexpr std::size_t kAhead = 8;
    std::uint8_t* const frame = lent_->memory + at;
    const std::uint8_t* const later = frame + kAhead * lent_->stride;
    __builtin_prefetch(later, 1);
    __builtin_prefetch(later + frames_->payload_at - 1, 1);
    return frame;
  }

  /// Copies everything before the payload.
  template <std::size_t AddressBytes, bool Tcp>
  void copy_headers(std::uint8_t* to, const std::uint8_t* from) const noexcept {
    constexpr std::size_t kUntagged = sizeof(EthernetHeader) +
                                      (AddressBytes == 8 ? sizeof(Ipv4Header) : sizeof(Ipv6Header)) +
                                      (Tcp ? sizeof(TcpHeader) : sizeof(UdpHeader));
    std::memcpy(to, from, kUntagged);  // constant length: compiles to a few moves, not a call
    if (frames_->payload_at != kUntagged)
      std::memcpy(to + kUntagged, from + kUntagged, frames_->payload_at - kUntagged);
  }

  /// Advances to the next packet, after one of `length` bytes.
  void pass(std::uint32_t length) noexcept {
    units_ += pace_.by_bits ? std::uint64_t{8} * (length + kFrameCheckBytes) : 1;
    --left_;
    take_turns();
  }

  template <std::size_t AddressBytes, bool Tcp>
  void put_flow(std::uint8_t* to, const FrameTemplate& frame, Flow& flow) const noexcept {
    std::memcpy(to + frames_->tuple_at, flow.tuple.data(), AddressBytes + 4);
    if constexpr (AddressBytes == 8) {
      auto& ip = *reinterpret_cast<Ipv4Header*>(to + frames_->network_at);
      ip.checksum.set(checksum_finish(frame.network_sum + flow.address_sum));
    }
    std::uint32_t sum = frame.transport_sum + flow.address_sum + flow.port_sum;
    if constexpr (Tcp) {
      auto& tcp = *reinterpret_cast<TcpHeader*>(to + frames_->transport_at);
      const std::uint32_t sequence = flow.tcp_sequence;
      tcp.sequence.set(sequence);
      flow.tcp_sequence = sequence + frame.payload_bytes;
      sum += (sequence >> 16) + (sequence & 0xffff);
      tcp.checksum.set(checksum_finish(sum));
    } else {
      auto& udp = *reinterpret_cast<UdpHeader*>(to + frames_->transport_at);
      const std::uint16_t checksum = checksum_finish(sum);
      udp.checksum.set(checksum != 0 ? checksum : 0xffff);  // 0 would mean "no checksum" (RFC 768)
    }
  }

  [[nodiscard]] std::uint64_t next_due_ns() const noexcept {
    return start_ns_ + static_cast<std::uint64_t>(static_cast<double>(units_) / pace_.units_per_ns);
  }

  void note_lateness(std::uint64_t now) noexcept {
    const std::uint64_t due = next_due_ns();
    const std::uint64_t late = due < now ? now - due : 0;
    double packets = static_cast<double>(late) * pace_.units_per_ns;
    // Sizes differ, so assume the mean size so far.
    if (pace_.by_bits && units_ != 0) packets *= static_cast<double>(packets_ - left_) / static_cast<double>(units_);
    missing_.store(static_cast<std::uint64_t>(std::min(packets, static_cast<double>(left_))),
                   std::memory_order_relaxed);
    behind_ns_.store(static_cast<std::int64_t>(late), std::memory_order_relaxed);
  }

  void take_turns() noexcept {
    const std::size_t turns = frames_->turns.size();
    if (++turn_ == turns) turn_ = 0;
    if (++flow_ != flows_.size()) return;
    flow_ = 0;
    turn_ = (turn_ + skip_) % turns;
  }

  const FrameSet* frames_;
  std::vector<Flow> flows_;
  std::size_t flow_ = 0;
  std::size_t turn_ = 0;
  std::size_t skip_ = 0;
  std::uint64_t left_;
  const std::uint64_t packets_;
  const Pace pace_;
  std::uint64_t units_ = 0;  // bits or packets made so far
  std::uint64_t start_ns_ = 0;
  std::chrono::nanoseconds to_clock_{};
  NanosecondClock clock_;
  PortIndex port_;
  bool ipv6_, tcp_;
  std::optional<LentFrames> lent_;
  FramePool pool_;  // only if frames are lent
  std::size_t oversized_ = 0;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> missing_{0};
  std::atomic<std::int64_t> behind_ns_{0};
};

}  // namespace penstock::port
