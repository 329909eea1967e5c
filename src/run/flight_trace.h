// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of a flight whose paths are traced, and what its segments on a device have made of them: pictures that
// the lane took before and after each stage (ring/lane.h). Empty, and without cost, in all other flights.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "packet/batch.h"
#include "run/chain.h"
#include "run/trace.h"

namespace penstock::run {

struct Flight;

class FlightTrace {
 public:
  /// Chooses packets of the batch. Those that the trace wants beyond ring::kMostPictured are counted as missed.
  void begin(const Chain& chain, const std::shared_ptr<Trace::Session>& trace, Batch& batch);
  void clear() noexcept {
    packets_.clear();
    ways_.clear();
  }

  [[nodiscard]] bool empty() const noexcept { return packets_.empty(); }
  /// Indices in the batch, ascending.
  [[nodiscard]] std::span<const std::uint32_t> packets() const noexcept { return packets_; }
  /// Null: the packet is not traced.
  [[nodiscard]] TracedWay* way_of(std::size_t packet) noexcept;

  // `traits` by function: those of the chain may be exchanged by a reload meanwhile.

  /// The current segment is done, and is settled next.
  void add_segment(const Flight& flight, const Chain& chain, std::span<const function::NfTraits> traits);
  /// It is settled: finish stages may have decided otherwise.
  void add_settlement(const Flight& flight, const Chain& chain, std::span<const function::NfTraits> traits);
  /// The batch is about to be sent, …
  void before_sending(const Flight& flight);
  /// … and was sent.
  void end(const Flight& flight);

 private:
  std::vector<std::uint32_t> packets_;
  std::vector<TracedWay> ways_;     // by traced packet, like the next ones
  std::vector<Verdict> of_device_;  // after the current segment; punt: the device has not decided
  std::vector<bool> reach_the_end_;
};

}  // namespace penstock::run
