// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Devices that fail while a chain uses them: the CPU continues where they fail, no packet is lost or sent twice, and
// the report shows it. A lost device also ends the process's CUDA context, so these tests run in processes of their
// own.

#include <fmt/format.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/faulty_function.h"
#include "gpu/swap_bed.h"
#include "gpu/way.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "nf/router/router_for_test.h"
#include "packet/testing/random_frames.h"
#include "property/conservation_check.h"
#include "property/reloaded_gateway.h"
#include "ring/lane.h"
#include "run/device_run.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::on_gpu {
namespace {

using penstock::testing::Frame;
using penstock::testing::RandomFrames;

/// Batches of warm-up: three workers with three lanes each, in two rounds.
constexpr unsigned kToWarmUp = 2 * 3 * 3 * ring::kBatchOfEachWay.size();
constexpr unsigned kFrom = kToWarmUp + 12;  // batches of all workers before the fault
constexpr std::size_t kBatchPackets = 33;
constexpr std::size_t kBatchesEach = 120;  // per worker

/// The input of a chain: the same on every call, and different for each worker.
const std::vector<std::vector<Frame>>& frames_by_worker() {
  static const auto frames = [] {
    std::vector<std::vector<Frame>> all;
    for (unsigned worker = 0; worker < 3; ++worker) {
      RandomFrames draw(worker + 1);
      all.emplace_back();
      for (std::size_t i = 0; i < kBatchesEach * kBatchPackets; ++i) {
        Frame frame = draw.frame();
        if (frame.bytes.size() > 2000) frame.bytes.resize(2000);
        all.back().push_back(std::move(frame));
      }
    }
    return all;
  }();
  return frames;
}

struct Layout {
  const char* name;
  bool in_two_segments;  // a CPU function follows the firewall
};
constexpr Layout kOneSegment{"one segment", false};
constexpr Layout kTwoSegments{"two segments", true};

/// Firewall, faulty function, router; three output ports.
struct Bed {
  Bed(const Layout& layout, unsigned workers, Fault fault) : next(workers) {
    for (const std::string& port : router::kTestPorts) sinks.push_back(&chain.add_sink(port));
    chain.add_source("in", [this](unsigned worker, Batch& batch) {
      const std::vector<Frame>& frames = frames_by_worker()[worker];
      for (std::size_t& i = next[worker]; i < frames.size(); ++i) {
        const Frame& frame = frames[i];
        if (!batch.append(frame.bytes, {i, frame.wire_length, 3, frame.link_type})) return port::RxStatus::more;
      }
      return port::RxStatus::end;
    });
    auto made_firewall = firewall::Firewall::build(
        firewall::rules_of("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.0/26 -p tcp -j DROP\n"
                           "-A FORWARD -p udp -m udp --dport 53 -j ACCEPT\n-A FORWARD -p icmp -j REJECT\nCOMMIT\n"),
        classify::Engine::bitvector);
    EXPECT_TRUE(made_firewall);
    chain.functions.push_back({"firewall", std::move(*made_firewall)});
    if (layout.in_two_segments) {
      auto& between = chain.add_function("between", run::testing::each([](PacketView packet) {
                                           return packet.has_ports() && packet.udp().source_port.value() % 8 == 1
                                                      ? Verdict::consume()
                                                      : packet.packet->verdict;
                                         }));
      constexpr FieldSet kVerdict{Field::verdict};
      between.own_traits.cpu = {kParsedFields | kVerdict | FieldSet{Field::l4_src_port}, kVerdict};
    }
    auto made_faulty = std::make_unique<FaultyFunction>(fault, kFrom);
    faulty = &made_faulty->plan;
    chain.functions.push_back({"faulty", std::move(made_faulty)});
    router::RouterConfig config = router::config_of(
        "default via 10.1.0.2 dev wan\n192.0.2.0/25 dev lan\n192.0.2.200/29 dev dmz\nblackhole 192.0.2.128/28\n"
        "fe80::/10 dev lan\n");
    config.engine = router::Fib4Engine::kTrie4;
    auto made_router = router::build(std::move(config));
    router = made_router.get();
    chain.functions.push_back({"router", std::move(made_router)});
    chain.settings.workers = workers;
    chain.settings.batch_packets = kBatchPackets;
    chain.settings.batch_bytes = 128 << 10;
    chain.settings.queue_bytes = 256 << 10;
  }

  void run() {
    const std::atomic<bool> never{false};
    const auto result = run::run(chain, {}, never);
    ASSERT_TRUE(result) << penstock::to_string(result.error());
    EXPECT_TRUE(result->errors.empty()) << penstock::to_string(result->errors);
    report = report::to_json(result->report);
    property::expect_conserved(report);
  }

