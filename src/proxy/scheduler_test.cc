// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler with a simulated device, which carries bytes at a fixed rate in the order in which batches start.

#include "proxy/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <vector>

namespace penstock::proxy {
namespace {

using namespace std::chrono_literals;
using Time = Scheduler::Time;

constexpr double kRate = 10e9;  // bytes per second
constexpr Scheduler::Device kDevice{kRate, 4 << 20};

/// A tenant that always has a batch for each of its lanes.
struct Greedy {
  Share share;
  std::uint64_t batch_bytes = 1 << 20;
  unsigned lanes = 3;
  double cost = 1;  // of a batch, in relation to its bytes
};

class Simulation {
 public:
  Simulation(Policy policy, const std::vector<Greedy>& tenants) : scheduler_(policy, kDevice) {
    for (const Greedy& tenant : tenants) add(tenant);
  }
  void add(const Greedy& greedy) {
    tenants_.push_back({greedy, scheduler_.add(greedy.share, now_), {}, greedy.lanes, 0, true});
  }
  void leave(std::size_t tenant) { tenants_[tenant].wants = false; }
  void come(std::size_t tenant) { tenants_[tenant].wants = true; }
  /// For so long in each period, the threads of the first tenants are on no core, one after the other.
  void take_threads_off(Time for_time, Time period, std::size_t tenants) {
    off_ = for_time;
    off_period_ = period;
    off_tenants_ = tenants;
  }
  Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] Time now() const noexcept { return now_; }

  void run_for(Time duration) {
    const Time end = now_ + duration;
    for (Tenant& tenant : tenants_) tenant.done = 0;
    for (; now_ < end; now_ += 5us) {
      std::erase_if(queue_, [&](const Batch& batch) {
        if (batch.done_at > now_ || is_off(batch.tenant)) return false;
        Tenant& tenant = tenants_[batch.tenant];
        static_cast<void>(scheduler_.finish(batch.batch, batch.bytes, now_));
        tenant.done += batch.bytes;
        ++tenant.free_lanes;
        return true;
      });
      // Threads look in any order, the first one would be the same each time; and again, when others have started.
      for (int looks = 0; looks < 4; ++looks) {
        for (std::size_t i = 0; i < tenants_.size(); ++i) submit((i + turn_) % tenants_.size());
        ++turn_;
      }
    }
  }
  /// Of what the device could have carried in the last run.
  [[nodiscard]] double part_of(std::size_t tenant, Time duration) const {
    return static_cast<double>(tenants_[tenant].done) / (kRate * std::chrono::duration<double>(duration).count());
  }

 private:
  struct Tenant {
    Greedy greedy;
    Scheduler::Id id;
    std::vector<Scheduler::Batch> waiting;
    unsigned free_lanes;
    std::uint64_t done;
    bool wants;
  };
  struct Batch {
    std::size_t tenant;
    Scheduler::Batch batch;
    std::uint64_t bytes;
    Time done_at;
  };
  [[nodiscard]] bool is_off(std::size_t tenant) const {
    const Time begins = off_period_ * static_cast<std::int64_t>(tenant) / static_cast<std::int64_t>(tenants_.size());
    return tenant < off_tenants_ && (now_ + off_period_ - begins) % off_period_ < off_;
  }
  void submit(std::size_t t) {
    Tenant& tenant = tenants_[t];
    if (!tenant.wants || is_off(t)) return;
    while (tenant.waiting.size() < tenant.free_lanes)
      tenant.waiting.push_back(scheduler_.order(tenant.id, tenant.greedy.batch_bytes, 0, now_));
    while (!tenant.waiting.empty() && scheduler_.try_start(tenant.waiting.front(), now_)) {
      const auto bytes =
          static_cast<std::uint64_t>(static_cast<double>(tenant.greedy.batch_bytes) * tenant.greedy.cost);
      const Time takes{static_cast<std::int64_t>(static_cast<double>(bytes) / kRate * 1e9)};
      device_free_at_ = std::max(device_free_at_, now_) + takes;
      queue_.push_back({t, tenant.waiting.front(), bytes, device_free_at_});
      tenant.waiting.erase(tenant.waiting.begin());
      --tenant.free_lanes;
    }
  }

