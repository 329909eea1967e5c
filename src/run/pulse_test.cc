// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using port::RxStatus;
using testing::FakeChain;

/// Waits for at most 20 s.
bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
}

std::vector<std::string> threads_of(const Run& run) {
  std::vector<std::string> names;
  for (const Pulse& pulse : run.pulses()) names.push_back(pulse.thread);
  return names;
}

/// Whether the pulse of this thread grows.
bool grows(const Run& run, std::size_t thread) {
  const auto before = run.pulses()[thread].count;
  return eventually([&] { return run.pulses()[thread].count != before; });
}

TEST(Pulses, GrowWithoutPacketsAndEndWithTheThread) {
  FakeChain chain;
  chain.settings.workers = 2;
  std::atomic<bool> ends{false};
  chain.add_source("in", [&](unsigned, Batch&) { return ends ? RxStatus::end : RxStatus::idle; });
  const std::atomic<bool> stop{false};
  auto run = start(chain, {}, stop);
  ASSERT_TRUE(run);
  EXPECT_EQ(threads_of(**run), (std::vector<std::string>{"worker 0", "worker 1"}));
  EXPECT_TRUE(grows(**run, 0));
  EXPECT_TRUE(grows(**run, 1));
  ends = true;
  EXPECT_TRUE(eventually([&] { return !(*run)->pulses()[0].count && !(*run)->pulses()[1].count; }));
  EXPECT_TRUE((*run)->wait().errors.empty());
}

TEST(Pulses, StayTheSameWhileAFunctionHangs) {
  FakeChain chain;
  std::atomic<bool> has_sent{false}, hangs{true}, is_in{false}, ends{false};
  chain.add_source("in", [&](unsigned, Batch& batch) {
    if (ends) return RxStatus::end;
    if (!has_sent.exchange(true)) static_cast<void>(testing::append(batch, testing::numbered(1)));
    return RxStatus::idle;
  });
  chain.add_function("hangs", [&](std::span<PacketView>) {
    is_in = true;
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  });
  const std::atomic<bool> stop{false};
  auto run = start(chain, {}, stop);
  ASSERT_TRUE(run);
  ASSERT_TRUE(eventually([&] { return is_in.load(); }));
  const auto before = (*run)->pulses()[0].count;
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  EXPECT_EQ((*run)->pulses()[0].count, before);
  hangs = false;
  EXPECT_TRUE(grows(**run, 0));
  ends = true;
  EXPECT_TRUE((*run)->wait().errors.empty());
}

TEST(Pulses, IncludeTheReceiverOfASharedQueue) {
  FakeChain chain;
  chain.settings.queueing = Queueing::shared;
  std::atomic<bool> ends{false};
  chain.add_source("in", [&](unsigned, Batch&) { return ends ? RxStatus::end : RxStatus::idle; });
  const std::atomic<bool> stop{false};
  auto run = start(chain, {}, stop);
  ASSERT_TRUE(run);
  EXPECT_EQ(threads_of(**run), (std::vector<std::string>{"worker 0", "receiver"}));
  EXPECT_TRUE(grows(**run, 0));
  EXPECT_TRUE(grows(**run, 1));
  ends = true;
  EXPECT_TRUE(eventually([&] { return !(*run)->pulses()[1].count; }));
  EXPECT_TRUE((*run)->wait().errors.empty());
}

}  // namespace
}  // namespace penstock::run
