// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bulk look-ups in the IPv4 tries on the CPU. What costs is waiting for memory, so many addresses are on their way at
// once: with AVX-512, 64 of them descend together, level by level, and the root entries of those that come next are
// fetched ahead where the root is larger than the caches.

#include <immintrin.h>

#include <algorithm>
#include <cstddef>

#include "nf/router/multibit_build.h"
#include "nf/router/multibit_core.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

constexpr unsigned kCachedRootBits = 16;
constexpr std::size_t kAhead = 192;  // addresses between the fetch of a root entry and its use

template <unsigned kRootBits, unsigned kStrideBits>
void lookup_one_by_one(MultibitView<kRootBits, kStrideBits> table, std::span<const Ipv4Address> addresses,
                       std::span<std::uint32_t> values) noexcept {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if constexpr (kRootBits > kCachedRootBits) {
      const std::size_t next = std::min(i + kAhead, addresses.size() - 1);
      __builtin_prefetch(&table.root[addresses[next].bits >> (32 - kRootBits)]);
    }
    values[i] = lookup(table, addresses[i]);
  }
}

constexpr std::size_t kLanes = 16;
constexpr __mmask16 kAllLanes = 0xffff;
constexpr std::size_t kVectors = 4;
constexpr std::size_t kGroup = kLanes * kVectors;

template <unsigned kRootBits, unsigned kStrideBits>
[[gnu::target("avx512f,avx512dq")]] void lookup_avx512(MultibitView<kRootBits, kStrideBits> table,
                                                       std::span<const Ipv4Address> addresses,
                                                       std::span<std::uint32_t> values) noexcept {
  const __m512i slot_mask = _mm512_set1_epi32((1 << kStrideBits) - 1);
  const __m512i node_mask = _mm512_set1_epi32(static_cast<int>(~kChildFlag));
  const __m512i value_mask = _mm512_set1_epi32(static_cast<int>(kNoRoute));
  const std::size_t groups_end = addresses.size() / kGroup * kGroup;
  for (std::size_t i = 0; i < groups_end; i += kGroup) {
    if constexpr (kRootBits > kCachedRootBits) {
      const std::size_t next = std::min(i + kAhead, groups_end - kGroup);
      for (std::size_t k = 0; k < kGroup; ++k) {
        __builtin_prefetch(&table.root[addresses[next + k].bits >> (32 - kRootBits)]);
      }
    }
    __m512i address[kVectors];
    __m512i entry[kVectors];
    __mmask16 descends[kVectors];  // the lanes whose entry is a child: its flag is the sign
    unsigned any = 0;
    for (std::size_t v = 0; v < kVectors; ++v) {
      address[v] = _mm512_loadu_si512(&addresses[i + v * kLanes]);
      entry[v] = _mm512_mask_i32gather_epi32(value_mask, kAllLanes, _mm512_srli_epi32(address[v], 32 - kRootBits),
                                             table.root, 4);
      descends[v] = _mm512_movepi32_mask(entry[v]);
      any |= descends[v];
    }
    for (unsigned shift = 32 - kRootBits; any != 0;) {
      shift -= kStrideBits;
      const __m128i shift_count = _mm_cvtsi32_si128(static_cast<int>(shift));
      any = 0;
      for (std::size_t v = 0; v < kVectors; ++v) {
        if (descends[v] == 0) continue;
        const __m512i node = _mm512_slli_epi32(_mm512_and_si512(entry[v], node_mask), kStrideBits);
        const __m512i slot = _mm512_and_si512(_mm512_srl_epi32(address[v], shift_count), slot_mask);
        entry[v] = _mm512_mask_i32gather_epi32(entry[v], descends[v], _mm512_or_si512(node, slot), table.nodes, 4);
        descends[v] = _mm512_movepi32_mask(entry[v]);
        any |= descends[v];
      }
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      _mm512_storeu_si512(&values[i + v * kLanes], _mm512_and_si512(entry[v], value_mask));
    }
  }
  lookup_one_by_one(table, addresses.subspan(groups_end), values.subspan(groups_end));
}

}  // namespace

template <unsigned kRootBits, unsigned kStrideBits>
void lookup_bulk(MultibitView<kRootBits, kStrideBits> table, std::span<const Ipv4Address> addresses,
                 std::span<std::uint32_t> values) noexcept {
  static const bool has_avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  return has_avx512 ? lookup_avx512(table, addresses, values) : lookup_one_by_one(table, addresses, values);
}

template void lookup_bulk(Dir24View, std::span<const Ipv4Address>, std::span<std::uint32_t>) noexcept;
template void lookup_bulk(Trie1View, std::span<const Ipv4Address>, std::span<std::uint32_t>) noexcept;
template void lookup_bulk(Trie4View, std::span<const Ipv4Address>, std::span<std::uint32_t>) noexcept;

}  // namespace penstock::router
