// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides whose batch goes onto the device next. Pure: it is given the time and what batches turn out to cost. Not
// thread-safe.
//
// A tenant asks for a batch until it may start. Order by virtual time (start-time fair queueing, Goyal 1996): each
// tenant's clock advances by bytes / weight, and of those that wait, the one whose clock is behind goes first. The
// bytes on the device are bounded, so that a tenant that fills its lanes does not fill the queue of the device as well.
// A tenant gets its share if it has more than that part of these bytes in its lanes.
//
// `deadline` goes by time on the device instead of bytes, and keeps latency bounds, as Gaviss's scheduler does:
//
//   measure   how long each tenant's batches take (batch_time.h), how much it orders, how much it has outstanding
//   reserve   now and then, for each tenant with a bound, the part of the device that it needs (reservations.h):
//             enough for its orders, and enough to clear what it has outstanding within the bound, less the time for
//             which the device may be busy with a batch of another
//   order     batches within the reservation come first, the earliest deadline first (Liu & Layland 1973); all others
//             follow by virtual time
//   limit     what tenants put onto the device while a tenant with a shorter bound is there: a batch that runs cannot
//             be stopped. How much its batches bear is found out (leeway.h). Tenants without a bound keep their
//             profiles' part of what they carry without this limit, so that a short bound cannot take the device from
//             them
//
// Some of what is on the device at the same time runs in turn, such as transfers, and some at once. The order in which
// batches end tells which: the time since the last end is charged to the batch that ends now or, if one that started
// before it still runs, to all that run, in equal parts.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "proxy/batch_time.h"
#include "proxy/leeway.h"
#include "proxy/reservations.h"

namespace penstock::proxy {

/// best_effort: first come, first served. equal: the same for all who want to. fixed: what the profile has, and the
/// rest idles. weighted: what the profile has, and who wants to borrows what others leave. deadline: like weighted, by
/// time, with what tenants with a latency bound need reserved for them.
enum class Policy : std::uint8_t { best_effort, equal, fixed, weighted, deadline };
inline constexpr std::string_view kPolicyNames[] = {"best-effort", "equal", "fixed", "weighted", "deadline"};
[[nodiscard]] std::optional<Policy> policy_named(std::string_view name) noexcept;

/// Of one tenant.
struct Share {
  double part = 1;                          // of the device, 0..1: its weight
  std::uint64_t bytes_per_second = 0;       // limit; 0: none
  unsigned batches = 0;                     // limit of those on the device; 0: none
  std::chrono::nanoseconds latency{};       // bound from the order of a batch to its end; 0: none
  std::uint64_t user = 0;                   // whose tenant it is
  std::uint64_t user_bytes_per_second = 0;  // limit of all tenants of the user together; 0: none
};

class Scheduler {
 public:
  using Time = std::chrono::nanoseconds;  // of a steady clock
  using Id = std::uint32_t;

  /// What the device carries.
  struct Device {
    double bytes_per_second = 50e9;  // for `fixed`
    std::uint64_t most_bytes = std::uint64_t{40}
                               << 20;  // on it at a time, unless one batch has more; best effort: or three do
  };

  /// A batch of a tenant. Made by `order`; only the scheduler changes it.
  class Batch {
   private:
    friend class Scheduler;
    Id tenant_ = 0;
    std::uint64_t bytes_ = 0;
    std::size_t kind_ = 0;
    BatchTime time_;  // as expected when it was ordered
    Time ordered_{};
    Time started_{};
    std::uint64_t number_ = 0;  // in the order of starts
    double charged_ = 0;        // to the tenant's clock
    unsigned period_ = 0;       // of the policy
    bool reserved_ = false;     // charged to the reservation as well
  };
  /// Batches of a tenant with different functions: segments.
  static constexpr std::size_t kKinds = 16;

  Scheduler(Policy policy, Device device) : policy_(policy), device_(device) {}

  [[nodiscard]] Id add(const Share& share, Time now);
  /// Its batches that have not finished count as finished.
  void remove(Id tenant);
  void set_policy(Policy policy) noexcept;
  [[nodiscard]] Policy policy() const noexcept { return policy_; }

