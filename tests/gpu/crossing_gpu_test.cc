// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes that cross PCIe: the plan's numbers per packet, the lanes' counters and the report agree.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/memory.h"
#include "gpu/pinned_region.h"
#include "gpu/way.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "nf/router/router_for_test.h"
#include "packet/testing/random_frames.h"
#include "plan/device_plan.h"
#include "property/conservation_check.h"
#include "ring/lane.h"
#include "run/device_executor.h"
#include "run/testing/fakes.h"

namespace penstock::on_gpu {
namespace {

class CrossingBytes : public property::Chains, public ::testing::WithParamInterface<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, CrossingBytes, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return test_name(way.param); });

TEST_P(CrossingBytes, AreThoseOfThePlanForEachPacketWhereNoneIsDropped) {
  constexpr std::uint64_t kBatch = 256;  // even, because what comes back of a batch is padded to 8 bytes
  constexpr std::uint64_t kBatches = 40;
  put("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --dport 53 -j DROP\nCOMMIT\n");
  put("routes", "default dev out\n2000::/3 dev out\n");
  for (const char* network : {"ipv4", "ipv6"}) {
    for (const unsigned size : {64U, 100U, 128U, 512U, 1518U, 9000U}) {
      if (size == 64 && network == std::string("ipv6")) continue;  // an IPv6 frame with UDP is longer
      SCOPED_TRACE(fmt::format("{} frames of {} bytes", network, size));
      const std::string yaml = fmt::format(
          "ports:\n  in: {{generator: {{packets: {}, size: {}, flows: 64, network: {}}}}}\n  out: {{\"null\": {{}}}}\n"
          "chain:\n  - firewall: {{rules: rules}}\n  - router: {{routes: routes, ipv4: trie4}}\n",
          kBatch * kBatches, size, network);
      auto settings = settings_of(GetParam());
      settings.insert(settings.end(), {"run.batch.packets=" + std::to_string(kBatch), "run.batch.bytes=4MiB",
                                       "run.queue.bytes=8MiB", "run.batch.timeout=10s"});
      const Json report = run(yaml, settings).report;
      ASSERT_FALSE(report.is_null());
      EXPECT_EQ(report["packets"]["forwarded"], kBatch * kBatches);
      EXPECT_EQ(report["batches"]["count"], kBatches) << "batches that are not full";
      expect_all_on_device(report);
      EXPECT_EQ(report["gpu"]["punted"], 0);

      const auto loaded = config::load_chain(folder_ / "chain.yaml", {overrides_of(settings), false, false});
      ASSERT_TRUE(loaded) << penstock::to_string(loaded.error());
      const auto plan = loaded->chain.device_plan();
      ASSERT_TRUE(plan) << penstock::to_string(plan.error());
      // The generator's sizes include an FCS, which frames in memory do not have.
      const plan::CrossingBytes planned = plan::crossing_bytes(*plan, size - 4);
      EXPECT_EQ(report["pcie"]["to_device_bytes"], planned.to_device * kBatch * kBatches);
      EXPECT_EQ(report["pcie"]["to_host_bytes"], planned.to_host * kBatch * kBatches);
    }
  }
}

/// A lane, and the total of what crossed over it.
class CountedLane final : public ring::Lane {
 public:
  CountedLane(std::unique_ptr<ring::Lane> lane, Crossed& sum) : lane_(std::move(lane)), sum_(sum) {}
  void exchange_stages(ring::LaneStages& stages) noexcept override { lane_->exchange_stages(stages); }
  bool start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override {
    return lane_->start(batch, segment, frames);
  }
  gpu::Progress progress() noexcept override {
    const gpu::Progress progress = lane_->progress();
    if (progress == gpu::Progress::kDone) {
      sum_.to_device += lane_->crossed().to_device;
      sum_.to_host += lane_->crossed().to_host;
    }
    return progress;
  }
  const ring::SegmentResults& results() const noexcept override { return lane_->results(); }
  void abandon() noexcept override { lane_->abandon(); }
  void take_pictures(std::span<const std::uint32_t> packets) noexcept override { lane_->take_pictures(packets); }
  ring::Picture picture(std::size_t stages, std::size_t packet) const noexcept override {
    return lane_->picture(stages, packet);
  }
  std::uint32_t fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept override {
    return lane_->fetch(packet, descriptor, to);
  }
  void begin_batch() noexcept override { lane_->begin_batch(); }
  Crossed crossed() const noexcept override { return lane_->crossed(); }

 private:
  std::unique_ptr<ring::Lane> lane_;
  Crossed& sum_;
};

