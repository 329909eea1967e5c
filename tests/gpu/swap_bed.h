// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a chain with a firewall and a router whose tables change during the run, and checks of the packets that
// leave it.

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/faulty_function.h"
#include "gpu/way.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "property/table_versions.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::on_gpu {

struct SwapBed {
  static constexpr unsigned kWorkers = 2;
  static constexpr std::size_t kBatch = 300;

  /// If there is a fault, its function is between the two.
  SwapBed(router::Fib4Engine engine, Fault fault, unsigned from) {
    chain.settings.workers = kWorkers;
    chain.settings.batch_packets = kBatch;
    chain.settings.batch_bytes = 64 << 10;
    chain.settings.queue_bytes = 256 << 10;
    chain.add_source("source", [this](unsigned, Batch& batch) {
      if (!batch.empty()) return port::RxStatus::more;
      // Each packet carries, in its timestamp, its batch and the oldest version that it may see.
      const std::uint64_t carried = std::uint64_t{done.load()} << 32 | ++batches;
      for (std::size_t i = 0; batch.append(frames[i % 2], {carried, 0, 0, LinkType::ethernet}); ++i) continue;
      return port::RxStatus::more;
    });
    auto firewall = firewall::Firewall::build(
        firewall::rules_of("*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -m udp --dport 53 -j ACCEPT\nCOMMIT\n"),
        classify::Engine::bitvector);
    EXPECT_TRUE(firewall);
    chain.functions.push_back({"firewall", std::move(*firewall)});
    if (fault != Fault::none) chain.functions.push_back({"faulty", std::make_unique<FaultyFunction>(fault, from)});
    auto made = property::router_of_version_0(engine);
    router = made.get();
    chain.functions.push_back({"router", std::move(made)});
    chain.add_function("checks", [this](std::span<PacketView> burst) { check(burst); });
    chain.add_function("takes", run::testing::each([](PacketView) { return Verdict::consume(); }));
  }

  /// Runs the chain until this many versions have been used.
  void run(std::uint32_t versions) {
    std::atomic<bool> stop{false};
    auto running = std::async(std::launch::async, [&] { return run::run(chain, {}, stop); });
    const auto is_running = [&] { return running.wait_for(std::chrono::seconds{0}) != std::future_status::ready; };
    for (std::uint32_t v = 1; v <= versions && is_running(); ++v) {
      const std::uint64_t before = packets;
      EXPECT_TRUE(router->update(property::version(v)));
      done = v;
      while (packets < before + 4 * kBatch && is_running()) std::this_thread::yield();  // traffic between changes
    }
    stop = true;
    const auto result = running.get();
    ASSERT_TRUE(result) << penstock::to_string(result.error());
    EXPECT_TRUE(result->errors.empty()) << penstock::to_string(result->errors);
    report = report::to_json(result->report);
    EXPECT_EQ(done, versions) << "the run ended before";
  }

  /// Expectations that hold whatever the device does.
  void expect_sound() const {
    EXPECT_EQ(half_changes, 0U) << "packets with a port of one version and a MAC of another";
    EXPECT_EQ(mixed_batches, 0U) << "batches by two versions: tables are swapped at batch boundaries";
    EXPECT_EQ(too_old, 0U) << "packets by a version older than one whose update had returned before they came";
    EXPECT_EQ(too_new, 0U) << "packets by a version that there is not";
    EXPECT_EQ(report.at("packets").at("in"), packets.load());
    EXPECT_EQ(report.at("packets").at("consumed"), packets.load());
    EXPECT_EQ(report.at("packets").at("dropped"), 0);
  }

  run::testing::FakeChain chain;
  router::Router* router = nullptr;
  Json report;
  std::atomic<std::uint32_t> done{0};  // the newest version whose update has completed
  std::atomic<std::uint32_t> batches{0};
  std::atomic<std::uint64_t> packets{0}, half_changes{0}, too_old{0}, too_new{0}, mixed_batches{0}, steps_back{0};

 private:
  void check(std::span<PacketView> burst) {
    // Per worker.
    thread_local const SwapBed* of = nullptr;
    thread_local std::uint32_t last_batch = 0;
    thread_local std::uint32_t last_version = 0;
    if (std::exchange(of, this) != this) last_batch = last_version = 0;
    for (const PacketView packet : burst) {
      const property::Decided by = property::decided(packet);
      const auto batch = static_cast<std::uint32_t>(packet.packet->timestamp_ns);
      const auto least = static_cast<std::uint32_t>(packet.packet->timestamp_ns >> 32);
      half_changes += by.half_a_change();
      too_old += by.version < least;
      too_new += by.version > done + 1;
      if (batch == last_batch) mixed_batches += by.version != last_version;
      steps_back += by.version < last_version;
      last_batch = batch;
      last_version = by.version;
    }
    packets += burst.size();
  }

  const std::vector<run::testing::Bytes> frames = run::testing::numbered_frames(2);
};

}  // namespace penstock::on_gpu
