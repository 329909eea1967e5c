// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Run-time state of one end of an SA: its sequence numbers or replay window, what it has carried, and whether it may
// carry more (RFC 4301 §4.4.2.1). A process has one per SA end (SaRegistry), however many functions use it. Lock-free;
// all workers update it concurrently. Counters that each worker keeps for itself (Carrier) belong to the function.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/prefetch.h"
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

/// Outbound sequence numbers of one SA (RFC 4303 §2.2, §3.3.3): gives out each number once, never beyond the last one
/// or beyond those reserved. Initially none are reserved.
class SequenceCounter {
 public:
  /// `sent`: the last number used, 0 for a new SA. `most`: the highest that may be used.
  SequenceCounter(std::uint64_t sent, std::uint64_t most) noexcept
      : sent_(sent), elsewhere_(sent), highest_(most), most_(most) {}

  /// The highest number that the SA may use.
  [[nodiscard]] static std::uint64_t most_of(const SecurityAssociation& sa) noexcept;

  /// Takes the next `count` numbers, or as many as are reserved.
  [[nodiscard]] SequenceRange take(std::uint32_t count) noexcept {
    // A caller that gets nothing because of `freeze` also sees what was written before that.
    std::uint64_t sent = sent_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint64_t reserved = reserved_.load(std::memory_order_acquire);
      const std::uint64_t left = reserved < sent ? 0 : reserved - sent;
      const std::uint32_t taken = left < count ? static_cast<std::uint32_t>(left) : count;
      if (taken == 0) return {sent + 1, 0};
      if (sent_.compare_exchange_weak(sent, sent + taken, std::memory_order_acquire)) return {sent + 1, taken};
    }
  }
  /// The last number given out; while frozen, as far as `advance_to` has told it.
  [[nodiscard]] std::uint64_t sent() const noexcept {
    const std::uint64_t sent = sent_.load(std::memory_order_relaxed);
    return sent == kLast && is_frozen_ ? elsewhere_.load(std::memory_order_relaxed) : sent;
  }
  /// The last number that may be used: of those reserved so far, in this run, and of the SA.
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t highest() const noexcept { return highest_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return most() - std::min(most(), sent()); }
  [[nodiscard]] bool exhausted() const noexcept { return left() == 0; }

  /// Skips numbers up to `sent`, which were given out elsewhere.
  void advance_to(std::uint64_t sent) noexcept;
  /// From now on until `thaw`, `take` gives out no number, also to callers that have begun already. Returns the last
  /// one that it gave out.
  [[nodiscard]] std::uint64_t freeze() noexcept;
  /// Numbers continue after `sent()`.
  void thaw() noexcept {
    sent_.store(elsewhere_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    is_frozen_ = false;
  }
  /// No number after `most` is used from now on, until another limit is set.
  void limit_to(std::uint64_t most) noexcept { most_.store(std::min(most, highest_), std::memory_order_relaxed); }
  /// Allows numbers up to `end`. Never lowers the limit.
  void reserve_to(std::uint64_t end) noexcept;
  /// Blocks all numbers until some are reserved again.
  void revoke() noexcept { reserved_.store(0, std::memory_order_release); }

 private:
  /// No number follows it.
  static constexpr std::uint64_t kLast = ~std::uint64_t{0};

  std::atomic<std::uint64_t> sent_;  // the last number given out; while frozen kLast
  std::atomic<bool> is_frozen_ = false;
  std::atomic<std::uint64_t> elsewhere_;  // while frozen: the last number known to have been given out elsewhere
  std::atomic<std::uint64_t> reserved_ = 0;
  const std::uint64_t highest_;
  std::atomic<std::uint64_t> most_;
};

/// Identifies the SA of a state, for keeping its numbers and for messages.
struct SaOrigin {
  SaIdentity identity;
  std::string name;  // "0xc0ffee01 from 192.0.2.1 to 192.0.2.2"
  Place place;       // where it is in the user's file
};

class SaState {
 public:
  /// Seconds since 1970.
  using Seconds = std::int64_t;

  /// `counting` gives out numbers once GPU stages send on the SA; null if no GPU stage may.
  explicit SaState(const SecurityAssociation& sa, SaOrigin origin = {},
                   std::shared_ptr<DeviceCounting> counting = nullptr);
  SaState(const SaState&) = delete;
  SaState& operator=(const SaState&) = delete;
  ~SaState();

  alignas(kCacheLineBytes) SequenceCounter numbers;  // for a sender, while no device counts
  ReplayWindow window;                               // for a receiver

  [[nodiscard]] const SaOrigin& origin() const noexcept { return origin_; }
  /// Of what a packet that the SA is to protect needs.
  void prefetch() const noexcept {
    penstock::prefetch(&numbers);
    penstock::prefetch(&device_cell_);
  }

  // A sender's numbers, whether host or device counts. Any thread.

  /// Takes the next `count` numbers, or as many as are reserved.
  [[nodiscard]] SequenceRange take(std::uint32_t count) noexcept {
    if (is_on_device()) return take_on_device(count);
    const SequenceRange taken = numbers.take(count);
    if (taken.count != 0) return taken;
    // Counting may have moved to a device in between, which freezes `numbers`.
    return is_on_device() ? take_on_device(count) : taken;
  }
  /// The last number given out, as far as is known.
  [[nodiscard]] std::uint64_t sent() const noexcept;
  /// See SequenceCounter.
  void reserve_to(std::uint64_t end) noexcept;
  /// Why no number could be taken, for messages and drop reasons.
  [[nodiscard]] Reason shortage() const noexcept {
    return numbers.most() <= sent() ? Reason::sequence_exhausted : Reason::not_reserved;
  }

  // Start and end of a run, called by a NumberSource while no packets of the SA flow.

