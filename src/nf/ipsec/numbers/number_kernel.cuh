// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Assigns sequence numbers to a batch on the device: the packets of each SA get consecutive numbers in batch order,
// taken from the SA's counter all at once. One thread block does it, counting packets by SA in chunks of 1,024, one
// warp after another within a chunk; this keeps the order without sorting.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/numbers/device_numbers.h"

namespace penstock::ipsec::kernels {

inline constexpr unsigned kNumberThreads = 1024;

/// The most SAs whose counts fit in a block's shared memory; for more, the counts are in device memory.
inline constexpr std::uint32_t kMostSharedSas = 10240;

/// The result for a batch, by packet and by SA.
struct Numbering {
  std::uint32_t* ranks = nullptr;       // by packet: how many packets of the same SA precede it
  std::uint32_t* counts = nullptr;      // by SA: number of packets; scratch
  unsigned long long* first = nullptr;  // by SA: number of its first packet
  std::uint32_t* granted = nullptr;  // by SA: how many numbers it got; fewer than its packets if no more are reserved
};

/// Takes up to `count` numbers and returns how many; the first is `before` + 1. Only while the device is not closed.
inline __device__ std::uint32_t take_numbers(NumberCell& cell, std::uint32_t count, unsigned long long& before) {
  // Volatile, because the host raises it while batches run.
  const unsigned long long reserved = *static_cast<const volatile unsigned long long*>(&cell.reserved);
  unsigned long long seen = cell.sent;
  for (;;) {
    const unsigned long long left = reserved < seen ? 0 : reserved - seen;
    const std::uint32_t taken = left < count ? static_cast<std::uint32_t>(left) : count;
    // System scope: another device may use the same counter.
    const unsigned long long found = atomicCAS_system(&cell.sent, seen, seen + taken);
    if (found == seen) {
      before = seen;
      return taken;
    }
    seen = found;
  }
}

/// `sas`: by packet, kNoSa if it needs no number. Launch as one block of kNumberThreads, with 4 bytes of shared memory
/// per SA if there are at most kMostSharedSas.
static __global__ void __launch_bounds__(kNumberThreads)
    number_packets(const std::uint32_t* sas, std::uint32_t count, DeviceNumbers::View numbers, Numbering to) {
  extern __shared__ std::uint32_t shared_counts[];
  __shared__ std::uint32_t single;
  // Read once and not per SA, because it is a round trip over PCIe.
  __shared__ bool closed;
  if (threadIdx.x == 0) closed = *static_cast<const volatile unsigned*>(numbers.closed) != 0;
  std::uint32_t* const counts = numbers.sas <= kMostSharedSas ? shared_counts : to.counts;
  for (std::uint32_t sa = threadIdx.x; sa < numbers.sas; sa += kNumberThreads) counts[sa] = 0;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  for (std::uint32_t base = 0; base < count; base += kNumberThreads) {
    const std::uint32_t i = base + threadIdx.x;
    const std::uint32_t sa = i < count ? sas[i] : kNoSa;
    if (threadIdx.x == 0) single = sa;
    __syncthreads();
    // Fast path: most chunks are of a single SA.
    if (__syncthreads_and(sa == single && sa != kNoSa) != 0) {
      const std::uint32_t before = counts[sa];
      to.ranks[i] = before + threadIdx.x;
      __syncthreads();
      if (threadIdx.x == 0) counts[sa] = before + kNumberThreads;
      __syncthreads();
      continue;
    }
    const unsigned same = __match_any_sync(~0U, sa);
    const unsigned leader = static_cast<unsigned>(__ffs(static_cast<int>(same))) - 1;
    std::uint32_t before = 0;
    for (unsigned turn = 0; turn < kNumberThreads / 32; ++turn) {
      if (turn == warp && lane == leader && sa != kNoSa) {
        before = counts[sa];
        counts[sa] = before + static_cast<std::uint32_t>(__popc(same));
      }
      __syncthreads();
    }
    before = __shfl_sync(~0U, before, static_cast<int>(leader));
    if (sa != kNoSa) to.ranks[i] = before + static_cast<std::uint32_t>(__popc(same & ((1U << lane) - 1)));
  }
  __syncthreads();
  for (std::uint32_t sa = threadIdx.x; sa < numbers.sas; sa += kNumberThreads) {
    const std::uint32_t packets = counts[sa];
    if (packets == 0) continue;
    unsigned long long before = 0;
    to.granted[sa] = closed ? 0 : take_numbers(*numbers.cells[sa], packets, before);
    to.first[sa] = before + 1;
    // Each view publishes only its own numbers, which increase; reading what others published would be a PCIe round
    // trip.
    if (to.granted[sa] != 0) {
      *static_cast<volatile unsigned long long*>(numbers.published + sa) = before + to.granted[sa];
    }
  }
}

}  // namespace penstock::ipsec::kernels
