// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole runs whose lanes are in a proxy with a simulated device.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/shared_memory.h"
#include "gpu/cuda_error.h"
#include "process/remote_function.h"
#include "process/server.h"
#include "proxy/connection.h"
#include "proxy/loaded_of_run.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/testing/block_kernel.h"
#include "proxy/testing/lender.h"
#include "run/run.h"

namespace penstock::proxy {
namespace {

using run::testing::FakeChain;
using run::testing::number_of;
using run::testing::numbered_frames;
using testing::HostDevice;
using testing::Lender;

class Proxy : public ::testing::Test {
 protected:
  static constexpr std::size_t kPackets = 5000;

  void start(ServerSettings settings = {}) {
    settings.path = path_;
    auto server =
        Server::start(std::move(settings), std::make_unique<testing::HostBackend>(device_, testing::kBlockKernels));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }
  struct Outcome {
    report::RunReport report;
    std::vector<std::vector<run::testing::FakePort::Sent>> sent;
  };
  /// Of the frames through `functions`; `remote`: in the proxy.
  Outcome run_chain(
      bool remote, const std::function<void(FakeChain&)>& functions,
      const std::function<void(std::size_t polled)>& at_poll = [](std::size_t) {}) {
    FakeChain chain;
    auto poll = run::testing::script({numbered_frames(kPackets)});
    std::size_t polls = 0;
    auto& source = chain.add_source("in", [poll, at_poll, polls](unsigned worker, Batch& batch) mutable {
      at_poll(polls++);
      return poll(worker, batch);
    });
    std::optional<Lender> lender;
    if (lends_) {
      lender.emplace(kPackets, *lends_ == Lends::shared);
      source.poll = [&](unsigned, Batch& batch) { return lender->poll(batch, *source.packet_memory); };
      source.takes_back = [&](std::size_t frames) { lender->back += frames; };
    }
    auto& sink = chain.add_sink("out");
    functions(chain);
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    if (remote) {
      chain.settings.processor = function::Processor::gpu;
      chain.settings.proxy = path_;
      auto lanes = remote_lanes(path_, {"test", "", latency_});
      if (!lanes) {
        ADD_FAILURE() << to_string(lanes.error());
        return {};
      }
      chain.settings.remote = std::move(*lanes);
    }
    const std::atomic<bool> stop{false};
    auto result = run::run(chain, {}, stop);
    if (!result) {
      ADD_FAILURE() << to_string(result.error());
      return {};
    }
    if (lender) {
      EXPECT_EQ(lender->back, lender->lent());
      lent_ = lender->lent();
    }
    return {result->report, sink.sent};
  }
  static void expect_same(const Outcome& one, const Outcome& other) {
    ASSERT_EQ(one.sent.size(), other.sent.size());
    for (std::size_t w = 0; w < one.sent.size(); ++w) {
      ASSERT_EQ(one.sent[w].size(), other.sent[w].size());
      for (std::size_t i = 0; i < one.sent[w].size(); ++i) ASSERT_EQ(one.sent[w][i].bytes, other.sent[w][i].bytes);
    }
    EXPECT_EQ(one.report.forwarded.packets, other.report.forwarded.packets);
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       fmt::format("penstock-proxy-{}-{}", ::getpid(), ::testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
  enum class Lends : std::uint8_t { shared, other };
  std::optional<Lends> lends_;  // empty: the source copies frames into the batch
  std::size_t lent_ = 0;        // frames of the last run
  HostDevice device_;
  std::chrono::nanoseconds latency_{};  // bound of runs in the proxy
  std::unique_ptr<Server> server_;
};

void block_some(FakeChain& chain) { testing::add_block(chain, {1024}); }
void block_none(FakeChain& chain) { testing::add_block(chain, {}); }

TEST_F(Proxy, DoesWhatTheTwinsDo) {
  start();
  for (const auto& functions : {block_some, block_none}) {
    const Outcome twins = run_chain(false, functions);
    const Outcome proxied = run_chain(true, functions);
    expect_same(twins, proxied);
    ASSERT_TRUE(proxied.report.gpu);
    EXPECT_GT(proxied.report.gpu->segments, 0U);
    EXPECT_EQ(proxied.report.gpu->failures, 0U);
    EXPECT_GT(proxied.report.bytes_to_device, 0U);
  }
}

/// Between two functions on the device.
void block_twice(FakeChain& chain) {
  testing::add_block(chain, {1024});
  auto& between = chain.add_function("between", run::testing::each([](PacketView packet) {
                                       if (number_of(packet) % 5 == 0) return Verdict::drop(0);
                                       packet.ipv4().ttl = static_cast<std::uint8_t>(packet.ipv4().ttl + 7);
                                       return packet.packet->verdict;
                                     }));
  static constexpr std::string_view kReasons[] = {"fifth"};
  between.own_traits.drop_reasons = kReasons;
  between.own_traits.cpu = {testing::kBlockReads | FieldSet{Field::payload}, testing::kBlockWrites};
  testing::add_block(chain, {77}, 3);
}

TEST_F(Proxy, DoesWhatTheTwinsDoInSeveralSegments) {
  start();
  const Outcome twins = run_chain(false, block_twice);
  const Outcome proxied = run_chain(true, block_twice);
  expect_same(twins, proxied);
  EXPECT_EQ(proxied.report.gpu->segments % 2, 0U);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
}

TEST_F(Proxy, DoesWhatTheTwinsDoWithFramesThatPortsLend) {
  start();
  for (const auto& functions : {block_some, block_twice}) {
    const Outcome twins = run_chain(false, functions);
    lends_ = Lends::shared;
    const Outcome proxied = run_chain(true, functions);
    lends_.reset();
    EXPECT_EQ(lent_, kPackets - (kPackets + 2) / 3);
    expect_same(twins, proxied);
    EXPECT_GT(proxied.report.gpu->segments, 0U);
    EXPECT_EQ(proxied.report.gpu->failures, 0U);
    EXPECT_GT(proxied.report.bytes_to_device, 0U);
  }
}

TEST_F(Proxy, HasFramesCopiedThatItCannotMap) {
  start();
  const Outcome twins = run_chain(false, block_some);
  lends_ = Lends::other;
  const Outcome proxied = run_chain(true, block_some);
  EXPECT_EQ(lent_, 0U);
  expect_same(twins, proxied);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
}

/// Frames come back from the device to memory that the function's process does not have.
TEST_F(Proxy, DoesWhatTheTwinsDoAroundAFunctionOfAnotherProcess) {
  start();
  const auto fill = [](run::testing::FakeFunction& between) {
    static constexpr std::string_view kReasons[] = {"fifth"};
    between.own_traits.drop_reasons = kReasons;
    between.own_traits.cpu = {testing::kBlockReads | FieldSet{Field::payload}, testing::kBlockWrites};
    between.process = run::testing::each([](PacketView packet) {
      if (number_of(packet) % 5 == 0) return Verdict::drop(0);
      packet.ipv4().ttl = static_cast<std::uint8_t>(packet.ipv4().ttl + 7);
      return packet.packet->verdict;
    });
  };
  const std::string socket = path_ + "-function";
  const auto server = process::Server::start({socket}, [&](std::string_view, const process::Surroundings&) {
    auto function = std::make_unique<run::testing::FakeFunction>();
    fill(*function);
    return Result<std::unique_ptr<function::NetworkFunction>>(std::move(function));
  });
  ASSERT_TRUE(server);
  const auto functions = [&](bool apart) {
    return [&, apart](FakeChain& chain) {
      testing::add_block(chain, {1024});
      if (apart) {
        process::RemoteSettings settings;
        settings.socket = socket;
        settings.function = "fake";
        settings.patience = std::chrono::seconds{10};
        settings.surroundings.ports = {{.name = "in", .reads = true}, {.name = "out", .writes = true}};
        chain.functions.push_back({"fake", process::connect_function(std::move(settings)).value()});
      } else {
        fill(chain.add_function("fake", [](std::span<PacketView>) {}));
      }
      testing::add_block(chain, {77}, 3);
    };
  };
  const Outcome twins = run_chain(false, functions(false));
  const Outcome proxied = run_chain(true, functions(true));
  expect_same(twins, proxied);
  EXPECT_GT(proxied.report.gpu->segments, 0U);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
}

TEST_F(Proxy, UsesNewTablesAfterAReload) {
  start();
  FakeChain chain;
  std::atomic<bool> ends{false};
  std::uint64_t number = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) {
    if (ends) return port::RxStatus::end;
    while (number % 40 != 39 && run::testing::append(batch, run::testing::numbered(number))) ++number;
    ++number;
    ::usleep(200);
    return port::RxStatus::idle;
  });
  auto& sink = chain.add_sink("out");
  testing::add_block(chain, {1024});
  chain.settings.batch_bytes = 16 << 10;
  chain.settings.batch_packets = 64;
  chain.settings.queue_bytes = 1 << 20;
  chain.settings.processor = function::Processor::gpu;
  auto lanes = remote_lanes(path_, {"test", ""});
  ASSERT_TRUE(lanes);
  chain.settings.remote = std::move(*lanes);
  const std::atomic<bool> stop{false};
  auto running = run::start(chain, {}, stop);
  ASSERT_TRUE(running) << to_string(running.error());
  ::usleep(100000);
  for (const testing::Ports& ports : {testing::Ports{}, testing::Ports{1024}, testing::Ports{}}) {
    FakeChain other;
    testing::add_block(other, ports);
    run::Functions next;
    next.push_back(std::move(other.functions.front().function));
    const auto applied = (*running)->apply(std::move(next));
    ASSERT_TRUE(applied) << to_string(applied.error());
    const std::uint64_t before = (*running)->report().forwarded.packets;
    ::usleep(100000);
    const std::uint64_t after = (*running)->report().forwarded.packets;
    EXPECT_TRUE(after > before || !ports.empty());
  }
  ends = true;
  const run::RunResult result = (*running)->wait();
  EXPECT_EQ(result.report.gpu->failures, 0U);
  EXPECT_EQ(result.report.in.packets, result.report.forwarded.packets + result.report.dropped.packets);
  EXPECT_GT(result.report.dropped.packets, 0U);
  EXPECT_EQ(sink.sent[0].size(), result.report.forwarded.packets);
}

TEST_F(Proxy, ShowsATracedPacketAsItIsOnTheDevice) {
  start();
  const auto trace = [this](bool remote) {
    FakeChain chain;
    chain.add_source("in", run::testing::script({numbered_frames(100)}));
    chain.add_sink("out");
    block_none(chain);
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    if (remote) {
      chain.settings.processor = function::Processor::gpu;
      chain.settings.remote = remote_lanes(path_, {"test", ""}).value();
    }
    std::FILE* const out = std::tmpfile();
    run::RunOptions options;
    options.trace_packets = 3;
    options.trace_out = out;
    const std::atomic<bool> stop{false};
    const auto result = run::run(chain, options, stop);
    EXPECT_TRUE(result);
    std::string text(1 << 16, '\0');
    std::rewind(out);
    text.resize(std::fread(text.data(), 1, text.size(), out));
    std::fclose(out);
    return text;
  };
  const std::string proxied = trace(true);
  EXPECT_NE(proxied.find("block"), std::string::npos);
  EXPECT_NE(proxied.find("ttl"), std::string::npos) << proxied;
}

TEST_F(Proxy, LosesNoPacketIfItGoesDuringTheRun) {
  start();
  const Outcome twins = run_chain(false, block_some);
  const Outcome proxied = run_chain(true, block_some, [this](std::size_t polled) {
    if (polled == 20) server_.reset();
  });
  expect_same(twins, proxied);
  EXPECT_GT(proxied.report.gpu->failures, 0U);
}

TEST_F(Proxy, LosesNoPacketIfItsDeviceFails) {
  start();
  const Outcome twins = run_chain(false, block_some);
  const Outcome proxied = run_chain(true, block_some, [this](std::size_t polled) { device_.fails = polled % 7 == 3; });
  expect_same(twins, proxied);
  EXPECT_GT(proxied.report.gpu->failures, 0U);
}

TEST_F(Proxy, RefusesAProfileForWhichThereIsNoRoom) {
  start();
  const auto large = remote_lanes(path_, {"large", "8q"});
  const auto small = remote_lanes(path_, {"small", "4q"});
  ASSERT_TRUE(large);
  ASSERT_TRUE(small);
  const auto more = remote_lanes(path_, {"more", "8q"});
  ASSERT_FALSE(more);
  EXPECT_EQ(to_string(more.error()),
            path_ +
                ": the proxy refuses: no room for a tenant of profile 8q: found 12 of 16 sixteenths in use (large "
                "8q, small 4q), expected at most profile 4q");
  EXPECT_TRUE(remote_lanes(path_, {"fits", "4q"}));
  const auto unknown = remote_lanes(path_, {"unknown", "3q"});
  ASSERT_FALSE(unknown);
  EXPECT_NE(to_string(unknown.error()).find("no such profile: found '3q', expected 1q, 2q, 4q, 8q or 16q"),
            std::string::npos);
}

TEST_F(Proxy, NamesTheLargestProfileThatFitsAndAsManyTenantsAsThereIsRoomFor) {
  start();
  std::vector<std::shared_ptr<Connection>> tenants;
  const auto why_no_room = [&](const std::string& profile) {
    const auto refused = Connection::open(path_, {"late", profile});
    return refused ? "" : to_string(refused.error());
  };
  for (int t = 0; t < 16; ++t) {
    if (t == 3) {
      EXPECT_THAT(why_no_room("16q"), ::testing::EndsWith("expected at most profile 8q"));
    }
    tenants.push_back(Connection::open(path_, {fmt::format("/etc/penstock/tenants/{}.yaml", t)}).value());
  }
  EXPECT_THAT(why_no_room("1q"), ::testing::EndsWith("/6.yaml 1q, /etc/penstock/tenants/7.yaml 1q and 8 others), "
                                                     "expected the end of a tenant"));
}

TEST_F(Proxy, RefusesMoreMemoryThanTheProfileHas) {
  device_.memory = std::uint64_t{8} << 20;
  start();
  FakeChain chain;
  chain.add_source("in", run::testing::script({numbered_frames(10)}));
  chain.add_sink("out");
  block_some(chain);
  chain.settings.processor = function::Processor::gpu;
  chain.settings.batch_bytes = 1 << 20;
  auto lanes = remote_lanes(path_, {"test", "1q"});
  ASSERT_TRUE(lanes);
  chain.settings.remote = std::move(*lanes);
  const std::atomic<bool> stop{false};
  try {
    static_cast<void>(run::run(chain, {}, stop));
    FAIL() << "there is no room for a lane";
  } catch (const gpu::CudaError& error) {
    EXPECT_NE(std::string(error.what()).find("more memory on the device than the tenant may have"), std::string::npos)
        << error.what();
  }
}

/// Such as a queue that is larger than what the proxy allows.
TEST_F(Proxy, SaysThatATenantHasMoreHostMemoryThanItAllows) {
  ServerSettings settings;
  settings.host_bytes = 1 << 20;
  start(std::move(settings));
  const auto connection = Connection::open(path_, {"large"}).value();
  constexpr std::size_t kBytes = 2 << 20;
  const std::span<std::uint8_t> memory(static_cast<std::uint8_t*>(map_memory(kBytes, true)), kBytes);
  try {
    const RemoteMemory opened(connection, memory, MemoryUser::device);
    ADD_FAILURE() << "it is too large";
  } catch (const gpu::CudaError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("more host memory for the device than the tenant may have: found 2.0 "
                                     "MiB more with 0 B in use, expected at most 1.0 MiB (`penstock proxy "
                                     "serve --host-memory`)"));
  }
  unmap_memory(memory.data(), memory.size());
}

TEST_F(Proxy, SaysWhatItsTenantsDo) {
  start();
  nlohmann::json during;
  run_chain(true, block_some, [&](std::size_t polled) {
    if (polled != 40) return;
    ::usleep(50000);  // until the batches on the device are done
    during = nlohmann::json::parse(ask_for_status(path_, false).value());
  });
  ASSERT_EQ(during["tenants"].size(), 1U);
  const auto& tenant = during["tenants"][0];
  EXPECT_EQ(tenant["name"], "test");
  EXPECT_EQ(tenant["pid"], ::getpid());
  EXPECT_EQ(tenant["profile"], "1q");
  EXPECT_GT(tenant["packets"], 0);
  EXPECT_GT(tenant["bytes_to_device"], 0);
  EXPECT_GT(tenant["device_memory"], 0);
  EXPECT_GT(tenant["device_seconds"], 0);
  EXPECT_GT(tenant["charged_seconds"], 0);
  EXPECT_GE(tenant["device_seconds"], tenant["charged_seconds"]) << "batches share the device";
  EXPECT_GE(tenant["waiting_seconds"], 0);
  // A timed batch stands for those since the one before it, and the first of each lane for itself.
  EXPECT_GT(device_.timed.load(), 0);
  EXPECT_LT(device_.timed.load(), tenant["batches"].get<int>());
  EXPECT_GE(tenant["kernel_seconds_estimate"], 10e-6);
  EXPECT_LE(tenant["kernel_seconds_estimate"], 10e-6 * tenant["batches"].get<double>() * (1 + 1e-9));
  EXPECT_NEAR(tenant["transfer_seconds_estimate"], tenant["kernel_seconds_estimate"].get<double>() * 0.3, 1e-9);
  EXPECT_GT(tenant["latency_p99_us"], 0);
  EXPECT_FALSE(tenant.contains("latency_bound_us"));
  EXPECT_GT(tenant["attach_ms"], 0) << "its first batch has tried a lane";
  for (const char* const part : {"memory_ms", "tables_ms", "lanes_ms"})
    EXPECT_GT(tenant["attach_parts"][part], 0) << part;
  EXPECT_EQ(during["detached"], 0);
  const auto is_detached = [&] {
    return ask_for_status(path_, true)->find("penstock_proxy_detached_total 1\n") != std::string::npos;
  };
  for (int i = 0; i < 500 && !is_detached(); ++i) ::usleep(10000);
  const auto after = nlohmann::json::parse(ask_for_status(path_, false).value());
  EXPECT_EQ(after["device"], "a simulated device");
  EXPECT_EQ(after["scheduler"], "weighted");
  EXPECT_EQ(after["detached"], 1);
  EXPECT_GT(after["detach_seconds"], 0);
  EXPECT_NE(ask_for_status(path_, true)->find("penstock_proxy_device_lost 0"), std::string::npos);
}

TEST_F(Proxy, SaysThatATenantIsNotAttachedBeforeItsFirstBatch) {
  start();
  const auto lanes = remote_lanes(path_, {"idle", "1q"});
  ASSERT_TRUE(lanes);
  const auto status = nlohmann::json::parse(ask_for_status(path_, false).value());
  EXPECT_EQ(status["tenants"][0]["attach_ms"], nullptr);
  EXPECT_NE(ask_for_status(path_, true)->find("penstock_proxy_attach_seconds{tenant=\"idle\""), std::string::npos);
  EXPECT_NE(ask_for_status(path_, true)->find("} NaN\n"), std::string::npos);
  for (const char* const part : {"memory", "tables", "lanes"}) {
    const std::string metric = fmt::format("penstock_proxy_attach_{}_seconds{{tenant=\"idle\"", part);
    EXPECT_NE(ask_for_status(path_, true)->find(metric), std::string::npos) << metric;
  }
}

TEST_F(Proxy, WritesMetricsThatPrometheusReads) {
  start();
  const auto repeated = [](std::string_view text, int times) {
    std::string all;
    while (times-- > 0) all += text;
    return all;
  };
  const std::string folder = "/a/long/way/to/a/folder/that/is/the/same/for/both/of/them/";
  const auto one = Connection::open(path_, {folder + "é.yaml"}), same = Connection::open(path_, {folder + "é.yaml"}),
             other = Connection::open(path_, {folder + "wan.yaml"}), odd = Connection::open(path_, {"a\"\\\n\xc3z"}),
             cut = Connection::open(path_, {"x" + repeated("é", 40)});
  ASSERT_TRUE(one && same && other && odd && cut);
  const std::string metrics = ask_for_status(path_, true).value();
  const auto has = [&](std::string_view tenant, int number) {
    return metrics.find(
               fmt::format("penstock_proxy_batches_total{{tenant=\"{}\",pid=\"{}\",number=\"{}\",profile=\"1q\"}} 0",
                           tenant, ::getpid(), number)) != std::string::npos;
  };
  EXPECT_TRUE(has("…" + folder.substr(folder.size() - 54) + "é.yaml", 1)) << metrics;
  EXPECT_TRUE(has("…" + folder.substr(folder.size() - 54) + "é.yaml", 2));
  EXPECT_TRUE(has("…" + folder.substr(folder.size() - 53) + "wan.yaml", 3));
  EXPECT_TRUE(has("a\\\"\\\\?\uFFFDz", 4));
  EXPECT_TRUE(has("…" + repeated("é", 30), 5)) << "no character is cut";
}

TEST_F(Proxy, SaysWhetherALatencyBoundHolds) {
  ServerSettings settings;
  settings.policy = Policy::deadline;
  start(settings);
  const Outcome twins = run_chain(false, block_some);
  for (const bool holds : {true, false}) {
    const std::chrono::nanoseconds bound = holds ? std::chrono::seconds(5) : std::chrono::microseconds(1);
    latency_ = bound;
    device_.polls = holds ? 1 : 100;
    std::string metrics;
    nlohmann::json during;
    ::testing::internal::CaptureStderr();
    const Outcome proxied = run_chain(true, block_some, [&](std::size_t polled) {
      if (polled != 60) return;
      ::usleep(holds ? 200'000 : 2'500'000);  // until the proxy has looked several times
      during = nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0];
      metrics = ask_for_status(path_, true).value();
    });
    const std::string log = ::testing::internal::GetCapturedStderr();
    expect_same(twins, proxied);
    EXPECT_EQ(proxied.report.gpu->failures, 0U);
    EXPECT_EQ(during["latency_bound_us"], static_cast<double>(bound.count()) / 1e3);
    EXPECT_EQ(during["bound_holds"], holds) << during;
    EXPECT_GT(during["reserved"], 0);
    EXPECT_EQ(during["late_batches"] > 0, !holds) << during;
    EXPECT_EQ(log.find("tenant test: its latency bound of 1 us cannot hold: ") != std::string::npos, !holds) << log;
    EXPECT_NE(metrics.find("penstock_proxy_bound_holds{"), std::string::npos);
    EXPECT_NE(metrics.find("penstock_proxy_late_batches_total{"), std::string::npos);
  }
  const auto lanes = remote_lanes(path_, {"slow", "", std::chrono::seconds(11)});
  ASSERT_FALSE(lanes);
  EXPECT_NE(to_string(lanes.error()).find("a latency bound that is too long: found 11000000 us, expected at most"),
            std::string::npos)
      << to_string(lanes.error());
}

TEST_F(Proxy, LimitsBlocksByProfile) {
  ServerSettings settings;
  settings.profile = {4};
  settings.multiprocessors = MultiprocessorShares::blocks;
  start(settings);
  const Outcome twins = run_chain(false, block_twice);
  nlohmann::json during;
  std::string metrics;
  const Outcome proxied = run_chain(true, block_twice, [&](std::size_t polled) {
    if (polled != 40) return;
    during = nlohmann::json::parse(ask_for_status(path_, false).value());
    metrics = ask_for_status(path_, true).value();
  });
  expect_same(twins, proxied);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
  EXPECT_EQ(device_.stage_limits(), std::set<std::uint32_t>{8}) << "132 / 4 of the tenant, / 4 of a batch";
  EXPECT_EQ(during["multiprocessors"], 132);
  EXPECT_EQ(during["multiprocessor_shares"], "blocks");
  ASSERT_EQ(during["tenants"].size(), 1U);
  EXPECT_EQ(during["tenants"][0]["multiprocessors_most"], 33);
  EXPECT_EQ(during["tenants"][0]["batches_most"], 4);
  EXPECT_NE(metrics.find("profile=\"4q\"} 33\n"), std::string::npos) << metrics;
}

TEST_F(Proxy, LimitsBatchesToTheMultiprocessorsOfTheTenant) {
  device_.multiprocessors = 40;  // 2 of 1q
  ServerSettings settings;
  settings.multiprocessors = MultiprocessorShares::blocks;
  start(settings);
  nlohmann::json during;
  run_chain(true, block_some, [&](std::size_t polled) {
    if (polled == 40) during = nlohmann::json::parse(ask_for_status(path_, false).value());
  });
  ASSERT_EQ(during["tenants"].size(), 1U);
  EXPECT_EQ(during["tenants"][0]["multiprocessors_most"], 2);
  EXPECT_EQ(during["tenants"][0]["batches_most"], 2);
  EXPECT_EQ(device_.stage_limits(), std::set<std::uint32_t>{1});
}

TEST_F(Proxy, GivesEachTenantAGreenContextByProfile) {
  ServerSettings settings;
  settings.profile = {4};
  settings.multiprocessors = MultiprocessorShares::green_contexts;
  start(settings);
  const Outcome twins = run_chain(false, block_twice);
  nlohmann::json during;
  std::string metrics;
  unsigned taken = 0;
  const Outcome proxied = run_chain(true, block_twice, [&](std::size_t polled) {
    if (polled != 40) return;
    during = nlohmann::json::parse(ask_for_status(path_, false).value());
    metrics = ask_for_status(path_, true).value();
    taken = device_.sixteenths_taken;
  });
  expect_same(twins, proxied);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
  EXPECT_EQ(device_.lane_parts(), std::set<std::uint32_t>{32}) << "of 16 groups of 8";
  EXPECT_EQ(device_.stage_limits(), std::set<std::uint32_t>{32});
  EXPECT_EQ(taken, 4U);
  EXPECT_EQ(during["multiprocessor_shares"], "green-contexts");
  ASSERT_EQ(during["tenants"].size(), 1U);
  EXPECT_EQ(during["tenants"][0]["multiprocessors_most"], 32);
  EXPECT_FALSE(during["tenants"][0].contains("batches_most")) << "they share the green context";
  EXPECT_NE(metrics.find("profile=\"4q\"} 32\n"), std::string::npos) << metrics;
  server_.reset();
  EXPECT_EQ(device_.sixteenths_taken, 0U);
}

TEST_F(Proxy, DoesNotStartWithoutTheGreenContextsThatItIsToUse) {
  device_.has_green_contexts = false;
  ServerSettings settings;
  settings.path = path_;
  settings.multiprocessors = MultiprocessorShares::green_contexts;
  const auto server = Server::start(settings, std::make_unique<testing::HostBackend>(device_, testing::kBlockKernels));
  ASSERT_FALSE(server);
  EXPECT_EQ(to_string(server.error()),
            "the multiprocessors of a simulated device cannot be divided by green contexts: found the driver has no "
            "green contexts, expected a driver and a GPU that can, or --multiprocessors blocks");
}

TEST_F(Proxy, LeavesAllMultiprocessorsToEachUnlessToldOtherwise) {
  start();
  nlohmann::json during;
  run_chain(true, block_some, [&](std::size_t polled) {
    if (polled == 40) during = nlohmann::json::parse(ask_for_status(path_, false).value());
  });
  EXPECT_EQ(device_.stage_limits(), std::set<std::uint32_t>{0});
  EXPECT_EQ(device_.lane_parts(), std::set<std::uint32_t>{0});
  EXPECT_EQ(during["multiprocessor_shares"], "all");
  EXPECT_FALSE(during["tenants"][0].contains("multiprocessors_most"));
}

TEST(Profile, NeverGivesMoreMultiprocessorsThanThereAre) {
  for (const std::uint32_t of_device : {16U, 84U, 108U, 132U, 160U}) {
    for (unsigned units = 1; units <= Profile::kWhole; units *= 2) {
      const std::uint32_t of_each = Profile{units}.multiprocessors(of_device);
      EXPECT_GE(of_each, 1U);
      EXPECT_LE(of_each * (Profile::kWhole / units), of_device) << units << " of " << of_device;
    }
  }
  EXPECT_EQ(Profile{1}.multiprocessors(132), 8U);
  EXPECT_EQ(Profile{16}.multiprocessors(132), 132U);
  EXPECT_EQ(Profile{1}.multiprocessors(8), 1U) << "a device that cannot be divided by 16";
}

TEST_F(Proxy, ChangesItsSchedulerWhileItRuns) {
  start();
  const Outcome twins = run_chain(false, block_some);
  const Outcome proxied = run_chain(true, block_some, [this](std::size_t polled) {
    if (polled % 10 != 0) return;
    EXPECT_TRUE(ask_for_policy(path_, static_cast<Policy>(polled / 10 % std::size(kPolicyNames))));
  });
  expect_same(twins, proxied);
}

TEST_F(Proxy, LogsWhoChangesItsScheduler) {
  start();
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(ask_for_policy(path_, Policy::weighted)) << "which it is already";
  EXPECT_TRUE(ask_for_policy(path_, Policy::deadline));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log, ::testing::HasSubstr(fmt::format(
               "the scheduler is deadline, and was weighted: set by process {} of user {}\n", ::getpid(), ::getuid())));
  EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr("the scheduler is weighted")));
}

