// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes batches through a chain that runs on a GPU, in part or whole: several batches in flight, each on a lane of its
// own (Araujo's non-blocking stream pool), asked after and never waited for.
//
//     batch ─▶ [CPU run] ─▶ lane: segment ─▶ settle ─▶ [CPU run ─▶ segment ─▶ settle …] ─▶ out, in order of submission
//                                   └── punted packets, and batches whose device fails: the CPU twins ──┘
//
// Finish stages that wait (NfTraits::finish_waits) see the batch behind `out`, and before the next batch is settled.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "function/burst.h"
#include "function/emitter.h"
#include "packet/batch.h"
#include "plan/device_plan.h"
#include "ring/lane.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/cpu_twins.h"
#include "run/executor.h"
#include "run/frame_scratch.h"
#include "run/outlet.h"
#include "run/trace.h"

namespace penstock::run {

class DeviceExecutor : public Executor {
 public:
  /// Batches that a lane fails, one behind the other, after which it is used no more. Without lanes the chain runs on
  /// the CPU.
  static constexpr unsigned kMostFailures = 3;

  /// Borrows chain, counters and `trace`, which may be null.
  DeviceExecutor(const Chain& chain, plan::DevicePlan plan, std::vector<std::unique_ptr<ring::Lane>> lanes,
                 unsigned worker, WorkerCounters& counters, Trace* trace);
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;
  ~DeviceExecutor() override;

  /// Takes batches of all kinds over each lane, and forgets them: a device loads kernels, and its driver makes graphs,
  /// when they are first launched, which takes so long that the first packets would be lost. `batch` is of the ring,
  /// pinned, and left empty.
  enum class WarmUp : std::uint8_t {
    done,
    failed,  // a batch did not come back from a lane, nor when it was sent again
    hangs,   // a batch was still on its way when the time was over: the device cannot be waited for any more
  };
  static constexpr std::chrono::seconds kMostWarmUp{30};
  [[nodiscard]] WarmUp warm_up(Batch& batch, std::chrono::nanoseconds limit = kMostWarmUp) noexcept;

  bool submit(Batch& batch) noexcept override;
  Batch* retire() noexcept override;
  bool idle() const noexcept override;
  void observe(PacketView packet) noexcept override { twins_.observe(packet); }
  void pass_boundary() noexcept override;
  void end() noexcept override;
  void release() noexcept override;

  /// The memory from which a segment may send frames that the twins have made longer: to be pinned. Empty where none
  /// does.
  [[nodiscard]] std::vector<std::span<std::uint8_t>> memory_sent_again() const;

 private:
  struct LaneState {
    std::unique_ptr<ring::Lane> lane;
    unsigned failures = 0;  // one behind the other
    bool busy = false;
  };
  /// A packet as a finish stage that waits is to see it.
  struct Waiting {
    PacketView packet;
    std::uint32_t length;
    std::uint32_t wire_length;
    std::size_t stage;  // of the segment
  };
  /// A batch on its way.
  struct Flight {
    Batch* batch = nullptr;
    LaneState* lane = nullptr;  // kept until the batch is done: its frames may lie there
    bool on_device = false;     // false: on the CPU from here on
    bool traced = false;
    std::size_t run = 0;                // of the plan, under way; the plan's size: done
    Batch::Clock::time_point started;   // the segment that is under way
    std::vector<std::uint8_t*> frames;  // by packet that is alive, where `listed`; else they are in the batch
    bool listed = false;
    FrameScratch scratch;               // for those that the twins are to make longer
    function::Emissions emissions;      // what functions made of its packets
    std::vector<std::uint32_t> punted;  // packets that are not worked on any more on the device
    std::vector<Verdict> set_aside;     // by packet: of those that are punted, while a later segment runs
    bool finish_waits = false;          // of the last segment, once it is settled
    std::vector<Waiting> waiting;       // in the order in which finish stages are to see them
    std::vector<std::pair<PacketView, std::uint8_t*>> exchanged;  // with which record
  };
  struct Finish {
    std::unique_ptr<function::FinishStage> stage;  // null where there is none
    bool drops = false;                            // it may
    bool takes_back = false;                       // it changes frames that have come back
    bool waits = false;                            // it may
  };
  /// Packets of one batch, at most kBurst, that the device has worked on.
  struct Settled {
    std::span<PacketView> packets;
    std::uint64_t bytes = 0;  // of their frames, before the segment
    bool any_ended = false;   // not all are forwarded
  };
  /// Packets of a burst as a finish stage is given them.
  struct WorkedOn {
    std::span<const PacketView> packets;
    std::array<const std::byte*, function::kBurst> of_each;
    // Where they are not all of the burst.
    std::array<PacketView, function::kBurst> some;
    std::array<std::uint8_t, function::kBurst> at;  // in the burst