  /// The tenant wants a batch of so many bytes. Each one either finishes or is given up.
  [[nodiscard]] Batch order(Id tenant, std::uint64_t bytes, std::size_t kind, Time now);
  /// Who waits asks again after about this time. Others do not leave the device to one that does not.
  static constexpr std::chrono::microseconds kAskAgain{20};
  /// Whether it may start now. If so, it counts as started; if not, the tenant waits.
  [[nodiscard]] bool try_start(Batch& batch, Time now);
  /// The tenant does not want to start it any more. It pays for it: others may have waited.
  void give_up(const Batch& batch, Time now);
  /// What became of a batch.
  struct Done {
    Time waited{};   // from its order to its start
    Time took{};     // from its order to its end
    Time charged{};  // its part of the time of the device
    bool late = false;
  };
  /// A batch that was started has ended, and has cost `bytes`.
  Done finish(const Batch& batch, std::uint64_t bytes, Time now);

  /// The batch that has been on the device for longest.
  struct Oldest {
    std::uint64_t number = 0;  // no other batch ever has it
    Id tenant = 0;
  };
  /// Empty: the device has none.
  [[nodiscard]] std::optional<Oldest> oldest() const noexcept {
    if (running_.empty()) return std::nullopt;
    return Oldest{running_.front().number, running_.front().tenant};
  }

  /// What `deadline` has found out about a tenant.
  struct Bound {
    double needed = 0;  // part of the device with which its bound holds; infinity: none; 0: it has no bound
    double share = 0;   // what is reserved for it
    Time blocked{};     // how long a batch may have to wait for one of another tenant that is on the device
    bool holds = true;
  };
  [[nodiscard]] Bound bound_of(Id tenant) const;

