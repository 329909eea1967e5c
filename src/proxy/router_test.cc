// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A router whose stage is in a proxy with a simulated device, and whose routes change while packets flow.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"
#include "nf/router/recipe.h"
#include "nf/router/router_for_test.h"
#include "proxy/connection.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/testing/router_kernel.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::proxy {
namespace {

using run::testing::FakePort;

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    ::usleep(10'000);
  }
  return false;
}

/// A change that leaves these routes.
router::RouterChange only(std::string_view routes) {
  router::RouterChange change;
  change.replaces_routes = true;
  change.routes = router::config_of(routes).routes;
  return change;
}

class ProxyRouter : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerSettings settings;
    settings.path = path_;
    auto server = Server::start(std::move(settings), std::make_unique<testing::HostBackend>(device_, kernels_));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("penstock-proxy-router-{}", ::getpid())).string();
  const std::array<function::RemoteKernel, 1> kernels_{testing::router_kernel()};
  testing::HostDevice device_;
  std::unique_ptr<Server> server_;
};

function::StageRecipe recipe_for(router::Fib4Engine engine) {
  router::RouterConfig config = router::config_of("192.0.2.0/24 dev wan\n");
  config.engine = engine;
  return *router::build(std::move(config))->stage_recipe(function::Processor::gpu);
}

TEST_F(ProxyRouter, CountsTablesAsTheyLieOnTheDevice) {
  const auto device_memory = [&] {
    return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0]["device_memory"].get<double>();
  };
  const auto connection = Connection::open(path_, {"router", "1q"}).value();
  const function::StageRecipe recipe = recipe_for(router::Fib4Engine::kDir24);
  double sent = 0;
  for (const function::TableBytes& table : recipe.tables) sent += static_cast<double>(table->size());
  RemoteTables tables(connection, recipe);
  const double loaded = device_memory();
  EXPECT_EQ(loaded, static_cast<double>(router::read_recipe(recipe)->tables.bytes()));
  EXPECT_GT(loaded, 1000 * sent);
  tables.replace(recipe);
  EXPECT_EQ(device_memory(), loaded) << "the former version is freed";
}

/// A few bytes that become the largest tables that runs can say: 16 GiB.
TEST_F(ProxyRouter, RefusesTablesThatBecomeLargerThanTheProfile) {
  const auto connection = Connection::open(path_, {"bomb", "1q"}).value();
  const function::StageRecipe good = recipe_for(router::Fib4Engine::kTrie4);
  function::StageRecipe bomb = good;
  constexpr std::size_t kEndsOfNodes6 = 7;
  std::vector<std::byte> ends = *good.tables[kEndsOfNodes6];
  constexpr std::uint32_t kMost = ~std::uint32_t{0};
  std::memcpy(ends.data() + ends.size() - sizeof kMost, &kMost, sizeof kMost);
  bomb.tables[kEndsOfNodes6] = std::make_shared<const std::vector<std::byte>>(std::move(ends));
  ASSERT_TRUE(router::check_recipe(bomb)) << "only memory is in its way";
  const auto refusal_of = [](auto load) -> std::string {
    try {
      load();
    } catch (const gpu::CudaError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal_of([&] { RemoteTables(connection, bomb); }).find("memory on the device"), std::string::npos);
  RemoteTables tables(connection, good);
  EXPECT_NE(refusal_of([&] { tables.replace(bomb); }).find("memory on the device"), std::string::npos);
  const auto status = nlohmann::json::parse(ask_for_status(path_, false).value());
  EXPECT_EQ(status["tenants"][0]["device_memory"], router::read_recipe(good)->tables.bytes())
      << "nothing stays reserved";
  EXPECT_FALSE(connection->is_lost());
}

TEST_F(ProxyRouter, FollowsItsRoutes) {
  run::testing::FakeChain chain;
  std::atomic<bool> ends{false};
  std::uint64_t number = 0;
  // By the names and numbers of router_for_test.h. All packets go to 192.0.2.1.
  chain.add_sink("lan").poll = [&](unsigned, Batch& batch) {
    if (ends) return port::RxStatus::end;
    for (int i = 0; i < 20 && run::testing::append(batch, run::testing::numbered(number)); ++i) ++number;
    ::usleep(200);
    return port::RxStatus::idle;
  };
  std::array<FakePort*, 2> others{&chain.add_sink("wan"), &chain.add_sink("dmz")};
  router::RouterConfig config = router::config_of("192.0.2.0/24 dev wan\n");
  config.engine = router::Fib4Engine::kTrie4;  // the smallest
  auto made = router::build(std::move(config));
  router::Router& router = *made;
  chain.functions.push_back({"router", std::move(made)});
  chain.settings.batch_bytes = 16 << 10;
  chain.settings.batch_packets = 64;
  chain.settings.queue_bytes = 1 << 20;
  chain.settings.processor = function::Processor::gpu;
  chain.settings.remote = remote_lanes(path_, {"router", "16q"}).value();
  const std::atomic<bool> never{false};
  auto running = run::start(chain, {}, never);
  ASSERT_TRUE(running) << to_string(running.error());
  const auto report = [&] { return (*running)->report(); };
  // Whether nothing is dropped any more, or everything.
  const auto drops = [&](bool all) {
    return eventually([&] {
      const auto before = report();
      ::usleep(10'000);
      const auto after = report();
      const bool some_dropped = after.dropped.packets > before.dropped.packets;
      const bool some_forwarded = after.forwarded.packets > before.forwarded.packets;
      return some_dropped == all && some_forwarded == !all;
    });
  };
  EXPECT_TRUE(drops(false));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(router.update(only("blackhole 192.0.2.0/24\n")));
    EXPECT_TRUE(drops(true)) << round;
    ASSERT_TRUE(router.update(only("192.0.2.0/24 dev dmz\n2001:db8::/32 dev lan\n")));
    EXPECT_TRUE(drops(false)) << round;
  }
  ends = true;
  const run::RunResult result = (*running)->wait();
  EXPECT_EQ(result.report.gpu->failures, 0U);
  EXPECT_EQ(result.report.gpu->proxy->losses, 0U);
  EXPECT_EQ(result.report.in.packets, result.report.forwarded.packets + result.report.dropped.packets);
  for (const FakePort* const port : others) EXPECT_GT(port->sent[0].size(), 0U);
  EXPECT_EQ(others[0]->sent[0].size() + others[1]->sent[0].size(), result.report.forwarded.packets);
}

}  // namespace
}  // namespace penstock::proxy
