// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/multiprocessor_share.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "gpu/check.cuh"
#include "gpu/devices.h"

namespace penstock::experiments {
namespace {

constexpr unsigned kDriverVersion = 12050;  // since then, green contexts have streams

/// Null if the driver has no such function.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  gpu::check(cudaGetDriverEntryPointByVersion(name, &found, kDriverVersion, cudaEnableDefault, &result));
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

tl::unexpected<Errors> refusal(std::string message) {
  Errors errors(1);
  errors.front().message = std::move(message);
  return tl::unexpected(std::move(errors));
}

}  // namespace

struct MultiprocessorShare::Driver {
  decltype(&cuGetErrorString) error_string = driver_function<decltype(&cuGetErrorString)>("cuGetErrorString");
  decltype(&cuDeviceGet) device = driver_function<decltype(&cuDeviceGet)>("cuDeviceGet");
  decltype(&cuDeviceGetDevResource) resource =
      driver_function<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource");
  decltype(&cuDevSmResourceSplitByCount) split =
      driver_function<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount");
  decltype(&cuDevResourceGenerateDesc) describe =
      driver_function<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc");
  decltype(&cuGreenCtxCreate) create = driver_function<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate");
  decltype(&cuGreenCtxDestroy) destroy = driver_function<decltype(&cuGreenCtxDestroy)>("cuGreenCtxDestroy");
  decltype(&cuGreenCtxStreamCreate) make_stream =
      driver_function<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate");

  [[nodiscard]] bool complete() const noexcept {
    return error_string != nullptr && device != nullptr && resource != nullptr && split != nullptr &&
           describe != nullptr && create != nullptr && destroy != nullptr && make_stream != nullptr;
  }

  [[nodiscard]] Result<void> taken(CUresult status, const char* call) const {
    if (status == CUDA_SUCCESS) return {};
    const char* reason = nullptr;
    if (error_string(status, &reason) != CUDA_SUCCESS) reason = "unknown error";
    return refusal(std::string(call) + ": " + reason);
  }
};

MultiprocessorShare::MultiprocessorShare() noexcept = default;

MultiprocessorShare::MultiprocessorShare(MultiprocessorShare&& other) noexcept
    : driver_(std::move(other.driver_)),
      context_(std::exchange(other.context_, nullptr)),
      multiprocessors_(other.multiprocessors_) {}

MultiprocessorShare& MultiprocessorShare::operator=(MultiprocessorShare&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(context_, other.context_);
  std::swap(multiprocessors_, other.multiprocessors_);
  return *this;
}

MultiprocessorShare::~MultiprocessorShare() {
  if (context_ != nullptr) static_cast<void>(driver_->destroy(static_cast<CUgreenCtx>(context_)));
}

Result<MultiprocessorShare> MultiprocessorShare::take(unsigned percent) {
  MultiprocessorShare share;
  share.driver_ = std::make_unique<Driver>();
  const Driver& driver = *share.driver_;
  if (!driver.complete()) return refusal("the driver has no green contexts with streams, which CUDA 12.5 introduced");
  gpu::check(cudaFree(nullptr));  // the primary context must exist
  CUdevice device{};
  CUdevResource all{};
  if (auto ok = driver.taken(driver.device(&device, gpu::current_device()), "cuDeviceGet"); !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = driver.taken(driver.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource"); !ok) {
    return tl::unexpected(ok.error());
  }
  // Independent of clusters, which these kernels do not use: so a share is as near to its percentage as possible.
  CUdevResource part{};
  CUdevResource rest{};
  unsigned groups = 1;
  const unsigned least = (all.sm.smCount * percent + 99) / 100;
  if (auto ok = driver.taken(
          driver.split(&part, &groups, &all, &rest, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, least),
          "cuDevSmResourceSplitByCount");
      !ok) {
    return tl::unexpected(ok.error());
  }
  if (groups == 0) return refusal("the multiprocessors cannot be divided");
  CUdevResourceDesc description{};
  if (auto ok = driver.taken(driver.describe(&description, &part, 1), "cuDevResourceGenerateDesc"); !ok) {
    return tl::unexpected(ok.error());
  }
  CUgreenCtx context{};
  if (auto ok =
          driver.taken(driver.create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
      !ok) {
    return tl::unexpected(ok.error());
  }
  share.context_ = context;
  share.multiprocessors_ = part.sm.smCount;
  return share;
}

Result<CUstream_st*> MultiprocessorShare::make_stream() const {
  CUstream stream{};
  const auto made = driver_->make_stream(&stream, static_cast<CUgreenCtx>(context_), CU_STREAM_NON_BLOCKING, 0);
  if (auto ok = driver_->taken(made, "cuGreenCtxStreamCreate"); !ok) return tl::unexpected(ok.error());
  return stream;
}

}  // namespace penstock::experiments
