// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The traffic at one place of the chain, as the functions there see it: what the functions before it let pass, as they
// left it. One tracker for all functions that see the same packets; each attaches to it. One worker's own.
//
// A view has functions of two kinds. Those that decide by flows ask for a packet's flow (Attachment::flow_of); the
// packet is tracked when it is known to pass. Those that look into streams are given each packet when it is tracked
// (FrameSink).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "packet/packet.h"
#include "stack/frame_numbers.h"
#include "stack/tracker.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

class TrafficView;

/// A function that looks into packets and streams.
class FrameSink : public PacketSink {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;
  /// The packets that follow come of this frame. `index`: as it was given to Attachment::track; kNone: another worker
  /// carries the frame.
  virtual void begin_frame(PacketView frame, std::size_t index) noexcept = 0;
  /// All flows end. The packets that follow are the ends of their streams.
  virtual void begin_end() noexcept = 0;
};

/// What one function has of the view that it belongs to. The view owns it.
class Attachment {
 public:
  Attachment(TrafficView& view, unsigned slot, std::uint32_t seam_bytes) noexcept
      : view_(view), slot_(slot), seam_bytes_(seam_bytes) {}
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// This function's 64 bits of the flow: 0 when it begins.
  [[nodiscard]] std::uint64_t& slot(Flow& flow) const noexcept { return flow.slots[slot_]; }
  [[nodiscard]] unsigned slot_index() const noexcept { return slot_; }

  // For functions that decide by flows.

  /// The flow of one of the packets that the stage was given. A stage asks in the order of the packets, once it has
  /// decided about those before: a packet that is dropped counts for nothing. Valid until the next call.
  [[nodiscard]] PacketFlow flow_of(PacketView packet) noexcept;
  /// `ended` is called with each flow that ends and whose slot is not 0: to free what it stands for. Before the first
  /// packet.
  void when_flow_ends(std::function<void(Flow&)> ended) { ended_ = std::move(ended); }

  // For functions that look into streams. They see the same packets: the last of them has the tracker work, for all.

  /// Before the first packet. Borrowed.
  void look_with(FrameSink& sink) noexcept { sink_ = &sink; }
  [[nodiscard]] bool tracks() const noexcept;
  /// Where it tracks: fetches what tracking the first Tracker::kMostPrefetched of these frames will need. Changes
  /// nothing.
  void prefetch(std::span<const PacketView> frames) noexcept;
  /// Where it tracks: a frame that the stage was given, at this place among the others.
  void track(PacketView frame, std::size_t index) noexcept;
  /// The frame that was tracked last is dropped.
  void refuse_frame() noexcept;
  /// Where it tracks: a fragment that another worker carries.
  void observe(PacketView frame) noexcept;
  /// Where it tracks: ends what has timed out by this time of packets, where no packet has shown it yet.
  void expire(std::uint64_t now_ns) noexcept;
  /// Where it tracks: a frame that comes, and is not to be tracked.
  void pass_over(const PacketDescriptor& frame) noexcept {
    if (frame.number != 0) note_number(frame);
  }

  [[nodiscard]] const TrackerCounters& counters() const noexcept;

 private:
  friend class TrafficView;
  void note_number(const PacketDescriptor& frame) noexcept;

  TrafficView& view_;
  const unsigned slot_;
  const std::uint32_t seam_bytes_;
  FrameSink* sink_ = nullptr;
  std::function<void(Flow&)> ended_;
};

class TrafficView {
 public:
  /// For as many functions as there are `seams`: the seam_bytes of each, in the chain's order. `options`: what suits
  /// all of them. Each has a slot in the flows.
  TrafficView(const TrackerOptions& options, std::span<const std::uint32_t> seams);
  ~TrafficView();
  TrafficView(const TrafficView&) = delete;
  TrafficView& operator=(const TrafficView&) = delete;

  /// Of the n-th function, in the chain's order.
  [[nodiscard]] Attachment& attachment(unsigned function) noexcept { return *attachments_[function]; }
  /// The verdicts of all packets that were asked about are final.
  void settle() noexcept;
  /// The input's end: all flows end.
  void finish() noexcept;

 private:
  friend class Attachment;
  class Everyone;

  /// Gets what comes of a frame: the only function, if it looks into streams; otherwise all functions.
  [[nodiscard]] PacketSink& sink() noexcept;
  void begin_frame(PacketView frame, std::size_t index) noexcept;

  Tracker tracker_;
  FrameNumbers numbers_;
  std::vector<std::unique_ptr<Attachment>> attachments_;
  std::unique_ptr<Everyone> everyone_;
  PacketDescriptor* asked_about_ = nullptr;  // the packet that was looked up last, until its verdict is known
  PacketFlow flow_;                          // its
};

}  // namespace penstock::stack
