// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole runs whose lanes are in a proxy with a GPU: the same packets leave as from the CPU twins, whatever crosses, and
// whatever becomes of the GPU.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "gpu/share.cuh"
#include "proxy/problem.h"
#include "proxy/remote_lanes.h"
#include "proxy/restart.h"
#include "proxy/server.h"
#include "proxy/testing/lender.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::proxy {
namespace {

using run::testing::FakeChain;

/// Drops UDP from the ports of its table, and decrements the TTL of the other packets. `payload`: inverts the last
/// byte.
struct BlockCore {
  const std::uint16_t* ports;
  std::uint32_t count;
  bool payload;

  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    if (!packet.has_ports()) return packet.packet->verdict;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (packet.udp().source_port.value() == ports[i]) return Verdict::drop(0);
    }
    if (packet.layout().network == NetworkLayer::ipv4) packet.ipv4().ttl -= 1;
    if (payload && packet.layout().end > packet.layout().payload_offset) packet.frame[packet.layout().end - 1] ^= 0xff;
    return packet.packet->verdict;
  }
};

constexpr FieldSet kHeaders{Field::ipv4_ttl, Field::verdict};
constexpr Access access_of(bool payload) {
  const FieldSet writes = payload ? kHeaders | FieldSet{Field::payload} : kHeaders;
  return {kParsedFields | FieldSet{Field::l4_src_port} | writes, writes};
}

class BlockTables final : public function::LoadedTables {
 public:
  explicit BlockTables(const function::StageRecipe& recipe)
      : payload_(recipe.arguments[0] != std::byte{0}),
        ports_(std::span(reinterpret_cast<const std::uint16_t*>(recipe.tables[0]->data()),
                         recipe.tables[0]->size() / 2)) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse&) override {
    return std::make_unique<gpu::PerPacketStage<BlockCore>>(
        BlockCore{ports_.data(), static_cast<std::uint32_t>(ports_.size()), payload_});
  }
  std::size_t bytes() const noexcept override { return ports_.size_bytes(); }

 private:
  bool payload_;
  gpu::DeviceBuffer<std::uint16_t> ports_;
};

Result<void> check_block(const function::StageRecipe& recipe) {
  if (recipe.arguments.size() == 1 && recipe.tables.size() == 1 && recipe.tables[0]->size() % 2 == 0) return {};
  return failure(problem("block: not a recipe of it"));
}
std::unique_ptr<function::LoadedTables> load_block(const function::StageRecipe& recipe) {
  return std::make_unique<BlockTables>(recipe);
}
function::StageNeeds needs_of_block(const function::StageRecipe& recipe) {
  return {access_of(recipe.arguments[0] != std::byte{0})};
}

constexpr std::size_t kMostMultiprocessors = 1024;
__device__ unsigned crowd_now, crowd_most;  // blocks of `crowd` that run, and the most that have run at a time
__device__ std::uint8_t crowd_on[kMostMultiprocessors];  // multiprocessors on which blocks have run

/// Blocks that stay long enough to meet those of other batches.
__global__ void crowd() {
  if (threadIdx.x != 0) return;
  unsigned multiprocessor = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  crowd_on[multiprocessor] = 1;
  atomicMax(&crowd_most, atomicAdd(&crowd_now, 1) + 1);
  constexpr long long kCycles = 50'000;
  for (const long long begin = clock64(); clock64() - begin < kCycles;) {
  }
  atomicSub(&crowd_now, 1);
}
constexpr unsigned kCrowdThreads = 256;

/// Fills what it may.
class CrowdStage final : public gpu::GpuStage {
 public:
  CrowdStage(const BlockCore& core, std::uint32_t multiprocessors)
      : core_(core), blocks_(std::min(kMostBlocks, gpu::most_blocks_of_share(multiprocessors, crowd, kCrowdThreads))) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    cudaLaunchConfig_t launch{};
    launch.gridDim = blocks_;
    launch.blockDim = kCrowdThreads;
    launch.stream = stream.get();
    return cudaLaunchKernelEx(&launch, crowd) == cudaSuccess && gpu::enqueue_per_packet(core_, batch, stream);
  }

 private:
  static constexpr std::uint32_t kMostBlocks = 4096;
  const BlockCore core_;
  const std::uint32_t blocks_;
};

class CrowdTables final : public function::LoadedTables {
 public:
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override {
    return std::make_unique<CrowdStage>(BlockCore{nullptr, 0, false}, use.multiprocessors);
  }
  std::size_t bytes() const noexcept override { return 0; }
};
std::unique_ptr<function::LoadedTables> load_crowd(const function::StageRecipe& /*recipe*/) {
  return std::make_unique<CrowdTables>();
}

