// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole chains of the catalog's functions, some of which run on the CPU and the others on a simulated device, whose
// stages are the GPU's cores. Whatever the choice, the same packets leave as from the CPU alone.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "golden/golden_case.h"
#include "property/device_cores.h"
#include "property/nat_gateway.h"
#include "ring/testing/simulated_lane.h"
#include "run/cpu_executor.h"
#include "run/device_executor.h"
#include "run/testing/fakes.h"

namespace penstock::property {
namespace {

using function::Processor;
using run::testing::Bytes;

struct Arrived {
  PortIndex port;
  Bytes bytes;
};

/// What the ports of the gateway's captures receive, in turn.
std::vector<Arrived> arrivals() {
  const std::filesystem::path folder = golden::root() / "examples/gateway";
  std::vector<std::vector<Arrived>> by_port;
  for (const char* name : {"lan.pcap", "wan.pcap", "dmz.pcap"}) {
    const auto port = static_cast<PortIndex>(by_port.size());
    by_port.emplace_back();
    for (const golden::Record& record : golden::read_capture_file(folder / name).records)
      by_port.back().push_back({port, Bytes(record.bytes.begin(), record.bytes.end())});
  }
  std::vector<Arrived> all;
  for (std::size_t i = 0, before = ~std::size_t{0}; before != all.size(); ++i) {
    before = all.size();
    for (const auto& of_port : by_port) {
      for (std::size_t n = i * 5; n < std::min(of_port.size(), i * 5 + 5); ++n) all.push_back(of_port[n]);
    }
  }
  return all;
}

struct Outcome {
  std::vector<std::vector<Bytes>> sent;                // by port
  std::vector<std::pair<std::string, unsigned>> ends;  // drops by function and reason
  std::uint64_t segments = 0;
  std::uint64_t punted = 0;

  friend bool operator==(const Outcome& a, const Outcome& b) { return a.sent == b.sent && a.ends == b.ends; }
};

/// A chain between fake ports.
class Bed {
 public:
  Bed(const std::filesystem::path& file, const std::vector<std::string>& settings) {
    config::LoadOptions options;
    options.functions = golden::repeatable_kinds();
    options.only_plan = true;
    options.overrides = {{"outputs", "{}", ""}, {"run.processor", "gpu", ""}};
    for (const std::string& setting : settings) options.overrides.push_back(*config::parse_override(setting));
    auto loaded = config::load_chain(file, options);
    EXPECT_TRUE(loaded) << penstock::to_string(loaded.error());
    for (const run::NamedPort& port : loaded->chain.ports) sinks_.push_back(&chain_.add_sink(port.name));
    chain_.functions = std::move(loaded->chain.functions);
    chain_.forks = std::move(loaded->chain.forks);
    chain_.wiring = loaded->chain.wiring;
    chain_.settings.processor = Processor::gpu;
    chain_.settings.batch_packets = kPackets;
    chain_.settings.batch_bytes = kBytes;
    for (const run::NamedFunction& named : chain_.functions) EXPECT_TRUE(named.function->begin_run());
    chain_.open();
    counters_ = std::make_unique<run::WorkerCounters>(chain_);
  }

  void use_cpu() {
    room_ = plan::growth_of(chain_.traits());
    executor_ = std::make_unique<run::CpuExecutor>(chain_, 0, *counters_, nullptr);
  }

