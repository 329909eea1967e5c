// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/flight_twins.h"

#include "function/burst.h"

namespace penstock::run {

FlightTwins::FlightTwins(const Chain& chain, const plan::DevicePlan& plan, CpuTwins& twins)
    : twins_(twins), replaces_frames_(chain.replaces_frames()) {
  const std::vector<function::NfTraits> traits = chain.traits();
  next_growing_.assign(traits.size() + 1, traits.size());
  for (std::size_t f = traits.size(); f-- > 0;) {
    const bool grows = traits[f].growth.head + traits[f].growth.tail > 0 && f >= plan::functions_before_device(plan);
    next_growing_[f] = grows ? f : next_growing_[f + 1];
  }
}

void FlightTwins::run(Flight& flight) noexcept {
  const plan::DevicePlan::Run& run = flight.current();
  flight.set_other_arms_aside();
  if (need_room(run.first, run.last)) flight.give_room_to_all();
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return flight.view(i); },
      [&](std::span<PacketView> burst) {
        twins_.parse(burst);
        const std::span<PacketView> left =
            run.arm ? twins_.run_straight(burst, run.first, run.last) : twins_.run(burst, run.first, run.last);
        if (!flight.listed && !replaces_frames_) return;
        for (const PacketView& packet : left) flight.note_frame(packet);
      });
  flight.restore_other_arms();
}

void FlightTwins::choose_arms(Flight& flight, const plan::Fork& fork) noexcept {
  const std::span<const PacketDescriptor> packets = flight.batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    flight.arms[i] = packets[i].verdict.alive() ? fork.arm_of(packets[i]) : plan::Fork::kNoArm;
  }
}

void FlightTwins::parse(Flight& flight) noexcept {
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return flight.view(i); },
      [&](std::span<PacketView> burst) { twins_.parse(burst); });
}

void FlightTwins::run_alone(Flight& flight, std::size_t packet, std::size_t first, std::size_t last) noexcept {
  if (need_room(first, last)) flight.give_room(packet);
  PacketView one = flight.view(packet);
  twins_.parse({&one, 1});
  static_cast<void>(twins_.run_straight({&one, 1}, first, last));
  flight.note_frame(one);
}

}  // namespace penstock::run
