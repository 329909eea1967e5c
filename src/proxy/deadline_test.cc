// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scheduler `deadline` with simulated devices, which do one batch after the other, all at once, or in stages.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "proxy/scheduler.h"

namespace penstock::proxy {
namespace {

using namespace std::chrono_literals;
using Time = Scheduler::Time;

constexpr double kRate = 10e9;  // bytes per second
constexpr Time kFixed{4000};    // of each batch, whatever its size
constexpr Scheduler::Device kDevice{kRate, 4 << 20};

/// in_turn: as a copy engine. at_once: as kernels that share multiprocessors. in_stages: as a GPU, by a copy engine, by
/// kernels that share multiprocessors, and by another copy engine; then the host notices after a while. So several
/// batches together carry more than one alone.
enum class Runs : std::uint8_t { in_turn, at_once, in_stages };

/// What a tenant orders.
struct Load {
  Share share;
  std::uint64_t bytes = 64 << 10;  // of a batch
  Time every{};                    // 0: it orders whenever a lane is free
  unsigned lanes = 32;
  double cost = 1;  // of a byte, in relation to that of others
  Time latency{};   // in_stages: what a batch takes in addition, without using the device
};

class Simulation {
 public:
  Simulation(Policy policy, Runs runs, const std::vector<Load>& loads) : scheduler_(policy, kDevice), runs_(runs) {
    for (const Load& load : loads) add(load);
  }
  void add(const Load& load) { tenants_.push_back({load, scheduler_.add(load.share, now_)}); }
  Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] Load& load(std::size_t tenant) { return tenants_[tenant].load; }
  [[nodiscard]] Scheduler::Bound bound(std::size_t tenant) const { return scheduler_.bound_of(tenants_[tenant].id); }

  void run_for(Time duration) {
    constexpr Time kStep{4000};
    const Time end = now_ + duration;
    for (Tenant& tenant : tenants_) tenant.delays.clear(), tenant.done_bytes = 0, tenant.charged = {};
    for (; now_ < end; now_ += kStep) {
      work(static_cast<double>(kStep.count()));
      // Threads look in any order; the first one would be the same each time.
      for (std::size_t i = 0; i < tenants_.size(); ++i) submit((i + turn_) % tenants_.size());
      ++turn_;
    }
    duration_ = duration;
  }
  /// Of the delays in the last run, from orders to results.
  [[nodiscard]] Time p99(std::size_t tenant) {
    auto& delays = tenants_[tenant].delays;
    if (delays.empty()) return Time::max();
    const auto at = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() * 99 / 100);
    std::nth_element(delays.begin(), at, delays.end());
    return *at;
  }
  /// Of the batches in the last run.
  [[nodiscard]] double late(std::size_t tenant) const {
    const Tenant& of = tenants_[tenant];
    const auto count = std::ranges::count_if(of.delays, [&](Time delay) { return delay > of.load.share.latency; });
    return static_cast<double>(count) / static_cast<double>(std::max<std::size_t>(1, of.delays.size()));
  }
  /// It orders one batch, which never starts, as if its own limits were in the way, and no other one.
  void stop_with_an_order(std::size_t tenant) {
    tenants_[tenant].load.lanes = 0;
    static_cast<void>(scheduler_.order(tenants_[tenant].id, tenants_[tenant].load.bytes, 0, now_));
  }
  /// Of what the device could have carried in the last run.
  [[nodiscard]] double part_of(std::size_t tenant) const {
    return static_cast<double>(tenants_[tenant].done_bytes) * tenants_[tenant].load.cost /
           (kRate * std::chrono::duration<double>(duration_).count());
  }
  /// The part of the time of the device for which the scheduler has charged it.
  [[nodiscard]] double charged(std::size_t tenant) const {
    return std::chrono::duration<double>(tenants_[tenant].charged) / std::chrono::duration<double>(duration_);
  }

