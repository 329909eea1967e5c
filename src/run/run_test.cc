// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/run.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <thread>

#include "base/capabilities.h"
#include "base/cpu_topology.h"
#include "base/testing/file_content.h"
#include "base/thread_placement.h"
#include "run/make_report.h"
#include "run/testing/fakes.h"

namespace {
/// How many more threads may be created.
std::atomic<int> threads_left{std::numeric_limits<int>::max()};
}  // namespace

/// Interposes the system's function. This is the only limit of threads that works for any user, root included.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
  static const auto system = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return threads_left.fetch_sub(1) > 0 ? system(thread, attributes, run, argument) : EAGAIN;
}

namespace penstock::run {
namespace {

using namespace std::chrono_literals;
using port::RxStatus;
using testing::FakeChain;
using testing::FakePort;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};

/// Each worker gets `count` packets of its own, one per poll.
FakePort::Poll counted(std::vector<std::uint64_t>& given, std::uint64_t count) {
  return [&given, count](unsigned worker, Batch& batch) {
    if (given[worker] == count) return RxStatus::end;
    if (!testing::append(batch, testing::numbered(given[worker]))) return RxStatus::more;
    return ++given[worker] == count ? RxStatus::end : RxStatus::idle;
  };
}

FakePort::Poll endless() {
  return [](unsigned, Batch& batch) {
    for (int i = 0; i < 10; ++i) {
      if (!testing::append(batch, testing::numbered(1))) return RxStatus::more;
    }
    return RxStatus::idle;
  };
}

TEST(Run, AddsUpWhatItsWorkersCounted) {
  FakeChain chain;
  std::vector<std::uint64_t> given(3);
  chain.add_source("in", counted(given, 1000));
  FakePort& out = chain.add_sink("out");
  chain.add_function("half", testing::each([](PacketView packet) {
                       return testing::number_of(packet) % 2 == 0 ? Verdict::forward() : Verdict::consume();
                     }));
  chain.settings.workers = 3;
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  const auto report = report::to_json(result->report);
  EXPECT_EQ(report["packets"]["in"], 3000);
  EXPECT_EQ(report["packets"]["forwarded"], 1500);
  EXPECT_EQ(report["packets"]["consumed"], 1500);
  EXPECT_EQ(report["packets"]["dropped"], 0);
  EXPECT_EQ(report["bytes"]["in"], 3 * testing::bytes_of(testing::numbered_frames(1000)));
  EXPECT_EQ(report["bytes"]["forwarded"], out.sent_bytes());
  EXPECT_EQ(report["functions"][0]["in"]["packets"], 3000);
  EXPECT_EQ(report["ports"]["in"]["in"]["packets"], 3000);
  EXPECT_EQ(report["ports"]["out"]["out"]["packets"], 1500);
  EXPECT_EQ(report["workers"], 3);
  for (const auto& of_worker : out.sent) EXPECT_EQ(of_worker.size(), 500U);
  EXPECT_TRUE(out.closed);
}

TEST(Run, RunsWorkersOnTheirCoresAndOtherThreadsElsewhere) {
  const CpuList before = cpus_of_this_thread();
  if (before.size() < 2) GTEST_SKIP() << "only one core";
  const CpuList of_worker{before.back()};
  const CpuList others = difference(before, of_worker);
  FakeChain chain;
  CpuList polled_on;
  CpuList opened_on;
  CpuList waited_on;
  std::atomic<bool> ticked{false};
  FakePort& in = chain.add_source("in", [&](unsigned, Batch&) {
    polled_on = cpus_of_this_thread();
    return ticked ? RxStatus::end : RxStatus::idle;
  });
  in.while_opening = [&] { opened_on = cpus_of_this_thread(); };
  chain.settings.placement = place_workers(read_cpu_topology(), 1, of_worker, {});
  RunOptions options;
  options.on_tick = [&](auto&) {
    waited_on = cpus_of_this_thread();
    ticked = true;
  };
  const auto result = run(chain, options, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(polled_on, of_worker);
  EXPECT_EQ(opened_on, others) << "and so do the threads that ports start";
  EXPECT_EQ(waited_on, others);
  EXPECT_EQ(cpus_of_this_thread(), before);
  const auto placement = report::to_json(result->report)["placement"];
  ASSERT_EQ(placement.size(), 1U);
  EXPECT_EQ(placement[0]["cores"], format_cpu_list(of_worker));
  EXPECT_EQ(placement[0]["bound"], true);
  EXPECT_THAT(report::to_tables(result->report), HasSubstr("cores of workers: " + format_cpu_list(of_worker)));
}

/// The calling thread's; -1: unknown.
int memory_policy() {
  int mode = -1;
  return ::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL) == 0 ? mode : -1;
}

TEST(Run, MakesAWorkerOnItsCoresAndTheNodeForItsMemory) {
  const CpuList before = cpus_of_this_thread();
  const CpuTopology topology = read_cpu_topology();
  if (memory_policy() != MPOL_DEFAULT || topology.allowed_memory.empty()) GTEST_SKIP() << "no NUMA policies here";
  const WorkerPlace with_gpu{.cores = {before.back()}, .gpu = 0, .memory_node = topology.allowed_memory.front()};
  WorkerPlace without_gpu = with_gpu;
  without_gpu.gpu.reset();
  for (const WorkerPlace& place : {with_gpu, without_gpu}) {
    FakeChain chain;
    std::vector<std::uint64_t> given(1);
    FakePort& in = chain.add_source("in", counted(given, 10));
    testing::FakeFunction& function = chain.add_function("fake", {});
    CpuList made_on;
    int policy_making = -1;
    int policy_opening = -1;
    int policy_running = -1;
    in.while_opening = [&] { policy_opening = memory_policy(); };
    function.at_make = [&] {
      made_on = cpus_of_this_thread();
      policy_making = memory_policy();
    };
    function.process = [&](std::span<PacketView> packets) {
      policy_running = memory_policy();
      for (const PacketView packet : packets) packet.packet->verdict = Verdict::consume();
    };
    chain.settings.placement.workers = {place};
    ASSERT_TRUE(run(chain, {}, kNeverStop));
    EXPECT_EQ(made_on, place.cores);
    EXPECT_EQ(policy_making, place.gpu ? MPOL_PREFERRED : MPOL_DEFAULT) << "on its core, it is the node's anyway";
    EXPECT_EQ(policy_opening, MPOL_PREFERRED);
    EXPECT_EQ(policy_running, MPOL_DEFAULT);
    EXPECT_EQ(memory_policy(), MPOL_DEFAULT);
    EXPECT_EQ(cpus_of_this_thread(), before);
  }
}

TEST(Run, IsRefusedIfAWorkerCannotBeBound) {
  const CpuList before = cpus_of_this_thread();
  FakeChain chain;
  FakePort& in = chain.add_source("in", [](unsigned, Batch&) {
    ADD_FAILURE() << "polled";
    return RxStatus::end;
  });
  chain.settings.placement.workers = {{.cores = {kMostCpus - 1}}};  // no machine has that many
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_FALSE(result);
  EXPECT_THAT(to_string(result.error()), HasSubstr("worker 0 cannot be bound to core 8191: found Invalid argument"));
  EXPECT_FALSE(in.opened) << "workers are made first";
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST(Run, ReportsWhereUnboundWorkersMayRun) {
  FakeChain chain;
  std::vector<std::uint64_t> given(2);
  chain.add_source("in", counted(given, 10));
  chain.settings.workers = 2;
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  const auto placement = report::to_json(result->report)["placement"];
  ASSERT_EQ(placement.size(), 2U);
  EXPECT_EQ(placement[1]["cores"], format_cpu_list(cpus_of_this_thread()));
  EXPECT_EQ(placement[1]["bound"], false);
  EXPECT_EQ(report::to_tables(result->report).find("cores of workers"), std::string::npos);
}

TEST(Run, BeginsItsTimelineAfterTheWarmUp) {
  FakeChain chain;
  std::vector<std::uint64_t> given(1);
  chain.timeline = std::make_unique<ring::Timeline>(10);
  ring::SpanLog& log = chain.timeline->add_stream({}, std::vector<ring::SegmentShape>(1), nullptr);
  log.add({.ready_ns = 1, .end_ns = 2});
  chain.add_source("in", [&, poll = counted(given, 10)](unsigned worker, Batch& batch) {
    if (given[0] == 0) log.add({.ready_ns = 3, .end_ns = 4});
    return poll(worker, batch);
  });
  ASSERT_TRUE(run(chain, {}, kNeverStop));
  const std::vector<ring::Span> spans = chain.timeline->spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].ready_ns, 3);
}

