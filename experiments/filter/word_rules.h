// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Hung & Guo's linear matching (figure 6): every rule tests the same number of fields, each a word of the key under a
// mask. A wildcard has mask 0. For host and device.

#pragma once

#include <array>
#include <cstdint>

#include "base/host_device.h"
#include "experiments/offload/tuple_key.h"

namespace penstock::experiments {

/// The words of a TupleKey in memory: source, destination, ports (the destination's in the high half), kind.
inline constexpr unsigned kKeyWords = 4;
struct KeyWords {
  std::uint32_t of[kKeyWords];
};

[[nodiscard]] PENSTOCK_HOST_DEVICE inline KeyWords words_of(const TupleKey& key) noexcept {
  return {{key.source, key.destination, static_cast<std::uint32_t>(key.destination_port) << 16 | key.source_port,
           key.kind}};
}
[[nodiscard]] inline TupleKey key_of_words(const KeyWords& words) noexcept {
  return {words.of[0], words.of[1], static_cast<std::uint16_t>(words.of[2] & 0xffff),
          static_cast<std::uint16_t>(words.of[2] >> 16), words.of[3]};
}

/// Tests the first `kFields` words of a key: 2 (both addresses) or 4.
template <unsigned kFields>
struct alignas(16) WordRule {
  struct Field {
    std::uint32_t mask = 0;
    std::uint32_t value = 0;
  };
  Field fields[kFields];
};
static_assert(sizeof(WordRule<2>) == 16 && sizeof(WordRule<4>) == 32);

/// Stops at the first field that does not match, like a path of BPF's control flow graph.
template <unsigned kFields>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool matches(const WordRule<kFields>& rule, const KeyWords& key) noexcept {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (unsigned i = 0; i < kFields; ++i) {
    if ((key.of[i] & rule.fields[i].mask) != rule.fields[i].value) return false;
  }
  return true;
}

/// Which of the rules that match decides: the first (§4.1: "stops the comparison"), or the last (§1, figure 6).
enum class Deciding : std::uint8_t { first, last };

/// The number of the rule that decides, from 1, or 0: no rule matches, and the packet passes.
template <unsigned kFields>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t deciding_rule(const WordRule<kFields>* rules,
                                                                      std::uint32_t count, Deciding deciding,
                                                                      const KeyWords& key) noexcept {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!matches(rules[i], key)) continue;
    found = i + 1;
    if (deciding == Deciding::first) break;
  }
  return found;
}

}  // namespace penstock::experiments