 private:
  struct Ordered {
    Scheduler::Batch batch;
    Time at;
  };
  struct Tenant {
    Load load;
    Scheduler::Id id;
    std::deque<Ordered> waiting{};
    unsigned on_device = 0;
    Time next_order{};
    std::vector<Time> delays{};
    std::uint64_t done_bytes = 0;
    Time charged{};
  };
  struct Running {
    std::size_t tenant;
    Ordered order;
    std::uint64_t bytes;
    double left_ns;  // of this stage
    double stage_ns = 0;
    unsigned stage = 0;
  };
  static constexpr unsigned kKernels = 1, kCopyBack = 2, kLastStage = 3;
  void work(double ns) {
    while (!device_.empty() && ns > 1e-6) {
      if (runs_ == Runs::in_stages) {
        ns -= work_in_stages(ns);
      } else if (runs_ == Runs::in_turn) {
        const double done = std::min(ns, device_.front().left_ns);
        device_.front().left_ns -= done;
        ns -= done;
      } else {
        const auto count = static_cast<double>(device_.size());
        const double least = std::ranges::min(device_, {}, &Running::left_ns).left_ns;
        const double done = std::min(ns / count, least);
        for (Running& running : device_) running.left_ns -= done;
        ns -= done * count;
      }
      std::erase_if(device_, [&](Running& running) {
        if (running.left_ns > 1e-6) return false;
        if (runs_ == Runs::in_stages && running.stage < kLastStage) {
          ++running.stage;
          running.left_ns = running.stage == kKernels ? running.stage_ns / 4
                            : running.stage == kCopyBack
                                ? running.stage_ns
                                : static_cast<double>(tenants_[running.tenant].load.latency.count());
          if (running.left_ns > 0) return false;
        }
        finish(running);
        return true;
      });
    }
  }
  /// At most until a batch has passed a stage. Returns the time.
  double work_in_stages(double ns) {
    std::vector<Running*> works;  // the first one at each copy engine, and all others
    double kernels = 0;
    for (const unsigned stage : {0U, kCopyBack}) {
      const auto first = std::ranges::find(device_, stage, &Running::stage);
      if (first != device_.end()) works.push_back(&*first);
    }
    for (Running& running : device_) {
      if (running.stage != kKernels && running.stage != kLastStage) continue;
      works.push_back(&running);
      kernels += running.stage == kKernels ? 1 : 0;
    }
    const auto slowness = [kernels](const Running& running) { return running.stage == kKernels ? kernels : 1; };
    for (const Running* const running : works) ns = std::min(ns, running->left_ns * slowness(*running));
    for (Running* const running : works) running->left_ns -= ns / slowness(*running);
    return ns;
  }
  void finish(const Running& running) {
    Tenant& tenant = tenants_[running.tenant];
    const Scheduler::Done done = scheduler_.finish(running.order.batch, running.bytes, now_);
    EXPECT_EQ(done.took, now_ - running.order.at);
    EXPECT_EQ(done.late, tenant.load.share.latency > 0s && done.took > tenant.load.share.latency);
    tenant.charged += done.charged;
    tenant.delays.push_back(now_ - running.order.at);
    tenant.done_bytes += running.bytes;
    --tenant.on_device;
  }
  void submit(std::size_t t) {
    Tenant& tenant = tenants_[t];
    const auto order = [&] {
      tenant.waiting.push_back({scheduler_.order(tenant.id, tenant.load.bytes, 0, now_), now_});
    };
    if (tenant.load.every > 0s) {
      // As in a run, what comes while all lanes are busy is lost.
      if (tenant.next_order > now_) return start(t);
      tenant.next_order = now_ + tenant.load.every;
      if (tenant.waiting.size() + tenant.on_device < tenant.load.lanes) {
        order();
      } else {
        tenant.delays.push_back(Time::max());
      }
    } else {
      while (tenant.waiting.size() + tenant.on_device < tenant.load.lanes) order();
    }
    start(t);
  }
  void start(std::size_t t) {
    Tenant& tenant = tenants_[t];
    while (!tenant.waiting.empty() && scheduler_.try_start(tenant.waiting.front().batch, now_)) {
      const double varies = std::uniform_real_distribution(0.9, 1.1)(random_);
      const double ns = static_cast<double>(kFixed.count()) +
                        static_cast<double>(tenant.load.bytes) / kRate * 1e9 * tenant.load.cost * varies;
      device_.push_back({t, tenant.waiting.front(), tenant.load.bytes, ns, ns});
      tenant.waiting.pop_front();
      ++tenant.on_device;
    }
  }

  Scheduler scheduler_;
  const Runs runs_;
  std::vector<Tenant> tenants_;
  std::deque<Running> device_;
  Time now_{1s};
  Time duration_{};
  std::size_t turn_ = 0;
  std::mt19937 random_;
};

