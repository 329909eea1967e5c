// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/device_filters.h"
#include "experiments/filter/key_kernels.cuh"
#include "experiments/filter/rule_code.h"
#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/module.h"
#include "gpu/nvrtc.h"

namespace penstock::experiments {
namespace {

class CodeFilter final : public KeyFilter {
 public:
  explicit CodeFilter(std::span<const char> code) : module_(code), kernel_(module_.kernel(kRuleKernel)) {}

  bool enqueue(const KeysAt& keys, std::uint32_t count, const ResultsAt& results, unsigned block,
               CUstream_st* stream) const noexcept override {
    cudaLaunchConfig_t launch{};
    launch.gridDim = (count + block - 1) / block;
    launch.blockDim = block;
    launch.stream = stream;
    KeysAt from = keys;
    ResultsAt to = results;
    void* parameters[] = {&from, &count, &to};
    return cudaLaunchKernelExC(&launch, kernel_.get(), parameters) == cudaSuccess;
  }

 private:
  gpu::Module module_;
  gpu::ModuleKernel kernel_;
};

}  // namespace

Result<std::unique_ptr<KeyFilter>> make_code_filter(std::span<const WordRule<kKeyWords>> rules, Deciding deciding) {
  int major = 0;
  int minor = 0;
  const int device = gpu::current_device();
  gpu::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  gpu::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  const auto code = gpu::compile_cuda(rule_code(rules, deciding), "rules.cu", major, minor);
  if (!code) return tl::unexpected(code.error());
  return std::make_unique<CodeFilter>(*code);
}

}  // namespace penstock::experiments
