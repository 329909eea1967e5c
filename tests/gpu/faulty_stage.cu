// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Triggers the faults after the work on the batch, so that the device has changed it when it fails.

#include "gpu/faulty_function.h"
#include "gpu/per_packet.cuh"

namespace penstock::on_gpu {

namespace {

__global__ void stop() { asm volatile("trap;"); }

__global__ void write_to(volatile unsigned* where) { *where = 1; }

class FaultyStage final : public gpu::GpuStage {
 public:
  explicit FaultyStage(FaultPlan& plan) : plan_(plan) {}

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    const bool struck = plan_.strikes();
    if (!gpu::enqueue_per_packet(CountUpCore{}, batch, stream)) return false;
    if (!struck) return true;
    switch (plan_.fault) {
      case Fault::trapped: stop<<<1, 1, 0, stream.get()>>>(); break;
      // Beyond all memory that a process has mapped, on host or device.
      case Fault::stray_write:
        write_to<<<1, 1, 0, stream.get()>>>(reinterpret_cast<volatile unsigned*>(std::uintptr_t{1} << 46));
        break;
      default: return false;
    }
    return cudaGetLastError() == cudaSuccess;
  }

 private:
  FaultPlan& plan_;
};

}  // namespace

std::unique_ptr<gpu::GpuStage> make_faulty_stage(FaultPlan& plan) { return std::make_unique<FaultyStage>(plan); }

}  // namespace penstock::on_gpu
