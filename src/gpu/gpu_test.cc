// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the owners and copies on a real device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/launch_graph.h"
#include "gpu/memory.h"
#include "gpu/pcie.h"
#include "gpu/stream.h"
#include "gpu/turns.h"

namespace penstock::gpu {
namespace {

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 7U);
  return values;
}

TEST(Devices, AreListedWithWhatTheyHave) {
  const DeviceList list = list_devices();
  ASSERT_EQ(list.availability, Availability::kUsable) << list.reason;
  EXPECT_TRUE(list.reason.empty());
  EXPECT_FALSE(list.driver_cuda.empty());
  for (const Device& device : list.devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.multiprocessors, 0);
    EXPECT_GT(device.memory_bytes, std::size_t{1} << 30);
    EXPECT_FALSE(device.pci_bus_id.empty());
  }
}

TEST(Devices, RefuseAnIndexThatDoesNotExist) {
  EXPECT_THROW(use_device(1 << 20), CudaError);
  EXPECT_NO_THROW(use_device(0));
}

TEST(DeviceBuffer, GivesBackWhatItWasMadeFrom) {
  const auto values = numbers(100'003);
  EXPECT_EQ(DeviceBuffer<std::uint32_t>(std::span<const std::uint32_t>(values)).to_host(), values);
}

TEST(DeviceBuffer, MayBeEmpty) {
  const DeviceBuffer<std::uint32_t> empty(0);
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_TRUE(empty.to_host().empty());
}

TEST(DeviceBuffer, ThrowsWithAPlaceWhenTheDeviceIsFull) {
  try {
    const DeviceBuffer<std::uint8_t> too_large(std::size_t{1} << 50);
    FAIL() << "a petabyte was given";
  } catch (const CudaError& error) {
    EXPECT_NE(std::string(error.what()).find("memory.cu:"), std::string::npos) << error.what();
  }
  // The error must not stick and be reported by the next call.
  EXPECT_NO_THROW(DeviceBuffer<std::uint8_t>(1));
}

TEST(DeviceBuffer, HandsItsMemoryOnWhenMoved) {
  const auto values = numbers(10);
  DeviceBuffer<std::uint32_t> first{std::span<const std::uint32_t>(values)};
  const DeviceBuffer<std::uint32_t> second = std::move(first);
  EXPECT_EQ(second.to_host(), values);
}

TEST(PinnedBuffer, CrossesToTheDeviceAndBackInStreamOrder) {
  const auto values = numbers(1 << 20);
  PinnedBuffer<std::uint32_t> there(values.size());
  PinnedBuffer<std::uint32_t> back(values.size());
  DeviceBuffer<std::uint32_t> device(values.size());
  std::copy(values.begin(), values.end(), there.data());

  const Stream stream;
  ASSERT_TRUE(copy_async(device.data(), there.data(), there.size_bytes(), stream));
  ASSERT_TRUE(copy_async(back.data(), device.data(), back.size_bytes(), stream));
  ASSERT_TRUE(zero_async(device.data(), device.size_bytes(), stream));
  stream.wait();
  EXPECT_EQ(stream.progress(), Progress::kDone);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), back.data()));
  EXPECT_EQ(device.to_host(), std::vector<std::uint32_t>(values.size(), 0));
}

TEST(Event, OrdersTwoStreams) {
  const auto values = numbers(1 << 22);
  PinnedBuffer<std::uint32_t> there(values.size());
  PinnedBuffer<std::uint32_t> back(values.size());
  DeviceBuffer<std::uint32_t> device(values.size());
  std::copy(values.begin(), values.end(), there.data());

  const Stream first;
  const Stream second;
  const Event copied;
  ASSERT_TRUE(copy_async(device.data(), there.data(), there.size_bytes(), first));
  ASSERT_TRUE(copied.record(first));
  ASSERT_TRUE(second.start_after(copied));
  ASSERT_TRUE(copy_async(back.data(), device.data(), back.size_bytes(), second));
  const Event done;
  ASSERT_TRUE(done.record(second));
  while (done.progress() == Progress::kRunning) {
  }
  EXPECT_EQ(done.progress(), Progress::kDone);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), back.data()));
}

TEST(Event, OrdersTwoStreamsWhoseLaunchesAreCollected) {
  constexpr std::size_t kNumbers = 1 << 22;
  PinnedBuffer<std::uint32_t> there(kNumbers);
  PinnedBuffer<std::uint32_t> back(kNumbers);
  DeviceBuffer<std::uint32_t> device(kNumbers);
  const Stream first;
  const Stream second;
  const Event copied[2];
  LaunchGraph graph_of_first;
  LaunchGraph graph_of_second;
  for (std::uint32_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    std::iota(there.data(), there.data() + kNumbers, round);
    // The graph is updated with another event, as with other addresses.
    const Event& event = copied[round % 2];
    ASSERT_TRUE(collect_launches(first));
    ASSERT_TRUE(copy_async(device.data(), there.data(), there.size_bytes(), first));
    ASSERT_TRUE(event.record(first));
    ASSERT_TRUE(graph_of_first.launch(first));
    ASSERT_TRUE(collect_launches(second));
    ASSERT_TRUE(second.start_after(event));
    ASSERT_TRUE(copy_async(back.data(), device.data(), back.size_bytes(), second));
    ASSERT_TRUE(graph_of_second.launch(second));
    second.wait();
    EXPECT_EQ(event.progress(), Progress::kDone);
    ASSERT_TRUE(std::equal(there.data(), there.data() + kNumbers, back.data()));
  }
}

