// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The traffic at one point of the chain: the packets that the functions before it passed, with their changes. All
// functions that see the same packets attach to one tracker. Owned by one worker.
//
// A view serves two kinds of functions. Those that decide by flow ask for a packet's flow (Attachment::flow_of), and
// the packet is tracked once its verdict is known to be pass. Those that inspect streams receive each packet when it is
// tracked (FrameSink).

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

/// A function that inspects packets and streams.
class FrameSink : public PacketSink {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;
  /// The packets that follow belong to this frame. `index`: as passed to Attachment::track; kNone: another worker
  /// forwards the frame.
  virtual void begin_frame(PacketView frame, std::size_t index) noexcept = 0;
  /// All flows end. The packets that follow carry the rest of their streams.
  virtual void begin_end() noexcept = 0;
};

/// One function's access to its view. Owned by the view.
class Attachment {
 public:
  Attachment(TrafficView& view, unsigned slot, std::uint32_t seam_bytes) noexcept
      : view_(view), slot_(slot), seam_bytes_(seam_bytes) {}
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// This function's 64 bits in the flow; 0 when the flow begins.
  [[nodiscard]] std::uint64_t& slot(Flow& flow) const noexcept { return flow.slots[slot_]; }
  [[nodiscard]] unsigned slot_index() const noexcept { return slot_; }

  // For functions that decide by flow.

  /// The flow of a packet of the stage's batch. Call in packet order, after deciding on the previous packets: dropped
  /// packets must not change flows. The result is valid until the next call.
  [[nodiscard]] PacketFlow flow_of(PacketView packet) noexcept;
  /// Sets a callback for flows that end with a nonzero slot, to free what the slot refers to. Call before the first
  /// packet.
  void when_flow_ends(std::function<void(Flow&)> ended) { ended_ = std::move(ended); }

  // For functions that inspect streams. They all see the same packets, so only the last of them runs the tracker.

  /// Sets the sink, which is not owned. Call before the first packet. Between batches, another sink may take its place.
  void look_with(FrameSink& sink) noexcept { sink_ = &sink; }
  /// From now on, offers at least this many inspected bytes before new ones, if they are still stored. Call between
  /// batches. The tracker never goes back to storing less.
  void set_seam(std::uint32_t bytes) noexcept;
  [[nodiscard]] bool tracks() const noexcept;
  /// Call only if tracks(). Prefetches what tracking the first Tracker::kMostPrefetched of these frames will need.
  /// Changes nothing else.
  void prefetch(std::span<const PacketView> frames) noexcept;
  /// Call only if tracks(). Tracks a frame of the stage's batch. `index`: of the frame in the batch.
  void track(PacketView frame, std::size_t index) noexcept;
  /// The last tracked frame is dropped.
  void refuse_frame() noexcept;
  /// Tracks a fragment that another worker forwards. Does nothing unless tracks().
  void observe(PacketView frame) noexcept;
  /// Call only if tracks(). Ends everything that has timed out by `now_ns`, in packet time. For when no packet has
  /// advanced the time.
  void expire(std::uint64_t now_ns) noexcept;
  /// Call only if tracks(). A frame arrived that is not to be tracked: only its number is recorded.
  void pass_over(const PacketDescriptor& frame) noexcept {
    if (frame.number != 0) note_number(frame);
  }

  [[nodiscard]] const TrackerCounters& counters() const noexcept;

 private:
  friend class TrafficView;
  void note_number(const PacketDescriptor& frame) noexcept;

  TrafficView& view_;
  const unsigned slot_;
  std::uint32_t seam_bytes_;
  FrameSink* sink_ = nullptr;
  std::function<void(Flow&)> ended_;
};

class TrafficView {
 public:
  /// `seams`: seam_bytes of each function, in chain order. `options`: must suit all functions. Each function gets one
  /// slot in the flows.
  TrafficView(const TrackerOptions& options, std::span<const std::uint32_t> seams);
  ~TrafficView();
  TrafficView(const TrafficView&) = delete;
  TrafficView& operator=(const TrafficView&) = delete;

  /// The attachment of the n-th function, in chain order.
  [[nodiscard]] Attachment& attachment(unsigned function) noexcept { return *attachments_[function]; }
  /// The verdicts of all packets passed to flow_of() are final.
  void settle() noexcept;
  /// End of input: ends all flows.
  void finish() noexcept;

 private:
  friend class Attachment;
  class Everyone;

  /// Where the tracker's output goes: to the only function if it inspects streams, otherwise to all functions.
  [[nodiscard]] PacketSink& sink() noexcept;
  void begin_frame(PacketView frame, std::size_t index) noexcept;

  Tracker tracker_;
  FrameNumbers numbers_;
  std::vector<std::unique_ptr<Attachment>> attachments_;
  std::unique_ptr<Everyone> everyone_;
  PacketDescriptor* asked_about_ = nullptr;  // the last packet looked up, until its verdict is known
  PacketFlow flow_;                          // its flow
};

}  // namespace penstock::stack
