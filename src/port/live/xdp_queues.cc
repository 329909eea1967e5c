// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/xdp_queues.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "port/live/fits_link.h"
#include "port/live/realtime_offset.h"

namespace penstock::port {

XdpRx::XdpRx(unsigned worker, const XdpReceiving& how, Exchange* exchange, const InterfaceWatch& watch,
             std::vector<Source> sources, std::size_t chunks)
    : worker_(worker),
      how_(how),
      exchange_(exchange),
      watch_(watch),
      intake_(worker, how.port, exchange),
      sources_(std::move(sources)),
      lent_(chunks) {}

RxStatus XdpRx::poll(Batch& batch) noexcept {
  if (exchange_ == nullptr) return receive(batch);
  return exchange_->poll_in_turns(worker_, batch, how_.port, [&] { return receive(batch); });
}

/// Takes what each source has now, so that others have their turn.
RxStatus XdpRx::receive(Batch& batch) noexcept {
  now_ns_ = system_time_ns();
  for (std::size_t turn = 0; turn < sources_.size(); ++turn) {
    Source& source = sources_[current_];
    bool is_full = false;
    for (std::uint32_t left = source.receiver.available(); left > 0 && !is_full && open_frame(source); --left) {
      const Intake::Taken taken = intake_.take(batch, frame_);
      is_full = taken == Intake::Taken::full;
      if (!is_full) close_frame(source, taken == Intake::Taken::lent);
    }
    end_turn(source);
    if (is_full) return RxStatus::more;
    current_ = current_ + 1 == sources_.size() ? 0 : current_ + 1;
  }
  return starved(!batch.empty()) ? RxStatus::starved : RxStatus::idle;
}

/// Takes the source's next frame, unless there is one that has not been taken completely.
bool XdpRx::open_frame(Source& source) noexcept {
  if (is_open_) return true;
  const XdpReceiver::Frame next = source.receiver.front();
  if (next.bytes.empty()) return false;
  frame_ = {};
  frame_.bytes = next.bytes;
  frame_.wire_length = static_cast<std::uint32_t>(next.bytes.size());
  frame_.timestamp_ns = now_ns_;
  if (how_.completes) frame_.offload = find_offload(next.bytes, watch_.mtu());
  if (how_.region && !next.is_joined && next.tailroom >= how_.tailroom) {
    frame_.can_be_lent = true;
    frame_.region = *how_.region;
    frame_.offset = static_cast<std::uint32_t>(source.region_offset + next.at);
  }
  at_ = next.at;
  is_open_ = true;
  return true;
}

void XdpRx::close_frame(Source& source, bool lent) noexcept {
  if (lent) {
    const std::size_t last = first_lent_ + lent_count_++;
    lent_[last < lent_.size() ? last : last - lent_.size()] = {static_cast<std::uint32_t>(current_), at_};
  }
  source.receiver.pop(lent);
  is_open_ = false;
}

void XdpRx::end_turn(Source& source) noexcept {
  wrong_length_.add(source.receiver.take_wrong_length());
  source.receiver.publish();
  if (source.receiver.needs_wakeup() || (how_.busy_polls && source.receiver.available() == 0))
    static_cast<void>(::recvfrom(source.socket->fd().get(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr));
}

/// Sources that have frames go on, unless the batch can leave for one that cannot.
bool XdpRx::starved(bool has_frames) const noexcept {
  const auto is_starved = [](const Source& source) { return source.receiver.starved(); };
  if (sources_.empty()) return false;
  return has_frames ? std::ranges::any_of(sources_, is_starved) : std::ranges::all_of(sources_, is_starved);
}

void XdpRx::take_back(std::size_t frames) noexcept {
  lent_count_ -= frames;
  for (; frames > 0; --frames) {
    const Lent& one = lent_[first_lent_];
    sources_[one.source].receiver.take_back(one.at);
    first_lent_ = first_lent_ + 1 == lent_.size() ? 0 : first_lent_ + 1;
  }
  for (Source& source : sources_) end_turn(source);
}

bool XdpRx::add_wake_ups(std::vector<pollfd>& to) noexcept {
  for (const Source& source : sources_) to.push_back({source.socket->fd().get(), POLLIN, 0});
  if (exchange_ != nullptr) to.push_back({exchange_->wait_fd(worker_), POLLIN, 0});
  return true;
}

RxQueue::Discarded XdpRx::discard(std::size_t most) noexcept {
  Discarded all;
  if (exchange_ != nullptr) all = exchange_->discard(worker_, most);
  for (std::size_t turn = 0; turn < sources_.size() && all.packets < most; ++turn) {
    Source& source = sources_[current_];
    while (all.packets < most && open_frame(source)) {
      const Discarded left = intake_.give_up(frame_);
      all.packets += left.packets;
      all.bytes += left.bytes;
      close_frame(source, false);
    }
    end_turn(source);
    current_ = current_ + 1 == sources_.size() ? 0 : current_ + 1;
  }
  all.status = all.packets >= most ? RxStatus::more : RxStatus::idle;
  return all;
}

std::size_t XdpTx::send(std::span<const PacketView> packets) noexcept {
  const auto held = lock();
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

bool XdpTx::put(const PacketView& view) noexcept {
  if (!watch_.can_send()) {
    refusals_.down.add(1);
    return false;
  }
  const std::span<const std::uint8_t> frame(view.frame, view.length());
  if (!fits_link(view, watch_.mtu()) || frame.size() > sender_.longest_frame()) {
    refusals_.too_long.add(1);
    return false;
  }
  if (sender_.put(frame)) return true;
  offer();
  if (sender_.put(frame)) return true;
  refusals_.ring_full.add(1);
  return false;
}

void XdpTx::offer() noexcept {
  const Lost lost = sender_.offer();
  lost_.packets += lost.packets;
  lost_.bytes += lost.bytes;
  refusals_.dropped.add(lost.packets);
}

Lost XdpTx::flush() noexcept {
  const auto held = lock();
  offer();
  return std::exchange(lost_, {});
}

Departures XdpTx::departures() noexcept {
  const auto held = lock();
  if (sender_.waiting() == 0) return {accepted_, accepted_};
  // Frames stay in the ring while the interface is down; the batches that they came in need not wait for that.
  constexpr unsigned kMostTries = 1000;
  const bool gives_up = stopping_.load(std::memory_order_relaxed) && ++tries_ > kMostTries;
  if (!watch_.can_send() || gives_up) return {accepted_, accepted_};
  offer();
  return {accepted_, accepted_ - std::min<std::uint64_t>(accepted_, sender_.waiting())};
}

}  // namespace penstock::port
