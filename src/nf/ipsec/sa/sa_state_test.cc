// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa/sa_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

namespace penstock::ipsec {
namespace {

constexpr SaState::Seconds kNow = 1'800'000'000;

SecurityAssociation sa_with(const Lifetime& soft, const Lifetime& hard) {
  SecurityAssociation sa;
  sa.lifetimes.soft = soft;
  sa.lifetimes.hard = hard;
  return sa;
}

/// With all numbers reserved.
struct Reserved : SequenceCounter {
  Reserved(std::uint64_t sent, std::uint64_t most) : SequenceCounter(sent, most) { reserve_to(most); }
};

TEST(SequenceCounter, GivesOutEachNumberOnce) {
  Reserved counter(0, 1000);
  EXPECT_EQ(counter.take(3).first, 1U);
  EXPECT_EQ(counter.take(1).first, 4U);
  EXPECT_EQ(counter.sent(), 4U);
}

TEST(SequenceCounter, GivesOnlyWhatIsReserved) {
  SequenceCounter counter(10, 1000);
  EXPECT_EQ(counter.take(1).count, 0U) << "at first nothing is";
  counter.reserve_to(14);
  const SequenceRange some = counter.take(9);
  EXPECT_EQ(some.first, 11U);
  EXPECT_EQ(some.count, 4U);
  EXPECT_EQ(counter.take(1).count, 0U);
  EXPECT_FALSE(counter.exhausted());
  counter.reserve_to(12);
  EXPECT_EQ(counter.reserved(), 14U) << "never fewer";
  counter.reserve_to(2000);
  EXPECT_EQ(counter.reserved(), 1000U) << "there are no more";
  EXPECT_EQ(counter.take(1).first, 15U);
  counter.revoke();
  EXPECT_EQ(counter.take(1).count, 0U);
  EXPECT_EQ(counter.sent(), 15U);
}

TEST(SequenceCounter, GivesNothingWhileItIsAheadOfWhatIsReserved) {
  SequenceCounter counter(0, 1000);
  counter.reserve_to(100);
  counter.advance_to(150);
  EXPECT_EQ(counter.take(1).count, 0U);
  counter.reserve_to(151);
  EXPECT_EQ(counter.take(5).first, 151U);
}

TEST(SequenceCounter, ARunMayHaveALimitOfItsOwn) {
  SequenceCounter counter(0, 1000);
  counter.limit_to(7);
  counter.reserve_to(1000);
  EXPECT_EQ(counter.take(10).count, 7U);
  EXPECT_TRUE(counter.exhausted());
  counter.limit_to(2000);
  EXPECT_EQ(counter.most(), 1000U);
  EXPECT_FALSE(counter.exhausted());
}

TEST(SequenceCounter, GivesNoneAfterTheLast) {
  Reserved counter(0xffff'fffd, 0xffff'ffff);
  const SequenceRange last = counter.take(5);
  EXPECT_EQ(last.first, 0xffff'fffeU);
  EXPECT_EQ(last.count, 2U);
  EXPECT_TRUE(counter.exhausted());
  EXPECT_EQ(counter.take(1).count, 0U);
  Reserved extended(std::numeric_limits<std::uint64_t>::max() - 1, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(extended.take(9).count, 1U);
  EXPECT_EQ(extended.take(9).count, 0U);
}

TEST(SequenceCounter, CountsOnOnlyWithEsnOrWhereItMayWrap) {
  SecurityAssociation sa;
  EXPECT_EQ(SequenceCounter::most_of(sa), 0xffff'ffffU);
  sa.sequence_may_wrap = true;
  EXPECT_GT(SequenceCounter::most_of(sa), 0xffff'ffffU);
  sa.sequence_may_wrap = false;
  sa.esn = true;
  EXPECT_GT(SequenceCounter::most_of(sa), 0xffff'ffffU);
}

TEST(SequenceCounter, GivesThreadsDifferentNumbers) {
  Reserved counter(0, 1'000'000);
  std::vector<std::vector<std::uint64_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : taken) {
      threads.emplace_back([&] {
        for (int i = 0; i < 5000; ++i) {
          const SequenceRange range = counter.take(static_cast<std::uint32_t>(1 + i % 3));
          for (std::uint32_t n = 0; n < range.count; ++n) mine.push_back(range.first + n);
        }
      });
    }
  }
  std::vector<std::uint64_t> all;
  for (const auto& mine : taken) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), counter.sent());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i + 1);
}

TEST(SequenceCounter, GivesNothingWhileItIsFrozen) {
  Reserved counter(10, 1000);
  EXPECT_EQ(counter.take(5).first, 11U);
  EXPECT_EQ(counter.freeze(), 15U);
  EXPECT_EQ(counter.take(1).count, 0U);
  EXPECT_EQ(counter.sent(), 15U);
  counter.advance_to(40);
  EXPECT_EQ(counter.sent(), 40U) << "given out elsewhere";
  EXPECT_EQ(counter.left(), 960U);
  EXPECT_EQ(counter.take(1).count, 0U);
  EXPECT_EQ(counter.freeze(), 40U) << "again";
  counter.thaw();
  EXPECT_EQ(counter.take(1).first, 41U);
}

TEST(SequenceCounter, ThatIsExhaustedMayBeFrozen) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  Reserved counter(kLast - 1, kLast);
  EXPECT_EQ(counter.take(2).count, 1U);
  EXPECT_EQ(counter.sent(), kLast);
  EXPECT_EQ(counter.freeze(), kLast);
  counter.thaw();
  EXPECT_TRUE(counter.exhausted());
}

TEST(SequenceCounter, TellsTheLastNumberThatAnyThreadGotWhenItIsFrozen) {
  for (int round = 0; round < 200; ++round) {
    Reserved counter(0, 100'000'000);
    std::atomic<unsigned> running = 0;
    std::vector<std::uint64_t> last(3);
    std::vector<std::thread> threads;
    for (std::uint64_t& mine : last) {
      threads.emplace_back([&] {
        ++running;
        while (true) {
          const SequenceRange taken = counter.take(3);
          if (taken.count == 0) return;
          mine = taken.first + taken.count - 1;
        }
      });
    }
    while (running < 3) std::this_thread::yield();
    const std::uint64_t frozen = counter.freeze();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(std::ranges::max(last), frozen);
  }
}

TEST(SaState, CarriesAsManyPacketsAsItsHardLimitSays) {
  SaState state(sa_with({.packets = 2}, {.packets = 3}));
  EXPECT_TRUE(state.carry(100, kNow));
  EXPECT_EQ(state.soft(), SaState::Limit::none);
  EXPECT_TRUE(state.carry(100, kNow));
  EXPECT_EQ(state.soft(), SaState::Limit::packets);
  EXPECT_FALSE(state.ended());
  EXPECT_TRUE(state.carry(100, kNow));
  EXPECT_FALSE(state.carry(100, kNow));
  EXPECT_EQ(state.hard(), SaState::Limit::packets);
  EXPECT_EQ(state.packets(), 3U);
  EXPECT_EQ(state.bytes(), 300U);
}

TEST(SaState, CarriesThePacketThatReachesItsLimitOfBytes) {
  SaState state(sa_with({}, {.bytes = 150}));
  EXPECT_TRUE(state.carry(100, kNow));
  EXPECT_TRUE(state.carry(100, kNow));
  EXPECT_FALSE(state.carry(1, kNow));
  EXPECT_EQ(state.hard(), SaState::Limit::bytes);
}

TEST(SaState, IsNearItsEndOnceWhatIsInFlightCanReachTheLimit) {
  SaState by_packets(sa_with({}, {.packets = 100}));
  for (int i = 0; i < 61; ++i) EXPECT_TRUE(by_packets.carry(100, kNow));
  EXPECT_FALSE(by_packets.is_near_end()) << "on the CPU nothing is in flight";
  by_packets.expect_in_flight(15);
  EXPECT_FALSE(by_packets.is_near_end()) << "39 are left, and 30 may come";
  by_packets.expect_in_flight(5);
  EXPECT_TRUE(by_packets.is_near_end());
  EXPECT_TRUE(by_packets.tell_near_end());
  EXPECT_FALSE(by_packets.tell_near_end()) << "once";
  EXPECT_EQ(by_packets.soft(), SaState::Limit::none) << "the user's soft limit is another";

  SaState by_bytes(sa_with({}, {.bytes = 10'000}));
  by_bytes.expect_in_flight(20);
  for (int i = 0; i < 59; ++i) EXPECT_TRUE(by_bytes.carry(100, kNow));
  EXPECT_FALSE(by_bytes.is_near_end());
  EXPECT_TRUE(by_bytes.carry(100, kNow));
  EXPECT_TRUE(by_bytes.is_near_end()) << "4,000 bytes are left, and 40 packets of a little more than 100 may come";
}

TEST(SaState, CountsWhatWasProtectedBeforeItsTimeWasOver) {
  SecurityAssociation sa = sa_with({}, {.packets = 2, .seconds_from_add = 100});
  sa.lifetimes.added = kNow;
  SaState state(sa);
  EXPECT_TRUE(state.look_at(kNow + 100));
  EXPECT_FALSE(state.carry(1, kNow + 100));
  EXPECT_TRUE(state.count(1, kNow + 100));
  EXPECT_TRUE(state.count(1, kNow + 100));
  EXPECT_FALSE(state.count(1, kNow + 100)) << "a limit of packets holds for them too";
}

TEST(SaState, CountsWhatItHasCarriedBefore) {
  SecurityAssociation sa = sa_with({}, {.packets = 10});
  sa.lifetimes.packets = 9;
  SaState state(sa);
  EXPECT_TRUE(state.carry(1, kNow));
  EXPECT_FALSE(state.carry(1, kNow));
}

TEST(SaState, EndsInTimeAndTellsOnce) {
  SecurityAssociation sa = sa_with({.seconds_from_add = 60}, {.seconds_from_add = 100});
  sa.lifetimes.added = kNow;
  SaState state(sa);
  EXPECT_EQ(state.next_deadline(), kNow + 60);
  EXPECT_FALSE(state.look_at(kNow + 59));
  EXPECT_TRUE(state.look_at(kNow + 60));
  EXPECT_FALSE(state.look_at(kNow + 61));
  EXPECT_EQ(state.soft(), SaState::Limit::seconds_from_add);
  EXPECT_EQ(state.next_deadline(), kNow + 100);
  EXPECT_TRUE(state.carry(1, kNow));
  EXPECT_TRUE(state.look_at(kNow + 100));
  EXPECT_FALSE(state.carry(1, kNow));
  EXPECT_EQ(state.next_deadline(), std::nullopt);
}

TEST(SaState, CountsTimeSinceItsFirstPacketFromThere) {
  SaState state(sa_with({}, {.seconds_from_use = 10}));
  EXPECT_FALSE(state.look_at(kNow + 1000));
  EXPECT_TRUE(state.carry(1, kNow));
  EXPECT_EQ(state.next_deadline(), kNow + 10);
  EXPECT_FALSE(state.look_at(kNow + 9));
  EXPECT_TRUE(state.look_at(kNow + 10));
  EXPECT_EQ(state.hard(), SaState::Limit::seconds_from_use);
}

TEST(SaState, EndsWithItsSequenceNumbers) {
  SecurityAssociation sa;
  sa.sequence.sent = 0xffff'fffe;
  SaState state(sa);
  state.reserve_to(0xffff'ffff);
  EXPECT_TRUE(state.look_at(kNow));
  EXPECT_EQ(state.soft(), SaState::Limit::sequence);
  EXPECT_FALSE(state.ended());
  static_cast<void>(state.numbers.take(1));
  EXPECT_TRUE(state.look_at(kNow));
  EXPECT_EQ(state.hard(), SaState::Limit::sequence);
}

TEST(SaState, AdmitsEachNumberOnceAndOnlyWhatIsAuthentic) {
  SecurityAssociation sa;
  sa.replay_window = 64;
  SaState state(sa);
  EXPECT_EQ(state.admit(1, false), Reason::integrity);
  EXPECT_EQ(state.admit(1, true), Reason::none);
  EXPECT_EQ(state.admit(1, true), Reason::replayed);
  EXPECT_EQ(state.admit(1, false), Reason::replayed);
  EXPECT_EQ(state.admit(500, true), Reason::none);
  EXPECT_EQ(state.admit(2, true), Reason::too_old);
  EXPECT_EQ(state.replayed(), 3U);
  EXPECT_EQ(state.refused(), 1U);
}

TEST(Carrier, CountsWhatEachSaCarries) {
  SecurityAssociation unlimited;
  SecurityAssociation limited;
  limited.lifetimes.hard.packets = 2;
  std::deque<SaState> states;
  for (const SecurityAssociation* const sa : {&unlimited, &unlimited, &limited}) states.emplace_back(*sa);
  std::vector<report::Traffic> carried(3);
  Carrier carrier(kNow, carried);
  for (const std::uint32_t sa : {0, 0, 1, 2, 0, 2}) EXPECT_TRUE(carrier.carry(states[sa], sa, 100));
  EXPECT_FALSE(carrier.carry(states[2], 2, 100)) << "its third";
  EXPECT_EQ(carried[0].packets.get(), 3U);
  EXPECT_EQ(carried[0].bytes.get(), 300U);
  EXPECT_EQ(carried[1].packets.get(), 1U);
  EXPECT_EQ(carried[1].bytes.get(), 100U);
  EXPECT_EQ(carried[2].packets.get(), 2U);
  EXPECT_EQ(states[2].packets(), 2U) << "and where all workers count";
  EXPECT_TRUE(states[2].ended());
}

TEST(Carrier, StartsTheTimeFromUseOfAnSaWithoutLimitsOfPackets) {
  SecurityAssociation sa;
  sa.lifetimes.hard.seconds_from_use = 10;
  SaState state(sa);
  std::vector<report::Traffic> carried(1);
  EXPECT_FALSE(state.look_at(kNow + 100)) << "unused";
  EXPECT_TRUE(Carrier(kNow + 100, carried).carry(state, 0, 100));
  EXPECT_FALSE(state.look_at(kNow + 109));
  EXPECT_TRUE(state.look_at(kNow + 110));
  EXPECT_FALSE(Carrier(kNow + 110, carried).carry(state, 0, 100));
}

TEST(Carrier, CarriesNothingOfAnSaThatHasEnded) {
  SecurityAssociation sa;
  sa.sequence.sent = 0xffff'ffff;
  SaState state(sa);
  EXPECT_TRUE(state.look_at(kNow));
  std::vector<report::Traffic> carried(1);
  EXPECT_FALSE(Carrier(kNow, carried).carry(state, 0, 100));
  EXPECT_EQ(carried[0].packets.get(), 0U);
}

TEST(SaState, KnowsWhatWasReceivedBefore) {
  SecurityAssociation sa;
  sa.replay_window = 64;
  sa.sequence.received = 100;
  sa.sequence.window = {0b1011};
  SaState state(sa);
  EXPECT_EQ(state.window.check(100), Reason::replayed);
  EXPECT_EQ(state.window.check(99), Reason::replayed);
  EXPECT_EQ(state.window.check(98), Reason::none);
  EXPECT_EQ(state.window.check(97), Reason::replayed);
  EXPECT_EQ(state.window.check(36), Reason::too_old);
}

}  // namespace
}  // namespace penstock::ipsec
