// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: runs of chains whose function is a fake, in a process of its own or not. (To a chain, a server in the
// same process is another one.)

#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "process/remote_function.h"
#include "process/server.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::process::testing {

using run::testing::FakeChain;
using run::testing::FakeFunction;

inline constexpr std::string_view kReasons[] = {"blocked", "other"};

using Prepare = std::function<void(FakeFunction& function)>;

/// Drops each third packet.
inline void drop_thirds(FakeFunction& function) {
  function.own_traits.drop_reasons = kReasons;
  function.own_traits.cpu = {{Field::payload}, {Field::verdict}};
  function.process = run::testing::each([](PacketView packet) {
    return run::testing::number_of(packet) % 3 == 0 ? Verdict::drop(1) : packet.packet->verdict;
  });
}

/// The same, and changes the others.
inline void age(FakeFunction& function) {
  drop_thirds(function);
  function.own_traits.cpu.writes |= FieldSet{Field::ipv4_ttl, Field::mark};
  function.process = run::testing::each([](PacketView packet) {
    packet.ipv4().ttl = static_cast<std::uint8_t>(packet.ipv4().ttl - 7);
    packet.packet->mark += 5;
    return run::testing::number_of(packet) % 3 == 0 ? Verdict::drop(1) : packet.packet->verdict;
  });
}

class ServedChain : public ::testing::Test {
 protected:
  static constexpr std::size_t kPackets = 5000;

  void serve(const Prepare& prepare) {
    server_.reset();
    auto server = Server::start({path_}, [prepare](std::string_view, const Surroundings&) {
      auto function = std::make_unique<FakeFunction>();
      prepare(*function);
      return Result<std::unique_ptr<function::NetworkFunction>>(std::move(function));
    });
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }

  [[nodiscard]] RemoteSettings settings() const {
    using namespace std::chrono_literals;
    RemoteSettings settings;
    settings.socket = path_;
    settings.function = "fake";
    settings.patience = 10s;  // the machine may be busy
    settings.surroundings.ports = {{.name = "in", .reads = true}, {.name = "out", .writes = true}};
    return settings;
  }

  struct Outcome {
    report::RunReport report;
    std::vector<std::vector<run::testing::FakePort::Sent>> sent;
    nlohmann::json function;  // its own report
  };
  using AtPoll = std::function<void(std::size_t polled)>;
  /// Of the frames, by one worker.
  Outcome run_chain(
      std::unique_ptr<function::NetworkFunction> function, const AtPoll& at_poll = [](std::size_t) {},
      const std::function<void(FakeChain&)>& change = [](FakeChain&) {}) {
    FakeChain chain;
    auto poll = run::testing::script({run::testing::numbered_frames(kPackets)});
    std::size_t polls = 0;
    chain.add_source("in", [poll, at_poll, polls](unsigned worker, Batch& batch) mutable {
      at_poll(polls++);
      return poll(worker, batch);
    });
    auto& sink = chain.add_sink("out");
    chain.functions.push_back({"fake", std::move(function)});
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    change(chain);
    const std::atomic<bool> stop{false};
    auto result = run::run(chain, {}, stop);
    if (!result) {
      ADD_FAILURE() << to_string(result.error());
      return {};
    }
    Outcome outcome{result->report, sink.sent, {}};
    chain.functions.back().function->report(outcome.function);
    return outcome;
  }
  Outcome run_local(const Prepare& prepare) {
    auto function = std::make_unique<FakeFunction>();
    prepare(*function);
    return run_chain(std::move(function));
  }
  Outcome run_remote(
      RemoteSettings settings, const AtPoll& at_poll = [](std::size_t) {}) {
    auto function = connect_function(std::move(settings));
    if (!function) {
      ADD_FAILURE() << to_string(function.error());
      return {};
    }
    return run_chain(std::move(*function), at_poll);
  }
  static void expect_same(const Outcome& one, const Outcome& other) {
    ASSERT_EQ(one.sent.size(), other.sent.size());
    for (std::size_t w = 0; w < one.sent.size(); ++w) {
      ASSERT_EQ(one.sent[w].size(), other.sent[w].size());
      for (std::size_t i = 0; i < one.sent[w].size(); ++i) {
        ASSERT_EQ(one.sent[w][i].bytes, other.sent[w][i].bytes);
        ASSERT_EQ(one.sent[w][i].descriptor.mark, other.sent[w][i].descriptor.mark);
      }
    }
    EXPECT_EQ(one.report.forwarded.packets, other.report.forwarded.packets);
    EXPECT_EQ(one.report.dropped.packets, other.report.dropped.packets);
    EXPECT_EQ(one.report.consumed.packets, other.report.consumed.packets);
  }
  static void expect_none_missing(const Outcome& outcome) {
    const report::RunReport& report = outcome.report;
    EXPECT_EQ(report.in.packets, kPackets);
    EXPECT_EQ(report.in.packets, report.forwarded.packets + report.dropped.packets + report.consumed.packets);
  }

  const std::string path_ = (std::filesystem::temp_directory_path() /
                             fmt::format("penstock-process-{}-{}", ::getpid(),
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                                .string();
  std::unique_ptr<Server> server_;
};

}  // namespace penstock::process::testing