/// Of this process, in memory that the device reads: a stage in a graph is only asked once to launch its kernels.
std::atomic<unsigned>* told_to_hang = nullptr;

__global__ void hang_if_told(const volatile unsigned* told) {
  while (*told != 0) {
  }
}

/// Its batches never end once it is told to hang.
class HangingStage final : public gpu::GpuStage {
 public:
  explicit HangingStage(const BlockCore& core) : core_(core) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    hang_if_told<<<1, 1, 0, stream.get()>>>(reinterpret_cast<const unsigned*>(told_to_hang));
    return cudaGetLastError() == cudaSuccess && gpu::enqueue_per_packet(core_, batch, stream);
  }

 private:
  const BlockCore core_;
};

class HangingTables final : public function::LoadedTables {
 public:
  std::unique_ptr<DeviceStage> make_stage(const StageUse& /*use*/) override {
    return std::make_unique<HangingStage>(BlockCore{nullptr, 0, false});
  }
  std::size_t bytes() const noexcept override { return 0; }
};
std::unique_ptr<function::LoadedTables> load_hang(const function::StageRecipe& /*recipe*/) {
  return std::make_unique<HangingTables>();
}

constexpr function::RemoteKernel kKernels[] = {{"block", check_block, load_block, needs_of_block},
                                               {"crowd", check_block, load_crowd, needs_of_block},
                                               {"hang", check_block, load_hang, needs_of_block}};

/// Its table lives as long as the test.
void add_block(FakeChain& chain, bool payload, std::vector<std::uint16_t> ports, const char* kernel = "block") {
  auto kept = std::make_shared<std::vector<std::uint16_t>>(std::move(ports));
  auto& function =
      chain.add_function("block", run::testing::each([kept, payload](PacketView packet) {
                           return BlockCore{kept->data(), static_cast<std::uint32_t>(kept->size()), payload}(packet);
                         }));
  static constexpr std::string_view kReasons[] = {"blocked"};
  function.own_traits.drop_reasons = kReasons;
  function.own_traits.cpu = access_of(payload);
  function.own_traits.devices[function::Processor::gpu] = access_of(payload);
  function.recipe = [kept, payload, kernel] {
    std::vector<std::byte> table(kept->size() * 2);
    if (!table.empty()) std::memcpy(table.data(), kept->data(), table.size());
    return std::optional(function::StageRecipe{
        kernel, {std::byte{payload}}, {std::make_shared<const std::vector<std::byte>>(std::move(table))}});
  };
}

struct Way {
  const char* name;
  run::Transfer transfer;
  bool payload;
  unsigned segments;
};

class GpuProxy : public ::testing::TestWithParam<Way> {
 protected:
  using Sent = std::vector<run::testing::FakePort::Sent>;

  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("penstock-gpu-proxy-" + std::to_string(::getpid()))).string();
    ServerSettings settings;
    settings.path = path_;
    auto server = Server::start(std::move(settings), make_gpu_backend(0, kKernels));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }
  static constexpr std::size_t kPackets = 20000;
  /// `remote`: in the proxy. `lends`: the source lends frames. `status`: of the proxy, during the run.
  Sent run_chain(bool remote, report::RunReport& report, bool lends = false, std::string* status = nullptr) {
    FakeChain chain;
    std::size_t polls = 0;
    testing::Lender lender(kPackets, /*shared=*/true);
    auto poll = run::testing::script({run::testing::numbered_frames(kPackets)});
    auto& source = chain.add_source("in", poll);
    source.poll = [&](unsigned worker, Batch& batch) {
      if (++polls == 15 && status != nullptr) *status = ask_for_status(path_, false).value_or("");
      return lends ? lender.poll(batch, *source.packet_memory) : poll(worker, batch);
    };
    source.takes_back = [&](std::size_t frames) { lender.back += frames; };
    auto& sink = chain.add_sink("out");
    for (unsigned s = 0; s < GetParam().segments; ++s) {
      if (s > 0) chain.add_function("look", run::testing::each([](PacketView p) { return p.packet->verdict; }));
      add_block(chain, GetParam().payload, {static_cast<std::uint16_t>(1024 + s)});
    }
    chain.settings.batch_bytes = 256 << 10;
    chain.settings.batch_packets = 1000;
    chain.settings.queue_bytes = 4 << 20;
    chain.settings.transfer = GetParam().transfer;
    if (remote) {
      chain.settings.processor = function::Processor::gpu;
      chain.settings.remote = remote_lanes(path_, {"test", "2q"}).value();
    }
    const std::atomic<bool> stop{false};
    auto result = run::run(chain, {}, stop);
    if (!result) return ADD_FAILURE() << to_string(result.error()), Sent();
    report = result->report;
    EXPECT_EQ(lender.back, lender.lent());
    EXPECT_EQ(lender.lent() > 0, lends);
    return sink.sent[0];
  }

  std::string path_;
  std::unique_ptr<Server> server_;
};

