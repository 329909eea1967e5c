// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/per_packet.cuh"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/scan_kernel.cuh"
#include "nf/nids/match/seam_core.h"

namespace penstock::nids {

namespace {

/// One thread per packet, after scan_packets has written the findings.
template <typename Engine>
__global__ void __launch_bounds__(gpu::kThreadsPerBlock)
    scan_seams(const __grid_constant__ Engine engine, const __grid_constant__ gpu::DevicePackets batch) {
  const std::uint32_t i = blockIdx.x * gpu::kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  const FlowState state = reinterpret_cast<const FlowState*>(batch.states)[i];
  if (state.count() == 0) return;
  const PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  const ScanRange range = scan_range(packet.layout, packet.length);
  const std::uint8_t* const frame = batch.frames + packet.offset;
  scan_seam(engine, state, frame + range.begin, frame + range.end,
            reinterpret_cast<PacketLiterals*>(batch.findings)[i]);
}

/// The papers' algorithm: each thread takes a packet through the automaton.
template <typename Entry>
__global__ void __launch_bounds__(gpu::kThreadsPerBlock)
    scan_each(const __grid_constant__ AhoCorasickView<Entry> automaton,
              const __grid_constant__ gpu::DevicePackets batch) {
  const std::uint32_t i = blockIdx.x * gpu::kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  const PacketDescriptor& packet = batch.packets[i];
  PacketLiterals finding;
  if (packet.verdict.alive()) {
    const ScanRange range = scan_range(packet.layout, packet.length);
    finding.flags = PacketLiterals::kScanned;
    if (range.is_payload) finding.flags |= PacketLiterals::kPayload;
    const std::uint8_t* const frame = batch.frames + packet.offset;
    if (range.begin < range.end) {
      ac_scan(automaton, frame + range.begin, frame + range.end,
              [&finding](std::uint32_t literal) { finding.add(literal); });
    }
  }
  reinterpret_cast<PacketLiterals*>(batch.findings)[i] = finding;
}

template <typename Entry>
class ScanEachStage final : public gpu::GpuStage {
 public:
  explicit ScanEachStage(const PacketAutomatonView<Entry>& view) : automaton_(view.automaton) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return batch.count == 0 || gpu::launch_threads(scan_each<Entry>, batch.count, stream, automaton_, batch);
  }
  /// A scan only writes the batch's findings.
  bool rehearse(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return enqueue(batch, stream);
  }

 private:
  AhoCorasickView<Entry> automaton_;
};

template <typename Scan>
class ScanStage final : public gpu::GpuStage {
 public:
  ScanStage(const Scan& scan, std::uint32_t multiprocessors, bool takes_states)
      : launch_(scan, multiprocessors), takes_states_(takes_states) {}
  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (!launch_(batch, stream)) return false;
    if (!takes_states_ || batch.states == nullptr || batch.count == 0) return true;
    return gpu::launch_threads(scan_seams<decltype(Scan::view)>, batch.count, stream, launch_.scan().view, batch);
  }
  /// A scan only writes the batch's findings.
  bool rehearse(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return enqueue(batch, stream);
  }

 private:
  ScanLauncher<Scan> launch_;
  const bool takes_states_;  // else the lane may have smaller ones, of nobody's
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

std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals& literals, std::uint32_t multiprocessors,
                                               bool takes_states) {
  if (const auto* const narrow = std::get_if<PacketAutomatonView<std::uint16_t>>(&literals.engine()))
    return std::make_unique<ScanEachStage<std::uint16_t>>(*narrow);
  if (const auto* const wide = std::get_if<PacketAutomatonView<std::uint32_t>>(&literals.engine()))
    return std::make_unique<ScanEachStage<std::uint32_t>>(*wide);
  return with_scan(literals.engine(), rows_fit_shared(literals.engine(), most_shared_bytes()),
                   [&]<typename Scan>(const Scan& scan) -> std::unique_ptr<gpu::GpuStage> {
                     return std::make_unique<ScanStage<Scan>>(scan, multiprocessors, takes_states);
                   });
}

}  // namespace penstock::nids
