// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace penstock::proxy {

namespace {

/// A tenant that has not asked again for so long does not wait any more: its thread may have stopped.
constexpr std::chrono::milliseconds kForgotten{5};
/// A thread that has not asked again for so long is on no core, or busy: the device is not left to its batch, which
/// keeps its place for when the thread is back.
constexpr std::chrono::microseconds kAbsent = 10 * Scheduler::kAskAgain;
/// How much others may overtake a tenant for that, in time of the device: a part of all time, up to a limit. Beyond, it
/// could not catch up, since the device is only free in moments, and other threads would be there first.
constexpr double kOvertakenPart = 0.25, kMostOvertakenNs = 5e6;
/// No batch is overtaken that has waited for so long: how long others take may not be known well.
constexpr std::chrono::milliseconds kLongestOvertaken{20};
/// But others wait for absent threads of a tenant only for this part of all time, and so long at once. Otherwise one
/// that looks in now and then, and starts nothing, would keep the device idle.
constexpr double kPatiencePart = 0.05, kMostPatienceNs = 5e6;
/// Best effort lets so many batches onto the device, however large they are: one arrives, one is worked on, one leaves.
constexpr std::size_t kFewBatches = 3;
/// A rate is kept over this time.
constexpr double kDepthSeconds = 0.002;
constexpr double kLeastWeight = 1e-3;

/// How often what tenants need is measured.
constexpr std::chrono::milliseconds kMeasureInterval{100};
/// For so long after its last order, parts are reserved for a tenant, and others do not fill the device.
constexpr std::chrono::seconds kRemembered{1};
/// What remains of the largest values at each measurement.
constexpr double kKept = 0.8;
/// What a tenant has used beyond its reservation, its last batch apart, is forgotten after this time.
constexpr double kLongestDebtNs = 1e9;
/// The part of a bound for which the device may be busy with batches of others, unless more has turned out to do.
constexpr double kBlockedPart = 0.25;
/// A batch that takes this part of its bound is nearly late, and counts as half of a late one.
constexpr double kNearlyLate = 0.75, kNearlyLateWeight = 0.5;
/// Windows of the leeway are as long as the intervals above, but shorter while it tries something.
constexpr std::chrono::milliseconds kTrialInterval{20};
/// A tenant that carries so many times what it has carried without a limit has changed.
constexpr double kStaleRate = 1.25;
constexpr int kBatchesInWindow = 10;
/// A tenant with very long batches must not keep the limit of others from changing.
constexpr std::chrono::seconds kLongestWindow{1};
/// What others carry without a limit is looked at again after so many windows, or, if it has changed, after fewer.
constexpr unsigned kPauseAfter = 100, kPauseAfterIfStale = 10;

double ns_of(Scheduler::Time time) { return static_cast<double>(time.count()); }
Scheduler::Time time_of(double ns) { return Scheduler::Time{std::llround(std::max(0.0, ns))}; }

}  // namespace

std::optional<Policy> policy_named(std::string_view name) noexcept {
  for (std::size_t p = 0; p < std::size(kPolicyNames); ++p) {
    if (kPolicyNames[p] == name) return static_cast<Policy>(p);
  }
  return std::nullopt;
}

double Scheduler::Bucket::level_at(double rate, double depth, Time now) const noexcept {
  const double seconds = std::chrono::duration<double>(now - filled).count();
  return seconds > 0 ? std::min(depth, level + rate * seconds) : level;
}

void Scheduler::Bucket::fill(double rate, double depth, Time now) noexcept {
  level = level_at(rate, depth, now);
  filled = std::max(filled, now);
}

Scheduler::Id Scheduler::add(const Share& share, Time now) {
  Tenant tenant;
  tenant.share = share;
  tenant.part.filled = tenant.limit.filled = tenant.reservation.filled = tenant.overtaken.filled = now;
  tenant.overtaken.level = kMostOvertakenNs;
  tenant.patience.filled = now;
  tenant.patience.level = kMostPatienceNs;
  tenant.demand.times.fill(BatchTimeFit(1e9 / device_.bytes_per_second));
  if (tenants_.empty()) measured_ = window_ = now;
  std::erase_if(users_, [now](const auto& entry) {
    const UserLimit& limit = entry.second;
    const double rate = limit.bytes_per_second;
    return limit.tenants == 0 && limit.bucket.level_at(rate, rate * kDepthSeconds, now) >= 0;
  });
  if (share.user_bytes_per_second > 0) {
    const auto [user, is_new] = users_.try_emplace(share.user);
    if (is_new) user->second.bucket.filled = now;
    user->second.bytes_per_second = static_cast<double>(share.user_bytes_per_second);
    ++user->second.tenants;
    tenant.of_user = &user->second;
  }
  tenants_.emplace(next_id_, tenant);
  claims_.reserve(tenants_.size());
  return next_id_++;
}

