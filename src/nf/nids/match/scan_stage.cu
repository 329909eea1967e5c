// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/scan_kernel.cuh"

namespace penstock::nids {

namespace {

// Few lanes, for a packet of 64 bytes gives work to one. One block of 1024 threads on a multiprocessor, for what its
// tables take of shared memory is there once.
using Shape = ScanShape<4, 1024, 1>;
constexpr std::uint32_t kMostRowsInShared = 160 << 10;

template <typename Scan>
class ScanStage final : public gpu::GpuStage {
 public:
  explicit ScanStage(const Scan& scan) : launch_(scan) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return launch_(batch, stream);
  }

 private:
  ScanLauncher<Shape, Scan> launch_;
};

bool rows_fit_shared(const DeviceLiterals::EngineView& engine) {
  const auto* const automaton = std::get_if<AhoCorasickView<std::uint16_t>>(&engine);
  return automaton != nullptr && AutomatonScan<true>{*automaton}.shared_bytes() <= kMostRowsInShared;
}

}  // namespace

std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals& literals) {
  return with_scan(literals.engine(), rows_fit_shared(literals.engine()),
                   []<typename Scan>(const Scan& scan) -> std::unique_ptr<gpu::GpuStage> {
                     return std::make_unique<ScanStage<Scan>>(scan);
                   });
}

}  // namespace penstock::nids
