// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/module.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/nvrtc.h"

namespace penstock::gpu {
namespace {

struct Numbers {
  std::uint32_t* to;
  std::uint32_t count;
  std::uint32_t first;
};

TEST(Module, RunsCodeMadeAtRunTimeInBatchesOfEverySize) {
  if (!nvrtc_status().available) GTEST_SKIP() << nvrtc_status().reason;
  const Device device = list_devices().devices.at(0);
  const auto code = compile_cuda(R"(
    struct Numbers { unsigned* to; unsigned count, first; };
    extern "C" __global__ void fill(const Numbers numbers) {
      const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < numbers.count) numbers.to[i] = numbers.first + i;
    })",
                                 "fill.cu", device.compute_major, device.compute_minor);
  ASSERT_TRUE(code) << to_string(code.error());
  const Module module(*code);
  const ModuleKernel fill = module.kernel("fill");
  const Stream stream;
  for (const std::uint32_t count : {0U, 1U, 31U, 32U, 33U, 1000U}) {
    const std::vector<std::uint32_t> sevens(count + 1, 7);
    DeviceBuffer<std::uint32_t> numbers{std::span<const std::uint32_t>(sevens)};
    ASSERT_TRUE(fill.launch(count, 128, stream, Numbers{numbers.data(), count, 5}));
    stream.wait();
    const auto host = numbers.to_host();
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(host[i], 5 + i);
    ASSERT_EQ(host[count], 7U);
  }
}

TEST(Module, SaysWhatItsKernelsAndVariablesAre) {
  if (!nvrtc_status().available) GTEST_SKIP() << nvrtc_status().reason;
  const Device device = list_devices().devices.at(0);
  const auto code = compile_cuda(R"(
    extern "C" __constant__ unsigned long long first = 3;
    struct Numbers { unsigned* to; unsigned count; };
    extern "C" __global__ void fill(const Numbers numbers, unsigned char) {
      if (threadIdx.x < numbers.count) numbers.to[threadIdx.x] = first + threadIdx.x;
    }
    extern "C" __global__ void nothing() {})",
                                 "fill.cu", device.compute_major, device.compute_minor);
  ASSERT_TRUE(code) << to_string(code.error());
  const Module module(*code);
  EXPECT_EQ(module.kernel("fill").parameter_bytes(), (std::vector<std::size_t>{16, 1}));
  EXPECT_TRUE(module.kernel("nothing").parameter_bytes().empty());
  EXPECT_EQ(module.kernel("nothing").most_threads(), 1024U);
  const Module::Variable first = module.variable("first");
  EXPECT_EQ(first.bytes, 8U);
  std::uint64_t value = 0;
  copy_to_host(&value, first.address, sizeof value);
  EXPECT_EQ(value, 3U);
  EXPECT_THROW(static_cast<void>(module.variable("second")), CudaError);
}

TEST(Module, RefusesWhatIsNoMachineCode) {
  std::vector<char> code(1000, 'x');
  code.back() = 0;  // what is not machine code may be PTX, which ends with 0
  EXPECT_THROW(static_cast<void>(Module(code).kernel("x")), CudaError);
}

}  // namespace
}  // namespace penstock::gpu
