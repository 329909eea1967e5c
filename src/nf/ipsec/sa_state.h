// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far an SA has got: its sequence numbers, what it has carried, whether it may carry more (RFC 4301 §4.4.2.1). All
// workers change it at once, without a lock; it outlives the tables that name the SA, so that an SA that stays through
// an update goes on where it was; but what workers count for themselves (Carrier) is their function's.

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "nf/ipsec/replay_window.h"
#include "nf/ipsec/sa.h"
#include "report/counter.h"

namespace penstock::ipsec {

/// Sequence numbers, one behind the other.
struct SequenceRange {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
};

/// Outbound numbers of one SA (RFC 4303 §2.2, §3.3.3): each once, and none behind the last one.
class SequenceCounter {
 public:
  /// `sent`: the last one used, 0 for a new SA.
  SequenceCounter(std::uint64_t sent, std::uint64_t most) noexcept : sent_(sent), most_(most) {}

  /// The highest that the SA may use.
  [[nodiscard]] static std::uint64_t most_of(const SecurityAssociation& sa) noexcept;

  /// The next `count`, or as many as there are.
  [[nodiscard]] SequenceRange take(std::uint32_t count) noexcept {
    std::uint64_t sent = sent_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t left = most_ - sent;
      const std::uint32_t taken = left < count ? static_cast<std::uint32_t>(left) : count;
      if (sent_.compare_exchange_weak(sent, sent + taken, std::memory_order_relaxed)) return {sent + 1, taken};
    }
  }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return most_ - sent(); }
  [[nodiscard]] bool exhausted() const noexcept { return left() == 0; }
  /// Numbers up to `sent` have been given out elsewhere.
  void advance_to(std::uint64_t sent) noexcept;

 private:
  std::atomic<std::uint64_t> sent_;
  const std::uint64_t most_;
};

class SaState {
 public:
  /// Seconds since 1970.
  using Seconds = std::int64_t;

  explicit SaState(const SecurityAssociation& sa);

  SequenceCounter numbers;  // out
  ReplayWindow window;      // in

  /// Whether there is a limit of packets or bytes: then each packet is counted here, before it goes on.
  [[nodiscard]] bool limited() const noexcept { return limited_; }
  /// Counts a packet that the SA carries, of `bytes` of IP. False: it may not any more.
  bool carry(std::uint64_t bytes, Seconds now) noexcept;
  /// It carries something: its time from use runs.
  void use(Seconds now) noexcept {
    if (first_used_.load(std::memory_order_relaxed) != 0) return;
    Seconds unused = 0;
    first_used_.compare_exchange_strong(unused, now, std::memory_order_relaxed);
  }
  /// Inwards, in the order of the packets: whether the packet with this number is to be carried, once it is known
  /// whether it is authentic. Takes its number.
  [[nodiscard]] Reason admit(std::uint64_t sequence, bool authentic) noexcept;
  void count_replayed() noexcept { replayed_.fetch_add(1, std::memory_order_relaxed); }

  /// Why the SA is near its end, or at it.
  enum class Limit : std::uint8_t { none, packets, bytes, seconds_from_add, seconds_from_use, sequence };
  [[nodiscard]] Limit soft() const noexcept { return soft_.load(std::memory_order_relaxed); }
  [[nodiscard]] Limit hard() const noexcept { return hard_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool ended() const noexcept { return hard() != Limit::none; }

  /// At a batch boundary: what time and numbers bring to an end. Returns whether a limit has been reached that nobody
  /// has been told of yet: true once for each.
  bool look_at(Seconds now) noexcept;
  /// A limit has been reached that `look_at` has not told of.
  [[nodiscard]] bool has_news() const noexcept { return (reached() & ~told_.load(std::memory_order_relaxed)) != 0; }
  /// When `look_at` may have something to say next, by the clock; none: never.
  [[nodiscard]] std::optional<Seconds> next_deadline() const noexcept;

  /// What it had carried before, and what `carry` has counted: without what workers count for themselves (Carrier).
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t replayed() const noexcept { return replayed_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] unsigned reached() const noexcept { return (soft() != Limit::none ? 1U : 0U) | (ended() ? 2U : 0U); }
  void reach(std::atomic<Limit>& which, Limit limit) noexcept;
  void check_times(const Lifetime& lifetime, std::atomic<Limit>& which, Seconds now) noexcept;

  const Lifetimes lifetimes_;
  const bool limited_;
  std::atomic<std::uint64_t> packets_;
  std::atomic<std::uint64_t> bytes_;
  std::atomic<Seconds> first_used_;  // 0: not yet
  std::atomic<std::uint64_t> replayed_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<Limit> soft_ = Limit::none;
  std::atomic<Limit> hard_ = Limit::none;
  std::atomic<unsigned> told_ = 0;  // bits: soft, hard
};

/// Has SAs carry the packets of one worker. What those without limits carry it counts for itself: workers that counted
/// in the same memory would wait for each other at each packet.
class Carrier {
 public:
  /// `carried`: what this worker has counted, by SA; borrowed.
  Carrier(SaState::Seconds now, std::span<report::Traffic> carried) noexcept : now_(now), carried_(carried) {}

  /// Whether the SA, with this index, may carry the packet, of `bytes` of IP.
  [[nodiscard]] bool carry(SaState& sa, std::uint32_t index, std::uint64_t bytes) noexcept {
    if (sa.limited()) return sa.carry(bytes, now_);
    if (sa.ended()) return false;
    sa.use(now_);
    carried_[index].add(1, bytes);
    return true;
  }
  /// Inwards: the same, once the packet's number may be taken (SaState::admit).
  [[nodiscard]] Reason admit(SaState& sa, std::uint32_t index, std::uint64_t sequence, bool authentic,
                             std::uint64_t bytes) noexcept {
    const Reason reason = sa.admit(sequence, authentic);
    return reason != Reason::none || carry(sa, index, bytes) ? reason : Reason::lifetime;
  }

 private:
  const SaState::Seconds now_;
  const std::span<report::Traffic> carried_;
};

/// "packets"
[[nodiscard]] std::string_view name(SaState::Limit limit) noexcept;

}  // namespace penstock::ipsec