  run::testing::FakeChain chain;
  std::vector<run::testing::FakePort*> sinks;
  FaultPlan* faulty = nullptr;
  router::Router* router = nullptr;
  std::vector<std::size_t> next;  // index of the next frame, by worker
  Json report;
};

/// Compares packet by packet, by worker and port.
void expect_the_same_packets(const Bed& expected, const Bed& out) {
  for (std::size_t port = 0; port < expected.sinks.size(); ++port) {
    for (std::size_t worker = 0; worker < expected.sinks[port]->sent.size(); ++worker) {
      SCOPED_TRACE(fmt::format("worker {}, port {}", worker, router::kTestPorts[port]));
      const auto& here = out.sinks[port]->sent.at(worker);
      const auto& there = expected.sinks[port]->sent[worker];
      for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
        ASSERT_EQ(here[i].descriptor.timestamp_ns, there[i].descriptor.timestamp_ns)
            << "packet " << i << " is another one of those that came: lost, sent twice or out of order";
        ASSERT_EQ(here[i].bytes, there[i].bytes)
            << "packet " << i << ", number " << there[i].descriptor.timestamp_ns << " of those that came";
      }
      ASSERT_EQ(here.size(), there.size()) << "packets";
    }
  }
}

void expect_what_the_cpu_does(const Layout& layout, unsigned workers, const Bed& out) {
  Bed cpu(layout, workers, Fault::none);
  ASSERT_NO_FATAL_FAILURE(cpu.run());
  for (const run::testing::FakePort* sink : cpu.sinks) EXPECT_GT(sink->sent[0].size(), 20U) << "a test of nothing";
  ASSERT_NO_FATAL_FAILURE(expect_the_same_packets(cpu, out));
  expect_the_same_counts(cpu.report, out.report);
}

struct FaultyRun {
  Fault fault;
  Way way;
  const Layout* layout;
  unsigned workers;
};
std::string name_of(const FaultyRun& run) {
  constexpr const char* kFaults[] = {"none", "now_and_then_refused", "refused", "trapped", "stray_write"};
  return fmt::format("{}_{}_{}_{}_workers", kFaults[static_cast<int>(run.fault)], test_name(run.way),
                     run.layout->in_two_segments ? "two_segments" : "one_segment", run.workers);
}
void PrintTo(const FaultyRun& run, std::ostream* out) { *out << name_of(run); }

/// Runs a chain on a device that fails permanently, and compares.
void expect_that_the_cpu_goes_on(const FaultyRun& faulty, Bed& bed) {
  ASSERT_NO_FATAL_FAILURE(put_on_gpu(bed.chain.settings, faulty.way));
  ASSERT_NO_FATAL_FAILURE(bed.run());
  const unsigned lanes = faulty.workers * run::lanes_of(bed.chain.settings, 0);
  EXPECT_GT(bed.faulty->hit, 0U) << "nothing failed";
  EXPECT_EQ(bed.report["gpu"]["lanes_lost"], lanes);
  EXPECT_EQ(bed.report["gpu"]["failures"], 3 * lanes) << "a lane is given up after three";
  EXPECT_GT(bed.report["pcie"]["to_device_bytes"], 0) << "batches before the fault went over the device";
  ASSERT_NO_FATAL_FAILURE(expect_what_the_cpu_does(*faulty.layout, faulty.workers, bed));
}

std::vector<FaultyRun> refusals() {
  std::vector<FaultyRun> runs;
  for (const Fault fault : {Fault::now_and_then_refused, Fault::refused}) {
    for (const Way& way : kWays) {
      for (const Layout* layout : {&kOneSegment, &kTwoSegments}) {
        for (const unsigned workers : {1U, 3U}) runs.push_back({fault, way, layout, workers});
      }
    }
  }
  return runs;
}

class RefusedBatches : public ::testing::TestWithParam<FaultyRun> {};

INSTANTIATE_TEST_SUITE_P(Runs, RefusedBatches, ::testing::ValuesIn(refusals()),
                         [](const auto& run) { return name_of(run.param); });

TEST_P(RefusedBatches, AreDoneByTheCpu) {
  const FaultyRun& faulty = GetParam();
  Bed bed(*faulty.layout, faulty.workers, faulty.fault);
  if (faulty.fault == Fault::refused) return expect_that_the_cpu_goes_on(faulty, bed);
  ASSERT_NO_FATAL_FAILURE(put_on_gpu(bed.chain.settings, faulty.way));
  ASSERT_NO_FATAL_FAILURE(bed.run());
  EXPECT_GT(bed.faulty->hit, 0U) << "nothing failed";
  EXPECT_EQ(bed.report["gpu"]["failures"], bed.faulty->hit.load());
  ASSERT_NO_FATAL_FAILURE(expect_what_the_cpu_does(*faulty.layout, faulty.workers, bed));
}

