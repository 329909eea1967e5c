// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/queues.h"

#include <utility>

#include "port/live/fits_link.h"
#include "port/live/realtime_offset.h"

namespace penstock::port::dpdk {

DpdkRx::DpdkRx(unsigned worker, bool receives, const ReceiveSide& side)
    : worker_(worker),
      receives_(receives),
      side_(side),
      intake_(worker, side.port, side.exchange),
      lent_(receives ? side.most_lent : 0),
      joined_(receives ? kLongestFrame : 0) {}

RxStatus DpdkRx::poll(Batch& batch) noexcept {
  if (side_.exchange == nullptr) return receive(batch);
  return side_.exchange->poll_in_turns(worker_, batch, side_.port, [&] { return receive(batch); });
}

RxStatus DpdkRx::receive(Batch& batch) noexcept {
  while (receives_ && next_frame()) {
    const Intake::Taken taken = intake_.take(batch, frame_);
    if (taken == Intake::Taken::full) return RxStatus::more;
    done_with_frame(taken == Intake::Taken::lent);
  }
  return RxStatus::idle;
}

/// The next frame that has not been taken, in `frame_`. False: there is none now.
bool DpdkRx::next_frame() noexcept {
  if (is_open_) return true;
  for (;;) {
    if (next_ == received_) {
      give_back();
      next_ = 0;
      received_ = side_.device->receive(worker_, burst_);
      if (received_ == 0) return false;
      received_at_ns_ = system_time_ns();
    }
    const Received& received = burst_[next_];
    frame_ = {};
    frame_.timestamp_ns = received_at_ns_;
    frame_.wire_length = received.length;
    is_open_ = true;
    if (received.bytes != nullptr) {
      frame_.bytes = {received.bytes, received.length};
      if (can_be_lent(received)) {
        frame_.can_be_lent = true;
        frame_.region = *side_.region;
        frame_.offset = static_cast<std::uint32_t>(received.bytes - side_.memory.data());
      }
      return true;
    }
    if (received.length <= joined_.size()) {
      side_.device->join(received, joined_.data());
      frame_.bytes = {joined_.data(), received.length};
      return true;
    }
    too_long_.add(1);
    done_with_frame(false);
  }
}

bool DpdkRx::can_be_lent(const Received& received) const noexcept {
  if (!side_.region || lent_count_ == lent_.size() || received.headroom < side_.room.head ||
      received.tailroom < side_.room.tail) {
    return false;
  }
  return received.bytes - side_.room.head >= side_.memory.data() &&
         received.bytes + received.length + side_.room.tail <= side_.memory.data() + side_.memory.size();
}

void DpdkRx::done_with_frame(bool lent) noexcept {
  const Buffer buffer = burst_[next_++].buffer;
  is_open_ = false;
  if (!lent) {
    free_[free_count_++] = buffer;
    return;
  }
  const std::size_t at = first_lent_ + lent_count_++;
  lent_[at < lent_.size() ? at : at - lent_.size()] = buffer;
}

void DpdkRx::give_back() noexcept {
  if (free_count_ == 0) return;
  side_.device->give_back({free_.data(), free_count_});
  free_count_ = 0;
}

void DpdkRx::take_back(std::size_t frames) noexcept {
  while (frames > 0) {
    const std::size_t run = std::min(frames, lent_.size() - first_lent_);
    side_.device->give_back({lent_.data() + first_lent_, run});
    first_lent_ = first_lent_ + run == lent_.size() ? 0 : first_lent_ + run;
    lent_count_ -= run;
    frames -= run;
  }
}

RxQueue::Discarded DpdkRx::discard(std::size_t most) noexcept {
  Discarded all;
  if (side_.exchange != nullptr) all = side_.exchange->discard(worker_, most);
  while (receives_ && all.packets < most && next_frame()) {
    const Discarded left = intake_.give_up(frame_);
    all.packets += left.packets;
    all.bytes += left.bytes;
    done_with_frame(false);
  }
  all.status = all.packets >= most ? RxStatus::more : RxStatus::idle;
  return all;
}

std::size_t DpdkRx::end() noexcept {
  const std::size_t left = received_ - next_;
  while (next_ < received_) done_with_frame(false);
  give_back();
  take_back(lent_count_);
  return left;
}

DpdkTx::DpdkTx(Device& device, unsigned queue, SendQueue* turn, std::size_t slots, std::size_t mtu)
    : device_(device),
      queue_(queue),
      turn_(turn),
      mtu_(mtu),
      waiting_{std::vector<Buffer>(slots), std::vector<std::uint32_t>(slots)} {}

std::size_t DpdkTx::send(std::span<const PacketView> packets) noexcept {
  up_ = device_.is_up();
  std::size_t accepted = 0;
  for (const PacketView& view : packets) {
    if (put(view)) {
      ++accepted;
    } else {
      view.packet->verdict = Verdict::drop(0);
    }
  }
  accepted_ += accepted;
  return accepted;
}

bool DpdkTx::put(const PacketView& view) noexcept {
  if (!up_) {
    refusals_.down.add(1);
    return false;
  }
  const std::size_t length = view.length();
  if (!fits_link(view, mtu_)) {
    refusals_.too_long.add(1);
    return false;
  }
  if (waiting_count_ == waiting_.buffers.size()) offer();
  const Buffer buffer = waiting_count_ == waiting_.buffers.size() ? nullptr : device_.copy({view.frame, length});
  if (buffer == nullptr) {
    refusals_.ring_full.add(1);
    return false;
  }
  waiting_.buffers[waiting_count_] = buffer;
  waiting_.lengths[waiting_count_++] = static_cast<std::uint32_t>(length);
  return true;
}

/// Offers the frames that wait to the device, without waiting for it or for other workers.
void DpdkTx::offer() noexcept {
  if (pending() > 0 && (turn_ == nullptr || !turn_->busy.exchange(true, std::memory_order_acquire))) {
    first_waiting_ += device_.send(queue_, std::span(waiting_.buffers).subspan(first_waiting_, pending()));
    if (turn_ != nullptr) turn_->busy.store(false, std::memory_order_release);
  }
  constexpr unsigned kMostTries = 1000;
  if (pending() > 0 && (!device_.is_up() || (stopping_.load(std::memory_order_relaxed) && ++tries_ > kMostTries))) {
    refusals_.down.add(pending());
    give_up(first_waiting_);
  }
  // The rest moves to the start, so that there is room after it.
  for (std::size_t i = 0; first_waiting_ > 0 && i < pending(); ++i) {
    waiting_.buffers[i] = waiting_.buffers[first_waiting_ + i];
    waiting_.lengths[i] = waiting_.lengths[first_waiting_ + i];
  }
  waiting_count_ = pending();
  first_waiting_ = 0;
}

/// Frames that were accepted are lost, from this one on.
void DpdkTx::give_up(std::size_t from) noexcept {
  device_.give_back({waiting_.buffers.data() + from, waiting_count_ - from});
  lost_.packets += waiting_count_ - from;
  for (std::size_t i = from; i < waiting_count_; ++i) lost_.bytes += waiting_.lengths[i];
  waiting_count_ = from;
}

Lost DpdkTx::flush() noexcept {
  offer();
  return std::exchange(lost_, {});
}

Departures DpdkTx::departures() noexcept {
  if (pending() > 0) offer();
  return {accepted_, accepted_ - pending()};
}

void DpdkTx::end() noexcept { give_up(first_waiting_); }

}  // namespace penstock::port::dpdk