TEST_P(CrossingBytes, AreReportedAsTheLanesCountThem) {
  constexpr std::size_t kBatchBytes = 1 << 20;
  constexpr std::size_t kBatchPackets = 500;
  constexpr unsigned kBatches = 40;
  run::testing::FakeChain chain;
  for (const std::string& port : router::kTestPorts) chain.add_sink(port);
  auto firewall = firewall::Firewall::build(
      firewall::rules_of("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.0/25 -j DROP\nCOMMIT\n"),
      classify::Engine::bitvector);
  ASSERT_TRUE(firewall);
  chain.functions.push_back({"firewall", std::move(*firewall)});
  router::RouterConfig config = router::config_of("default via 10.0.0.1 dev wan\nfe80::/10 dev lan\n");
  config.engine = router::Fib4Engine::kTrie4;
  chain.functions.push_back({"router", router::build(std::move(config))});
  ASSERT_NO_FATAL_FAILURE(put_on_gpu(chain.settings, GetParam()));
  chain.settings.batch_packets = kBatchPackets;
  chain.open();
  gpu::use_device(chain.settings.gpus.front());

  const auto plan = plan::plan_device(chain.traits(), chain.processors(), GetParam().frames, GetParam().sharing);
  ASSERT_TRUE(plan) << penstock::to_string(plan.error());
  const auto crossing = GetParam().transfer == run::Transfer::zero_copy   ? ring::Crossing::zero_copy
                        : GetParam().transfer == run::Transfer::automatic ? ring::Crossing::by_size
                                                                          : ring::Crossing::copy;
  ring::Lane::Crossed by_lanes;
  std::vector<std::unique_ptr<ring::Lane>> lanes;
  struct Memory {
    gpu::PinnedBuffer<std::uint8_t> bytes{kBatchBytes};
    std::vector<PacketDescriptor> descriptors = std::vector<PacketDescriptor>(kBatchPackets);
    Batch batch{bytes.span(), descriptors, {}};
  };
  std::deque<std::unique_ptr<Memory>> free;
  std::deque<std::unique_ptr<Memory>> in_flight;
  for (int i = 0; i < 3; ++i) {
    ring::LaneStages stages;
    for (const ring::SegmentShape& segment : plan->segments) {
      stages.emplace_back();
      for (const auto& stage : segment.stages) {
        stages.back().push_back(
            chain.functions[stage.function].function->make_device_stage(function::Processor::gpu, {0, kBatchPackets}));
      }
    }
    lanes.push_back(std::make_unique<CountedLane>(
        ring::make_device_lane({kBatchBytes, kBatchPackets, {}, plan->hash_flows, crossing, plan->segments},
                               std::move(stages)),
        by_lanes));
    free.push_back(std::make_unique<Memory>());
  }

  run::WorkerCounters counters(chain);
  run::DeviceExecutor executor(chain, *plan, run::LaneSet{nullptr, {}, {}, std::move(lanes)}, 0, counters, nullptr);
  // As a run does (run/device_run.cc).
  std::deque<gpu::PinnedRegion> pinned;
  for (const std::span<std::uint8_t> memory : executor.memory_sent_again()) pinned.emplace_back(memory);
  executor.begin();
  penstock::testing::RandomFrames draw(5);
  for (unsigned submitted = 0; submitted < kBatches || !in_flight.empty();) {
    if (submitted < kBatches && !free.empty()) {
      Batch& batch = free.front()->batch;
      if (batch.empty()) {
        const std::size_t size = submitted < 4 ? 1 + submitted : 1 + draw.below(kBatchPackets);
        while (batch.size() < size) {
          const auto frame = draw.frame();
          if (!batch.append(frame.bytes, {.wire_length = frame.wire_length, .link_type = frame.link_type})) break;
        }
      }
      if (executor.submit(batch)) {
        in_flight.push_back(std::move(free.front()));
        free.pop_front();
        ++submitted;
      }
    }
    if (Batch* const done = executor.retire()) {
      ASSERT_EQ(done, &in_flight.front()->batch);
      done->reset(0);
      free.push_back(std::move(in_flight.front()));
      in_flight.pop_front();
    }
  }
  executor.end();
  EXPECT_EQ(counters.device.failures.get(), 0U);
  EXPECT_EQ(counters.device.segments.get(), kBatches * plan->segments.size());
  EXPECT_GT(counters.forwarded.packets.get(), 0U);
  EXPECT_GT(by_lanes.to_device, 0U);
  EXPECT_EQ(counters.device.bytes_to_device.get(), by_lanes.to_device);
  EXPECT_EQ(counters.device.bytes_to_host.get(), by_lanes.to_host);
}

}  // namespace
}  // namespace penstock::on_gpu
