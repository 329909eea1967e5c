// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/green_context.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"

namespace penstock::gpu {
namespace {

constexpr unsigned kDriverVersion = 12050;  // since then, green contexts have streams

thread_local const GreenContext* of_thread = nullptr;

/// Null if the driver has no such function.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, kDriverVersion, cudaEnableDefault, &result));
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

struct Driver {
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

  void check(CUresult status, const char* call) const {
    if (status == CUDA_SUCCESS) return;
    const char* reason = nullptr;
    if (error_string(status, &reason) != CUDA_SUCCESS) reason = "unknown error";
    throw CudaError(static_cast<int>(status), std::string(call) + ": " + reason);
  }
};

/// Throws CudaError if the driver is too old.
const Driver& driver() {
  static const Driver driver;
  if (!driver.complete())
    throw CudaError(0, "the NVIDIA driver has no green contexts with streams, which CUDA 12.5 introduced");
  return driver;
}

CUdevice current_driver_device() {
  check(cudaFree(nullptr));  // the primary context must exist
  CUdevice device{};
  driver().check(driver().device(&device, current_device()), "cuDeviceGet");
  return device;
}

CUdevResource all_multiprocessors(CUdevice device) {
  CUdevResource all{};
  driver().check(driver().resource(device, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  return all;
}

/// The parts are of the same split.
CUgreenCtx make_context(CUdevice device, std::vector<CUdevResource> parts) {
  CUdevResourceDesc description{};
  driver().check(driver().describe(&description, parts.data(), static_cast<unsigned>(parts.size())),
                 "cuDevResourceGenerateDesc");
  CUgreenCtx context{};
  driver().check(driver().create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
  return context;
}

/// Empty if there are not so many groups of this size.
std::vector<CUdevResource> split(const CUdevResource& all, unsigned groups, unsigned size, unsigned flags) {
  unsigned found = 0;
  if (driver().split(nullptr, &found, &all, nullptr, flags, size) != CUDA_SUCCESS || found < groups) return {};
  std::vector<CUdevResource> parts(groups);
  CUdevResource rest{};
  found = groups;
  driver().check(driver().split(parts.data(), &found, &all, &rest, flags, size), "cuDevSmResourceSplitByCount");
  if (found < groups) return {};
  return parts;
}

}  // namespace

void GreenContextDeleter::operator()(CUgreenCtx_st* context) const noexcept {
  static_cast<void>(driver().destroy(context));
}

GreenContext GreenContext::of_percent(unsigned percent) {
  const CUdevice device = current_driver_device();
  const CUdevResource all = all_multiprocessors(device);
  // Independent of clusters, which these kernels do not use: so a share is as near to its percentage as possible.
  CUdevResource part{};
  CUdevResource rest{};
  unsigned groups = 1;
  const unsigned least = (all.sm.smCount * percent + 99) / 100;
  driver().check(driver().split(&part, &groups, &all, &rest, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, least),
                 "cuDevSmResourceSplitByCount");
  if (groups == 0) throw CudaError(0, "cuDevSmResourceSplitByCount: the multiprocessors cannot be divided");
  return {make_context(device, {part}), part.sm.smCount};
}

CUstream_st* GreenContext::make_stream() const {
  CUstream stream{};
  driver().check(driver().make_stream(&stream, context_.get(), CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
  return stream;
}

GreenContextScope::GreenContextScope(const GreenContext* context) noexcept
    : outer_(std::exchange(of_thread, context)) {}
GreenContextScope::~GreenContextScope() { of_thread = outer_; }
const GreenContext* GreenContextScope::current() noexcept { return of_thread; }

struct MultiprocessorGroups::Division {
  CUdevice device{};
  std::vector<CUdevResource> groups;
  std::mutex mutex;         // guards `taken`
  std::vector<bool> taken;  // by group

  void give_back(const std::vector<std::size_t>& mine) noexcept {
    const std::lock_guard lock(mutex);
    for (const std::size_t group : mine) taken[group] = false;
  }
};

MultiprocessorGroups::MultiprocessorGroups(unsigned groups) : division_(std::make_shared<Division>()) {
  division_->device = current_driver_device();
  const CUdevResource all = all_multiprocessors(division_->device);
  // Groups whose multiprocessors are neighbours, if there are enough of them; else, any multiprocessors.
  for (const unsigned flags : {0U, static_cast<unsigned>(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING)}) {
    for (unsigned size = all.sm.smCount / groups; size > 0 && division_->groups.empty(); --size)
      division_->groups = split(all, groups, size, flags);
  }
  if (division_->groups.empty())
    throw CudaError(0, "cuDevSmResourceSplitByCount: " + std::to_string(all.sm.smCount) +
                           " multiprocessors cannot be divided into " + std::to_string(groups) + " groups");
  division_->taken.resize(groups);
}

unsigned MultiprocessorGroups::multiprocessors_of_group() const noexcept {
  return division_->groups.front().sm.smCount;
}

std::shared_ptr<const GreenContext> MultiprocessorGroups::take(unsigned groups) const {
  std::vector<std::size_t> mine;
  std::vector<CUdevResource> parts;
  {
    const std::lock_guard lock(division_->mutex);
    for (std::size_t group = 0; group < division_->taken.size() && mine.size() < groups; ++group) {
      if (!division_->taken[group]) mine.push_back(group);
    }
    if (groups == 0 || mine.size() < groups)
      throw CudaError(0, std::to_string(mine.size()) + " groups of multiprocessors are free, of " +
                             std::to_string(groups) + " that are wanted");
    for (const std::size_t group : mine) {
      division_->taken[group] = true;
      parts.push_back(division_->groups[group]);
    }
  }
  try {
    unsigned multiprocessors = 0;
    for (const CUdevResource& part : parts) multiprocessors += part.sm.smCount;
    const auto end = [division = division_, mine](const GreenContext* context) {
      delete context;
      division->give_back(mine);
    };
    return {new GreenContext(make_context(division_->device, std::move(parts)), multiprocessors), end};
  } catch (const CudaError&) {
    division_->give_back(mine);
    throw;
  }
}

}  // namespace penstock::gpu
