// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage: one thread per packet. The bitmaps of the filters that match are sent back to the host, where the
// finish stage counts.

#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "nf/filter/device_tables.h"
#include "nf/filter/filter_core.h"

namespace penstock::filter {

namespace {

__global__ void __launch_bounds__(gpu::kThreadsPerBlock)
    interpret_filters(const FilterView view, const gpu::DevicePackets batch, const std::uint32_t finding_words) {
  const std::uint32_t i = blockIdx.x * gpu::kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  std::uint32_t* words = reinterpret_cast<std::uint32_t*>(batch.findings) + std::size_t{i} * finding_words;
  Verdict verdict = interpret_all(view, {batch.frames + packet.offset, &packet}, words);
  verdict.nf = batch.function;
  packet.verdict = verdict;
}

}  // namespace

struct DeviceTables::Parts {
  explicit Parts(const FilterList& list, const FilterTables& tables)
      : instructions(std::span(tables.instructions)),
        starts(std::span(tables.starts)),
        actions(std::span(tables.actions)),
        view(tables.view(list)) {
    view.instructions = instructions.data();
    view.starts = starts.data();
    view.actions = actions.data();
  }

  gpu::DeviceBuffer<Instruction> instructions;
  gpu::DeviceBuffer<std::uint32_t> starts;
  gpu::DeviceBuffer<Action> actions;
  FilterView view;
};

DeviceTables::DeviceTables(const FilterList& list, DeviceEngine /*engine*/)
    : parts_(std::make_unique<const Parts>(list, FilterTables(list))) {}

DeviceTables::~DeviceTables() = default;

/// Borrows the tables.
class FilterGpuStage final : public gpu::GpuStage {
 public:
  FilterGpuStage(const DeviceTables& tables, std::uint32_t finding_words) noexcept
      : parts_(*tables.parts_), finding_words_(finding_words) {}

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (batch.count == 0) return true;
    return gpu::launch_threads(interpret_filters, batch.count, stream, parts_.view, batch, finding_words_);
  }

 private:
  const DeviceTables::Parts& parts_;
  std::uint32_t finding_words_;
};

std::unique_ptr<gpu::GpuStage> make_filter_gpu_stage(const DeviceTables& tables, std::uint32_t findings_bytes) {
  return std::make_unique<FilterGpuStage>(tables, findings_bytes / static_cast<std::uint32_t>(sizeof(std::uint32_t)));
}

}  // namespace penstock::filter
