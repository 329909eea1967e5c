// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/scan_kernel.cuh"

namespace penstock::nids {

namespace {

// Few lanes, for a packet of 64 bytes gives work to one. One block on a multiprocessor, for what its tables take of
// shared memory is there once; of fewer threads, which have a queue each warp, where the device has less of it
// (Ampere).
using Shape = ScanShape<4, 1024, 1>;
using SmallShape = ScanShape<4, 512, 1>;

template <typename StageShape, typename Scan>
class ScanStage final : public gpu::GpuStage {
 public:
  explicit ScanStage(const Scan& scan) : launch_(scan) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return launch_(batch, stream);
  }

 private:
  ScanLauncher<StageShape, Scan> launch_;
};

unsigned most_shared_bytes() {
  int device = 0;
  int bytes = 0;
  gpu::check(cudaGetDevice(&device));
  gpu::check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<unsigned>(bytes);
}

bool rows_fit_shared(const DeviceLiterals::EngineView& engine, unsigned most) {
  const auto* const automaton = std::get_if<AhoCorasickView<std::uint16_t>>(&engine);
  return automaton != nullptr && ScanLauncher<Shape, AutomatonScan<true>>::shared_bytes({*automaton}) <= most;
}

}  // namespace

std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals& literals) {
  const unsigned most = most_shared_bytes();
  return with_scan(literals.engine(), rows_fit_shared(literals.engine(), most),
                   [most]<typename Scan>(const Scan& scan) -> std::unique_ptr<gpu::GpuStage> {
                     if (ScanLauncher<Shape, Scan>::shared_bytes(scan) <= most) {
                       return std::make_unique<ScanStage<Shape, Scan>>(scan);
                     }
                     return std::make_unique<ScanStage<SmallShape, Scan>>(scan);
                   });
}

}  // namespace penstock::nids
