// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/scan_kernel.cuh"

namespace penstock::nids {

namespace {

template <typename Scan>
class ScanStage final : public gpu::GpuStage {
 public:
  ScanStage(const Scan& scan, std::uint32_t multiprocessors) : launch_(scan, multiprocessors) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return launch_(batch, stream);
  }
  /// A scan leaves nothing but the batch's findings.
  bool rehearse(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return enqueue(batch, stream);
  }

 private:
  ScanLauncher<Scan> launch_;
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
  return automaton != nullptr && ScanLauncher<AutomatonScan<true>>::shared_bytes({*automaton}, kMostThreads) <= most;
}

}  // namespace

std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals& literals, std::uint32_t multiprocessors) {
  return with_scan(literals.engine(), rows_fit_shared(literals.engine(), most_shared_bytes()),
                   [&]<typename Scan>(const Scan& scan) -> std::unique_ptr<gpu::GpuStage> {
                     return std::make_unique<ScanStage<Scan>>(scan, multiprocessors);
                   });
}

}  // namespace penstock::nids
