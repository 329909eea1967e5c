// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa/burst_numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace penstock::ipsec {
namespace {

/// SAs with all numbers reserved.
std::vector<std::unique_ptr<SaState>> make_states(std::size_t count) {
  std::vector<std::unique_ptr<SaState>> states;
  for (std::size_t sa = 0; sa < count; ++sa) {
    states.push_back(std::make_unique<SaState>(SecurityAssociation{}));
    states.back()->reserve_to(states.back()->numbers.most());
  }
  return states;
}

TEST(BurstNumbers, FollowPacketOrderWithoutGaps) {
  constexpr std::size_t kSas = 300;
  std::mt19937 random(1);
  const auto states = make_states(kSas);
  std::vector<std::uint64_t> sent(kSas);
  BurstNumbers numbers;
  for (int burst = 0; burst < 1000; ++burst) {
    // From one SA to more than have a lot.
    const std::size_t sas = 1 + random() % kSas;
    std::vector<std::uint32_t> packets(1 + random() % (burst % 2 == 0 ? 128 : 400));
    for (std::uint32_t& sa : packets) sa = static_cast<std::uint32_t>(random() % sas);
    std::vector<BurstNumbers::Lot> lots;
    numbers.clear();
    for (const std::uint32_t sa : packets) lots.push_back(numbers.announce(sa));
    for (std::size_t p = 0; p < packets.size(); ++p) {
      const std::uint32_t sa = packets[p];
      std::uint64_t number = 0;
      ASSERT_TRUE(numbers.next(lots[p], *states[sa], number));
      ASSERT_EQ(number, ++sent[sa]) << "burst " << burst << ", packet " << p;
    }
    for (std::size_t sa = 0; sa < kSas; ++sa) ASSERT_EQ(states[sa]->sent(), sent[sa]) << "takes no more than it needs";
  }
}

TEST(BurstNumbers, AreTakenTogether) {
  const auto states = make_states(2);
  BurstNumbers numbers;
  numbers.clear();
  const BurstNumbers::Lot first = numbers.announce(0);
  static_cast<void>(numbers.announce(1));
  static_cast<void>(numbers.announce(0));
  std::uint64_t number = 0;
  ASSERT_TRUE(numbers.next(first, *states[0], number));
  EXPECT_EQ(states[0]->sent(), 2U) << "also for the third packet";
  EXPECT_EQ(states[1]->sent(), 0U);
}

TEST(BurstNumbers, RunShort) {
  SaState state(SecurityAssociation{});
  state.reserve_to(2);
  BurstNumbers numbers;
  numbers.clear();
  BurstNumbers::Lot lot = numbers.announce(7);
  for (int more = 0; more < 3; ++more) lot = numbers.announce(7);
  std::uint64_t number = 0;
  ASSERT_TRUE(numbers.next(lot, state, number));
  ASSERT_TRUE(numbers.next(lot, state, number));
  EXPECT_EQ(number, 2U);
  EXPECT_FALSE(numbers.next(lot, state, number));
  state.reserve_to(100);
  lot = numbers.announce(7);
  ASSERT_TRUE(numbers.next(lot, state, number));
  EXPECT_EQ(number, 3U);
  EXPECT_EQ(state.sent(), 3U) << "only for the packet that was announced again";
}

}  // namespace
}  // namespace penstock::ipsec
