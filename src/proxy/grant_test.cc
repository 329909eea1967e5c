// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions in processes of their own whose stages run in the proxy, on the lanes of the chain: whole runs, and those
// who lie. (A server in the same process is another one.)

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "function/confirming_stage.h"
#include "gpu/cuda_error.h"
#include "process/remote_function.h"
#include "process/server.h"
#include "process/testing/confirming_function.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/shape_message.h"
#include "proxy/table_granter.h"
#include "proxy/table_grants.h"
#include "proxy/testing/block_kernel.h"
#include "run/run.h"

namespace penstock::proxy {
namespace {

using namespace std::chrono_literals;
using run::testing::FakeChain;
using run::testing::FakeFunction;
using testing::HostDevice;
using testing::HostTables;

std::atomic<int> loaded{0};  // tables of the kernels of this test that are on the device

Result<void> check_nothing(const function::StageRecipe& /*recipe*/) { return {}; }
function::StageNeeds needs_of_chooser(const function::StageRecipe& /*recipe*/) { return {testing::kBlockAccess}; }
function::StageNeeds needs_of_writer(const function::StageRecipe& /*recipe*/) {
  return {{testing::kBlockReads, testing::kBlockWrites | FieldSet{Field::ipv4_dst}}, 0, 0, {}, false};
}

class CountedTables final : public function::LoadedTables {
 public:
  explicit CountedTables(std::unique_ptr<function::LoadedTables> tables) : tables_(std::move(tables)) { ++loaded; }
  CountedTables(const CountedTables&) = delete;
  CountedTables& operator=(const CountedTables&) = delete;
  ~CountedTables() override { --loaded; }
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override { return tables_->make_stage(use); }
  std::size_t bytes() const noexcept override { return tables_->bytes(); }
  std::size_t stage_bytes(const StageUse& use) const noexcept override { return tables_->stage_bytes(use); }

 private:
  const std::unique_ptr<function::LoadedTables> tables_;
};

template <typename Work>
std::unique_ptr<function::LoadedTables> count(Work work) {
  return std::make_unique<CountedTables>(std::make_unique<HostTables>(std::move(work), 1 << 10));
}
std::unique_ptr<function::LoadedTables> load_counted_block(const function::StageRecipe& recipe) {
  return std::make_unique<CountedTables>(testing::load_block(recipe));
}
/// What the block function of these tests would not do. The first batches of a lane have no ports.
std::unique_ptr<function::LoadedTables> load_reasons(const function::StageRecipe& /*recipe*/) {
  return count([](PacketView packet, std::byte*, const std::byte*) {
    return packet.has_ports() ? Verdict::drop(9) : packet.packet->verdict;
  });
}
std::unique_ptr<function::LoadedTables> load_ports(const function::StageRecipe& /*recipe*/) {
  return count([](PacketView packet, std::byte*, const std::byte*) {
    return packet.has_ports() ? Verdict::forward(7) : packet.packet->verdict;
  });
}
/// Leaves packets from port 1026 to the CPU, and blocks 1024.
std::unique_ptr<function::LoadedTables> load_punting(const function::StageRecipe& /*recipe*/) {
  return count([](PacketView packet, std::byte*, const std::byte*) {
    const bool punts = packet.has_ports() && packet.udp().source_port.value() == 1026;
    return punts ? Verdict::punt() : testing::block(packet, {1024}, 1);
  });
}

/// Finds packets from port 1025. Of others, the findings are clear.
constexpr std::uint32_t kFindingBytes = 16;
constexpr function::ClearFindings kClear{0xff, 0};
function::StageNeeds needs_of_finder(const function::StageRecipe& /*recipe*/) {
  return {{kParsedFields | FieldSet{Field::l4_src_port}, {}}, kFindingBytes, 0, {}, false};
}
bool is_found(PacketView packet) { return packet.has_ports() && packet.udp().source_port.value() == 1025; }
std::unique_ptr<function::LoadedTables> load_finder(const function::StageRecipe& /*recipe*/) {
  return count([](PacketView packet, std::byte* finding, const std::byte*) {
    std::memset(finding, 0, kFindingBytes);
    finding[0] = is_found(packet) ? std::byte{1} : std::byte{0};
    return packet.packet->verdict;
  });
}
std::unique_ptr<function::LoadedTables> load_deciding_finder(const function::StageRecipe& /*recipe*/) {
  return count([](PacketView packet, std::byte*, const std::byte*) {
    return packet.has_ports() ? Verdict::drop(0) : packet.packet->verdict;
  });
}

constexpr function::RemoteKernel kKernels[] = {
    {"finder", check_nothing, load_finder, needs_of_finder},
    {"deciding", check_nothing, load_deciding_finder, needs_of_finder},
    {"block", testing::check_block, load_counted_block, testing::needs_of_block},
    {"punting", check_nothing, load_punting, testing::needs_of_block},
    {"reasons", check_nothing, load_reasons, testing::needs_of_block},
    {"ports", check_nothing, load_ports, needs_of_chooser},
    {"writer", check_nothing, load_reasons, needs_of_writer},
    {"silent", check_nothing, load_reasons, nullptr},
};

/// Grants tables of another kernel than it is asked for.
class Liar final : public function::TableGranter {
 public:
  Liar(const std::string& proxy, std::string kernel) : inner_(proxy, {"liar"}, kKernels), kernel_(std::move(kernel)) {}
  std::optional<function::StageNeeds> needs_of(const function::StageRecipe& recipe) const override {
    return inner_.needs_of(recipe);
  }
  Result<std::unique_ptr<function::GrantedTables>> grant(const function::StageRecipe& /*recipe*/) override {
    auto other = testing::block_recipe({1024}, 1);
    other.kernel = kernel_;
    return inner_.grant(other);
  }

