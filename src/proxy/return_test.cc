// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs that lose their proxy, or whose proxy loses its device, and come back. All packets leave as from the CPU twins,
// in the same order.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/testing/block_kernel.h"
#include "proxy/testing/served_proxy.h"
#include "run/run.h"

namespace penstock::proxy {
namespace {

using run::testing::FakeChain;
using run::testing::FakePort;
using testing::HostDevice;
using AddFunctions = std::function<void(FakeChain&)>;
using Clock = std::chrono::steady_clock;

constexpr unsigned kWorkers = 2;

bool eventually(const std::function<bool()>& condition) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds{30};
  while (!condition()) {
    if (Clock::now() > end) return false;
    ::usleep(1000);
  }
  return true;
}

/// A run with packets all the time, which is a tenant.
class Tenant {
 public:
  Tenant(const std::string& path, const AddFunctions& functions, const std::string& profile = "1q",
         WithoutProxy without = WithoutProxy::fails)
      : functions_(functions), made_(kWorkers) {
    sink_ = &build(chain_, [this](unsigned worker, Batch& batch) {
      if (ends_) return port::RxStatus::end;
      for (int i = 0; i < 20 && run::testing::append(batch, frame(worker, made_[worker])); ++i) ++made_[worker];
      ::usleep(500);
      return port::RxStatus::idle;
    });
    chain_.settings.processor = function::Processor::gpu;
    auto lanes = remote_lanes(path, {"tenant", profile}, without);
    if (!lanes) {
      ADD_FAILURE() << to_string(lanes.error());
      return;
    }
    chain_.settings.remote = std::move(*lanes);
    auto started = run::start(chain_, {}, never_);
    if (!started) ADD_FAILURE() << to_string(started.error());
    if (started) run_ = std::move(*started);
  }

  [[nodiscard]] run::Run& run() { return *run_; }
  [[nodiscard]] report::RunReport::Gpu gpu() const { return *run_->report().gpu; }
  [[nodiscard]] std::uint64_t losses() const { return gpu().proxy->losses; }
  [[nodiscard]] bool is_lost() const { return !gpu().proxy->connected; }
  /// Packets flow on the device, and on each worker's lanes.
  [[nodiscard]] bool works() const {
    if (is_lost()) return false;
    const std::uint64_t before = gpu().segments;
    return eventually([&] { return gpu().segments > before + 20; });
  }
  [[nodiscard]] bool processes() const {
    const std::uint64_t before = run_->report().in.packets;
    return eventually([&] { return run_->report().in.packets > before + 1000; });
  }

  void leave() const { chain_.settings.remote->disconnect(); }

  /// Ends the run, and compares what has left with what the twins alone make of the same packets.
  void end() {
    ends_ = true;
    result_ = run_->wait();
    const report::RunReport& report = result_.report;
    EXPECT_EQ(report.in.packets, report.forwarded.packets + report.dropped.packets + report.consumed.packets);
    EXPECT_EQ(report.in.packets, made_[0] + made_[1]);
  }
  void expect_what_the_twins_do() {
    FakeChain twins;
    std::vector<std::uint64_t> next(kWorkers);
    FakePort& sink = build(twins, [&](unsigned worker, Batch& batch) {
      while (next[worker] < made_[worker]) {
        if (!run::testing::append(batch, frame(worker, next[worker]))) return port::RxStatus::more;
        ++next[worker];
      }
      return port::RxStatus::end;
    });
    ASSERT_TRUE(run::run(twins, {}, never_));
    for (unsigned w = 0; w < kWorkers; ++w) {
      ASSERT_EQ(sink_->sent[w].size(), sink.sent[w].size()) << "worker " << w;
      for (std::size_t i = 0; i < sink.sent[w].size(); ++i)
        ASSERT_EQ(sink_->sent[w][i].bytes, sink.sent[w][i].bytes) << "worker " << w << ", packet " << i;
    }
  }
  [[nodiscard]] const report::RunReport& report() const { return result_.report; }
  [[nodiscard]] const FakePort& sink() const { return *sink_; }