void Scheduler::remove(Id id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  on_device_ -= found->second.on_device;
  on_device_ns_ -= found->second.on_device_ns;
  std::erase_if(running_, [id](const Running& running) { return running.tenant == id; });
  if (found->second.of_user != nullptr) --found->second.of_user->tenants;
  tenants_.erase(found);
}

void Scheduler::set_policy(Policy policy) noexcept {
  if (policy == policy_) return;
  policy_ = policy;
  ++period_;
  leeway_ = {};
  for (auto& [id, tenant] : tenants_) {
    tenant.clock = tenant.free_rate = 0;
    tenant.part = {};  // it is charged with every policy, but counts with `fixed` only; full when it is used next
    tenant.held_since.reset();
    tenant.shown = {};
    tenant.most_reserved = tenant.most_other = {};
  }
}

Scheduler::Tenant* Scheduler::find(Id id) noexcept {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? nullptr : &found->second;
}

double Scheduler::weight(const Tenant& tenant) const noexcept {
  return policy_ == Policy::equal ? 1 : std::max(tenant.share.part, kLeastWeight);
}

bool Scheduler::is_within_rates(Tenant& tenant, Time now) const noexcept {
  const auto own = static_cast<double>(tenant.share.bytes_per_second);
  tenant.limit.fill(own, own * kDepthSeconds, now);
  const double part = tenant.share.part * device_.bytes_per_second;
  tenant.part.fill(part, part * kDepthSeconds, now);
  if (own > 0 && tenant.limit.level < 0) return false;
  if (tenant.of_user != nullptr) {
    const double of_user = tenant.of_user->bytes_per_second;
    tenant.of_user->bucket.fill(of_user, of_user * kDepthSeconds, now);
    if (tenant.of_user->bucket.level < 0) return false;
  }
  return policy_ != Policy::fixed || tenant.part.level >= 0;
}

/// Of what limits its rates.
void Scheduler::spend(Tenant& tenant, double bytes) noexcept {
  tenant.part.level -= bytes;
  tenant.limit.level -= bytes;
  if (tenant.of_user != nullptr) tenant.of_user->bucket.level -= bytes;
}

bool Scheduler::is_waiting(const Tenant& tenant, Time now) noexcept {
  return tenant.waits && now - tenant.asked_at < kForgotten;
}

/// Whether it has batches on the device, or wants to have some.
bool Scheduler::is_active(const Tenant& tenant, Time now) noexcept {
  return tenant.batches > 0 || is_waiting(tenant, now);
}

/// Of the tenants that are active.
double Scheduler::first_clock(Time now) const noexcept {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [id, tenant] : tenants_) {
    if (is_active(tenant, now)) first = std::min(first, tenant.clock);
  }
  return std::isinf(first) ? 0 : first;
}

/// Whether its next batch is within its reservation.
bool Scheduler::is_reserved(const Tenant& tenant, Time now) const noexcept {
  if (policy_ != Policy::deadline || tenant.bound.share <= 0) return false;
  const double depth = tenant.bound.share * ns_of(tenant.share.latency);
  return tenant.reservation.level_at(tenant.bound.share * 1e9, depth, now) >= 0;
}

/// `ordered`: its oldest batch.
Scheduler::Rank Scheduler::rank(const Tenant& tenant, Time ordered, Time now) const noexcept {
  if (policy_ == Policy::best_effort) return {true, ns_of(ordered)};
  if (is_reserved(tenant, now)) return {false, ns_of(ordered + tenant.share.latency)};
  return {true, tenant.clock};
}

