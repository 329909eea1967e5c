// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs of outbound `ipsec` whose lanes are in a proxy, over any device.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nf/ipsec/remote_end_for_test.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::proxy::testing {

class IpsecRuns : public ::testing::Test {
 protected:
  using Bytes = std::vector<std::uint8_t>;

  void start(std::unique_ptr<Backend> backend) {
    ServerSettings settings;
    settings.path = path_;
    auto server = Server::start(std::move(settings), std::move(backend));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }

  struct Outcome {
    std::vector<Bytes> sent;
    report::RunReport report;
  };
  /// Of one worker that protects packets by SAs of all kinds, with the same numbers and IVs in every run. `remote`: in
  /// the proxy.
  Outcome run(
      bool remote, run::Transfer transfer = run::Transfer::automatic,
      const std::function<void(std::size_t polled)>& at_poll = [](std::size_t) {}) {
    run::testing::FakeChain chain;
    auto poll = run::testing::script({frames()});
    std::size_t polls = 0;
    chain.add_source("in", [&](unsigned worker, Batch& batch) {
      at_poll(polls++);
      return poll(worker, batch);
    });
    auto& sink = chain.add_sink("out");
    ipsec::Settings settings;
    settings.mtu = mtu_;
    settings.device_is_remote = remote;
    chain.functions.push_back({"ipsec", make_(settings)});
    chain.settings.batch_bytes = 64 << 10;
    chain.settings.batch_packets = 100;
    chain.settings.queue_bytes = 4 << 20;
    chain.settings.transfer = transfer;
    if (remote) {
      chain.settings.processor = function::Processor::gpu;
      auto lanes = remote_lanes(path_, {"test", "2q"});
      if (!lanes) return ADD_FAILURE() << to_string(lanes.error()), Outcome();
      chain.settings.remote = std::move(*lanes);
    }
    const std::atomic<bool> stop{false};
    auto result = run::run(chain, {}, stop);
    if (!result) return ADD_FAILURE() << to_string(result.error()), Outcome();
    Outcome outcome{{}, result->report};
    for (const auto& packet : sink.sent[0]) outcome.sent.push_back(packet.bytes);
    return outcome;
  }
  static void expect_same(const Outcome& cpu, const Outcome& proxied) {
    ASSERT_EQ(proxied.sent.size(), cpu.sent.size());
    for (std::size_t i = 0; i < cpu.sent.size(); ++i) ASSERT_EQ(proxied.sent[i], cpu.sent[i]) << i;
    EXPECT_EQ(proxied.report.forwarded.packets, cpu.report.forwarded.packets);
    EXPECT_EQ(proxied.report.dropped.packets, cpu.report.dropped.packets);
    ASSERT_TRUE(proxied.report.gpu);
    EXPECT_GT(proxied.report.gpu->segments, 0U);
  }

  static std::unique_ptr<function::NetworkFunction> make_ipsec(const ipsec::Settings& settings) {
    return ipsec::testing::make_ipsec(ipsec::testing::kOutboundStates, ipsec::testing::outbound_policies(), settings);
  }

  std::uint32_t mtu_ = 1400;
  std::function<std::unique_ptr<function::NetworkFunction>(const ipsec::Settings& settings)> make_ = make_ipsec;
  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       fmt::format("penstock-ipsec-{}-{}", ::getpid(), ::testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
  std::unique_ptr<Server> server_;

 private:
  static std::vector<Bytes> frames() {
    std::vector<Bytes> frames;
    for (std::uint32_t i = 0; i < 6000; ++i) {
      frames.push_back(ipsec::testing::plain(
          i * 7919 % 1460, static_cast<std::uint16_t>(2000 + i % (ipsec::testing::kOutboundSas + 1))));
    }
    return frames;
  }
};

}  // namespace penstock::proxy::testing
