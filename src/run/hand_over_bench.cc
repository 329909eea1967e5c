// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets per second from one worker to another. Each runs on a core of its own, in batches of 64.
//
//   hand_over  frames of `bytes` bytes, copied to the ring and from there to a batch

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "run/hand_over.h"

namespace {

using namespace penstock;
using namespace penstock::run;

constexpr std::size_t kBatch = 64;

struct OwnBatch {
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBatch * 2048);
  std::vector<PacketDescriptor> descriptors = std::vector<PacketDescriptor>(kBatch);
  Batch batch{bytes, descriptors, {}};
};

void hand_over(benchmark::State& state) {
  HandOver hand_over(2, 1);
  std::atomic<bool> stop{false};
  std::thread giver([&] {
    OwnBatch from;
    const std::vector<std::uint8_t> frame(static_cast<std::size_t>(state.range(0)), 'x');
    while (from.batch.append(frame, {.wire_length = static_cast<std::uint32_t>(frame.size())})) {
    }
    while (!stop.load(std::memory_order_relaxed)) {
      for (std::size_t i = 0; i < from.batch.size(); ++i) {
        while (!hand_over.give(0, 1, from.batch.view(i)) && !stop.load(std::memory_order_relaxed)) {
        }
      }
      hand_over.wake_others(0);
    }
  });
  OwnBatch to;
  std::int64_t packets = 0;
  for (auto _ : state) {
    to.batch.reset(0);
    while (to.batch.size() < kBatch) static_cast<void>(hand_over.inbox(1).poll(to.batch));
    packets += static_cast<std::int64_t>(to.batch.size());
    benchmark::DoNotOptimize(to.bytes.data());
  }
  stop = true;
  giver.join();
  state.SetItemsProcessed(packets);
}
BENCHMARK(hand_over)->ArgName("bytes")->Arg(60)->Arg(594)->Arg(1514)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
