// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a lane: unpack (lay_in_slots or gather_lent, describe, bring_up_to_date) before the functions' stages,
// and pack (measure, pack_records, pack_frames, publish) after them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "gpu/per_packet.cuh"
#include "packet/batch.h"
#include "packet/flow_hash.h"
#include "packet/packet_memory.h"
#include "packet/parse_core.h"
#include "ring/lane.h"
#include "ring/record.h"

namespace penstock::ring::kernels {

using gpu::kThreadsPerBlock;

/// The part of a packet's descriptor that the device needs.
struct alignas(16) IndexEntry {
  std::uint32_t offset;  // of the frame or its headers in the transferred memory; with Sources, in its source
  std::uint32_t length;
  std::uint32_t wire_length;
  PortIndex in_port;
  LinkType link_type;
  std::uint8_t source;  // only with Sources
};
static_assert(sizeof(IndexEntry) == kIndexBytes);

/// Host memory in which the frames of a batch with lent frames are: the regions of the packet memory, and what a CPU
/// twin has moved. All begin at multiples of kFrameAlignment.
struct Sources {
  static constexpr std::size_t kMoved = PacketMemory::kMostRegions;
  const std::uint8_t* memory[kMoved + 1];
};

/// How far from a multiple of kFrameAlignment the frame is. It keeps this distance on the device, so that it can be
/// copied in wide words.
inline __host__ __device__ std::uint32_t misalignment(std::uint32_t offset) noexcept {
  return offset % kFrameAlignment;
}

/// Slots for the headers of lent frames.
constexpr std::uint32_t kLentHeaderSlot = kHeaderBytes + kFrameAlignment;

/// Where frames are on the device.
struct Placement {
  enum class Kind : std::uint8_t {
    as_sent,       // where the copy engine put them
    slots,         // in the same order, each with headroom and tailroom
    headers,       // each in a slot of kHeaderBytes
    lent,          // each at its place
    lent_headers,  // each in a slot of kLentHeaderSlot
  };
  Kind kind = Kind::as_sent;
  std::uint32_t head = 0;  // multiples of kFrameAlignment
  std::uint32_t tail = 0;
  const std::uint32_t* places = nullptr;  // of lent frames: multiples of kFrameAlignment

  [[nodiscard]] __host__ __device__ std::uint32_t offset(std::uint32_t sent, std::uint32_t i) const noexcept {
    switch (kind) {
      case Kind::slots: return sent + i * (head + tail) + head;
      case Kind::headers: return i * kHeaderBytes;
      case Kind::lent: return places[i] + misalignment(sent);
      case Kind::lent_headers: return i * kLentHeaderSlot + misalignment(sent);
      case Kind::as_sent: break;
    }
    return sent;
  }
};

/// The number of threads that copy a frame together, 16 bytes each at a time.
constexpr unsigned kCopyGroup = 16;

/// Both are aligned, unless a stage or a CPU twin has moved the start of the frame.
inline __device__ void copy_frame(const std::uint8_t* from, std::uint8_t* to, std::uint32_t length, unsigned thread) {
  const std::uint32_t chunks = (length + kFrameAlignment - 1) / kFrameAlignment;
  const auto misaligned = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) % kFrameAlignment);
  if (reinterpret_cast<std::uintptr_t>(to) % kFrameAlignment != 0) {
    for (std::uint32_t b = thread; b < length; b += kCopyGroup) to[b] = from[b];
  } else if (misaligned == 0) {
    const auto* source = reinterpret_cast<const uint4*>(from);
    auto* target = reinterpret_cast<uint4*>(to);
    for (std::uint32_t c = thread; c < chunks; c += kCopyGroup) target[c] = source[c];
  } else {
    const std::uint32_t before = misaligned % 4;
    const auto* source = reinterpret_cast<const std::uint32_t*>(from - before);
    auto* target = reinterpret_cast<std::uint32_t*>(to);
    for (std::uint32_t w = thread; w < (length + 3) / 4; w += kCopyGroup) {
      // Two words make one; the second is only read if it has bytes of the frame.
      const std::uint32_t next = 4 * (w + 1) < before + length ? source[w + 1] : 0;
      target[w] = __funnelshift_r(source[w], next, 8 * before);
    }
  }
}