TEST(Run, StartsNoPortIfOneDoesNotOpen) {
  FakeChain chain;
  FakePort& in = chain.add_source("in", [](unsigned, Batch&) {
    ADD_FAILURE() << "polled";
    return RxStatus::end;
  });
  FakePort& a = chain.add_sink("a");
  FakePort& b = chain.add_sink("b");
  FakePort& c = chain.add_sink("c");
  b.open_errors = {{{"b.pcap", 0, 0}, "no such folder", "", ""}};
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error()), "b.pcap: port b: no such folder");
  EXPECT_TRUE(a.opened);
  EXPECT_FALSE(c.opened) << "it could wait for ever";
  for (const FakePort* port : {&in, &a, &b, &c}) {
    EXPECT_FALSE(port->started);
    EXPECT_TRUE(port->closed);
  }
}

TEST(Run, StartsEveryPortOnceAllAreOpen) {
  FakeChain chain;
  FakePort& in = chain.add_source("in", testing::script({testing::numbered_frames(2)}));
  FakePort& out = chain.add_sink("out");
  out.while_opening = [&] { EXPECT_FALSE(in.started); };
  ASSERT_TRUE(run(chain, {}, kNeverStop));
  EXPECT_TRUE(in.started);
  EXPECT_TRUE(out.started);
}

