// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What has come back from a device goes into its batch, and is accounted for as the CPU twins would: verdicts, lengths,
// frames and records; finish stages see what GPU stages found; packets that were left to the CPU go there.

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
#include "run/flight.h"
#include "run/flight_twins.h"

namespace penstock::run {

class Settlement {
 public:
  /// Makes the worker's finish stages. Borrows all but the plan's segments.
  Settlement(const Chain& chain, const plan::DevicePlan& plan, unsigned worker, WorkerCounters& counters,
             CpuTwins& stages, function::Emitter& emitter, FlightTwins& twins);

  /// How many finish stages may wait.
  [[nodiscard]] std::size_t waiting_stages() const noexcept;
  /// The segment that is under way is done. All functions see the packets in their order, whether on the device or, one
  /// that is left to them, on the twins.
  void settle(Flight& flight) noexcept;
  /// The batch has been sent, and its memory is still ours: finish stages that wait see its packets.
  void finish_sent(Flight& flight) noexcept;
  /// Ends the finish stages.
  void end() noexcept { finish_.clear(); }

 private:
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

  void settle_burst(Flight& flight, const ring::SegmentResults& results, Returned& next, Settled burst) noexcept;
  [[nodiscard]] std::uint64_t set_lengths(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                          const Settled& burst) noexcept;
  [[nodiscard]] bool may_wait(const Flight& flight, const ring::SegmentResults& results) const noexcept;
  void find_worked_on(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                      const Settled& burst, WorkedOn& those) const noexcept;
  void give_states(const Flight& flight, std::size_t segment, std::size_t stage,
                   std::span<const PacketView> packets) noexcept;
  void put_off(Flight& flight, std::size_t stage, const ring::SegmentResults& results, const Settled& burst,
               Waits& waits) noexcept;
  [[nodiscard]] bool finish(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                            const Settled& burst) noexcept;
  void take_back(Flight& flight, const ring::SegmentResults& results, Returned& next, const Settled& burst,
                 const Waits& waits) noexcept;
  [[nodiscard]] bool change_returned(std::size_t function, std::span<const PacketView> packets) noexcept;
  void count_ended(std::size_t function, std::span<const PacketView> packets, report::TrafficSum& reaching) noexcept;

  const Chain& chain_;
  const unsigned worker_;
  WorkerCounters& counters_;
  CpuTwins& stages_;
  FlightTwins& twins_;
  std::vector<Finish> finish_;                             // by function
  std::vector<ring::RecordScatter> scatter_;               // by segment
  std::array<const std::byte*, function::kBurst> states_;  // of the packets that a finish stage is given
};

}  // namespace penstock::run
