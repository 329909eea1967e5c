// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces the .cu files in a build without CUDA: no keys can be on a device, so there is nothing to do.

#include "gpu/cuda_error.h"
#include "nf/ipsec/crypto/crypto.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/numbers/device_numbers.h"

namespace penstock::ipsec {

CryptoScratch::CryptoScratch(std::size_t, std::uint32_t) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

bool enqueue_seal(const CryptoJob*, std::uint32_t, const DeviceKeys&, std::uint8_t*, CryptoScratch&,
                  const gpu::Stream&) noexcept {
  return false;
}

bool enqueue_open(const CryptoJob*, std::uint32_t, const DeviceKeys&, std::uint8_t*, std::uint8_t*, CryptoScratch&,
                  const gpu::Stream&) noexcept {
  return false;
}

std::unique_ptr<gpu::GpuStage> make_outbound_gpu_stage(const DeviceTables&, std::unique_ptr<const Sender>, gpu::Turns&,
                                                       FrameRoom, const StageUse&) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

std::unique_ptr<gpu::GpuStage> make_sealing_gpu_stage(const SealingCopies&, const StageUse&) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

std::unique_ptr<gpu::GpuStage> make_inbound_gpu_stage(const DeviceCopies&, WrongIcv, const StageUse&) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

std::unique_ptr<DeviceNumbers> make_device_numbers() { throw gpu::CudaError(0, "this program was built without CUDA"); }

}  // namespace penstock::ipsec
