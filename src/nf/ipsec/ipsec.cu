// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stages of `ipsec`. Headers are processed with one thread per packet, using the same cores as the CPU stages.
// The ciphers (crypto.h) process all jobs of a batch together:
//
//     out    select ─▶ number, one batch after another ─▶ encapsulate ─▶ seal ─▶ [checksums of UDP over IPv6]
//     in     arrive ─▶ open ─▶ leave: decapsulate, parse, ask the policies

#include <cuda_runtime.h>

#include <memory>
#include <utility>

#include "classify/bitvector_core.h"
#include "gpu/per_packet.cuh"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/esp/inbound_core.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/numbers/number_kernel.cuh"
#include "packet/parse_core.h"

namespace penstock::ipsec {

namespace {

using gpu::kThreadsPerBlock;
using gpu::launch_threads;

struct StatusOf {
  const SaStatus* statuses;
  __device__ SaStatus operator()(std::uint32_t sa) const noexcept { return statuses[sa]; }
};

__device__ void drop(PacketDescriptor& packet, Reason reason, std::uint8_t function) {
  packet.verdict = Verdict::drop(reason);
  packet.verdict.nf = function;
}

/// Parameters that are the same for all outbound packets.
struct Outward {
  SelectionView selection;
  StatusOf status_of;
  MtuView link;
  FrameRoom growth;
  bool drops_unselected;
  bool answers;
};

/// Writes to `sas` which SA protects each packet, kNoSa if none.
__global__ void __launch_bounds__(kThreadsPerBlock)
    select_packets(const classify::BitVectorView engine, const Outward outward, const gpu::DevicePackets batch,
                   std::uint32_t* sas) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  sas[i] = kNoSa;
  reinterpret_cast<OutboundFinding*>(batch.findings)[i] = {kNoSa, 0};
  PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  const PacketView view{batch.frames + packet.offset, &packet};
  packet.verdict.nf = batch.function;
  const Reason standing = standing_of(packet.layout);
  if (standing == Reason::not_ip && !drops_not_ip(packet.layout, outward.drops_unselected)) return;
  if (standing != Reason::none) return drop(packet, standing, batch.function);
  classify::Key key;
  make_selector_key(view, key);
  const std::uint32_t policy = classify::deciding_entry(engine, key);
  if (policy == kNoPolicy) {
    if (outward.drops_unselected) drop(packet, Reason::no_policy, batch.function);
    return;
  }
  const Selected selected = select_outbound(outward.selection, policy, key, outward.status_of);
  if (selected.reason != Reason::none) return drop(packet, selected.reason, batch.function);
  if (selected.sa == kNoSa) return;
  const SaView& sa = outward.selection.sas[selected.sa];
  const Encapsulation plan = plan_encapsulation(view, sa, outward.growth);
  if (plan.reason != Reason::none) return drop(packet, plan.reason, batch.function);
  if (exceeds_mtu(view, sa, plan, outward.link)) {
    if (!outward.answers) return drop(packet, Reason::too_big, batch.function);
    // Punted because the CPU stage still has the packet as its sender sent it.
    packet.verdict = Verdict::punt();
    packet.verdict.nf = batch.function;
    return;
  }
  sas[i] = selected.sa;
}

/// Encapsulates the selected packets with the numbers that they got, and writes their jobs.
__global__ void __launch_bounds__(kThreadsPerBlock)
    encapsulate_packets(const Outward outward, const gpu::DevicePackets batch, const std::uint32_t* sas,
                        const kernels::Numbering numbering, const DeviceNumbers::View numbers, CryptoJob* jobs) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  const std::uint32_t sa = sas[i];
  if (sa == kNoSa) {
    jobs[i] = CryptoJob{};
    return;
  }
  PacketDescriptor& packet = batch.packets[i];
  const std::uint32_t rank = numbering.ranks[i];
  if (rank >= numbering.granted[sa]) {
    jobs[i] = CryptoJob{};
    const bool over = numbering.first[sa] + numbering.granted[sa] > numbers.cells[sa]->most;
    return drop(packet, over ? Reason::sequence_exhausted : Reason::not_reserved, batch.function);
  }
  PacketView view{batch.frames + packet.offset, &packet};
  reinterpret_cast<OutboundFinding*>(batch.findings)[i] = {sa, packet.layout.ip_bytes()};
  const SaView& shape = outward.selection.sas[sa];
  const Encapsulation plan = plan_encapsulation(view, shape, outward.growth);
  jobs[i] = encapsulate(view, shape, sa, plan, numbering.first[sa] + rank);
}

