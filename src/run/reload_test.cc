// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reloads of a run in progress, on CPUs. device_executor_test.cc has those over devices.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using port::RxStatus;
using testing::FakeChain;
using testing::FakeFunction;

/// A chain of two functions with endless traffic. Each packet's mark is the epoch of the first function; the second one
/// compares it with its own.
struct Bed {
  explicit Bed(unsigned workers = 2) {
    chain.settings.workers = workers;
    chain.settings.batch_packets = 64;
    chain.add_source("source", [this](unsigned, Batch& batch) {
      if (!batch.empty()) return RxStatus::more;
      while (testing::append(batch, frame)) ++made;
      return RxStatus::more;
    });
    chain.functions.push_back({"first", first_of(0)});
    chain.functions.push_back({"second", second_of(0)});
  }

  [[nodiscard]] std::unique_ptr<FakeFunction> first_of(unsigned epoch) {
    auto function = std::make_unique<FakeFunction>();
    function->process = [epoch](std::span<PacketView> packets) {
      for (const PacketView packet : packets) packet.packet->mark = epoch;
    };
    return function;
  }
  [[nodiscard]] std::unique_ptr<FakeFunction> second_of(unsigned epoch) {
    auto function = std::make_unique<FakeFunction>();
    function->process = [this, epoch](std::span<PacketView> packets) {
      for (const PacketView packet : packets) {
        if (packet.packet->mark != epoch) ++mixed;
        packet.packet->verdict = Verdict::consume();
      }
      decided += packets.size();
      newest = epoch;
    };
    return function;
  }
  [[nodiscard]] Functions functions_of(unsigned epoch) {
    Functions functions;
    functions.push_back(first_of(epoch));
    functions.push_back(second_of(epoch));
    return functions;
  }
  [[nodiscard]] FakeFunction& running(std::size_t function) {
    return static_cast<FakeFunction&>(*chain.functions[function].function);
  }
  void wait_for_packets() const {
    const std::uint64_t before = decided;
    while (decided < before + 1000) std::this_thread::yield();
  }

  const testing::Bytes frame = testing::numbered(1);
  std::atomic<std::uint64_t> made{0}, decided{0}, mixed{0};
  std::atomic<unsigned> newest{0};
  const std::atomic<bool> never{false};
  FakeChain chain;
};

TEST(Reload, DecidesEachPacketByOneEpochAndLosesNone) {
  Bed bed;
  auto run = start(bed.chain, {}, bed.never);
  ASSERT_TRUE(run) << to_string(run.error());
  constexpr unsigned kEpochs = 200;
  for (unsigned epoch = 1; epoch <= kEpochs; ++epoch) {
    FakeFunction& before = bed.running(0);
    ASSERT_TRUE((*run)->apply(bed.functions_of(epoch)));
    EXPECT_EQ(before.stages, 0) << "the stages of the former epoch have ended";
    EXPECT_EQ(bed.running(0).stages, 2) << "one for each worker";
    EXPECT_EQ(bed.running(0).predecessor, &before);
    EXPECT_EQ(bed.running(0).predecessors_ended, 1);
    if (epoch % 20 == 0) bed.wait_for_packets();
  }
  bed.wait_for_packets();
  EXPECT_EQ(bed.newest, kEpochs);
  (*run)->stop();
  const RunResult result = (*run)->wait();
  EXPECT_TRUE(result.errors.empty()) << to_string(result.errors);
  EXPECT_EQ(bed.mixed, 0U) << "decided by two epochs";
  EXPECT_EQ(result.report.in.packets, bed.made);
  EXPECT_EQ(result.report.consumed.packets, bed.made);
  EXPECT_EQ(result.report.functions[0].in.packets, bed.made) << "counters of the chain continue";
}

TEST(Reload, TakesTheFormerEpochBack) {
  Bed bed;
  auto run = start(bed.chain, {}, bed.never);
  ASSERT_TRUE(run);
  FakeFunction& first = bed.running(0);
  const auto none = (*run)->rollback();
  ASSERT_FALSE(none);
  EXPECT_EQ(to_string(none.error()),
            "there is no former configuration to return to: expected a reload before the rollback");
  ASSERT_TRUE((*run)->apply(bed.functions_of(1)));
  FakeFunction& second = bed.running(0);
  for (int n = 0; n < 3; ++n) {
    ASSERT_TRUE((*run)->rollback());
    EXPECT_EQ(&bed.running(0), &first);
    EXPECT_EQ(first.predecessor, &second);
    bed.wait_for_packets();
    ASSERT_TRUE((*run)->rollback()) << "which takes the rollback back";
    EXPECT_EQ(&bed.running(0), &second);
    EXPECT_EQ(second.predecessor, &first);
    bed.wait_for_packets();
  }
  EXPECT_EQ(bed.newest, 1U);
  (*run)->stop();
  EXPECT_EQ((*run)->wait().report.in.packets, bed.made);
  EXPECT_EQ(bed.mixed, 0U);
}

