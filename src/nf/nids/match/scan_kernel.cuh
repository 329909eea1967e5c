// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scan of a batch. A few lanes of a warp share a packet, each with a strip of it; a warp takes the next strips of
// all its packets at once, whatever their sizes, and its lanes the next packet when theirs is over:
//
//   strips of 16 or 32 bytes ──▶ candidates: positions that an engine's tables in shared memory let through
//     ──▶ the warp's queue ──▶ 32 at a time looked up and compared ──▶ the packets' findings
//
// So the lookup, whose reads are scattered and whose branches part, runs with all lanes however rare candidates are.

#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gpu/check.cuh"
#include "gpu/stage.h"
#include "nf/nids/match/aho_corasick_core.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/hashed_filter_core.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/scan_range_core.h"
#include "nf/nids/match/scan_tables.h"

namespace penstock::nids {

inline constexpr unsigned kWarp = 32;

/// How the kernel is spread: lanes that share a packet, threads of a block, and blocks that a multiprocessor is to have
/// room for (what registers a thread may have).
template <unsigned lanes, unsigned threads, unsigned blocks>
struct ScanShape {
  static constexpr unsigned kLanes = lanes;
  static constexpr unsigned kThreads = threads;
  static constexpr unsigned kBlocks = blocks;
};

/// Positions count from the frames' begin, brought down to a multiple of 16 bytes.
inline constexpr std::uint32_t kAlignment = 16;

/// The bytes of a packet that are scanned, and where this thread's group of lanes is in them.
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A position that is to be looked up, with as much of its packet as the longest literal can reach.
struct Candidate {
  const std::uint8_t* begin;
  const std::uint8_t* at;
  const std::uint8_t* end;
  bool first_kind;
};

// ---- what a warp has in shared memory

inline constexpr unsigned kQueueEntries = 2 * kWarp;  // less than a warp's wait before each lane adds one at most
inline constexpr unsigned kSeenEntries = 32;
inline constexpr unsigned kMostGroups = 16;
inline constexpr std::uint32_t kNoPacket = 0xffff'ffff;

struct WarpQueue {
  std::uint32_t position[kQueueEntries];
  std::uint32_t packet[kQueueEntries];    // top bit: Candidate::first_kind
  std::uint32_t bounds[kQueueEntries];    // bytes before the position, and from it on: 16 bits each, no more than fit
  unsigned long long seen[kSeenEntries];  // findings that were added lately: packet and literal
  std::uint32_t full[kMostGroups];  // of a group of lanes: a packet that has more literals than a finding can name
};
inline constexpr std::uint32_t kFirstKind = 0x8000'0000;
inline constexpr std::uint32_t kMostBound = 0xffff;

// ---- engines

/// A copy that all threads of the block have made when they have met at a barrier.
template <typename T>
__device__ void copy_to_shared(T* to, const T* from, std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

/// The hashed filter. Candidates of the first kind are quads.
template <bool kPairs>
struct FilterScan {
  static constexpr std::uint32_t kStripBytes = kBlockBytes;

  HashedFilterView view;

  [[nodiscard]] static std::uint32_t quad_words(const HashedFilterView& view) { return 1U << (32 - view.quad_shift); }
  [[nodiscard]] std::uint32_t shared_bytes() const {
    return (quad_words(view) + (kPairs ? 1U << kPairWordsLog2 : 0)) * static_cast<std::uint32_t>(sizeof(std::uint32_t));
  }

  __device__ void load(uint4* shared) const {
    const std::uint32_t quads = 1U << (32 - view.quad_shift);
    copy_to_shared(shared, reinterpret_cast<const uint4*>(view.quad_bits), quads / 4);
    if constexpr (kPairs) {
      copy_to_shared(shared + quads / 4, reinterpret_cast<const uint4*>(view.pair_bits), (1U << kPairWordsLog2) / 4);
    }
  }

  /// Bit 31 - i: a quad at position `at` + i; bit 15 - i: a pair. `at` < `end`.
  __device__ std::uint32_t candidates(const uint4* shared, const std::uint8_t* base, std::uint32_t at,
                                      const Span& span) const {
    const uint4 block = __ldg(reinterpret_cast<const uint4*>(base + at));
    std::uint32_t words[kBlockWords + 1] = {block.x, block.y, block.z, block.w, 0};
    if (at + kBlockBytes < span.end) words[4] = __ldg(reinterpret_cast<const std::uint32_t*>(base + at + kBlockBytes));
    if (view.folds) {
#pragma unroll
      for (std::uint32_t& word : words) word = folded(word);
    }
    const std::uint32_t from = span.begin > at ? span.begin - at : 0;
    const std::uint32_t to = span.end - at < kBlockBytes ? span.end - at : kBlockBytes;
    const auto* const quads = reinterpret_cast<const std::uint32_t*>(shared);
    return block_candidates<kPairs>(quads, view.quad_shift, quads + (1U << (32 - view.quad_shift)), words) &
           candidates_within(from, to);
  }
  __device__ static std::uint32_t position_of(std::uint32_t bit) { return bit % kBlockBytes; }
  __device__ static bool first_kind(std::uint32_t bit) { return bit < kBlockBytes; }

  template <typename Found>
  __device__ void look_up(const uint4*, const Candidate& candidate, Found&& found) const {
    look_up_candidate(view, candidate.first_kind, candidate.begin, candidate.at, candidate.end, found);
  }
};

/// The automaton, its rows in shared memory or in the device's. A candidate is the last byte of a literal; which, the
/// lookup finds by running the automaton over the bytes up to there once more.
template <bool kRowsInShared>
struct AutomatonScan {
  static constexpr std::uint32_t kStripBytes = 32;
  static constexpr int kLead = 8;  // bytes before a strip that the automaton starts at
  static_assert(kLead + 1 == kMostAutomatonLiteralBytes);

  using Entry = std::uint16_t;
  AhoCorasickView<Entry> view;

  static constexpr std::uint32_t kClassQuads = 256 / sizeof(uint4);

  [[nodiscard]] static std::uint32_t row_quads(const AhoCorasickView<Entry>& view) {
    return static_cast<std::uint32_t>((view.states * view.classes * sizeof(Entry) + sizeof(uint4) - 1) / sizeof(uint4));
  }
  [[nodiscard]] std::uint32_t shared_bytes() const {
    return (kClassQuads + (kRowsInShared ? row_quads(view) : 0)) * static_cast<std::uint32_t>(sizeof(uint4));
  }

  __device__ void load(uint4* shared) const {
    copy_to_shared(shared, reinterpret_cast<const uint4*>(view.class_of), kClassQuads);
    if constexpr (kRowsInShared) {
      constexpr std::uint32_t kTogether = sizeof(uint4) / sizeof(Entry);
      const std::uint32_t entries = view.states * view.classes;
      const std::uint32_t whole = entries / kTogether * kTogether;
      copy_to_shared(shared + kClassQuads, reinterpret_cast<const uint4*>(view.next), whole / kTogether);
      copy_to_shared(reinterpret_cast<Entry*>(shared + kClassQuads) + whole, view.next + whole, entries - whole);
    }
  }

  __device__ std::uint32_t step(const uint4* shared, std::uint32_t state, std::uint32_t byte) const {
    const auto* const classes = reinterpret_cast<const std::uint8_t*>(shared);
    if constexpr (kRowsInShared) {
      return ac_step(classes, reinterpret_cast<const Entry*>(shared + kClassQuads), view.classes, state, byte);
    } else {
      return __ldg(view.next + state * view.classes + classes[byte]);
    }
  }

  /// Bit 31 - i: a literal ends at position `at` + i. `at` < `end`.
  __device__ std::uint32_t candidates(const uint4* shared, const std::uint8_t* base, std::uint32_t at,
                                      const Span& span) const {
    constexpr int kWords = (kLead + static_cast<int>(kStripBytes)) / 4;
    std::uint32_t words[kWords] = {};
    // Where the automaton starts, counted from `at`: at the packet's begin, or as far before the strip as a literal
    // can.
    const int first = span.begin > at ? static_cast<int>(span.begin - at)
                                      : -static_cast<int>(std::min<std::uint32_t>(kLead, at - span.begin));
    if (first < 0) {
      const uint2 before = __ldg(reinterpret_cast<const uint2*>(base + at - kLead));
      words[0] = before.x;
      words[1] = before.y;
    }
#pragma unroll
    for (int quad = 0; quad < static_cast<int>(kStripBytes / sizeof(uint4)); ++quad) {
      if (at + quad * sizeof(uint4) >= span.end) break;
      const uint4 block = __ldg(reinterpret_cast<const uint4*>(base + at) + quad);
      words[2 + 4 * quad] = block.x;
      words[3 + 4 * quad] = block.y;
      words[4 + 4 * quad] = block.z;
      words[5 + 4 * quad] = block.w;
    }
    std::uint32_t state = 0;
    std::uint32_t ends = 0;
#pragma unroll
    for (int i = -kLead; i < static_cast<int>(kStripBytes); ++i) {
      const std::uint32_t byte = words[(i + kLead) / 4] >> (i + kLead) % 4 * 8 & 0xff;
      const std::uint32_t to = step(shared, state, byte);
      state = i < static_cast<int>(kAlignment) && i < first ? 0 : to;
      if (i >= 0 && state >= view.first_accepting) ends |= 0x8000'0000U >> i;
    }
    const std::uint32_t left = span.end - at;
    return left < kStripBytes ? ends & ~(~0U >> left) : ends;
  }
  __device__ static std::uint32_t position_of(std::uint32_t bit) { return bit; }
  __device__ static bool first_kind(std::uint32_t) { return true; }

  template <typename Found>
  __device__ void look_up(const uint4* shared, const Candidate& candidate, Found&& found) const {
    const std::uint8_t* at = candidate.at - candidate.begin > kLead ? candidate.at - kLead : candidate.begin;
    std::uint32_t state = 0;
    for (; at <= candidate.at; ++at) state = step(shared, state, __ldg(at));
    ac_report(view, state, candidate.at + 1, found);
  }
};

// ---- findings

/// As the record's first word, `count` in its lower half.
__device__ inline constexpr std::uint32_t flag_word(PacketLiterals::Flag flag) {
  return static_cast<std::uint32_t>(flag) << 16;
}

/// By the lanes of the packet, `sub` of `kLanes` each its part.
template <unsigned kLanes>
__device__ void begin_finding(PacketLiterals& finding, unsigned sub, bool scanned) {
  auto* const words = reinterpret_cast<unsigned long long*>(&finding);
  constexpr unsigned long long kNobody = ~0ULL;
  const std::uint32_t head = scanned ? flag_word(PacketLiterals::kScanned) : 0;
#pragma unroll
  for (unsigned i = sub; i < sizeof(PacketLiterals) / sizeof(*words); i += kLanes) {
    words[i] = i == 0 ? kNobody << 32 | head : kNobody;
  }
}

/// By any lane of the packet's warp. True where the finding cannot name all.
__device__ inline bool add_finding(PacketLiterals& finding, std::uint32_t packet, std::uint32_t literal,
                                   WarpQueue& queue) {
  // Literals that a packet is full of: one that another lane is adding, or has added, need not be added again.
  volatile unsigned long long& seen = queue.seen[(literal * 0x9e37'79b1U >> 16 ^ packet) % kSeenEntries];
  const unsigned long long key = static_cast<unsigned long long>(packet) << 32 | literal;
  if (seen == key) return false;
  seen = key;
  auto* const words = reinterpret_cast<std::uint32_t*>(&finding);
  for (unsigned i = 0; i < PacketLiterals::kMost; ++i) {
    const std::uint32_t before = atomicCAS(words + 1 + i, PacketLiterals::kNone, literal);
    if (before == PacketLiterals::kNone) {
      atomicAdd(words, 1U);
      return false;
    }
    if (before == literal) return false;
  }
  atomicOr(words, flag_word(PacketLiterals::kTooMany));
  return true;
}

// ---- the kernel

/// What is read of a descriptor, before it is needed.
struct ScanJob {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  Verdict verdict;
  PacketLayout layout;

  __device__ static ScanJob read(const PacketDescriptor& packet) {
    return {packet.offset, packet.length, packet.verdict, packet.layout};
  }
};

template <typename Shape, typename Scan>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    scan_packets(const __grid_constant__ Scan scan, const __grid_constant__ gpu::DevicePackets batch,
                 const std::uint32_t engine_bytes) {
  constexpr unsigned kLanes = Shape::kLanes;
  constexpr unsigned kGroups = kWarp / kLanes;
  static_assert(kWarp % kLanes == 0 && kGroups <= kMostGroups);
  extern __shared__ uint4 shared[];
  scan.load(shared);
  WarpQueue& queue = reinterpret_cast<WarpQueue*>(shared + engine_bytes / sizeof(uint4))[threadIdx.x / kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned sub = lane % kLanes;
  queue.seen[lane] = ~0ULL;
  if (lane < kMostGroups) queue.full[lane] = kNoPacket;
  static_assert(kSeenEntries == kWarp);
  __syncthreads();

  const auto address = reinterpret_cast<std::uintptr_t>(batch.frames);
  const auto skew = static_cast<std::uint32_t>(address % kAlignment);
  const std::uint8_t* const base = batch.frames - skew;
  auto* const findings = reinterpret_cast<PacketLiterals*>(batch.findings);

  unsigned waiting = 0;  // in the queue
  const auto look_up = [&](unsigned entry) {
    const std::uint32_t packet = queue.packet[entry] & ~kFirstKind;
    const std::uint32_t bounds = queue.bounds[entry];
    const std::uint8_t* const at = base + queue.position[entry];
    const Candidate candidate{at - (bounds & kMostBound), at, at + (bounds >> 16), queue.packet[entry] >= kFirstKind};
    // Nothing more is to be said of a packet that is to be scanned again. The group of a packet is its remainder.
    volatile std::uint32_t& full = queue.full[packet % kGroups];
    if (full == packet) return;
    scan.look_up(shared, candidate, [&](std::uint32_t literal) {
      if (add_finding(findings[packet], packet, literal, queue)) full = packet;
    });
  };

  // Warps of one number lie in different blocks, so that few packets are spread over the device.
  const std::uint32_t warp = blockIdx.x + gridDim.x * (threadIdx.x / kWarp);
  const std::uint32_t step = gridDim.x * (blockDim.x / kWarp) * kGroups;
  std::uint32_t next = warp * kGroups + lane / kLanes;
  ScanJob job;
  if (next < batch.count) job = ScanJob::read(batch.packets[next]);

  std::uint32_t packet = 0;
  Span span;
  std::uint32_t group_at = 0;
  while (true) {
    while (group_at >= span.end && next < batch.count) {
      packet = next;
      const bool scanned = job.verdict.alive();
      begin_finding<kLanes>(findings[packet], sub, scanned);
      const ScanRange range = scan_range(job.layout, job.length);
      const bool any = scanned && range.begin < range.end;
      span.begin = any ? skew + job.offset + range.begin : 0;
      span.end = any ? skew + job.offset + range.end : 0;
      group_at = span.begin / kAlignment * kAlignment;
      next += step;
      if (next < batch.count) job = ScanJob::read(batch.packets[next]);
    }
    if (!__any_sync(~0U, group_at < span.end)) break;

    const std::uint32_t at = group_at + sub * Scan::kStripBytes;
    std::uint32_t mask = at < span.end ? scan.candidates(shared, base, at, span) : 0;
    while (const unsigned with = __ballot_sync(~0U, mask != 0)) {
      if (mask != 0) {
        const auto bit = static_cast<std::uint32_t>(__clz(static_cast<int>(mask)));
        mask &= ~(0x8000'0000U >> bit);
        const std::uint32_t position = at + Scan::position_of(bit);
        const unsigned entry = waiting + __popc(with & ((1U << lane) - 1));
        queue.position[entry] = position;
        queue.packet[entry] = packet | (Scan::first_kind(bit) ? kFirstKind : 0);
        queue.bounds[entry] = min(position - span.begin, kMostBound) | min(span.end - position, kMostBound) << 16;
      }
      waiting += __popc(with);
      if (waiting >= kWarp) {
        waiting -= kWarp;
        __syncwarp();
        look_up(waiting + lane);
        __syncwarp();
      }
    }
    group_at += kLanes * Scan::kStripBytes;
    if (static_cast<volatile std::uint32_t&>(queue.full[lane / kLanes]) == packet) group_at = span.end;
  }
  __syncwarp();
  if (lane < waiting) look_up(lane);
}

// ---- launches

/// A kernel with what its launches need of the device, which is the current one when it is made.
template <typename Shape, typename Scan>
class ScanLauncher {
 public:
  /// Of a block.
  [[nodiscard]] static unsigned shared_bytes(const Scan& scan) {
    return scan.shared_bytes() + Shape::kThreads / kWarp * static_cast<unsigned>(sizeof(WarpQueue));
  }

  /// Throws CudaError.
  explicit ScanLauncher(const Scan& scan) : scan_(scan), shared_bytes_(shared_bytes(scan)) {
    int device = 0;
    int multiprocessors = 0;
    int blocks = 0;
    gpu::check(cudaGetDevice(&device));
    gpu::check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    gpu::check(cudaFuncSetAttribute(scan_packets<Shape, Scan>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes_)));
    gpu::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scan_packets<Shape, Scan>,
                                                             static_cast<int>(Shape::kThreads), shared_bytes_));
    resident_blocks_ = static_cast<std::uint32_t>(multiprocessors * blocks);
  }

  /// False when the driver refuses the launch.
  [[nodiscard]] bool operator()(const gpu::DevicePackets& batch, const gpu::Stream& stream) const noexcept {
    if (batch.count == 0) return true;
    constexpr std::uint32_t kGroups = kWarp / Shape::kLanes;
    cudaLaunchConfig_t launch{};
    launch.gridDim = std::min((batch.count + kGroups - 1) / kGroups, resident_blocks_);
    launch.blockDim = Shape::kThreads;
    launch.dynamicSmemBytes = shared_bytes_;
    launch.stream = stream.get();
    return cudaLaunchKernelEx(&launch, scan_packets<Shape, Scan>, scan_, batch, scan_.shared_bytes()) == cudaSuccess;
  }

 private:
  Scan scan_;
  unsigned shared_bytes_;
  std::uint32_t resident_blocks_ = 1;
};

/// Calls `use(scan)` with the engine's scan; `rows_in_shared` of the automaton.
template <typename Use>
auto with_scan(const DeviceLiterals::EngineView& engine, bool rows_in_shared, const Use& use) {
  if (const auto* const filter = std::get_if<HashedFilterView>(&engine)) {
    return filter->pairs ? use(FilterScan<true>{*filter}) : use(FilterScan<false>{*filter});
  }
  const auto& automaton = std::get<AhoCorasickView<std::uint16_t>>(engine);
  return rows_in_shared ? use(AutomatonScan<true>{automaton}) : use(AutomatonScan<false>{automaton});
}

}  // namespace penstock::nids
