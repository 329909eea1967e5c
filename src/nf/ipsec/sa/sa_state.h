// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far one end of an SA has got: its sequence numbers or its window, what it has carried, whether it may carry more
// (RFC 4301 §4.4.2.1). A process has one for each end of an SA (SaRegistry), however many functions name it. All
// workers change it at once, without a lock. What workers count for themselves (Carrier) is their function's.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "nf/ipsec/esp/replay_window.h"
#include "nf/ipsec/numbers/sa_identity.h"
#include "nf/ipsec/sa/sa.h"
#include "report/counter.h"

namespace penstock::ipsec {

class DeviceCounting;

/// Consecutive sequence numbers.
struct SequenceRange {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
};

/// Outbound numbers of one SA (RFC 4303 §2.2, §3.3.3): each once, none after the last one, and none that is not
/// reserved. At first none is.
class SequenceCounter {
 public:
  /// `sent`: the last one used, 0 for a new SA.
  SequenceCounter(std::uint64_t sent, std::uint64_t most) noexcept : sent_(sent), highest_(most), most_(most) {}

  /// The highest that the SA may use.
  [[nodiscard]] static std::uint64_t most_of(const SecurityAssociation& sa) noexcept;

  /// The next `count`, or as many as are reserved.
  [[nodiscard]] SequenceRange take(std::uint32_t count) noexcept {
    std::uint64_t sent = sent_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t reserved = reserved_.load(std::memory_order_acquire);
      const std::uint64_t left = reserved < sent ? 0 : reserved - sent;
      const std::uint32_t taken = left < count ? static_cast<std::uint32_t>(left) : count;
      if (taken == 0) return {sent + 1, 0};
      if (sent_.compare_exchange_weak(sent, sent + taken, std::memory_order_relaxed)) return {sent + 1, taken};
    }
  }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_.load(std::memory_order_relaxed); }
  /// The last that may be used: of those that are reserved, in this run, and of all.
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t highest() const noexcept { return highest_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return most() - std::min(most(), sent()); }
  [[nodiscard]] bool exhausted() const noexcept { return left() == 0; }

  /// Numbers up to `sent` have been given out elsewhere.
  void advance_to(std::uint64_t sent) noexcept;
  /// None after this one is used from now on, until another limit is set.
  void limit_to(std::uint64_t most) noexcept { most_.store(std::min(most, highest_), std::memory_order_relaxed); }
  /// Numbers up to `end` may be used. Never fewer than before.
  void reserve_to(std::uint64_t end) noexcept;
  /// No number may be used any more until some are reserved again.
  void revoke() noexcept { reserved_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> sent_;
  std::atomic<std::uint64_t> reserved_ = 0;
  const std::uint64_t highest_;
  std::atomic<std::uint64_t> most_;
};

/// Which SA a state belongs to, for those who keep its numbers and for messages.
struct SaOrigin {
  SaIdentity identity;
  std::string name;  // "0xc0ffee01 from 192.0.2.1 to 192.0.2.2"
  Place place;       // where the user's file has it
};

class SaState {
 public:
  /// Seconds since 1970.
  using Seconds = std::int64_t;

  /// `counting`: who counts where GPU stages send by it; null: no GPU stage may.
  explicit SaState(const SecurityAssociation& sa, SaOrigin origin = {},
                   std::shared_ptr<DeviceCounting> counting = nullptr);
  SaState(const SaState&) = delete;
  SaState& operator=(const SaState&) = delete;
  ~SaState();

  SequenceCounter numbers;  // of a sender, while no device counts
  ReplayWindow window;      // of a receiver

  [[nodiscard]] const SaOrigin& origin() const noexcept { return origin_; }

  // A sender's numbers, whoever counts. Any thread.

  /// The next `count`, or as many as are reserved.
  [[nodiscard]] SequenceRange take(std::uint32_t count) noexcept {
    return is_on_device() ? take_on_device(count) : numbers.take(count);
  }
  /// The last that was given out, as far as is known.
  [[nodiscard]] std::uint64_t sent() const noexcept;
  /// See SequenceCounter.
  void reserve_to(std::uint64_t end) noexcept;
  /// For messages and the packet path: why there was none to take.
  [[nodiscard]] Reason shortage() const noexcept {
    return numbers.most() <= sent() ? Reason::sequence_exhausted : Reason::not_reserved;
  }

  // A run, by a NumberSource, before packets come and when no more do.