/// Of one that waits: whether others may start a batch although its turn is before theirs.
bool Scheduler::may_be_overtaken(const Tenant& tenant, Time now) noexcept {
  if (now - tenant.asked_at < kAbsent) return false;
  if (now - tenant.oldest < kLongestOvertaken &&
      tenant.overtaken.level_at(kOvertakenPart * 1e9, kMostOvertakenNs, now) > 0)
    return true;
  const Time since = tenant.held_since.value_or(now);
  return tenant.patience.level_at(kPatiencePart * 1e9, kMostPatienceNs, since) <= ns_of(now - since);
}

/// Notes since when absent threads of other tenants keep this batch, for which there is room, from starting.
void Scheduler::note_held(const Tenant& tenant, const Batch& batch, Time now) noexcept {
  const Rank own = rank(tenant, batch.ordered_, now);
  for (auto& [id, other] : tenants_) {
    if (&other == &tenant || other.held_since || now - other.asked_at < kAbsent) continue;
    if (is_waiting(other, now) && rank(other, other.oldest, now) < own && !may_be_overtaken(other, now))
      other.held_since = now;
  }
}

/// The tenant asks, or gives up. If others may have waited for it since, that was some of their patience.
void Scheduler::note_back(Tenant& tenant, Time now) noexcept {
  if (!tenant.held_since) return;
  tenant.patience.fill(kPatiencePart * 1e9, kMostPatienceNs, now);
  const Time held = std::min<Time>(now - *tenant.held_since, kForgotten);
  tenant.patience.level = std::max(0.0, tenant.patience.level - ns_of(held));
  tenant.held_since.reset();
}

/// Those that the tenant overtakes by starting the batch.
void Scheduler::note_overtaken(const Tenant& tenant, const Batch& batch, Time now) noexcept {
  const Rank own = rank(tenant, batch.ordered_, now);
  for (auto& [id, other] : tenants_) {
    if (&other == &tenant || !is_waiting(other, now) || own <= rank(other, other.oldest, now)) continue;
    other.overtaken.fill(kOvertakenPart * 1e9, kMostOvertakenNs, now);
    other.overtaken.level = std::max(other.overtaken.level - batch.time_.ns(batch.bytes_), -kMostOvertakenNs);
  }
}

/// Whether it is the oldest one of its tenant that waits.
bool Scheduler::is_oldest(const Tenant& tenant, const Batch& batch, Time now) noexcept {
  const Time longest = now - tenant.oldest < kLongestOvertaken ? Time{kAbsent} : Time{kForgotten};
  return !is_waiting(tenant, now) || batch.ordered_ <= tenant.oldest || now - tenant.oldest_asked_at >= longest;
}

/// Whether nobody who waits is before it.
bool Scheduler::is_next(const Tenant& tenant, Time ordered, Time now) const noexcept {
  const Rank own = rank(tenant, ordered, now);
  return std::ranges::none_of(tenants_, [&](const auto& entry) {
    const Tenant& other = entry.second;
    return &other != &tenant && is_waiting(other, now) && !may_be_overtaken(other, now) &&
           rank(other, other.oldest, now) < own;
  });
}

bool Scheduler::has_room(const Tenant& tenant, const Batch& batch, Time now) const noexcept {
  if (running_.empty()) return true;
  if (policy_ == Policy::best_effort && running_.size() < kFewBatches) return true;
  if (on_device_ + batch.bytes_ > device_.most_bytes) return false;
  if (policy_ != Policy::deadline) return true;
  const Limit& most = is_reserved(tenant, now) ? tenant.most_reserved : tenant.most_other;
  return on_device_ns_ + batch.time_.ns(batch.bytes_) <= most.ns ||
         static_cast<double>(on_device_ + batch.bytes_) <= most.bytes;
}

void Scheduler::wait(Tenant& tenant, const Batch& batch, Time now) noexcept {
  if (is_oldest(tenant, batch, now)) {
    tenant.oldest = batch.ordered_;
    tenant.oldest_asked_at = now;
  }
  tenant.waits = tenant.shown.waited = true;
  tenant.asked_at = now;
}

/// What a batch is expected to cost.
void Scheduler::charge_first(Tenant& tenant, Batch& batch, Time now) const noexcept {
  batch.period_ = period_;
  batch.reserved_ = is_reserved(tenant, now);
  if (batch.reserved_) {
    const double share = tenant.bound.share;
    tenant.reservation.fill(share * 1e9, share * ns_of(tenant.share.latency), now);
  }
  batch.charged_ = policy_ == Policy::deadline ? batch.time_.ns(batch.bytes_) : static_cast<double>(batch.bytes_);
  charge(tenant, batch, batch.charged_);
}

