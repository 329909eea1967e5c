// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/exchange.h"

#include <cstring>

namespace penstock::port {

namespace {

constexpr std::size_t kRingBytes = std::size_t{1} << 20;

/// Precedes each frame in a ring.
struct RingHeader {
  std::uint64_t timestamp_ns;
  std::uint32_t wire_length;
  LinkType link_type;
  bool copy;
  bool to_table;  // a fragment whose worker is not known yet
};

}  // namespace

Exchange::Exchange(unsigned workers) : workers_(workers), rings_(workers, kRingBytes), fragments_(workers) {
  for (unsigned worker = 0; worker < workers; ++worker) parts_.push_back(std::make_unique<Part>());
}

bool Exchange::keeps(unsigned here, const CapturedFrame& frame) noexcept {
  Part& part = *parts_[here];
  const WorkerKey key = worker_key_of(frame.bytes, frame.wire_length, frame.link_type, part.scratch);
  if (key.is_fragment) {
    part.entered.add(1);
    if (here == 0) {
      take_fragment(key, frame);
    } else {
      send(here, 0, frame, true);
    }
    return false;
  }
  const unsigned worker = worker_of_hash(key.hash, workers_);
  if (worker == here) return true;
  part.entered.add(1);
  send(here, worker, frame, false);
  return false;
}

/// In worker 0. The fragment's key has just been computed, into the worker's scratch.
void Exchange::take_fragment(const WorkerKey& key, const CapturedFrame& frame) noexcept {
  Part& part = *parts_[0];
  const auto use = [this](unsigned worker, const CapturedFrame& delivered) noexcept {
    send(0, worker, delivered, false);
    return true;
  };
  if (fragments_.has_timed_out(frame.timestamp_ns)) static_cast<void>(fragments_.give_up_old(frame.timestamp_ns, use));
  auto to_rings = use;
  static_cast<void>(fragments_.take(key, part.scratch, frame, to_rings));
}

void Exchange::send(unsigned from, unsigned to, const CapturedFrame& frame, bool to_table) noexcept {
  Part& part = *parts_[from];
  SpscByteRing& ring = rings_.ring(from, to);
  const std::size_t length = sizeof(RingHeader) + frame.bytes.size();
  const bool too_long = length > ring.longest_record();
  std::uint8_t* const record = too_long ? nullptr : ring.begin_write(length);
  if (record == nullptr) {
    if (!frame.copy) (too_long ? part.too_long : part.ring_full).add(1);
    return;
  }
  const RingHeader header{frame.timestamp_ns, frame.wire_length, frame.link_type, frame.copy, to_table};
  std::memcpy(record, &header, sizeof header);
  std::memcpy(record + sizeof header, frame.bytes.data(), frame.bytes.size());
  part.put.add(1);
  ring.end_write();
  rings_.has_written(from, to);
}

void Exchange::pop(Part& part, SpscByteRing& ring) noexcept {
  ring.pop();
  part.popped.add(1);
}

RxStatus Exchange::poll(unsigned here, Batch& batch, PortIndex in_port) noexcept {
  Part& part = *parts_[here];
  rings_.clear_signal(here);
  for (unsigned turn = 0; turn < workers_; ++turn) {
    const unsigned from = (part.next + turn) % workers_;
    SpscByteRing& ring = rings_.ring(from, here);
    for (std::span<const std::uint8_t> record = ring.front(); !record.empty(); record = ring.front()) {
      RingHeader header;
      std::memcpy(&header, record.data(), sizeof header);
      const std::span<const std::uint8_t> bytes = record.subspan(sizeof header);
      if (header.to_table) {
        const CapturedFrame frame{bytes, header.timestamp_ns, header.wire_length, header.link_type, 0, false};
        take_fragment(worker_key_of(bytes, header.wire_length, header.link_type, part.scratch), frame);
        pop(part, ring);
        continue;
      }
      if (header.copy && !batch.empty()) {
        part.next = from;  // the copy needs the next batch, while that is empty
        return RxStatus::more;
      }
      if (!batch.append(bytes, {header.timestamp_ns, header.wire_length, in_port, header.link_type})) {
        if (!batch.empty()) {
          part.next = (from + 1) % workers_;
          return RxStatus::more;
        }
        part.too_long.add(header.copy ? 0 : 1);
        pop(part, ring);
        continue;
      }
      pop(part, ring);
      if (header.copy) return RxStatus::copy;
      part.received.add(1);
    }
  }
  part.next = (part.next + 1) % workers_;
  return RxStatus::idle;
}

RxQueue::Discarded Exchange::discard(unsigned here, std::size_t most) noexcept {
  Part& part = *parts_[here];
  rings_.clear_signal(here);
  RxQueue::Discarded lost;
  for (unsigned from = 0; from < workers_; ++from) {
    SpscByteRing& ring = rings_.ring(from, here);
    for (std::span<const std::uint8_t> record = ring.front(); !record.empty(); record = ring.front()) {
      if (lost.packets == most) {
        lost.status = RxStatus::more;
        return lost;
      }
      RingHeader header;
      std::memcpy(&header, record.data(), sizeof header);
      // Copies are for inspection only, and nothing is waiting for fragments that would have to go on to their worker.
      if (!header.copy) {
        part.received.add(1);
        ++lost.packets;
        lost.bytes += record.size() - sizeof header;
      }
      pop(part, ring);
    }
  }
  return lost;
}

bool Exchange::is_empty() const noexcept {
  // In this order: what is put meanwhile is not taken for nothing.
  std::uint64_t popped = 0, put = 0;
  for (const auto& part : parts_) popped += part->popped.get();
  for (const auto& part : parts_) put += part->put.get();
  return put == popped;
}

Exchange::Counts Exchange::counts() const noexcept {
  Counts counts;
  std::uint64_t entered = 0;
  for (const auto& part : parts_) {
    entered += part->entered.get();
    counts.handed_over += part->received.get();
    counts.ring_full += part->ring_full.get();
    counts.too_long += part->too_long.get();
  }
  const std::uint64_t gone = counts.handed_over + counts.ring_full + counts.too_long;
  counts.left = entered > gone ? entered - gone : 0;
  counts.fragments = fragments_.counts();
  return counts;
}

void Exchange::Counts::add_to(InterfaceCounts& counts) const {
  counts.lost.insert(counts.lost.end(), {{"worker_ring_full", ring_full}, {"too_long_for_worker_ring", too_long}});
  counts.events.emplace_back("handed_over", handed_over);
}

}  // namespace penstock::port