/// The capabilities of the thread that does it, at each step of a run.
struct CapabilitiesSeen {
  using Capabilities = std::vector<Capability>;
  Capabilities beginning, opening, starting, polling, ticking, closing;

  static Capabilities now() {
    Capabilities all;
    for (const Capability one : {Capability::net_admin, Capability::net_raw, Capability::bpf}) {
      if (has_capability(one)) all.push_back(one);
    }
    return all;
  }
};

/// In a thread of its own, which may lose its capabilities.
CapabilitiesSeen capabilities_in_run(std::optional<port::CapabilityNeeds> needs, bool gives_up) {
  CapabilitiesSeen seen;
  std::thread([&] {
    FakeChain chain;
    std::atomic<bool> ticked{false};
    FakePort& in = chain.add_source("in", [&](unsigned, Batch&) {
      seen.polling = CapabilitiesSeen::now();
      return ticked ? RxStatus::end : RxStatus::idle;
    });
    in.needs = std::move(needs);
    in.while_opening = [&] { seen.opening = CapabilitiesSeen::now(); };
    in.while_starting = [&] { seen.starting = CapabilitiesSeen::now(); };
    in.while_closing = [&] { seen.closing = CapabilitiesSeen::now(); };
    chain.add_function("one", [](std::span<PacketView>) {}).at_begin = [&] {
      seen.beginning = CapabilitiesSeen::now();
    };
    RunOptions options;
    options.gives_up_capabilities = gives_up;
    options.on_tick = [&](auto&) {
      seen.ticking = CapabilitiesSeen::now();
      ticked = true;
    };
    EXPECT_TRUE(run(chain, options, kNeverStop));
  }).join();
  return seen;
}

TEST(Run, HasTheCapabilitiesForOpeningPortsOnlyWhereTheyOpen) {
  if (CapabilitiesSeen::now().size() != 3) GTEST_SKIP() << "without capabilities";
  const std::vector<Capability> to_open{Capability::net_admin, Capability::net_raw}, to_run{Capability::net_admin};
  const CapabilitiesSeen seen = capabilities_in_run(port::CapabilityNeeds{to_open, to_run}, true);
  EXPECT_EQ(seen.opening, to_open);
  EXPECT_EQ(seen.starting, to_open);
  EXPECT_EQ(seen.beginning, to_run);
  EXPECT_EQ(seen.polling, to_run);
  EXPECT_EQ(seen.ticking, to_run);
  EXPECT_EQ(seen.closing, to_run);
}

TEST(Run, KeepsCapabilitiesIfNoPortIsOnAnInterfaceOrNobodyAsks) {
  const std::vector<Capability> all = CapabilitiesSeen::now();
  if (all.empty()) GTEST_SKIP() << "without capabilities";
  EXPECT_EQ(capabilities_in_run(std::nullopt, true).polling, all);
  EXPECT_EQ(capabilities_in_run(port::CapabilityNeeds{}, false).polling, all);
}

