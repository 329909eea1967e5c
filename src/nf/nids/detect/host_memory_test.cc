// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/host_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "base/testing/rounds.h"

namespace penstock::nids {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;

HostKey key_of(std::uint64_t address, std::uint32_t index = 0, HostRecordKind kind = HostRecordKind::threshold) {
  return {.first = {0, address}, .second = {}, .index = index, .ip_version = 4, .pair = false, .kind = kind};
}

const Threshold kOnce{.type = Threshold::Type::limit, .track = TrackBy::source, .count = 1, .seconds = 3600};

TEST(HostMemory, IsBoundedForAnyNumberOfSources) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  HostMemory memory(kBytes);
  HostMemory::Parts& parts = memory.parts();
  ASSERT_LE(parts.capacity() * (80 + 4), kBytes);
  ASSERT_GT(parts.capacity() * (80 + 4), kBytes * 9 / 10);
  constexpr std::uint64_t kSources = penstock::testing::rounds(10'000'000);
  for (std::uint64_t source = 0; source < kSources; ++source) {
    ASSERT_EQ(parts.count(key_of(source), kOnce, source), Counted::alert) << source;
  }
  EXPECT_LE(memory.counters().records, parts.capacity());
  EXPECT_GT(memory.counters().records, parts.capacity() * 99 / 100);
  EXPECT_EQ(memory.counters().records + memory.counters().evicted, kSources);
}

TEST(HostMemory, EvictsTheLeastRecentlyUsed) {
  HostMemory memory(0);  // the minimum: one shard
  HostMemory::Parts& parts = memory.parts();
  const std::uint64_t room = parts.capacity();
  for (std::uint64_t source = 0; source < room; ++source) {
    EXPECT_EQ(parts.count(key_of(source), kOnce, 0), Counted::alert);
  }
  EXPECT_EQ(parts.count(key_of(0), kOnce, 0), Counted::silent);  // now 1 is the least recently used
  EXPECT_EQ(parts.count(key_of(room), kOnce, 0), Counted::alert);
  EXPECT_EQ(memory.counters().evicted, 1U);
  EXPECT_EQ(parts.count(key_of(0), kOnce, 0), Counted::silent);
  EXPECT_EQ(parts.count(key_of(2), kOnce, 0), Counted::silent);
  EXPECT_EQ(parts.count(key_of(1), kOnce, 0), Counted::alert);
}

TEST(HostMemory, DistinguishesKindsVersionsIndicesAndPairs) {
  HostMemory memory;
  HostMemory::Parts& parts = memory.parts();
  HostKey key = key_of(1);
  EXPECT_EQ(parts.count(key, kOnce, 0), Counted::alert);
  key.ip_version = 6;
  EXPECT_EQ(parts.count(key, kOnce, 0), Counted::alert);
  key.index = 1;
  EXPECT_EQ(parts.count(key, kOnce, 0), Counted::alert);
  key.second = {0, 1};
  EXPECT_EQ(parts.count(key, kOnce, 0), Counted::alert);
  key.pair = true;
  EXPECT_EQ(parts.count(key, kOnce, 0), Counted::alert);
  EXPECT_FALSE(parts.bit(key_of(1, 0, HostRecordKind::xbit), 0));
  EXPECT_EQ(parts.count(key_of(1), kOnce, 0), Counted::silent);
}

TEST(HostMemory, ABitLastsUntilItsExpiryAndIsNotRenewed) {
  HostMemory memory;
  HostMemory::Parts& parts = memory.parts();
  const HostKey bit = key_of(7, 3, HostRecordKind::xbit);
  using How = XbitsChange::How;
  parts.change_bit(bit, How::set, 10 * kSecond);
  EXPECT_TRUE(parts.bit(bit, 10 * kSecond));
  parts.change_bit(bit, How::set, 20 * kSecond);
  EXPECT_FALSE(parts.bit(bit, 10 * kSecond + 1));  // it had expired, and this query removes it
  EXPECT_FALSE(parts.bit(bit, 5 * kSecond));
  parts.change_bit(bit, How::set, 20 * kSecond);
  EXPECT_TRUE(parts.bit(bit, 10 * kSecond + 1));
  parts.change_bit(bit, How::toggle, 20 * kSecond);
  EXPECT_FALSE(parts.bit(bit, 0));
  parts.change_bit(bit, How::toggle, 20 * kSecond);
  EXPECT_TRUE(parts.bit(bit, 0));
  parts.change_bit(bit, How::unset, 20 * kSecond);
  EXPECT_FALSE(parts.bit(bit, 0));
  parts.change_bit(bit, How::unset, 20 * kSecond);
  EXPECT_EQ(memory.counters().records, 0U);
}