/// Copies the frames or headers to their slots. With zero copy, `sent` is in host memory.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    lay_in_slots(const std::uint8_t* sent, const IndexEntry* index, std::uint8_t* frames, Placement placement,
                 std::uint32_t count) {
  const std::uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const std::uint32_t i = thread / kCopyGroup;
  if (i >= count) return;
  const IndexEntry entry = index[i];
  const bool headers = placement.kind == Placement::Kind::headers;
  copy_frame(sent + entry.offset, frames + placement.offset(entry.offset, i),
             headers ? min(entry.length, kHeaderBytes) : entry.length, thread % kCopyGroup);
}

/// The number of threads that copy a lent frame, or its headers, together: PCIe is read in as long pieces as possible.
constexpr unsigned kLentGroup = 32;
constexpr unsigned kHeaderGroup = 8;
static_assert(kHeaderGroup * kFrameAlignment >= kLentHeaderSlot);

/// Copies frames, or their headers, from host memory to their places: `Group` threads for each, 16 bytes at a time.
template <unsigned Group>
static __global__ void __launch_bounds__(kThreadsPerBlock)
    gather_lent(Sources sources, const IndexEntry* index, std::uint8_t* frames, Placement placement,
                std::uint32_t count) {
  const std::uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const std::uint32_t i = thread / Group;
  if (i >= count) return;
  const IndexEntry entry = index[i];
  const bool headers = placement.kind == Placement::Kind::lent_headers;
  const std::uint32_t length = headers ? min(entry.length, kHeaderBytes) : entry.length;
  const std::uint32_t before = misalignment(entry.offset);
  const auto* from = reinterpret_cast<const uint4*>(sources.memory[entry.source] + (entry.offset - before));
  auto* to = reinterpret_cast<uint4*>(frames + (placement.offset(entry.offset, i) - before));
  const std::uint32_t chunks = length == 0 ? 0 : (before + length + kFrameAlignment - 1) / kFrameAlignment;
  for (std::uint32_t c = thread % Group; c < chunks; c += Group) to[c] = from[c];
}

/// Whether parsing has read beyond the first kHeaderBytes of a frame of which only these are present.
inline __device__ bool reaches_behind(const PacketLayout& layout, std::uint32_t length) {
  // The largest pieces that parsing reads at once: an IP header without options, and a TCP header without options.
  return length > kHeaderBytes && (layout.network_offset + sizeof(Ipv6Header) > kHeaderBytes ||
                                   layout.transport_offset + sizeof(TcpHeader) > kHeaderBytes);
}

/// Makes the descriptors, with one thread per packet. Without `parses`, they already have their layouts.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    describe(const IndexEntry* index, std::uint8_t* frames, PacketDescriptor* packets, Placement placement,
             bool only_headers, bool parses, bool hash_flows, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  const IndexEntry entry = index[i];
  PacketDescriptor packet;
  packet.offset = placement.offset(entry.offset, i);
  packet.length = entry.length;
  packet.wire_length = entry.wire_length;
  packet.in_port = entry.in_port;
  packet.link_type = entry.link_type;
  const PacketView view{frames + packet.offset, &packet};
  // After the bytes that were sent come those of the next packet, or the slack at the end. If parsing reads them, this
  // is detected below, and the result is ignored.
  if (parses) {
    parse(view);
    if (hash_flows) packet.flow_hash = flow_hash(view);
  } else {
    packet.layout = packets[i].layout;
    packet.flow_hash = packets[i].flow_hash;
  }
  if (only_headers && reaches_behind(packet.layout, packet.length)) {
    packet.verdict = Verdict::punt();
  }
  packets[i] = packet;
}

/// Applies the CPU's decisions and changes since the last segment.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    bring_up_to_date(const Verdict* verdicts, const std::uint8_t* records, RecordLayout layout, std::uint8_t* frames,
                     PacketDescriptor* packets, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  PacketDescriptor& packet = packets[i];
  const Verdict verdict = verdicts[i];
  // A packet that was punted on arrival stays punted. Its verdict may only say that it is in another arm for now, and
  // it would be forwarded later.
  if (packet.verdict.kind != VerdictKind::punt) packet.verdict = verdict;
  if (!packet.verdict.alive() || layout.empty()) return;
  scatter(layout, records + std::size_t{i} * layout.bytes, {frames + packet.offset, &packet});
}

/// After a stage that changes the bounds of frames. Writes the new lengths to `lengths`.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    parse_again(std::uint8_t* frames, PacketDescriptor* packets, std::uint32_t* lengths, bool hash_flows,
                std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  lengths[i] = packets[i].length;
  if (!packets[i].verdict.alive()) return;
  const PacketView view{frames + packets[i].offset, &packets[i]};
  parse(view);
  if (hash_flows) packets[i].flow_hash = flow_hash(view);
}