TEST(Run, FunctionsBeginBeforePortsOpen) {
  FakeChain chain;
  chain.add_source("in", testing::script({testing::numbered_frames(2)}));
  FakePort& out = chain.add_sink("out");
  int begun = 0;
  for (const char* const name : {"one", "other"}) {
    chain.add_function(name, [](std::span<PacketView>) {}).at_begin = [&] {
      ++begun;
      EXPECT_FALSE(out.opened);
    };
  }
  ASSERT_TRUE(run(chain, {}, kNeverStop));
  EXPECT_EQ(begun, 2);
}

TEST(Run, OpensNoPortIfAFunctionCannotBegin) {
  FakeChain chain;
  FakePort& in = chain.add_source("in", testing::script({testing::numbered_frames(2)}));
  FakePort& out = chain.add_sink("out");
  testing::FakeFunction& function = chain.add_function("locks", [](std::span<PacketView>) { ADD_FAILURE() << "runs"; });
  function.begin_errors = {{{"state", 0, 0}, "another process has it", "", ""}};
  function.at_end = [] { ADD_FAILURE() << "nothing has run"; };
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error()), "state: another process has it");
  EXPECT_FALSE(in.opened);
  EXPECT_FALSE(out.opened) << "what it held would be gone";
}

TEST(Run, ChecksAllPortsAndFunctionsAtOnce) {
  FakeChain chain;
  chain.add_function("locks", [](std::span<PacketView>) {}).check_errors = {{{"state", 0, 0}, "no folder", "", ""}};
  FakePort& in = chain.add_source("in", testing::script({}));
  FakePort& out = chain.add_sink("out");
  EXPECT_EQ(to_string(check_system(chain)), "state: no folder");
  in.check_errors = {{{"in.pcap", 0, 0}, "is missing", "", ""}};
  out.check_errors = {{{"out.pcap", 0, 0}, "no such folder", "", ""}};
  EXPECT_EQ(to_string(check_system(chain)), "in.pcap: is missing\nout.pcap: no such folder\nstate: no folder");
  EXPECT_FALSE(in.opened);
}

/// A port that opens only when it is interrupted.
void wait_for_interrupt(FakePort& port) {
  port.while_opening = [&port] {
    while (!port.interrupted) std::this_thread::sleep_for(1ms);
  };
  port.open_errors = {{{"pipe", 0, 0}, "stopped before the pipe had a reader", "", ""}};
}

TEST(Run, CanBeStoppedWhileAPortWaitsToBeOpened) {
  FakeChain chain;
  chain.add_source("in", endless());
  FakePort& out = chain.add_sink("out");
  wait_for_interrupt(out);
  std::atomic<bool> stop{false};
  std::jthread stopper([&] {
    std::this_thread::sleep_for(30ms);
    stop = true;
  });
  const auto result = run(chain, {}, stop);
  ASSERT_TRUE(result) << "no mistake of the configuration";
  EXPECT_THAT(to_string(result->errors), HasSubstr("port out: stopped before the pipe had a reader"));
  EXPECT_EQ(report::to_json(result->report)["packets"]["in"], 0);
  EXPECT_FALSE(report::to_tables(result->report).empty());
  EXPECT_FALSE(out.started);
  EXPECT_TRUE(out.closed);
}

TEST(Run, WaitsNoLongerThanItsTimeForAPortToBeOpened) {
  FakeChain chain;
  chain.add_source("in", endless());
  wait_for_interrupt(chain.add_sink("out"));
  chain.settings.duration = 30ms;
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->errors.empty());
}

