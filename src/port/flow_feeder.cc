// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/flow_feeder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace penstock::port {

namespace {

constexpr std::size_t kRingBytes = 4 << 20;

/// Precedes each frame in a ring.
struct RingHeader {
  std::uint64_t timestamp_ns;
  std::uint64_t number;
  std::uint32_t wire_length;
  LinkType link_type;
  bool copy;
};

/// Waits for another thread: yields first, then sleeps.
class Patience {
 public:
  void wait() noexcept {
    if (++rounds_ < 64) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  unsigned rounds_ = 0;
};

}  // namespace

FlowFeeder::FlowFeeder(CaptureSequence& captures, unsigned workers) : captures_(&captures), chooser_(workers) {
  for (unsigned i = 0; i < workers; ++i) rings_.push_back(std::make_unique<SpscByteRing>(kRingBytes));
  thread_ = std::thread([this] { run(); });
}

void FlowFeeder::stop() noexcept {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

void FlowFeeder::run() noexcept {
  const auto hand = [this](unsigned worker, const CapturedFrame& frame) noexcept { return hand_over(worker, frame); };
  bool goes_on = true;
  CapturedFrame frame;
  while (goes_on && !stop_.load(std::memory_order_relaxed) && captures_->next(frame)) {
    latest_ns_.store(std::max(frame.timestamp_ns, latest_ns_.load(std::memory_order_relaxed)),
                     std::memory_order_release);
    goes_on = chooser_.take(frame, hand);
  }
  if (!stop_.load(std::memory_order_relaxed)) chooser_.finish(hand);
  latest_ns_.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_release);
  done_.store(true, std::memory_order_release);
}

bool FlowFeeder::hand_over(unsigned worker, const CapturedFrame& frame) noexcept {
  SpscByteRing& ring = *rings_[worker];
  const std::size_t length = sizeof(RingHeader) + frame.bytes.size();
  if (length > ring.longest_record()) {
    note_oversized(frame.bytes.size(), frame.number);
    return false;
  }
  std::uint8_t* to = nullptr;
  for (Patience patience; (to = ring.begin_write(length)) == nullptr; patience.wait()) {
    if (stop_.load(std::memory_order_relaxed)) return false;
  }
  const RingHeader header{frame.timestamp_ns, frame.number, frame.wire_length, frame.link_type, frame.copy};
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to + sizeof header, frame.bytes.data(), frame.bytes.size());
  ring.end_write();
  return true;
}

/// Only the first such frame is reported.
void FlowFeeder::note_oversized(std::size_t bytes, std::uint64_t number) noexcept {
  std::size_t none = 0;
  if (oversized_bytes_.compare_exchange_strong(none, bytes)) oversized_number_ = number;
}

std::uint64_t FlowFeeder::next_time_ns(unsigned worker) noexcept {
  // Load this before looking at the ring: all earlier frames are in the ring by then.
  const std::uint64_t latest = latest_ns_.load(std::memory_order_acquire);
  const std::span<const std::uint8_t> record = rings_[worker]->front();
  if (record.empty()) return latest;
  RingHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  return header.timestamp_ns;
}

RxStatus FlowFeeder::poll(unsigned worker, Batch& batch, PortIndex in_port, std::uint64_t until_ns) noexcept {
  SpscByteRing& ring = *rings_[worker];
  for (;;) {
    // Load this before looking at the ring: if it is set and the ring is then empty, there are no more frames.
    const bool done = done_.load(std::memory_order_acquire);
    const std::span<const std::uint8_t> record = ring.front();
    if (record.empty()) return done ? RxStatus::end : RxStatus::idle;
    RingHeader header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.timestamp_ns > until_ns) return RxStatus::idle;
    const std::span<const std::uint8_t> frame = record.subspan(sizeof header);
    if (header.copy && !batch.empty()) return RxStatus::more;
    if (!batch.append(frame, {header.timestamp_ns, header.wire_length, in_port, header.link_type,
                              static_cast<std::uint32_t>(header.number)})) {
      if (!batch.empty()) return RxStatus::more;
      note_oversized(frame.size(), header.number);
      stop_.store(true);  // otherwise the thread would wait for room in this ring for ever
      return RxStatus::end;
    }
    ring.pop();
    if (header.copy) return RxStatus::copy;
  }
}

}  // namespace penstock::port