constexpr Way kWays[] = {
    {"headers", run::Transfer::automatic, false, 1},
    {"headers by copies", run::Transfer::streamed, false, 1},
    {"headers by kernels", run::Transfer::zero_copy, false, 1},
    {"frames", run::Transfer::streamed, true, 1},
    {"frames by kernels", run::Transfer::zero_copy, true, 1},
    {"two segments", run::Transfer::automatic, false, 2},
    {"two segments of frames", run::Transfer::automatic, true, 2},
};
INSTANTIATE_TEST_SUITE_P(Ways, GpuProxy, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return std::to_string(way.index); });

TEST_P(GpuProxy, DoesWhatTheTwinsDo) {
  for (const bool lends : {false, true}) {
    report::RunReport of_twins, of_proxy;
    const Sent twins = run_chain(false, of_twins);
    std::string status;
    const Sent proxied = run_chain(true, of_proxy, lends, &status);
    ASSERT_EQ(twins.size(), proxied.size());
    for (std::size_t i = 0; i < twins.size(); ++i) ASSERT_EQ(twins[i].bytes, proxied[i].bytes) << i;
    ASSERT_TRUE(of_proxy.gpu);
    EXPECT_GT(of_proxy.gpu->segments, 0U);
    EXPECT_EQ(of_proxy.gpu->failures, 0U);
    for (const std::string name : {"\"kernel_seconds_estimate\": ", "\"charged_seconds\": "}) {
      EXPECT_NE(status.find(name), std::string::npos) << status;
      EXPECT_EQ(status.find(name + "0.0,"), std::string::npos) << status;
    }
  }
}

TEST_P(GpuProxy, ServesSeveralRunsAtOnce) {
  report::RunReport of_twins;
  const Sent twins = run_chain(false, of_twins);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      report::RunReport report;
      const Sent proxied = run_chain(true, report);
      ASSERT_EQ(twins.size(), proxied.size());
      EXPECT_EQ(report.gpu->failures, 0U);
    });
  }
}

/// What kernels of a tenant of 4q have filled that has several batches in flight.
struct Filled {
  unsigned blocks = 0;  // the most at a time
  std::size_t multiprocessors = 0;
  nlohmann::json status;
};
Filled filled_by_a_tenant(MultiprocessorShares shares) {
  ServerSettings settings;
  settings.path =
      (std::filesystem::temp_directory_path() / ("penstock-gpu-crowd-" + std::to_string(::getpid()))).string();
  settings.multiprocessors = shares;
  const std::string path = settings.path;
  const auto server = Server::start(std::move(settings), make_gpu_backend(0, kKernels));
  if (!server) return ADD_FAILURE() << to_string(server.error()), Filled{};
  Filled filled;
  FakeChain chain;
  chain.add_source("in", [&, polls = 0, poll = run::testing::script({run::testing::numbered_frames(20000)})](
                             unsigned worker, Batch& batch) mutable {
    if (++polls == 15) filled.status = nlohmann::json::parse(ask_for_status(path, false).value_or("null"));
    return poll(worker, batch);
  });
  auto& sink = chain.add_sink("out");
  add_block(chain, false, {}, "crowd");
  chain.settings.batch_bytes = 64 << 10;
  chain.settings.batch_packets = 500;
  chain.settings.queue_bytes = 4 << 20;
  chain.settings.streams = 8;
  chain.settings.processor = function::Processor::gpu;
  chain.settings.remote = remote_lanes(path, {"test", "4q"}).value();
  const unsigned none = 0;
  std::vector<std::uint8_t> on(kMostMultiprocessors);
  gpu::check(cudaMemcpyToSymbol(crowd_most, &none, sizeof none));
  gpu::check(cudaMemcpyToSymbol(crowd_on, on.data(), on.size()));
  const std::atomic<bool> stop{false};
  const auto result = run::run(chain, {}, stop);
  if (!result) return ADD_FAILURE() << to_string(result.error()), Filled{};
  EXPECT_EQ(result->report.gpu->failures, 0U);
  EXPECT_EQ(sink.sent[0].size(), 20000U);
  gpu::check(cudaMemcpyFromSymbol(&filled.blocks, crowd_most, sizeof filled.blocks));
  gpu::check(cudaMemcpyFromSymbol(on.data(), crowd_on, on.size()));
  filled.multiprocessors = static_cast<std::size_t>(std::ranges::count(on, 1));
  return filled;
}