constexpr Share with_bound(Time bound, double part = 1.0 / 16) { return {part, 0, 0, bound}; }
/// Wants all that it can get, without a bound.
constexpr Load greedy_with(double part) { return {{part}, 1 << 20, 0s, 64}; }
constexpr Load kGreedy = greedy_with(8.0 / 16);

class Deadline : public ::testing::TestWithParam<Runs> {};
INSTANTIATE_TEST_SUITE_P(Devices, Deadline, ::testing::Values(Runs::in_turn, Runs::at_once, Runs::in_stages),
                         [](const auto& runs) {
                           return runs.param == Runs::in_turn   ? std::string("in_turn")
                                  : runs.param == Runs::at_once ? std::string("at_once")
                                                                : std::string("in_stages");
                         });

TEST_P(Deadline, KeepsATightBoundThatBestEffortMisses) {
  const std::vector<Load> loads{
      {with_bound(400us), 64 << 10, 100us}, {with_bound(10ms), 512 << 10, 1ms}, greedy_with(0.25)};
  for (const Policy policy : {Policy::best_effort, Policy::weighted, Policy::deadline}) {
    Simulation simulation(policy, GetParam(), loads);
    simulation.run_for(500ms);
    simulation.run_for(2s);
    if (policy != Policy::deadline) {
      EXPECT_GT(simulation.p99(0), 400us) << kPolicyNames[static_cast<std::size_t>(policy)];
      continue;
    }
    EXPECT_LE(simulation.p99(0), 400us);
    EXPECT_LE(simulation.p99(1), 10ms);
    EXPECT_TRUE(simulation.bound(0).holds);
    EXPECT_TRUE(simulation.bound(1).holds);
    if (GetParam() == Runs::in_stages) continue;  // a batch of the greedy one takes half of the bound
    EXPECT_GT(simulation.part_of(0) + simulation.part_of(1) + simulation.part_of(2), 0.9) << "nothing idles";
  }
}

/// What a quarter of the bound allows would leave others half of a device that overlaps batches.
TEST_P(Deadline, LetsOthersFillTheDeviceWhileABoundHolds) {
  const std::vector<Load> loads{{with_bound(1200us), 64 << 10, 400us}, kGreedy};
  double by_weight = 0;
  for (const Policy policy : {Policy::weighted, Policy::deadline}) {
    Simulation simulation(policy, GetParam(), loads);
    simulation.run_for(3s);
    simulation.run_for(1s);
    EXPECT_LE(simulation.p99(0), 1200us);
    if (policy == Policy::weighted) {
      by_weight = simulation.part_of(1);
    } else {
      EXPECT_GT(simulation.part_of(1), 0.97 * by_weight);
    }
  }
}

/// With few batches on the device, the time that they take by themselves looks as if the device were busy. A bound for
/// which others may put little there then makes its own batches late.
TEST(DeadlineOfLongBatches, IsKeptAsWellAsWithoutIt) {
  for (const Time latency : {200us, 400us}) {
    const Load bounded{with_bound(1ms, 0.5), 64 << 10, 344us, 3, 1, latency};
    const Load greedy{{0.5}, 1 << 20, 0s, 8, 1, latency};
    double by_weight = 0;
    for (const Policy policy : {Policy::weighted, Policy::deadline}) {
      Simulation simulation(policy, Runs::in_stages, {bounded, greedy});
      simulation.run_for(3s);
      simulation.run_for(1s);
      EXPECT_LE(simulation.p99(0), 1ms) << latency.count();
      if (policy == Policy::weighted) {
        by_weight = simulation.part_of(1);
      } else {
        EXPECT_GT(simulation.part_of(1), 0.6 * by_weight) << latency.count();
      }
    }
  }
}

/// They find out again and again that more is too much; that must not make batches late.
TEST_P(Deadline, KeepsABoundWhileOthersFillTheDeviceAsFarAsItAllows) {
  for (const Time bound : {300us, 400us, 800us}) {
    Simulation simulation(Policy::deadline, GetParam(), {{with_bound(bound), 64 << 10, 100us}, greedy_with(0.25)});
    simulation.run_for(1s);
    simulation.run_for(2s);
    EXPECT_LE(simulation.p99(0), bound) << bound.count();
    EXPECT_LT(simulation.late(0), 0.006) << bound.count();
  }
}

