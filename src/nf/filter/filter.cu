// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage: one thread per packet. The bitmaps of the filters that match are sent back to the host, where the
// finish stage counts. With generated code there are three kernels:
//
//   describe_packets ─▶ generated code ─▶ decide_packets
//   what the programs   bitmaps of        verdicts; interprets frames of other
//   see, of Ethernet    Ethernet frames   link types, of which there are few

#include <cstddef>

#include "gpu/cuda_error.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "nf/filter/device_tables.h"
#include "nf/filter/filter_core.h"

namespace penstock::filter {

namespace {

/// What generated code needs to know of a packet.
struct PacketRecord {
  std::uint32_t offset, length, wire_length;
  std::uint32_t skip;  // not 0: generated code ignores the packet
};

[[nodiscard]] __device__ std::uint32_t* words_of(const gpu::DevicePackets& batch, std::uint32_t packet,
                                                 std::uint32_t finding_words) {
  return reinterpret_cast<std::uint32_t*>(batch.findings) + std::size_t{packet} * finding_words;
}

__global__ void __launch_bounds__(gpu::kThreadsPerBlock)
    interpret_packets(const FilterView view, const gpu::DevicePackets batch, const std::uint32_t finding_words) {
  const std::uint32_t i = blockIdx.x * gpu::kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  const PacketView seen{batch.frames + packet.offset, &packet};
  Verdict verdict = interpret_all(view, seen, words_of(batch, i, finding_words));
  verdict.nf = batch.function;
  packet.verdict = verdict;
}

__global__ void __launch_bounds__(gpu::kThreadsPerBlock)
    describe_packets(const bool headers_only, const gpu::DevicePackets batch, PacketRecord* records) {
  const std::uint32_t i = blockIdx.x * gpu::kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  PacketDescriptor& packet = batch.packets[i];
  const PacketBytes bytes = bytes_of({batch.frames + packet.offset, &packet}, headers_only);
  const bool taken = packet.verdict.alive() && packet.link_type == LinkType::ethernet;
  records[i] = {packet.offset, bytes.length, bytes.wire_length, taken ? 0U : 1U};
}

__global__ void __launch_bounds__(gpu::kThreadsPerBlock)
    decide_packets(const FilterView view, const gpu::DevicePackets batch, const std::uint32_t finding_words) {
  const std::uint32_t i = blockIdx.x * gpu::kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  std::uint32_t* words = words_of(batch, i, finding_words);
  Verdict verdict = packet.link_type == LinkType::ethernet
                        ? decide(view, words, packet.verdict)
                        : interpret_all(view, {batch.frames + packet.offset, &packet}, words);
  verdict.nf = batch.function;
  packet.verdict = verdict;
}

}  // namespace

struct DeviceTables::Parts {
  Parts(const FilterView& host, std::size_t count, MachineCode* code)
      : instructions(std::span(host.instructions, count)),
        starts(std::span(host.starts, kLinkTypes * host.count)),
        actions(std::span(host.actions, host.count)),
        view(host) {
    view.instructions = instructions.data();
    view.starts = starts.data();
    view.actions = actions.data();
    if (code == nullptr) return;
    auto made = make_generated_matcher(*code);
    if (!made) throw gpu::CudaError(0, to_string(made.error()));
    generated = std::move(*made);
  }

  gpu::DeviceBuffer<Instruction> instructions;
  gpu::DeviceBuffer<std::uint32_t> starts;
  gpu::DeviceBuffer<Action> actions;
  FilterView view;
  std::unique_ptr<DeviceMatcher> generated;  // for Ethernet; null: interpreted
};

DeviceTables::DeviceTables(const FilterList& list, MachineCode* code) {
  const FilterTables tables(list);
  parts_ = std::make_unique<const Parts>(tables.view(list), tables.instructions.size(), code);
}

DeviceTables::DeviceTables(const FilterView& host, std::size_t instructions)
    : parts_(std::make_unique<const Parts>(host, instructions, nullptr)) {}

DeviceTables::~DeviceTables() = default;

/// Borrows the tables.
class FilterGpuStage final : public gpu::GpuStage {
 public:
  FilterGpuStage(const DeviceTables& tables, std::uint32_t finding_words, std::uint32_t batch_packets)
      : parts_(*tables.parts_), finding_words_(finding_words) {
    if (parts_.generated) records_ = gpu::DeviceBuffer<PacketRecord>(batch_packets);
  }

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (batch.count == 0) return true;
    const auto launch = [&](auto kernel, const auto&... arguments) {
      return gpu::launch_threads(kernel, batch.count, stream, arguments...);
    };
    if (!parts_.generated) return launch(interpret_packets, parts_.view, batch, finding_words_);
    const MatchBatch work{{batch.frames, reinterpret_cast<const std::uint8_t*>(records_.data()), batch.count,
                           sizeof(PacketRecord), offsetof(PacketRecord, offset), offsetof(PacketRecord, length),
                           offsetof(PacketRecord, wire_length), offsetof(PacketRecord, skip), kUnbounded},
                          reinterpret_cast<std::uint32_t*>(batch.findings),
                          finding_words_,
                          nullptr};
    return launch(describe_packets, parts_.view.headers_only, batch, records_.data()) &&
           parts_.generated->match(work, stream) && launch(decide_packets, parts_.view, batch, finding_words_);
  }

 private:
  const DeviceTables::Parts& parts_;
  std::uint32_t finding_words_;
  gpu::DeviceBuffer<PacketRecord> records_;  // of the batch in flight
};

std::unique_ptr<gpu::GpuStage> make_filter_gpu_stage(const DeviceTables& tables, std::uint32_t findings_bytes,
                                                     std::uint32_t batch_packets) {
  return std::make_unique<FilterGpuStage>(tables, findings_bytes / static_cast<std::uint32_t>(sizeof(std::uint32_t)),
                                          batch_packets);
}

}  // namespace penstock::filter