 private:
  /// Bytes, or ns of the device, that may pass, filled at a rate up to a depth. Debts are paid later.
  struct Bucket {
    double level = 0;
    Time filled{};
    [[nodiscard]] double level_at(double rate, double depth, Time now) const noexcept;
    void fill(double rate, double depth, Time now) noexcept;
  };
  /// What a tenant orders, over the last time.
  struct Demand {
    std::array<BatchTimeFit, kKinds> times;
    double ordered_ns = 0;      // since the last measurement
    double part = 0;            // of the time of the device
    unsigned outstanding = 0;   // batches, ordered and not finished
    double outstanding_ns = 0;  // of these, without fixed times
    double most_outstanding_ns = 0;
    double longest_ns = 0;        // of a batch
    double longest_fixed_ns = 0;  // ditto
    Time last{};                  // order
    void measure(double window_ns) noexcept;
  };
  /// In the present window of the leeway.
  struct Shown {
    double bytes = 0;     // of batches that have ended
    bool waited = false;  // for the device
    // Of batches with a bound that were ordered since the leeway has changed: those that have ended, and how many were
    // late, or nearly.
    unsigned ended = 0;
    double late = 0;
  };
  /// Of what is on the device: a batch may start within either.
  struct Limit {
    double ns = std::numeric_limits<double>::infinity();
    double bytes = std::numeric_limits<double>::infinity();
    void lower(double to_ns, double to_bytes) noexcept {
      ns = std::min(ns, to_ns);
      bytes = std::min(bytes, to_bytes);
    }
  };
  /// Of all tenants of a user. Stays after the last one has ended, until what they have used too much is paid.
  struct UserLimit {
    Bucket bucket;
    double bytes_per_second = 0;
    unsigned tenants = 0;
  };
  struct Tenant {
    Share share;
    double clock = 0;  // bytes / weight; with `deadline`, ns / weight
    bool waits = false;
    Time asked_at{};
    // The oldest batch that waits for the limit of batches only, and when it asked last. It waits for the device as
    // soon as one of the tenant's batches ends.
    std::optional<Time> next{};
    Time next_asked_at{};
    Time oldest{};           // order of the batches that wait
    Time oldest_asked_at{};  // when that batch has asked last
    Bucket overtaken;        // ns of the device by which others may still overtake it while its threads are absent
    Bucket patience;         // ns for which others still wait for its absent threads
    std::optional<Time> held_since{};  // others may have waited for its absent threads
    std::uint64_t on_device = 0;
    double on_device_ns = 0;
    unsigned batches = 0;
    Bucket part;                   // of the device, for `fixed`
    Bucket limit;                  // the tenant's own
    UserLimit* of_user = nullptr;  // null: there is none
    // For `deadline`:
    Demand demand;
    Bound bound;
    Bucket reservation;
    bool counts = false;  // wanted something when parts were reserved last
    Shown shown;
    double free_rate = 0;  // bytes per second, while no leeway limits it; 0: not known
    // Of all tenants, when it starts a batch within its reservation, or beyond.
    Limit most_reserved;
    Limit most_other;
  };
  /// A batch on the device.
  struct Running {
    std::uint64_t number = 0;
    Id tenant = 0;
    Time started{};
    double charged_ns = 0;
  };
  /// The order of those that wait.
  struct Rank {
    bool not_reserved = false;
    double at = 0;  // order, deadline, or clock
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  [[nodiscard]] Tenant* find(Id id) noexcept;
  [[nodiscard]] double weight(const Tenant& tenant) const noexcept;
  [[nodiscard]] bool is_within_rates(Tenant& tenant, Time now) const noexcept;
  static void spend(Tenant& tenant, double bytes) noexcept;
  [[nodiscard]] static bool is_waiting(const Tenant& tenant, Time now) noexcept;
  [[nodiscard]] static bool may_be_overtaken(const Tenant& tenant, Time now) noexcept;
  void note_held(const Tenant& tenant, const Batch& batch, Time now) noexcept;
  static void note_back(Tenant& tenant, Time now) noexcept;
  void note_overtaken(const Tenant& tenant, const Batch& batch, Time now) noexcept;
  [[nodiscard]] static bool is_oldest(const Tenant& tenant, const Batch& batch, Time now) noexcept;
  [[nodiscard]] static bool is_active(const Tenant& tenant, Time now) noexcept;
  [[nodiscard]] double first_clock(Time now) const noexcept;
  [[nodiscard]] bool is_reserved(const Tenant& tenant, Time now) const noexcept;
  [[nodiscard]] Rank rank(const Tenant& tenant, Time ordered, Time now) const noexcept;
  [[nodiscard]] bool is_next(const Tenant& tenant, Time ordered, Time now) const noexcept;
  [[nodiscard]] bool has_room(const Tenant& tenant, const Batch& batch, Time now) const noexcept;
  static void wait(Tenant& tenant, const Batch& batch, Time now) noexcept;
  void charge_first(Tenant& tenant, Batch& batch, Time now) const noexcept;
  void charge(Tenant& tenant, const Batch& batch, double more) const noexcept;
  [[nodiscard]] double take_off(const Batch& batch, Time now) noexcept;
  [[nodiscard]] Time window_length() const noexcept;
  void end_window(Time now) noexcept;
  void measure(Time now) noexcept;
  void reserve(Time now) noexcept;

  Policy policy_;
  unsigned period_ = 0;  // of the policy: clocks of different policies have different units
  Device device_;
  std::map<Id, Tenant> tenants_;
  std::map<std::uint64_t, UserLimit> users_;  // those that have one
  Id next_id_ = 1;
  std::uint64_t on_device_ = 0;
  double on_device_ns_ = 0;
  std::vector<Running> running_;  // in the order of starts
  std::uint64_t started_ = 0;     // batches
  Time charged_until_{};
  Time measured_{};
  Leeway leeway_;
  Time window_{};              // begin of the leeway's window
  Time changed_{};             // when the leeway has changed
  Time longest_{};             // of the batches of those that want something
  unsigned limited_ = 0;       // windows in a row in which it has limited somebody
  std::vector<Claim> claims_;  // for `reserve`; has room for all tenants
};

}  // namespace penstock::proxy