__global__ void __launch_bounds__(kThreadsPerBlock)
    write_udp_checksums(const SaView* sas, const gpu::DevicePackets batch, const CryptoJob* jobs) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  const CryptoJob job = jobs[i];
  if (job.sa == kNoSa || !needs_udp_checksum(sas[job.sa])) return;
  PacketDescriptor& packet = batch.packets[i];
  write_udp_checksum({batch.frames + packet.offset, &packet}, job);
}

/// Makes jobs that seal every packet of a batch, with the SAs in rotation; all bytes but those of an ESP header are
/// sealed.
__global__ void __launch_bounds__(kThreadsPerBlock)
    rehearse_jobs(const SaView* all, const std::uint32_t sas, const gpu::DevicePackets batch, CryptoJob* jobs) {
  constexpr std::uint32_t kGap = 2;  // alignment of the end of a header in a chain's frames
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  const PacketDescriptor& packet = batch.packets[i];
  const SaView& sa = all[i % sas];
  const std::uint32_t around = kGap + kEspHeaderBytes + sa.iv_bytes + sa.icv_bytes;
  CryptoJob job;
  if (packet.length > around) {
    job.sequence = ~std::uint64_t{0} - i;  // a number, and thus an IV, that no packet will have
    job.sa = i % sas;
    job.esp = packet.offset + kGap;
    job.text_bytes = (packet.length - around) / sa.block_bytes * sa.block_bytes;
    job.iv_bytes = sa.iv_bytes;
    job.icv_bytes = sa.icv_bytes;
  }
  jobs[i] = job;
}

/// Runs the ciphers and ICVs without headers and numbering: takes no sequence number and moves no window. The sealed
/// bytes stay on the device. Also stands in for opening, which costs the same or, with CBC, less.
bool enqueue_rehearsal(const DeviceCopies& tables, const gpu::DevicePackets& batch, CryptoJob* jobs,
                       CryptoScratch& scratch, const gpu::Stream& stream) noexcept {
  const std::uint32_t sas = tables.selection().sas();
  if (batch.count == 0 || batch.count > scratch.packets() || sas == 0) return false;
  return launch_threads(rehearse_jobs, batch.count, stream, tables.selection().view().sas, sas, batch, jobs) &&
         enqueue_seal(jobs, batch.count, tables.keys(), batch.frames, scratch, stream);
}

class OutboundGpuStage final : public gpu::GpuStage {
 public:
  OutboundGpuStage(const DeviceTables& tables, std::unique_ptr<const Sender> sender, gpu::Turns& turns,
                   FrameRoom growth, const StageUse& use)
      : tables_(tables.copies()),
        sender_(std::move(sender)),
        numbers_(sender_->numbers()),
        turn_(turns),
        outward_{tables.copies().selection().view(),        {tables.statuses()},
                 tables.host().settings().link(),           growth,
                 tables.host().settings().drops_unselected, tables.host().settings().answers},
        sas_(use.batch_packets),
        ranks_(use.batch_packets),
        counts_(numbers_.sas),
        first_(numbers_.sas),
        granted_(numbers_.sas),
        jobs_(use.batch_packets),
        scratch_(use.batch_packets, use.multiprocessors) {
    for (const SaView& sa : tables.host().selection().sas()) has_udp_over_ipv6_ |= needs_udp_checksum(sa);
  }

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (batch.count == 0) return true;
    if (numbers_.is_closed()) return false;
    const kernels::Numbering numbering{ranks_.data(), counts_.data(), first_.data(), granted_.data()};
    const std::size_t shared = numbers_.sas <= kernels::kMostSharedSas ? numbers_.sas * sizeof(std::uint32_t) : 0;
    cudaLaunchConfig_t one_block{};
    one_block.gridDim = 1;
    one_block.blockDim = kernels::kNumberThreads;
    one_block.dynamicSmemBytes = shared;
    one_block.stream = stream.get();
    return launch_threads(select_packets, batch.count, stream, tables_.selection().engine(), outward_, batch,
                          sas_.data()) &&
           turn_.begin(stream) &&
           cudaLaunchKernelEx(&one_block, kernels::number_packets, static_cast<const std::uint32_t*>(sas_.data()),
                              batch.count, numbers_, numbering) == cudaSuccess &&
           turn_.end(stream) &&
           launch_threads(encapsulate_packets, batch.count, stream, outward_, batch, sas_.data(), numbering, numbers_,
                          jobs_.data()) &&
           enqueue_seal(jobs_.data(), batch.count, tables_.keys(), batch.frames, scratch_, stream) &&
           (!has_udp_over_ipv6_ ||
            launch_threads(write_udp_checksums, batch.count, stream, outward_.selection.sas, batch, jobs_.data()));
  }

  bool rehearse(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return enqueue_rehearsal(tables_, batch, jobs_.data(), scratch_, stream);
  }

  void abandoned() noexcept override { turn_.withdraw(); }

 private:
  const DeviceCopies& tables_;
  const std::unique_ptr<const Sender> sender_;
  const DeviceNumbers::View numbers_;
  gpu::Turn turn_;
  const Outward outward_;
  bool has_udp_over_ipv6_ = false;
  gpu::DeviceBuffer<std::uint32_t> sas_;
  gpu::DeviceBuffer<std::uint32_t> ranks_;
  gpu::DeviceBuffer<std::uint32_t> counts_;
  gpu::DeviceBuffer<unsigned long long> first_;
  gpu::DeviceBuffer<std::uint32_t> granted_;
  gpu::DeviceBuffer<CryptoJob> jobs_;
  CryptoScratch scratch_;
};