  /// Packets after number `sent` get `iv_base` + sequence number as their IV. The run may send `most` packets.
  void begin_run(std::uint64_t sent, std::uint64_t iv_base, std::uint64_t most) noexcept;
  void end_run() noexcept;
  [[nodiscard]] std::uint64_t iv_base() const noexcept { return iv_base_; }

  // Functions whose runs use the state. Called at set-up.
  void begin_use() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  void end_use() noexcept { users_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool is_used() const noexcept { return users_.load(std::memory_order_relaxed) != 0; }

  /// Another file names the same SA, possibly with more recent numbers: advances to them. Only while it is not used.
  void advance(const SecurityAssociation& sa) noexcept;

  /// Whether there is a packet or byte limit. If so, each packet is counted here before it is forwarded.
  [[nodiscard]] bool limited() const noexcept { return limited_; }
  /// Counts a packet with `bytes` of IP that the SA carries. False: a hard limit has been reached.
  bool carry(std::uint64_t bytes, Seconds now) noexcept { return !ended() && count(bytes, now); }
  /// Like `carry`, for a packet that was already protected: a time limit that has expired since does not matter.
  bool count(std::uint64_t bytes, Seconds now) noexcept;

  /// Registers that a GPU stage may have batches of `packets` in flight, which are counted only when they come back.
  void expect_in_flight(std::uint64_t packets) noexcept { in_flight_.fetch_add(packets, std::memory_order_relaxed); }
  /// Undoes one `expect_in_flight`: the stage has ended.
  void end_in_flight(std::uint64_t packets) noexcept { in_flight_.fetch_sub(packets, std::memory_order_relaxed); }
  /// Whether the packets in flight could reach a hard packet or byte limit, assuming the mean length so far. A
  /// successor SA should take over before that happens.
  [[nodiscard]] bool is_near_end() const noexcept;
  /// True on the first call at which `is_near_end` holds.
  [[nodiscard]] bool tell_near_end() noexcept {
    return !near_end_told_.load(std::memory_order_relaxed) && is_near_end() && !near_end_told_.exchange(true);
  }
  /// Starts the lifetime that counts from first use.
  void use(Seconds now) noexcept {
    if (first_used_.load(std::memory_order_relaxed) != 0) return;
    Seconds unused = 0;
    first_used_.compare_exchange_strong(unused, now, std::memory_order_relaxed);
  }
  /// Inbound, in packet order, once the ICV has been checked: whether to accept the packet with this number. Marks the
  /// number as received.
  [[nodiscard]] Reason admit(std::uint64_t sequence, bool authentic) noexcept;
  void count_replayed() noexcept { replayed_.fetch_add(1, std::memory_order_relaxed); }

  /// Which lifetime limit has been reached.
  enum class Limit : std::uint8_t { none, packets, bytes, seconds_from_add, seconds_from_use, sequence };
  [[nodiscard]] Limit soft() const noexcept { return soft_.load(std::memory_order_relaxed); }
  [[nodiscard]] Limit hard() const noexcept { return hard_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool ended() const noexcept { return hard() != Limit::none; }

  /// Checks time limits and remaining numbers; call at batch boundaries. Returns whether a limit has been reached that
  /// has not been reported yet: true once for each.
  bool look_at(Seconds now) noexcept;
  /// Whether a limit has been reached that `look_at` has not reported.
  [[nodiscard]] bool has_news() const noexcept { return (reached() & ~told_.load(std::memory_order_relaxed)) != 0; }
  /// When to call `look_at` again for a time limit, on the clock; empty: never.
  [[nodiscard]] std::optional<Seconds> next_deadline() const noexcept;

  /// For SAs with limits: the total of what the SA's file says and what all functions that use the SA have carried
  /// since.
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
  const Lifetimes lifetimes_;
  std::uint64_t iv_base_ = 0;
  std::atomic<std::uint64_t> replayed_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<unsigned> told_ = 0;  // bits: soft, hard
  std::atomic<bool> near_end_told_ = false;
  // What each packet needs, in one cache line.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> device_cell_ = kNoCell;  // index in `counting_`
  const bool limited_;
  std::atomic<Limit> soft_ = Limit::none;
  std::atomic<Limit> hard_ = Limit::none;
  std::atomic<std::uint64_t> in_flight_ = 0;  // packets, at most
  std::atomic<Seconds> first_used_;           // 0: not yet
  std::atomic<std::uint64_t> packets_;
  std::atomic<std::uint64_t> bytes_;
  std::atomic<unsigned> users_ = 0;
};

/// Lets SAs carry one worker's packets, and counts that traffic for the worker's function. Only SAs with limits use the
/// counters shared by all workers, because these are contended on every packet.
class Carrier {
 public:
  /// `carried`: this worker's counters, by SA; borrowed.
  Carrier(SaState::Seconds now, std::span<report::Traffic> carried) noexcept : now_(now), carried_(carried) {}

  /// Whether the SA with this index may carry a packet with `bytes` of IP.
  [[nodiscard]] bool carry(SaState& sa, std::uint32_t index, std::uint64_t bytes) noexcept {
    if (sa.limited() ? !sa.carry(bytes, now_) : sa.ended()) return false;
    if (!sa.limited()) sa.use(now_);
    carried_[index].add(1, bytes);
    return true;
  }
  /// Like `carry`, for a packet that a device has already protected.
  [[nodiscard]] bool count(SaState& sa, std::uint32_t index, std::uint64_t bytes) noexcept {
    if (sa.limited() && !sa.count(bytes, now_)) return false;
    if (!sa.limited()) sa.use(now_);
    carried_[index].add(1, bytes);
    return true;
  }
  /// Inbound: checks the packet's number (SaState::admit), then proceeds as `carry`.
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