TEST(Run, ReportsTheOfferedLoadNextToWhatArrived) {
  FakeChain chain;
  FakePort& in = chain.add_source("load", testing::script({testing::numbered_frames(2)}));
  in.load = {.packets = 1'500, .behind = 250ms};
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  const auto load = report::to_json(result->report)["ports"]["load"];
  EXPECT_EQ(load["in"]["packets"], 2);
  EXPECT_EQ(load["offered"]["packets"], 1'500);
  EXPECT_EQ(load["offered"]["behind_s"], 0.25);
  EXPECT_THAT(report::to_tables(result->report),
              HasSubstr("load generated 2 of the 1,500 packets that its rate requires"));
}

TEST(Run, ReportsFragmentsThatDidNotReachTheWorkerOfTheirFlow) {
  FakeChain chain;
  FakePort& in = chain.add_source("lan", testing::script({testing::numbered_frames(2)}));
  in.fragment_counts = {.packets = 1'500, .waited = 70, .not_followed = 7, .ambiguous = 2, .copied = 3};
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_EQ(report::to_json(result->report)["ports"]["lan"]["fragments"],
            nlohmann::ordered_json::parse(
                R"({"packets": 1500, "waited": 70, "not_followed": 7, "ambiguous": 2, "copied": 3})"));
  EXPECT_THAT(report::to_tables(result->report),
              HasSubstr("warning: lan: 7 of 1,500 fragments were not sent to the worker of the flow"));
  FakeChain none;
  none.add_source("lan", testing::script({testing::numbered_frames(2)}));
  EXPECT_FALSE(report::to_json(run(none, {}, kNeverStop)->report)["ports"]["lan"].contains("fragments"));
}

TEST(Run, ReportsErrorsOfClosingPorts) {
  FakeChain chain;
  FakePort& in = chain.add_source("lan", testing::script({testing::numbered_frames(2)}));
  in.close_errors = {{{"in.pcap", 0, 0}, "breaks off", "", ""}};
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_THAT(to_string(result->errors), HasSubstr("port lan: breaks off"));
  EXPECT_EQ(report::to_json(result->report)["packets"]["in"], 2) << "what came before it counts";
}

TEST(Run, ReportsEmittedPacketsSeparately) {
  FakeChain chain;
  chain.add_source("in", testing::script({testing::numbered_frames(4)}));
  FakePort& out = chain.add_sink("out");
  auto& maker = chain.add_function("maker", {});
  maker.own_traits.emits = true;
  maker.process = [&maker](std::span<PacketView> packets) {
    for (const PacketView packet : packets) EXPECT_TRUE(maker.emitter->emit(testing::numbered(100), packet));
  };
  out.refuses = [](PacketView packet) { return testing::number_of(packet) == 100 && packet.packet->sequence == 2; };
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  const auto packets = report::to_json(result->report)["packets"];
  EXPECT_EQ(packets["in"], 4);
  EXPECT_EQ(packets["forwarded"], 4);
  EXPECT_EQ(packets["generated"], 3);
  EXPECT_EQ(packets["generated_lost"], 1);
  EXPECT_EQ(report::to_json(result->report)["bytes"]["generated"], 3 * testing::numbered(100).size());
  EXPECT_EQ(report::to_json(result->report)["ports"]["out"]["out"]["packets"], 7);
  EXPECT_THAT(report::to_tables(result->report),
              HasSubstr("3 packets (150 bytes) generated by functions; 1 more that no port accepted"));
}

TEST(Run, ReportsAlertsAndWarningsOfFunctions) {
  FakeChain chain;
  chain.add_source("in", testing::script({testing::numbered_frames(1)}));
  for (const char* const name : {"quiet", "watch"}) {
    chain.add_function(name, {}).process = [](std::span<PacketView>) {};
  }
  auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_THAT(report::to_tables(result->report), Not(HasSubstr("alert")));
  result->report.functions[1].details = {{"alerts", 1200}, {"warnings", {"not all was looked at"}}};
  EXPECT_THAT(report::to_tables(result->report),
              HasSubstr("watch: 1,200 alerts\nwarning: watch: not all was looked at\n"));
}

TEST(Run, UsesTheSingularForOne) {
  FakeChain chain;
  FakePort& in = chain.add_source("lan", testing::script({testing::numbered_frames(1)}));
  in.load = {.packets = 2, .behind = 250ms};
  in.fragment_counts = {.packets = 1, .waited = 0, .not_followed = 1, .ambiguous = 0, .copied = 0};
  auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  result->report.generated = {1, 1};
  const std::string tables = report::to_tables(result->report);
  EXPECT_THAT(tables, HasSubstr("\n1 packet (1 byte) generated by functions\n"));
  EXPECT_THAT(tables, HasSubstr("warning: lan: 1 of 1 fragment was not sent to the worker of the flow\n"));
  EXPECT_THAT(tables, HasSubstr("lan generated 1 of the 2 packets that its rate requires\n"));
}

TEST(Run, StartsNoPortIfAThreadCannotBeCreated) {
  for (const int allowed : {1, 2, 4}) {  // the first thread opens the ports
    FakeChain chain;
    FakePort& in = chain.add_source("in", [](unsigned, Batch&) {
      ADD_FAILURE() << "polled";
      return RxStatus::end;
    });
    FakePort& out = chain.add_sink("out");
    chain.settings.workers = 4;
    threads_left = allowed;
    const auto result = run(chain, {}, kNeverStop);
    threads_left = std::numeric_limits<int>::max();
    ASSERT_FALSE(result);
    EXPECT_THAT(to_string(result.error()), HasSubstr("cannot start 4 threads"));
    EXPECT_TRUE(out.opened);
    EXPECT_FALSE(out.started) << "what it held is gone";
    EXPECT_TRUE(in.closed);
    EXPECT_TRUE(out.closed);
  }
}

TEST(Run, InterruptsPortsThatWaitWhenItsTimeIsOver) {
  FakeChain chain;
  chain.add_source("in", endless());
  FakePort& out = chain.add_sink("out");
  // A reader that takes nothing: a worker waits for it until the run is interrupted.
  out.refuses = [&](PacketView) {
    while (!out.interrupted) std::this_thread::sleep_for(1ms);
    return true;
  };
  chain.settings.duration = 30ms;
  chain.settings.workers = 2;
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_GT(report::to_json(result->report)["packets"]["in"], 0);
  EXPECT_EQ(report::to_json(result->report)["dropped_by_chain"]["port_refused"],
            report::to_json(result->report)["packets"]["in"]);
}

TEST(Run, InterruptsPortsThatWaitToBeClosedWhenItIsStopped) {
  FakeChain chain;
  chain.add_source("in", testing::script({testing::numbered_frames(2)}));
  FakePort& out = chain.add_sink("out");
  std::atomic<bool> stop{false};
  out.while_closing = [&] {
    EXPECT_FALSE(out.interrupted) << "all the time that it takes, until the run is stopped";
    stop = true;
    while (!out.interrupted) std::this_thread::sleep_for(1ms);
  };
  const auto result = run(chain, {}, stop);
  ASSERT_TRUE(result);
  EXPECT_EQ(report::to_json(result->report)["packets"]["forwarded"], 2);
}

TEST(Run, EndsWhenItsTimeIsOver) {
  FakeChain chain;
  chain.add_source("in", endless());
  chain.settings.duration = 30ms;
  chain.settings.workers = 2;
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_GT(report::to_json(result->report)["packets"]["in"], 0);
  EXPECT_EQ(report::to_json(result->report)["packets"]["in"], report::to_json(result->report)["packets"]["consumed"]);
}

TEST(Run, EndsWhenItIsStopped) {
  FakeChain chain;
  std::atomic<bool> stop{false};
  chain.add_source("in", endless());
  FakePort& out = chain.add_sink("out");
  out.refuses = [&, seen = 0](PacketView) mutable {
    if (++seen == 5000) stop = true;
    return false;
  };
  const auto result = run(chain, {}, stop);
  ASSERT_TRUE(result);
  EXPECT_EQ(report::to_json(result->report)["packets"]["in"], out.sent[0].size());
  EXPECT_EQ(report::to_json(result->report)["packets"]["forwarded"], out.sent[0].size());
}

TEST(Run, EndsWhenAPortFails) {
  FakeChain chain;
  chain.add_source("in", endless());
  FakePort& out = chain.add_sink("out");
  std::atomic<bool> full{false};
  out.refuses = [&, seen = 0](PacketView) mutable {
    if (++seen == 1000) full = true;
    return full.load();
  };
  out.has_failed = [&] { return full.load(); };
  out.close_errors = {{{"out.pcap", 0, 0}, "disk full", "", ""}};
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  const auto packets = report::to_json(result->report)["packets"];
  EXPECT_EQ(packets["forwarded"], 999);
  EXPECT_EQ(packets["in"].get<int>(), packets["forwarded"].get<int>() + packets["dropped"].get<int>());
  EXPECT_EQ(report::to_json(result->report)["dropped_by_chain"]["port_refused"], packets["dropped"]);
  EXPECT_FALSE(result->errors.empty());
}

/// A log of the chain, in a file with the process id in its name.
class RunLog : public ::testing::Test {
 protected:
  ~RunLog() override { std::remove(path_.c_str()); }
  void add_log(FakeChain& chain, const std::string& path) {
    chain.logs.push_back(std::make_unique<report::EventLog>(path));
  }
  [[nodiscard]] std::string content() const { return penstock::testing::content_of(path_); }
  static void write(report::EventLog& log, std::string_view line) {
    report::EventLog::Writer writer(log);
    writer.line([&](std::string& out) { out += line; });
  }
  const std::string path_ = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_run.log";
};

TEST_F(RunLog, ContainsEverythingThatFunctionsWriteUntilTheRunEnds) {
  std::ofstream(path_) << "of another run\n";
  FakeChain chain;
  add_log(chain, path_);
  chain.add_source("in", testing::script({testing::numbered_frames(2)}));
  auto& function = chain.add_function("f", [&](std::span<PacketView> packets) {
    for (const PacketView packet : packets) {
      write(*chain.logs[0], std::to_string(testing::number_of(packet)));
      packet.packet->verdict = Verdict::consume();
    }
  });
  function.at_end = [&] { write(*chain.logs[0], "end"); };
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_TRUE(result->errors.empty()) << to_string(result->errors);
  EXPECT_EQ(content(), "of another run\n0\n1\nend\n");
}

TEST_F(RunLog, IsUnchangedIfAPortDoesNotOpen) {
  std::ofstream(path_) << "of another run\n";
  FakeChain chain;
  add_log(chain, path_);
  chain.add_source("in", testing::script({}));
  chain.add_sink("out").open_errors = {{{"out.pcap", 0, 0}, "no such folder", "", ""}};
  EXPECT_FALSE(run(chain, {}, kNeverStop));
  EXPECT_EQ(content(), "of another run\n");
}

TEST_F(RunLog, KeepsTheRunFromStartingIfItCannotBeOpened) {
  FakeChain chain;
  add_log(chain, "/nowhere/eve.json");
  FakePort& in = chain.add_source("in", testing::script({}));
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error()), "/nowhere/eve.json: cannot write: No such file or directory");
  EXPECT_FALSE(in.started);
  EXPECT_TRUE(in.closed);
}

TEST_F(RunLog, ReportsLostLines) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  FakeChain chain;
  add_log(chain, "/dev/full");
  chain.add_source("in", testing::script({testing::numbered_frames(1)}));
  chain.add_function("f", [&](std::span<PacketView>) { write(*chain.logs[0], "lost"); });
  const auto result = run(chain, {}, kNeverStop);
  ASSERT_TRUE(result);
  EXPECT_THAT(to_string(result->errors), HasSubstr("/dev/full: cannot write, and 1 record is lost"));
  EXPECT_EQ(report::to_json(result->report)["packets"]["consumed"], 1) << "packets go on all the same";
}

