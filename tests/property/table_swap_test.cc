// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables change under load: each packet that leaves shows which version decided on it.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "property/table_versions.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::property {
namespace {

using port::RxStatus;
using router::Fib4Engine;
using run::testing::FakeChain;

class TableSwap : public ::testing::TestWithParam<Fib4Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, TableSwap, ::testing::Values(Fib4Engine::kDir24, Fib4Engine::kTrie4),
                         [](const auto& engine) { return engine.param == Fib4Engine::kDir24 ? "dir24" : "trie4"; });

TEST_P(TableSwap, LosesNoPacketAndShowsNoneAPartialChange) {
  constexpr std::uint32_t kVersions = 200;
  std::atomic<std::uint32_t> done{0};  // the newest version whose update has completed
  FakeChain chain;
  chain.settings.workers = 2;
  chain.settings.batch_packets = 300;  // several bursts
  // Each packet carries the oldest version that its batch may see in its timestamp, and its batch in its wire length.
  std::atomic<std::uint32_t> batches{0};
  const std::vector<run::testing::Bytes> frames = run::testing::numbered_frames(2);
  chain.add_source("source", [&](unsigned, Batch& batch) {
    if (!batch.empty()) return RxStatus::more;
    const std::uint64_t least = done.load();
    const std::uint32_t number = ++batches;
    for (std::size_t i = 0; batch.append(frames[i % 2], {least, number, 0, LinkType::ethernet}); ++i) {
    }
    return RxStatus::more;
  });
  auto made = router_of_version_0(GetParam());
  router::Router& router = *made;
  chain.functions.push_back({"router", std::move(made)});
  std::atomic<std::uint64_t> packets{0}, half_changes{0}, too_old{0}, mixed_batches{0};
  chain.add_function("checks", [&](std::span<PacketView> burst) {
    thread_local std::uint32_t batch_number = 0;
    thread_local std::uint32_t batch_version = 0;
    for (const PacketView packet : burst) {
      const Decided by = decided(packet);
      half_changes += by.half_a_change();
      too_old += by.version < packet.packet->timestamp_ns;
      if (packet.packet->wire_length == batch_number) mixed_batches += by.version != batch_version;
      batch_number = packet.packet->wire_length;
      batch_version = by.version;
    }
    packets += burst.size();
  });
  chain.add_function("takes", run::testing::each([](PacketView) { return Verdict::consume(); }));

  std::atomic<bool> stop{false};
  auto running = std::async(std::launch::async, [&] { return run::run(chain, {}, stop); });
  for (std::uint32_t v = 1; v <= kVersions; ++v) {
    const std::uint64_t before = packets;
    ASSERT_TRUE(router.update(version(v)));
    done = v;
    while (packets < before + 500) std::this_thread::yield();  // traffic continues between changes
  }
  stop = true;
  const auto result = running.get();
  ASSERT_TRUE(result) << to_string(result.error());
  const auto report = report::to_json(result->report);
  EXPECT_GT(packets, std::uint64_t{kVersions} * 500);
  EXPECT_EQ(half_changes, 0U) << "a port of one version and a MAC of another";
  EXPECT_EQ(mixed_batches, 0U) << "tables are swapped at batch boundaries";
  EXPECT_EQ(too_old, 0U) << "batches that begin after update() has returned";
  EXPECT_EQ(report["packets"]["in"], packets.load());
  EXPECT_EQ(report["packets"]["consumed"], packets.load());
  EXPECT_EQ(report["packets"]["dropped"], 0);
}

TEST(TableSwapAtTheEnd, WaitsForNoWorkerThatHasEnded) {
  FakeChain chain;
  chain.settings.workers = 2;
  std::atomic<bool> updated{false};
  std::atomic<bool> first_is_done{false};
  std::atomic<std::uint64_t> polls{0};
  constexpr std::uint64_t kPatience = 20'000'000;
  chain.add_source("source", [&](unsigned worker, Batch&) {
    if (worker == 0) {
      first_is_done = true;
      return RxStatus::end;
    }
    return updated || ++polls == kPatience ? RxStatus::end : RxStatus::idle;
  });
  auto made = router_of_version_0(Fib4Engine::kTrie4);
  router::Router& router = *made;
  chain.functions.push_back({"router", std::move(made)});
  const std::atomic<bool> never{false};
  auto running = std::async(std::launch::async, [&] { return run::run(chain, {}, never); });
  while (!first_is_done) std::this_thread::yield();
  ASSERT_TRUE(router.update(version(1)));
  updated = true;
  ASSERT_TRUE(running.get());
  EXPECT_LT(polls, kPatience) << "the change came only when the other worker had ended too";
}

}  // namespace
}  // namespace penstock::property