/// A packet and the first bytes of its frame, in host memory.
struct PictureSlot {
  PacketDescriptor packet;
  std::uint8_t bytes[kPictureBytes];
};

/// The number of threads that take a picture together.
constexpr unsigned kPictureGroup = 32;

/// Writes the packets at these indices of the batch to `to`. `chosen` and `to` are in host memory.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    take_pictures(const std::uint8_t* frames, const PacketDescriptor* packets, const std::uint32_t* chosen,
                  std::uint32_t most_bytes, PictureSlot* to, std::uint32_t count) {
  const std::uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const std::uint32_t n = thread / kPictureGroup;
  if (n >= count) return;
  const PacketDescriptor& packet = packets[chosen[n]];
  const std::uint32_t length = min(packet.length, most_bytes);
  for (std::uint32_t i = thread % kPictureGroup; i < length; i += kPictureGroup)
    to[n].bytes[i] = frames[packet.offset + i];
  if (thread % kPictureGroup == 0) to[n].packet = packet;
}

/// The part of a batch that goes back: number of packets, and units of kFrameAlignment.
struct Sum {
  std::uint32_t packets;
  std::uint32_t units;

  friend __device__ Sum operator+(Sum a, Sum b) { return {a.packets + b.packets, a.units + b.units}; }
};

inline __device__ Sum share_of(const PacketDescriptor& packet) {
  if (!packet.verdict.alive()) return {0, 0};
  return {1, (packet.length + kFrameAlignment - 1) / kFrameAlignment};
}

/// The sum over the preceding threads of the block; `total` is the sum over the whole block.
inline __device__ Sum sum_before(Sum mine, Sum& total) {
  using Scan = cub::BlockScan<Sum, kThreadsPerBlock, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ Scan::TempStorage storage;
  Sum before{0, 0};
  Scan(storage).ExclusiveSum(mine, before, total);
  __syncthreads();  // so that the storage can be reused
  return before;
}

/// Writes the results that all packets have, and the sum of each block for `pack_records`.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    measure(const PacketDescriptor* packets, Verdict* verdicts, Sum* sums, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  Sum share{0, 0};
  if (i < count) {
    verdicts[i] = packets[i].verdict;
    share = share_of(packets[i]);
  }
  Sum total;
  sum_before(share, total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

/// Compacts the records of the packets that are still forwarded, and determines the places of their frames. `records`
/// is in host memory with zero copy, and null if there are none. `places` (in units) may be null too.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    pack_records(std::uint8_t* frames, PacketDescriptor* packets, const Sum* sums, RecordLayout layout,
                 std::uint8_t* records, std::uint32_t* places, std::uint32_t count) {
  Sum part{0, 0};
  for (std::uint32_t b = threadIdx.x; b < blockIdx.x; b += kThreadsPerBlock) part = part + sums[b];
  Sum before_block;
  sum_before(part, before_block);

  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const Sum share = i < count ? share_of(packets[i]) : Sum{0, 0};
  Sum total;
  const Sum before = before_block + sum_before(share, total);
  if (share.packets == 0) return;
  if (places != nullptr) places[i] = before.units;
  if (records == nullptr) return;
  PacketDescriptor& packet = packets[i];
  alignas(16) std::uint8_t record[256];
  gather(layout, {frames + packet.offset, &packet}, record);
  auto* out = reinterpret_cast<std::uint32_t*>(records + std::size_t{before.packets} * layout.bytes);
  for (std::uint32_t w = 0; w < layout.bytes / 4; ++w) out[w] = reinterpret_cast<const std::uint32_t*>(record)[w];
}

/// Compacts the frames of the packets that are still forwarded. With zero copy, `packed` is in host memory.
static __global__ void __launch_bounds__(kThreadsPerBlock)
    pack_frames(const std::uint8_t* frames, const PacketDescriptor* packets, const std::uint32_t* places,
                std::uint8_t* packed, std::uint32_t count) {
  const std::uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const std::uint32_t i = thread / kCopyGroup;
  if (i >= count || !packets[i].verdict.alive()) return;
  copy_frame(frames + packets[i].offset, packed + std::size_t{places[i]} * kFrameAlignment, packets[i].length,
             thread % kCopyGroup);
}

/// Writes results to host memory.
static __global__ void __launch_bounds__(kThreadsPerBlock) publish(const uint2* from, uint2* to, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreadsPerBlock + threadIdx.x;
  if (i < count) to[i] = from[i];
}

}  // namespace penstock::ring::kernels