/// A device in stages with few batches carries less, so a tight bound would leave others next to nothing.
TEST_P(Deadline, TakesNoMoreFromOthersThanTheirProfilesLeave) {
  constexpr double kPart = 12.0 / 16;
  for (const Time bound : {200us, 500us}) {
    double by_weight = 0;
    for (const Policy policy : {Policy::weighted, Policy::deadline}) {
      Simulation simulation(policy, GetParam(), {{with_bound(bound), 64 << 10, 344us, 3}, greedy_with(kPart)});
      simulation.run_for(1s);
      simulation.run_for(1s);
      if (policy == Policy::weighted) {
        by_weight = simulation.part_of(1);
      } else {
        EXPECT_GT(simulation.part_of(1), 0.95 * kPart * by_weight) << bound.count();
      }
    }
  }
}

/// A tight bound beside others that take what they get, on a device in stages.
struct TightBound {
  static constexpr double kPart = 12.0 / 16;
  static constexpr Load kBounded{with_bound(300us), 64 << 10, 344us, 3};
  static constexpr Load kOthers{{kPart}, 1 << 20, 0s, 64, 1, 400us};
  /// What is promised to the others.
  static double promised() {
    Simulation by_weight(Policy::weighted, Runs::in_stages, {kOthers, kBounded});
    by_weight.run_for(500ms);
    return kPart * by_weight.part_of(0);
  }
};

/// What limits others in favour of one bound must not count as what they carry without a limit.
TEST(DeadlineOfSeveral, TakesNoMoreFromOthersThanTheirProfilesLeave) {
  const double promised = TightBound::promised();
  Simulation simulation(Policy::deadline, Runs::in_stages, {TightBound::kOthers});
  for (int bounds = 1; bounds <= 3; ++bounds) {
    simulation.add(TightBound::kBounded);
    simulation.run_for(500ms);
    simulation.run_for(500ms);
    EXPECT_GT(simulation.part_of(0), promised) << bounds;
  }
}

TEST(DeadlineOfOne, ThatDoesNothingLimitsNobodyForLong) {
  Simulation simulation(Policy::deadline, Runs::in_stages, {TightBound::kBounded, greedy_with(TightBound::kPart)});
  simulation.run_for(2s);
  const double limited = simulation.part_of(1);
  simulation.stop_with_an_order(0);
  simulation.run_for(2s);
  simulation.run_for(1s);
  EXPECT_GT(simulation.part_of(1), 1.05 * limited);
}

/// What they carry without a limit is looked at again.
TEST(DeadlineOfOne, TakesNoMoreFromOthersThatComeAndGo) {
  const double promised = TightBound::promised();
  Simulation simulation(Policy::deadline, Runs::in_stages, {TightBound::kOthers, TightBound::kBounded});
  for (int i = 0; i < 2; ++i) {
    simulation.load(0).lanes = 0;
    simulation.run_for(1s);
    simulation.load(0).lanes = TightBound::kOthers.lanes;
    simulation.run_for(1s);
    EXPECT_GT(simulation.part_of(0), promised) << i;
  }
}

TEST_P(Deadline, FollowsTheLoad) {
  Simulation simulation(Policy::deadline, GetParam(),
                        {{with_bound(1ms), 64 << 10, 400us}, {with_bound(2ms), 256 << 10, 1ms}, kGreedy});
  simulation.run_for(500ms);
  const double needed_before = simulation.bound(0).needed;
  for (const auto& [bytes, every] :
       {std::pair<std::uint64_t, Time>{64 << 10, 40us}, {256 << 10, 100us}, {64 << 10, 400us}}) {
    simulation.load(0).bytes = bytes;
    simulation.load(0).every = every;
    // In which it is learnt. What batches wait for on a device in stages counts as its time until more run at once.
    simulation.run_for(GetParam() == Runs::in_stages ? 1500ms : 300ms);
    simulation.run_for(700ms);
    EXPECT_LE(simulation.p99(0), 1ms) << bytes << " bytes every " << every.count();
    EXPECT_LE(simulation.p99(1), 2ms) << bytes << " bytes every " << every.count();
    if (bytes == 256 << 10) {
      EXPECT_GT(simulation.bound(0).needed, 2 * needed_before);
    }
  }
  simulation.run_for(1s);
  EXPECT_LT(simulation.bound(0).needed, 1.5 * needed_before) << "it needs no more than before";
}

