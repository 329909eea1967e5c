// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/memory.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

/// A stream with work that does not end before `release`.
class BusyStream {
 public:
  BusyStream() {
    check(cudaLaunchHostFunc(stream_.get(), wait_for_release, &released_));
    check(cudaMemsetAsync(memory_.data(), 1, memory_.size_bytes(), stream_.get()));
  }
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;
  ~BusyStream() {
    release();
    stream_.wait();
  }
  void release() noexcept { released_ = true; }
  [[nodiscard]] bool is_busy() const noexcept { return stream_.progress() == Progress::kRunning; }

 private:
  static void wait_for_release(void* released) {
    while (!*static_cast<std::atomic<bool>*>(released)) std::this_thread::yield();
  }

  std::atomic<bool> released_{false};
  DeviceBuffer<std::uint8_t> memory_{4096};
  Stream stream_;
};

/// Whether `work` ends while a stream of the device is busy.
template <typename Work>
[[nodiscard]] bool ends_beside_traffic(const Work& work) {
  BusyStream traffic;
  auto done = std::async(std::launch::async, work);
  const bool ended = done.wait_for(std::chrono::seconds{20}) == std::future_status::ready;
  EXPECT_TRUE(traffic.is_busy());
  traffic.release();
  done.get();
  return ended;
}

TEST(DeviceMemory, IsTakenFilledAndFreedBesideTraffic) {
  std::vector<std::uint32_t> table(10'000'019);
  std::iota(table.begin(), table.end(), 3U);
  DeviceBuffer<std::uint32_t> copy;
  EXPECT_TRUE(ends_beside_traffic([&] {
    for (int round = 0; round < 3; ++round) copy = DeviceBuffer<std::uint32_t>(std::span<const std::uint32_t>(table));
    DeviceBuffer<std::uint32_t> wiped(100);
    wipe(wiped.data(), wiped.size_bytes());
  }));
  EXPECT_EQ(copy.to_host(), table);
}

TEST(PinnedMemory, IsTakenAndFreedBesideTrafficIfItIsSmall) {
  PinnedBuffer<std::uint64_t> first(1000);  // the pool exists
  EXPECT_TRUE(ends_beside_traffic([&] {
    for (int round = 0; round < 3; ++round) first = PinnedBuffer<std::uint64_t>(2000);
  }));
}

TEST(DeviceMemory, ThatWasFreedIsTakenAgain) {
  constexpr std::size_t kBytes = std::size_t{48} << 20;
  static_cast<void>(DeviceBuffer<std::uint8_t>(kBytes));
  const MemoryUse before = memory_use(current_device());
  EXPECT_GE(before.bytes, kBytes);
  for (int round = 0; round < 50; ++round) static_cast<void>(DeviceBuffer<std::uint8_t>(kBytes));
  EXPECT_EQ(memory_use(current_device()).bytes, before.bytes);
  EXPECT_EQ(memory_use(current_device()).most_bytes, before.most_bytes);
}

TEST(DeviceMemory, HasNoSecretsAfterItWasWiped) {
  const std::vector<std::uint8_t> secrets(5'000'000, 0x5a);
  std::uint8_t* memory = nullptr;
  {
    DeviceBuffer<std::uint8_t> keys{std::span<const std::uint8_t>(secrets)};
    memory = keys.data();
    wipe(keys.data(), keys.size_bytes());
  }
  const DeviceBuffer<std::uint8_t> next(secrets.size());
  ASSERT_EQ(next.data(), memory) << "the pool hands out other memory, so this test shows nothing";
  EXPECT_EQ(next.to_host(), std::vector<std::uint8_t>(secrets.size(), 0));
}

}  // namespace
}  // namespace penstock::gpu