/// Charges it for more (or less) than before: bytes, or ns with `deadline`.
void Scheduler::charge(Tenant& tenant, const Batch& batch, double more) const noexcept {
  if (batch.period_ != period_) return;
  tenant.clock += more / weight(tenant);
  if (!batch.reserved_) return;
  const double most_debt = tenant.bound.share * kLongestDebtNs + std::max(0.0, more);
  tenant.reservation.level = std::max(tenant.reservation.level - more, -most_debt);
}

/// Charges for the time since a batch ended last. What this batch is charged for in all, in ns.
double Scheduler::take_off(const Batch& batch, Time now) noexcept {
  const auto own = std::ranges::find(running_, batch.number_, &Running::number);
  Running& oldest = running_.front();
  const double ns = std::max(0.0, ns_of(now - std::max(charged_until_, oldest.started)));
  const double own_ns = std::clamp(ns_of(now - own->started), 0.0, ns);  // since it started
  oldest.charged_ns += ns - own_ns;
  if (&*own == &oldest) {
    oldest.charged_ns += own_ns;
  } else {
    for (Running& each : running_) each.charged_ns += own_ns / static_cast<double>(running_.size());
  }
  charged_until_ = std::max(charged_until_, now);
  const double charged_ns = own->charged_ns;
  running_.erase(own);
  return charged_ns;
}

Scheduler::Batch Scheduler::order(Id id, std::uint64_t bytes, std::size_t kind, Time now) {
  Batch batch;
  batch.tenant_ = id;
  batch.bytes_ = bytes;
  batch.kind_ = std::min(kind, kKinds - 1);
  batch.ordered_ = now;
  Tenant* const tenant = find(id);
  if (tenant == nullptr) return batch;
  Demand& demand = tenant->demand;
  batch.time_ = demand.times[batch.kind_].time();
  const double ns = batch.time_.ns(bytes);
  demand.last = now;
  ++demand.outstanding;
  demand.ordered_ns += ns;
  demand.outstanding_ns += batch.time_.spread_ns(bytes);
  demand.most_outstanding_ns = std::max(demand.most_outstanding_ns, demand.outstanding_ns);
  demand.longest_ns = std::max(demand.longest_ns, ns);
  demand.longest_fixed_ns = std::max(demand.longest_fixed_ns, batch.time_.fixed_ns);
  if (policy_ == Policy::deadline && now - window_ >= window_length()) end_window(now);
  if (now - measured_ >= kMeasureInterval) {
    measure(now);
  } else if (!tenant->counts) {
    reserve(now);
  }
  return batch;
}

bool Scheduler::try_start(Batch& batch, Time now) {
  Tenant* const tenant = find(batch.tenant_);
  if (tenant == nullptr) return false;
  note_back(*tenant, now);
  // While it waits for its own limits, others need not wait for it.
  if (!is_within_rates(*tenant, now)) {
    tenant->waits = false;
    tenant->next.reset();
    return false;
  }
  if (tenant->share.batches != 0 && tenant->batches >= tenant->share.batches) {
    tenant->waits = false;
    if (!tenant->next || batch.ordered_ <= *tenant->next || now - tenant->next_asked_at >= kForgotten) {
      tenant->next = batch.ordered_;
      tenant->next_asked_at = now;
    }
    return false;
  }
  // It has no claim to the time in which it wanted nothing.
  if (!is_active(*tenant, now)) tenant->clock = std::max(tenant->clock, first_clock(now));
  const bool fits = is_oldest(*tenant, batch, now) && has_room(*tenant, batch, now);
  if (!fits || !is_next(*tenant, batch.ordered_, now)) {
    if (fits) note_held(*tenant, batch, now);
    wait(*tenant, batch, now);
    return false;
  }
  note_overtaken(*tenant, batch, now);
  tenant->waits = false;
  tenant->next.reset();
  batch.started_ = now;
  batch.number_ = ++started_;
  charge_first(*tenant, batch, now);
  const double ns = batch.time_.ns(batch.bytes_);
  spend(*tenant, static_cast<double>(batch.bytes_));
  tenant->on_device += batch.bytes_;
  tenant->on_device_ns += ns;
  on_device_ += batch.bytes_;
  on_device_ns_ += ns;
  ++tenant->batches;
  running_.push_back({batch.number_, batch.tenant_, now});
  return true;
}

