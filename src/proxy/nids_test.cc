// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `nids` in a process of its own, whose stage runs on a simulated device in the lanes of the chain, writes the log of
// one process. (A server in the same process is another one.)

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "nf/nids/nids.h"
#include "nf/nids/testing/nids_bed.h"
#include "process/remote_function.h"
#include "process/server.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/table_granter.h"
#include "proxy/testing/nids_kernel.h"
#include "report/event_log.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::proxy {
namespace {

using nids::testing::Json;
using run::testing::FakeChain;
using testing::HostBackend;
using testing::HostDevice;

class GrantedNids : public nids::testing::NidsFunction {
 protected:
  static constexpr std::string_view kRules =
      "alert tcp any any -> any 80 (msg:\"in stream\"; content:\"over two segments\"; sid:1;)\n"
      "alert tcp any any -> any 80 (msg:\"in packet\"; flow:established; content:\"needle\"; sid:2;)\n"
      "alert udp any any -> any 53 (msg:\"a query\"; content:\"bad\"; sid:3;)\n";

  void SetUp() override {
    ServerSettings settings;
    settings.path = path_;
    proxy_ = Server::start(std::move(settings), std::make_unique<HostBackend>(device_, kernels_)).value();
  }

  struct Outcome {
    report::RunReport report;
    std::vector<Json> log;
    std::vector<run::testing::Bytes> sent;
    Json process;                           // what the chain reports of it
    nids::WorkerCounts::Numbers of_served;  // its own
  };
  Outcome inspect(bool apart, const std::vector<Given>& given, bool passes_when_lost = false) {
    report::EventLog eve(eve_path_, report::EventLog::Start::anew);
    EXPECT_TRUE(eve.open());
    eve.begin();
    TableGranter granter(path_, {"nids"}, kernels_);
    const auto make_served = [&](std::string_view, const process::Surroundings&) {
      auto function = make(std::string(kRules), given, &eve);
      served_ = dynamic_cast<const nids::Nids*>(function.get());
      return Result<std::unique_ptr<function::NetworkFunction>>(std::move(function));
    };
    Outcome outcome;
    {
      auto server = process::Server::start({.path = path_ + "-nids", .granter = &granter}, make_served).value();
      outcome = run_chain(apart, apart ? connect(passes_when_lost) : make(std::string(kRules), given, &eve));
    }
    EXPECT_THAT(eve.close(), ::testing::IsEmpty());
    for (Json& record : records()) {
      record.erase("flow_id");
      // Packets that need not be tracked are not counted there.
      if (record["event_type"] == "stats" && !given.empty() && given[0].first == "tracking") continue;
      if (record["event_type"] == "stats") record["stats"].erase("uptime");
      outcome.log.push_back(record);
    }
    return outcome;
  }
  static void expect_same(const Outcome& one, const Outcome& apart) {
    EXPECT_GT(one.log.size(), 100U);
    ASSERT_EQ(one.log.size(), apart.log.size());
    for (std::size_t i = 0; i < one.log.size(); ++i) EXPECT_EQ(one.log[i], apart.log[i]);
    EXPECT_EQ(one.sent, apart.sent);
    EXPECT_EQ(one.report.dropped.packets, apart.report.dropped.packets);
    EXPECT_GT(apart.report.gpu->segments, 0U);
    EXPECT_EQ(apart.report.gpu->failures, 0U);
    EXPECT_EQ(apart.process["lost_packets"], 0);
    EXPECT_GT(apart.process["confirmed_packets"], 0);
  }

