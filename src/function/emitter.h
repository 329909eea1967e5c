// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets that functions make: fragments, ICMP errors. They pass no further function and leave right behind the packet
// that caused them, or in its place. And larger frames for packets that outgrow their own, such as reassembled
// datagrams: those packets go on through the chain. `Emissions` owns both for one batch, in memory that is taken when
// it is made and bounds them; an `Emitter`, one for each worker, is what stages write them by.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "function/arrivals.h"
#include "packet/batch.h"
#include "packet/packet.h"

namespace penstock::function {

class Emissions {
 public:
  /// For a chain whose functions make no packets.
  Emissions() = default;
  /// For batches with at most this many bytes and packets. Has room for twice the bytes in four times the packets,
  /// enough to cut a whole batch into small fragments.
  Emissions(std::size_t batch_bytes, std::size_t batch_packets)
      : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(2 * batch_bytes)), descriptors_(4 * batch_packets) {
    made_ = Batch({bytes_.get(), 2 * batch_bytes / kFrameAlignment * kFrameAlignment}, descriptors_, {});
    entries_.reserve(descriptors_.size());
  }

  /// From now on there is also memory for larger frames, each with `room` around it: for twice the bytes of a batch,
  /// and at least for a few frames of the largest datagrams. Pages take no memory until they are used.
  void make_room_for_frames(std::size_t batch_bytes, FrameRoom room) {
    constexpr std::size_t kLeast = std::size_t{1} << 20;
    frame_bytes_ = std::max(kLeast, 2 * batch_bytes) / kFrameAlignment * kFrameAlignment;
    frames_ = std::make_unique_for_overwrite<std::uint8_t[]>(frame_bytes_);
    room_ = room;
  }

  /// Forgets all that was made, and begins anew with packets that this batch's cause.
  void begin(const Batch& batch) noexcept {
    frames_used_ = 0;
    causes_ = batch.packets();
    made_.reset(0);
    entries_.clear();
    next_ = 0;
    arranged_ = true;
  }

  /// Null if there is no room.
  std::uint8_t* append_unwritten(std::size_t length, const PacketDescriptor& cause, PortIndex out) noexcept {
    const auto bytes = static_cast<std::uint32_t>(length);
    std::uint8_t* const frame =
        made_.append_unwritten(length, {cause.timestamp_ns, bytes, cause.in_port, cause.link_type});
    if (frame == nullptr) return nullptr;
    PacketDescriptor& made = made_.packets().back();
    made.verdict = Verdict::forward(out);
    made.sequence = cause.sequence;
    made.layout = {};
    entries_.push_back({index_of(cause), static_cast<std::uint32_t>(entries_.size())});
    arranged_ = false;
    return frame;
  }

  /// Moves the packet to a frame of this length, which is not written. False, with nothing changed, if there is no
  /// room.
  [[nodiscard]] bool replace_frame(PacketView& packet, std::size_t length) noexcept {
    const std::size_t need = aligned_frame(room_.head) + aligned_frame(length + room_.tail);
    if (need > frame_bytes_ - frames_used_) return false;
    packet.packet->offset = static_cast<std::uint32_t>(frames_used_ + aligned_frame(room_.head));
    packet.packet->length = packet.packet->wire_length = static_cast<std::uint32_t>(length);
    packet.frame = frames_.get() + packet.packet->offset;
    frames_used_ += need;
    return true;
  }
  /// Bytes of the memory for larger frames that are in use.
  [[nodiscard]] std::size_t frames_used() const noexcept { return frames_used_; }
  /// Whether the frame lies in this memory, after the first `from` bytes.
  [[nodiscard]] bool has_frame(const std::uint8_t* frame, std::size_t from = 0) const noexcept {
    const std::less<const std::uint8_t*> lies_before;
    return frames_ != nullptr && !lies_before(frame, frames_.get() + from) &&
           lies_before(frame, frames_.get() + frames_used_);
  }
  [[nodiscard]] std::uint32_t offset_of(const std::uint8_t* frame) const noexcept {
    return static_cast<std::uint32_t>(frame - frames_.get());
  }

  // For the outlet.

