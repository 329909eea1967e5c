// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A batch on its way through a device: where its frames are, which packets are left to the CPU, and what waits until
// the batch is sent.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "function/emitter.h"
#include "packet/batch.h"
#include "plan/device_plan.h"
#include "ring/lane.h"
#include "run/epoch.h"
#include "run/flight_trace.h"
#include "run/frame_scratch.h"

namespace penstock::run {

/// One of the executor's lanes.
struct LaneState {
  std::unique_ptr<ring::Lane> lane;
  const StageSet* epoch = nullptr;  // whose stages the lane has
  unsigned failures = 0;            // consecutive
  bool busy = false;
};

struct Flight {
  static constexpr std::size_t kNoRun = ~std::size_t{0};

  /// A packet for a finish stage that runs after sending, with the lengths that the stage must see.
  struct Waiting {
    PacketView packet;
    std::uint32_t length;
    std::uint32_t wire_length;
    std::size_t stage;  // index in the segment
  };

  const plan::DevicePlan* plan = nullptr;
  StageSet* epoch = nullptr;  // the stages that decide on its packets
  Batch* batch = nullptr;
  std::uint64_t number = 0;           // of the batch, in the order of submission
  LaneState* lane = nullptr;          // held until the batch is done, because its frames may be in the lane's memory
  bool on_device = false;             // false: the CPU does the rest
  std::size_t run = 0;                // index into the plan's runs; their number: done
  std::size_t filled_run = kNoRun;    // the last one for which state stages have filled states
  Batch::Clock::time_point started;   // start time of the current segment
  std::vector<std::uint8_t*> frames;  // by packet, for forwarded packets; only valid if `listed`, else frames are in
                                      // the batch
  bool listed = false;
  FrameScratch scratch;                          // for those that the twins are to make longer
  std::vector<FrameScratch> own_buffers;         // by segment, where its function has one (own_stacks.h)
  bool gathers = false;                          // a segment may send frames again that lie in several memories
  function::Emissions emissions;                 // what functions made of its packets
  std::unique_ptr<function::Arrivals> arrivals;  // its packets as they arrived; null if only its first run asks
  std::vector<std::uint32_t> punted;  // packets that are not worked on any more on the device; some more than once
  std::vector<Verdict> set_aside;     // by packet: of those that a segment leaves alone, while it runs
  std::vector<std::uint8_t> arms;     // by packet, of the fork that was begun last; none where the chain has no forks
  bool finish_waits = false;          // of the last segment, once it is settled
  std::vector<Waiting> waiting;       // in the order in which finish stages are to see them
  std::vector<std::pair<PacketView, std::uint8_t*>> exchanged;  // with which record
  FlightTrace trace;

  /// Starts a new batch on lane `over`, or on the CPU if `over` is null.
  void begin(Batch& its_batch, LaneState* over, StageSet& its_epoch) noexcept;

  [[nodiscard]] bool done() const noexcept { return run == plan->runs.size(); }
  [[nodiscard]] const plan::DevicePlan::Run& current() const noexcept { return plan->runs[run]; }
  /// The current segment.
  [[nodiscard]] const ring::SegmentShape& shape() const noexcept { return plan->segments[current().segment]; }
  [[nodiscard]] std::size_t index_of(PacketView packet) const noexcept {
    return static_cast<std::size_t>(packet.packet - batch->packets().data());
  }
  [[nodiscard]] PacketView view(std::size_t packet) const noexcept {
    if (!listed) return batch->view(packet);
    return {frames[packet], &batch->packets()[packet]};
  }
  /// grant_number of the tables that its lane uses for this stage. 0: they are those of the function.
  [[nodiscard]] std::uint64_t grant(std::size_t segment, std::size_t stage) const noexcept;
  /// In the form that lanes and twins expect: empty if the frames are in the batch.
  [[nodiscard]] std::span<std::uint8_t* const> listed_frames() const noexcept {
    return listed ? std::span(frames).first(batch->size()) : std::span<std::uint8_t* const>{};
  }

  /// Copies the frames of packets that are alive, and goes on with the copies.
  void copy_frames(FrameScratch& into) noexcept;
  /// Where the twins have left the packet's frame. One that is not in the batch any more stays on the CPU.
  void note_frame(PacketView packet) noexcept;
  /// Where the twins are to make its frame longer, and all frames that are alive.
  void give_room(std::size_t packet) noexcept;
  void give_room_to_all() noexcept;

  /// All frames are listed.
  void list() noexcept;
  /// Before the current segment sends packets again: their frames are in one memory, in packet order, and in an arm
  /// only those of the arm are sent.
  void gather() noexcept;

  /// A segment is to leave those that an earlier one has left to the CPU alone; restore: it does not run after all.
  void set_punted_aside() noexcept;
  void restore_punted() noexcept;
  /// Likewise for packets outside the current run's arm, until that run has ended.
  void set_other_arms_aside() noexcept;
  void restore_other_arms() noexcept;
  /// Whether the current run processes this packet.
  [[nodiscard]] bool is_in_arm(std::size_t packet) const noexcept {
    return !current().arm || arms[packet] == current().arm->arm;
  }

 private:
  void reserve_in_packet_order() noexcept;
};

}  // namespace penstock::run