/// Encapsulates packets as the host has decided, and writes their jobs.
__global__ void __launch_bounds__(kThreadsPerBlock)
    carry_out_decisions(const SealingView tables, const gpu::DevicePackets batch, CryptoJob* jobs) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  CryptoJob job;
  PacketDescriptor& packet = batch.packets[i];
  const std::uint32_t ip_bytes = packet.layout.ip_bytes();
  if (packet.verdict.alive()) {
    PacketView view{batch.frames + packet.offset, &packet};
    job = carry_out(decision_of(batch.states, i, tables), view, tables);
    packet.verdict.nf = batch.function;
  }
  reinterpret_cast<OutboundFinding*>(batch.findings)[i] = {job.sa, ip_bytes};
  jobs[i] = job;
}

/// Policies, statuses and numbers are on the host.
class SealingGpuStage final : public gpu::GpuStage {
 public:
  SealingGpuStage(const SealingCopies& tables, const StageUse& use)
      : tables_(tables), jobs_(use.batch_packets), scratch_(use.batch_packets, use.multiprocessors) {}

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (batch.count == 0) return true;
    if (batch.count > scratch_.packets()) return false;  // the lane may be another process's
    return launch_threads(carry_out_decisions, batch.count, stream, tables_.view(), batch, jobs_.data()) &&
           enqueue_seal(jobs_.data(), batch.count, tables_.keys(), batch.frames, scratch_, stream) &&
           (!tables_.has_udp_over_ipv6() ||
            launch_threads(write_udp_checksums, batch.count, stream, tables_.view().sas, batch, jobs_.data()));
  }

 private:
  const SealingCopies& tables_;
  gpu::DeviceBuffer<CryptoJob> jobs_;
  CryptoScratch scratch_;
};

/// Parameters that are the same for all inbound packets.
struct Inward {
  SelectionView selection;
  InboundView inbound;
  NatTraversalPorts ports;
  unsigned long long* tops;
  const std::uint32_t* windows;
  bool has_policies;
  WrongIcv with_esn;
};

__global__ void __launch_bounds__(kThreadsPerBlock)
    arrive(const Inward inward, const gpu::DevicePackets batch, CryptoJob* jobs) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  InboundFinding& finding = reinterpret_cast<InboundFinding*>(batch.findings)[i];
  finding = {0, kNoSa, 0, 0};
  CryptoJob job;
  PacketDescriptor& packet = batch.packets[i];
  if (packet.verdict.alive()) {
    const PacketView view{batch.frames + packet.offset, &packet};
    packet.verdict.nf = batch.function;
    const Arrival arrival =
        find_arrival(view, inward.inbound, inward.ports, inward.selection.sas, [&](std::uint32_t sa) {
          return Received{inward.tops[sa], inward.windows[sa]};
        });
    job = arrival.opening.job;
    if (arrival.is_fragment()) {
      packet.verdict = Verdict::punt();  // the host reassembles
      packet.verdict.nf = batch.function;
    } else if (arrival.opening.reason != Reason::none) {
      drop(packet, arrival.opening.reason, batch.function);
      job.sa = kNoSa;
    } else if (job.sa != kNoSa) {
      finding = {job.sequence, job.sa, packet.layout.ip_bytes(), 0};
    }
  }
  jobs[i] = job;
}

