// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa/sa_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "nf/ipsec/numbers/device_numbers.h"

namespace penstock::ipsec {

std::uint64_t SequenceCounter::most_of(const SecurityAssociation& sa) noexcept {
  const bool wraps = sa.sequence_may_wrap && !sa.esn;  // packets carry the low half, so a 64-bit counter can go on
  return sa.esn || wraps ? std::numeric_limits<std::uint64_t>::max() : std::numeric_limits<std::uint32_t>::max();
}

namespace {

void raise_to(std::atomic<std::uint64_t>& number, std::uint64_t least) noexcept {
  std::uint64_t now = number.load(std::memory_order_relaxed);
  while (now < least && !number.compare_exchange_weak(now, least)) continue;
}

}  // namespace

void SequenceCounter::advance_to(std::uint64_t sent) noexcept {
  sent = std::min(sent, most());
  raise_to(elsewhere_, sent);
  raise_to(sent_, sent);  // while frozen, kLast stays
}

std::uint64_t SequenceCounter::freeze() noexcept {
  raise_to(elsewhere_, sent());  // so that `sent()` never goes back
  if (is_frozen_.exchange(true)) return elsewhere_.load(std::memory_order_relaxed);
  // A `take` that has read an earlier value fails to exchange it, and then finds nothing left. So the value read here
  // is the last number that anybody has got.
  raise_to(elsewhere_, sent_.exchange(kLast));
  return elsewhere_.load(std::memory_order_relaxed);
}

void SequenceCounter::reserve_to(std::uint64_t end) noexcept { raise_to(reserved_, std::min(end, most())); }

namespace {

/// So few that a successor is due: seconds' worth at the highest rates.
constexpr std::uint64_t kFewNumbers = std::uint64_t{1} << 24;

bool has_limit(const Lifetime& lifetime) noexcept {
  return lifetime.packets != kUnlimited || lifetime.bytes != kUnlimited;
}

}  // namespace

SaState::SaState(const SecurityAssociation& sa, SaOrigin origin, std::shared_ptr<DeviceCounting> counting)
    : numbers(sa.sequence.sent, SequenceCounter::most_of(sa)),
      window(sa.replay_window),
      origin_(std::move(origin)),
      counting_(std::move(counting)),
      lifetimes_(sa.lifetimes),
      limited_(has_limit(sa.lifetimes.soft) || has_limit(sa.lifetimes.hard)),
      first_used_(sa.lifetimes.first_used.value_or(0)),
      packets_(sa.lifetimes.packets),
      bytes_(sa.lifetimes.bytes) {
  if (packets() >= lifetimes_.soft.packets) reach(soft_, Limit::packets);
  if (bytes() >= lifetimes_.soft.bytes) reach(soft_, Limit::bytes);
  if (packets() >= lifetimes_.hard.packets) reach(hard_, Limit::packets);
  if (bytes() >= lifetimes_.hard.bytes) reach(hard_, Limit::bytes);
  receive_as(sa.sequence);
}

SaState::~SaState() = default;

std::uint64_t SaState::sent() const noexcept {
  const std::uint64_t on_host = numbers.sent();
  return is_on_device() ? std::max(on_host, counting_->sent(*this)) : on_host;
}

void SaState::reserve_to(std::uint64_t end) noexcept {
  numbers.reserve_to(end);
  if (is_on_device()) counting_->reserve(*this);
}

SequenceRange SaState::take_on_device(std::uint32_t count) noexcept { return counting_->take(*this, count); }

void SaState::begin_run(std::uint64_t sent, std::uint64_t iv_base, std::uint64_t most) noexcept {
  numbers.advance_to(sent);
  numbers.limit_to(sent > std::numeric_limits<std::uint64_t>::max() - most ? std::numeric_limits<std::uint64_t>::max()
                                                                           : sent + most);
  iv_base_ = iv_base;
  near_end_told_.store(false, std::memory_order_relaxed);
}

void SaState::end_run() noexcept {
  if (is_on_device()) counting_->leave(*this);
  numbers.revoke();
}

void SaState::advance(const SecurityAssociation& sa) noexcept {
  numbers.advance_to(sa.sequence.sent);
  receive_as(sa.sequence);
  raise_to(packets_, sa.lifetimes.packets);
  raise_to(bytes_, sa.lifetimes.bytes);
}

void SaState::receive_as(const SequenceState& sequence) noexcept {
  if (sequence.received == 0) return;
  static_cast<void>(window.accept(sequence.received));
  for (std::uint32_t behind = 0; behind < sequence.window.size() * 32; ++behind) {
    const bool received = (sequence.window[behind / 32] >> behind % 32 & 1) != 0;
    if (received && behind < sequence.received) static_cast<void>(window.accept(sequence.received - behind));
  }
}

void SaState::reach(std::atomic<Limit>& which, Limit limit) noexcept {
  Limit none = Limit::none;
  which.compare_exchange_strong(none, limit, std::memory_order_relaxed);
}

/// As in Linux: a limit of N packets admits N; a limit of N bytes also admits the packet that reaches it.
bool SaState::count(std::uint64_t bytes, Seconds now) noexcept {
  use(now);
  const std::uint64_t packets_before = packets_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t bytes_before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const bool no_packet = packets_before >= lifetimes_.hard.packets;
  if (no_packet || bytes_before >= lifetimes_.hard.bytes) {
    reach(hard_, no_packet ? Limit::packets : Limit::bytes);
    packets_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  if (packets_before + 1 >= lifetimes_.soft.packets) reach(soft_, Limit::packets);
  if (bytes_before + bytes >= lifetimes_.soft.bytes) reach(soft_, Limit::bytes);
  return true;
}

bool SaState::is_near_end() const noexcept {
  const std::uint64_t in_flight = in_flight_.load(std::memory_order_relaxed);
  if (in_flight == 0 || !limited_) return false;
  // Packets in flight now, plus those that start before the devices know.
  const std::uint64_t coming = 2 * in_flight;
  const std::uint64_t packets_so_far = packets();
  const std::uint64_t bytes_so_far = bytes();
  const std::uint64_t mean_bytes = packets_so_far == 0 ? 0 : bytes_so_far / packets_so_far + 1;
  const auto reaches = [](std::uint64_t carried, std::uint64_t more, std::uint64_t most) {
    return most != kUnlimited && (carried >= most || most - carried < more);
  };
  return reaches(packets_so_far, coming, lifetimes_.hard.packets) ||
         reaches(bytes_so_far, coming * mean_bytes, lifetimes_.hard.bytes);
}

Reason SaState::admit(std::uint64_t sequence, bool authentic) noexcept {
  // The window is checked first and updated only for authenticated packets (RFC 4303 §3.4.3).
  const Reason reason = authentic ? window.accept(sequence) : window.check(sequence);
  if (reason != Reason::none) {
    count_replayed();
    return reason;
  }
  if (authentic) return Reason::none;
  refused_.fetch_add(1, std::memory_order_relaxed);
  return Reason::integrity;
}

void SaState::check_times(const Lifetime& lifetime, std::atomic<Limit>& which, Seconds now) noexcept {
  const auto over = [now](std::uint64_t seconds, Seconds since) {
    return seconds != 0 && since != 0 && now >= since && static_cast<std::uint64_t>(now - since) >= seconds;
  };
  if (over(lifetime.seconds_from_add, lifetimes_.added.value_or(0))) reach(which, Limit::seconds_from_add);
  if (over(lifetime.seconds_from_use, first_used_.load(std::memory_order_relaxed)))
    reach(which, Limit::seconds_from_use);
}

bool SaState::look_at(Seconds now) noexcept {
  check_times(lifetimes_.soft, soft_, now);
  check_times(lifetimes_.hard, hard_, now);
  if (numbers.left() < kFewNumbers) reach(soft_, Limit::sequence);
  if (numbers.exhausted()) reach(hard_, Limit::sequence);
  if (!has_news()) return false;
  const unsigned news = reached();
  return (news & ~told_.fetch_or(news, std::memory_order_relaxed)) != 0;
}

std::optional<SaState::Seconds> SaState::next_deadline() const noexcept {
  if (ended()) return std::nullopt;
  std::optional<Seconds> next;
  const auto add = [&next](std::uint64_t seconds, Seconds since) {
    if (seconds == 0 || since == 0) return;
    const Seconds at = since + static_cast<Seconds>(std::min<std::uint64_t>(seconds, std::uint64_t{1} << 40));
    if (!next || at < *next) next = at;
  };
  for (const bool hard : {false, true}) {
    if (!hard && soft() != Limit::none) continue;
    const Lifetime& lifetime = hard ? lifetimes_.hard : lifetimes_.soft;
    add(lifetime.seconds_from_add, lifetimes_.added.value_or(0));
    add(lifetime.seconds_from_use, first_used_.load(std::memory_order_relaxed));
  }
  return next;
}

std::string_view name(SaState::Limit limit) noexcept {
  switch (limit) {
    case SaState::Limit::none: break;
    case SaState::Limit::packets: return "packets";
    case SaState::Limit::bytes: return "bytes";
    case SaState::Limit::seconds_from_add: return "seconds since it was added";
    case SaState::Limit::seconds_from_use: return "seconds since it was first used";
    case SaState::Limit::sequence: return "sequence numbers";
  }
  return "none";
}

}  // namespace penstock::ipsec
