// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions in processes of their own whose stages leave their work to a device: they get several bursts at a time, and
// may fail.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

#include "function/burst.h"
#include "function/offloaded_stage.h"
#include "process/testing/served_chain.h"

namespace penstock::process {
namespace {

using namespace std::chrono_literals;

/// What its stages have done, in all connections.
struct Seen {
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> most{0};     // packets of a call
  std::atomic<std::size_t> packets{0};  // in all calls
};

/// Drops each third packet. Fails with the packet of this number.
class OffloadingFunction final : public function::NetworkFunction {
 public:
  OffloadingFunction(Seen& seen, std::size_t fails_after, std::size_t most)
      : seen_(seen), fails_after_(fails_after), most_(most) {
    traits_.name = "fake";
    traits_.cpu = {{Field::payload}, {Field::verdict}};
    traits_.drop_reasons = testing::kReasons;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::string description() const override { return "a fake"; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(*this); }

 private:
  class Stage final : public function::CpuStage, public function::OffloadedStage {
   public:
    explicit Stage(OffloadingFunction& function) : function_(function) {}
    void process(std::span<PacketView> packets) noexcept override {
      Seen& seen = function_.seen_;
      ++seen.calls;
      seen.most = std::max<std::size_t>(seen.most, packets.size());
      seen.packets += packets.size();
      fails_ |= seen.packets > function_.fails_after_;
      for (const PacketView packet : packets) {
        if (run::testing::number_of(packet) % 3 == 0) packet.packet->verdict = Verdict::drop(1);
      }
      std::this_thread::sleep_for(100us);  // a launch: bursts come meanwhile
    }
    std::size_t most_packets() const noexcept override { return function_.most_; }
    std::string_view failure() const noexcept override { return fails_ ? "it has failed" : ""; }

   private:
    OffloadingFunction& function_;
    bool fails_ = false;
  };

  Seen& seen_;
  const std::size_t fails_after_;
  const std::size_t most_;
  function::NfTraits traits_;
};

class OffloadedProcess : public testing::ServedChain {
 protected:
  static constexpr std::size_t kNever = ~std::size_t{0};
  static constexpr std::size_t kMany = 1024;

  void serve_offloading(std::size_t fails_after = kNever, std::size_t most = kMany) {
    auto server = Server::start({path_}, [this, fails_after, most](std::string_view, const Surroundings&) {
      return Result<std::unique_ptr<function::NetworkFunction>>(
          std::make_unique<OffloadingFunction>(seen_, fails_after, most));
    });
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }
  /// In batches of several bursts.
  Outcome run_large_batches(RemoteSettings settings) {
    auto function = connect_function(std::move(settings));
    if (!function) {
      ADD_FAILURE() << to_string(function.error());
      return {};
    }
    return run_chain(
        std::move(*function), [](std::size_t) {},
        [](FakeChain& chain) {
          chain.settings.batch_bytes = 1 << 20;
          chain.settings.batch_packets = 1000;
          chain.settings.queue_bytes = 4 << 20;
        });
  }
  using FakeChain = testing::FakeChain;
  Seen seen_;
};

TEST_F(OffloadedProcess, GetsSeveralBurstsAtOnceAndDecidesTheSame) {
  serve_offloading();
  const Outcome remote = run_large_batches(settings());
  EXPECT_EQ(remote.report.forwarded.packets, kPackets - (kPackets + 2) / 3);
  EXPECT_EQ(remote.function.at("process").at("lost_packets"), 0U);
  expect_none_missing(remote);
  EXPECT_EQ(seen_.packets, kPackets);
  EXPECT_GT(seen_.most, function::kBurst) << "bursts that wait go together";
  EXPECT_EQ(server_->why_failed(), "");
}

TEST_F(OffloadedProcess, GetsNoMorePacketsThanItWants) {
  serve_offloading(kNever, function::kBurst);
  expect_none_missing(run_large_batches(settings()));
  EXPECT_EQ(seen_.packets, kPackets);
  EXPECT_LE(seen_.most, function::kBurst);
}

TEST_F(OffloadedProcess, IsLostWhenItFails) {
  for (const bool passes : {false, true}) {
    server_.reset();
    seen_.packets = 0;
    serve_offloading(/*fails_after=*/2000);
    RemoteSettings lossy = settings();
    lossy.passes_when_lost = passes;
    const Outcome outcome = run_large_batches(lossy);
    expect_none_missing(outcome);
    EXPECT_EQ(outcome.function.at("process").at("losses"), 1U) << "a function that has failed is not used again";
    EXPECT_GT(outcome.function.at("process").at("lost_packets"), 0U);
    const std::size_t thirds = (kPackets + 2) / 3;
    if (passes) {
      EXPECT_LT(outcome.report.dropped.packets, thirds);
    } else {
      EXPECT_GT(outcome.report.dropped.packets, thirds);
    }
    EXPECT_EQ(server_->why_failed(), "it has failed");
  }
}

}  // namespace
}  // namespace penstock::process