 private:
  static run::testing::Bytes frame(unsigned worker, std::uint64_t number) {
    return run::testing::numbered(number, static_cast<unsigned>(number % 3) + 10 * worker);
  }
  FakePort& build(FakeChain& chain, FakePort::Poll poll) const {
    chain.add_source("in", std::move(poll));
    FakePort& sink = chain.add_sink("out");
    functions_(chain);
    chain.settings.workers = kWorkers;
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    return sink;
  }

  const AddFunctions functions_;
  const std::atomic<bool> never_{false};
  std::atomic<bool> ends_{false};
  std::deque<std::atomic<std::uint64_t>> made_;  // by worker
  FakeChain chain_;
  FakePort* sink_ = nullptr;
  std::unique_ptr<run::Run> run_;
  run::RunResult result_;
};

void block_some(FakeChain& chain) { testing::add_block(chain, {1025, 1034}); }
/// With a function between two on the device.
void block_twice(FakeChain& chain) {
  testing::add_block(chain, {1025});
  auto& between = chain.add_function("between", run::testing::each([](PacketView packet) {
                                       packet.ipv4().ttl = static_cast<std::uint8_t>(packet.ipv4().ttl + 7);
                                       return packet.packet->verdict;
                                     }));
  between.own_traits.cpu = testing::kBlockAccess;
  testing::add_block(chain, {1034}, 3);
}

class Return : public testing::ServedProxy {
 protected:
  void lose() { server_.reset(); }
};

TEST_F(Return, ComesBackToAProxyThatStartsAgain) {
  start();
  Tenant tenant(path_, block_some);
  for (std::uint64_t losses = 1; losses <= 3; ++losses) {
    ASSERT_TRUE(tenant.works());
    lose();
    ASSERT_TRUE(eventually([&] { return tenant.losses() == losses; }));
    EXPECT_TRUE(tenant.processes()) << "on the CPU";
    EXPECT_TRUE(tenant.is_lost());
    start();
    ASSERT_TRUE(eventually([&] { return !tenant.is_lost(); }));
  }
  ASSERT_TRUE(tenant.works());
  tenant.end();
  tenant.expect_what_the_twins_do();
  EXPECT_EQ(tenant.report().gpu->lanes_lost, 3U * kWorkers * 3);
  EXPECT_EQ(tenant.report().gpu->proxy->losses, 3U);
  EXPECT_GT(tenant.report().gpu->proxy->without.count(), 0);
  EXPECT_TRUE(tenant.report().gpu->proxy->connected);
}

TEST_F(Return, BeginsBeforeItsProxy) {
  EXPECT_FALSE(remote_lanes(path_, {"tenant", ""}));
  Tenant tenant(path_, block_twice, "4q", WithoutProxy::begins_on_cpu);
  ASSERT_TRUE(tenant.processes());
  EXPECT_TRUE(tenant.is_lost());
  start();
  ASSERT_TRUE(eventually([&] { return !tenant.is_lost(); }));
  ASSERT_TRUE(tenant.works());
  EXPECT_EQ(tenant.losses(), 0U);
  lose();
  ASSERT_TRUE(eventually([&] { return tenant.losses() == 1; }));
  start();
  ASSERT_TRUE(eventually([&] { return !tenant.is_lost(); }));
  ASSERT_TRUE(tenant.works());
  tenant.end();
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, BeginsOnTheCpuOnlyIfNobodyListens) {
  start();
  EXPECT_FALSE(remote_lanes(path_, {"tenant", "3q"}, WithoutProxy::begins_on_cpu));
  device_.lost = true;
  EXPECT_TRUE(eventually([this] { return server_->is_lost(); }));
  EXPECT_FALSE(remote_lanes(path_, {"tenant", "1q"}, WithoutProxy::begins_on_cpu));
  EXPECT_FALSE(remote_lanes("/dev/null", {"tenant", "1q"}, WithoutProxy::begins_on_cpu)) << "a file";
  EXPECT_FALSE(remote_lanes(std::string(200, 'x'), {"tenant", "1q"}, WithoutProxy::begins_on_cpu));
}

TEST_F(Return, EndsBeforeItsProxyIsThere) {
  Tenant tenant(path_, block_some, "1q", WithoutProxy::begins_on_cpu);
  ASSERT_TRUE(tenant.processes());
  tenant.end();
  tenant.expect_what_the_twins_do();
  EXPECT_FALSE(tenant.report().gpu->proxy->connected);
}

TEST_F(Return, ComesBackInSeveralSegments) {
  start();
  Tenant tenant(path_, block_twice);
  ASSERT_TRUE(tenant.works());
  lose();
  ASSERT_TRUE(tenant.processes());
  start();
  ASSERT_TRUE(eventually([&] { return tenant.losses() == 1 && tenant.works(); }));
  tenant.end();
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, BringsAllTenantsBackWhenTheDeviceIsLostInFlight) {
  device_.polls = 50;  // so that batches are in flight all the time
  start();
  std::deque<Tenant> tenants;
  for (const char* const profile : {"1q", "4q", "8q"}) tenants.emplace_back(path_, block_some, profile);
  for (Tenant& tenant : tenants) ASSERT_TRUE(tenant.works());
  device_.lost = true;
  for (Tenant& tenant : tenants) ASSERT_TRUE(tenant.processes()) << "on the CPU";
  EXPECT_TRUE(eventually([&] { return server_->is_lost(); }));
  for (Tenant& tenant : tenants) EXPECT_TRUE(eventually([&] { return tenant.is_lost(); })) << "they know it";
  EXPECT_TRUE(
      eventually([&] { return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"].empty(); }));
  lose();
  device_.lost = false;
  start();
  for (Tenant& tenant : tenants) ASSERT_TRUE(eventually([&] { return tenant.losses() == 1 && tenant.works(); }));
  const auto status = nlohmann::json::parse(ask_for_status(path_, false).value());
  EXPECT_EQ(status["tenants"].size(), 3U) << status.dump(2);
  for (Tenant& tenant : tenants) {
    tenant.end();
    tenant.expect_what_the_twins_do();
    EXPECT_GT(tenant.report().gpu->failures, 0U);
  }
}

TEST_F(Return, GivesADeviceUpThatHangs) {
  longest_batch_ = std::chrono::milliseconds{300};
  start();
  Tenant tenant(path_, block_some);
  ASSERT_TRUE(tenant.works());
  ::usleep(400'000);
  EXPECT_FALSE(server_->hangs()) << "many batches may take longer together";
  device_.hangs = true;
  EXPECT_TRUE(eventually([&] { return server_->hangs(); }));
  EXPECT_TRUE(server_->is_lost());
  ASSERT_TRUE(eventually([&] { return tenant.losses() == 1; }));
  ASSERT_TRUE(tenant.processes()) << "on the CPU";
  EXPECT_EQ(nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"].size(), 1U) << "it cannot end";
  device_.hangs = false;
  lose();
  start();
  ASSERT_TRUE(eventually([&] { return tenant.works(); }));
  tenant.end();
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, GivesADeviceUpThatHangsForATenantThatHasGone) {
  longest_batch_ = std::chrono::milliseconds{500};
  start();
  Tenant tenant(path_, block_some);
  ASSERT_TRUE(tenant.works());
  device_.hangs = true;
  ::usleep(50'000);
  tenant.leave();
  tenant.end();
  EXPECT_TRUE(eventually([&] { return server_->hangs(); }));
  device_.hangs = false;
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, EndsWhenItIsStoppedBeforeItsFirstBatchIsDone) {
  device_.hangs = true;
  start();
  FakeChain chain;
  chain.add_source("in", [](unsigned, Batch&) {
    ADD_FAILURE() << "polled";
    return port::RxStatus::end;
  });
  chain.add_sink("out");
  block_some(chain);
  chain.settings.processor = function::Processor::gpu;
  auto lanes = remote_lanes(path_, {"tenant"}, WithoutProxy::fails);
  ASSERT_TRUE(lanes);
  chain.settings.remote = std::move(*lanes);
  std::atomic<bool> stop{false};
  std::thread stops([&] {
    EXPECT_TRUE(eventually([&] { return device_.lanes > 0; }));
    ::usleep(50'000);
    stop = true;
  });
  const Clock::time_point begun = Clock::now();
  const auto result = run::run(chain, {}, stop);
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds{10}) << "not kMostWarmUp";
  stops.join();
  ASSERT_TRUE(result) << to_string(result.error());
  device_.hangs = false;
  EXPECT_EQ(result->report.in.packets, 0U);
  EXPECT_TRUE(result->errors.empty()) << to_string(result->errors);
}

TEST_F(Return, GivesEverythingBackThatWasLost) {
  start();
  {
    Tenant tenant(path_, block_some);
    ASSERT_TRUE(tenant.works());
    const int lanes = device_.lanes;
    lose();
    EXPECT_EQ(device_.lanes, 0);
    start();
    ASSERT_TRUE(eventually([&] { return tenant.losses() == 1 && tenant.works(); }));
    EXPECT_EQ(device_.lanes, lanes);
    tenant.end();
  }
  EXPECT_TRUE(eventually([&] { return device_.lanes == 0; }));
}

/// Blocks all packets, or none.
run::Functions blocking(bool all) {
  FakeChain other;
  if (all) {
    testing::add_block(other, {1024, 1025, 1026, 1034, 1035, 1036});
  } else {
    testing::add_block(other, {});
  }
  run::Functions functions;
  functions.push_back(std::move(other.functions.front().function));
  return functions;
}

TEST_F(Return, ComesBackWithTheTablesOfAReloadInBetween) {
  start();
  Tenant tenant(path_, [](FakeChain& chain) { testing::add_block(chain, {}); });
  ASSERT_TRUE(tenant.works());
  lose();
  ASSERT_TRUE(eventually([&] { return tenant.losses() == 1; }));
  ASSERT_TRUE(tenant.run().apply(blocking(true)));
  const std::uint64_t forwarded = tenant.run().report().forwarded.packets;
  ASSERT_TRUE(tenant.processes());
  start();
  ASSERT_TRUE(eventually([&] { return !tenant.is_lost(); }));
  ASSERT_TRUE(tenant.works());
  EXPECT_EQ(tenant.run().report().forwarded.packets, forwarded) << "packets were decided by the former tables";

  const std::uint64_t failures = tenant.gpu().failures;
  ASSERT_TRUE(tenant.run().apply(blocking(false)));
  EXPECT_TRUE(eventually([&] { return tenant.run().report().forwarded.packets > forwarded + 1000; }));
  ASSERT_TRUE(tenant.run().rollback());
  const std::uint64_t then = tenant.run().report().forwarded.packets;
  ASSERT_TRUE(tenant.works());
  EXPECT_EQ(tenant.run().report().forwarded.packets, then);
  EXPECT_EQ(tenant.gpu().failures, failures) << "the new lanes do not take the tables of a reload";
  tenant.end();
  EXPECT_EQ(tenant.sink().sent[0].size() + tenant.sink().sent[1].size(), tenant.report().forwarded.packets);
}

TEST_F(Return, ReloadsAndComesBackAtTheSameTime) {
  start();
  Tenant tenant(path_, block_some);
  std::atomic<bool> ends{false};
  std::thread reloads([&] {
    while (!ends) {
      FakeChain other;
      block_some(other);
      run::Functions next;
      next.push_back(std::move(other.functions.front().function));
      EXPECT_TRUE(tenant.run().apply(std::move(next)));
      ::usleep(1000);
    }
  });
  for (std::uint64_t losses = 1; losses <= 4; ++losses) {
    EXPECT_TRUE(tenant.works());
    lose();
    EXPECT_TRUE(eventually([&] { return tenant.losses() == losses; }));
    start();
    EXPECT_TRUE(eventually([&] { return !tenant.is_lost(); }));
  }
  EXPECT_TRUE(tenant.works());
  ends = true;
  reloads.join();
  tenant.end();
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, EndsWhileItIsLost) {
  start();
  Tenant tenant(path_, block_some);
  ASSERT_TRUE(tenant.works());
  lose();
  ASSERT_TRUE(eventually([&] { return tenant.losses() == 1; }));
  const Clock::time_point begun = Clock::now();
  tenant.end();
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds{5});
  tenant.expect_what_the_twins_do();
  EXPECT_FALSE(tenant.report().gpu->proxy->connected);
}

TEST_F(Return, EndsWhileAProxyDoesNotAnswer) {
  start();
  Tenant tenant(path_, block_some);
  ASSERT_TRUE(tenant.works());
  lose();
  auto silent = Listener::open(path_, 0600);
  ASSERT_TRUE(silent);
  // The connection waits in the queue, and the run for an answer.
  pollfd polled{silent->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 10000), 1);
  ASSERT_TRUE(tenant.processes());
  const Clock::time_point begun = Clock::now();
  tenant.end();
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds{5});
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, TriesUntilThereIsRoom) {
  start();
  Tenant tenant(path_, block_some, "8q");
  ASSERT_TRUE(tenant.works());
  lose();
  start();
  auto other = remote_lanes(path_, {"other", "16q"});  // may be too late
  if (!other) return;
  EXPECT_TRUE(tenant.processes());
  ::usleep(300000);
  EXPECT_TRUE(tenant.is_lost());
  *other = nullptr;
  ASSERT_TRUE(eventually([&] { return tenant.losses() == 1 && tenant.works(); }));
  tenant.end();
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, TriesUntilItsLanesFit) {
  start();
  Tenant tenant(path_, block_some);
  ASSERT_TRUE(tenant.works());
  lose();
  device_.memory = 4096;  // for all tenants
  start();
  EXPECT_TRUE(tenant.processes());
  ::usleep(300000);
  EXPECT_TRUE(tenant.is_lost());
  lose();
  device_.memory = std::uint64_t{16} << 30;
  start();
  ASSERT_TRUE(eventually([&] { return tenant.works(); }));
  EXPECT_EQ(tenant.losses(), 1U) << "it was never back";
  tenant.end();
  tenant.expect_what_the_twins_do();
}

TEST_F(Return, WarnsOfAProxyOfAnotherRelease) {
  auto listener = Listener::open(path_, 0600);
  ASSERT_TRUE(listener);
  const auto answer = [&](std::size_t bytes) {
    auto connection = Connection::connect(path_);
    EXPECT_TRUE(connection);
    const port::FileDescriptor peer(::accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC));
    Reply refusal;
    refusal.failed = Reply::kOtherVersion;
    std::vector<std::byte> message(bytes_of(refusal).begin(), bytes_of(refusal).end());
    message.resize(bytes);
    EXPECT_EQ(send_message(peer.get(), message, {}, std::chrono::seconds{1}), 0);
    const auto known = (*connection)->introduce({"test", ""});
    EXPECT_FALSE(known);
    return !known && known.error().incompatible;
  };
  EXPECT_TRUE(answer(sizeof(Reply)));
  EXPECT_TRUE(answer(sizeof(Reply) - 8));
}

}  // namespace
}  // namespace penstock::proxy
