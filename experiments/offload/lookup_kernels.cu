// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/offload/lookup_kernels.h"

#include <cuda_runtime.h>

#include "classify/bitvector_core.h"
#include "classify/rfc_core.h"
#include "experiments/offload/tuple_key.h"
#include "gpu/per_packet.cuh"
#include "nf/router/multibit_core.h"

namespace penstock::experiments {
namespace {

using gpu::kThreadsPerBlock;

/// The unit of a thread's loads and stores.
struct alignas(16) Addresses {
  Ipv4Address of[kKeysPerThread];
};
struct alignas(16) Values {
  std::uint32_t of[kKeysPerThread];
};

/// Several keys per thread, so that as many loads are in flight, and keys and values move in units of 16 bytes.
template <typename View>
__global__ void __launch_bounds__(kThreadsPerBlock)
    route(const View table, const Addresses* __restrict__ keys, Values* __restrict__ values, const unsigned count) {
  const unsigned i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  const Addresses mine = keys[i];
  Values found;
#pragma unroll
  for (unsigned k = 0; k < kKeysPerThread; ++k) found.of[k] = router::lookup(table, mine.of[k]);
  values[i] = found;
}

template <typename View>
__global__ void __launch_bounds__(kThreadsPerBlock) classify(const View table, const TupleKey* __restrict__ keys,
                                                             std::uint32_t* __restrict__ values, const unsigned count) {
  const unsigned i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < count) values[i] = classify::deciding_entry(table, key_of(keys[i]));
}

template <unsigned kRoot, unsigned... kNodes>
bool enqueue(const router::MultibitView<Ipv4Address, kRoot, kNodes...>& table, const std::byte* keys,
             std::uint32_t* values, std::size_t count, const gpu::Stream& stream) noexcept {
  const std::size_t groups = count / kKeysPerThread;
  return gpu::launch_threads(route<router::MultibitView<Ipv4Address, kRoot, kNodes...>>, groups, stream, table,
                             reinterpret_cast<const Addresses*>(keys), reinterpret_cast<Values*>(values), groups);
}

template <typename View>
bool enqueue(const View& table, const std::byte* keys, std::uint32_t* values, std::size_t count,
             const gpu::Stream& stream) noexcept {
  return gpu::launch_threads(classify<View>, count, stream, table, reinterpret_cast<const TupleKey*>(keys), values,
                             count);
}

}  // namespace

bool enqueue_lookups(const TableView& table, const std::byte* keys, std::uint32_t* values, std::size_t count,
                     const gpu::Stream& stream) noexcept {
  return std::visit([&](const auto& view) { return enqueue(view, keys, values, count, stream); }, table);
}

}  // namespace penstock::experiments
