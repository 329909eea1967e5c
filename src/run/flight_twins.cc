// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/flight_twins.h"

#include <array>

#include "function/burst.h"

namespace penstock::run {

namespace {

/// Whether packets come to this run as they arrived, and nothing else knows them like that.
bool begins_with(const Flight& flight, const plan::DevicePlan::Run& run) {
  return flight.arrivals == nullptr && &run == &flight.plan->runs.front();
}

}  // namespace

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
        twins_.parse(burst, begins_with(flight, run));
        hand_back_states(flight, burst);
        const std::span<PacketView> left = flight.trace.empty() ? pass(run, burst) : pass_traced(flight, burst);
        if (!flight.listed && !replaces_frames_) return;
        for (const PacketView& packet : left) flight.note_frame(packet);
      });
  flight.restore_other_arms();
}

/// If states were filled for the current run, the device was to process these packets.
void FlightTwins::hand_back_states(const Flight& flight, std::span<const PacketView> burst) noexcept {
  if (flight.filled_run != flight.run) return;
  const std::size_t segment = flight.current().segment;
  const std::vector<ring::SegmentShape::Stage>& stages = flight.shape().stages;
  std::array<const std::byte*, function::kBurst> of_each;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::uint32_t bytes = stages[s].state_bytes;
    if (bytes == 0) continue;
    const std::byte* const states = flight.lane->lane->states(segment, s);
    for (std::size_t i = 0; i < burst.size(); ++i) of_each[i] = states + flight.index_of(burst[i]) * bytes;
    flight.epoch->states[stages[s].function]->hand_back(burst, std::span(of_each).first(burst.size()));
  }
}

std::span<PacketView> FlightTwins::pass(const plan::DevicePlan::Run& run, std::span<PacketView> packets) noexcept {
  return run.arm ? twins_.run_straight(packets, run.first, run.last) : twins_.run(packets, run.first, run.last);
}

/// Traced packets go alone, each at its place among the others.
std::span<PacketView> FlightTwins::pass_traced(Flight& flight, std::span<PacketView> burst) noexcept {
  const plan::DevicePlan::Run& run = flight.current();
  std::size_t left = 0;
  std::size_t first = 0;  // of the packets that go together
  const auto pass_before = [&](std::size_t end) {
    if (first == end) return;
    for (const PacketView packet : pass(run, burst.subspan(first, end - first))) burst[left++] = packet;
  };
  for (std::size_t i = 0; i < burst.size(); ++i) {
    TracedWay* const way = flight.trace.way_of(flight.index_of(burst[i]));
    if (way == nullptr) continue;
    pass_before(i);
    PacketView packet = burst[i];
    const std::span<PacketView> alive = run.arm ? twins_.run_straight_traced(packet, *way, run.first, run.last)
                                                : twins_.run_traced(packet, *way, run.first, run.last);
    if (!alive.empty()) burst[left++] = packet;
    first = i + 1;
  }
  pass_before(burst.size());
  return burst.first(left);
}

void FlightTwins::choose_arms(Flight& flight, const plan::Fork& fork) noexcept {
  const std::span<const PacketDescriptor> packets = flight.batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    flight.arms[i] = packets[i].verdict.alive() ? fork.arm_of(packets[i]) : plan::Fork::kNoArm;
  }
  for (const std::uint32_t i : flight.trace.packets()) {
    if (packets[i].verdict.alive())
      flight.trace.way_of(i)->take(flight.arms[i] == plan::Fork::kNoArm ? nullptr : &fork.arms[flight.arms[i]]);
  }
}

void FlightTwins::parse(Flight& flight) noexcept {
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return flight.view(i); },
      [&](std::span<PacketView> burst) { twins_.parse(burst, false); });
}

void FlightTwins::remember(Flight& flight) noexcept {
  flight.arrivals->forget();
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return flight.view(i); },
      [&](std::span<PacketView> burst) {
        twins_.parse(burst, false);
        flight.arrivals->add(burst);
      });
}

void FlightTwins::run_some(Flight& flight, std::span<const std::uint32_t> packets) noexcept {
  const plan::DevicePlan::Run& run = flight.current();
  if (need_room(run.first, run.last)) {
    for (const std::uint32_t packet : packets) flight.give_room(packet);
  }
  std::array<PacketView, function::kBurst> views;
  for (std::size_t i = 0; i < packets.size(); ++i) views[i] = flight.view(packets[i]);
  const std::span<PacketView> burst = std::span(views).first(packets.size());
  twins_.parse(burst, begins_with(flight, run));
  hand_back_states(flight, burst);
  const std::span<PacketView> left = flight.trace.empty() ? pass(run, burst) : pass_traced(flight, burst);
  for (const PacketView& packet : left) flight.note_frame(packet);
}

}  // namespace penstock::run
