// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole runs whose lanes are in a proxy with a simulated device.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/testing/block_kernel.h"
#include "run/run.h"

namespace penstock::proxy {
namespace {

using run::testing::FakeChain;
using run::testing::numbered_frames;
using testing::HostDevice;

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
    static_cast<void>(source);
    auto& sink = chain.add_sink("out");
    functions(chain);
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    if (remote) {
      chain.settings.processor = function::Processor::gpu;
      chain.settings.proxy = path_;
      auto lanes = remote_lanes(path_, {"test", ""});
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
  HostDevice device_;
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

}  // namespace
}  // namespace penstock::proxy