TEST(GpuProxyShares, ATenantHasNoMoreBlocksThanItsMultiprocessorsHold) {
  gpu::use_device(0);
  const std::uint32_t share = Profile{4}.multiprocessors(gpu::multiprocessors_of_device());
  const std::uint32_t most = gpu::most_blocks_of_share(share, crowd, kCrowdThreads);
  const Filled limited = filled_by_a_tenant(MultiprocessorShares::blocks);
  EXPECT_GT(limited.blocks, 0U);
  EXPECT_LE(limited.blocks, most);
  EXPECT_GT(filled_by_a_tenant(MultiprocessorShares::all).blocks, most) << "nothing else limits it";
}

TEST(GpuProxyShares, ATenantHasTheMultiprocessorsOfItsGreenContextOnly) {
  gpu::use_device(0);
  const std::uint32_t all = gpu::multiprocessors_of_device();
  const Filled divided = filled_by_a_tenant(MultiprocessorShares::green_contexts);
  ASSERT_EQ(divided.status["tenants"].size(), 1U) << divided.status.dump(2);
  const auto most = divided.status["tenants"][0]["multiprocessors_most"].get<std::size_t>();
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, all / 4);
  EXPECT_EQ(divided.multiprocessors, most);
  EXPECT_EQ(filled_by_a_tenant(MultiprocessorShares::all).multiprocessors, all) << "nothing else limits it";
}

/// An illegal access, which ends the process's use of the device.
__global__ void write_to_nowhere() { *reinterpret_cast<volatile int*>(std::uintptr_t{64}) = 1; }

std::atomic<bool> told_to_fail{false}, told_to_end{false};
constexpr const char* kSocketVariable = "PENSTOCK_TEST_PROXY_SOCKET";
constexpr int kFail = SIGUSR1, kHang = SIGUSR2;

/// In a process of its own, which `GpuProxyRestart` starts.
TEST(GpuProxyProcess, DISABLED_ServesUntilItIsToldToEnd) {
  const char* const path = std::getenv(kSocketVariable);
  ASSERT_NE(path, nullptr);
  Inheritance inherited = take_inheritance(path);
  std::signal(kFail, [](int) { told_to_fail = true; });
  gpu::use_device(0);
  void* told = nullptr;
  gpu::check(cudaHostAlloc(&told, sizeof *told_to_hang, cudaHostAllocMapped));
  told_to_hang = new (told) std::atomic<unsigned>{0};
  std::signal(kHang, [](int) { *told_to_hang = 1; });
  std::signal(SIGTERM, [](int) { told_to_end = true; });
  ServerSettings settings;
  settings.path = path;
  settings.longest_batch = std::chrono::seconds{2};
  auto server = Server::start(std::move(settings), make_gpu_backend(0, kKernels), std::move(inherited));
  ASSERT_TRUE(server) << to_string(server.error());
  const std::jthread fails([](const std::stop_token& stop) {
    while (!told_to_fail && !stop.stop_requested()) ::usleep(1000);
    if (stop.stop_requested()) return;
    gpu::use_device(0);
    write_to_nowhere<<<1, 1>>>();
    static_cast<void>(cudaDeviceSynchronize());
  });
  const auto served = serve(**server, told_to_end);
  EXPECT_TRUE(served) << to_string(served.error());
  const EndLimit limit(**server, path);
  server->reset();
}

bool eventually(const auto& condition) {
  for (int i = 0; i < 30000; ++i, ::usleep(1000)) {
    if (condition()) return true;
  }
  return false;
}

