// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a machine without a GPU reports. Skipped if there is a GPU.

#include <gtest/gtest.h>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

class WithoutAGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!list.devices.empty()) GTEST_SKIP() << "this machine has a GPU";
  }
  DeviceList list = list_devices();
};

TEST_F(WithoutAGpu, TheListSaysWhy) {
  EXPECT_NE(list.availability, Availability::kUsable);
  EXPECT_FALSE(list.reason.empty());
}

TEST_F(WithoutAGpu, TakingFromADeviceThrows) {
  EXPECT_THROW(DeviceBuffer<int>(1), CudaError);
  EXPECT_THROW(PinnedBuffer<int>(1), CudaError);
  EXPECT_THROW(Stream(), CudaError);
  EXPECT_THROW(Event(), CudaError);
  EXPECT_THROW(use_device(0), CudaError);
  EXPECT_THROW(static_cast<void>(current_device()), CudaError);
}

TEST_F(WithoutAGpu, EmptyOwnersAreHarmless) {
  const DeviceBuffer<int> device;
  const PinnedBuffer<int> pinned;
  EXPECT_EQ(device.size_bytes() + pinned.size_bytes(), 0U);
}

}  // namespace
}  // namespace penstock::gpu
