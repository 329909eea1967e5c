// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two functions that send on one SA on a GPU share one counter there, for any batches, workers, streams and GPUs.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/way.h"
#include "property/two_senders.h"

namespace penstock::on_gpu {
namespace {

using property::TwoSenders;

/// Two GPUs of which the second can use a counter in the first one's memory; otherwise the reason why there are none.
Result<std::pair<int, int>> two_gpus_that_count_together() {
  std::vector<int> usable;
  for (const gpu::Device& device : gpu::list_devices().devices) {
    if (device.supported) usable.push_back(device.index);
  }
  if (usable.size() < 2) return failure(Error{{}, "needs two GPUs", std::to_string(usable.size()), ""});
  const int before = gpu::current_device();
  try {
    gpu::use_device(usable[1]);
    gpu::reach_memory_of(usable[0]);
    gpu::use_device(before);
  } catch (const gpu::CudaError& error) {
    gpu::use_device(before);
    return failure(Error{{}, "needs two GPUs with NVLink between them", error.what(), ""});
  }
  return std::pair(usable[0], usable[1]);
}

TEST_F(TwoSenders, NeverSendWithOneNonceOnAGpu) {
  for (const Way& way : kWays) {
    for (const char* const workers : {"1", "3"}) {
      SCOPED_TRACE(to_string(way) + ", workers: " + workers);
      const auto packets =
          send({"run.processor=gpu", std::string("run.workers=") + workers, "run.batch.packets=500",
                "run.transfer=" + transfer_of(way), "run.frames=" + frames_of(way), "run.sharing=" + sharing_of(way)});
      for (const std::uint64_t of_function : packets) EXPECT_GT(of_function, 500U);
    }
  }
}

TEST_F(TwoSenders, GoOnWhereAnotherProcessorHasLeftOff) {
  for (const char* const processor : {"gpu", "cpu", "gpu", "cpu"}) {
    SCOPED_TRACE(processor);
    for (const std::uint64_t of_function : send({std::string("run.processor=") + processor}))
      EXPECT_GT(of_function, 500U);
  }
}

TEST_F(TwoSenders, NeverSendWithOneNonceOnTwoGpus) {
  const auto gpus = two_gpus_that_count_together();
  if (!gpus) GTEST_SKIP() << to_string(gpus.error());
  const std::string pair = std::to_string(gpus->first) + "," + std::to_string(gpus->second);
  for (const Way& way : kWays) {
    for (const char* const workers : {"2", "4"}) {
      SCOPED_TRACE(to_string(way) + ", workers: " + workers);
      const auto packets =
          send({"run.processor=gpu", "run.gpus=" + pair, std::string("run.workers=") + workers, "run.batch.packets=200",
                "run.transfer=" + transfer_of(way), "run.frames=" + frames_of(way), "run.sharing=" + sharing_of(way)});
      for (const std::uint64_t of_function : packets) EXPECT_GT(of_function, 500U);
      EXPECT_EQ(report_["gpu"]["devices"].size(), 2U);
      EXPECT_EQ(report_["gpu"]["failures"], 0);
    }
  }
}

/// Each run continues after the previous one, with the counter in the memory of another GPU.
TEST_F(TwoSenders, GoOnWhereAnotherGpuHasLeftOff) {
  const auto gpus = two_gpus_that_count_together();
  if (!gpus) GTEST_SKIP() << to_string(gpus.error());
  for (const int device : {gpus->first, gpus->second, gpus->first}) {
    SCOPED_TRACE(device);
    for (const std::uint64_t of_function : send({"run.processor=gpu", "run.gpus=" + std::to_string(device)}))
      EXPECT_GT(of_function, 500U);
  }
}

}  // namespace
}  // namespace penstock::on_gpu
