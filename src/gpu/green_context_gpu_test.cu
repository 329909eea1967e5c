// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/green_context.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/launch_graph.h"
#include "gpu/memory.h"
#include "gpu/share.cuh"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

constexpr unsigned kGroups = 16;
constexpr std::size_t kMostMultiprocessors = 1024;

/// Marks the multiprocessors on which it runs. Its blocks stay long enough to fill all that they may.
__global__ void mark(std::uint8_t* ran) {
  if (threadIdx.x != 0) return;
  unsigned multiprocessor = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  ran[multiprocessor] = 1;
  constexpr long long kCycles = 100'000;
  for (const long long begin = clock64(); clock64() - begin < kCycles;) {
  }
}

enum class Way { launched, collected };

std::set<std::size_t> multiprocessors_of(const Stream& stream, Way way) {
  DeviceBuffer<std::uint8_t> ran(kMostMultiprocessors);
  EXPECT_TRUE(zero_async(ran.data(), ran.size(), stream));
  LaunchGraph graph;
  const Event done;
  if (way == Way::collected) EXPECT_TRUE(collect_launches(stream));
  mark<<<4096, 1024, 0, stream.get()>>>(ran.data());
  check_launch();
  if (way == Way::collected) EXPECT_TRUE(graph.launch(stream));
  EXPECT_TRUE(done.record(stream));
  done.wait();
  std::vector<std::uint8_t> there(kMostMultiprocessors);
  copy_to_host(there.data(), ran.data(), there.size());
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i] != 0) found.insert(i);
  }
  return found;
}

Stream stream_of(const GreenContext& context) {
  const GreenContextScope scope(&context);
  return Stream();
}

/// Empty, with the reason, where there are none.
std::optional<MultiprocessorGroups> groups_of_device() {
  use_device(0);
  try {
    return MultiprocessorGroups(kGroups);
  } catch (const CudaError& error) {
    ADD_FAILURE() << error.what();
    return std::nullopt;
  }
}

TEST(GreenContext, KeepsKernelsOnItsMultiprocessors) {
  const auto groups = groups_of_device();
  ASSERT_TRUE(groups);
  EXPECT_LE(kGroups * groups->multiprocessors_of_group(), multiprocessors_of_device());
  for (const unsigned count : {1U, 4U, 15U}) {
    const auto context = groups->take(count);
    EXPECT_EQ(context->multiprocessors(), count * groups->multiprocessors_of_group());
    const Stream stream = stream_of(*context);
    const std::set<std::size_t> launched = multiprocessors_of(stream, Way::launched);
    EXPECT_EQ(launched.size(), context->multiprocessors());
    EXPECT_EQ(multiprocessors_of(stream, Way::collected), launched) << "of a graph, too";
  }
  EXPECT_EQ(multiprocessors_of(Stream(), Way::launched).size(), multiprocessors_of_device());
}

TEST(GreenContext, SharesNoMultiprocessorWithAnother) {
  const auto groups = groups_of_device();
  ASSERT_TRUE(groups);
  const auto one = groups->take(8);
  auto other = groups->take(4);
  const std::set<std::size_t> of_one = multiprocessors_of(stream_of(*one), Way::launched);
  const std::set<std::size_t> of_other = multiprocessors_of(stream_of(*other), Way::launched);
  std::vector<std::size_t> both;
  std::ranges::set_intersection(of_one, of_other, std::back_inserter(both));
  EXPECT_TRUE(both.empty());
  EXPECT_THROW(static_cast<void>(groups->take(5)), CudaError) << "4 are free";
  other.reset();
  EXPECT_EQ(groups->take(8)->multiprocessors(), one->multiprocessors()) << "it has given back its groups";
}

TEST(GreenContext, GivesNoStreamsOutsideOfItsScope) {
  const auto groups = groups_of_device();
  ASSERT_TRUE(groups);
  const auto context = groups->take(1);
  {
    const GreenContextScope scope(context.get());
    const GreenContextScope inner(nullptr);
    EXPECT_EQ(multiprocessors_of(Stream(), Way::launched).size(), multiprocessors_of_device());
  }
  EXPECT_EQ(GreenContextScope::current(), nullptr);
  EXPECT_EQ(multiprocessors_of(Stream(), Way::launched).size(), multiprocessors_of_device());
}

TEST(GreenContext, OrdersItsWorkWithThatOfOthers) {
  const auto groups = groups_of_device();
  ASSERT_TRUE(groups);
  const auto context = groups->take(1);
  const Stream there = stream_of(*context);
  const Stream elsewhere;
  DeviceBuffer<std::uint8_t> ran(kMostMultiprocessors);
  ASSERT_TRUE(zero_async(ran.data(), ran.size(), elsewhere));
  const Event zeroed(Event::Timing::kOn);
  ASSERT_TRUE(zeroed.record(elsewhere));
  ASSERT_TRUE(there.start_after(zeroed));
  mark<<<64, 32, 0, there.get()>>>(ran.data());
  check_launch();
  const Event marked(Event::Timing::kOn);
  ASSERT_TRUE(marked.record(there));
  marked.wait();
  EXPECT_GE(marked.milliseconds_since(zeroed), 0);
  std::vector<std::uint8_t> found(kMostMultiprocessors);
  copy_to_host(found.data(), ran.data(), found.size());
  EXPECT_EQ(static_cast<unsigned>(std::ranges::count(found, 1)), context->multiprocessors());
}

/// In a process of its own, this is the first memory that is taken.
TEST(GreenContext, EndsBeforeMemoryThatWasTakenInItsScope) {
  const auto groups = groups_of_device();
  ASSERT_TRUE(groups);
  constexpr std::size_t kBytes = 1 << 20;
  const std::vector<std::uint8_t> numbers(kBytes, 7);
  std::vector<std::uint8_t> found(kBytes);
  auto context = groups->take(1);
  DeviceBuffer<std::uint8_t> first;
  {
    const GreenContextScope scope(context.get());
    first = DeviceBuffer<std::uint8_t>(kBytes);
  }
  context.reset();
  DeviceBuffer<std::uint8_t> second(kBytes);
  for (std::uint8_t* const memory : {first.data(), second.data()}) {
    copy_to_device(memory, numbers.data(), kBytes);
    copy_to_host(found.data(), memory, kBytes);
    EXPECT_EQ(found, numbers);
  }
}

TEST(GreenContext, HasAPercentageOfTheDevice) {
  use_device(0);
  const GreenContext half = GreenContext::of_percent(50);
  EXPECT_GE(2 * half.multiprocessors(), multiprocessors_of_device());
  EXPECT_EQ(multiprocessors_of(stream_of(half), Way::launched).size(), half.multiprocessors());
}

}  // namespace
}  // namespace penstock::gpu
