// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/device_batch.h"

#include <cuda_runtime.h>

#include <cassert>

#include "packet/flow_hash.h"
#include "packet/packet.h"
#include "packet/parse_core.h"

namespace penstock::ring {
namespace {

/// What the kernels need of the descriptors. Borrows memory of the host or of the device, in which the arrays of
/// `count` packets lie one behind the other, so that one copy carries them.
struct IndexView {
  static constexpr std::size_t kBytesPerPacket = 3 * sizeof(std::uint32_t) + sizeof(LinkType);

  IndexView(std::byte* at, std::size_t count) noexcept
      : offsets(reinterpret_cast<std::uint32_t*>(at)),
        lengths(offsets + count),
        wire_lengths(lengths + count),
        link_types(reinterpret_cast<LinkType*>(wire_lengths + count)) {}

  std::uint32_t* offsets;
  std::uint32_t* lengths;
  std::uint32_t* wire_lengths;
  LinkType* link_types;
};

/// What the kernels find out, laid out alike.
struct ResultsView {
  static constexpr std::size_t kBytesPerPacket = sizeof(std::uint32_t) + sizeof(PacketLayout);

  ResultsView(std::byte* at, std::size_t count) noexcept
      : flow_hashes(reinterpret_cast<std::uint32_t*>(at)),
        layouts(reinterpret_cast<PacketLayout*>(flow_hashes + count)) {}

  std::uint32_t* flow_hashes;
  PacketLayout* layouts;
};

constexpr unsigned kThreadsPerBlock = 256;

/// A thread for each packet.
__global__ void parse_packets(std::uint8_t* frames, IndexView index, ResultsView results, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  PacketDescriptor packet;  // stays in registers: only what is set here is read
  packet.length = index.lengths[i];
  packet.wire_length = index.wire_lengths[i];
  packet.link_type = index.link_types[i];
  const PacketView view{frames + index.offsets[i], &packet};
  penstock::parse(view);
  results.flow_hashes[i] = flow_hash(view);
  results.layouts[i] = packet.layout;
}

}  // namespace

DeviceBatch::DeviceBatch(std::size_t capacity_bytes, std::size_t capacity_packets)
    : capacity_packets_(capacity_packets),
      frames_(capacity_bytes),
      index_(capacity_packets * IndexView::kBytesPerPacket),
      device_index_(index_.size()),
      results_(capacity_packets * ResultsView::kBytesPerPacket),
      device_results_(results_.size()) {}

bool DeviceBatch::upload(const Batch& batch, const gpu::Stream& stream) noexcept {
  assert(batch.bytes().size() <= frames_.size() && batch.size() <= capacity_packets_);
  count_ = batch.size();
  if (count_ == 0) return true;
  const IndexView index(index_.data(), count_);
  std::size_t i = 0;
  for (const PacketDescriptor& packet : batch.packets()) {
    index.offsets[i] = packet.offset;
    index.lengths[i] = packet.length;
    index.wire_lengths[i] = packet.wire_length;
    index.link_types[i] = packet.link_type;
    ++i;
  }
  return gpu::copy_async(frames_.data(), batch.bytes().data(), batch.bytes().size(), stream) &&
         gpu::copy_async(device_index_.data(), index_.data(), count_ * IndexView::kBytesPerPacket, stream);
}

bool DeviceBatch::parse(const gpu::Stream& stream) noexcept {
  if (count_ == 0) return true;
  const auto count = static_cast<std::uint32_t>(count_);
  cudaLaunchConfig_t launch{};
  launch.gridDim = (count + kThreadsPerBlock - 1) / kThreadsPerBlock;
  launch.blockDim = kThreadsPerBlock;
  launch.stream = stream.get();
  return cudaLaunchKernelEx(&launch, parse_packets, frames_.data(), IndexView(device_index_.data(), count_),
                            ResultsView(device_results_.data(), count_), count) == cudaSuccess;
}

bool DeviceBatch::download(const gpu::Stream& stream) noexcept {
  if (count_ == 0) return true;
  return gpu::copy_async(results_.data(), device_results_.data(), count_ * ResultsView::kBytesPerPacket, stream);
}

std::span<const std::uint32_t> DeviceBatch::flow_hashes() const noexcept {
  return {reinterpret_cast<const std::uint32_t*>(results_.data()), count_};
}

std::span<const PacketLayout> DeviceBatch::layouts() const noexcept {
  return {reinterpret_cast<const PacketLayout*>(results_.data() + count_ * sizeof(std::uint32_t)), count_};
}

}  // namespace penstock::ring
