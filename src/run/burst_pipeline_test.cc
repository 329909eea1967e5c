// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/burst_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <vector>

#include "function/deferring_stage.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using testing::FakeChain;
using testing::number_of;

/// Decides about a burst some time after it was given.
class LateFunction final : public function::NetworkFunction {
 public:
  explicit LateFunction(std::function<Verdict(PacketView)> decide, unsigned seed = 1)
      : decide_(std::move(decide)), random_(seed) {
    static constexpr std::string_view kReasons[] = {"some"};
    traits_.name = "late";
    traits_.cpu.writes = {Field::verdict};
    traits_.drop_reasons = kReasons;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(*this); }
  std::string description() const override { return "late"; }

  std::vector<std::uint64_t> seen;    // packets, in the order in which they were given
  std::size_t most_under_way = 0;     // bursts
  std::size_t processed_at_once = 0;  // packets

 private:
  class Stage final : public function::CpuStage, public function::DeferringStage {
   public:
    explicit Stage(LateFunction& function) : function_(function) {}
    void process(std::span<PacketView> packets) noexcept override {
      EXPECT_TRUE(under_way_.empty()) << "a burst passes another one";
      note(packets);
      function_.processed_at_once += packets.size();
      for (const PacketView packet : packets) packet.packet->verdict = function_.decide_(packet);
    }
    bool begin(std::span<PacketView> packets) noexcept override {
      if (under_way_.size() == 3 || function_.random_() % 8 == 0) return false;
      note(packets);
      under_way_.push_back(packets);
      function_.most_under_way = std::max(function_.most_under_way, under_way_.size());
      return true;
    }
    bool is_ready() noexcept override {
      EXPECT_FALSE(under_way_.empty());
      return function_.random_() % 4 == 0;
    }
    void finish() noexcept override {
      for (const PacketView packet : under_way_.front()) packet.packet->verdict = function_.decide_(packet);
      under_way_.pop_front();
    }

   private:
    void note(std::span<PacketView> packets) {
      EXPECT_FALSE(packets.empty());
      for (const PacketView packet : packets) function_.seen.push_back(number_of(packet));
    }
    LateFunction& function_;
    std::deque<std::span<PacketView>> under_way_;
  };
  const std::function<Verdict(PacketView)> decide_;
  std::mt19937 random_;
  function::NfTraits traits_;
};

Verdict drop_if(bool drops, PacketView packet) { return drops ? Verdict::drop(0) : packet.packet->verdict; }

constexpr std::uint64_t kPackets = 20'000;

class BurstPipelineTest : public ::testing::Test {
 protected:
  BurstPipelineTest() {
    chain_.add_source("in", testing::script({testing::numbered_frames(kPackets)}));
    sink_ = &chain_.add_sink("out");
    chain_.settings.batch_packets = 500;
    chain_.settings.batch_bytes = 64 << 10;
  }
  LateFunction& add_late(std::uint64_t divisor) {
    auto function = std::make_unique<LateFunction>(
        [divisor](PacketView packet) { return drop_if(number_of(packet) % divisor == 0, packet); },
        static_cast<unsigned>(divisor));
    LateFunction& late = *function;
    chain_.functions.push_back({"late", std::move(function)});
    return late;
  }
  std::vector<std::uint64_t>& add_local(std::uint64_t divisor) {
    auto& seen = *seen_.emplace_back(std::make_unique<std::vector<std::uint64_t>>());
    auto& function = chain_.add_function("local", [divisor, &seen](std::span<PacketView> packets) {
      for (const PacketView packet : packets) {
        seen.push_back(number_of(packet));
        packet.packet->verdict = drop_if(number_of(packet) % divisor == 0, packet);
      }
    });
    static constexpr std::string_view kReasons[] = {"some"};
    function.own_traits.drop_reasons = kReasons;
    function.own_traits.cpu.writes = {Field::verdict};
    return seen;
  }
  report::RunReport run() {
    const std::atomic<bool> stop{false};
    auto result = run::run(chain_, {}, stop);
    EXPECT_TRUE(result);
    return result->report;
  }
  /// The numbers that none of these divides, in order.
  static std::vector<std::uint64_t> without(std::initializer_list<std::uint64_t> divisors) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t n = 0; n < kPackets; ++n) {
      if (std::ranges::none_of(divisors, [n](std::uint64_t divisor) { return n % divisor == 0; })) numbers.push_back(n);
    }
    return numbers;
  }

  FakeChain chain_;
  testing::FakePort* sink_;
  std::vector<std::unique_ptr<std::vector<std::uint64_t>>> seen_;
};

TEST_F(BurstPipelineTest, GivesEachFunctionItsPacketsInOrder) {
  const auto& first = add_local(3);
  const LateFunction& second = add_late(5);
  const auto& third = add_local(7);
  const auto& fourth = add_local(11);
  const LateFunction& fifth = add_late(13);
  const LateFunction& sixth = add_late(17);
  const report::RunReport report = run();
  EXPECT_EQ(first, without({}));
  EXPECT_EQ(second.seen, without({3}));
  EXPECT_EQ(third, without({3, 5}));
  EXPECT_EQ(fourth, without({3, 5, 7}));
  EXPECT_EQ(fifth.seen, without({3, 5, 7, 11}));
  EXPECT_EQ(sixth.seen, without({3, 5, 7, 11, 13}));
  EXPECT_EQ(sink_->numbers(), without({3, 5, 7, 11, 13, 17}));
  EXPECT_GT(second.most_under_way, 1U);
  EXPECT_GT(second.processed_at_once, 0U) << "the test does not cover bursts for which there is no room";
  EXPECT_EQ(report.in.packets, report.forwarded.packets + report.dropped.packets);
  ASSERT_EQ(report.functions.size(), 6U);
  EXPECT_EQ(report.functions[1].in.packets, without({3}).size());
  EXPECT_EQ(report.functions[1].forwarded.packets, without({3, 5}).size());
  EXPECT_EQ(report.functions[5].forwarded.packets, sink_->numbers().size());
}

TEST_F(BurstPipelineTest, LeavesOutBurstsOfWhichNothingIsLeft) {
  add_late(1);
  const LateFunction& after = add_late(2);
  const report::RunReport report = run();
  EXPECT_TRUE(after.seen.empty());
  EXPECT_EQ(report.dropped.packets, kPackets);
}

TEST_F(BurstPipelineTest, IsNotUsedIfFunctionsDependOnOthersDecisions) {
  const LateFunction& late = add_late(3);
  auto& asks = chain_.add_function("asks", [](std::span<PacketView>) {});
  asks.own_traits.asks_for_arrivals = true;
  run();
  EXPECT_EQ(late.most_under_way, 0U);
  EXPECT_EQ(sink_->numbers(), without({3}));
}

TEST_F(BurstPipelineTest, IsNotUsedForFunctionsInArms) {
  const LateFunction& late = add_late(3);
  plan::Fork fork{0, 1, {}};
  plan::Arm arm;
  arm.first = 0;
  arm.last = 1;
  fork.arms.push_back(std::move(arm));
  chain_.forks.push_back(std::move(fork));
  run();
  EXPECT_EQ(late.most_under_way, 0U);
}

}  // namespace
}  // namespace penstock::run