/// Whether a proxy says why it refuses this user, whatever is asked.
bool says_why_refused(const std::string& path) {
  const auto status = ask_for_status(path, false);
  const auto set = ask_for_policy(path, Policy::equal);
  const auto tenant = Connection::open(path, {"no tenant"});
  if (status || set || tenant) return false;
  const std::string why = fmt::format(
      "{}: the proxy refuses: this user may not use it: found user {}, expected one of those that `penstock "
      "proxy serve` allows (--allow-user, --allow-group)",
      path, ::geteuid());
  return to_string(status.error()) == why && to_string(set.error()) == why && to_string(tenant.error()) == why;
}

/// Whether this user, in these groups besides, may be a tenant.
bool lets_in(const std::string& path, uid_t user, gid_t group, const std::vector<gid_t>& groups) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool changed = ::setgroups(groups.size(), groups.data()) == 0 && ::setresgid(group, group, group) == 0 &&
                         ::setresuid(user, user, user) == 0;
    ::_exit(!changed ? 2 : ask_for_status(path, false) ? 0 : says_why_refused(path) ? 1 : 3);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(Proxy, LetsInOnlyWhoIsAllowed) {
  ServerSettings settings;
  settings.mode = 0666;
  settings.users = {12345};
  settings.groups = {23456};
  start(settings);
  EXPECT_TRUE(remote_lanes(path_, {"own user", ""}));  // the proxy's own user
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be others";
  EXPECT_TRUE(lets_in(path_, 12345, 1, {}));
  EXPECT_TRUE(lets_in(path_, 1, 23456, {}));
  EXPECT_FALSE(lets_in(path_, 1, 1, {}));
  std::vector<gid_t> many(100, 2);
  EXPECT_FALSE(lets_in(path_, 1, 1, many));
  many.back() = 23456;
  EXPECT_TRUE(lets_in(path_, 1, 1, many)) << "not only the primary group counts";
}