 private:
  proxy::TableGranter inner_;
  const std::string kernel_;
};

/// From port 1024, 1025 or 1026.
run::testing::Bytes frame(std::uint64_t number) {
  return run::testing::numbered(number, static_cast<unsigned>(number % 3));
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(1000);
  }
  return true;
}

class Grants : public ::testing::Test {
 protected:
  static constexpr std::size_t kPackets = 5000;

  void start(ServerSettings settings = {}) {
    settings.path = path_;
    auto server = Server::start(std::move(settings), std::make_unique<testing::HostBackend>(device_, kKernels));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }

  /// The process of a function that blocks these ports.
  class Process {
   public:
    Process(std::string socket, std::unique_ptr<function::TableGranter> granter, testing::Ports ports,
            std::string kernel = "block", bool chooses_port = false)
        : socket_(std::move(socket)), granter_(std::move(granter)) {
      const auto make = [ports = std::move(ports), kernel = std::move(kernel), chooses_port](
                            std::string_view, const process::Surroundings&) {
        FakeChain chain;
        testing::add_block(chain, ports);
        auto function = std::move(chain.functions.front().function);
        auto& fake = static_cast<FakeFunction&>(*function);
        fake.own_traits.chooses_port = chooses_port;
        fake.recipe = [ports, kernel] {
          auto recipe = testing::block_recipe(ports, 1);
          recipe.kernel = kernel;
          return std::optional(recipe);
        };
        return Result<std::unique_ptr<function::NetworkFunction>>(std::move(function));
      };
      server_ = process::Server::start({.path = socket_, .granter = granter_.get()}, make).value();
    }

    [[nodiscard]] process::RemoteSettings settings() const {
      process::RemoteSettings settings;
      settings.socket = socket_;
      settings.function = "fake";
      settings.patience = 10s;  // the machine may be busy
      settings.in_proxy = true;
      settings.surroundings.ports = {{.name = "in", .reads = true}, {.name = "out", .writes = true}};
      return settings;
    }
    [[nodiscard]] std::unique_ptr<function::NetworkFunction> connect() const {
      return process::connect_function(settings()).value();
    }

   private:
    const std::string socket_;
    const std::unique_ptr<function::TableGranter> granter_;
    std::unique_ptr<process::Server> server_;
  };