  [[nodiscard]] bool none_left() const noexcept { return next_ == entries_.size(); }
  /// Sorts the remaining packets by their causes.
  void arrange() noexcept {
    if (arranged_) return;
    std::sort(entries_.begin() + static_cast<std::ptrdiff_t>(next_), entries_.end(),
              [](Entry a, Entry b) { return std::tie(a.cause, a.number) < std::tie(b.cause, b.number); });
    arranged_ = true;
  }
  /// The index in the batch of the packet that caused the next one.
  [[nodiscard]] std::uint32_t next_cause() const noexcept { return entries_[next_].cause; }
  [[nodiscard]] PacketView take() noexcept { return made_.view(entries_[next_++].number); }
  [[nodiscard]] std::uint32_t index_of(const PacketDescriptor& cause) const noexcept {
    return static_cast<std::uint32_t>(&cause - causes_.data());
  }
  [[nodiscard]] bool made(PacketView packet) const noexcept {
    const std::less<const PacketDescriptor*> lies_before;
    return !lies_before(packet.packet, descriptors_.data()) &&
           lies_before(packet.packet, descriptors_.data() + descriptors_.size());
  }

 private:
  struct Entry {
    std::uint32_t cause;
    std::uint32_t number;  // in the order in which they were made
  };
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::vector<PacketDescriptor> descriptors_;
  Batch made_;
  std::span<const PacketDescriptor> causes_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;  // the entries before it have left
  bool arranged_ = true;
  std::unique_ptr<std::uint8_t[]> frames_;  // larger ones; null if no function needs them
  std::size_t frame_bytes_ = 0;
  std::size_t frames_used_ = 0;
  FrameRoom room_;
};

class Emitter {
 public:
  /// Makes a packet from `frame`, which has the link type of its cause. `cause` is one of the packets that the stage
  /// processes. The new packet leaves through the port `out`, whether or not its cause leaves. With kNoPort, it takes
  /// the way of its cause, and does not leave if that one does not. False if there is no room left for this batch; a
  /// stage that depends on the packet then drops the cause, with a drop reason for this.
  [[nodiscard]] bool emit(std::span<const std::uint8_t> frame, PacketView cause, PortIndex out = kNoPort) noexcept {
    std::uint8_t* const to = emit_unwritten(frame.size(), cause, out);
    if (to != nullptr && !frame.empty()) std::memcpy(to, frame.data(), frame.size());
    return to != nullptr;
  }
  /// Like `emit`, but the caller writes the frame. Null if there is no room.
  [[nodiscard]] std::uint8_t* emit_unwritten(std::size_t length, PacketView cause, PortIndex out = kNoPort) noexcept {
    return into_ == nullptr ? nullptr : into_->append_unwritten(length, *cause.packet, out);
  }

  /// Moves `packet`, one of those that the stage is given, to a larger frame: the stage writes the frame, which has
  /// room around it for all that the chain's functions add. Only where the traits say `replaces_frames`. False, with
  /// nothing changed, if there is no room in this batch any more.
  [[nodiscard]] bool replace_frame(PacketView& packet, std::size_t length) noexcept {
    return into_ != nullptr && into_->replace_frame(packet, length);
  }

  /// The packet as it arrived, in memory that is valid until the next call; empty if that is not known. Only where the
  /// traits say `asks_for_arrivals`.
  [[nodiscard]] std::optional<PacketView> as_it_arrived(PacketView packet) noexcept {
    if (are_unchanged_) return packet;
    return arrivals_ == nullptr ? std::nullopt : arrivals_->of(packet);
  }
  /// The link header with which a packet of an Ethernet port arrived. Null if that is not known. Only where the traits
  /// say `asks_for_arrivals`.
  [[nodiscard]] const EthernetHeader* link_header_at_arrival(PacketView packet) const noexcept {
    if (are_unchanged_) return &packet.ethernet();
    return arrivals_ == nullptr ? nullptr : arrivals_->link_header(packet);
  }

  /// For the executor: where packets are known as they arrived. Borrows it.
  void know_arrivals(Arrivals* arrivals) noexcept { arrivals_ = arrivals; }
  /// For the executor: whether the packets that come next are as they arrived, although functions have changed them on
  /// a device.
  void set_unchanged(bool are_unchanged) noexcept { are_unchanged_ = are_unchanged; }
  /// For the executor: what is made from here on belongs to this batch.
  void go_into(Emissions* emissions) noexcept { into_ = emissions; }
  [[nodiscard]] Emissions* goes_into() const noexcept { return into_; }

 private:
  Emissions* into_ = nullptr;
  Arrivals* arrivals_ = nullptr;
  bool are_unchanged_ = false;
};

}  // namespace penstock::function