  Scheduler scheduler_;
  std::vector<Tenant> tenants_;
  std::deque<Batch> queue_;
  Time now_{1s};
  Time device_free_at_{};
  std::size_t turn_ = 0;
  Time off_{}, off_period_{1s};
  std::size_t off_tenants_ = 0;
};

TEST(Scheduler, LetsATenantAloneHaveTheDevice) {
  for (const Policy policy : {Policy::best_effort, Policy::equal, Policy::weighted, Policy::deadline}) {
    Simulation simulation(policy, {{{1.0 / 16, 0, 0}}});
    simulation.run_for(500ms);
    EXPECT_GT(simulation.part_of(0, 500ms), 0.95);
  }
}

TEST(Scheduler, GivesAGreedyTenantNoMoreThanAnEqualShare) {
  Simulation simulation(Policy::equal, {{{}, 4 << 20, 64}, {{}, 256 << 10, 8}, {{}, 256 << 10, 8}});
  simulation.run_for(1s);
  for (std::size_t t = 0; t < 3; ++t) EXPECT_NEAR(simulation.part_of(t, 1s), 1.0 / 3, 0.05 / 3) << t;
}

TEST(Scheduler, BestEffortGivesAGreedyTenantMore) {
  Simulation simulation(Policy::best_effort, {{{}, 4 << 20, 16}, {{}, 256 << 10, 2}});
  simulation.run_for(1s);
  EXPECT_GT(simulation.part_of(0, 1s), 0.8);
}

TEST(Scheduler, BestEffortStartsBatchesInTheOrderOfTheirOrders) {
  constexpr std::uint64_t kBytes = 1 << 20;
  Scheduler scheduler(Policy::best_effort, {.bytes_per_second = kRate, .most_bytes = 3 * kBytes});
  const auto many = scheduler.add({}, 0s), few = scheduler.add({}, 0s);
  std::vector<Scheduler::Batch> of_many;
  for (int i = 1; i <= 5; ++i) of_many.push_back(scheduler.order(many, kBytes, 0, Time{i}));
  Scheduler::Batch of_few = scheduler.order(few, kBytes, 0, Time{6});
  of_many.push_back(scheduler.order(many, kBytes, 0, Time{7}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(scheduler.try_start(of_many[i], 10us));
  EXPECT_FALSE(scheduler.try_start(of_many[3], 10us)) << "no more than the device may have at a time";
  EXPECT_FALSE(scheduler.try_start(of_few, 10us));
  for (std::size_t i = 0; i < 2; ++i) {
    const Time now = 20us + i * 10us;
    static_cast<void>(scheduler.finish(of_many[i], kBytes, now));
    EXPECT_FALSE(scheduler.try_start(of_few, now)) << "others were ordered before it";
    EXPECT_TRUE(scheduler.try_start(of_many[i + 3], now));
    EXPECT_FALSE(scheduler.try_start(of_many[i == 0 ? 4 : 5], now));
  }
  static_cast<void>(scheduler.finish(of_many[2], kBytes, 40us));
  EXPECT_FALSE(scheduler.try_start(of_many[5], 40us)) << "ordered after it";
  EXPECT_TRUE(scheduler.try_start(of_few, 40us));
}

TEST(Scheduler, BestEffortOverlapsLargeBatches) {
  Scheduler scheduler(Policy::best_effort, kDevice);
  const auto tenant = scheduler.add({}, 0s);
  std::vector<Scheduler::Batch> batches;
  for (int i = 0; i < 4; ++i) batches.push_back(scheduler.order(tenant, 2 * kDevice.most_bytes, 0, Time{i}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scheduler.try_start(batches[static_cast<std::size_t>(i)], 10us)) << i;
  EXPECT_FALSE(scheduler.try_start(batches[3], 10us));
}

TEST(Scheduler, LeavesAFixedShareIdle) {
  Simulation simulation(Policy::fixed, {{{0.25, 0, 0}, 1 << 20, 16}, {{0.5, 0, 0}}});
  simulation.leave(1);
  simulation.run_for(1s);
  EXPECT_NEAR(simulation.part_of(0, 1s), 0.25, 0.25 * 0.05);
}

TEST(Scheduler, LendsWhatAWeightedTenantLeaves) {
  Simulation simulation(Policy::weighted, {{{0.25, 0, 0}, 1 << 20, 16}, {{0.75, 0, 0}, 1 << 20, 16}});
  simulation.run_for(500ms);
  EXPECT_NEAR(simulation.part_of(0, 500ms), 0.25, 0.25 * 0.05);
  simulation.leave(1);
  simulation.run_for(500ms);
  EXPECT_GT(simulation.part_of(0, 500ms), 0.95);
  simulation.come(1);  // has no claim to the time in which it wanted nothing
  simulation.run_for(500ms);
  EXPECT_NEAR(simulation.part_of(0, 500ms), 0.25, 0.25 * 0.06);
}

TEST(Scheduler, ChangesWhileBatchesRun) {
  Simulation simulation(Policy::equal, {{{0.25, 0, 0}, 1 << 20, 16}, {{0.75, 0, 0}, 1 << 20, 16}});
  simulation.run_for(500ms);
  EXPECT_NEAR(simulation.part_of(0, 500ms), 0.5, 0.5 * 0.05);
  simulation.scheduler().set_policy(Policy::weighted);
  simulation.run_for(500ms);
  EXPECT_NEAR(simulation.part_of(0, 500ms), 0.25, 0.25 * 0.05);
  simulation.scheduler().set_policy(Policy::equal);
  simulation.run_for(500ms);
  EXPECT_NEAR(simulation.part_of(0, 500ms), 0.5, 0.5 * 0.05);
}

TEST(Scheduler, WhatWasUsedBeforeDoesNotCountForAFixedShare) {
  Simulation simulation(Policy::best_effort, {{{0.25, 0, 0}, 1 << 20, 16}});
  simulation.run_for(1s);
  simulation.scheduler().set_policy(Policy::fixed);
  simulation.run_for(500ms);
  EXPECT_NEAR(simulation.part_of(0, 500ms), 0.25, 0.25 * 0.05);
}

TEST(Scheduler, ChargesWhatBatchesTurnOutToCost) {
  Simulation simulation(Policy::equal, {{{}, 1 << 20, 16, 3}, {{}, 1 << 20, 16}});
  simulation.run_for(1s);
  EXPECT_NEAR(simulation.part_of(0, 1s), 0.5, 0.5 * 0.05);
}

TEST(Scheduler, KeepsTheLimitOfAUserOverAllOfItsTenants) {
  const auto of_user = [](std::uint64_t user, double limit) {
    Share share;
    share.user = user;
    share.user_bytes_per_second = static_cast<std::uint64_t>(limit * kRate);
    return Greedy{share, 256 << 10, 16};
  };
  for (const Policy policy : {Policy::best_effort, Policy::equal, Policy::weighted, Policy::deadline}) {
    Simulation simulation(policy, {of_user(7, 0.2), of_user(7, 0.2), of_user(8, 0.2), {{}, 1 << 20, 8}});
    simulation.run_for(1s);
    EXPECT_NEAR(simulation.part_of(0, 1s) + simulation.part_of(1, 1s), 0.2, 0.2 * 0.05) << "two tenants";
    EXPECT_NEAR(simulation.part_of(2, 1s), 0.2, 0.2 * 0.05);
    EXPECT_GT(simulation.part_of(3, 1s), 0.5) << "who has no limit gets the rest";
    simulation.leave(0);
    simulation.run_for(1s);
    EXPECT_NEAR(simulation.part_of(1, 1s), 0.2, 0.2 * 0.05) << "one has what both had";
  }
}

TEST(Scheduler, AUserPaysItsDebtsAlsoIfItsTenantComesAgain) {
  Scheduler scheduler(Policy::best_effort, kDevice);
  Share share;
  share.user = 7;
  share.user_bytes_per_second = 1'000'000;
  const auto start = [&](Scheduler::Id tenant, Time now) {
    Scheduler::Batch batch = scheduler.order(tenant, 100'000, 0, now);
    if (!scheduler.try_start(batch, now)) return scheduler.give_up(batch, now), false;
    static_cast<void>(scheduler.finish(batch, 100'000, now));
    return true;
  };
  const auto first = scheduler.add(share, 0s);
  EXPECT_TRUE(start(first, 0s));
  EXPECT_FALSE(start(first, 50ms));
  scheduler.remove(first);
  const auto second = scheduler.add(share, 60ms);
  EXPECT_FALSE(start(second, 60ms));
  EXPECT_TRUE(start(second, 101ms));
  scheduler.remove(second);
  const auto third = scheduler.add(share, 10s);
  EXPECT_TRUE(start(third, 10s));
}

// `run: {streams: 1}`: one batch on the device, and one that waits.
TEST(Scheduler, ABatchThatWaitsForItsTenantsOwnLimitKeepsItsPlace) {
  constexpr std::uint64_t kMost = 4 << 20;  // on the device
  for (const std::uint64_t bytes : {kMost, kMost * 3 / 4}) {
    Share large, small;
    large.part = 0.8;
    large.batches = 1;
    small.part = 0.2;
    Simulation simulation(Policy::weighted, {{large, bytes, 2}, {small, bytes, 2}});
    simulation.run_for(100ms);
    simulation.run_for(1s);
    const double all = simulation.part_of(0, 1s) + simulation.part_of(1, 1s);
    EXPECT_NEAR(simulation.part_of(0, 1s) / all, 0.8, 0.8 * 0.05) << bytes;
  }
}

// Others have waited for it, so it pays with what limits it, too.
TEST(Scheduler, ABatchThatIsGivenUpCountsForItsTenantsRate) {
  Scheduler scheduler(Policy::fixed, kDevice);
  Share share;
  share.part = 0.5;
  const auto one = scheduler.add(share, 0s), other = scheduler.add(share, 0s);
  Scheduler::Batch all = scheduler.order(other, 4 << 20, 0, 0s);
  ASSERT_TRUE(scheduler.try_start(all, 0s));
  Scheduler::Batch waits = scheduler.order(one, 40 << 20, 0, 0s);
  EXPECT_FALSE(scheduler.try_start(waits, 0s));
  scheduler.give_up(waits, 1us);
  static_cast<void>(scheduler.finish(all, 4 << 20, 1ms));
  Scheduler::Batch next = scheduler.order(one, 1 << 20, 0, 1ms);
  EXPECT_FALSE(scheduler.try_start(next, 1ms)) << "8 ms of the device";
  EXPECT_TRUE(scheduler.try_start(next, 20ms));
}

TEST(Scheduler, KeepsATenantsOwnLimits) {
  Simulation simulation(Policy::weighted,
                        {{{1, static_cast<std::uint64_t>(kRate / 10), 0}, 256 << 10, 16}, {{1, 0, 1}}});
  simulation.run_for(1s);
  EXPECT_NEAR(simulation.part_of(0, 1s), 0.1, 0.1 * 0.05);
  Scheduler scheduler(Policy::best_effort, kDevice);
  const auto one = scheduler.add({1, 0, 1}, 0s);
  Scheduler::Batch first = scheduler.order(one, 100, 0, 0s);
  Scheduler::Batch second = scheduler.order(one, 100, 0, 0s);
  EXPECT_TRUE(scheduler.try_start(first, 0s));
  EXPECT_FALSE(scheduler.try_start(second, 0s));
  static_cast<void>(scheduler.finish(first, 100, 0s));
  EXPECT_TRUE(scheduler.try_start(second, 0s));
}

TEST(Scheduler, DoesNotWaitForATenantWhoseThreadHasStopped) {
  Scheduler scheduler(Policy::equal, kDevice);
  const auto stopped = scheduler.add({}, 0s);
  const auto other = scheduler.add({}, 0s);
  Scheduler::Batch large = scheduler.order(other, 4 << 20, 0, 1ms);
  Scheduler::Batch forgotten = scheduler.order(stopped, 1 << 20, 0, 1ms);
  ASSERT_TRUE(scheduler.try_start(large, 1ms));
  ASSERT_FALSE(scheduler.try_start(forgotten, 1ms));  // waits, and never asks again
  static_cast<void>(scheduler.finish(large, 5 << 20, 1ms));
  Scheduler::Batch next = scheduler.order(other, 1 << 20, 0, 2ms);
  EXPECT_FALSE(scheduler.try_start(next, 1100us));
  EXPECT_TRUE(scheduler.try_start(next, 2ms));
}

TEST(Scheduler, UsesTheDeviceWhileThreadsOfThoseWhoWaitAreOnNoCore) {
  for (const Policy policy : {Policy::equal, Policy::weighted, Policy::deadline}) {
    const Share quarter{0.25, 0, 0};
    Simulation simulation(policy, {{quarter, 1 << 20, 8}, {quarter}, {quarter}, {quarter}});
    simulation.take_threads_off(4ms, 20ms, 4);
    simulation.run_for(1s);
    double together = 0;
    for (std::size_t t = 0; t < 4; ++t) {
      together += simulation.part_of(t, 1s);
      EXPECT_NEAR(simulation.part_of(t, 1s), 0.25, 0.25 * 0.05) << t;
    }
    EXPECT_GT(together, 0.95) << kPolicyNames[static_cast<std::size_t>(policy)];
  }
}

/// With an order that is never to start, which finds no room each time that it asks.
TEST(Scheduler, WaitsForATenantThatLooksInNowAndThenOnlyInBounds) {
  for (const Policy policy : {Policy::best_effort, Policy::equal, Policy::weighted, Policy::deadline}) {
    Simulation simulation(policy, {{{0.5, 0, 0}, 1 << 20, 8}});
    const auto attacker = simulation.scheduler().add({0.5, 0, 0}, simulation.now());
    simulation.run_for(10ms);
    Scheduler::Batch batch = simulation.scheduler().order(attacker, kDevice.most_bytes, 0, simulation.now());
    double part = 0;
    constexpr int kLooks = 400;
    for (int look = 0; look < kLooks; ++look) {
      ASSERT_FALSE(simulation.scheduler().try_start(batch, simulation.now()));
      simulation.run_for(5500us);
      part += simulation.part_of(0, 5500us) / kLooks;
    }
    EXPECT_GT(part, 0.9) << kPolicyNames[static_cast<std::size_t>(policy)];
    // Afterwards it is a tenant like others: its usual absences are overtaken again.
    simulation.scheduler().give_up(batch, simulation.now());
    simulation.run_for(50ms);
    batch = simulation.scheduler().order(attacker, 256 << 10, 0, simulation.now());
    static_cast<void>(simulation.scheduler().try_start(batch, simulation.now()));
    simulation.run_for(4ms);
    EXPECT_GT(simulation.part_of(0, 4ms), 0.9);
  }
}

/// The device must be empty for its batches.
TEST(Scheduler, ATenantWithLargeBatchesKeepsItsShareAlthoughItsThreadsAreOftenAway) {
  for (const Policy policy : {Policy::equal, Policy::weighted, Policy::deadline}) {
    const Share half{0.5, 0, 0};
    Simulation simulation(policy, {{half, 4 << 20, 2}, {half, 256 << 10, 32}});
    simulation.take_threads_off(230us, 1ms, /*tenants=*/1);
    simulation.run_for(1s);
    EXPECT_GT(simulation.part_of(0, 1s), 0.4) << kPolicyNames[static_cast<std::size_t>(policy)];
  }
}

TEST(Scheduler, StartsTheBatchesOfATenantInTheirOrder) {
  Scheduler scheduler(Policy::equal, {kRate, 100});
  const auto one = scheduler.add({}, 0s);
  Scheduler::Batch runs = scheduler.order(one, 100, 0, 0us);
  Scheduler::Batch older = scheduler.order(one, 100, 0, 1us);
  Scheduler::Batch newer = scheduler.order(one, 100, 0, 2us);
  ASSERT_TRUE(scheduler.try_start(runs, 2us));
  EXPECT_FALSE(scheduler.try_start(newer, 2us));
  EXPECT_FALSE(scheduler.try_start(older, 2us));
  static_cast<void>(scheduler.finish(runs, 100, 3us));
  EXPECT_FALSE(scheduler.try_start(newer, 3us));
  EXPECT_TRUE(scheduler.try_start(older, 3us));
  static_cast<void>(scheduler.finish(older, 100, 4us));
  EXPECT_TRUE(scheduler.try_start(newer, 4us));
}

TEST(Scheduler, ChargesABatchThatATenantGivesUp) {
  Scheduler scheduler(Policy::equal, {kRate, 100});
  const auto busy = scheduler.add({}, 0us);
  const auto fickle = scheduler.add({}, 0us);
  const auto start = [&](Scheduler::Id tenant, std::uint64_t bytes, Time now) {
    Scheduler::Batch batch = scheduler.order(tenant, bytes, 0, now);
    return scheduler.try_start(batch, now);
  };
  ASSERT_TRUE(start(busy, 60, 0us));
  Scheduler::Batch given_up = scheduler.order(fickle, 90, 0, 0us);
  EXPECT_FALSE(scheduler.try_start(given_up, 0us));  // no room
  EXPECT_TRUE(start(busy, 10, 0us));
  Scheduler::Batch waits = scheduler.order(busy, 10, 0, 0us);
  EXPECT_FALSE(scheduler.try_start(waits, 0us));  // for the other one
  scheduler.give_up(given_up, 1us);
  EXPECT_TRUE(scheduler.try_start(waits, 1us));
  EXPECT_FALSE(start(fickle, 90, 1us));
  EXPECT_TRUE(start(busy, 10, 1us));
  EXPECT_TRUE(start(busy, 10, 1us));  // the other one has had its turn
}

TEST(Scheduler, ForgetsATenantThatLeavesWithBatchesOnTheDevice) {
  Scheduler scheduler(Policy::equal, kDevice);
  const auto gone = scheduler.add({}, 0s);
  const auto other = scheduler.add({}, 0s);
  Scheduler::Batch left = scheduler.order(gone, 4 << 20, 0, 1ms);
  Scheduler::Batch waits = scheduler.order(other, 1 << 20, 0, 1ms);
  ASSERT_TRUE(scheduler.try_start(left, 1ms));
  ASSERT_FALSE(scheduler.try_start(waits, 1ms));
  scheduler.remove(gone);
  EXPECT_TRUE(scheduler.try_start(waits, 1ms));
  static_cast<void>(scheduler.finish(left, 4 << 20, 1ms));
  Scheduler::Batch late = scheduler.order(gone, 1, 0, 1ms);
  EXPECT_FALSE(scheduler.try_start(late, 1ms));
}

RC_GTEST_PROP(Scheduler, KeepsSharesAgainstGreedyTenants, ()) {
  const auto units = *rc::gen::container<std::vector<unsigned>>(*rc::gen::inRange<std::size_t>(2, 6),
                                                                rc::gen::element(1U, 2U, 4U, 8U));
  const double sum = std::accumulate(units.begin(), units.end(), 0.0);
  const Policy policy = *rc::gen::element(Policy::equal, Policy::weighted);
  std::vector<Greedy> tenants;
  for (const unsigned of_tenant : units) {
    Greedy tenant;
    tenant.share.part = of_tenant / 16.0;
    tenant.batch_bytes = *rc::gen::inRange<std::uint64_t>(64 << 10, 2 << 20);
    // Enough to want its share at all times.
    tenant.lanes = static_cast<unsigned>((16 << 20) / tenant.batch_bytes) + *rc::gen::inRange(0U, 64U);
    tenant.cost = *rc::gen::inRange(5, 20) / 10.0;
    tenants.push_back(tenant);
  }
  constexpr Time kDuration = 500ms;
  Simulation simulation(policy, tenants);
  simulation.run_for(kDuration);
  for (std::size_t t = 0; t < tenants.size(); ++t) {
    const double expected = policy == Policy::equal ? 1.0 / static_cast<double>(units.size()) : units[t] / sum;
    RC_ASSERT(std::abs(simulation.part_of(t, kDuration) - expected) <= 0.05 * expected);
  }
}

TEST(Policy, HasItsName) {
  for (std::size_t p = 0; p < std::size(kPolicyNames); ++p)
    EXPECT_EQ(policy_named(kPolicyNames[p]), static_cast<Policy>(p));
  EXPECT_FALSE(policy_named("fair"));
}

}  // namespace
}  // namespace penstock::proxy
