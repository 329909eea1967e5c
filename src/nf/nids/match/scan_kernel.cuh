// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Scans a batch. A few lanes of a warp share a packet; each takes a strip of it. In each step, a warp takes the next
// strips of all its packets, whatever their sizes; lanes whose packet is finished go on with their next packet:
//
//   strips of 16 or 32 bytes ──▶ candidates: positions that an engine's tables in shared memory let through
//     ──▶ the warp's queue ──▶ 32 at a time looked up and compared ──▶ the packets' findings
//
// So the lookup, which has scattered reads and divergent branches, always runs with all lanes, however rare candidates
// are.

#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "gpu/check.cuh"
#include "gpu/share.cuh"
#include "gpu/stage.h"
#include "nf/nids/match/aho_corasick_core.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/hashed_filter_core.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/scan_range_core.h"
#include "nf/nids/match/scan_tables.h"

namespace penstock::nids {

inline constexpr unsigned kWarp = 32;

/// One block per multiprocessor, so that its tables are only once in shared memory. Devices with less shared memory
/// (Ampere) use half the threads, since each warp has a queue there.
inline constexpr unsigned kMostThreads = 1024;

/// The fewest lanes that share a packet: few, since a packet of 64 bytes has work for only one. With few packets, more
/// lanes share one, so that the whole device has work.
inline constexpr unsigned kFewestLanes = 4;

/// Positions count from the beginning of the frames, rounded down to a multiple of 16 bytes.
inline constexpr std::uint32_t kAlignment = 16;

/// The bytes of a packet to scan, as positions [begin, end).
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A position to look up, with as much of its packet around it as the longest literal can cover.
struct Candidate {
  std::uint32_t packet;
  const std::uint8_t* begin;
  const std::uint8_t* at;
  const std::uint8_t* end;
  bool first_kind;
};

// ---- a warp's shared memory

inline constexpr unsigned kQueueEntries = 2 * kWarp;  // fewer than kWarp wait before each lane adds at most one
inline constexpr unsigned kSeenEntries = 32;
inline constexpr unsigned kDoneEntries = 32;
inline constexpr unsigned kMostGroups = kWarp / kFewestLanes;
inline constexpr std::uint32_t kNoPacket = 0xffff'ffff;

struct WarpQueue {
  std::uint32_t position[kQueueEntries];
  std::uint32_t packet[kQueueEntries];    // top bit: Candidate::first_kind
  std::uint32_t bounds[kQueueEntries];    // bytes before the position, and from it on: 16 bits each, saturated
  unsigned long long seen[kSeenEntries];  // findings added recently: packet and literal
  unsigned long long done[kDoneEntries];  // windows for which a packet's findings are complete
  std::uint32_t full[kMostGroups];  // for each group of lanes: a packet with more literals than a finding can hold
};
inline constexpr std::uint32_t kFirstKind = 0x8000'0000;
inline constexpr std::uint32_t kMostBound = 0xffff;

// ---- engines

/// Copies with all threads of the block; complete after the next barrier.
template <typename T>
__device__ void copy_to_shared(T* to, const T* from, std::uint32_t count) {
#pragma unroll 8
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = __ldg(from + i);
}

/// A lane, and the lanes of its warp that share its packet: `lanes` of them, a power of two, of which it is number
/// `sub`.
struct Group {
  unsigned lane;
  unsigned lanes;
  unsigned sub;
};

/// The hashed filter. Candidates of the first kind are quads.
template <bool kPairs>
struct FilterScan {
  static constexpr std::uint32_t kStripBytes = kBlockBytes;

  HashedFilterView view;

  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t shared_bytes() const {
    return (view.bits.quad_words() + view.bits.key_words() + (kPairs ? 1U << kPairWordsLog2 : 0)) *
           static_cast<std::uint32_t>(sizeof(std::uint32_t));
  }

  /// The view's bits in shared memory.
  [[nodiscard]] __device__ FilterBitsView bits_in(const uint4* shared) const {
    FilterBitsView bits = view.bits;
    bits.quads = reinterpret_cast<const std::uint32_t*>(shared);
    bits.keys = bits.quads + bits.quad_words();
    bits.pairs = bits.keys + bits.key_words();
    return bits;
  }