  /// Packets after the one with the number `sent` get IVs from `iv_base` + sequence number. The run may have `most`.
  void begin_run(std::uint64_t sent, std::uint64_t iv_base, std::uint64_t most) noexcept;
  void end_run() noexcept;
  [[nodiscard]] std::uint64_t iv_base() const noexcept { return iv_base_; }

  /// Another file names the SA too, and has perhaps seen more of it.
  void advance(const SecurityAssociation& sa) noexcept;

  /// Whether there is a limit of packets or bytes: then each packet is counted here, before it goes on.
  [[nodiscard]] bool limited() const noexcept { return limited_; }
  /// Counts a packet that the SA carries, of `bytes` of IP. False: it may not any more.
  bool carry(std::uint64_t bytes, Seconds now) noexcept { return !ended() && count(bytes, now); }
  /// The same of a packet that was protected before: what time has ended since does not matter.
  bool count(std::uint64_t bytes, Seconds now) noexcept;

  /// A GPU stage may have batches of so many packets in flight, which count when they have come back.
  void expect_in_flight(std::uint64_t packets) noexcept { in_flight_.fetch_add(packets, std::memory_order_relaxed); }
  /// What is in flight can reach a hard limit of packets or, by the mean length so far, of bytes: a successor takes
  /// over, so that it does not.
  [[nodiscard]] bool is_near_end() const noexcept;
  /// True once, when it is.
  [[nodiscard]] bool tell_near_end() noexcept {
    return !near_end_told_.load(std::memory_order_relaxed) && is_near_end() && !near_end_told_.exchange(true);
  }
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

  /// Of an SA with limits: what it had carried before, and what all functions that name it have carried since.
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t replayed() const noexcept { return replayed_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  friend class DeviceCounting;
  static constexpr std::uint32_t kNoCell = ~std::uint32_t{0};
  [[nodiscard]] bool is_on_device() const noexcept { return device_cell_.load() != kNoCell; }
  [[nodiscard]] SequenceRange take_on_device(std::uint32_t count) noexcept;

  void receive_as(const SequenceState& sequence) noexcept;
  [[nodiscard]] unsigned reached() const noexcept { return (soft() != Limit::none ? 1U : 0U) | (ended() ? 2U : 0U); }
  void reach(std::atomic<Limit>& which, Limit limit) noexcept;
  void check_times(const Lifetime& lifetime, std::atomic<Limit>& which, Seconds now) noexcept;

  const SaOrigin origin_;
  const std::shared_ptr<DeviceCounting> counting_;
  std::atomic<std::uint32_t> device_cell_ = kNoCell;  // of `counting_`
  std::uint64_t iv_base_ = 0;
  const Lifetimes lifetimes_;
  const bool limited_;
  std::atomic<std::uint64_t> packets_;
  std::atomic<std::uint64_t> bytes_;
  std::atomic<Seconds> first_used_;  // 0: not yet
  std::atomic<std::uint64_t> replayed_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<Limit> soft_ = Limit::none;
  std::atomic<Limit> hard_ = Limit::none;
  std::atomic<unsigned> told_ = 0;            // bits: soft, hard
  std::atomic<std::uint64_t> in_flight_ = 0;  // packets, at most
  std::atomic<bool> near_end_told_ = false;
};

/// Has SAs carry the packets of one worker, and counts what they carry for its function. Only SAs with limits are
/// counted where all workers count too: at each packet they would wait for each other.
class Carrier {
 public:
  /// `carried`: what this worker has counted, by SA; borrowed.
  Carrier(SaState::Seconds now, std::span<report::Traffic> carried) noexcept : now_(now), carried_(carried) {}

  /// Whether the SA, with this index, may carry the packet, of `bytes` of IP.
  [[nodiscard]] bool carry(SaState& sa, std::uint32_t index, std::uint64_t bytes) noexcept {
    if (sa.limited() ? !sa.carry(bytes, now_) : sa.ended()) return false;
    if (!sa.limited()) sa.use(now_);
    carried_[index].add(1, bytes);
    return true;
  }
  /// The same of a packet that a device has protected.
  [[nodiscard]] bool count(SaState& sa, std::uint32_t index, std::uint64_t bytes) noexcept {
    if (sa.limited() && !sa.count(bytes, now_)) return false;
    if (!sa.limited()) sa.use(now_);
    carried_[index].add(1, bytes);
    return true;
  }
  /// Inwards: as `carry`, once the packet's number may be taken (SaState::admit).
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
