// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/receiver.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "base/thread_time.h"

namespace penstock::run {

namespace {

constexpr std::chrono::milliseconds kLongestSleep{20};
constexpr std::chrono::microseconds kShortSleep{100};  // for sources that wake nobody, and while there is no room

ring::RingShape shape_for(const RunSettings& settings) {
  // As large as any frame that workers can take.
  ring::RingShape shape;
  shape.batch_bytes = settings.batch_bytes;
  shape.batch_packets = std::min<std::size_t>(settings.batch_packets, 512);
  shape.waiting_bytes = settings.batch_bytes;
  return shape;
}

}  // namespace

Receiver::Receiver(const Chain& chain, const PacketMemory& memory, SharedQueue& queue)
    : chain_(chain), queue_(queue), counters_(chain), ring_(shape_for(chain.settings), &memory) {}

void Receiver::begin() noexcept {
  for (std::size_t p = 0; p < chain_.ports.size(); ++p) {
    port::Port& port = *chain_.ports[p].port;
    for (unsigned w = 0; w < chain_.settings.workers; ++w) {
      port::RxQueue* const queue = port.rx(w);
      if (queue == nullptr) continue;
      sources_.push_back({queue, static_cast<PortIndex>(p), w, port.lossless(), queue->next_time_ns().has_value()});
    }
  }
}

void Receiver::run(const std::atomic<bool>& stop) noexcept {
  const std::chrono::nanoseconds before = thread_time();
  const auto ended = [](const Source& source) { return source.ended; };
  while (holds_ != nullptr || !std::ranges::all_of(sources_, ended)) {
    if (stop.load(std::memory_order_relaxed) && holds_ == nullptr) break;
    pulse_.add(1);  // a full queue stops the workers' pulses, if they are the reason
    bool received = false;
    if (holds_ != nullptr) {
      received = hand_over(*holds_);
    } else {
      for (Source& source : sources_) {
        if (!source.ended && holds_ == nullptr) received |= receive_from(source);
      }
    }
    if (!received) rest();
  }
  queue_.end();
  done_.store(true);
  counters_.cpu_time_ns.add(static_cast<std::uint64_t>((thread_time() - before).count()));
}

bool Receiver::receive_from(Source& source) noexcept {
  if (needs_ > 0 && !source.lossless && !queue_.has_room(needs_)) return lose(source);
  Batch& batch = *ring_.filling();
  const port::RxStatus status =
      source.timed ? source.queue->poll_until(batch, others_come_at(source)) : source.queue->poll(batch);
  source.ended = status == port::RxStatus::end;
  if (status == port::RxStatus::copy) {  // the worker that owns the packet puts it into the same queue
    batch.reset(batch.next_sequence());
    return true;
  }
  if (batch.empty()) return source.ended;
  count_in(source, batch.size(), batch.frame_bytes());
  handed_over_ = 0;
  hand_over(source);
  return true;
}

/// The capture time of the next packet of other ports, by which they are merged.
std::uint64_t Receiver::others_come_at(const Source& source) const noexcept {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const Source& other : sources_) {
    if (other.port == source.port || other.worker != source.worker || other.ended || !other.timed) continue;
    if (const auto time = other.queue->next_time_ns()) first = std::min(first, *time);
  }
  return first;
}

/// Packets without room, unseen by the chain.
bool Receiver::lose(Source& source) noexcept {
  const port::RxQueue::Discarded lost = source.queue->discard(ring_.shape().batch_packets);
  source.ended = lost.status == port::RxStatus::end;
  count_in(source, lost.packets, lost.bytes);
  count_lost(lost.packets, lost.bytes);
  return lost.packets > 0 || source.ended;
}

/// Copies the packets of the batch into the queue. Those of a lossless source may stay in the batch until there is
/// room. False: nothing was done.
bool Receiver::hand_over(Source& source) noexcept {
  Batch& batch = *ring_.filling();
  const SharedQueue::Polled polled{Batch::Clock::now(), source.queue->arrivals_to_clock()};
  const std::size_t before = handed_over_;
  for (; handed_over_ < batch.size(); ++handed_over_) {
    const PacketDescriptor& packet = batch.packets()[handed_over_];
    const std::span<const std::uint8_t> frame(batch.frame(packet), packet.length);
    const Arrival arrival{packet.timestamp_ns, packet.wire_length, packet.in_port, packet.link_type, packet.number};
    if (queue_.push(frame, arrival, polled)) {
      needs_ = 0;
      continue;
    }
    needs_ = frame.size();
    if (source.lossless && frame.size() <= queue_.longest_frame()) break;
    count_lost(1, frame.size());
  }
  queue_.announce();
  if (handed_over_ < batch.size()) {
    holds_ = &source;
    return handed_over_ > before;
  }
  holds_ = nullptr;
  if (batch.lent() > 0) source.queue->take_back(batch.lent());
  batch.reset(batch.next_sequence());
  return true;
}

void Receiver::count_in(const Source& source, std::uint64_t packets, std::uint64_t bytes) noexcept {
  counters_.in.add(packets, bytes);
  counters_.port_in[source.port].add(packets, bytes);
}

void Receiver::count_lost(std::uint64_t packets, std::uint64_t bytes) noexcept {
  counters_.dropped_by_chain[static_cast<std::size_t>(ChainDrop::queue_full)].add(packets, bytes);
}

/// Until packets come. The time bounds how late it notices that it is to stop.
void Receiver::rest() noexcept {
  wake_ups_.clear();
  const bool can_wait = holds_ == nullptr && std::ranges::all_of(sources_, [this](const Source& source) {
                          return source.ended || source.queue->add_wake_ups(wake_ups_);
                        });
  if (!can_wait) return std::this_thread::sleep_for(kShortSleep);
  const timespec time{0, std::chrono::nanoseconds(kLongestSleep).count()};
  static_cast<void>(::ppoll(wake_ups_.data(), wake_ups_.size(), &time, nullptr));
}

}  // namespace penstock::run