  [[nodiscard]] std::unique_ptr<Process> serve(testing::Ports ports, const std::string& name = "function",
                                               const std::string& kernel = "block") const {
    return std::make_unique<Process>(path_ + "-" + name,
                                     std::make_unique<TableGranter>(path_, TenantWish{name}, kKernels),
                                     std::move(ports), kernel);
  }
  [[nodiscard]] std::unique_ptr<Process> serve_lies(const std::string& kernel, bool chooses_port = false) const {
    return std::make_unique<Process>(path_ + "-liar", std::make_unique<Liar>(path_, kernel), testing::Ports{1024},
                                     chooses_port ? "ports" : "block", chooses_port);
  }

  struct Outcome {
    report::RunReport report;
    std::vector<std::vector<run::testing::FakePort::Sent>> sent;
    std::size_t segments = 0;  // of the plan
  };
  /// Its error, if it cannot run.
  Result<Outcome> try_to_run(bool in_proxy, const std::function<void(FakeChain&)>& functions) {
    FakeChain chain;
    std::vector<run::testing::Bytes> frames;
    for (std::size_t i = 0; i < kPackets; ++i) frames.push_back(frame(i));
    chain.add_source("in", run::testing::script({std::move(frames)}));
    auto& sink = chain.add_sink("out");
    functions(chain);
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    if (in_proxy) {
      chain.settings.processor = function::Processor::gpu;
      auto lanes = remote_lanes(path_, {"chain", "4q"});
      if (!lanes) return failure(std::move(lanes.error()));
      chain.settings.remote = std::move(*lanes);
    }
    const std::atomic<bool> stop{false};
    try {
      auto result = run::run(chain, {}, stop);
      if (!result) return failure(std::move(result.error()));
      return Outcome{result->report, sink.sent, chain.device_plan()->segments.size()};
    } catch (const gpu::CudaError& error) {
      return failure(Error{{}, error.what(), "", ""});
    }
  }
  Outcome run_chain(bool in_proxy, const std::function<void(FakeChain&)>& functions) {
    auto outcome = try_to_run(in_proxy, functions);
    if (outcome) return *outcome;
    ADD_FAILURE() << to_string(outcome.error());
    return {};
  }
  static void expect_same(const Outcome& one, const Outcome& other) {
    ASSERT_EQ(one.sent.size(), other.sent.size());
    for (std::size_t w = 0; w < one.sent.size(); ++w) {
      ASSERT_EQ(one.sent[w].size(), other.sent[w].size());
      for (std::size_t i = 0; i < one.sent[w].size(); ++i) ASSERT_EQ(one.sent[w][i].bytes, other.sent[w][i].bytes);
    }
    EXPECT_EQ(one.report.forwarded.packets, other.report.forwarded.packets);
    EXPECT_EQ(one.report.dropped.packets, other.report.dropped.packets);
  }
  [[nodiscard]] std::size_t tenants() const {
    return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"].size();
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       fmt::format("penstock-grant-{}-{}", ::getpid(), ::testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
  HostDevice device_;
  std::unique_ptr<Server> server_;
};

void block_some(FakeChain& chain) { testing::add_block(chain, {1024}); }

TEST_F(Grants, ADeviceDoesWhatTheFunctionsProcessWouldDo) {
  start();
  const auto process = serve({1024});
  const Outcome twins = run_chain(false, block_some);
  const Outcome granted = run_chain(true, [&](FakeChain& chain) {
    EXPECT_EQ(loaded, 0) << "before the chain needs them";
    chain.functions.push_back({"fake", process->connect()});
  });
  expect_same(twins, granted);
  EXPECT_GT(granted.report.forwarded.packets, 0U);
  EXPECT_GT(granted.report.dropped.packets, 0U);
  ASSERT_TRUE(granted.report.gpu);
  EXPECT_GT(granted.report.gpu->segments, 0U);
  EXPECT_EQ(granted.report.gpu->failures, 0U);
  EXPECT_GT(granted.report.bytes_to_device, 0U);
  EXPECT_TRUE(eventually([] { return loaded == 0; })) << "they end with the chain";
  EXPECT_TRUE(eventually([this] { return tenants() == 0; })) << "no share is kept without tables";
}

TEST_F(Grants, SeveralProcessesAndTheChainShareALane) {
  start();
  const auto first = serve({1024}, "first");
  const auto second = serve({1026, 77}, "second");
  const Outcome twins = run_chain(false, [](FakeChain& chain) {
    testing::add_block(chain, {1024});
    testing::add_block(chain, {77}, 3);
    testing::add_block(chain, {1026, 77});
  });
  const Outcome granted = run_chain(true, [&](FakeChain& chain) {
    chain.functions.push_back({"first", first->connect()});
    testing::add_block(chain, {77}, 3);
    chain.functions.push_back({"second", second->connect()});
  });
  expect_same(twins, granted);
  EXPECT_EQ(granted.report.gpu->failures, 0U);
  EXPECT_EQ(granted.segments, 1U) << "packets cross once";
}

TEST_F(Grants, WhatTheDeviceLeavesIsDoneByTheFunctionsProcess) {
  start();
  const auto process = serve({1024}, "function", "punting");
  const Outcome twins = run_chain(false, block_some);
  const Outcome granted = run_chain(true, [&](FakeChain& chain) {
    chain.functions.push_back({"fake", process->connect()});
  });
  expect_same(twins, granted);
  EXPECT_GT(granted.report.gpu->punted, 500U);
  EXPECT_EQ(granted.report.gpu->failures, 0U);
}

TEST_F(Grants, WithoutTablesAtTheProxyARunDoesNotBegin) {
  start();
  const auto process = std::make_unique<Process>(
      path_ + "-function", std::make_unique<TableGranter>(path_ + "-other", TenantWish{"elsewhere"}, kKernels),
      testing::Ports{1024});
  const auto outcome = try_to_run(true, [&](FakeChain& chain) {
    chain.functions.push_back({"fake", process->connect()});
  });
  ASSERT_FALSE(outcome);
  EXPECT_NE(to_string(outcome.error()).find("has no tables at the proxy"), std::string::npos)
      << to_string(outcome.error());
}

TEST_F(Grants, TablesThatDoMoreThanTheProcessSaysAreRefused) {
  start();
  for (const char* const kernel : {"ports", "writer", "silent", "none"}) {
    const auto process = serve_lies(kernel);
    const auto outcome = try_to_run(true, [&](FakeChain& chain) {
      chain.functions.push_back({"fake", process->connect()});
    });
    EXPECT_FALSE(outcome) << kernel;
  }
}

TEST_F(Grants, VerdictsThatTheFunctionCannotGiveAreTheDevicesFailure) {
  start();
  const Outcome twins = run_chain(false, block_some);
  for (const bool chooses_port : {false, true}) {
    const auto process = serve_lies(chooses_port ? "ports" : "reasons", chooses_port);
    const Outcome granted = run_chain(true, [&](FakeChain& chain) {
      chain.functions.push_back({"fake", process->connect()});
    });
    expect_same(twins, granted);
    EXPECT_GT(granted.report.gpu->failures, 0U);
  }
}

/// What the function's process has seen of a chain's packets.
struct Seen {
  std::atomic<std::uint64_t> confirmed{0}, passed_over{0}, processed{0};
};

struct Confirming : function::FinishStage, function::ConfirmingStage {
  Confirming(Seen& of_test, bool may_drop) : seen(of_test), drops(may_drop) {}
  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
    seen.confirmed += packets.size();
    for (std::size_t i = 0; i < packets.size(); ++i) {
      EXPECT_TRUE(is_found(packets[i])) << "packets and findings belong together";
      EXPECT_EQ(findings[i][0], std::byte{1});
      if (drops) packets[i].packet->verdict = Verdict::drop(0);
    }
  }
  bool can_be(const std::byte* finding) const noexcept override { return std::to_integer<int>(finding[0]) <= 1; }
  void pass_over(const function::PassedOver& packets) noexcept override { seen.passed_over += packets.packets; }
  Seen& seen;
  const bool drops;
};

constexpr std::string_view kFound[] = {"found"};

/// A function that drops, or only counts, packets from port 1025, which its stage on a device finds.
std::unique_ptr<function::NetworkFunction> make_finder(Seen& seen, bool drops, const std::string& kernel = "finder") {
  auto function = std::make_unique<FakeFunction>();
  function::NfTraits& traits = function->own_traits;
  const FieldSet verdict = drops ? FieldSet{Field::verdict} : FieldSet{};
  traits.cpu = {kParsedFields | FieldSet{Field::l4_src_port} | verdict, verdict};
  traits.devices[function::Processor::gpu] = needs_of_finder({}).access;
  traits.finish = traits.cpu;
  traits.finish_waits = !drops;
  traits.findings_bytes = kFindingBytes;
  traits.drop_reasons = kFound;
  function->process = [&seen, drops](std::span<PacketView> packets) {
    seen.processed += packets.size();
    for (const PacketView packet : packets) {
      if (drops && is_found(packet)) packet.packet->verdict = Verdict::drop(0);
    }
  };
  function->recipe = [kernel] {
    auto recipe = testing::block_recipe({}, 1);
    recipe.kernel = kernel;
    return std::optional(recipe);
  };
  return std::make_unique<process::testing::ConfirmingFake>(
      std::move(function), kClear, [&seen, drops] { return std::make_unique<Confirming>(seen, drops); });
}

class GrantedFindings : public Grants {
 protected:
  void serve_finder(bool drops, const std::string& kernel = "finder") {
    process_.reset();
    granter_ = std::make_unique<TableGranter>(path_, TenantWish{"finder"}, kKernels);
    const auto make = [this, drops, kernel](std::string_view, const process::Surroundings&) {
      return Result<std::unique_ptr<function::NetworkFunction>>(make_finder(seen_, drops, kernel));
    };
    process_ = process::Server::start({.path = path_ + "-finder", .granter = granter_.get()}, make).value();
  }
  [[nodiscard]] std::unique_ptr<function::NetworkFunction> connect(bool passes_when_lost) const {
    process::RemoteSettings settings;
    settings.socket = path_ + "-finder";
    settings.function = "fake";
    settings.patience = 10s;
    settings.in_proxy = true;
    settings.passes_when_lost = passes_when_lost;
    settings.surroundings.ports = {{.name = "in", .reads = true}, {.name = "out", .writes = true}};
    return process::connect_function(settings).value();
  }
  Seen seen_;
  std::unique_ptr<function::TableGranter> granter_;
  std::unique_ptr<process::Server> process_;
};

TEST_F(GrantedFindings, AreConfirmedByTheFunctionsProcess) {
  start();
  for (const bool drops : {false, true}) {
    for (const bool passes_when_lost : {false, true}) {
      Seen alone;
      const Outcome twins = run_chain(false, [&](FakeChain& chain) {
        testing::add_block(chain, {1024});
        chain.functions.push_back({"finder", make_finder(alone, drops)});
        testing::add_block(chain, {77}, 3);
      });
      serve_finder(drops);
      const Outcome granted = run_chain(true, [&](FakeChain& chain) {
        testing::add_block(chain, {1024});
        chain.functions.push_back({"finder", connect(passes_when_lost)});
        testing::add_block(chain, {77}, 3);
      });
      expect_same(twins, granted);
      EXPECT_EQ(granted.report.gpu->failures, 0U);
      process_.reset();
      const std::uint64_t found = seen_.confirmed.exchange(0);
      EXPECT_GT(found, kPackets / 4);
      EXPECT_EQ(found + seen_.passed_over.exchange(0) + seen_.processed.exchange(0), alone.processed);
    }
  }
}

TEST_F(GrantedFindings, AreTheDevicesFailureIfItDecides) {
  start();
  Seen alone;
  const Outcome twins = run_chain(false, [&](FakeChain& chain) {
    chain.functions.push_back({"finder", make_finder(alone, true)});
  });
  serve_finder(true, "deciding");
  const Outcome granted = run_chain(true, [&](FakeChain& chain) {
    chain.functions.push_back({"finder", connect(false)});
  });
  expect_same(twins, granted);
  EXPECT_GT(granted.report.gpu->failures, 0U);
}

/// A run with packets all the time, whose function is in another process.
class Flow {
 public:
  Flow(const std::string& proxy, std::unique_ptr<function::NetworkFunction> function) {
    chain_.add_source("in", [this](unsigned, Batch& batch) {
      if (ends_) return port::RxStatus::end;
      for (int i = 0; i < 20 && run::testing::append(batch, frame(number_)); ++i) ++number_;
      ::usleep(300);
      return port::RxStatus::idle;
    });
    chain_.add_sink("out");
    chain_.functions.push_back({"fake", std::move(function)});
    chain_.settings.batch_bytes = 16 << 10;
    chain_.settings.batch_packets = 64;
    chain_.settings.queue_bytes = 1 << 20;
    chain_.settings.processor = function::Processor::gpu;
    chain_.settings.remote = remote_lanes(proxy, {"chain", "4q"}).value();
    run_ = run::start(chain_, {}, never_).value();
  }
  [[nodiscard]] run::Run& run() { return *run_; }
  [[nodiscard]] bool works() const {
    const auto gpu = [this] { return *run_->report().gpu; };
    const std::uint64_t before = gpu().segments;
    return eventually([&] { return gpu().proxy->connected && gpu().segments > before + 20; });
  }
  [[nodiscard]] bool drops_all() const {
    return eventually([this] {
      const auto before = run_->report();
      ::usleep(50'000);
      const auto after = run_->report();
      return after.in.packets > before.in.packets && after.forwarded.packets == before.forwarded.packets;
    });
  }
  [[nodiscard]] std::uint64_t losses() const { return run_->report().gpu->proxy->losses; }
  report::RunReport end() {
    ends_ = true;
    auto report = run_->wait().report;
    EXPECT_EQ(report.in.packets, report.forwarded.packets + report.dropped.packets);
    EXPECT_EQ(report.in.packets, number_);
    return report;
  }

 private:
  const std::atomic<bool> never_{false};
  std::atomic<bool> ends_{false};
  std::uint64_t number_ = 0;
  FakeChain chain_;
  std::unique_ptr<run::Run> run_;
};

TEST_F(Grants, AProcessThatEndsAndIsBackGetsItsPlaceOnTheDeviceAgain) {
  start();
  auto process = serve({1024});
  Flow flow(path_, process->connect());
  for (std::uint64_t losses = 1; losses <= 2; ++losses) {
    ASSERT_TRUE(flow.works());
    process.reset();
    EXPECT_TRUE(eventually([] { return loaded == 0; })) << "the chain cannot keep them";
    EXPECT_TRUE(flow.drops_all()) << "nobody decides about them";
    EXPECT_TRUE(eventually([&] { return flow.losses() == losses; }));
    process = serve({1024});
    ASSERT_TRUE(flow.works());
  }
  EXPECT_EQ(flow.end().gpu->proxy->losses, 2U);
}

TEST_F(Grants, TheLogSaysWhatHasGone) {
  using ::testing::HasSubstr;
  using ::testing::Not;
  start();
  auto process = serve({1024});
  Flow flow(path_, process->connect());
  ASSERT_TRUE(flow.works());
  ::testing::internal::CaptureStderr();
  process.reset();
  const bool lost_tables = eventually([&] { return flow.losses() == 1; });
  process = serve({1024});
  const bool works = flow.works();
  std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(lost_tables && works) << log;
  EXPECT_THAT(log, HasSubstr("tables that another process had granted have gone from the proxy at " + path_ + ":"));
  EXPECT_THAT(log, Not(HasSubstr("the proxy at " + path_ + " has gone")));

  ::testing::internal::CaptureStderr();
  server_.reset();
  const bool lost_proxy = eventually([&] { return flow.losses() == 2; });
  log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(lost_proxy);
  EXPECT_THAT(log, HasSubstr("the proxy at " + path_ + " has gone:"));
  EXPECT_THAT(log, Not(HasSubstr("tables that another process")));
  flow.end();
}

TEST_F(Grants, AProxyThatStartsAgainGetsAllTablesAgain) {
  start();
  const auto process = serve({1024});
  Flow flow(path_, process->connect());
  ASSERT_TRUE(flow.works());
  server_.reset();
  EXPECT_EQ(loaded, 0);
  ASSERT_TRUE(eventually([&] { return flow.losses() == 1; }));
  const std::uint64_t before = flow.run().report().forwarded.packets;
  EXPECT_TRUE(eventually([&] { return flow.run().report().forwarded.packets > before + 1000; })) << "by the process";
  start();
  ASSERT_TRUE(flow.works());
  flow.end();
}

TEST_F(Grants, AReloadReplacesTables) {
  start();
  auto process = serve({1024});
  Flow flow(path_, process->connect());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(flow.works());
    run::Functions next;
    next.push_back(process->connect());
    const auto applied = flow.run().apply(std::move(next));
    ASSERT_TRUE(applied) << to_string(applied.error());
    EXPECT_TRUE(eventually([] { return loaded == 2; })) << "only the former ones are kept, with their function";
  }
  ASSERT_TRUE(flow.works());
  const report::RunReport report = flow.end();
  EXPECT_EQ(report.gpu->failures, 0U);
  EXPECT_EQ(report.gpu->proxy->losses, 0U);
}

// Tenants made by hand.

const function::StageNeeds kKnown{testing::kBlockAccess, 0, 0, {}, false};

struct Owner {
  explicit Owner(const std::string& path, const std::string& kernel = "block")
      : connection(Connection::open(path, {"owner"}).value()),
        tables(std::make_unique<RemoteTables>(connection, recipe_of(kernel))) {}
  static function::StageRecipe recipe_of(const std::string& kernel) {
    auto recipe = testing::block_recipe({1024}, 1);
    recipe.kernel = kernel;
    return recipe;
  }
  [[nodiscard]] function::GrantToken grant(std::optional<std::uint32_t> id = {}) const {
    GrantTables request;
    request.tables = id.value_or(tables->id());
    return connection->request(request).token;
  }
  std::shared_ptr<Connection> connection;
  std::unique_ptr<RemoteTables> tables;
};

/// A tenant with a lane, which orders nothing.
struct User {
  explicit User(const std::string& path) : connection(Connection::open(path, {"user"}).value()) {}
  void use(const function::GrantToken& token, const function::StageNeeds& known = kKnown) {
    tables = std::make_shared<RemoteTables>(connection, token, known);
    stages.push_back(std::make_unique<RemoteStage>(connection, tables, StageUse{0, 64, 0}));
  }
  std::uint32_t make_lane() {
    ring::SegmentShape segment;
    segment.down = *ring::record_layout(testing::kBlockWrites);
    segment.stages = {{0, 0, false, 0}};
    ring::LaneShape shape;
    shape.batch_bytes = 16 << 10;
    shape.batch_packets = 64;
    shape.segments = {segment};
    MakeLane message = to_message(shape).value();
    message.stages[0] = stages.back()->id();
    return connection->request(message).id;
  }
  std::shared_ptr<Connection> connection;
  std::shared_ptr<RemoteTables> tables;
  std::vector<std::unique_ptr<RemoteStage>> stages;
};

TEST_F(Grants, TokensAreAskedForByTheOwnerOnly) {
  start();
  const Owner owner(path_);
  const auto token = owner.grant();
  EXPECT_EQ(owner.grant(), token) << "the same tables";
  EXPECT_THROW(static_cast<void>(owner.grant(77)), gpu::CudaError) << "no tables";
  EXPECT_THROW(static_cast<void>(Owner(path_, "silent").grant()), gpu::CudaError) << "nobody knows what they do";
  EXPECT_NE(Owner(path_).grant(), token);
  User user(path_);
  user.use(token);
  GrantTables request;
  request.tables = user.tables->id();
  EXPECT_THROW(user.connection->request(request), gpu::CudaError) << "tables of another tenant";
  request.tables = owner.tables->id();
  EXPECT_THROW(user.connection->request(request), gpu::CudaError);
}

TEST_F(Grants, AGuessedTokenIsRefused) {
  start();
  const Owner owner(path_);
  const auto token = owner.grant();
  User user(path_);
  EXPECT_THROW(user.use({}), gpu::CudaError);
  for (std::size_t byte = 0; byte < token.size(); ++byte) {
    auto guess = token;
    guess[byte] ^= 1;
    EXPECT_THROW(user.use(guess), gpu::CudaError);
  }
  EXPECT_NO_THROW(user.use(token));
}

TEST_F(Grants, StagesDoNoMoreThanIsKnown) {
  start();
  const Owner chooser(path_, "ports");
  const Owner writer(path_, "writer");
  User user(path_);
  EXPECT_THROW(user.use(chooser.grant()), gpu::CudaError);
  EXPECT_THROW(user.use(writer.grant()), gpu::CudaError);
  auto known = kKnown;
  known.chooses_port = true;
  known.access.writes |= FieldSet{Field::ipv4_dst};
  EXPECT_NO_THROW(user.use(chooser.grant(), known));
  EXPECT_NO_THROW(user.use(writer.grant(), known));
  known.access.reads = {};
  EXPECT_THROW(user.use(writer.grant(), known), gpu::CudaError);
}

TEST_F(Grants, NothingOfAnOwnerThatHasGoneIsLeft) {
  start();
  std::optional<Owner> owner(path_);
  const auto token = owner->grant();
  User user(path_), other(path_);
  user.use(token);
  other.use(token);  // a stage in no lane
  static_cast<void>(user.make_lane());
  EXPECT_EQ(loaded, 1);
  owner.reset();
  EXPECT_TRUE(eventually([this] { return loaded == 0 && tenants() == 2; })) << "although both users stay";
  User late(path_);
  EXPECT_THROW(late.use(token), gpu::CudaError);
  EXPECT_THROW(RemoteStage(user.connection, user.tables, {0, 64, 0}), gpu::CudaError);
  EXPECT_THROW(static_cast<void>(other.make_lane()), gpu::CudaError);
  EXPECT_FALSE(user.connection->is_lost());
  EXPECT_FALSE(other.connection->is_lost()) << "it has done nothing wrong";
}

TEST_F(Grants, OwnersThatGoWhileTheirTablesAreUsedLeaveNothing) {
  start();
  for (int round = 0; round < 30; ++round) {
    std::optional<Owner> owner(path_);
    const auto token = owner->grant();
    std::atomic<int> ready{0};
    const auto use = [&] {
      User user(path_);
      ++ready;
      try {
        for (int i = 0; i < 20; ++i) {
          user.use(token);
          static_cast<void>(user.make_lane());
        }
      } catch (const gpu::CudaError&) {  // they have gone, or too many lanes are there
      }
      EXPECT_FALSE(user.connection->is_lost()) << "it has done nothing wrong";
    };
    std::jthread first(use), second(use);
    while (ready < 2) std::this_thread::yield();
    ::usleep(static_cast<useconds_t>(round) * 100);
    if (round % 2 == 0) owner->tables.reset();
    owner.reset();
    first.join();
    second.join();
    ASSERT_TRUE(eventually([this] { return loaded == 0 && tenants() == 0; })) << round;
  }
}

TEST_F(Grants, UnloadedTablesEndToo) {
  start();
  Owner owner(path_);
  const auto token = owner.grant();
  User user(path_);
  user.use(token);
  static_cast<void>(user.make_lane());
  owner.tables.reset();
  EXPECT_TRUE(eventually([] { return loaded == 0; }));
  EXPECT_THROW(user.use(token), gpu::CudaError);
  EXPECT_EQ(tenants(), 2U);
}

TEST_F(Grants, TablesCountForTheirOwner) {
  start();
  const Owner owner(path_, "reasons");
  User user(path_);
  user.use(owner.grant());
  const auto status = nlohmann::json::parse(ask_for_status(path_, false).value());
  for (const auto& tenant : status["tenants"])
    EXPECT_EQ(tenant["device_memory"], tenant["name"] == "owner" ? 1 << 10 : 64) << tenant.dump(2);
}

}  // namespace
}  // namespace penstock::proxy
