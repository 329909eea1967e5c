// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Applies the results of a segment to its batch, and counts packets as the CPU twins would: verdicts, lengths, frames
// and records. Finish stages get the findings of device stages; packets that the device punted go to the CPU twins.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "function/burst.h"
#include "function/network_function.h"
#include "packet/batch.h"
#include "plan/device_plan.h"
#include "report/counter.h"
#include "ring/lane.h"
#include "ring/record.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/cpu_twins.h"
#include "run/epoch.h"
#include "run/flight.h"
#include "run/flight_twins.h"

namespace penstock::run {

class Settlement {
 public:
  /// Borrows all arguments except `plan`.
  Settlement(const Chain& chain, const plan::DevicePlan& plan, unsigned worker, WorkerCounters& counters,
             CpuTwins& stages, function::Emitter& emitter, FlightTwins& twins, const StageSet& first_epoch);

  /// The number of finish stages that may wait until the batch is sent.
  [[nodiscard]] std::size_t waiting_stages() const noexcept;
  /// Settles the current segment, which is done. Each function sees all packets in order, whether the device or the CPU
  /// twins processed them.
  void settle(Flight& flight) noexcept;
  /// Called when the batch was sent, while its memory is still valid: runs the finish stages that waited.
  void finish_sent(Flight& flight) noexcept;
  /// Before the first batch that uses these stages.
  void begin_epoch(StageSet& next) noexcept;

 private:
  /// Of a function, in all epochs.
  struct Finish {
    bool emits = false;
    bool drops = false;          // may drop packets
    bool takes_back = false;     // changes frames after they have come back
    bool waits = false;          // may run after the batch was sent
    bool host_has_frame = true;  // a packet that the function drops is on the host as it came to the function
  };
  /// At most kBurst packets of one batch that the device has processed.
  struct Settled {
    std::span<PacketView> packets;
    std::uint64_t bytes = 0;  // of their frames before the segment
    bool any_ended = false;   // some are not forwarded
  };
  /// The packets of a burst that a finish stage gets, with their findings.
  struct WorkedOn {
    std::span<const PacketView> packets;
    std::array<const std::byte*, function::kBurst> of_each;
    // Only used if they are not all packets of the burst.
    std::array<PacketView, function::kBurst> some;
    std::array<std::uint8_t, function::kBurst> at;  // indices in the burst

    [[nodiscard]] std::span<const std::byte* const> findings() const noexcept {
      return std::span(of_each).first(packets.size());
    }
  };
  using Waits = std::array<bool, function::kBurst>;  // by packet of a burst
  /// Where the next returned record and frame are.
  struct Returned {
    std::uint8_t* record;
    std::uint8_t* frame;
  };

  void settle_burst(Flight& flight, const ring::SegmentResults& results, Returned& next, Settled burst) noexcept;
  [[nodiscard]] std::uint64_t set_lengths(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                          const Settled& burst) noexcept;
  [[nodiscard]] bool may_wait(const Flight& flight, const ring::SegmentResults& results) const noexcept;
  void find_worked_on(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                      const Settled& burst, WorkedOn& those) const noexcept;
  void prepare_finish(const Flight& flight, std::size_t segment, std::size_t stage,
                      std::span<const PacketView> packets) noexcept;
  void put_off(Flight& flight, std::size_t stage, const ring::SegmentResults& results, const Settled& burst,
               Waits& waits) noexcept;
  [[nodiscard]] bool finish(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                            const Settled& burst) noexcept;
  void take_back(Flight& flight, const ring::SegmentResults& results, Returned& next, const Settled& burst,
                 const Waits& waits) noexcept;
  [[nodiscard]] bool change_returned(const Flight& flight, std::size_t function,
                                     std::span<const PacketView> packets) noexcept;
  [[nodiscard]] bool holds(std::size_t function, PacketView packet) noexcept;
  void count_ended(std::size_t function, std::span<const PacketView> packets, report::TrafficSum& reaching) noexcept;

  const Chain& chain_;
  const unsigned worker_;
  WorkerCounters& counters_;
  CpuTwins& stages_;
  function::Emitter& emitter_;
  FlightTwins& twins_;
  std::vector<Finish> finish_;                             // by function
  std::vector<ring::RecordScatter> scatter_;               // by segment
  std::array<const std::byte*, function::kBurst> states_;  // states for the packets that a finish stage gets
};

}  // namespace penstock::run
