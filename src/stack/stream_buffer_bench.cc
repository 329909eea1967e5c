// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Segments per second of one core that a stream buffer takes, from segments in memory.
//
//   in_order       each segment follows the one before it; bytes are dropped once 64 KiB are there
//   out_of_order   every other segment, in random order, so that none touches another; then the segments between them,
//   in
//                  another random order, each of which joins two runs. Axis: runs that there are at most

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "stack/memory_pool.h"
#include "stack/stream_buffer.h"

using namespace penstock::stack;

namespace {

constexpr std::size_t kPoolBytes = std::size_t{256} << 20;

void in_order(benchmark::State& state) {
  MemoryPool pool(kPoolBytes);
  StreamBuffer buffer;
  const std::vector<std::uint8_t> segment(static_cast<std::size_t>(state.range(0)), 'x');
  std::uint64_t offset = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(buffer.insert(pool, offset, segment, OverlapPolicy::linux_host));
    offset += segment.size();
    if (offset - buffer.begin() >= 65536) buffer.drop_before(pool, offset - segment.size());
  }
  state.SetItemsProcessed(state.iterations());
  buffer.clear(pool);
}
BENCHMARK(in_order)->ArgName("bytes")->Arg(64)->Arg(1460);

void out_of_order(benchmark::State& state) {
  constexpr std::size_t kBytes = 16;
  MemoryPool pool(kPoolBytes);
  StreamBuffer buffer;
  const std::array<std::uint8_t, kBytes> segment{};
  const auto runs = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint64_t> order(runs);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (auto _ : state) {
    state.PauseTiming();
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::uint64_t> between = order;
    std::shuffle(between.begin(), between.end(), random);
    state.ResumeTiming();
    for (const std::uint64_t i : order) {
      benchmark::DoNotOptimize(buffer.insert(pool, 2 * i * kBytes, segment, OverlapPolicy::linux_host));
    }
    for (const std::uint64_t i : between) {
      benchmark::DoNotOptimize(buffer.insert(pool, (2 * i + 1) * kBytes, segment, OverlapPolicy::linux_host));
    }
    state.PauseTiming();
    if (buffer.run_from(0).bytes.size() != 2 * runs * kBytes) return state.SkipWithError("segments were not taken");
    buffer.clear(pool);
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0));
}
BENCHMARK(out_of_order)->ArgName("runs")->Arg(2)->Arg(16)->Arg(256)->Arg(4096)->Arg(65536);

}  // namespace

BENCHMARK_MAIN();
