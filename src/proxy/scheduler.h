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

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace penstock::proxy {

/// best_effort: as they come. equal: the same for all who want to. fixed: what the profile has, and the rest idles.
/// weighted: what the profile has, and who wants to borrows what others leave.
enum class Policy : std::uint8_t { best_effort, equal, fixed, weighted };
inline constexpr std::string_view kPolicyNames[] = {"best-effort", "equal", "fixed", "weighted"};
[[nodiscard]] std::optional<Policy> policy_named(std::string_view name) noexcept;

/// Of one tenant.
struct Share {
  double part = 1;                     // of the device, 0..1: its weight
  std::uint64_t bytes_per_second = 0;  // limit; 0: none
  unsigned batches = 0;                // limit of those on the device; 0: none
};

class Scheduler {
 public:
  using Time = std::chrono::nanoseconds;  // of a steady clock
  using Id = std::uint32_t;

  /// What the device carries.
  struct Device {
    double bytes_per_second = 50e9;                      // for `fixed`
    std::uint64_t most_bytes = std::uint64_t{16} << 20;  // on it at a time, unless one batch has more
  };

  Scheduler(Policy policy, Device device) : policy_(policy), device_(device) {}

  [[nodiscard]] Id add(const Share& share, Time now);
  /// Its batches that have not finished count as finished.
  void remove(Id tenant);
  void set_share(Id tenant, const Share& share);
  void set_policy(Policy policy) noexcept { policy_ = policy; }
  [[nodiscard]] Policy policy() const noexcept { return policy_; }

  /// Whether a batch of so many bytes may start now. If so, it counts as started; if not, the tenant waits.
  [[nodiscard]] bool try_start(Id tenant, std::uint64_t bytes, Time now);
  /// The tenant does not want to start a batch of so many bytes any more. It pays for it: others may have waited.
  void give_up(Id tenant, std::uint64_t bytes);
  /// A batch that was started with `asked` bytes has ended, and has cost `bytes`.
  void finish(Id tenant, std::uint64_t asked, std::uint64_t bytes);

 private:
  /// Bytes that may pass, filled at a rate up to a depth. Debts are paid later.
  struct Bucket {
    double level = 0;
    Time filled{};
    void fill(double rate, double depth, Time now) noexcept;
  };
  struct Tenant {
    Share share;
    double clock = 0;  // bytes / weight
    bool waits = false;
    Time asked_at{};
    std::uint64_t on_device = 0;
    unsigned batches = 0;
    Bucket part;   // of the device, for `fixed`
    Bucket limit;  // the tenant's own
  };
  [[nodiscard]] double weight(const Tenant& tenant) const noexcept;
  [[nodiscard]] bool is_within_limits(Tenant& tenant, Time now) const noexcept;
  [[nodiscard]] static bool is_active(const Tenant& tenant, Time now) noexcept;
  [[nodiscard]] double first_clock(Time now) const noexcept;
  [[nodiscard]] bool is_next(Id id, const Tenant& tenant, Time now) const noexcept;

  Policy policy_;
  Device device_;
  std::map<Id, Tenant> tenants_;
  Id next_id_ = 1;
  std::uint64_t on_device_ = 0;
};

}  // namespace penstock::proxy