void Scheduler::give_up(const Batch& batch, Time now) {
  Tenant* const tenant = find(batch.tenant_);
  if (tenant == nullptr) return;
  note_back(*tenant, now);
  const bool waited = std::exchange(tenant->waits, false);
  tenant->next.reset();
  --tenant->demand.outstanding;
  tenant->demand.outstanding_ns -= batch.time_.spread_ns(batch.bytes_);
  Batch as_if_started = batch;
  charge_first(*tenant, as_if_started, now);
  if (waited) spend(*tenant, static_cast<double>(batch.bytes_));
}

Scheduler::Done Scheduler::finish(const Batch& batch, std::uint64_t bytes, Time now) {
  Tenant* const tenant = find(batch.tenant_);
  if (tenant == nullptr) return {};
  const double ns = take_off(batch, now);
  const double expected_ns = batch.time_.ns(batch.bytes_);
  Demand& demand = tenant->demand;
  demand.times[batch.kind_].add(batch.bytes_, ns);
  tenant->shown.bytes += static_cast<double>(bytes);
  --demand.outstanding;
  demand.outstanding_ns -= batch.time_.spread_ns(batch.bytes_);
  charge(*tenant, batch, (policy_ == Policy::deadline ? ns : static_cast<double>(bytes)) - batch.charged_);
  spend(*tenant, static_cast<double>(bytes) - static_cast<double>(batch.bytes_));
  tenant->on_device -= batch.bytes_;
  tenant->on_device_ns -= expected_ns;
  on_device_ -= batch.bytes_;
  on_device_ns_ -= expected_ns;
  --tenant->batches;
  if (tenant->next && now - tenant->next_asked_at < kForgotten) {
    tenant->oldest = *tenant->next;
    tenant->asked_at = tenant->oldest_asked_at = tenant->next_asked_at;
    tenant->waits = true;
  }
  tenant->next.reset();
  const Time took = now - batch.ordered_;
  const Time bound = tenant->share.latency;
  if (bound > Time{} && batch.ordered_ >= changed_) {
    ++tenant->shown.ended;
    if (ns_of(took) > kNearlyLate * ns_of(bound)) tenant->shown.late += took > bound ? 1 : kNearlyLateWeight;
  }
  return {batch.started_ - batch.ordered_, took, time_of(ns), bound > Time{} && took > bound};
}

void Scheduler::Demand::measure(double window_ns) noexcept {
  for (BatchTimeFit& fit : times) fit.refit();
  part = std::max(window_ns > 0 ? ordered_ns / window_ns : 0, part * kKept);
  ordered_ns = 0;
  most_outstanding_ns = std::max(outstanding_ns, most_outstanding_ns * kKept);
  longest_ns *= kKept;
  longest_fixed_ns *= kKept;
}

/// So long that several batches of each tenant end in it, if they are not very long.
Scheduler::Time Scheduler::window_length() const noexcept {
  const Time batches = std::min<Time>(kBatchesInWindow * longest_, kLongestWindow);
  return std::max<Time>(leeway_.tries() ? kTrialInterval : kMeasureInterval, batches);
}