TEST_P(Deadline, SaysThatABoundCannotHoldAndStarvesNobody) {
  // Together, they want more than there is.
  Simulation simulation(Policy::deadline, GetParam(),
                        {{with_bound(2ms, 1.0 / 16), 256 << 10, 0s, 64},
                         {with_bound(2ms, 4.0 / 16), 256 << 10, 0s, 64},
                         {{8.0 / 16}, 256 << 10, 0s, 64}});
  simulation.run_for(500ms);
  simulation.run_for(2s);
  EXPECT_FALSE(simulation.bound(0).holds);
  EXPECT_FALSE(simulation.bound(1).holds);
  EXPECT_GT(simulation.bound(0).needed, 0.5);
  // Each has its profile, and of the rest as much as its profile is of those that need it.
  EXPECT_NEAR(simulation.charged(0), 1.0 / 16 + 3.0 / 16 / 5, 0.02);
  EXPECT_NEAR(simulation.charged(1), 4.0 / 16 + 3.0 / 16 * 4 / 5, 0.03);
  EXPECT_NEAR(simulation.charged(2), 8.0 / 16, 0.03);
}

TEST_P(Deadline, AnImpossibleBoundChangesNothingForOthers) {
  const Load wants{with_bound(1us), 1 << 20, 0s, 16};
  Simulation simulation(Policy::deadline, GetParam(), {wants, {with_bound(5ms), 256 << 10, 1ms}, kGreedy});
  simulation.run_for(500ms);
  simulation.run_for(2s);
  EXPECT_FALSE(simulation.bound(0).holds);
  EXPECT_TRUE(std::isinf(simulation.bound(0).needed));
  EXPECT_LE(simulation.p99(1), 5ms);
  EXPECT_GT(simulation.charged(2), 8.0 / 16 - 0.03);
}

TEST_P(Deadline, ChargesKernelsThatAreSlowForTheirBytes) {
  const auto greedy = [](double cost) { return Load{{0.5}, 256 << 10, 0s, 16, cost}; };
  Simulation by_time(Policy::deadline, GetParam(), {greedy(8), greedy(1)});
  Simulation by_bytes(Policy::weighted, GetParam(), {greedy(8), greedy(1)});
  for (Simulation* const simulation : {&by_time, &by_bytes}) {
    simulation->run_for(500ms);
    simulation->run_for(1s);
  }
  EXPECT_GT(by_bytes.part_of(0), 0.8);
  EXPECT_LT(by_time.part_of(0), by_bytes.part_of(0));
}

TEST_P(Deadline, ReservesNothingForATenantThatIsQuiet) {
  Simulation simulation(Policy::deadline, GetParam(), {{with_bound(500us), 64 << 10, 100us}, kGreedy});
  simulation.run_for(500ms);
  EXPECT_GT(simulation.bound(0).share, 0);
  simulation.load(0).every = 3s;
  simulation.run_for(1500ms);
  simulation.run_for(1s);
  EXPECT_EQ(simulation.bound(0).share, 0);
  EXPECT_GT(simulation.part_of(1), 0.9);
  simulation.load(0).every = 100us;
  simulation.run_for(500ms);
  simulation.run_for(50ms);
  EXPECT_LE(simulation.p99(0), 500us) << "and has it again at once";
}

TEST_P(Deadline, ChangesFromAndToOtherSchedulers) {
  Simulation simulation(Policy::deadline, GetParam(), {{{0.25}, 1 << 20, 0s, 80}, {{0.75}, 1 << 20, 0s, 80}});
  for (const Policy policy : {Policy::deadline, Policy::weighted, Policy::equal, Policy::deadline}) {
    simulation.scheduler().set_policy(policy);
    simulation.run_for(500ms);
    const double expected = policy == Policy::equal ? 0.5 : 0.25;
    const double tolerance = policy == Policy::deadline ? 0.25 : 0.06;  // time is not known as exactly as bytes
    EXPECT_NEAR(simulation.part_of(0), expected, tolerance * expected)
        << kPolicyNames[static_cast<std::size_t>(policy)];
  }
}

