// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One worker's queue of the port `generator`. To make a packet, it copies a prebuilt frame, writes the flow's addresses
// and ports, and folds two checksums. Owns its flows; the port owns the frames.
//
// With `frames: kept`, a batch's memory gets the same frames in the same order each time it is filled, and only their
// headers are written again. So the worker spends its time on the chain, as if a NIC had written the frames.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "port/generator.h"
#include "port/generator_flows.h"
#include "port/generator_frames.h"

namespace penstock::port {

struct Pace {
  bool limited = false;
  bool by_bits = false;
  double units_per_ns = 0;  // bits or packets; the worker's part of the port's rate
};

/// The frames that an earlier fill left in a batch's memory.
class KeptFrames {
 public:
  /// Call it before the batch is filled or filled further.
  void resume(const Batch& batch) noexcept {
    if (batch.empty()) next_ = 0;
    if (batch.size() != next_) frames_.resize(std::min(next_, frames_.size()));  // other ports' packets follow
  }
  /// The template of the frame that is already at the next position; `fallback` if there is none.
  [[nodiscard]] std::uint32_t next_or(std::uint32_t fallback) const noexcept {
    return next_ < frames_.size() ? frames_[next_].index : fallback;
  }
  /// Prefetches the headers of a later frame, since frames are too far apart for the hardware prefetcher.
  void fetch_ahead(const std::uint8_t* memory) const noexcept {
    constexpr std::size_t kAhead = 8;
    if (next_ + kAhead >= frames_.size()) return;
    const std::uint8_t* const frame = memory + frames_[next_ + kAhead].offset;
    __builtin_prefetch(frame, 1);
    __builtin_prefetch(frame + kCacheLine - 1, 1);
  }
  /// Records that the next packet was placed at `offset`. Returns whether its frame is already there. Allocates if the
  /// batch was never this full before.
  bool put(std::size_t i, std::uint32_t offset, std::uint32_t index, bool same_port) {
    if (i != next_) return false;
    const bool there = next_ < frames_.size() && same_port && frames_[next_].offset == offset;
    if (!there) {
      frames_.resize(std::min(next_, frames_.size()));
      frames_.push_back({offset, index});
    }
    ++next_;
    return there;
  }

 private:
  static constexpr std::size_t kCacheLine = 64;
  struct Frame {
    std::uint32_t offset;
    std::uint32_t index;
  };
  std::vector<Frame> frames_;  // by position in the batch
  std::size_t next_ = 0;
};

/// `packets` is the total number of packets that the queue makes.
class GeneratorRx final : public RxQueue {
 public:
  GeneratorRx(const FrameSet& frames, std::vector<Flow> flows, std::uint64_t packets, Pace pace, NanosecondClock clock,
              PortIndex port, bool ipv6, bool tcp, bool keeps_frames)
      : frames_(&frames),
        flows_(std::move(flows)),
        left_(packets),
        packets_(packets),
        pace_(pace),
        clock_(clock),
        port_(port),
        ipv6_(ipv6),
        tcp_(tcp),
        keeps_frames_(keeps_frames) {
    // Each pass over the flows shifts their turns, so that each flow gets every turn after enough passes.
    while (std::gcd(flows_.size() + skip_, frames_->turns.size()) != 1) ++skip_;
  }

  /// Fills the memory with frames, so that later only their headers must be written. The clock does not start yet.
  void prepare(Batch& batch) noexcept override {
    if (!keeps_frames_ || flows_.empty()) return;
    KeptFrames& kept = kept_[batch.memory()];
    kept.resume(batch);
    for (;; ++prepared_) {
      const std::uint32_t index = frames_->turns[prepared_ % frames_->turns.size()];
      const std::vector<std::uint8_t>& frame = frames_->templates[index].bytes;
      const auto length = static_cast<std::uint32_t>(frame.size());
      const std::size_t i = batch.size();
      std::uint8_t* const to = batch.append_unwritten(length, {0, length, port_, LinkType::ethernet});
      if (to == nullptr) break;
      std::memcpy(to, frame.data(), length);
      kept.put(i, static_cast<std::uint32_t>(to - batch.memory()), index, false);
    }
    batch.reset(batch.packets().empty() ? batch.next_sequence() : batch.packets().front().sequence);
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
    KeptFrames* const kept = keeps_frames_ ? &kept_[batch.memory()] : nullptr;
    if (kept != nullptr) kept->resume(batch);
    while (left_ != 0) {
      const std::uint32_t index = kept != nullptr ? kept->next_or(frames_->turns[turn_]) : frames_->turns[turn_];
      const FrameTemplate& frame = frames_->templates[index];
      std::uint64_t timestamp = now;
      if (pace_.limited) {
        timestamp = next_due_ns();
        if (timestamp > now) return RxStatus::idle;
      }
      const auto length = static_cast<std::uint32_t>(frame.bytes.size());
      const std::size_t i = batch.size();
      const auto unused = batch.unused_packets();
      const bool same_port = kept != nullptr && !unused.empty() && unused.front().in_port == port_;
      std::uint8_t* const to = batch.append_unwritten(length, {timestamp, length, port_, LinkType::ethernet});
      if (to == nullptr) {
        if (!batch.empty()) return RxStatus::more;
        oversized_ = length;
        return RxStatus::end;
      }
      const auto offset = static_cast<std::uint32_t>(to - batch.memory());
      if (kept != nullptr && kept->put(i, offset, index, same_port)) {
        kept->fetch_ahead(batch.memory());
        copy_headers<AddressBytes, Tcp>(to, frame.bytes.data());
      } else {
        std::memcpy(to, frame.bytes.data(), length);
      }
      put_flow<AddressBytes, Tcp>(to, frame, flows_[flow_]);
      pass(length);
    }
    return RxStatus::end;
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
  std::size_t prepared_ = 0;  // frames made by `prepare`
  std::uint64_t left_;
  const std::uint64_t packets_;
  const Pace pace_;
  std::uint64_t units_ = 0;  // bits or packets made so far
  std::uint64_t start_ns_ = 0;
  std::chrono::nanoseconds to_clock_{};
  NanosecondClock clock_;
  PortIndex port_;
  bool ipv6_, tcp_;
  bool keeps_frames_;
  std::unordered_map<const std::uint8_t*, KeptFrames> kept_;  // by the batch's memory
  std::size_t oversized_ = 0;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> missing_{0};
  std::atomic<std::int64_t> behind_ns_{0};
};

}  // namespace penstock::port
