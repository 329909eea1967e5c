// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::proxy {

namespace {

/// A tenant that has not asked again for so long does not wait any more: its thread may have stopped.
constexpr std::chrono::milliseconds kForgotten{5};
/// A rate is kept over this time.
constexpr double kDepthSeconds = 0.002;
constexpr double kLeastWeight = 1e-3;

}  // namespace

std::optional<Policy> policy_named(std::string_view name) noexcept {
  for (std::size_t p = 0; p < std::size(kPolicyNames); ++p) {
    if (kPolicyNames[p] == name) return static_cast<Policy>(p);
  }
  return std::nullopt;
}

void Scheduler::Bucket::fill(double rate, double depth, Time now) noexcept {
  const double seconds = std::chrono::duration<double>(now - filled).count();
  if (seconds > 0) level = std::min(depth, level + rate * seconds);
  filled = std::max(filled, now);
}

Scheduler::Id Scheduler::add(const Share& share, Time now) {
  Tenant tenant;
  tenant.share = share;
  tenant.part.filled = tenant.limit.filled = now;
  tenants_.emplace(next_id_, tenant);
  return next_id_++;
}

void Scheduler::remove(Id id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  on_device_ -= found->second.on_device;
  tenants_.erase(found);
}

void Scheduler::set_share(Id id, const Share& share) {
  const auto found = tenants_.find(id);
  if (found != tenants_.end()) found->second.share = share;
}

double Scheduler::weight(const Tenant& tenant) const noexcept {
  return policy_ == Policy::equal ? 1 : std::max(tenant.share.part, kLeastWeight);
}

bool Scheduler::is_within_limits(Tenant& tenant, Time now) const noexcept {
  const auto own = static_cast<double>(tenant.share.bytes_per_second);
  tenant.limit.fill(own, own * kDepthSeconds, now);
  const double part = tenant.share.part * device_.bytes_per_second;
  tenant.part.fill(part, part * kDepthSeconds, now);
  if (tenant.share.batches != 0 && tenant.batches >= tenant.share.batches) return false;
  if (own > 0 && tenant.limit.level < 0) return false;
  return policy_ != Policy::fixed || tenant.part.level >= 0;
}

/// Whether it has batches on the device, or wants to have some.
bool Scheduler::is_active(const Tenant& tenant, Time now) noexcept {
  return tenant.batches > 0 || (tenant.waits && now - tenant.asked_at < kForgotten);
}

/// Of the tenants that are active.
double Scheduler::first_clock(Time now) const noexcept {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [id, tenant] : tenants_) {
    if (is_active(tenant, now)) first = std::min(first, tenant.clock);
  }
  return std::isinf(first) ? 0 : first;
}

/// Whether nobody who waits is before it.
bool Scheduler::is_next(Id id, const Tenant& tenant, Time now) const noexcept {
  return std::ranges::none_of(tenants_, [&](const auto& entry) {
    const Tenant& other = entry.second;
    return entry.first != id && other.waits && now - other.asked_at < kForgotten && other.clock < tenant.clock;
  });
}

bool Scheduler::try_start(Id id, std::uint64_t bytes, Time now) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return false;
  Tenant& tenant = found->second;
  if (!is_within_limits(tenant, now)) {
    tenant.waits = false;  // for its own limits: others need not wait for it
    return false;
  }
  if (policy_ != Policy::best_effort) {
    // It has no claim to the time in which it wanted nothing.
    if (!is_active(tenant, now)) tenant.clock = std::max(tenant.clock, first_clock(now));
    const bool has_room = on_device_ == 0 || on_device_ + bytes <= device_.most_bytes;
    if (!has_room || !is_next(id, tenant, now)) {
      tenant.waits = true;
      tenant.asked_at = now;
      return false;
    }
  }
  tenant.waits = false;
  tenant.clock += static_cast<double>(bytes) / weight(tenant);
  tenant.part.level -= static_cast<double>(bytes);
  tenant.limit.level -= static_cast<double>(bytes);
  tenant.on_device += bytes;
  on_device_ += bytes;
  ++tenant.batches;
  return true;
}

void Scheduler::give_up(Id id, std::uint64_t bytes) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  Tenant& tenant = found->second;
  tenant.waits = false;
  tenant.clock += static_cast<double>(bytes) / weight(tenant);
}

void Scheduler::finish(Id id, std::uint64_t asked, std::uint64_t bytes) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  Tenant& tenant = found->second;
  const double more = static_cast<double>(bytes) - static_cast<double>(asked);
  tenant.clock += more / weight(tenant);
  tenant.part.level -= more;
  tenant.limit.level -= more;
  tenant.on_device -= asked;
  on_device_ -= asked;
  --tenant.batches;
}

}  // namespace penstock::proxy