  void use_device() {
    const auto plan = chain_.device_plan();
    ASSERT_TRUE(plan) << penstock::to_string(plan.error());
    const std::vector<function::NfTraits> traits = chain_.traits();
    room_ = plan::growth_of(std::span(traits).first(plan::functions_before_device(*plan)));
    ring::LaneShape shape{
        kBytes, kPackets, plan::room_on_device(traits, *plan), plan->hash_flows, ring::Crossing::copy, plan->segments};
    if (plan::sends_packets_again(*plan))
      shape.sent_bytes = run::FrameScratch::bytes_for(kBytes, kPackets, plan::growth_of(traits));
    std::vector<DeviceCore> cores;
    for (const run::NamedFunction& named : chain_.functions) cores.push_back(device_core_of(*named.function));
    std::vector<std::unique_ptr<ring::Lane>> lanes;
    for (int lane = 0; lane < 3 && !plan->segments.empty(); ++lane) {
      std::vector<std::vector<ring::testing::SimulatedLane::Work>> works;
      for (const ring::SegmentShape& segment : plan->segments) {
        works.emplace_back();
        for (const ring::SegmentShape::Stage& stage : segment.stages) {
          works.back().push_back(
              [core = cores[stage.function]](PacketView packet, std::byte* finding, const std::byte* state) {
                core(packet, finding, state);
                return packet.packet->verdict;
              });
        }
      }
      lanes.push_back(std::make_unique<ring::testing::SimulatedLane>(shape, std::move(works), behaviour_));
    }
    executor_ = std::make_unique<run::DeviceExecutor>(chain_, *plan, run::LaneSet{nullptr, {}, {}, std::move(lanes)}, 0,
                                                      *counters_, nullptr);
  }

  /// Batches are in flight together, one on each lane.
  [[nodiscard]] Outcome run(const std::vector<Arrived>& packets) {
    executor_->begin();
    std::deque<OwnBatch> in_flight;
    for (std::size_t first = 0; first < packets.size(); first += kPackets) {
      Batch& batch = in_flight.emplace_back(room_).batch;
      batch.reset(static_cast<std::uint32_t>(first));
      for (std::size_t i = first; i < std::min(packets.size(), first + kPackets); ++i)
        EXPECT_TRUE(run::testing::append(batch, packets[i].bytes, packets[i].port));
      while (!executor_->submit(batch)) {
        if (executor_->retire() != nullptr) in_flight.pop_front();
      }
    }
    while (!in_flight.empty()) {
      if (executor_->retire() != nullptr) in_flight.pop_front();
    }
    executor_->end();
    EXPECT_EQ(behaviour_.scattered, 0U);
    Outcome outcome;
    for (const run::testing::FakePort* sink : sinks_) {
      outcome.sent.emplace_back();
      for (const auto& sent : sink->sent[0]) outcome.sent.back().push_back(sent.bytes);
    }
    for (std::size_t f = 0; f < chain_.functions.size(); ++f) {
      const auto reasons = chain_.functions[f].function->traits().drop_reasons;
      for (std::size_t r = 0; r < reasons.size(); ++r) {
        const auto dropped = static_cast<unsigned>(counters_->functions[f].dropped[r].packets.get());
        outcome.ends.emplace_back(fmt::format("{}.{}", chain_.functions[f].name, reasons[r]), dropped);
      }
    }
    outcome.segments = counters_->device.segments.get();
    outcome.punted = counters_->device.punted.get();
    return outcome;
  }

  [[nodiscard]] ring::testing::Behaviour& behaviour() { return behaviour_; }

 private:
  static constexpr std::size_t kPackets = 64, kBytes = 1 << 18;
  struct OwnBatch {
    explicit OwnBatch(FrameRoom room) : batch(memory, descriptors, room) {}

    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kBytes);
    std::vector<PacketDescriptor> descriptors = std::vector<PacketDescriptor>(kPackets);
    Batch batch;
  };

  run::testing::FakeChain chain_;
  std::vector<run::testing::FakePort*> sinks_;
  ring::testing::Behaviour behaviour_;
  FrameRoom room_;
  std::unique_ptr<run::WorkerCounters> counters_;
  std::unique_ptr<run::Executor> executor_;
};

/// All choices of functions for the CPU, as settings.
std::vector<std::vector<std::string>> choices(const std::vector<std::string>& functions) {
  std::vector<std::vector<std::string>> all;
  for (std::size_t mask = 0; mask < std::size_t{1} << functions.size(); ++mask) {
    all.emplace_back();
    for (std::size_t f = 0; f < functions.size(); ++f) {
      if ((mask >> f & 1) != 0) all.back().push_back("chain." + functions[f] + ".processor=cpu");
    }
  }
  return all;
}

void expect_as_on_the_cpu(const std::filesystem::path& file, const std::vector<Arrived>& packets,
                          const std::vector<std::string>& functions) {
  ASSERT_GT(packets.size(), 100U);
  Bed cpu(file, {});
  cpu.use_cpu();
  const Outcome expected = cpu.run(packets);
  std::size_t sent = 0;
  for (const auto& of_port : expected.sent) sent += of_port.size();
  ASSERT_GT(sent, 50U);
  for (const std::vector<std::string>& settings : choices(functions)) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(settings, " ")));
    Bed device(file, settings);
    ASSERT_NO_FATAL_FAILURE(device.use_device());
    const Outcome outcome = device.run(packets);
    EXPECT_TRUE(outcome == expected);
    EXPECT_EQ(outcome.segments == 0, settings.size() == functions.size());
    EXPECT_LT(outcome.punted, packets.size() / 2) << "most of the work is done where it should be";
  }
}