/// The leeway learns what has become of batches. Each tenant without a bound is promised, of what it carries while
/// nothing limits it, the part that the profiles of all that want more have together: so each keeps its profile's part
/// of the device.
void Scheduler::end_window(Time now) noexcept {
  const double seconds = std::chrono::duration<double>(now - window_).count();
  if (seconds <= 0) return;
  const bool limited = leeway_.limits();
  double promised = 0;
  for (const auto& [id, tenant] : tenants_)
    promised += tenant.shown.waited && tenant.share.latency == Time{} ? tenant.share.part : 0;
  Leeway::Seen seen;
  bool is_wanted = false, is_stale = false;
  for (auto& [id, tenant] : tenants_) {
    const Shown shown = std::exchange(tenant.shown, {});
    const double rate = shown.bytes / seconds;
    if (tenant.share.latency > Time{}) {
      if (!tenant.counts || std::isinf(tenant.bound.needed)) continue;
      is_wanted = true;
      // A single one among others says nothing.
      const double late = shown.late < shown.ended ? std::max(0.0, shown.late - 1) : shown.late;
      if (shown.ended > 0) seen.late = std::max(seen.late.value_or(0), late / shown.ended);
    } else if (!limited) {
      // What is too low would promise too little; a light load says nothing.
      tenant.free_rate = std::max(rate, shown.waited ? (rate + tenant.free_rate) / 2 : tenant.free_rate);
    } else if (shown.waited) {
      is_stale |= rate > kStaleRate * tenant.free_rate;
      seen.starves |= rate < promised * tenant.free_rate;
    }
  }
  window_ = now;
  if (!is_wanted) {
    leeway_ = {};
    return;
  }
  const double before = leeway_.bytes();
  leeway_.adapt(seen, static_cast<double>(device_.most_bytes));
  limited_ = leeway_.limits() ? limited_ + 1 : 0;
  if (limited_ >= (is_stale ? kPauseAfterIfStale : kPauseAfter)) {
    leeway_.pause();
    limited_ = 0;
  }
  if (leeway_.bytes() == before) return;
  changed_ = now;
  reserve(now);
}

void Scheduler::measure(Time now) noexcept {
  for (auto& [id, tenant] : tenants_) tenant.demand.measure(ns_of(now - measured_));
  measured_ = now;
  reserve(now);
}

void Scheduler::reserve(Time now) noexcept {
  longest_ = {};
  for (auto& [id, tenant] : tenants_) {
    tenant.reservation.fill(tenant.bound.share * 1e9, tenant.bound.share * ns_of(tenant.share.latency), now);
    tenant.counts = now - tenant.demand.last < kRemembered || is_active(tenant, now);
    tenant.bound = {};
    if (tenant.counts) longest_ = std::max(longest_, time_of(tenant.demand.longest_ns));
  }
  claims_.clear();
  for (auto& [id, tenant] : tenants_) {
    if (!tenant.counts) continue;
    const double bound_ns = ns_of(tenant.share.latency);
    if (bound_ns > 0) {
      double longest_ns = 0, others_ns = 0;
      for (const auto& [other_id, other] : tenants_) {
        if (!other.counts || other_id == id) continue;
        longest_ns = std::max(longest_ns, other.demand.longest_ns);
        // Batches beyond its own limit are not on the device.
        const double most = other.share.batches == 0 ? std::numeric_limits<double>::infinity()
                                                     : other.share.batches * other.demand.longest_ns;
        others_ns += std::min(other.demand.most_outstanding_ns, most);
      }
      const double blocked_ns = std::max(longest_ns, std::min(others_ns, kBlockedPart * bound_ns));
      const double left_ns = bound_ns - blocked_ns - tenant.demand.longest_fixed_ns;
      tenant.bound.blocked = time_of(blocked_ns);
      tenant.bound.needed =
          left_ns <= 0 ? std::numeric_limits<double>::infinity()
                       : std::max({kLeastWeight, tenant.demand.part, tenant.demand.most_outstanding_ns / left_ns});
    }
    claims_.push_back({tenant.share.part, tenant.bound.needed});
  }
  choose_reservations(claims_);
  auto claim = claims_.begin();
  for (auto& [id, tenant] : tenants_) {
    tenant.most_reserved = tenant.most_other = {};
    if (!tenant.counts) continue;
    if (tenant.share.latency > Time{}) {
      tenant.bound.share = claim->share;
      tenant.bound.holds = claim->holds();
    }
    ++claim;
    for (const auto& [other_id, other] : tenants_) {
      // A bound for which no part of the device is enough delays nobody.
      const Time bound = other.share.latency;
      if (other_id == id || !other.counts || bound == Time{} || std::isinf(other.bound.needed)) continue;
      const double most_ns = kBlockedPart * ns_of(bound);
      tenant.most_other.lower(most_ns, leeway_.bytes());
      if (bound < tenant.share.latency) tenant.most_reserved.lower(most_ns, leeway_.bytes());
    }
  }
}

Scheduler::Bound Scheduler::bound_of(Id id) const {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? Bound{} : found->second.bound;
}

}  // namespace penstock::proxy