  __device__ void load(uint4* shared) const {
    const auto part = [&shared](const std::uint32_t* words, std::uint32_t count) {
      copy_to_shared(shared, reinterpret_cast<const uint4*>(words), count / 4);
      shared += count / 4;
    };
    part(view.bits.quads, view.bits.quad_words());
    part(view.bits.keys, view.bits.key_words());
    if constexpr (kPairs) part(view.bits.pairs, 1U << kPairWordsLog2);
  }

  /// The key of a packet's window in the queue's `done`, and its index there.
  [[nodiscard]] static __device__ unsigned long long done_key(std::uint32_t packet, bool quad, std::uint32_t window) {
    return static_cast<unsigned long long>(packet | (quad ? kFirstKind : 0)) << 32 | window;
  }
  [[nodiscard]] static __device__ unsigned done_entry(std::uint32_t packet, std::uint32_t window) {
    return (quad_hash(window) >> 16 ^ packet) % kDoneEntries;
  }

  /// Called by all lanes of a warp. Bit 31 - i: a quad at position `at` + i; bit 15 - i: a pair.
  __device__ std::uint32_t candidates(const uint4* shared, const WarpQueue& queue, const std::uint8_t* base,
                                      std::uint32_t packet, std::uint32_t at, const Span& span,
                                      const Group& group) const {
    const FilterBitsView bits = bits_in(shared);
    BlockWords words = {};
    std::uint32_t windows = 0;
    bool repeats = false;  // the block repeats every four bytes
    if (at < span.end) {
      const uint4 block = __ldg(reinterpret_cast<const uint4*>(base + at));
      const uint2 behind =
          at + kBlockBytes < span.end ? __ldg(reinterpret_cast<const uint2*>(base + at + kBlockBytes)) : uint2{0, 0};
      words[0] = block.x;
      words[1] = block.y;
      words[2] = block.z;
      words[3] = block.w;
      words[4] = behind.x;
      words[5] = behind.y;
      repeats = block.x == block.y && block.y == block.z && block.z == block.w && block.w == behind.x;
      if (view.folds) {
#pragma unroll
        for (std::uint32_t& word : words) word = folded(word);
      }
      const std::uint32_t from = span.begin > at ? span.begin - at : 0;
      const std::uint32_t to = span.end - at < kBlockBytes ? span.end - at : kBlockBytes;
      windows = block_windows<kPairs>(bits, words) & candidates_within(from, to);
    }
    const unsigned repeating = __ballot_sync(~0U, repeats);
    if (repeats) windows &= ~repetitions(at, span, group, repeating);
    return block_candidates<kPairs>(bits, words, windows, [&](bool quad, std::uint32_t window) {
      const volatile unsigned long long& done = queue.done[done_entry(packet, window)];
      return done == done_key(packet, quad, window);
    });
  }

  /// In a block that repeats every four bytes, the positions to skip: if everything that a literal there could cover
  /// repeats, and the four bytes before it too, the literal is also four bytes earlier. Bytes after the packet do not
  /// matter. `repeating`: the lanes whose blocks repeat.
  __device__ std::uint32_t repetitions(std::uint32_t at, const Span& span, const Group& group,
                                       unsigned repeating) const {
    const bool left = group.sub > 0 && (repeating >> (group.lane - 1) & 1) != 0;
    const bool right = group.sub + 1 < group.lanes && (repeating >> (group.lane + 1) & 1) != 0;
    constexpr int kBlock = kBlockBytes;
    const int begin = max(left ? -kBlock : 0, static_cast<int>(span.begin - at));
    const int from = max(begin + 4 + static_cast<int>(view.before), 0);
    const int to = min((right ? 2 * kBlock : kBlock) + 4 - static_cast<int>(view.after) + 1, kBlock);
    return from < to ? candidates_within(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)) : 0;
  }
  __device__ static std::uint32_t position_of(std::uint32_t bit) { return bit % kBlockBytes; }
  __device__ static bool first_kind(std::uint32_t bit) { return bit < kBlockBytes; }

