// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/shared_queue.h"

#include <algorithm>
#include <cstring>

namespace penstock::run {

namespace {

constexpr unsigned kPortion = 64;
constexpr std::size_t kLeastRing = std::size_t{1} << 20;  // half of it holds the longest frame of any capture

/// What precedes a frame in the ring.
struct Record {
  Arrival arrival;
  SharedQueue::Polled polled;
};
constexpr std::size_t kRecordBytes = sizeof(Record);

constexpr std::size_t bytes_of(std::size_t frame) noexcept { return kRecordBytes + aligned_frame(frame); }

bool same(const SharedQueue::Polled& a, const SharedQueue::Polled& b) noexcept {
  return a.time == b.time && a.to_clock == b.to_clock;
}

}  // namespace

SharedQueue::SharedQueue(std::size_t bytes) : most_bytes_(bytes), ring_(std::max(bytes, kLeastRing)) {}

std::size_t SharedQueue::longest_frame() const noexcept { return ring_.longest_record() - kRecordBytes; }

bool SharedQueue::has_room(std::size_t length) const noexcept {
  const std::uint64_t used = pushed_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_acquire);
  return used == 0 || used + bytes_of(length) <= most_bytes_;
}

bool SharedQueue::push(std::span<const std::uint8_t> frame, const Arrival& arrival, const Polled& polled) noexcept {
  if (!has_room(frame.size()) || frame.size() > longest_frame()) return false;
  std::uint8_t* const to = ring_.begin_write(kRecordBytes + frame.size());
  if (to == nullptr) return false;
  const Record record{arrival, polled};
  std::memcpy(to, &record, kRecordBytes);
  if (!frame.empty()) std::memcpy(to + kRecordBytes, frame.data(), frame.size());
  ring_.end_write();
  pushed_.store(pushed_.load(std::memory_order_relaxed) + bytes_of(frame.size()));
  return true;
}

void SharedQueue::announce() noexcept {
  if (sleeping_.load() > 0) wake_one();
}

void SharedQueue::wake_one() noexcept {
  // With the lock, so that a worker between its last look and its sleep does not miss it.
  { const std::lock_guard lock(waking_); }
  awake_.notify_one();
}

void SharedQueue::end() noexcept {
  ended_.store(true);
  { const std::lock_guard lock(waking_); }
  awake_.notify_all();
}

port::RxStatus SharedQueue::poll(Batch& batch) noexcept {
  const bool ended = ended_.load();  // before the look at the packets
  port::RxStatus status = ended ? port::RxStatus::end : port::RxStatus::idle;
  bool more = false;
  {
    const std::lock_guard lock(taking_);
    std::uint64_t taken = 0;
    std::optional<Polled> marked;
    for (unsigned i = 0;; ++i) {
      const std::span<const std::uint8_t> oldest = ring_.front();
      if (oldest.empty()) break;
      more = true;
      if (i == kPortion) {
        status = port::RxStatus::idle;
        break;
      }
      Record record;
      std::memcpy(&record, oldest.data(), kRecordBytes);
      if (marked && !same(*marked, record.polled)) batch.mark_arrivals(marked->time, marked->to_clock);
      const std::span<const std::uint8_t> frame = oldest.subspan(kRecordBytes);
      if (!batch.append(frame, record.arrival)) {
        status = port::RxStatus::more;
        break;
      }
      marked = record.polled;
      taken += bytes_of(frame.size());
      ring_.pop();
      more = false;
    }
    if (marked) batch.mark_arrivals(marked->time, marked->to_clock);
    taken_.store(taken_.load(std::memory_order_relaxed) + taken);
  }
  if (more && sleeping_.load() > 0) wake_one();  // one worker at a time is woken for a burst
  return status;
}

void SharedQueue::wait(Clock::time_point until) noexcept {
  if (has_packets()) return;
  std::unique_lock lock(waking_);
  sleeping_.fetch_add(1);
  if (!has_packets() && !ended_.load()) awake_.wait_until(lock, until);
  sleeping_.fetch_sub(1);
}

}  // namespace penstock::run
