// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Inbound ipsec in a chain, with another function after it: fragments of ESP on the CPU, and on a simulated device,
// which leaves them to the CPU.
//
//   ESP, ESP fragments, clear ─▶ ipsec (in) ─▶ function that looks at all packets ─▶ port

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "nf/ipsec/device_steps_for_test.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "packet/testing/fragments.h"
#include "ring/testing/simulated_lane.h"
#include "run/cpu_executor.h"
#include "run/device_executor.h"
#include "run/testing/fakes.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::fragments_of;

/// The chain and its output.
class Gateway {
 public:
  explicit Gateway(const std::string& states) {
    Settings settings;
    settings.inbound = true;
    sink_ = &chain_.add_sink("wan");
    auto function = make_ipsec(states, everything("fwd", tunnel_template()), settings);
    ipsec_ = function.get();
    chain_.functions.push_back({"ipsec", std::move(function)});
    chain_.add_function("look", [this](std::span<PacketView> packets) {
      for (const PacketView& packet : packets) seen.emplace_back(packet.frame, packet.frame + packet.length());
    });
    chain_.settings.batch_packets = kPackets;
    chain_.settings.batch_bytes = kBytes;
    chain_.open();
    counters = std::make_unique<run::WorkerCounters>(chain_);
  }

  void use_cpu() {
    executor_ = std::make_unique<run::CpuExecutor>(chain_, 0, *counters, nullptr);
    executor_->begin();
  }
  void use_device(ring::testing::Behaviour& behaviour) {
    chain_.settings.processor = function::Processor::gpu;
    const auto plan = chain_.device_plan();
    ASSERT_TRUE(plan) << to_string(plan.error());
    auto steps = std::make_shared<DeviceSteps>(*ipsec_);
    const ring::LaneShape shape{
        kBytes,        kPackets, plan::room_on_device(chain_.traits(), *plan), plan->hash_flows, ring::Crossing::copy,
        plan->segments};
    std::vector<std::unique_ptr<ring::Lane>> lanes;
    for (int lane = 0; lane < 2; ++lane) {
      std::vector<std::vector<ring::testing::SimulatedLane::Work>> works(1);
      works[0].push_back([steps](PacketView packet, std::byte* finding, const std::byte*) {
        (*steps)(packet, finding);
        return packet.packet->verdict;
      });
      lanes.push_back(std::make_unique<ring::testing::SimulatedLane>(shape, std::move(works), behaviour));
    }
    executor_ = std::make_unique<run::DeviceExecutor>(chain_, *plan, std::move(lanes), 0, *counters, nullptr);
    executor_->begin();
  }

  /// Runs the frames in batches of this many packets.
  void run(const std::vector<Bytes>& frames, std::size_t in_batch) {
    for (std::size_t first = 0; first < frames.size(); first += in_batch) {
      std::vector<std::uint8_t> memory(kBytes);
      std::vector<PacketDescriptor> descriptors(kPackets);
      Batch batch(memory, descriptors, {});
      for (std::size_t i = first; i < std::min(frames.size(), first + in_batch); ++i) {
        ASSERT_TRUE(run::testing::append(batch, frames[i]));
      }
      ASSERT_TRUE(executor_->submit(batch));
      while (executor_->retire() == nullptr) {
      }
    }
    executor_->end();
  }

  [[nodiscard]] std::vector<Bytes> sent() const {
    std::vector<Bytes> frames;
    for (const auto& sent : sink_->sent[0]) frames.push_back(sent.bytes);
    return frames;
  }
  [[nodiscard]] const run::FunctionCounters& ipsec_counters() const { return counters->functions[0]; }

  std::vector<Bytes> seen;  // by the function after ipsec
  std::unique_ptr<run::WorkerCounters> counters;

 private:
  static constexpr std::size_t kPackets = 256, kBytes = 1 << 20;
  run::testing::FakeChain chain_;
  run::testing::FakePort* sink_;
  Ipsec* ipsec_;
  std::unique_ptr<run::Executor> executor_;
};

/// Frames, and the packets expected from them, in order.
struct Traffic {
  std::vector<Bytes> frames;
  std::vector<Bytes> inner;
};

///   a0  W  b0  a1  b1  …      datagrams in two or three fragments, and whole packets between them
Traffic traffic(const StateText& state) {
  Traffic traffic;
  std::mt19937_64 random(1);
  End out = outwards(state(), everything("out", tunnel_template()));
  std::vector<Bytes> late;  // last fragments of datagrams
  for (std::uint32_t i = 0; i < 300; ++i) {
    const Bytes inner = plain(i % 40 == 0 ? 30'000 : 100 + random() % 1500, static_cast<std::uint16_t>(i));
    const Bytes sealed = out(inner).bytes;
    if (i % 3 == 0) {
      traffic.frames.push_back(sealed);
      traffic.inner.push_back(inner);
      continue;
    }
    std::vector<Bytes> fragments =
        fragments_of(sealed, i % 2 == 0 ? std::vector<std::size_t>{64} : std::vector<std::size_t>{48, 96}, i);
    std::shuffle(fragments.begin(), fragments.end(), random);
    for (std::size_t f = 0; f + 1 < fragments.size(); ++f) traffic.frames.push_back(fragments[f]);
    if (!late.empty()) traffic.frames.push_back(late.back());
    if (!late.empty()) traffic.inner.push_back(late.front());
    late = {inner, fragments.back()};
  }
  return traffic;
}

void expect_all(const Gateway& gateway, const Traffic& traffic) {
  EXPECT_EQ(gateway.sent(), traffic.inner);
  EXPECT_EQ(gateway.seen, traffic.inner) << "the next function sees what was opened";
  const run::FunctionCounters& ipsec = gateway.ipsec_counters();
  EXPECT_EQ(ipsec.in.packets.get(), traffic.frames.size());
  EXPECT_EQ(ipsec.forwarded.packets.get(), traffic.inner.size());
  EXPECT_EQ(ipsec.in.packets.get(), ipsec.forwarded.packets.get() + ipsec.consumed.packets.get());
}

TEST(IpsecExecutor, TakesReassembledPacketsThroughTheRestOfTheChain) {
  const StateText state;
  const Traffic all = traffic(state);
  for (const std::size_t in_batch : {1U, 7U, 200U}) {
    Gateway gateway(state());
    gateway.use_cpu();
    ASSERT_NO_FATAL_FAILURE(gateway.run(all.frames, in_batch));
    expect_all(gateway, all);
  }
}

TEST(IpsecExecutor, LeavesFragmentsOnADeviceToTheCpu) {
  const StateText state;
  const Traffic all = traffic(state);
  for (const bool fails : {false, true}) {
    ring::testing::Behaviour behaviour;
    unsigned batches = 0;
    if (fails) behaviour.fails = [&] { return ++batches % 3 == 0; };
    Gateway gateway(state());
    ASSERT_NO_FATAL_FAILURE(gateway.use_device(behaviour));
    ASSERT_NO_FATAL_FAILURE(gateway.run(all.frames, 60));
    expect_all(gateway, all);
    EXPECT_GT(gateway.counters->device.punted.get(), 100U);
  }
}

}  // namespace
}  // namespace penstock::ipsec