 private:
  [[nodiscard]] std::unique_ptr<function::NetworkFunction> connect(bool passes_when_lost) const {
    process::RemoteSettings settings;
    settings.socket = path_ + "-nids";
    settings.function = "nids";
    settings.patience = std::chrono::seconds{10};  // the machine may be busy
    settings.in_proxy = true;
    settings.passes_when_lost = passes_when_lost;
    settings.surroundings.ports = {{.name = "in", .reads = true}, {.name = "out", .writes = true}};
    return process::connect_function(std::move(settings)).value();
  }
  Outcome run_chain(bool in_proxy, std::unique_ptr<function::NetworkFunction> function) {
    FakeChain chain;
    chain.add_source("in", run::testing::script({conversations()}));
    auto& sink = chain.add_sink("out");
    chain.functions.push_back({"nids", std::move(function)});
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    if (in_proxy) {
      chain.settings.processor = function::Processor::gpu;
      chain.settings.remote = remote_lanes(path_, {"chain", "4q"}).value();
    }
    const std::atomic<bool> stop{false};
    auto result = run::run(chain, {}, stop);
    if (!result) return ADD_FAILURE() << to_string(result.error()), Outcome();
    Outcome outcome{result->report, {}, {}, {}, {}};
    for (const auto& packet : sink.sent[0]) outcome.sent.push_back(packet.bytes);
    nlohmann::json report;
    chain.functions[0].function->report(report);
    if (!report.contains("process")) return outcome;
    outcome.process = report["process"];
    // Its queue ends by itself, and its flows with it. Nothing else is read of it: its end follows this lock.
    for (int i = 0; i < 5000; ++i) {
      outcome.of_served = served_.load()->numbers();
      if (outcome.of_served.scanned_on_gpu == result->report.in.packets &&
          (outcome.of_served.flow_states == 0 || outcome.of_served.inspector.seams_known > 0))
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return outcome;
  }
  static run::testing::Bytes segment(std::uint16_t port, bool back, std::uint8_t flags, std::uint32_t sequence,
                                     std::uint32_t ack, std::string_view text) {
    auto frame = penstock::testing::packet()
                     .eth()
                     .ipv4(back ? "192.0.2.1" : "10.0.0.1", back ? "10.0.0.1" : "192.0.2.1")
                     .tcp(back ? 80 : port, back ? port : 80, flags)
                     .payload(text)
                     .bytes();
    for (std::size_t i = 0; i < 4; ++i) {
      frame[38 + i] = static_cast<std::uint8_t>(sequence >> (24 - 8 * i));
      frame[42 + i] = static_cast<std::uint8_t>(ack >> (24 - 8 * i));
    }
    return penstock::testing::with_right_checksums(std::move(frame));
  }
  /// Connections one after the other, and queries between their segments.
  static std::vector<run::testing::Bytes> conversations() {
    std::vector<run::testing::Bytes> frames;
    for (std::uint16_t port = 4000; port < 4120; ++port) {
      const auto query = [&](std::string_view text) { frames.push_back(nids::testing::question(text, port)); };
      frames.push_back(segment(port, false, 2, 100, 0, ""));
      query("a good one");
      frames.push_back(segment(port, true, 18, 500, 101, ""));
      frames.push_back(segment(port, false, 16, 101, 501, ""));
      frames.push_back(segment(port, false, 24, 101, 501, "over two "));
      query(port % 7 == 0 ? "a bad one" : "another good one");
      frames.push_back(segment(port, false, 24, 110, 501, port % 3 == 0 ? "segments" : "segmenta"));
      frames.push_back(segment(port, false, 24, 118, 501, port % 2 == 0 ? "a needle" : "some hay"));
      frames.push_back(segment(port, true, 16, 501, 126, ""));
    }
    return frames;
  }

  const std::string path_ = ::testing::TempDir() + "/penstock-nids-" + std::to_string(::getpid());
  const std::array<function::RemoteKernel, 1> kernels_{testing::nids_kernel()};
  HostDevice device_;
  std::unique_ptr<Server> proxy_;
  std::atomic<const nids::Nids*> served_ = nullptr;  // as long as the chain is connected
};

TEST_F(GrantedNids, RaisesTheAlertsOfOneProcess) {
  const Outcome one = inspect(false, {});
  for (const bool passes_when_lost : {false, true}) {
    const Outcome apart = inspect(true, {}, passes_when_lost);
    expect_same(one, apart);
    EXPECT_EQ(apart.process["clear_packets"], 0) << "each packet may belong to a stream";
  }
}

TEST_F(GrantedNids, SendsTheStateOfEachFlowToTheDevice) {
  const std::vector<Given> with_states{{"flow_state", {"automaton"}}};
  const Outcome one = inspect(false, with_states);
  for (const bool passes_when_lost : {false, true}) {
    const Outcome apart = inspect(true, with_states, passes_when_lost);
    expect_same(one, apart);
    EXPECT_EQ(apart.of_served.flow_states, 240U) << "two of three segments with data";
    EXPECT_EQ(apart.of_served.inspector.seams_known, 120U);
  }
}

TEST_F(GrantedNids, GetsOnlyPacketsWithLiteralsIfItNeedsNoOthers) {
  const std::vector<Given> by_themselves{{"tracking", {"packets"}}};
  const Outcome one = inspect(false, by_themselves);
  EXPECT_EQ(one.log.size(), 17U) << "queries only";
  for (const bool passes_when_lost : {false, true}) {
    const Outcome apart = inspect(true, by_themselves, passes_when_lost);
    ASSERT_EQ(one.log.size(), apart.log.size());
    for (std::size_t i = 0; i < one.log.size(); ++i) EXPECT_EQ(one.log[i], apart.log[i]);
    EXPECT_GT(apart.process["clear_packets"], 300);
    EXPECT_GT(apart.process["confirmed_packets"], 10);
  }
}

TEST_F(GrantedNids, DropsWhatOneProcessDrops) {
  const Outcome one = inspect(false, {{"action", {"drop"}}});
  const Outcome apart = inspect(true, {{"action", {"drop"}}});
  EXPECT_EQ(one.log.size(), apart.log.size());
  EXPECT_EQ(one.sent, apart.sent);
}

}  // namespace
}  // namespace penstock::proxy