TEST(Reload, ChangesNothingIfAFunctionCannotTakeOver) {
  Bed bed;
  auto run = start(bed.chain, {}, bed.never);
  ASSERT_TRUE(run);
  FakeFunction& first = bed.running(0);
  Functions next = bed.functions_of(1);
  static_cast<FakeFunction&>(*next[1]).take_over_errors = {{{}, "its lock is taken", "", ""}};
  const auto refused = (*run)->apply(std::move(next));
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()), "its lock is taken");
  EXPECT_EQ(&bed.running(0), &first);
  EXPECT_EQ(first.stages, 2);
  bed.wait_for_packets();
  EXPECT_EQ(bed.newest, 0U);
  EXPECT_FALSE((*run)->rollback()) << "there was no reload";
  ASSERT_TRUE((*run)->apply(bed.functions_of(2))) << "and one is still possible";
  (*run)->stop();
  static_cast<void>((*run)->wait());
  EXPECT_EQ(bed.mixed, 0U);
}

TEST(Reload, RefusesFunctionsThatTheChainIsNotPlannedFor) {
  Bed bed;
  auto run = start(bed.chain, {}, bed.never);
  ASSERT_TRUE(run);
  Functions next = bed.functions_of(1);
  static_cast<FakeFunction&>(*next[0]).own_traits.growth.head = 8;
  EXPECT_FALSE((*run)->apply(std::move(next)));
  bed.wait_for_packets();
  EXPECT_EQ(bed.newest, 0U);
  (*run)->stop();
  static_cast<void>((*run)->wait());
}

TEST(Reload, ReachesWorkersWithoutPacketsAndThoseThatHaveEnded) {
  FakeChain chain;
  chain.settings.workers = 3;
  std::atomic<bool> over{false};
  std::atomic<unsigned> ended{0};
  chain.add_source("source", [&](unsigned worker, Batch&) {
    if (worker == 0) return ++ended, RxStatus::end;
    return over ? RxStatus::end : RxStatus::idle;
  });
  chain.add_function("function", [](std::span<PacketView>) {});
  const std::atomic<bool> never{false};
  auto run = start(chain, {}, never);
  ASSERT_TRUE(run);
  while (ended == 0) std::this_thread::yield();
  for (int n = 0; n < 20; ++n) {
    Functions next;
    next.push_back(std::make_unique<FakeFunction>());
    ASSERT_TRUE((*run)->apply(std::move(next)));
  }
  over = true;
  static_cast<void>((*run)->wait());
  Functions late;
  late.push_back(std::make_unique<FakeFunction>());
  const auto refused = (*run)->apply(std::move(late));
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()), "the run has ended: expected a reload while packets flow");
}

TEST(Reload, EndsWithTheRunIfAnOutputIsBlocked) {
  FakeChain chain;
  std::atomic<bool> is_blocked{false};
  std::atomic<bool> goes_on{false};
  chain.add_source("source", [&, frame = testing::numbered(1)](unsigned, Batch& batch) {
    static_cast<void>(testing::append(batch, frame));
    return RxStatus::more;
  });
  chain.add_function("function", [&](std::span<PacketView> packets) {
    is_blocked = true;
    while (!goes_on) std::this_thread::sleep_for(std::chrono::milliseconds{1});  // as a full pipe would
    for (const PacketView packet : packets) packet.packet->verdict = Verdict::consume();
  });
  const std::atomic<bool> never{false};
  auto run = start(chain, {}, never);
  ASSERT_TRUE(run);
  while (!is_blocked) std::this_thread::yield();
  Functions next;
  next.push_back(std::make_unique<FakeFunction>());
  std::thread applies([&] { EXPECT_TRUE((*run)->apply(std::move(next))); });
  static_cast<void>((*run)->report());
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  (*run)->stop();
  goes_on = true;
  static_cast<void>((*run)->wait());
  applies.join();
}

TEST(Run, StopsIfItIsDestroyed) {
  Bed bed;
  {
    auto run = start(bed.chain, {}, bed.never);
    ASSERT_TRUE(run);
    bed.wait_for_packets();
  }
  const std::uint64_t decided = bed.decided;
  EXPECT_EQ(decided, bed.made);
}

TEST(Run, ReportsFromAnyThreadWhileTablesChange) {
  Bed bed;
  auto run = start(bed.chain, {}, bed.never);
  ASSERT_TRUE(run);
  std::atomic<bool> over{false};
  std::thread reports([&] {
    std::uint64_t before = 0;
    while (!over) {
      const std::uint64_t now = (*run)->report().functions[0].in.packets;
      EXPECT_GE(now, before);
      before = now;
    }
  });
  for (unsigned epoch = 1; epoch <= 50; ++epoch) ASSERT_TRUE((*run)->apply(bed.functions_of(epoch)));
  over = true;
  reports.join();
  (*run)->stop();
  static_cast<void>((*run)->wait());
}

}  // namespace
}  // namespace penstock::run
