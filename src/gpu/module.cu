// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/module.h"

#include <cuda_runtime_api.h>

#include "gpu/check.cuh"

namespace penstock::gpu {

bool ModuleKernel::launch(std::size_t threads, unsigned block, unsigned rows, const Stream& stream,
                          const void* parameter) const noexcept {
  if (threads == 0) return true;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>((threads + block - 1) / block), rows);
  launch.blockDim = block;
  launch.stream = stream.get();
  void* parameters[] = {const_cast<void*>(parameter)};
  // The runtime takes a cudaKernel_t in place of a function.
  return cudaLaunchKernelExC(&launch, kernel_, parameters) == cudaSuccess;
}

unsigned ModuleKernel::most_threads() const {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel_));
  return static_cast<unsigned>(attributes.maxThreadsPerBlock);
}

std::vector<std::size_t> ModuleKernel::parameter_bytes() const {
  std::vector<std::size_t> sizes;
  for (;;) {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    const cudaError_t status = cudaFuncGetParamInfo(kernel_, sizes.size(), &offset, &bytes);
    if (status == cudaErrorInvalidValue) break;  // there are no more
    check(status);
    sizes.push_back(bytes);
  }
  static_cast<void>(cudaGetLastError());  // so that the next launch does not report it
  return sizes;
}

// As in runtime.cu: at program exit, this may fail.
void ModuleDeleter::operator()(CUlib_st* library) const noexcept { static_cast<void>(cudaLibraryUnload(library)); }

Module::Module(std::span<const char> code) {
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  library_.reset(library);
}

ModuleKernel Module::kernel(const char* name) const {
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library_.get(), name));
  return ModuleKernel(kernel);
}

Module::Variable Module::variable(const char* name) const {
  Variable variable;
  check(cudaLibraryGetGlobal(&variable.address, &variable.bytes, library_.get(), name));
  return variable;
}

}  // namespace penstock::gpu
