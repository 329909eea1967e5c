// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/random_packets.h"

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

namespace penstock::experiments {
namespace {

/// SplitMix64 (Steele et al., OOPSLA 2014): number n of a random sequence, in any order.
std::uint64_t random_number(std::uint64_t n) {
  std::uint64_t z = (n + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TupleKey draw(std::size_t index, std::span<const WordRule<kKeyWords>> rules, unsigned percent) {
  static constexpr std::array<std::uint32_t, 3> kProtocols{ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kIcmp};
  constexpr std::uint64_t kNumbers = 3;  // for each key
  const std::uint64_t addresses = random_number(index * kNumbers);
  const std::uint64_t others = random_number(index * kNumbers + 1);
  const std::uint64_t choice = random_number(index * kNumbers + 2);
  KeyWords words{{static_cast<std::uint32_t>(addresses), static_cast<std::uint32_t>(addresses >> 32),
                  static_cast<std::uint32_t>(others),
                  kProtocols[(others >> 32) % kProtocols.size()] << classify::kKindDetailBits}};
  const bool is_checked = index % kCheckedStep == 0;
  const bool hits = choice % 100 < percent || (is_checked && index / kCheckedStep % 4 != 3);
  if (hits) {
    const WordRule<kKeyWords>& rule = rules[(choice >> 32) % rules.size()];
    for (unsigned i = 0; i < kKeyWords; ++i) {
      words.of[i] = (words.of[i] & ~rule.fields[i].mask) | rule.fields[i].value;
    }
  }
  return key_of_words(words);
}

}  // namespace

void draw_packets(std::span<TupleKey> keys, std::span<const WordRule<kKeyWords>> rules, unsigned percent,
                  unsigned threads) {
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back(
        [keys, rules, percent, first = keys.size() * t / threads, end = keys.size() * (t + 1) / threads] {
          for (std::size_t i = first; i < end; ++i) keys[i] = draw(i, rules, percent);
        });
  }
}

}  // namespace penstock::experiments
