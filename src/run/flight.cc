// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/flight.h"

#include "function/granted_stage.h"

namespace penstock::run {

void Flight::begin(Batch& its_batch, LaneState* over, StageSet& its_epoch) noexcept {
  epoch = &its_epoch;
  batch = &its_batch;
  lane = over;
  on_device = over != nullptr;
  run = 0;
  filled_run = kNoRun;
  listed = false;
  scratch.reset();
  for (FrameScratch& buffer : own_buffers) buffer.reset();
  punted.clear();
  finish_waits = false;
  waiting.clear();
  exchanged.clear();
}

std::uint64_t Flight::grant(std::size_t segment, std::size_t stage) const noexcept {
  const auto* const of_proxy = dynamic_cast<const function::GrantingLane*>(lane->lane.get());
  return of_proxy == nullptr ? 0 : of_proxy->grant(segment, stage);
}

void Flight::list() noexcept {
  if (std::exchange(listed, true)) return;
  for (std::size_t i = 0; i < batch->size(); ++i) frames[i] = batch->view(i).frame;
}

void Flight::copy_frames(FrameScratch& into) noexcept {
  list();
  const std::span<const PacketDescriptor> packets = batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (packets[i].verdict.alive()) frames[i] = into.with_room(i, frames[i], packets[i].length);
  }
}

void Flight::note_frame(PacketView packet) noexcept {
  const bool is_replaced = emissions.has_frame(packet.frame);
  if (is_replaced) list();
  if (!listed) return;
  frames[index_of(packet)] = packet.frame;
  if (is_replaced && on_device) punted.push_back(static_cast<std::uint32_t>(index_of(packet)));
}

void Flight::give_room(std::size_t packet) noexcept {
  list();
  std::uint8_t*& frame = frames[packet];
  if (emissions.has_frame(frame)) return;  // it has room
  if (gathers && scratch.empty()) reserve_in_packet_order();
  PacketDescriptor& descriptor = batch->packets()[packet];
  frame = scratch.with_room(packet, frame, descriptor.length);
  // The start of a frame may move down by more than its place in the batch.
  descriptor.offset = static_cast<std::uint32_t>(frame - scratch.memory().data());
}

void Flight::give_room_to_all() noexcept {
  const std::span<const PacketDescriptor> packets = batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (packets[i].verdict.alive()) give_room(i);
  }
}

/// Also for packets that are set aside, since arms run one after the other.
void Flight::reserve_in_packet_order() noexcept {
  const std::span<const PacketDescriptor> packets = batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const Verdict verdict = is_in_arm(i) ? packets[i].verdict : set_aside[i];
    const bool goes_on = verdict.alive() || verdict.kind == VerdictKind::punt;
    if (goes_on && !emissions.has_frame(frames[i])) scratch.reserve(i, packets[i].length);
  }
}

void Flight::gather() noexcept {
  if (!listed && current().arm) list();
  if (!listed || !gathers) return;
  const std::span<const PacketDescriptor> packets = batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (packets[i].verdict.alive() && frames[i] != batch->view(i).frame) return give_room_to_all();
  }
}

void Flight::set_punted_aside() noexcept {
  for (const std::uint32_t packet : punted) {
    Verdict& verdict = batch->packets()[packet].verdict;
    if (verdict.alive()) set_aside[packet] = std::exchange(verdict, Verdict::punt());
  }
}

void Flight::restore_punted() noexcept {
  for (const std::uint32_t packet : punted) {
    Verdict& verdict = batch->packets()[packet].verdict;
    if (verdict.kind == VerdictKind::punt) verdict = set_aside[packet];
  }
}

/// While they are set aside, the device treats them as consumed.
void Flight::set_other_arms_aside() noexcept {
  if (!current().arm) return;
  const std::span<PacketDescriptor> packets = batch->packets();
  const bool will_be_listed = !listed && is_device(current().processor) && shape().frames_down;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (is_in_arm(i)) continue;
    if (will_be_listed) frames[i] = batch->view(i).frame;
    set_aside[i] = packets[i].verdict;
    if (packets[i].verdict.alive()) packets[i].verdict = Verdict::consume();
  }
}

void Flight::restore_other_arms() noexcept {
  if (!current().arm) return;
  const std::span<PacketDescriptor> packets = batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (!is_in_arm(i)) packets[i].verdict = set_aside[i];
  }
}

}  // namespace penstock::run