TEST_F(Proxy, LimitsTheSixteenthsOfAUser) {
  ServerSettings settings;
  settings.user_units = 4;
  start(settings);
  const auto one = remote_lanes(path_, {"one", "2q"});
  ASSERT_TRUE(one);
  const auto more = remote_lanes(path_, {"more", "4q"});
  ASSERT_FALSE(more);
  EXPECT_EQ(to_string(more.error()),
            fmt::format("{}: the proxy refuses: no room for a tenant of profile 4q of user {}: "
                        "found 2 sixteenths in use by tenants of the user, expected at most 4 "
                        "for each user",
                        path_, ::geteuid()));
  EXPECT_TRUE(remote_lanes(path_, {"fits", "2q"}));
}

TEST_F(Proxy, GivesATenantNoMoreThanItAsksFor) {
  device_.memory = std::uint64_t{1} << 30;
  ServerSettings settings;
  settings.batches = 16;
  settings.unit_bytes_per_second = 1'000'000'000;
  start(settings);
  const auto limits_of = [&](const run::RemoteLimits& limits) {
    const auto lanes = remote_lanes(path_, {"test", "4q", {}, limits});
    EXPECT_TRUE(lanes);
    return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0];
  };
  const auto wait_until_empty = [&] {
    for (int i = 0; i < 500 && ask_for_status(path_, false)->find("\"pid\"") != std::string::npos; ++i) ::usleep(10000);
  };
  auto tenant = limits_of({});
  EXPECT_EQ(tenant["device_memory_most"], std::uint64_t{256} << 20);
  EXPECT_EQ(tenant["batches_most"], 16);
  EXPECT_EQ(tenant["bytes_per_second_most"], 4'000'000'000U) << "four sixteenths";
  wait_until_empty();
  tenant = limits_of({std::uint64_t{64} << 20, 1'000'000, 3});
  EXPECT_EQ(tenant["device_memory_most"], std::uint64_t{64} << 20);
  EXPECT_EQ(tenant["batches_most"], 3);
  EXPECT_EQ(tenant["bytes_per_second_most"], 1'000'000);
  wait_until_empty();
  tenant = limits_of({0, 9'000'000'000, 100});
  EXPECT_EQ(tenant["batches_most"], 16) << "not more than the proxy allows";
  EXPECT_EQ(tenant["bytes_per_second_most"], 4'000'000'000U);
  wait_until_empty();
  const auto large = remote_lanes(path_, {"large", "4q", {}, {std::uint64_t{257} << 20, 0, 0}});
  ASSERT_FALSE(large);
  EXPECT_NE(to_string(large.error()).find("profile 4q has less memory: found 257.0 MiB, expected at most 256.0 MiB"),
            std::string::npos)
      << to_string(large.error());
}

TEST_F(Proxy, LimitsTheRateOfAUser) {
  ServerSettings settings;
  settings.policy = Policy::best_effort;
  constexpr double kRate = 10e6;
  settings.user_bytes_per_second = static_cast<std::uint64_t>(kRate);
  start(settings);
  const Outcome twins = run_chain(false, block_some);
  const auto begun = std::chrono::steady_clock::now();
  const Outcome proxied = run_chain(true, block_some);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  expect_same(twins, proxied);
  EXPECT_EQ(proxied.report.gpu->failures, 0U);
  // All but a few batches have been paid for; each counts as 64 KiB at least.
  constexpr double kBatchBytes = 64 << 10;
  ASSERT_GT(proxied.report.gpu->segments, 20U);
  EXPECT_LT((static_cast<double>(proxied.report.gpu->segments) - 6) * kBatchBytes / seconds, kRate);
}

/// A function of `block` whose ports change while the run goes on.
class LiveBlock {
 public:
  void add_to(FakeChain& chain) {
    testing::add_block(chain, {});
    auto& function = static_cast<run::testing::FakeFunction&>(*chain.functions.back().function);
    function.recipe = [this] {
      const std::lock_guard lock(mutex_);
      ++recipes_;
      return std::optional(testing::block_recipe(ports_, step_));
    };
    function.version = [this] { return std::optional(version_.load()); };
    function.process = run::testing::each([this](PacketView packet) {
      const std::lock_guard lock(mutex_);
      return testing::block(packet, ports_, step_);
    });
  }
  void set(testing::Ports ports, std::uint8_t step = 1) {
    const std::lock_guard lock(mutex_);
    ports_ = std::move(ports);
    step_ = step;
    ++version_;
  }
  [[nodiscard]] int recipes() const {
    const std::lock_guard lock(mutex_);
    return recipes_;
  }

 private:
  mutable std::mutex mutex_;  // guards the next three members
  testing::Ports ports_;
  std::uint8_t step_ = 1;
  int recipes_ = 0;
  std::atomic<std::uint64_t> version_{0};
};

/// A run with such a function, whose packets have the source port 1024.
class LiveRun {
 public:
  LiveRun(const std::string& path, LiveBlock& block, const std::string& profile = "1q") {
    chain_.add_source("in", [this](unsigned, Batch& batch) {
      if (ends_) return port::RxStatus::end;
      if (!flows_) return ::usleep(1000), port::RxStatus::idle;
      for (int i = 0; i < 20 && run::testing::append(batch, run::testing::numbered(number_)); ++i) ++number_;
      ::usleep(200);
      return port::RxStatus::idle;
    });
    sink_ = &chain_.add_sink("out");
    block.add_to(chain_);
    chain_.settings.batch_bytes = 16 << 10;
    chain_.settings.batch_packets = 64;
    chain_.settings.queue_bytes = 1 << 20;
    chain_.settings.processor = function::Processor::gpu;
    chain_.settings.remote = remote_lanes(path, {"live", profile}).value();
    run_ = run::start(chain_, {}, never_).value();
  }
  void let_flow(bool flows) { flows_ = flows; }
  [[nodiscard]] report::RunReport report() const { return run_->report(); }
  /// Whether all packets that come from now on are dropped, or none is.
  [[nodiscard]] bool drops(bool all) const {
    for (int i = 0; i < 1000; ++i) {
      const auto before = report();
      ::usleep(10'000);
      const auto after = report();
      const auto dropped = after.dropped.packets - before.dropped.packets;
      const auto forwarded = after.forwarded.packets - before.forwarded.packets;
      if ((all ? dropped : forwarded) > 0 && (all ? forwarded : dropped) == 0) return true;
    }
    return false;
  }
  report::RunReport end() {
    ends_ = true;
    report::RunReport report = run_->wait().report;
    EXPECT_EQ(report.in.packets, report.forwarded.packets + report.dropped.packets);
    EXPECT_EQ(sink_->sent[0].size(), report.forwarded.packets) << "no packet is lost, none comes twice";
    return report;
  }

 private:
  const std::atomic<bool> never_{false};
  std::atomic<bool> ends_{false}, flows_{true};
  std::uint64_t number_ = 0;
  FakeChain chain_;
  run::testing::FakePort* sink_ = nullptr;
  std::unique_ptr<run::Run> run_;
};

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    ::usleep(10'000);
  }
  return false;
}

TEST_F(Proxy, FollowsTablesThatChangeWhileTheyAreUsed) {
  start();
  LiveBlock block;
  LiveRun run(path_, block);
  const auto tenant = [&] { return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0]; };
  ASSERT_TRUE(run.drops(false));
  const auto memory = tenant()["device_memory"].get<std::uint64_t>();
  for (const std::uint64_t round : {1U, 2U, 3U}) {
    block.set({1, 2, 3, 1024});
    EXPECT_TRUE(run.drops(true)) << round;
    EXPECT_TRUE(eventually([&] { return tenant()["device_memory"] == memory + 8; })) << "one version of four ports";
    block.set({});
    EXPECT_TRUE(run.drops(false)) << round;
    EXPECT_TRUE(eventually([&] { return tenant()["device_memory"] == memory; })) << "nothing is left of former tables";
  }
  EXPECT_GE(tenant()["table_updates"], 6);
  EXPECT_NE(ask_for_status(path_, true)->find("penstock_proxy_table_updates_total{"), std::string::npos);
  const report::RunReport report = run.end();
  EXPECT_EQ(report.gpu->failures, 0U);
  EXPECT_EQ(report.gpu->proxy->losses, 0U) << "its lanes stay";
}

TEST_F(Proxy, FollowsTablesWhileNoPacketsFlow) {
  start();
  LiveBlock block;
  LiveRun run(path_, block);
  const auto updates = [&] {
    return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0]["table_updates"].get<int>();
  };
  ASSERT_TRUE(run.drops(false));
  run.let_flow(false);
  for (const int round : {1, 2, 3}) {
    block.set({static_cast<std::uint16_t>(round)});
    EXPECT_TRUE(eventually([&] { return updates() == round; })) << "lanes without batches let the former tables go";
  }
  block.set({1024});
  EXPECT_TRUE(eventually([&] { return updates() == 4; }));
  run.let_flow(true);
  EXPECT_TRUE(run.drops(true));
  EXPECT_EQ(run.end().gpu->failures, 0U);
}

TEST_F(Proxy, ExchangesTablesOnceForManyChanges) {
  start();
  LiveBlock block;
  LiveRun run(path_, block);
  ASSERT_TRUE(run.drops(false));
  constexpr int kChanges = 10'000;
  const int before = block.recipes();
  for (int i = 0; i < kChanges; ++i) block.set({static_cast<std::uint16_t>(1 + i % 1000)});
  block.set({1024});
  EXPECT_TRUE(run.drops(true)) << "the last one counts";
  EXPECT_LT(block.recipes() - before, kChanges / 10);
  EXPECT_EQ(run.end().gpu->failures, 0U);
}

TEST_F(Proxy, TablesOfWhichTwoDoNotFitMakeTheRunConnectAnew) {
  constexpr std::size_t kPorts = 50'000;
  const auto memory_with = [&](std::size_t ports) {
    LiveBlock block;
    block.set(testing::Ports(ports, 1));
    LiveRun run(path_, block, "16q");
    const auto status = nlohmann::json::parse(ask_for_status(path_, false).value());
    EXPECT_EQ(run.end().gpu->failures, 0U);
    return status["tenants"][0]["device_memory"].get<std::uint64_t>();
  };
  start();
  const std::uint64_t one = memory_with(kPorts);
  ASSERT_TRUE(
      eventually([&] { return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"].empty(); }));
  device_.memory = one + kPorts;  // half of the second version
  LiveBlock block;
  block.set(testing::Ports(kPorts, 1));
  LiveRun run(path_, block, "16q");
  ASSERT_TRUE(run.drops(false));
  testing::Ports others(kPorts, 1);
  others.front() = 1024;
  block.set(others);
  EXPECT_TRUE(eventually([&] { return run.report().gpu->proxy->losses >= 1; }));
  EXPECT_TRUE(eventually([&] { return run.report().gpu->proxy->connected; }));
  EXPECT_TRUE(run.drops(true)) << "with the new tables";
  const std::uint64_t segments = run.report().gpu->segments;
  EXPECT_TRUE(eventually([&] { return run.report().gpu->segments > segments + 20; })) << "on the device";
  static_cast<void>(run.end());
}

/// It may take a minute, if the function's process does not say where its tables are.
TEST_F(Proxy, FollowsAndForgetsTablesWhileThoseOfAnotherFunctionAreMade) {
  start();
  FakeChain chain;
  LiveBlock block;
  block.add_to(chain);
  testing::add_block(chain, {});
  auto& slow = static_cast<run::testing::FakeFunction&>(*chain.functions.back().function);
  std::promise<void> asked, may_answer;
  slow.recipe = [&] {
    asked.set_value();
    static_cast<void>(may_answer.get_future().wait_for(std::chrono::seconds{60}));
    return std::optional(testing::block_recipe({}, 1));
  };
  const auto loaded = std::make_shared<LoadedOfRun>(Connection::open(path_, {"test"}).value());
  auto tables = loaded->tables_of(*chain.functions.front().function);
  std::jthread maker([&] { EXPECT_NE(loaded->tables_of(slow), nullptr); });
  asked.get_future().wait();
  const int before = block.recipes();
  block.set({1});
  EXPECT_TRUE(eventually([&] { return block.recipes() > before; }));
  tables.reset();
  may_answer.set_value();
}

TEST_F(Proxy, SaysThatNobodyListens) {
  const auto lanes = remote_lanes(path_, {"test", ""});
  ASSERT_FALSE(lanes);
  EXPECT_EQ(to_string(lanes.error()),
            path_ +
                ": cannot connect to the proxy: found No such file or directory, expected the socket of a running "
                "`penstock proxy serve`");
}

TEST_F(Proxy, GivesEverythingBackWhenARunEnds) {
  start();
  for (int i = 0; i < 20; ++i) run_chain(true, block_some);
  for (int i = 0; i < 200 && device_.lanes > 0; ++i) ::usleep(10000);
  EXPECT_EQ(device_.lanes, 0);
}

}  // namespace
}  // namespace penstock::proxy