/// A proxy in a process of its own, and a run whose packets go through it.
class GpuProxyRestart : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("COMPUTE_SANITIZER") != nullptr) GTEST_SKIP() << "what is wrong on purpose would be a finding";
    ::setenv(kSocketVariable, path_.c_str(), 1);
    std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    std::string filter = "--gtest_filter=GpuProxyProcess.*", disabled = "--gtest_also_run_disabled_tests";
    char* const arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&proxy_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
    ASSERT_TRUE(eventually([&] { return ask_for_status(path_, false).has_value(); }));
    chain_.add_source("in", [&](unsigned, Batch& batch) {
      if (ends_) return port::RxStatus::end;
      for (int i = 0; i < 50 && run::testing::append(batch, run::testing::numbered(number_)); ++i) ++number_;
      ::usleep(500);
      return port::RxStatus::idle;
    });
    sink_ = &chain_.add_sink("out");
    add_block(chain_, false, {}, "hang");
    chain_.settings.batch_bytes = 256 << 10;
    chain_.settings.batch_packets = 1000;
    chain_.settings.queue_bytes = 4 << 20;
    chain_.settings.processor = function::Processor::gpu;
    chain_.settings.remote = remote_lanes(path_, {"test", "2q"}).value();
    auto run = run::start(chain_, {}, stop_);
    ASSERT_TRUE(run) << to_string(run.error());
    run_ = std::move(*run);
  }
  void TearDown() override {
    ends_ = true;
    if (run_ != nullptr) static_cast<void>(run_->wait());
    if (proxy_ <= 0) return;
    ::kill(proxy_, SIGKILL);
    ::waitpid(proxy_, nullptr, 0);
  }

  [[nodiscard]] report::RunReport::Gpu gpu() const { return *run_->report().gpu; }
  [[nodiscard]] bool works() const {
    const std::uint64_t before = gpu().segments;
    return eventually([&] { return gpu().segments > before + 100; });
  }
  void tell_proxy(int signal) const { ::kill(proxy_, signal); }
  /// The proxy loses its device so many times by this signal: the run comes back to it each time.
  void expect_returns(int signal, std::uint64_t losses) const {
    for (std::uint64_t loss = 1; loss <= losses; ++loss) {
      EXPECT_TRUE(works());
      tell_proxy(signal);
      EXPECT_TRUE(eventually([&] { return gpu().proxy->losses == loss && gpu().proxy->connected; })) << loss;
    }
    EXPECT_TRUE(works());
    EXPECT_NE(ask_for_status(path_, true)->find("penstock_proxy_restarts_total " + std::to_string(losses)),
              std::string::npos);
    const std::uint64_t failures = gpu().failures;
    EXPECT_TRUE(works());
    EXPECT_EQ(gpu().failures, failures);
  }
  void expect_all_sent_in_order() {
    ends_ = true;
    static_cast<void>(run_->wait());
    run_.reset();
    ASSERT_EQ(sink_->sent[0].size(), number_);
    for (std::uint64_t i = 0; i < number_; ++i) {
      run::testing::Bytes expected = run::testing::numbered(i);
      --expected[22];  // TTL
      ASSERT_EQ(sink_->sent[0][i].bytes, expected) << i;
    }
  }
  /// Tells the proxy to end; its status.
  [[nodiscard]] int end_proxy() {
    tell_proxy(SIGTERM);
    int status = -1;
    EXPECT_TRUE(eventually([&] { return ::waitpid(proxy_, &status, WNOHANG) == proxy_; }));
    if (status >= 0) proxy_ = 0;
    EXPECT_FALSE(std::filesystem::exists(path_));
    return status;
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("penstock-gpu-restart-" + std::to_string(::getpid()))).string();
  pid_t proxy_ = 0;
  std::atomic<bool> ends_{false};
  std::uint64_t number_ = 0;
  FakeChain chain_;
  run::testing::FakePort* sink_ = nullptr;
  const std::atomic<bool> stop_{false};
  std::unique_ptr<run::Run> run_;  // last: uses all others
};

TEST_F(GpuProxyRestart, BringsARunBackAfterAnIllegalAccess) {
  expect_returns(kFail, 2);
  expect_all_sent_in_order();
  EXPECT_EQ(end_proxy(), 0);
}

TEST_F(GpuProxyRestart, BringsARunBackFromAKernelThatNeverEnds) {
  expect_returns(kHang, 2);
  expect_all_sent_in_order();
  EXPECT_EQ(end_proxy(), 0);
}

TEST_F(GpuProxyRestart, EndsWhileAKernelNeverEnds) {
  EXPECT_TRUE(works());
  tell_proxy(kHang);
  ::usleep(500'000);  // batches follow each other within milliseconds
  const int status = end_proxy();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE) << status;
  EXPECT_TRUE(eventually([&] { return !gpu().proxy->connected; }));
  expect_all_sent_in_order();
}

}  // namespace
}  // namespace penstock::proxy