/// Decapsulates what was opened; then applies the policies to it and to clear-text packets.
__global__ void __launch_bounds__(kThreadsPerBlock)
    leave(const classify::BitVectorView engine, const Inward inward, const gpu::DevicePackets batch,
          const CryptoJob* jobs, const std::uint8_t* opened) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  PacketView view{batch.frames + packet.offset, &packet};
  const CryptoJob job = jobs[i];
  if (job.sa != kNoSa) {
    const SaView& sa = inward.selection.sas[job.sa];
    InboundFinding& finding = reinterpret_cast<InboundFinding*>(batch.findings)[i];
    if (opened[i] == 0) {
      if (!sa.esn || inward.with_esn == WrongIcv::drop) return drop(packet, Reason::integrity, batch.function);
      finding = {0, kNoSa, 0, 0};
      packet.verdict = Verdict::punt();  // the frame is unchanged
      packet.verdict.nf = batch.function;
      return;
    }
    finding.authentic = 1;
    if (sa.esn) atomicMax(&inward.tops[job.sa], static_cast<unsigned long long>(job.sequence));
    // The outer headers are still unchanged.
    const Reason reason = decapsulate(view, sa, find_esp(view, inward.ports), job);
    if (reason != Reason::none) return drop(packet, reason, batch.function);
    parse(view);
  }
  const Reason standing = standing_of(packet.layout);
  if (standing == Reason::not_ip) return;
  if (standing != Reason::none) return drop(packet, standing, batch.function);
  classify::Key key;
  make_selector_key(view, key);
  const Reason reason = inward.has_policies
                            ? check_inbound(inward.selection, classify::deciding_entry(engine, key), key, job.sa)
                            : check_selector(inward.selection, key, job.sa);
  if (reason != Reason::none) drop(packet, reason, batch.function);
}

class InboundGpuStage final : public gpu::GpuStage {
 public:
  InboundGpuStage(const DeviceCopies& tables, WrongIcv with_esn, const StageUse& use)
      : tables_(tables),
        inward_{tables.selection().view(),
                tables.inbound().view(),
                tables.inbound().ports(),
                tables.tops(),
                tables.windows(),
                tables.has_policies(),
                with_esn},
        jobs_(use.batch_packets),
        opened_(use.batch_packets),
        scratch_(use.batch_packets, use.multiprocessors) {}

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (batch.count == 0) return true;
    if (batch.count > scratch_.packets()) return false;  // the lane may be another process's
    return launch_threads(arrive, batch.count, stream, inward_, batch, jobs_.data()) &&
           enqueue_open(jobs_.data(), batch.count, tables_.keys(), batch.frames, opened_.data(), scratch_, stream) &&
           launch_threads(leave, batch.count, stream, tables_.selection().engine(), inward_, batch, jobs_.data(),
                          opened_.data());
  }
  bool rehearse(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    return enqueue_rehearsal(tables_, batch, jobs_.data(), scratch_, stream);
  }

 private:
  const DeviceCopies& tables_;
  const Inward inward_;
  gpu::DeviceBuffer<CryptoJob> jobs_;
  gpu::DeviceBuffer<std::uint8_t> opened_;
  CryptoScratch scratch_;
};

}  // namespace

std::unique_ptr<gpu::GpuStage> make_outbound_gpu_stage(const DeviceTables& tables, std::unique_ptr<const Sender> sender,
                                                       gpu::Turns& turns, FrameRoom growth, const StageUse& use) {
  return std::make_unique<OutboundGpuStage>(tables, std::move(sender), turns, growth, use);
}

std::unique_ptr<gpu::GpuStage> make_sealing_gpu_stage(const SealingCopies& tables, const StageUse& use) {
  return std::make_unique<SealingGpuStage>(tables, use);
}

std::unique_ptr<gpu::GpuStage> make_inbound_gpu_stage(const DeviceCopies& tables, WrongIcv with_esn,
                                                      const StageUse& use) {
  return std::make_unique<InboundGpuStage>(tables, with_esn, use);
}

}  // namespace penstock::ipsec
