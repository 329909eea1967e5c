// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/shared_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using namespace std::chrono_literals;
using port::RxStatus;
using testing::number_of;
using testing::numbered;
using Clock = SharedQueue::Clock;

/// A batch with its memory.
struct Room {
  explicit Room(std::size_t size, std::size_t packets)
      : bytes(size + kFrameAlignment), descriptors(packets), batch(aligned(size), descriptors, {}) {}
  std::span<std::uint8_t> aligned(std::size_t size) {
    void* start = bytes.data();
    std::size_t space = bytes.size();
    return {static_cast<std::uint8_t*>(std::align(kFrameAlignment, size, start, space)), size};
  }
  std::vector<std::uint8_t> bytes;
  std::vector<PacketDescriptor> descriptors;
  Batch batch;
};

bool push(SharedQueue& queue, std::uint64_t number, SharedQueue::Polled polled = {}) {
  return queue.push(numbered(number), {number, 0, 3, LinkType::ethernet, 7}, polled);
}

std::vector<std::uint64_t> numbers_of(Batch& batch) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < batch.size(); ++i) numbers.push_back(number_of(batch.view(i)));
  return numbers;
}

TEST(SharedQueue, GivesPacketsInOrderWithWhatIsKnownOfThem) {
  SharedQueue queue(1 << 20);
  const auto time = Clock::now() - 1s;
  for (std::uint64_t n = 0; n < 5; ++n) ASSERT_TRUE(push(queue, n, {time, n < 3 ? std::nullopt : std::optional(5ns)}));
  Room room(1 << 16, 100);
  EXPECT_EQ(queue.poll(room.batch), RxStatus::idle);
  EXPECT_EQ(numbers_of(room.batch), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(room.batch.packets()[4].timestamp_ns, 4U);
  EXPECT_EQ(room.batch.packets()[4].in_port, 3);
  EXPECT_EQ(room.batch.packets()[4].number, 7U);
  const auto marks = room.batch.arrivals();
  ASSERT_EQ(marks.size(), 2U);
  EXPECT_EQ(marks[0].end, 3U);
  EXPECT_EQ(marks[0].time, time) << "when it was received, not when it was taken";
  EXPECT_EQ(marks[1].end, 5U);
  EXPECT_EQ(marks[1].to_clock, 5ns);
}

TEST(SharedQueue, HoldsNoMoreThanItsBytes) {
  constexpr std::size_t kBytes = 64 << 10;
  SharedQueue queue(kBytes);
  std::uint64_t taken = 0;
  std::uint64_t bytes = 0;
  while (push(queue, taken)) bytes += numbered(taken++).size();
  EXPECT_GT(bytes, kBytes / 4);
  EXPECT_LE(bytes, kBytes);
  EXPECT_FALSE(queue.has_room(numbered(taken).size()));
  Room room(1 << 20, 1);
  EXPECT_EQ(queue.poll(room.batch), RxStatus::more) << "the batch is full";
  EXPECT_EQ(numbers_of(room.batch), std::vector<std::uint64_t>{0});
  room.batch.reset(0);
  while (!push(queue, taken)) {
    ASSERT_EQ(queue.poll(room.batch), RxStatus::more);
    room.batch.reset(0);
  }
}

TEST(SharedQueue, TakesALargeFrameWhileItIsEmpty) {
  SharedQueue queue(64 << 10);
  const std::vector<std::uint8_t> frame(200 << 10, 1);
  ASSERT_TRUE(queue.push(frame, {}, {}));
  EXPECT_FALSE(queue.push(frame, {}, {}));
  EXPECT_FALSE(push(queue, 1));
  Room room(1 << 20, 4);
  EXPECT_EQ(queue.poll(room.batch), RxStatus::idle);
  ASSERT_EQ(room.batch.size(), 1U);
  EXPECT_EQ(room.batch.frame_bytes(), frame.size());
  EXPECT_TRUE(push(queue, 1));
  EXPECT_FALSE(queue.push(std::vector<std::uint8_t>(queue.longest_frame() + 1), {}, {}));
}

TEST(SharedQueue, EndsOnceItIsEmpty) {
  SharedQueue queue(1 << 20);
  for (std::uint64_t n = 0; n < 100; ++n) ASSERT_TRUE(push(queue, n));
  queue.end();
  Room room(1 << 20, 1000);
  EXPECT_EQ(queue.poll(room.batch), RxStatus::idle) << "a portion";
  EXPECT_EQ(queue.poll(room.batch), RxStatus::end);
  EXPECT_EQ(room.batch.size(), 100U);
}

TEST(SharedQueue, WakesAWorkerForPacketsAndAllAtTheEnd) {
  SharedQueue queue(1 << 20);
  const auto start = Clock::now();
  queue.wait(start + 20ms);
  EXPECT_GE(Clock::now() - start, 20ms) << "nothing came";
  std::atomic<int> woken{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      queue.wait(Clock::now() + 60s);
      ++woken;
    });
  }
  std::this_thread::sleep_for(20ms);
  ASSERT_TRUE(push(queue, 1));
  queue.announce();
  while (woken < 1) std::this_thread::yield();
  Room room(1 << 16, 10);
  queue.poll(room.batch);
  queue.end();
  for (std::thread& worker : workers) worker.join();
  EXPECT_LT(Clock::now() - start, 50s);
}

TEST(SharedQueue, SeveralWorkersTakeEachPacketOnceAndEachInOrder) {
  constexpr std::uint64_t kCount = 200'000;
  constexpr unsigned kWorkers = 3;
  SharedQueue queue(64 << 10);  // small, so that it is often empty, and full at least at the start
  std::atomic<bool> was_full{false};
  std::vector<std::vector<std::uint64_t>> taken(kWorkers);
  std::vector<std::thread> workers;
  for (unsigned w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      while (!was_full) std::this_thread::sleep_for(1ms);
      Room room(16 << 10, 50 + w);
      for (RxStatus status = RxStatus::idle; status != RxStatus::end;) {
        status = queue.poll(room.batch);
        for (const std::uint64_t number : numbers_of(room.batch)) taken[w].push_back(number);
        if (room.batch.empty()) queue.wait(Clock::now() + 1s);
        room.batch.reset(0);
      }
    });
  }
  for (std::uint64_t n = 0; n < kCount;) {
    if (push(queue, n)) {
      if (++n % 16 == 0) queue.announce();
    } else {
      was_full = true;
      queue.announce();
      std::this_thread::yield();
    }
  }
  queue.end();
  for (std::thread& worker : workers) worker.join();
  std::vector<std::uint64_t> all;
  for (const auto& of_worker : taken) {
    EXPECT_TRUE(std::ranges::is_sorted(of_worker));
    all.insert(all.end(), of_worker.begin(), of_worker.end());
  }
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), kCount);
  for (std::uint64_t n = 0; n < kCount; ++n) ASSERT_EQ(all[n], n);
}

}  // namespace
}  // namespace penstock::run