/// Each batch reads what the previous one has left on the device, and leaves its own number there.
struct TurnBed {
  static constexpr std::size_t kNumbers = 1 << 18;
  struct Lane {
    explicit Lane(Turns& turns) : turn(turns) {}
    Stream stream;
    LaunchGraph graph;
    Turn turn;
  };

  explicit TurnBed(std::size_t lane_count, std::size_t batches)
      : mine(batches * kNumbers), found(batches * kNumbers), shared(kNumbers) {
    for (std::size_t n = 0; n < batches; ++n) {
      std::fill_n(mine.data() + n * kNumbers, kNumbers, static_cast<std::uint32_t>(n + 1));
    }
    EXPECT_TRUE(zero_async(shared.data(), shared.size_bytes(), setup));
    setup.wait();
    for (std::size_t i = 0; i < lane_count; ++i) lanes.push_back(std::make_unique<Lane>(turns));
  }

  [[nodiscard]] bool enqueue(Lane& lane, std::size_t batch) {
    constexpr std::size_t kBytes = kNumbers * sizeof(std::uint32_t);
    return lane.turn.begin(lane.stream) &&
           copy_async(found.data() + batch * kNumbers, shared.data(), kBytes, lane.stream) &&
           copy_async(shared.data(), mine.data() + batch * kNumbers, kBytes, lane.stream) && lane.turn.end(lane.stream);
  }
  [[nodiscard]] bool run(Lane& lane, std::size_t batch, bool collected) {
    if (!collected) return enqueue(lane, batch);
    return collect_launches(lane.stream) && enqueue(lane, batch) && lane.graph.launch(lane.stream);
  }
  void expect_found(std::size_t batch, std::size_t of) const {
    const std::uint32_t* const first = found.data() + batch * kNumbers;
    EXPECT_TRUE(std::all_of(first, first + kNumbers, [&](std::uint32_t number) { return number == of; }))
        << "batch " << batch << " found " << *first << " first, and " << first[kNumbers - 1] << " last";
  }
  void wait() const {
    for (const auto& lane : lanes) lane->stream.wait();
  }

  Stream setup;
  PinnedBuffer<std::uint32_t> mine;
  PinnedBuffer<std::uint32_t> found;
  DeviceBuffer<std::uint32_t> shared;
  Turns turns;
  std::vector<std::unique_ptr<Lane>> lanes;
};

TEST(Turns, RunInTheOrderInWhichTheyAreEnqueued) {
  constexpr std::size_t kBatches = 36;
  for (const std::size_t lanes : {1U, 2U, 3U}) {
    TurnBed bed(lanes, kBatches);
    for (std::size_t n = 0; n < kBatches; ++n) {
      ASSERT_TRUE(bed.run(*bed.lanes[n * n % lanes], n, n % 5 < 3)) << "batch " << n;
    }
    bed.wait();
    for (std::size_t n = 0; n < kBatches; ++n) bed.expect_found(n, n);
  }
}

TEST(Turns, ContinueAfterATurnThatNeverRan) {
  TurnBed bed(3, 6);
  ASSERT_TRUE(bed.run(*bed.lanes[0], 0, true));
  ASSERT_TRUE(collect_launches(bed.lanes[1]->stream));
  ASSERT_TRUE(bed.enqueue(*bed.lanes[1], 1));
  drop_collected(bed.lanes[1]->stream);
  bed.lanes[1]->turn.withdraw();
  ASSERT_TRUE(bed.run(*bed.lanes[2], 2, true));
  // Drop the batch, and enqueue it again immediately.
  ASSERT_TRUE(collect_launches(bed.lanes[1]->stream));
  ASSERT_TRUE(bed.enqueue(*bed.lanes[1], 3));
  drop_collected(bed.lanes[1]->stream);
  ASSERT_TRUE(bed.run(*bed.lanes[1], 3, false));
  bed.lanes[0]->stream.wait();
  bed.lanes[1]->stream.wait();
  bed.lanes.erase(bed.lanes.begin(), bed.lanes.begin() + 2);  // their work is abandoned
  ASSERT_TRUE(bed.run(*bed.lanes[0], 4, true));
  bed.wait();
  bed.expect_found(2, 1);
  bed.expect_found(3, 3);
  bed.expect_found(4, 4);
}

TEST(Event, KeepsTheTimeWhenAsked) {
  const Stream stream;
  const Event start(Event::Timing::kOn);
  const Event stop(Event::Timing::kOn);
  ASSERT_TRUE(start.record(stream));
  ASSERT_TRUE(stop.record(stream));
  stop.wait();
  EXPECT_GE(stop.milliseconds_since(start), 0);
  EXPECT_THROW(static_cast<void>(Event().milliseconds_since(start)), CudaError);
}

TEST(Pcie, HasARateInEachDirection) {
  const PcieRates rates = measure_pcie(0);
  EXPECT_GT(rates.to_device, 0);
  EXPECT_GT(rates.to_host, 0);
  EXPECT_GT(rates.both_each_way, 0);
}

}  // namespace
}  // namespace penstock::gpu
