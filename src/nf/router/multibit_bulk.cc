// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bulk lookups in multibit tries on the CPU. The cost is memory latency, so many lookups are in flight at once: with
// AVX-512, 64 addresses descend together, level by level. If the root is larger than the caches, the root entries of
// later addresses are prefetched.

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "nf/router/multibit_build.h"
#include "nf/router/multibit_core.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

constexpr unsigned kCachedRootBits = 20;
constexpr std::size_t kAhead = 128;  // distance in addresses between the prefetch of a root entry and its use

/// Prefetches the root entries of addresses[begin, end), clipped to the span.
template <typename View>
void prefetch_root(View table, std::span<const typename View::Address> addresses, std::size_t begin,
                   std::size_t end) noexcept {
  if constexpr (View::kRootBits > kCachedRootBits) {
    end = std::min(end, addresses.size());
    for (std::size_t i = begin; i < end; ++i) {
      __builtin_prefetch(&table.root[bits_at(addresses[i], 0, View::kRootBits)]);
    }
  }
}

template <typename View, typename Address = typename View::Address>
void lookup_one_by_one(View table, std::span<const Address> addresses, std::span<std::uint32_t> values) noexcept {
  prefetch_root(table, addresses, 0, kAhead);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    prefetch_root(table, addresses, i + kAhead, i + kAhead + 1);
    values[i] = lookup(table, addresses[i]);
  }
}

constexpr std::size_t kLanes = 16;
constexpr std::size_t kVectors = 4;
constexpr std::size_t kGroup = kLanes * kVectors;
constexpr __mmask16 kAllLanes = 0xffff;

/// The 32 bits after the first `depth` (a multiple of 32) of each of 16 addresses.
[[gnu::target("avx512f,avx512dq")]] inline __m512i address_word(const Ipv4Address* addresses, unsigned) noexcept {
  return _mm512_loadu_si512(addresses);
}
[[gnu::target("avx512f,avx512dq")]] inline __m512i address_word(const Ipv6Address* addresses, unsigned depth) noexcept {
  const unsigned word = depth / 32 ^ 1;  // the lower word of each 64-bit half comes first
  const __m512i pick = _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28),
                                        _mm512_set1_epi32(static_cast<int>(word)));
  const __m512i low = _mm512_permutex2var_epi32(_mm512_loadu_si512(addresses), pick, _mm512_loadu_si512(addresses + 4));
  const __m512i high =
      _mm512_permutex2var_epi32(_mm512_loadu_si512(addresses + 8), pick, _mm512_loadu_si512(addresses + 12));
  return _mm512_mask_blend_epi32(0xff00, low, high);
}

/// A group of addresses on their way down the trie.
template <typename View>
struct Descent {
  const typename View::Address* addresses;
  __m512i word[kVectors];
  __m512i entry[kVectors];
  __mmask16 descends[kVectors];  // the lanes whose entry is a child
};

/// Moves the addresses whose entry is a child down one level. False if there are none.
template <typename View, std::size_t kLevel>
[[gnu::target("avx512f,avx512dq")]] inline bool descend(View table, Descent<View>& group) noexcept {
  constexpr unsigned kDepth = View::depth(kLevel);
  constexpr unsigned kStride = View::stride(kLevel);
  static_assert(kDepth / 32 == (kDepth + kStride - 1) / 32, "a level's bits lie in one word of the address");
  const __m512i first_child = _mm512_set1_epi32(static_cast<int>(kFirstChild));
  const __m512i slot_mask = _mm512_set1_epi32((1 << kStride) - 1);
  bool any = false;
  for (std::size_t v = 0; v < kVectors; ++v) {
    if (group.descends[v] == 0) continue;
    any = true;
    if constexpr (kDepth % 32 == 0) group.word[v] = address_word(group.addresses + v * kLanes, kDepth);
    const __m512i slot = _mm512_and_si512(_mm512_srli_epi32(group.word[v], 32 - kDepth % 32 - kStride), slot_mask);
    const __m512i node = _mm512_slli_epi32(_mm512_sub_epi32(group.entry[v], first_child), View::kUnitBits);
    group.entry[v] =
        _mm512_mask_i32gather_epi32(group.entry[v], group.descends[v], _mm512_add_epi32(node, slot), table.nodes, 4);
    group.descends[v] = _mm512_cmpge_epu32_mask(group.entry[v], first_child);
  }
  return any;
}

template <typename View, std::size_t... kLevel>
[[gnu::target("avx512f,avx512dq")]] inline void descend_all(View table, Descent<View>& group,
                                                            std::index_sequence<kLevel...>) noexcept {
  (void)(descend<View, kLevel>(table, group) && ...);
}

template <typename View, typename Address = typename View::Address>
[[gnu::target("avx512f,avx512dq")]] void lookup_avx512(View table, std::span<const Address> addresses,
                                                       std::span<std::uint32_t> values) noexcept {
  const __m512i first_child = _mm512_set1_epi32(static_cast<int>(kFirstChild));
  const __m512i value_mask = _mm512_set1_epi32(static_cast<int>(kNoRoute));
  const std::size_t groups_end = addresses.size() / kGroup * kGroup;
  prefetch_root(table, addresses, 0, kAhead);
  for (std::size_t i = 0; i < groups_end; i += kGroup) {
    prefetch_root(table, addresses, i + kAhead, i + kAhead + kGroup);
    Descent<View> group;
    group.addresses = &addresses[i];
    for (std::size_t v = 0; v < kVectors; ++v) {
      group.word[v] = address_word(group.addresses + v * kLanes, 0);
      group.entry[v] = _mm512_mask_i32gather_epi32(
          value_mask, kAllLanes, _mm512_srli_epi32(group.word[v], 32 - View::kRootBits), table.root, 4);
      group.descends[v] = _mm512_cmpge_epu32_mask(group.entry[v], first_child);
    }
    descend_all(table, group, std::make_index_sequence<View::kLevels>());
    for (std::size_t v = 0; v < kVectors; ++v) {
      _mm512_storeu_si512(&values[i + v * kLanes], _mm512_and_si512(group.entry[v], value_mask));
    }
  }
  lookup_one_by_one(table, addresses.subspan(groups_end), values.subspan(groups_end));
}

}  // namespace

template <typename View>
void MultibitTable<View>::lookup_bulk(std::span<const Address> addresses,
                                      std::span<std::uint32_t> values) const noexcept {
  static const bool kHasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  return kHasAvx512 ? lookup_avx512(view(), addresses, values) : lookup_one_by_one(view(), addresses, values);
}

template void MultibitTable<Dir24View>::lookup_bulk(std::span<const Ipv4Address>,
                                                    std::span<std::uint32_t>) const noexcept;
template void MultibitTable<Trie1View>::lookup_bulk(std::span<const Ipv4Address>,
                                                    std::span<std::uint32_t>) const noexcept;
template void MultibitTable<Trie4View>::lookup_bulk(std::span<const Ipv4Address>,
                                                    std::span<std::uint32_t>) const noexcept;
template void MultibitTable<Trie6View>::lookup_bulk(std::span<const Ipv6Address>,
                                                    std::span<std::uint32_t>) const noexcept;

}  // namespace penstock::router