/// It would hold the device free for itself, again and again.
TEST(DeadlineOrder, ABatchThatIsGivenUpUsesTheReservation) {
  Scheduler scheduler(Policy::deadline, {1e9, 1 << 20});
  const auto fickle = scheduler.add(with_bound(1ms, 0.5), 0us);
  const auto other = scheduler.add({0.5}, 0us);
  Scheduler::Batch runs = scheduler.order(other, 1 << 20, 0, 0us);
  ASSERT_TRUE(scheduler.try_start(runs, 0us));
  for (const bool first : {true, false}) {
    Scheduler::Batch wanted = scheduler.order(fickle, 1 << 20, 0, 1us);
    EXPECT_FALSE(scheduler.try_start(wanted, 1us)) << "no room";
    Scheduler::Batch next = scheduler.order(other, 1, 0, 1us);
    EXPECT_FALSE(scheduler.try_start(next, 1us));
    if (first) {
      scheduler.give_up(next, 1us);
      scheduler.give_up(wanted, 1us);
      continue;
    }
    static_cast<void>(scheduler.finish(runs, 1 << 20, 2us));
    EXPECT_TRUE(scheduler.try_start(next, 2us)) << "the other one has no reservation left";
  }
}

/// Its bound is always the first to be missed, and the other one orders nothing while it waits.
TEST(DeadlineOrder, ATenantThatWaitsForLongIsNotForgotten) {
  constexpr Time kBatch = 1500ms;
  for (const Share& share : {Share{0.5}, with_bound(10s, 0.25)}) {
    Scheduler scheduler(Policy::deadline, {1e9, 1 << 20});
    const auto greedy = scheduler.add(with_bound(1us, 0.25), 0us);
    const auto other = scheduler.add(share, 0us);
    Time now{}, begun{}, longest{};
    std::optional<Scheduler::Batch> runs;
    Time ends{};
    Scheduler::Batch next = scheduler.order(greedy, 1 << 20, 0, now);
    Scheduler::Batch waits = scheduler.order(other, 1 << 20, 0, now);
    unsigned starts = 0;
    for (; now < 60s; now += 1ms) {
      if (runs && now >= ends) {
        static_cast<void>(scheduler.finish(*runs, 1 << 20, now));
        runs.reset();
      }
      if (scheduler.try_start(next, now)) {
        runs = next;
        ends = now + kBatch;
        next = scheduler.order(greedy, 1 << 20, 0, now);
      }
      if (scheduler.try_start(waits, now)) {
        longest = std::max(longest, now - begun);
        ++starts;
        runs = waits;
        ends = now + kBatch;
        waits = scheduler.order(other, 1 << 20, 0, begun = now);
      }
    }
    EXPECT_LT(longest, 10s);
    EXPECT_GT(starts, 60s / kBatch / 5) << "its profile";
  }
}

RC_GTEST_PROP(DeadlineBounds, HoldIfTheDeviceIsLargeEnoughForAll, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 4);
  std::vector<Load> loads{kGreedy};
  double density = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Load load;
    load.bytes = std::uint64_t{64 << 10} << *rc::gen::inRange(0, 4);
    load.share = with_bound(*rc::gen::inRange(600, 20000) * 1us);
    load.every = *rc::gen::inRange(100, 3000) * 1us;
    const double ns = static_cast<double>(kFixed.count()) + static_cast<double>(load.bytes) / kRate * 1e9;
    const double left_ns = static_cast<double>(load.share.latency.count()) * 0.75 - 120e3;
    density += std::max(
        ns / static_cast<double>(load.every.count()),
        ns * std::ceil(static_cast<double>(load.share.latency.count()) / static_cast<double>(load.every.count())) /
            left_ns);
    loads.push_back(load);
  }
  RC_PRE(density < 0.35);
  Simulation simulation(Policy::deadline, *rc::gen::element(Runs::in_turn, Runs::at_once, Runs::in_stages), loads);
  simulation.run_for(300ms);
  simulation.run_for(300ms);
  for (std::size_t t = 1; t < loads.size(); ++t) {
    RC_ASSERT(simulation.bound(t).holds);
    RC_ASSERT(simulation.p99(t) <= loads[t].share.latency);
  }
}

}  // namespace
}  // namespace penstock::proxy