TEST(HostMemory, AHostHasAtMostFiftyTags) {
  HostMemory memory;
  HostMemory::Parts& parts = memory.parts();
  const Tag tag{.of = Tag::Of::host, .count = 2, .unit = Tag::Unit::packets, .by_source = true};
  for (std::uint32_t rule = 0; rule < 60; ++rule) parts.tag(key_of(1, rule, HostRecordKind::tag), tag, 0);
  EXPECT_EQ(memory.counters().records, kMostTags);
  EXPECT_TRUE(parts.has_tags());
  EXPECT_FALSE(parts.tagged(key_of(2, 0, HostRecordKind::tag), 0, 60));
  EXPECT_FALSE(parts.tagged(key_of(1, 0, HostRecordKind::tag), 0, 60));  // the packet that set it
  EXPECT_TRUE(parts.tagged(key_of(1, 0, HostRecordKind::tag), 0, 60));
  EXPECT_FALSE(parts.tagged(key_of(1, 0, HostRecordKind::tag), 0, 60));
  EXPECT_EQ(memory.counters().records, 0U);
  EXPECT_FALSE(parts.has_tags());
}

// Matches of the same rules on the same hosts by several workers are counted as if one worker had seen them all.
TEST(HostMemory, LosesNoCountBetweenWorkers) {
  constexpr unsigned kWorkers = 4, kHosts = 50;
  constexpr std::uint32_t kMatches = 40'000, kLimit = 700;
  HostMemory memory;
  const Threshold limit{
      .type = Threshold::Type::limit, .track = TrackBy::source, .count = kLimit, .seconds = 1'000'000};
  std::vector<std::atomic<std::uint32_t>> alerts(kHosts);
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      auto random = [engine = std::mt19937(worker)]() mutable { return static_cast<std::uint32_t>(engine()); };
      HostMemory::Parts& parts = memory.parts();
      for (std::uint32_t i = 0; i < kMatches; ++i) {
        const unsigned host = random() % kHosts;
        if (parts.count(key_of(host), limit, i) == Counted::alert) ++alerts[host];
        const HostKey bit = key_of(host, 1, HostRecordKind::xbit);
        parts.change_bit(bit, XbitsChange::How::toggle, i + random() % 10);
        static_cast<void>(parts.bit(bit, i));
        const HostKey tag = key_of(host, random() % 70, HostRecordKind::tag);
        if (i % 16 == 0) parts.tag(tag, {.of = Tag::Of::host, .count = 3}, i);
        if (parts.has_tags()) static_cast<void>(parts.tagged(tag, i, 60));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const auto& of_host : alerts) EXPECT_EQ(of_host, kLimit);
  EXPECT_EQ(memory.counters().evicted, 0U);
}

// Workers evict each other's records all the time.
TEST(HostMemory, StaysConsistentWhileWorkersEvict) {
  HostMemory memory(0);
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&, worker] {
      auto random = [engine = std::mt19937(worker)]() mutable { return static_cast<std::uint32_t>(engine()); };
      HostMemory::Parts& parts = memory.parts();
      for (std::uint32_t i = 0; i < 50'000; ++i) {
        const std::uint32_t host = random() % 200;
        static_cast<void>(parts.count(key_of(host, i % 3), kOnce, i));
        parts.change_bit(key_of(host, 1, HostRecordKind::xbit), XbitsChange::How::toggle, i + 5);
        parts.tag(key_of(host, random() % 5, HostRecordKind::tag), {.of = Tag::Of::host, .count = 3}, i);
        static_cast<void>(parts.tagged(key_of(host, 0, HostRecordKind::tag), i, 60));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_LE(memory.counters().records, memory.parts().capacity());
  EXPECT_GT(memory.counters().evicted, 0U);
}

}  // namespace
}  // namespace penstock::nids