/// A chain of tests/golden.
void expect_as_on_the_cpu(const std::string& name, const std::vector<std::string>& functions) {
  expect_as_on_the_cpu(golden::root() / "tests/golden" / name / "chain.yaml", arrivals(), functions);
}

//   router ─▶ firewall ─▶ ipsec (out) ─▶ ipsec (in)
TEST(Processors, OfTheGatewayMakeNoDifference) {
  expect_as_on_the_cpu("gateway_tunnel", {"router", "firewall", "ipsec", "ipsec#2"});
}

//   firewall ─▶ nids ─▶ router ─▶ ipsec (out) ─▶ ipsec (in)
TEST(Processors, OfTheInspectedGatewayMakeNoDifference) {
  expect_as_on_the_cpu("inspected_gateway_drop", {"firewall", "nids", "router", "ipsec", "ipsec#2"});
}

//   router ─▶ ┬ firewall ─▶ nids ─▶ ipsec (out) ─┬ ─▶ ipsec (in)
//             ├ firewall ────────────────────────┤
//             └──────────────────────────────────┘
TEST(Processors, OfBranchesMakeNoDifference) {
  expect_as_on_the_cpu("branches", {"router", "fork.0.chain.firewall", "fork.0.chain.nids", "fork.0.chain.ipsec",
                                    "fork.1.chain.firewall", "ipsec"});
}

/// The files of a gateway that translates, and what it gets.
struct Translating {
  Translating() {
    for (const auto& [name, text] : NatGateway::files()) std::ofstream(folder / name) << text;
    std::ofstream(file) << NatGateway::chain("{generator: {}}");
    for (const auto& packet : NatGateway::packets(400)) packets.push_back({0, packet.bytes});
  }

  const port::testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "chain.yaml";
  std::vector<Arrived> packets;
};

//   firewall (prerouting) ─▶ router ─▶ firewall (forward) ─▶ firewall (postrouting)
TEST(Processors, OfAGatewayThatTranslatesMakeNoDifference) {
  const Translating gateway;
  expect_as_on_the_cpu(gateway.file, gateway.packets, {"firewall", "router", "firewall#2", "firewall#3"});
}

TEST(Processors, OfAGatewayThatTranslatesShareOneSegmentAndMayFail) {
  const Translating gateway;
  Bed cpu(gateway.file, {});
  cpu.use_cpu();
  const Outcome expected = cpu.run(gateway.packets);
  const auto translated = std::ranges::count_if(expected.sent[2], [](const Bytes& frame) {
    return frame[26] == 203 && frame[27] == 0 && frame[28] == 113 && frame[29] == 5;
  });
  EXPECT_GT(translated, 400);
  for (const unsigned nth : {0U, 4U}) {
    Bed device(gateway.file, {});
    device.use_device();
    unsigned started = 0;
    if (nth != 0) device.behaviour().fails = [&started, nth] { return ++started % nth == 0; };
    const Outcome outcome = device.run(gateway.packets);
    EXPECT_TRUE(outcome == expected);
    EXPECT_EQ(outcome.segments, (gateway.packets.size() + 63) / 64);
    EXPECT_EQ(device.behaviour().abandoned > 0, nth != 0);
  }
}

}  // namespace
}  // namespace penstock::property
