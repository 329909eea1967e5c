// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/spsc_byte_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace penstock::port {
namespace {

/// The bytes of a record are derived from its number, so that both sides can compute them.
std::vector<std::uint8_t> record(std::uint32_t number, std::size_t longest) {
  std::vector<std::uint8_t> bytes(1 + number * 2654435761U % longest);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(number + i);
  return bytes;
}

TEST(SpscByteRing, IsEmptyAtFirst) {
  SpscByteRing ring(64);
  EXPECT_TRUE(ring.front().empty());
}

TEST(SpscByteRing, AcceptsARecordOfTheGreatestLengthAtAnyPosition) {
  SpscByteRing ring(64);
  for (std::size_t length = 1; length <= ring.longest_record(); ++length) {
    for (const std::size_t n : {length, ring.longest_record()}) {
      std::uint8_t* to = ring.begin_write(n);
      ASSERT_NE(to, nullptr) << n;
      std::memset(to, static_cast<int>(n), n);
      ring.end_write();
      const auto got = ring.front();
      ASSERT_EQ(got.size(), n);
      EXPECT_EQ(got.back(), n);
      ring.pop();
    }
  }
  EXPECT_TRUE(ring.front().empty());
}

TEST(SpscByteRing, HasNoRoomWhenFullUntilAPop) {
  SpscByteRing ring(64);
  int held = 0;
  while (ring.begin_write(8) != nullptr) {
    ring.end_write();
    ++held;
  }
  EXPECT_EQ(held, 4);
  ASSERT_FALSE(ring.front().empty());
  ring.pop();
  EXPECT_NE(ring.begin_write(8), nullptr);
}

TEST(SpscByteRing, FrontStaysUntilThePop) {
  SpscByteRing ring(64);
  *ring.begin_write(1) = 42;
  ring.end_write();
  EXPECT_EQ(ring.front()[0], 42);
  EXPECT_EQ(ring.front()[0], 42);
  ring.pop();
  EXPECT_TRUE(ring.front().empty());
}

TEST(SpscByteRing, BehavesLikeAQueueUnderRandomUse) {
  for (const std::size_t capacity : {64U, 256U, 1024U}) {
    SpscByteRing ring(capacity);
    std::deque<std::vector<std::uint8_t>> oracle;
    std::mt19937 random(7);
    std::uint32_t number = 0;
    for (int step = 0; step < 100'000; ++step) {
      if (random() % 2 == 0) {
        const auto bytes = record(number, ring.longest_record());
        if (std::uint8_t* to = ring.begin_write(bytes.size()); to != nullptr) {
          std::memcpy(to, bytes.data(), bytes.size());
          ring.end_write();
          oracle.push_back(bytes);
          ++number;
        } else {
          ASSERT_FALSE(oracle.empty()) << "an empty ring has room";
        }
      } else {
        const auto got = ring.front();
        ASSERT_EQ(got.empty(), oracle.empty());
        if (oracle.empty()) continue;
        ASSERT_EQ(std::vector<std::uint8_t>(got.begin(), got.end()), oracle.front());
        ring.pop();
        oracle.pop_front();
      }
    }
    EXPECT_GT(number, 10'000U);
  }
}

TEST(SpscByteRing, PassesEveryRecordInOrderBetweenTwoThreads) {
  constexpr std::uint32_t kRecords = 200'000;
  SpscByteRing ring(1024);
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      const auto bytes = record(i, 100);
      std::uint8_t* to = nullptr;
      while ((to = ring.begin_write(bytes.size())) == nullptr) std::this_thread::yield();
      std::memcpy(to, bytes.data(), bytes.size());
      ring.end_write();
    }
  });
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    std::span<const std::uint8_t> got;
    while ((got = ring.front()).empty()) std::this_thread::yield();
    const auto expected = record(i, 100);
    if (!std::equal(got.begin(), got.end(), expected.begin(), expected.end())) ++wrong;
    ring.pop();
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(ring.front().empty());
}

}  // namespace
}  // namespace penstock::port
