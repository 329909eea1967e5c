// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/held_packets.h"

#include <algorithm>
#include <utility>

#include "packet/flow_hash.h"

namespace penstock::run {

namespace {

// Twice of what may wait, so that moving the packets closer together costs each of them one copy at most, however often
// the oldest of a queue are given up.
constexpr std::size_t kPlaces = 2 * HeldPackets::kMost;
constexpr std::size_t kQueueSlots = 2 * kPlaces;
constexpr std::chrono::seconds kAskAgain{1};
constexpr std::chrono::milliseconds kBetweenReviews{20};  // unless something was learnt

}  // namespace

bool may_hold_packets(const Chain& chain, std::size_t function) {
  if (!is_device(chain.settings.processor)) return true;
  const auto arm = plan::arm_of(chain.forks, function);
  if (!arm) return function + 1 == chain.functions.size();
  const plan::Fork& fork = chain.forks[arm->fork];
  return function + 1 == fork.arms[arm->arm].last && fork.last == chain.functions.size();
}

HeldPackets::HeldPackets(function::HoldingStage::Reasons reasons, FrameRoom room, FunctionCounters& counters)
    : reasons_(reasons), room_(room), counters_(counters), queues_(kQueueSlots) {
  for (Side& side : sides_) {
    side.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(2 * kMostBytes);
    side.descriptors.resize(kPlaces);
    side.entries.resize(kPlaces);
    side.batch = Batch({side.bytes.get(), 2 * kMostBytes}, side.descriptors, room);
  }
}

std::size_t HeldPackets::need(PacketView packet) const noexcept {
  return aligned_frame(room_.head) + aligned_frame(packet.length() + room_.tail);
}

/// Or the free slot where it would be.
HeldPackets::Queue& HeldPackets::queue_of(std::uint64_t lacks) noexcept {
  std::size_t at = mix64(lacks) % kQueueSlots;
  while (queues_[at].last != kNone && queues_[at].lacks != lacks) at = (at + 1) % kQueueSlots;
  return queues_[at];
}

bool HeldPackets::take(PacketView packet, std::uint64_t lacks, bool is_ready, std::uint64_t batch,
                       Clock::time_point now, const Connection& connection) noexcept {
  Queue& queue = queue_of(lacks);
  while (queue.packets > 0 && (queue.packets == kMostOfOne || queue.bytes + packet.length() > kMostBytesOfOne))
    give_up_oldest(queue);
  if (live_ == kMost || need(packet) > kMostBytes - live_bytes_) return false;
  const Batch& used = side().batch;
  if (used.size() == kPlaces || need(packet) > used.capacity_bytes() - used.used_bytes()) compact();
  if (is_ready) {
    due_ = now;
  } else if (live_ == 0) {
    due_ = now + kAskAgain;
  }
  append(packet, {lacks, batch, now, is_ready, connection});
  counters_.held.add(packet.length());
  return true;
}

/// There is room.
void HeldPackets::append(PacketView packet, const Entry& entry) noexcept {
  Side& to = side();
  const auto at = static_cast<std::uint32_t>(to.batch.size());
  static_cast<void>(to.batch.append({packet.frame, packet.length()}, {}));
  PacketDescriptor& descriptor = to.batch.packets().back();
  const std::uint32_t offset = descriptor.offset;
  descriptor = *packet.packet;
  descriptor.offset = offset;
  descriptor.region = PacketMemory::kBatch;
  to.entries[at] = {entry.lacks, entry.batch, entry.since, entry.is_ready, entry.connection};
  Queue& queue = queue_of(entry.lacks);
  queue.lacks = entry.lacks;
  if (queue.packets == 0) {
    queue.first = at;
  } else {
    to.entries[queue.last].next = at;
  }
  queue.last = at;
  ++queue.packets;
  queue.bytes += packet.length();
  ++live_;
  live_bytes_ += need(packet);
}

void HeldPackets::give_up_oldest(Queue& queue) noexcept {
  Side& of = side();
  Entry& oldest = of.entries[queue.first];
  const PacketView packet = of.batch.view(queue.first);
  oldest.gone = true;
  queue.first = oldest.next;
  --queue.packets;
  queue.bytes -= packet.length();
  --live_;
  live_bytes_ -= need(packet);
  counters_.dropped[reasons_.lacking].add(1, packet.length());
  counters_.held.subtract(packet.length());
}

/// Begins to fill the other side. Returns the one that was in use.
HeldPackets::Side& HeldPackets::change_sides() noexcept {
  Side& from = side();
  in_use_ = 1 - in_use_;
  std::ranges::fill(queues_, Queue{});
  live_ = 0;
  live_bytes_ = 0;
  return from;
}

void HeldPackets::compact() noexcept {
  Side& from = change_sides();
  for (std::size_t i = 0; i < from.batch.size(); ++i) {
    if (!from.entries[i].gone) append(from.batch.view(i), from.entries[i]);
  }
  from.batch.reset(0);
}

HeldPackets::Review::Review(HeldPackets& of, std::uint64_t last_batch, bool news, Clock::time_point now) noexcept
    : held_(of), from_(of.change_sides()), last_batch_(last_batch), news_(news), now_(now) {
  held_.due_ = now + kAskAgain;
}

HeldPackets::Review::~Review() {
  for (; next_ < from_.batch.size(); ++next_) {
    Entry& entry = from_.entries[next_];
    if (entry.gone) continue;
    entry.is_ready |= news_;
    if (entry.is_ready) held_.due_ = now_;
    held_.append(from_.batch.view(next_), entry);
  }
  from_.batch.reset(0);
}

Batch& HeldPackets::Review::batch() noexcept { return from_.batch; }

std::span<PacketView> HeldPackets::Review::next() noexcept {
  std::size_t count = 0;
  for (; next_ < from_.batch.size() && count < burst_.size(); ++next_) {
    if (from_.entries[next_].gone) continue;
    if (from_.entries[next_].batch > last_batch_) break;
    at_[count] = static_cast<std::uint32_t>(next_);
    burst_[count] = from_.batch.view(next_);
    burst_[count++].packet->verdict = Verdict::forward();
  }
  return std::span(burst_).first(count);
}

bool HeldPackets::Review::has_waited_long(std::size_t i) const noexcept {
  return now_ - from_.entries[at_[i]].since >= kLongest;
}

void HeldPackets::Review::keep(std::size_t i, std::uint64_t lacks) noexcept {
  const Entry& entry = from_.entries[at_[i]];
  held_.append(burst_[i], {lacks, entry.batch, entry.since, false, entry.connection});
  held_.due_ = std::min(held_.due_, std::max(entry.since + kLongest, now_ + kBetweenReviews));
}

void HeldPackets::Review::let_go(std::size_t i) noexcept { held_.counters_.held.subtract(burst_[i].length()); }

}  // namespace penstock::run