TEST(Run, ReportsItsProgress) {
  FakeChain chain;
  std::atomic<bool> stop{false};
  chain.add_source("in", endless());
  RunOptions options;
  std::uint64_t packets = 0;
  options.on_progress = [&](const Progress& progress) {
    EXPECT_GE(progress.packets_in, packets);
    EXPECT_GT(progress.elapsed.count(), 0);
    packets = progress.packets_in;
    stop = true;
  };
  ASSERT_TRUE(run(chain, options, stop));
  EXPECT_GT(packets, 0U);
}

TEST(RunReport, ShowsTheSharesOfTheGpu) {
  FakeChain chain;
  for (const char* name : {"first", "second", "third"}) chain.add_function(name, [](std::span<PacketView>) {});
  chain.settings.gpu_shares = {plan::GpuShares::Choice::automatic,
                               {{}, {33, {{132, 8.5}, {66, 12}}}, {0, {{132, 20}}}}};
  const report::RunReport on_cpu = make_report(chain, {}, 1s);
  EXPECT_FALSE(report::to_json(on_cpu)["functions"][1].contains("gpu_share"));
  chain.settings.processor = function::Processor::gpu;
  const report::RunReport on_gpu = make_report(chain, {}, 1s);
  const auto report = report::to_json(on_gpu);
  EXPECT_EQ(report["gpu"]["shares"], "auto");
  EXPECT_FALSE(report["functions"][0].contains("gpu_share")) << "it has all, and was not measured";
  EXPECT_EQ(report["functions"][1]["gpu_share"]["multiprocessors"], 33);
  EXPECT_EQ(report["functions"][1]["gpu_share"]["measured"][1]["us"], 12);
  EXPECT_FALSE(report["functions"][2]["gpu_share"].contains("multiprocessors")) << "it has all";
  EXPECT_THAT(report::to_tables(on_gpu), HasSubstr("multiprocessors of the GPU: second 33, third all\n"));
  EXPECT_THAT(report::to_tables(on_cpu), Not(HasSubstr("multiprocessors")));
}

}  // namespace
}  // namespace penstock::run