  template <typename Found>
  __device__ void look_up(const uint4*, WarpQueue& queue, const Candidate& candidate, Found&& found) const {
    const bool quad = candidate.first_kind;
    const std::uint32_t window = candidate_window(view, quad, candidate.at, candidate.end);
    if (!look_up_candidate(view, quad, window, candidate.begin, candidate.at, candidate.end, found)) return;
    atomicExch(&queue.done[done_entry(candidate.packet, window)], done_key(candidate.packet, quad, window));
  }
};

/// The automaton, with its rows in shared memory or in device memory. A candidate is the last byte of a literal; the
/// lookup finds out which literal by running the automaton again over the bytes up to there.
template <bool kRowsInShared>
struct AutomatonScan {
  static constexpr std::uint32_t kStripBytes = 32;
  static constexpr int kLead = 8;  // how many bytes before a strip the automaton starts
  static_assert(kLead + 1 == kMostStripLiteralBytes);

  using Entry = std::uint16_t;
  AhoCorasickView<Entry> view;

  static constexpr std::uint32_t kClassQuads = 256 / sizeof(uint4);

  [[nodiscard]] PENSTOCK_HOST_DEVICE static std::uint32_t row_quads(const AhoCorasickView<Entry>& view) {
    return static_cast<std::uint32_t>((view.states * view.classes * sizeof(Entry) + sizeof(uint4) - 1) / sizeof(uint4));
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t shared_bytes() const {
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

  /// Bit 31 - i: a literal ends at position `at` + i.
  __device__ std::uint32_t candidates(const uint4* shared, const WarpQueue&, const std::uint8_t* base, std::uint32_t,
                                      std::uint32_t at, const Span& span, const Group&) const {
    if (at >= span.end) return 0;
    constexpr int kWords = (kLead + static_cast<int>(kStripBytes)) / 4;
    std::uint32_t words[kWords] = {};
    // Where the automaton starts, relative to `at`: at the beginning of the packet, or as far before the strip as a
    // literal can begin.
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
  __device__ void look_up(const uint4* shared, WarpQueue&, const Candidate& candidate, Found&& found) const {
    const std::uint8_t* at = candidate.at - candidate.begin > kLead ? candidate.at - kLead : candidate.begin;
    std::uint32_t state = 0;
    for (; at <= candidate.at; ++at) state = step(shared, state, __ldg(at));
    ac_report(view, state, candidate.at + 1, found);
  }
};

// ---- findings

/// The flag in the finding's first word, whose lower half is `count`.
__device__ inline constexpr std::uint32_t flag_word(PacketLiterals::Flag flag) {
  return static_cast<std::uint32_t>(flag) << 16;
}

/// Called by the packet's lanes; each writes its part.
__device__ inline void begin_finding(PacketLiterals& finding, const Group& group, bool scanned, bool is_payload) {
  auto* const words = reinterpret_cast<unsigned long long*>(&finding);
  constexpr unsigned long long kNobody = ~0ULL;
  const std::uint32_t head =
      scanned ? flag_word(PacketLiterals::kScanned) | (is_payload ? flag_word(PacketLiterals::kPayload) : 0) : 0;
  static_assert(sizeof(PacketLiterals) == kFewestLanes * sizeof(*words));
  if (group.sub < kFewestLanes) words[group.sub] = group.sub == 0 ? kNobody << 32 | head : kNobody;
}

/// Called by any lane of the packet's warp. True if the finding cannot hold all literals.
__device__ inline bool add_finding(PacketLiterals& finding, std::uint32_t packet, std::uint32_t literal,
                                   WarpQueue& queue) {
  // For literals that occur often in a packet: if another lane is adding it, or has added it, there is nothing to do.
  unsigned long long& seen = queue.seen[(literal * 0x9e37'79b1U >> 16 ^ packet) % kSeenEntries];
  const unsigned long long key = static_cast<unsigned long long>(packet) << 32 | literal;
  if (atomicExch(&seen, key) == key) return false;
  // Reads the entries that are there at once, then adds with compare-and-swap after them.
  const auto* const twos = reinterpret_cast<const unsigned long long*>(&finding);
  const unsigned long long there[] = {__ldcg(twos), __ldcg(twos + 1), __ldcg(twos + 2), __ldcg(twos + 3)};
  unsigned taken = 0;
#pragma unroll
  for (unsigned i = 1; i <= PacketLiterals::kMost; ++i) {
    const auto other = static_cast<std::uint32_t>(there[i / 2] >> i % 2 * 32);
    if (other == literal) return false;
    if (other != PacketLiterals::kNone) ++taken;
  }
  auto* const words = reinterpret_cast<std::uint32_t*>(&finding);
  for (unsigned i = taken; i < PacketLiterals::kMost; ++i) {
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

/// What is read of a descriptor, ahead of its use.
struct ScanJob {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  Verdict verdict;
  PacketLayout layout;

  __device__ static ScanJob read(const PacketDescriptor& packet) {
    return {packet.offset, packet.length, packet.verdict, packet.layout};
  }
};

/// `lanes`: lanes per packet, a power of two from kFewestLanes to kWarp.
template <typename Scan>
__global__ void __launch_bounds__(kMostThreads, 1)
    scan_packets(const __grid_constant__ Scan scan, const __grid_constant__ gpu::DevicePackets batch,
                 const std::uint32_t lanes) {
  extern __shared__ uint4 shared[];
  scan.load(shared);
  WarpQueue& queue = reinterpret_cast<WarpQueue*>(shared + scan.shared_bytes() / sizeof(uint4))[threadIdx.x / kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  const Group group{lane, lanes, lane & (lanes - 1)};
  const unsigned groups = kWarp / lanes;
  queue.seen[lane] = ~0ULL;
  queue.done[lane] = ~0ULL;
  if (lane < kMostGroups) queue.full[lane] = kNoPacket;
  static_assert(kSeenEntries == kWarp && kDoneEntries == kWarp);
  __syncthreads();

  const auto address = reinterpret_cast<std::uintptr_t>(batch.frames);
  const auto skew = static_cast<std::uint32_t>(address % kAlignment);
  const std::uint8_t* const base = batch.frames - skew;
  auto* const findings = reinterpret_cast<PacketLiterals*>(batch.findings);

  unsigned waiting = 0;  // entries in the queue
  const auto look_up = [&](unsigned entry) {
    const std::uint32_t packet = queue.packet[entry] & ~kFirstKind;
    const std::uint32_t bounds = queue.bounds[entry];
    const std::uint8_t* const at = base + queue.position[entry];
    const Candidate candidate{packet, at - (bounds & kMostBound), at, at + (bounds >> 16),
                              queue.packet[entry] >= kFirstKind};
    // A packet whose finding is full will be scanned again on the host, so skip it. A packet's group is its index
    // modulo the number of groups.
    std::uint32_t& full = queue.full[packet & (groups - 1)];
    if (static_cast<volatile std::uint32_t&>(full) == packet) return;
    scan.look_up(shared, queue, candidate, [&](std::uint32_t literal) {
      if (add_finding(findings[packet], packet, literal, queue)) atomicExch(&full, packet);
    });
  };

  // Consecutive warp numbers lie in different blocks, so that a few packets are spread over the whole device.
  const std::uint32_t warp = blockIdx.x + gridDim.x * (threadIdx.x / kWarp);
  const std::uint32_t step = gridDim.x * (blockDim.x / kWarp) * groups;
  std::uint32_t next = warp * groups + lane / lanes;
  ScanJob job;
  if (next < batch.count) job = ScanJob::read(batch.packets[next]);

  std::uint32_t packet = 0;
  Span span;
  std::uint32_t group_at = 0;
  while (true) {
    while (group_at >= span.end && next < batch.count) {
      packet = next;
      const bool scanned = job.verdict.alive();
      const ScanRange range = scan_range(job.layout, job.length);
      begin_finding(findings[packet], group, scanned, range.is_payload);
      const bool any = scanned && range.begin < range.end;
      span.begin = any ? skew + job.offset + range.begin : 0;
      span.end = any ? skew + job.offset + range.end : 0;
      group_at = span.begin / kAlignment * kAlignment;
      next += step;
      if (next < batch.count) job = ScanJob::read(batch.packets[next]);
    }
    if (!__any_sync(~0U, group_at < span.end)) break;

    const std::uint32_t at = group_at + group.sub * Scan::kStripBytes;
    std::uint32_t mask = scan.candidates(shared, queue, base, packet, at, span, group);
    while (const unsigned with = __ballot_sync(~0U, mask != 0)) {
      if (mask != 0) {
        const std::uint32_t bit = leading_zeros(mask);
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
    group_at += lanes * Scan::kStripBytes;
    if (static_cast<volatile std::uint32_t&>(queue.full[lane / lanes]) == packet) group_at = span.end;
  }
  __syncwarp();
  if (lane < waiting) look_up(lane);
}

// ---- launches

/// A kernel and its launch parameters, for the device that is current when it is made.
template <typename Scan>
class ScanLauncher {
 public:
  /// The dynamic shared memory of a block.
  [[nodiscard]] static unsigned shared_bytes(const Scan& scan, unsigned threads) {
    return scan.shared_bytes() + threads / kWarp * static_cast<unsigned>(sizeof(WarpQueue));
  }

  /// `multiprocessors`: how many its launches may fill, as in StageUse. Throws CudaError.
  explicit ScanLauncher(const Scan& scan, std::uint32_t multiprocessors = 0) : scan_(scan) {
    int device = 0;
    int most_shared = 0;
    int blocks = 0;
    gpu::check(cudaGetDevice(&device));
    gpu::check(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (shared_bytes(scan, threads_) > static_cast<unsigned>(most_shared)) threads_ /= 2;
    shared_bytes_ = shared_bytes(scan, threads_);
    // The limit belongs to the kernel, not to this launcher. A lower one would refuse the launches of those made
    // before, which may have larger tables.
    gpu::check(cudaFuncSetAttribute(scan_packets<Scan>, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared));
    gpu::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scan_packets<Scan>, static_cast<int>(threads_),
                                                             shared_bytes_));
    resident_blocks_ = gpu::multiprocessors_of_share(multiprocessors) * static_cast<std::uint32_t>(blocks);
  }

  [[nodiscard]] const Scan& scan() const noexcept { return scan_; }
  /// Lanes per packet in a batch of `packets` packets.
  [[nodiscard]] std::uint32_t lanes(std::uint32_t packets) const noexcept {
    return std::bit_floor(std::clamp(resident_blocks_ * threads_ / packets, kFewestLanes, kWarp));
  }

  /// False if the driver refuses the launch.
  [[nodiscard]] bool operator()(const gpu::DevicePackets& batch, const gpu::Stream& stream) const noexcept {
    return batch.count == 0 || (*this)(batch, stream, lanes(batch.count));
  }
  [[nodiscard]] bool operator()(const gpu::DevicePackets& batch, const gpu::Stream& stream,
                                std::uint32_t lanes) const noexcept {
    const std::uint32_t groups = kWarp / lanes;
    cudaLaunchConfig_t launch{};
    launch.gridDim = std::min((batch.count + groups - 1) / groups, resident_blocks_);
    launch.blockDim = threads_;
    launch.dynamicSmemBytes = shared_bytes_;
    launch.stream = stream.get();
    return cudaLaunchKernelEx(&launch, scan_packets<Scan>, scan_, batch, lanes) == cudaSuccess;
  }

 private:
  Scan scan_;
  unsigned threads_ = kMostThreads;
  unsigned shared_bytes_ = 0;
  std::uint32_t resident_blocks_ = 1;
};

/// Calls `use(scan)` with the scan of an engine whose packets are shared by lanes. `rows_in_shared` is for the
/// automaton.
template <typename Use>
auto with_scan(const DeviceLiterals::EngineView& engine, bool rows_in_shared, const Use& use) {
  if (const auto* const filter = std::get_if<HashedFilterView>(&engine)) {
    return filter->pairs ? use(FilterScan<true>{*filter}) : use(FilterScan<false>{*filter});
  }
  const auto& automaton = std::get<AhoCorasickView<std::uint16_t>>(engine);
  return rows_in_shared ? use(AutomatonScan<true>{automaton}) : use(AutomatonScan<false>{automaton});
}

}  // namespace penstock::nids
