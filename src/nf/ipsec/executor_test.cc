// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// ipsec in a chain, with another function after it, on the CPU and on a simulated device. Inbound, fragments of ESP,
// which the device leaves to the CPU. Outbound, a device of another process, which carries out the worker's decisions.
//
//   packets, ESP, ESP fragments ─▶ ipsec ─▶ function that looks at all packets ─▶ port

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

#include "nf/ipsec/device_steps_for_test.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/remote_end_for_test.h"
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
  Gateway(const std::string& states, const std::string& policies, const Settings& settings) {
    sink_ = &chain_.add_sink("wan");
    auto function = make_ipsec(states, policies, settings);
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

  static Gateway inbound(const std::string& states) {
    Settings settings;
    settings.inbound = true;
    return {states, everything("fwd", tunnel_template()), settings};
  }

  void use_cpu() {
    room_ = plan::growth_of(chain_.traits());
    executor_ = std::make_unique<run::CpuExecutor>(chain_, 0, *counters, nullptr);
    executor_->begin();
  }
  void use_device(ring::testing::Behaviour& behaviour) {
    chain_.settings.processor = function::Processor::gpu;
    const auto plan = chain_.device_plan();
    ASSERT_TRUE(plan) << to_string(plan.error());
    const ring::testing::SimulatedLane::Work work =
        ipsec_->tables().settings().decides_on_host() ? of_recipe() : of_own_device();
    const ring::LaneShape shape{
        kBytes,        kPackets, plan::room_on_device(chain_.traits(), *plan), plan->hash_flows, ring::Crossing::copy,
        plan->segments};
    std::vector<std::unique_ptr<ring::Lane>> lanes;
    for (int lane = 0; lane < 3; ++lane) {
      std::vector<std::vector<ring::testing::SimulatedLane::Work>> works(1);
      works[0].push_back(work);
      lanes.push_back(std::make_unique<ring::testing::SimulatedLane>(shape, std::move(works), behaviour));
    }
    executor_ = std::make_unique<run::DeviceExecutor>(chain_, *plan, run::LaneSet{nullptr, {}, {}, std::move(lanes)}, 0,
                                                      *counters, nullptr);
    executor_->begin();
  }

  /// Runs the frames in batches of this many packets, as many at a time as the executor takes.
  void run(const std::vector<Bytes>& frames, std::size_t in_batch) {
    struct Memory {
      std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBytes);
      std::vector<PacketDescriptor> descriptors = std::vector<PacketDescriptor>(kPackets);
    };
    std::deque<Memory> memory;
    std::deque<Batch> batches;
    std::size_t retired = 0;
    for (std::size_t first = 0; first < frames.size(); first += in_batch) {
      Memory& its = memory.emplace_back();
      Batch& batch = batches.emplace_back(its.bytes, its.descriptors, room_);
      for (std::size_t i = first; i < std::min(frames.size(), first + in_batch); ++i) {
        ASSERT_TRUE(run::testing::append(batch, frames[i]));
      }
      while (!executor_->submit(batch)) retired += executor_->retire() != nullptr ? 1 : 0;
    }
    while (retired < batches.size()) retired += executor_->retire() != nullptr ? 1 : 0;
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
  using Work = ring::testing::SimulatedLane::Work;

  Work of_own_device() {
    return [steps = std::make_shared<DeviceSteps>(*ipsec_)](PacketView packet, std::byte* finding, const std::byte*) {
      (*steps)(packet, finding);
      return packet.packet->verdict;
    };
  }
  /// As in the other process, which has nothing but the recipe.
  Work of_recipe() {
    const auto recipe = std::make_shared<const function::StageRecipe>(*ipsec_->stage_recipe(function::Processor::gpu));
    return [recipe, tables = *read_outbound_recipe(*recipe)](PacketView packet, std::byte* finding,
                                                             const std::byte* state) {
      Decision decision;
      std::memcpy(&decision, state, sizeof decision);
      const OutboundFinding found = carry_out_on_host(decision, packet, tables);
      std::memcpy(finding, &found, sizeof found);
      return packet.packet->verdict;
    };
  }

  run::testing::FakeChain chain_;
  run::testing::FakePort* sink_;
  Ipsec* ipsec_;
  FrameRoom room_;  // around frames in batches
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
    Gateway gateway = Gateway::inbound(state());
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
    Gateway gateway = Gateway::inbound(state());
    ASSERT_NO_FATAL_FAILURE(gateway.use_device(behaviour));
    ASSERT_NO_FATAL_FAILURE(gateway.run(all.frames, 60));
    expect_all(gateway, all);
    EXPECT_GT(gateway.counters->device.punted.get(), 100U);
  }
}

std::vector<Bytes> outbound_traffic() {
  std::mt19937_64 random(1);
  std::vector<Bytes> frames;
  for (std::uint32_t i = 0; i < 2000; ++i)
    frames.push_back(plain(random() % 1460, static_cast<std::uint16_t>(2000 + random() % (kOutboundSas + 1))));
  return frames;
}

TEST(IpsecExecutor, CarriesOutDecisionsOnADeviceThatFailsRefusesAndIsLate) {
  const std::vector<Bytes> frames = outbound_traffic();
  Settings cuts, answers;
  cuts.mtu = answers.mtu = 1400;
  answers.too_big = TooBig::icmp;
  for (const Settings& settings : {Settings{}, cuts, answers}) {
    Gateway cpu(kOutboundStates, outbound_policies(), settings);
    cpu.use_cpu();
    ASSERT_NO_FATAL_FAILURE(cpu.run(frames, 60));
    for (const unsigned failing : {0U, 3U, 1U}) {
      SCOPED_TRACE("MTU " + std::to_string(settings.mtu) + ", fails " + std::to_string(failing));
      ring::testing::Behaviour behaviour;
      unsigned starts = 0;
      behaviour.polls_until_done = [&] { return ++starts * 5 % 7; };
      behaviour.fails = [&] { return failing != 0 && starts % failing == 0; };
      behaviour.refuses = [&] { return failing != 0 && starts % 5 == 4 && ++starts != 0; };
      Gateway device(kOutboundStates, outbound_policies(), remote_device(settings));
      ASSERT_NO_FATAL_FAILURE(device.use_device(behaviour));
      ASSERT_NO_FATAL_FAILURE(device.run(frames, 60));
      EXPECT_EQ(device.seen, cpu.seen) << "numbers included";
      EXPECT_EQ(device.sent(), cpu.sent());
      EXPECT_EQ(device.ipsec_counters().forwarded.packets.get(), cpu.ipsec_counters().forwarded.packets.get());
      EXPECT_GT(behaviour.most_in_flight, 1U);
      EXPECT_EQ(device.counters->device.failures.get() > 0, failing != 0);
      EXPECT_EQ(device.counters->device.punted.get() > 0, settings.too_big == TooBig::icmp && failing != 1);
    }
  }
}

}  // namespace
}  // namespace penstock::ipsec
