// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes batches in a chain that runs wholly or partly on a device. Several batches are in flight, each on its own
// lane (Araujo's non-blocking stream pool). Lanes are polled and never blocked on.
//
//     batch ─▶ [CPU run] ─▶ lane: segment ─▶ settle ─▶ [CPU run ─▶ segment ─▶ settle …] ─▶ out, in order of submission
//                                   └── punted packets, and batches whose device fails: the CPU twins ──┘
//
// Finish stages that may wait (NfTraits::finish_waits) see the batch after it was sent, and before the next batch is
// settled.

#pragma once

#include <chrono>
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
#include "run/chain.h"
#include "run/counters.h"
#include "run/cpu_twins.h"
#include "run/epoch.h"
#include "run/executor.h"
#include "run/flight.h"
#include "run/flight_twins.h"
#include "run/outlet.h"
#include "run/own_stacks.h"
#include "run/settlement.h"
#include "run/taps.h"
#include "run/warm_up.h"

namespace penstock::run {

class DeviceExecutor : public Executor {
 public:
  /// A lane is disabled after this many consecutive failed batches. If no lane is left, the chain runs on the CPU.
  static constexpr unsigned kMostFailures = 3;

  /// Borrows `chain`, `counters` and `taps`, which may be null.
  DeviceExecutor(const Chain& chain, plan::DevicePlan plan, LaneSet lanes, unsigned worker, WorkerCounters& counters,
                 Taps* taps);
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;
  ~DeviceExecutor() override;

  /// See run/warm_up.h.
  [[nodiscard]] WarmUp warm_up(Batch& batch, std::chrono::nanoseconds limit = kMostWarmUp) noexcept;

  void begin() noexcept override { outlet_.connect(); }
  bool submit(Batch& batch) noexcept override;
  Batch* retire() noexcept override;
  bool takes_early(const Batch& open) const noexcept override;
  void observe(PacketView packet) noexcept override {
    twins_.use(*current_);
    twins_.observe(packet);
  }
  void pass_boundary() noexcept override;
  bool holds_packets() const noexcept override { return twins_.holds_packets(); }
  void give_up_held() noexcept override;
  void begin_epoch(std::unique_ptr<StageSet> next) noexcept override;
  std::unique_ptr<StageSet> take_ended() noexcept override { return std::move(ended_); }
  void begin_lanes(std::unique_ptr<LaneSet> next) noexcept override;
  std::unique_ptr<LaneSet> take_ended_lanes() noexcept override { return std::move(ended_lanes_); }
  void end() noexcept override;
  void release() noexcept override;

  /// Memory for frames that CPU twins have made longer, if a later segment may send frames from there, and functions'
  /// own packet buffers; the caller must pin it. Otherwise empty.
  [[nodiscard]] std::vector<std::span<std::uint8_t>> memory_sent_again() const;

 protected:
  /// Its lanes are elsewhere.
  [[nodiscard]] LaneSet& lane_set() noexcept { return lane_set_; }
  [[nodiscard]] bool has_lanes() const noexcept { return !lanes_.empty() && lanes_.front().lane != nullptr; }
  [[nodiscard]] bool has_lost_remote_device() const noexcept;

 private:
  [[nodiscard]] function::Emissions* emissions_of(Flight& flight) const noexcept {
    return emits_ ? &flight.emissions : nullptr;
  }
  /// What functions make from here on is for this flight's packets.
  void make_for(Flight& flight) noexcept {
    emitter_.go_into(emissions_of(flight));
    if (flight.arrivals != nullptr) emitter_.know_arrivals(flight.arrivals.get());
  }
  [[nodiscard]] LaneState* free_lane() noexcept;
  [[nodiscard]] bool all_lost() const noexcept;
  /// Moves the flight forward as far as possible without blocking, but not past run `limit`, where the previous batch
  /// is.
  void advance(Flight& flight, std::size_t limit) noexcept;
  void begin_run(Flight& flight) noexcept;
  bool start_segment(Flight& flight) noexcept;
  void settle(Flight& flight) noexcept;
  /// Whether the arms of a fork can leave frames in several memories, from which a later segment sends them again.
  [[nodiscard]] bool gathers() const noexcept { return !chain_.forks.empty() && plan::sends_packets_again(plan_); }
  void fill_states(Flight& flight) noexcept;
  void fail(Flight& flight) noexcept;
  void pass_held() noexcept;
  /// The number of the last batch that was sent.
  [[nodiscard]] std::uint64_t last_sent() const noexcept { return begun_ - count_; }
  void send(Flight& flight) noexcept;
  void give_up_device() noexcept;
  void renew_lanes() noexcept;
  void update_lane(LaneState& state) noexcept;
  void end_former_epoch() noexcept;

  const Chain& chain_;
  const plan::DevicePlan plan_;
  WorkerCounters& counters_;
  Taps* taps_;
  const std::vector<function::NfTraits> traits_;  // in all epochs
  const bool emits_;
  function::Emitter emitter_;
  CpuTwins twins_;                     // has the trackers that stages use until they are destroyed
  std::unique_ptr<StageSet> current_;  // of the newest epoch
  std::unique_ptr<StageSet> former_;   // of the epoch before, while batches or lanes use it
  std::unique_ptr<StageSet> ended_;
  FlightTwins flight_twins_;
  OwnStacks own_stacks_;
  Settlement settlement_;
  Outlet outlet_;
  std::vector<Flight> flights_;  // ring buffer; the oldest is at first_
  LaneSet lane_set_;             // without its lanes, which follow
  std::vector<LaneState> lanes_;
  std::unique_ptr<LaneSet> next_lanes_;   // wait until no batch is in flight; null: there are none
  std::unique_ptr<LaneSet> ended_lanes_;  // with the former lanes
  bool gave_up_ = false;                  // the device is lost: no lane starts another batch
  std::size_t next_lane_ = 0;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::uint64_t begun_ = 0;  // batches, whose numbers are from 1
};

}  // namespace penstock::run
