// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A batch: packets that travel together, the unit of transfer, launch and accounting. Copied frames lie one after
// another in `bytes`, each with the head- and tailroom that the chain's NFs need. Each starts at a multiple of
// kFrameAlignment, so that kernels can copy it in wide words. The packet ring owns the memory (pinned if a GPU is
// used); a batch borrows it. Lent frames stay where their port has them (packet/packet_memory.h), at any alignment. A
// batch may have frames of both kinds.

#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/host_device.h"
#include "packet/packet.h"
#include "packet/packet_memory.h"

namespace penstock {

/// Bytes that NFs may add before and after a frame in place.
struct FrameRoom {
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  friend constexpr bool operator==(const FrameRoom&, const FrameRoom&) = default;
};

inline constexpr std::uint32_t kFrameAlignment = 16;

/// Bytes that a frame of `length` bytes occupies, padded so that the next frame is aligned.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::size_t aligned_frame(std::size_t length) noexcept {
  return (length + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

/// What a port knows about a packet on arrival.
struct Arrival {
  std::uint64_t timestamp_ns = 0;
  std::uint32_t wire_length = 0;
  PortIndex in_port = 0;
  LinkType link_type = LinkType::ethernet;
  std::uint32_t number = 0;  // PacketDescriptor::number
};

class Batch {
 public:
  using Clock = std::chrono::steady_clock;

  Batch() = default;
  /// `bytes` must begin at a multiple of kFrameAlignment. `lent`: the regions of lent frames; null: there are none.
  /// `most_lent_bytes`: a longer lent frame takes no more room in the batch than one of this length.
  Batch(std::span<std::uint8_t> bytes, std::span<PacketDescriptor> descriptors, FrameRoom room,
        const PacketMemory* lent = nullptr, std::uint32_t most_lent_bytes = kNoLimit) noexcept
      : bytes_(bytes), descriptors_(descriptors), room_(room), lent_(lent), most_lent_bytes_(most_lent_bytes) {}
  static constexpr std::uint32_t kNoLimit = 0xffffffff;

  /// Copies the frame in. Returns false, and changes nothing, if it does not fit. Sets only the descriptor fields that
  /// `Arrival` provides; the stack fills in layout and hash.
  bool append(std::span<const std::uint8_t> frame, const Arrival& arrival) noexcept {
    std::uint8_t* const to = append_unwritten(frame.size(), arrival);
    if (to != nullptr && !frame.empty()) std::memcpy(to, frame.data(), frame.size());
    return to != nullptr;
  }
  /// Like `append`, but returns uninitialized memory of `length` bytes for the caller to write the frame to. Null if it
  /// does not fit.
  std::uint8_t* append_unwritten(std::size_t length, const Arrival& arrival) noexcept {
    const auto offset = static_cast<std::uint32_t>(used_ + aligned_frame(room_.head));
    if (!add(PacketMemory::kBatch, offset, length, length, arrival)) return nullptr;
    return bytes_.data() + offset;
  }
  /// Adds a frame without copying it: the one at `offset` in a region that the caller has added to the packet memory.
  /// The frame must have the chain's room before and after it, and is the batch's until it is empty again: functions
  /// may change its bytes, and use its room. Returns false, and changes nothing, if it does not fit.
  bool lend(PacketMemory::Region region, std::uint32_t offset, std::size_t length, const Arrival& arrival) noexcept {
    if (!add(region, offset, length, std::min<std::size_t>(length, most_lent_bytes_), arrival)) return false;
    ++lent_count_;
    return true;
  }
  /// Fills an empty batch with packets whose descriptors are already in its memory, for a batch of another process that
  /// is mapped here. The caller has checked them: frames end in their region, or in the first `used_bytes`, and `lent`
  /// of them are lent.
  void adopt(std::size_t packets, std::size_t used_bytes, std::size_t lent = 0) noexcept {
    count_ = packets;
    used_ = used_bytes;
    lent_count_ = lent;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// How many of the frames are lent.
  [[nodiscard]] std::size_t lent() const noexcept { return lent_count_; }
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::size_t capacity_packets() const noexcept { return descriptors_.size(); }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }  // includes head- and tailroom and padding
  [[nodiscard]] std::uint64_t frame_bytes() const noexcept { return frame_bytes_; }  // lengths on arrival

  [[nodiscard]] std::span<PacketDescriptor> packets() noexcept { return descriptors_.first(count_); }
  [[nodiscard]] std::span<const PacketDescriptor> packets() const noexcept { return descriptors_.first(count_); }
  /// Free descriptors, with whatever the previous batch in this memory left in them.
  [[nodiscard]] std::span<const PacketDescriptor> unused_packets() const noexcept {
    return descriptors_.subspan(count_);
  }
  /// All copied frames with their head- and tailroom; descriptor offsets count from its start.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return bytes_.first(used_); }
  /// Start of the memory, also for an empty batch. Later batches reuse the same memory, so it identifies them.
  [[nodiscard]] const std::uint8_t* memory() const noexcept { return bytes_.data(); }
  [[nodiscard]] PacketView view(std::size_t i) noexcept { return {frame(descriptors_[i]), &descriptors_[i]}; }
  /// Where the frame of one of the packets is. Its bytes do not belong to the batch object, so they may be changed.
  [[nodiscard]] std::uint8_t* frame(const PacketDescriptor& packet) const noexcept {
    return memory_of(packet.region) + packet.offset;
  }
  /// The start of the memory in which packets with this region are.
  [[nodiscard]] std::uint8_t* memory_of(PacketMemory::Region region) const noexcept {
    return region == PacketMemory::kBatch ? bytes_.data() : lent_->base(region);
  }
  /// Null if no frame of this batch is ever lent.
  [[nodiscard]] const PacketMemory* lent_memory() const noexcept { return lent_; }

  /// Empties the batch for reuse. The next packet's sequence is `first_sequence`.
  void reset(std::uint32_t first_sequence) noexcept {
    count_ = 0;
    used_ = 0;
    frame_bytes_ = 0;
    lent_count_ = 0;
    mark_count_ = 0;
    next_sequence_ = first_sequence;
  }
  [[nodiscard]] std::uint32_t next_sequence() const noexcept { return next_sequence_; }

  struct ArrivalMark {
    std::size_t end = 0;     // this mark covers the packets from the previous mark's end up to here ...
    Clock::time_point time;  // ... polled at this time, or later if there was no room for another mark
    /// Add this to the packets' timestamps to get their arrival times on `Clock`; empty if unknown.
    std::optional<std::chrono::nanoseconds> to_clock{};
  };
  /// Records that the packets appended since the last call were polled at `now`, for the latency histogram. There is
  /// room for kMostMarks polls; packets of later polls share the last mark, so latency is never understated.
  /// Consecutive polls of a source that timestamps its packets share a mark.
  void mark_arrivals(Clock::time_point now, std::optional<std::chrono::nanoseconds> to_clock = std::nullopt) noexcept {
    if (marked() == count_) return;
    const bool shared = mark_count_ > 0 && to_clock && marks_[mark_count_ - 1].to_clock == to_clock;
    if (shared || mark_count_ == kMostMarks) {
      ArrivalMark& last = marks_[mark_count_ - 1];
      last.end = count_;
      if (!shared) last.to_clock.reset();
    } else {
      marks_[mark_count_++] = {count_, now, to_clock};
    }
  }
  [[nodiscard]] std::span<const ArrivalMark> arrivals() const noexcept { return {marks_.data(), mark_count_}; }
  /// When the first packet was polled. Requires a non-empty, marked batch.
  [[nodiscard]] Clock::time_point opened_at() const noexcept { return marks_[0].time; }

 private:
  static constexpr std::size_t kMostMarks = 48;
  static constexpr std::size_t kFetchAhead = 8;

  /// `counted`: the length for which it takes room.
  bool add(PacketMemory::Region region, std::uint32_t offset, std::size_t length, std::size_t counted,
           const Arrival& arrival) noexcept {
    const std::size_t need = aligned_frame(room_.head) + aligned_frame(counted + room_.tail);
    if (count_ == descriptors_.size() || need > bytes_.size() - used_) return false;
    PacketDescriptor& packet = descriptors_[count_];
    __builtin_prefetch(&packet + kFetchAhead, 1);  // it has left the near caches since it was last used
    packet.timestamp_ns = arrival.timestamp_ns;
    packet.offset = offset;
    packet.length = static_cast<std::uint32_t>(length);
    packet.wire_length = arrival.wire_length;
    packet.mark = 0;
    packet.verdict = Verdict::forward();
    packet.in_port = arrival.in_port;
    packet.link_type = arrival.link_type;
    packet.region = region;
    packet.number = arrival.number;
    packet.sequence = next_sequence_++;
    used_ += need;
    frame_bytes_ += length;
    ++count_;
    return true;
  }
  [[nodiscard]] std::size_t marked() const noexcept { return mark_count_ == 0 ? 0 : marks_[mark_count_ - 1].end; }

  std::span<std::uint8_t> bytes_;
  std::span<PacketDescriptor> descriptors_;
  FrameRoom room_;
  const PacketMemory* lent_ = nullptr;
  std::uint32_t most_lent_bytes_ = kNoLimit;
  std::size_t count_ = 0;
  std::size_t lent_count_ = 0;
  std::size_t used_ = 0;
  std::uint64_t frame_bytes_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::size_t mark_count_ = 0;
  std::array<ArrivalMark, kMostMarks> marks_{};
};

}  // namespace penstock
