// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole runs with `queueing: shared`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "run/device_run.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using namespace std::chrono_literals;
using port::RxStatus;
using testing::FakeChain;
using testing::FakePort;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};

FakeChain shared_chain(unsigned workers) {
  FakeChain chain;
  chain.settings.workers = workers;
  chain.settings.queueing = Queueing::shared;
  chain.settings.batch_timeout = 1ms;
  return chain;
}

/// `count` packets, all in one receive queue, a few in each poll.
FakePort::Poll in_one_queue(std::uint64_t& given, std::uint64_t count, unsigned each = 7) {
  return [&given, count, each](unsigned worker, Batch& batch) {
    if (worker != 0 || given == count) return RxStatus::end;
    for (unsigned i = 0; i < each && given < count; ++i, ++given) {
      if (!testing::append(batch, testing::numbered(given))) return RxStatus::more;
    }
    return given == count ? RxStatus::end : RxStatus::idle;
  };
}

void expect_conserved(const report::RunReport& report) {
  EXPECT_EQ(report.in.packets, report.forwarded.packets + report.consumed.packets + report.dropped.packets);
  EXPECT_EQ(report.in.bytes, report.forwarded.bytes + report.consumed.bytes + report.dropped.bytes);
}

TEST(SharedRun, SpreadsOneReceiveQueueOverAllWorkersAndLosesNothing) {
  FakeChain chain = shared_chain(3);
  std::uint64_t given = 0;
  chain.add_source("in", in_one_queue(given, 20'000));
  FakePort& out = chain.add_sink("out");
  chain.add_function("slow", [](std::span<PacketView>) { std::this_thread::sleep_for(100us); });
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  expect_conserved(result->report);
  EXPECT_EQ(result->report.in.packets, 20'000U);
  EXPECT_EQ(result->report.forwarded.packets, 20'000U) << "the source waits";
  EXPECT_EQ(result->report.ports[0].in.packets, 20'000U);
  std::vector<std::uint64_t> all;
  for (unsigned w = 0; w < 3; ++w) {
    const auto numbers = out.numbers(w);
    EXPECT_FALSE(numbers.empty()) << "worker " << w;
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::ranges::sort(all);
  for (std::uint64_t n = 0; n < 20'000; ++n) ASSERT_EQ(all[n], n);
}

TEST(SharedRun, DropsAndCountsWhatASourceBringsThatCannotWait) {
  FakeChain chain = shared_chain(2);
  chain.settings.queue_bytes = 64 << 10;
  chain.settings.batch_bytes = 64 << 10;
  std::uint64_t given = 0;
  std::atomic<bool> all_given{false};
  const FakePort::Poll poll = in_one_queue(given, 50'000, 200);
  chain
      .add_source("in",
                  [&](unsigned worker, Batch& batch) {
                    const RxStatus status = poll(worker, batch);
                    if (given == 50'000) all_given = true;
                    return status;
                  })
      .waits = false;
  FakePort& out = chain.add_sink("out");
  chain.add_function("slow", [&](std::span<PacketView>) {
    while (!all_given) std::this_thread::sleep_for(1ms);
  });
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  expect_conserved(result->report);
  EXPECT_EQ(given, 50'000U);
  EXPECT_EQ(result->report.in.packets, 50'000U);
  EXPECT_GT(result->report.chain_drops("queue_full"), 40'000U) << "workers wait until all packets have come";
  EXPECT_EQ(out.sent[0].size() + out.sent[1].size(), result->report.forwarded.packets);
  EXPECT_GT(result->report.forwarded.packets, 100U);
}

TEST(SharedRun, TakesBackLentFrames) {
  FakeChain chain = shared_chain(2);
  std::vector<std::uint8_t> memory(1 << 16);
  std::optional<PacketMemory::Region> region;
  std::atomic<std::size_t> back{0};
  std::size_t lent = 0;
  FakePort& in = chain.add_port("in");
  in.poll = [&](unsigned worker, Batch& batch) {
    if (worker != 0 || lent == 300) return RxStatus::end;
    if (!region) region = *in.packet_memory->add(memory);
    for (int i = 0; i < 10; ++i) {
      const auto frame = testing::numbered(lent);
      std::ranges::copy(frame, memory.begin());
      if (!batch.lend(*region, 0, frame.size(), {})) return RxStatus::more;
      ++lent;
      break;  // the next frame has the same place, so this one must be back
    }
    return RxStatus::idle;
  };
  in.takes_back = [&](std::size_t frames) {
    back += frames;
    std::ranges::fill(memory, 0xee);
  };
  FakePort& out = chain.add_sink("out");
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(back, 300U);
  std::vector<std::uint64_t> all = out.numbers(0);
  for (const std::uint64_t number : out.numbers(1)) all.push_back(number);
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), 300U);
  for (std::uint64_t n = 0; n < 300; ++n) EXPECT_EQ(all[n], n);
}

TEST(SharedRun, ClosesBatchesBySizeAndTimeOnly) {
  FakeChain chain = shared_chain(1);
  chain.settings.batch_timeout = 200ms;
  chain.settings.batch_packets = 10;
  int polls = 0;
  chain
      .add_source("in",
                  [&](unsigned, Batch& batch) {  // 15 packets, then none for a while
                    if (++polls <= 15)
                      return testing::append(batch, testing::numbered(1)) ? RxStatus::idle : RxStatus::more;
                    if (polls == 16) std::this_thread::sleep_for(400ms);
                    return RxStatus::end;
                  })
      .waits = false;
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->report.batches.count, 2U);
  EXPECT_EQ(result->report.batches.closed_by_size, 1U);
  EXPECT_EQ(result->report.batches.closed_by_time, 1U);
  EXPECT_EQ(result->report.batches.closed_by_idleness, 0U);
}

TEST(SharedRun, ProcessesWhatTheQueueHoldsWhenItIsStopped) {
  FakeChain chain = shared_chain(2);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> given{0};
  chain
      .add_source("in",
                  [&](unsigned worker, Batch& batch) {
                    if (worker != 0) return RxStatus::end;
                    for (int i = 0; i < 50; ++i, ++given) {
                      if (!testing::append(batch, testing::numbered(given))) return RxStatus::more;
                    }
                    if (given > 5000) stop = true;
                    return RxStatus::idle;
                  })
      .waits = false;
  chain.add_function("slow", [](std::span<PacketView>) { std::this_thread::sleep_for(200us); });
  const auto result = run(chain, {}, stop);
  ASSERT_TRUE(result) << to_string(result.error());
  expect_conserved(result->report);
  EXPECT_EQ(result->report.in.packets, given);
  EXPECT_EQ(result->report.consumed.packets, given) << "and none was dropped";
}

TEST(SharedRun, SleepsWhileNothingComes) {
  FakeChain chain = shared_chain(3);
  std::atomic<bool> stop{false};
  chain.add_source("in", [](unsigned, Batch&) { return RxStatus::idle; }).waits = false;
  chain.settings.duration = 300ms;
  const auto result = run(chain, {}, stop);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_LT(result->report.cpu_time, 100ms) << "of four threads in 300 ms";
}

TEST(SharedRun, SharesOutTheStreamsAsEvenlyAsPossible) {
  RunSettings settings;
  settings.queueing = Queueing::shared;
  settings.workers = 3;
  settings.streams = 16;
  EXPECT_EQ(lanes_of(settings, 0), 6U);
  EXPECT_EQ(lanes_of(settings, 1), 5U);
  EXPECT_EQ(lanes_of(settings, 2), 5U);
  settings.streams = 2;
  EXPECT_EQ(lanes_of(settings, 2), 1U);
  settings.queueing = Queueing::per_worker;
  EXPECT_EQ(lanes_of(settings, 2), 2U);
}

TEST(SharedRun, HasABatchThatWaitsAtAProxy) {
  RunSettings settings;
  settings.workers = 3;
  settings.streams = 1;
  EXPECT_EQ(lanes_of(settings, 2), 1U) << "a device of its own";
  EXPECT_EQ(limits_at_proxy(settings).batches, 0U);
  settings.proxy = "/run/proxy.sock";
  EXPECT_EQ(lanes_of(settings, 2), 2U);
  EXPECT_EQ(limits_at_proxy(settings).batches, 3U) << "not on the device";
  settings.streams = 2;
  EXPECT_EQ(lanes_of(settings, 2), 2U);
  EXPECT_EQ(limits_at_proxy(settings).batches, 6U);
  settings.proxy_limits = {.memory = 7, .bytes_per_second = 8, .batches = 4};
  EXPECT_EQ(limits_at_proxy(settings).batches, 4U) << "less was asked for";
  EXPECT_EQ(limits_at_proxy(settings).memory, 7U);
  EXPECT_EQ(limits_at_proxy(settings).bytes_per_second, 8U);
  settings.proxy_limits.batches = 8;
  EXPECT_EQ(limits_at_proxy(settings).batches, 6U);
  settings.queueing = Queueing::shared;
  settings.streams = 4;
  EXPECT_EQ(lanes_of(settings, 0), 2U);
  EXPECT_EQ(lanes_of(settings, 1), 2U);
  EXPECT_EQ(limits_at_proxy(settings).batches, 4U);
  settings.proxy_latency = std::chrono::milliseconds(1);
  EXPECT_EQ(lanes_of(settings, 1), 1U) << "the time of the one that waits would count";
  EXPECT_EQ(limits_at_proxy(settings).batches, 4U);
  settings.proxy_latency = {};
  settings.transfer = Transfer::direct;
  EXPECT_EQ(lanes_of(settings, 0), 1U);
}

}  // namespace
}  // namespace penstock::run
