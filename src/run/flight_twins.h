// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU's part in a flight: runs of functions that run on the CPU, packets that the device punted, and whole batches
// whose device failed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/device_plan.h"
#include "run/chain.h"
#include "run/cpu_twins.h"
#include "run/flight.h"

namespace penstock::run {

class FlightTwins {
 public:
  /// Borrows the twins.
  FlightTwins(const Chain& chain, const plan::DevicePlan& plan, CpuTwins& twins);

  /// Whether a function in [first, last) makes frames longer than batches have room for.
  [[nodiscard]] bool need_room(std::size_t first, std::size_t last) const noexcept {
    return next_growing_[first] < last;
  }
  /// Takes all forwarded packets (or only those of the current run's arm) through the functions of the current run.
  void run(Flight& flight) noexcept;
  /// The same for at most kBurst packets of the batch.
  void run_some(Flight& flight, std::span<const std::uint32_t> packets) noexcept;
  /// Chooses each packet's arm at the beginning of a fork.
  void choose_arms(Flight& flight, const plan::Fork& fork) noexcept;
  /// Parses all forwarded packets, for the records that a segment sends.
  void parse(Flight& flight) noexcept;
  /// Keeps the flight's packets as they arrived, before its first run.
  void remember(Flight& flight) noexcept;

 private:
  void hand_back_states(const Flight& flight, std::span<const PacketView> burst) noexcept;
  [[nodiscard]] std::span<PacketView> pass(const plan::DevicePlan::Run& run, std::span<PacketView> packets) noexcept;
  [[nodiscard]] std::span<PacketView> pass_traced(Flight& flight, std::span<PacketView> burst) noexcept;

  CpuTwins& twins_;
  const bool replaces_frames_;
  std::vector<std::size_t> next_growing_;  // by function: the first from there on that needs room outside the batch
};

}  // namespace penstock::run
