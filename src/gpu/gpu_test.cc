// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The owners and their copies on a real device.

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/pcie.h"
#include "gpu/stream.h"

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
    EXPECT_NE(std::string(error.what()).find("runtime.cu:"), std::string::npos) << error.what();
  }
  // The failure is not blamed on what comes next.
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
