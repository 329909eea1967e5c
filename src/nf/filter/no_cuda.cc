// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces filter.cu in builds without CUDA: no tables on devices can be made, and so no stages.

#include "gpu/cuda_error.h"
#include "nf/filter/device_tables.h"

namespace penstock::filter {

namespace {

[[noreturn]] void refuse() { throw gpu::CudaError(0, "this program was built without CUDA"); }

}  // namespace

struct DeviceTables::Parts {};
DeviceTables::DeviceTables(const FilterList& /*list*/, MachineCode* /*code*/) { refuse(); }
DeviceTables::DeviceTables(const FilterView& /*host*/, std::size_t /*instructions*/) { refuse(); }
DeviceTables::~DeviceTables() = default;

std::unique_ptr<gpu::GpuStage> make_filter_gpu_stage(const DeviceTables& /*tables*/, std::uint32_t /*bytes*/,
                                                     std::uint32_t /*packets*/) {
  refuse();
}

}  // namespace penstock::filter