    [[nodiscard]] std::span<const std::byte* const> findings() const noexcept {
      return std::span(of_each).first(packets.size());
    }
  };
  using Waits = std::array<bool, function::kBurst>;  // by packet of a burst
  /// Where the next of the packets is that have come back.
  struct Returned {
    std::uint8_t* record;
    std::uint8_t* frame;
  };

  [[nodiscard]] const plan::DevicePlan::Run& run_of(const Flight& flight) const { return plan_.runs[flight.run]; }
  [[nodiscard]] const ring::SegmentShape& shape_of(const Flight& flight) const {
    return plan_.segments[run_of(flight).segment];
  }
  [[nodiscard]] static std::size_t index_of(const Flight& flight, PacketView packet) noexcept {
    return static_cast<std::size_t>(packet.packet - flight.batch->packets().data());
  }
  [[nodiscard]] function::Emissions* emissions_of(Flight& flight) const noexcept {
    return emits_ ? &flight.emissions : nullptr;
  }
  /// As the lane and the twins take them: empty where they are in the batch.
  [[nodiscard]] static std::span<std::uint8_t* const> frames_of(const Flight& flight) noexcept {
    return flight.listed ? std::span(flight.frames).first(flight.batch->size()) : std::span<std::uint8_t* const>{};
  }
  static void list_frames(Flight& flight) noexcept;
  /// Whether a function in [first, last) makes frames longer for which batches have no room.
  [[nodiscard]] bool need_room(std::size_t first, std::size_t last) const noexcept {
    return next_growing_[first] < last;
  }
  static void give_room(Flight& flight, std::size_t packet) noexcept;
  static void give_room_to_all(Flight& flight) noexcept;
  [[nodiscard]] static PacketView view(Flight& flight, std::size_t packet) noexcept {
    if (!flight.listed) return flight.batch->view(packet);
    return {flight.frames[packet], &flight.batch->packets()[packet]};
  }
  [[nodiscard]] WarmUp warm_up(ring::Lane& lane, const Batch& batch, Batch::Clock::time_point deadline) const noexcept;
  [[nodiscard]] LaneState* free_lane() noexcept;
  [[nodiscard]] bool all_lost() const noexcept;
  /// As far as it gets now; not past the run that the batch before it is in.
  void advance(Flight& flight, std::size_t limit) noexcept;
  bool start_segment(Flight& flight) noexcept;
  void settle_segment(Flight& flight) noexcept;
  void settle_burst(Flight& flight, const ring::SegmentResults& results, Returned& next, Settled burst) noexcept;
  [[nodiscard]] std::uint64_t set_lengths(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                          const Settled& burst) noexcept;
  [[nodiscard]] bool may_wait(const Flight& flight, const ring::SegmentResults& results) const noexcept;
  void find_worked_on(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                      const Settled& burst, WorkedOn& those) const noexcept;
  void put_off(Flight& flight, std::size_t stage, const ring::SegmentResults& results, const Settled& burst,
               Waits& waits) noexcept;
  void finish_sent(Flight& flight) noexcept;
  [[nodiscard]] bool finish(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                            const Settled& burst) noexcept;
  void take_back(Flight& flight, const ring::SegmentResults& results, Returned& next, const Settled& burst,
                 const Waits& waits) noexcept;
  [[nodiscard]] bool change_returned(std::size_t function, std::span<const PacketView> packets) noexcept;
  void count_ended(std::size_t function, std::span<const PacketView> packets, report::TrafficSum& reaching) noexcept;
  void run_alone(Flight& flight, std::size_t packet, std::size_t first, std::size_t last) noexcept;
  static void restore_punted(Flight& flight) noexcept;
  void fail(Flight& flight) noexcept;
  void run_on_cpu(Flight& flight, std::size_t first, std::size_t last) noexcept;
  void send(Flight& flight) noexcept;

  const Chain& chain_;
  const plan::DevicePlan plan_;
  const unsigned worker_;
  WorkerCounters& counters_;
  Trace* trace_;
  const bool emits_;
  function::Emitter emitter_;
  CpuTwins twins_;
  Outlet outlet_;
  std::vector<std::size_t> next_growing_;     // by function: the first from there on that needs room outside the batch
  std::vector<Finish> finish_;                // by function
  std::vector<ring::RecordScatter> scatter_;  // by segment
  std::vector<LaneState> lanes_;
  std::size_t next_lane_ = 0;
  std::vector<Flight> flights_;  // a circle, oldest at first_
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace penstock::run