/// Runs `body` in a process of its own, to the end, and prints its failures. Test suites that call it must have names
/// that end in DeathTest, so that they run before tests that use the device in this process.
template <typename Body>
void in_own_process(Body body) {
  if (std::getenv("COMPUTE_SANITIZER") != nullptr) GTEST_SKIP() << "the fault would be a finding";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr unsigned kPatienceSeconds = 60;
  const auto run = [&] {
    ::alarm(kPatienceSeconds);
    ::testing::TestPartResultArray results;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
      try {
        body();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "an exception: " << error.what();
      }
    }
    int failed = 0;
    for (int i = 0; i < results.size(); ++i) {
      const ::testing::TestPartResult& result = results.GetTestPartResult(i);
      if (!result.failed()) continue;
      ++failed;
      std::fprintf(stderr, "%s:%d: %s\n", result.file_name(), result.line_number(), result.message());
    }
    std::exit(failed == 0 ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

class LostDeviceDeathTest : public ::testing::TestWithParam<FaultyRun> {};

constexpr FaultyRun kLosses[] = {
    {Fault::trapped, kWays[0], &kOneSegment, 1},      {Fault::trapped, kWays[2], &kTwoSegments, 3},
    {Fault::trapped, kWays[5], &kOneSegment, 3},      {Fault::trapped, kWays[8], &kOneSegment, 3},
    {Fault::stray_write, kWays[2], &kOneSegment, 3},  {Fault::stray_write, kWays[3], &kTwoSegments, 1},
    {Fault::stray_write, kWays[4], &kTwoSegments, 3},
};
INSTANTIATE_TEST_SUITE_P(Runs, LostDeviceDeathTest, ::testing::ValuesIn(kLosses),
                         [](const auto& run) { return name_of(run.param); });

TEST_P(LostDeviceDeathTest, LeavesItsBatchesToTheCpuAndTheProcessSound) {
  in_own_process([] {
    const FaultyRun& faulty = GetParam();
    Bed bed(*faulty.layout, faulty.workers, faulty.fault);
    ASSERT_NO_FATAL_FAILURE(expect_that_the_cpu_goes_on(faulty, bed));

    // Tables can still be changed, although the lost device has a copy.
    router::RouterChange change;
    change.routes = router::config_of("default via 10.1.0.2 dev dmz\n").routes;
    EXPECT_TRUE(bed.router->update(change));
    router::TestPacket packet(penstock::testing::packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(1, 2));
    EXPECT_EQ(router::send_one(*bed.router, packet), "dmz");

    // Another run on the device is refused, and leaves nothing behind.
    Bed again(*faulty.layout, faulty.workers, Fault::none);
    again.chain.settings = bed.chain.settings;
    const std::atomic<bool> never{false};
    EXPECT_THROW(static_cast<void>(run::run(again.chain, {}, never)), gpu::CudaError);
  });
}

TEST(LostDeviceWithChangingTablesDeathTest, HoldsNoUpdateUpAndMixesNoTables) {
  in_own_process([] {
    SwapBed bed(router::Fib4Engine::kTrie4, Fault::trapped, 100);
    ASSERT_NO_FATAL_FAILURE(put_on_gpu(bed.chain.settings, kWays[2]));
    ASSERT_NO_FATAL_FAILURE(bed.run(120));
    bed.expect_sound();
    EXPECT_EQ(bed.report["gpu"]["lanes_lost"], SwapBed::kWorkers * run::lanes_of(bed.chain.settings, 0));
  });
}

/// The device is lost when it begins with a version, while lanes still have the one before, and the next ones are made.
TEST(LostDeviceWhileReloadingDeathTest, IsLeftByTheNextVersionsAndMixesNone) {
  constexpr unsigned kReloads = 24;
  for (const unsigned last_on_device : {1U, 5U}) {
    SCOPED_TRACE(last_on_device);
    in_own_process([last_on_device] {
      std::vector<std::string> settings = settings_of(kWays[2]);
      settings.emplace_back("run.streams=3");
      property::ReloadedGateway gateway(overrides_of(settings));
      unsigned version = 0;
      gateway.before_all = [&](std::vector<run::NamedFunction>& functions) {
        const Fault fault = version++ == last_on_device ? Fault::trapped : Fault::none;
        functions.insert(functions.begin(), {"faulty", std::make_unique<FaultyFunction>(fault, 0)});
      };
      ASSERT_NO_FATAL_FAILURE(gateway.run(kReloads, last_on_device));
      gateway.expect_sound();
      EXPECT_EQ(gateway.report["gpu"]["lanes_lost"], 2 * 3);
    });
  }
}

}  // namespace
}  // namespace penstock::on_gpu
