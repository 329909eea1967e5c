// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Who gives out the numbers of SAs that a device counts, with a simulated device.

#include "nf/ipsec/numbers/device_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "nf/ipsec/numbers/played_device_for_test.h"
#include "nf/ipsec/sa/sa_state.h"

namespace penstock::ipsec {
namespace {

using testing::play_device;
using testing::PlayedDevice;

/// Memory that any device can reach.
class Counting : public ::testing::Test {
 protected:
  Counting() : counting(std::make_shared<DeviceCounting>(&play_device, [](int) {})) {}

  [[nodiscard]] std::shared_ptr<SaState> state(std::uint64_t reserved, bool counts = true) const {
    auto made = std::make_shared<SaState>(SecurityAssociation{}, SaOrigin{}, counts ? counting : nullptr);
    made->reserve_to(reserved);
    return made;
  }
  /// A GPU stage of a function with these SAs.
  void join(const std::vector<std::shared_ptr<SaState>>& sas, std::uint32_t batch_packets) {
    stages.push_back(counting->join(sas, batch_packets));
    EXPECT_EQ(stages.back()->view().sas, sas.size());
  }
  static PlayedDevice& device() { return *PlayedDevice::last; }

  std::shared_ptr<DeviceCounting> counting;
  std::vector<std::unique_ptr<DeviceCounting::Joined>> stages;
};

TEST_F(Counting, FunctionsThatNameOneSaShareItsCounter) {
  const auto shared = state(1000), own = state(1000), unused = state(1000, false);
  join({shared, own}, 64);
  join({unused, shared}, 64);
  EXPECT_EQ(device().joined, (std::vector<std::vector<std::uint32_t>>{{0, 1}, {DeviceNumbers::kNoCell, 0}}));
  EXPECT_EQ(device().kernel_takes(0, 3).first, 1U);
  EXPECT_EQ(shared->take(2).first, 4U) << "the CPU asks the device";
  EXPECT_EQ(device().kernel_takes(0, 1).first, 6U);
  EXPECT_EQ(shared->sent(), 6U);
  EXPECT_EQ(own->sent(), 0U);
  EXPECT_EQ(unused->take(1).first, 1U) << "the host counts";
}

TEST_F(Counting, DeviceGivesOutOnlyWhatIsReserved) {
  const auto sa = state(10);
  join({sa}, 64);
  EXPECT_EQ(device().kernel_takes(0, 64).count, 10U);
  EXPECT_EQ(sa->take(1).count, 0U);
  EXPECT_EQ(sa->shortage(), Reason::not_reserved);
  sa->reserve_to(12);
  EXPECT_EQ(device().kernel_takes(0, 64).count, 2U);
  sa->reserve_to(0xffff'ffff);
  device().kernel_takes(0, 0xffff'ffff);
  EXPECT_EQ(sa->shortage(), Reason::sequence_exhausted);
}

TEST_F(Counting, HostGoesOnAfterAllThatALostDeviceMayHaveGivenOut) {
  const auto sa = state(10'000), other = state(10'000);
  join({sa, other}, 64);
  join({sa, other}, 100);
  device().kernel_takes(0, 500);
  device().is_broken = true;
  const SequenceRange next = sa->take(7);
  EXPECT_TRUE(device().is_closed);
  EXPECT_EQ(next.first, 500U + 64 + 100 + 7 + 1) << "two batches, and what this call may have taken";
  EXPECT_EQ(next.count, 7U);
  EXPECT_EQ(other->take(1).first, 64U + 100 + 7 + 1);
  EXPECT_EQ(sa->sent(), 500U + 64 + 100 + 7 + 7);
}

TEST_F(Counting, WhatIsNotReservedIsNotSentAfterALossEither) {
  const auto sa = state(520);
  join({sa}, 64);
  device().kernel_takes(0, 500);
  device().is_broken = true;
  EXPECT_EQ(sa->take(1).count, 0U) << "520 lies in the batch that may be on its way";
  sa->reserve_to(10'000);
  EXPECT_EQ(sa->take(1).first, 500U + 64 + 1 + 1);
}

TEST_F(Counting, ALostDeviceIsReplacedByTheNextThatJoins) {
  const auto sa = state(10'000);
  join({sa}, 64);
  PlayedDevice& first = device();
  first.is_broken = true;
  const std::uint64_t last = sa->take(1).first;
  join({sa}, 64);
  EXPECT_NE(&device(), &first);
  EXPECT_EQ(device().kernel_takes(0, 1).first, last + 1);
  EXPECT_EQ(sa->take(1).first, last + 2);
}

TEST_F(Counting, RunThatEndsLeavesTheHostWhatTheDeviceHasGivenOut) {
  const auto sa = state(10'000);
  join({sa}, 64);
  device().kernel_takes(0, 500);
  sa->end_run();
  EXPECT_EQ(sa->sent(), 500U);
  EXPECT_EQ(sa->take(1).count, 0U);
  sa->begin_run(600, 0, 10'000);
  sa->reserve_to(10'000);
  EXPECT_EQ(sa->take(1).first, 601U) << "without the device";
  join({sa}, 64);
  EXPECT_EQ(device().kernel_takes(1, 1).first, 602U) << "and with it again";
}

TEST_F(Counting, StagesThatEndLeaveNothingBehind) {
  const auto stays = state(1'000'000);
  std::uint64_t last = 0;
  for (int reload = 0; reload < 1000; ++reload) {
    const auto comes = state(100);
    {
      const auto before = counting->join({{stays, comes}}, 64);
      const auto after = counting->join({{stays}}, 64);
      EXPECT_EQ(device().kernel_takes(0, 3).first, last + 1);
      EXPECT_EQ(stays->take(2).first, last + 4);
      EXPECT_EQ(device().kernel_takes(device().joined[0][1], 1).first, 1U) << "a counter that is used again";
      last += 5;
    }
    comes->end_run();
  }
  EXPECT_EQ(device().cells.size(), 2U);
  EXPECT_EQ(device().views.size(), 0U);
  EXPECT_EQ(stays->sent(), last);
  device().is_broken = true;
  EXPECT_EQ(stays->take(1).first, last + 1 + 1) << "no batch is in flight, only what this call may have taken";
}

TEST_F(Counting, CounterIsNotUsedAgainWhileAStageKnowsIt) {
  const auto one = state(100), other = state(100);
  auto before = counting->join({{one}}, 64);
  one->end_run();
  const auto after = counting->join({{other}}, 64);
  EXPECT_EQ(device().joined, (std::vector<std::vector<std::uint32_t>>{{0}, {1}}));
  before.reset();
  const auto third = state(100);
  const auto later = counting->join({{third}}, 64);
  EXPECT_EQ(device().joined[2], std::vector<std::uint32_t>{0});
}

TEST_F(Counting, StageThatEndsAfterItsDeviceWasReplacedChangesNothing) {
  const auto sa = state(10'000);
  auto before = counting->join({{sa}}, 64);
  device().is_broken = true;
  static_cast<void>(sa->take(1));
  auto lost = before->view().published;
  const PlayedDevice& old = device();
  const auto after = counting->join({{sa}}, 100);
  before.reset();
  EXPECT_EQ(old.views.size(), 1U) << "the lost device may still write to " << lost;
  const std::uint64_t last = device().kernel_takes(0, 1).first;
  device().is_broken = true;
  EXPECT_EQ(sa->take(1).first, last + 100 + 1 + 1);
}

//   CPU stages   1 2 3 │ 6 7 …
//   device             │ 4 5     counts from here on
TEST_F(Counting, MovesToTheDeviceWhileCpuStagesTakeNumbers) {
  constexpr unsigned kThreads = 3;
  for (int round = 0; round < 200; ++round) {
    const auto sa = state(1'000'000);
    std::atomic<unsigned> running = 0;
    std::array<std::vector<SequenceRange>, kThreads + 1> taken;
    std::vector<std::thread> threads;
    for (unsigned by = 0; by < kThreads; ++by) {
      threads.emplace_back([&, by] {
        ++running;
        for (std::uint32_t i = 0; i < 400; ++i) taken[by].push_back(sa->take(1 + i % 3));
      });
    }
    while (running < kThreads) std::this_thread::yield();
    const auto stage = counting->join({{sa}}, 64);
    const std::uint32_t cell = device().joined.back()[0];
    for (int i = 0; i < 100; ++i) taken[kThreads].push_back(device().kernel_takes(cell, 2));
    for (std::thread& thread : threads) thread.join();
    std::map<std::uint64_t, std::uint32_t> by_first;
    for (const auto& ranges : taken) {
      for (const SequenceRange& range : ranges) {
        ASSERT_NE(range.count, 0U) << "a packet is dropped because of the move";
        ASSERT_TRUE(by_first.emplace(range.first, range.count).second) << "two begin with one number";
      }
    }
    std::uint64_t next = 1;
    for (const auto& [first, count] : by_first) {
      ASSERT_EQ(first, next) << "a number is left out, or given out twice";
      next += count;
    }
    EXPECT_EQ(sa->sent(), next - 1);
    sa->end_run();
  }
}

/// Two played devices, which count in the memory of the first:
///
///     device 0   batch ─┐
///     device 1   batch ─┼─▶ counter of the SA, in device 0's memory
///     CPU twin   burst ─┘
class CountingOnTwoDevices : public ::testing::Test {
 protected:
  static inline int current = 0;
  static inline std::vector<std::pair<int, int>> reached;  // from, to
  static void reach(int device) { reached.emplace_back(current, device); }
};

TEST_F(CountingOnTwoDevices, GiveEachNumberOnce) {
  constexpr std::uint64_t kReserved = 200'000;
  constexpr unsigned kTakes = 2000;
  reached.clear();
  const auto counting = std::make_shared<DeviceCounting>(&play_device, &reach);
  const auto sa = std::make_shared<SaState>(SecurityAssociation{}, SaOrigin{}, counting);
  sa->reserve_to(kReserved / 2);
  const std::vector<std::shared_ptr<SaState>> sas{sa};
  std::vector<std::unique_ptr<DeviceCounting::Joined>> stages;
  for (current = 0; current < 2; ++current) stages.push_back(counting->join(sas, 64));
  EXPECT_EQ(reached, (std::vector<std::pair<int, int>>{{0, 0}, {1, 0}}));
  PlayedDevice& shared = *PlayedDevice::last;

  std::array<std::vector<SequenceRange>, 3> taken;  // by device 0, device 1 and the CPU stages
  std::vector<std::thread> threads;
  for (unsigned by = 0; by < taken.size(); ++by) {
    threads.emplace_back([&, by] {
      for (std::uint32_t i = 0; i < kTakes; ++i) {
        const std::uint32_t count = 1 + (i * 7 + by) % 64;
        taken[by].push_back(by < 2 ? shared.kernel_takes(0, count) : sa->take(count));
        if (by == 2 && i == kTakes / 2) sa->reserve_to(kReserved);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::map<std::uint64_t, std::uint32_t> by_first;
  for (const auto& ranges : taken) {
    EXPECT_FALSE(ranges.empty());
    for (const SequenceRange& range : ranges) {
      if (range.count == 0) continue;
      EXPECT_TRUE(by_first.emplace(range.first, range.count).second) << "two begin with one number";
    }
  }
  std::uint64_t next = 1;
  for (const auto& [first, count] : by_first) {
    ASSERT_EQ(first, next) << "a number is left out, or given out twice";
    next += count;
  }
  EXPECT_EQ(sa->sent(), next - 1);
  EXPECT_LE(next - 1, kReserved);
}

}  // namespace
}  // namespace penstock::ipsec
