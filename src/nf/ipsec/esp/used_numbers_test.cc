// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Against a set of all numbers that were taken, and by several threads at once.

#include "nf/ipsec/esp/used_numbers_core.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace penstock::ipsec {
namespace {

/// Of a few SAs.
struct Used {
  explicit Used(std::uint32_t log_words, std::size_t sas = 1)
      : words(sas << log_words), view{words.data(), log_words} {}
  std::vector<unsigned long long> words;
  UsedNumbersView view;
};

constexpr std::uint32_t kLogWords = 8;
constexpr std::uint64_t kRing = std::uint64_t{16} << kLogWords;  // numbers
constexpr std::uint64_t kBlock = 512;                            // numbers

TEST(UsedNumbers, TakesEachNumberOnce) {
  Used used(kLogWords);
  for (std::uint64_t n = 0; n < 5 * kRing; ++n) {
    ASSERT_TRUE(used.view.take(0, n)) << n;
    ASSERT_FALSE(used.view.take(0, n)) << n;
  }
}

TEST(UsedNumbers, TakesLateNumbersWithinItsRing) {
  Used used(kLogWords);
  constexpr std::uint64_t kTop = 1'000'000;
  ASSERT_TRUE(used.view.take(0, kTop));
  for (std::uint64_t n = kTop - (kRing - kBlock); n < kTop; ++n) ASSERT_TRUE(used.view.take(0, n)) << n;
  for (std::uint64_t n = kTop - (kRing - kBlock); n <= kTop; ++n) ASSERT_FALSE(used.view.take(0, n)) << n;
}

TEST(UsedNumbers, RefusesNumbersWhoseWordsHaveGoneOn) {
  Used used(kLogWords);
  ASSERT_TRUE(used.view.take(0, 7 * kRing + 3));
  EXPECT_FALSE(used.view.take(0, 3));
  EXPECT_FALSE(used.view.take(0, 6 * kRing + 3));
  EXPECT_TRUE(used.view.take(0, 6 * kRing + 4)) << "another word";
}

TEST(UsedNumbers, KeepsSasApart) {
  Used used(kLogWords, 3);
  for (const std::uint32_t sa : {0, 1, 2}) EXPECT_TRUE(used.view.take(sa, 5 + kRing * sa));
  for (const std::uint32_t sa : {0, 1, 2}) EXPECT_FALSE(used.view.take(sa, 5 + kRing * sa));
}

/// Also where tags are as large as they can be.
TEST(UsedNumbers, NeverWraps) {
  Used used(kLogWords);
  constexpr std::uint64_t kEnd = std::uint64_t{1} << (48 + 4 + kLogWords);
  EXPECT_TRUE(used.view.take(0, kEnd - 1));
  EXPECT_FALSE(used.view.take(0, kEnd - 1));
  for (const std::uint64_t n : {kEnd, kEnd + 1, 2 * kEnd - 1, ~std::uint64_t{0}}) {
    EXPECT_FALSE(used.view.take(0, n)) << n;
    EXPECT_FALSE(used.view.take(0, n)) << n;
  }
  EXPECT_TRUE(used.view.take(0, kEnd - 2)) << "nothing has changed";
}

TEST(UsedNumbers, TakesNoNumberTwiceAndAllThatAreNotLate) {
  std::mt19937_64 random(7);
  for (const std::uint64_t spread : {kBlock, kRing / 2, kRing, 3 * kRing}) {
    Used used(kLogWords);
    std::set<std::uint64_t> taken;
    std::uint64_t top = 1ULL << 33;  // the upper half changes
    top -= 2 * spread;
    for (int i = 0; i < 20'000; ++i) {
      top += random() % 3;
      const std::uint64_t number = top - random() % spread;
      const bool is_new = !taken.contains(number);
      const bool took = used.view.take(0, number);
      ASSERT_FALSE(took && !is_new) << number;
      ASSERT_TRUE(took || !is_new || spread + kBlock > kRing) << number;
      if (took) taken.insert(number);
    }
    EXPECT_GT(taken.size(), 1000U);
  }
}

/// Each thread tries all numbers, in an order of its own.
TEST(UsedNumbers, TakesNoNumberTwiceByThreads) {
  constexpr std::uint64_t kNumbers = 40 * kRing;
  constexpr unsigned kThreads = 4;
  Used used(kLogWords);
  std::vector<std::atomic<std::uint8_t>> taken(kNumbers);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (std::uint64_t first = 0; first < kNumbers; first += kBlock) {
        const std::uint64_t turn = random();
        for (std::uint64_t i = 0; i < kBlock; ++i) {
          const std::uint64_t number = first + (i * 5 + turn) % kBlock;
          if (used.view.take(0, number)) taken[number].fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t once = 0;
  for (const auto& count : taken) {
    ASSERT_LE(count.load(), 1);
    once += count.load();
  }
  EXPECT_GT(once, kNumbers / 2) << "those that no thread was too late for";
}

TEST(UsedNumbers, HaveBoundedMemory) {
  EXPECT_EQ(log_of_used_words(0), 16U);
  EXPECT_EQ(used_words(0), 0U);
  EXPECT_EQ(used_words(1) * 16, 1U << 20);
  for (const std::size_t sas : {1, 100, 129, 1000, 32768}) {
    EXPECT_LE(used_words(sas) * sizeof(unsigned long long), std::size_t{64} << 20) << sas;
    EXPECT_GE(used_words(sas) / sas * 16, 4096U) << sas;
  }
  EXPECT_EQ(used_words(1'000'000) / 1'000'000 * 16, 4096U);
}

}  // namespace
}  // namespace penstock::ipsec
